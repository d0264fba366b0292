"""`labd video shot`: a picture of a target's screen; and what every look at a screen can wait for.

Light: OpenCV is in the capture process alone.
"""

from __future__ import annotations

from labd.errors import NotFound, Usage
from labd.operations.consoles import who_of
from labd.operations.model import TARGET, Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

TIMEOUT = Param("timeout", "how long to wait for the picture that is wanted", kind="int", flags=("--timeout",),
                default=2000, unit="ms", minimum=0, maximum=86_400_000, metavar="MS")  # fmt: skip
STABLE = Param("stable", "wait until the screen has been still for --still; a blinking cursor is no change",
               kind="switch", flags=("--stable",))  # fmt: skip
STILL = Param("still", "how long is still", kind="int", flags=("--still",), default=500, unit="ms", minimum=50,
              maximum=600_000, metavar="MS")  # fmt: skip
CHANGED_SINCE = Param("changed_since", "wait until the screen differs from the picture with this hash",
                      flags=("--changed-since",), metavar="HASH")  # fmt: skip
REGION = Param("region", "only this part of the picture, in pixels: left edge, top edge, width, height",
               flags=("--region",), metavar="X,Y,W,H")  # fmt: skip

#: What every look at a screen can wait for.
WAITS = (STABLE, STILL, CHANGED_SINCE, REGION, TIMEOUT)


def seen(call: Call, args: Args, what: str, **more: Any) -> tuple[str, dict[str, Any], bytes]:
    """Ask the target's screen for `what` (`grab`, `text`), waiting for what WAITS say: (target, answer, body).

    Raises TimedOut with what was seen, Usage, NotFound for a hash that is not known, Unreachable.
    """
    import time

    began_ns = time.monotonic_ns()
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    if args.timeout > 2000 and (args.stable or args.changed_since):
        call.note(f"waiting up to {args.timeout / 1000:g} s for {target}'s screen …")
        call.flush()
    request = {"do": what, "newer_ns": began_ns, "stable": bool(args.stable), "still_ms": args.still,
               "changed_since": args.changed_since, "region": args.region, **more}  # fmt: skip
    try:
        answer, body = call.hop(call.bench.screens.ask, lab, target, request, args.timeout / 1000)
    except NotFound as error:
        error.hint = error.hint or f"labd video shot {target} -o now.png"
        raise
    return target, answer, body


def shot(call: Call, args: Args) -> Answer:
    """Take the picture and write it where it is wanted."""
    to_stdout = args.out == "-"
    if to_stdout and call.stdout_tty and not call.json:
        raise Usage("a picture is nothing for a terminal", hint=f"labd video shot {args.target or ''} -o shot.png")
    target, answer, png = seen(call, args, "grab")
    frame = answer["frame"]
    facts = {"target": target, **{key: frame[key] for key in ("hash", "signal", "width", "height", "wall_ns")},
             "bytes": len(png), "file": None}  # fmt: skip
    if not to_stdout:
        from labd import outfile

        facts["file"] = outfile.write(call, args.out, [png])
    elif call.json:
        import base64

        facts["png"] = base64.b64encode(png).decode("ascii")
    picture = f"{frame['hash']}{'-part' if args.region else ''}.png"
    call.bench.chronicle.keep_picture(call.lab_path, target, picture, png)
    call.bench.screens.tell(call.lab_path, target, "shot", hash=frame["hash"], file=facts["file"], picture=picture,
                            who=who_of(call), region=args.region)  # fmt: skip
    call.note(f"signal={frame['signal']}  hash={frame['hash']}  {frame['width']}x{frame['height']}")
    if to_stdout and not call.json:
        call.out(png)
    return Answer(facts, text=facts["file"] or "")


VIDEO_SHOT = Operation(
    ("video", "shot"),
    "take a picture of a target's screen (PNG)",
    effect="actuate",
    where="daemon",
    params=(
        TARGET,
        *WAITS,
        Param("out", "the file to write; - is stdout", kind="path", flags=("-o", "--out"), default="-",
              complete="file", ships="out"),
    ),
    handler=shot,
    doc="The picture is never older than the request. Its hash, on stderr, names what the screen shows: it stays while "
    "nothing but noise and a blinking cursor changes. --changed-since HASH waits until the screen differs from the "
    "picture that had that hash, by as little as a typed word; with --stable too, until it then is still. A screen "
    "without signal, or one that was lost, gives no picture: exit 5 at the timeout (7 where the device is gone) says "
    "what was seen instead, and nothing is written.",
    examples=(
        ("labd video shot pico -o now.png", "what the screen shows now"),
        ("labd video shot pico --stable -o boot.png", "the boot screen, once it has settled"),
        ("labd video shot pico --changed-since 00f1e2d3c4b5a697 --stable --timeout 60000 -o next.png",
         "what comes after the picture with that hash, once it has settled"),
        ("labd video shot pico --region 0,0,720,16 -o top.png", "its first line of text"),
    ),
)  # fmt: skip
