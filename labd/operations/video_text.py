"""`labd video read`, `text`, `wait`, `expect`, `learn-font`: the text on a target's screen, and waiting for it.

The reading is done in the capture process (`labd.video.reading`); the matching is that of the consoles, so that the
screen is a console too. Light: no engine is loaded here.
"""

from __future__ import annotations

from labd.errors import LabdError, NotFound, TimedOut, Usage
from labd.operations.consoles import who_of
from labd.operations.model import TARGET, Answer, Operation, Param
from labd.operations.video_shot import REGION, WAITS, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

#: What a reading may take beyond the wait for its picture, seconds: a search for the grid, and tesseract's deadline.
WORK_S = 40.0

#: Between two signs of a wait, seconds.
_TELL_S = 10.0

#: How long one look of a wait lasts, seconds.
_LOOK_S = 5.0

ENGINE = Param("engine", "how to read: console knows the fonts of text consoles, tesseract any text; auto takes what "
               "is surer", kind="choice", flags=("--engine",), choices=("auto", "console", "tesseract"),
               default="auto")  # fmt: skip

TIMEOUT_S = Param("timeout", "give up after this long; 0 looks once", kind="float", flags=("--timeout",), default=30.0,
                  unit="s", minimum=0, maximum=604800)  # fmt: skip


def read(call: Call, args: Args) -> Answer:
    """The text of one picture. Raises LabdError, saying why, where nothing can be read."""
    more = {"diff": bool(vars(args).get("diff")), "since": vars(args).get("since")}
    target, data, _ = seen(call, args, "text", engine=args.engine, work_s=WORK_S, **more)
    frame = data.pop("frame")
    if not data["lines"]:
        raise LabdError(f"{target}: no text can be read on the screen: {data['why']} (hash {frame['hash']})",
                        hint=f"labd video shot {target} -o screen.png")  # fmt: skip
    call.note(f"{data['why']}  hash={frame['hash']}")
    call.bench.screens.tell(call.lab_path, target, "read", hash=frame["hash"], engine=data["engine"],
                            score=data["score"], lines=len(data["lines"]), who=who_of(call))  # fmt: skip
    return Answer({"target": target, "hash": frame["hash"], "wall_ns": frame["wall_ns"], **data})


def read_text(data: dict[str, Any], call: Call) -> str | None:
    """The text alone; of a comparison the lines that went and came, marked."""
    if "added" in data:
        return "\n".join([f"- {line}" for line in data["removed"]] + [f"+ {line}" for line in data["added"]]) or None
    return str(data["text"])


# --- waiting --------------------------------------------------------------------------------------------------------


def wait(call: Call, args: Args) -> Answer:
    """Wait for a text, or with --regex for an expression."""
    return _await(call, args, [args.text], literal=not args.regex, as_written="TEXT without --regex")


def expect(call: Call, args: Args) -> Answer:
    """Wait for one of some expressions; then press keys, where that was asked for."""
    if args.key or args.type is not None:
        from labd.hid import keys

        for name in args.key:
            keys.chord(name)  # refused before anything is waited for
        lab = call.lab()
        lab.channel(lab.resolve_target(args.target, call), "hid")
    return _await(call, args, [args.pattern, *args.any], literal=args.literal, as_written="--literal", act=_press)


def _press(call: Call, args: Args, target: str) -> list[str]:
    """Type what was asked for; what was done."""
    from labd.operations import hid
    from labd.operations.model import Args as Words

    steps = [] if args.type is None else [["type", args.type]]
    steps += [["key", name] for name in args.key]
    return [str(hid.send(call, Words({"target": target, "words": words}))["did"]) for words in steps]


def _await(call: Call, args: Args, sources: list[str], *, literal: bool, as_written: str, act: Any = None) -> Answer:
    import time

    from labd.match import compile_all
    from labd.video import seek

    patterns = compile_all(sources, literal=literal, ignore_case=args.ignore_case, as_written=as_written)
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    began = time.monotonic()
    said = began
    last: dict[str, Any] | None = None
    why = "no picture was read"
    for page, said_of_it in _pages(call, args, lab, target, began + args.timeout):
        if page or last is None:
            last, why = page, said_of_it
        hit = seek.search(patterns, page["lines"], page["grid"], ignore_case=args.ignore_case) if page else None
        if page and hit:
            ms = round((time.monotonic() - began) * 1000)
            did = act(call, args, target) if act else []
            call.bench.screens.tell(call.lab_path, target, "seen", text=hit["match"], hash=page["hash"], ms=ms,
                                    engine=page["engine"], did=did, who=who_of(call))  # fmt: skip
            return Answer({"target": target, "matched": True, "ms": ms, **hit, "did": did,
                           **{key: page[key] for key in ("hash", "engine", "score", "font")}})  # fmt: skip
        if time.monotonic() - said > _TELL_S:
            said = time.monotonic()
            call.note(f"waiting for {target}'s screen for {said - began:.0f} s: {why}")
            call.flush()
    raise _missed(call, args, target, patterns, last, why)


def _pages(call: Call, args: Args, lab: Any, target: str, until: float) -> Any:
    """(what was read or None, what there is to say of it) of each picture whose content is new, until that time."""
    import time

    since: str | None = None
    newer = time.monotonic_ns()
    while True:
        left = until - time.monotonic()
        request = {"do": "text", "newer_ns": newer, "changed_since": since, "region": args.region,
                   "engine": args.engine, "work_s": WORK_S}  # fmt: skip
        try:
            page, _ = call.hop(call.bench.screens.ask, lab, target, request, max(0.5, min(left, _LOOK_S)))
        except TimedOut as nothing:
            yield None, nothing.message.partition(": ")[2]
        except NotFound:
            if since is None:
                raise  # no such channel
            since = None  # the capture was started anew: that picture is forgotten
            continue
        else:
            page["hash"] = since = page.pop("frame")["hash"]
            last = page["lines"][-1]["text"].strip() if page["lines"] else page["why"]
            yield page, f"its last line is {last!r}" if page["lines"] else f"nothing to read: {page['why']}"
        if time.monotonic() >= until:
            return


def _missed(call: Call, args: Args, target: str, patterns: Any, page: dict[str, Any] | None, why: str) -> TimedOut:
    """The error of a wait in vain, with the nearest miss and the last lines."""
    from labd.match_near import nearest

    lines = [(number, line["text"]) for number, line in enumerate(page["lines"])] if page else []
    near = nearest(patterns[0], lines, ignore_case=args.ignore_case)
    call.bench.screens.tell(call.lab_path, target, "missed", text=patterns[0].source, timeout_s=args.timeout,
                            hash=page["hash"] if page else None, who=who_of(call))  # fmt: skip
    for _, text in lines[-5:]:
        call.note(f"  {text}")
    nearly = f"; nearest: {near['text']!r} ({near['differs']})" if near else ""
    return TimedOut(f"{target}: the screen did not say {patterns[0].source!r} within {args.timeout:g} s: {why}{nearly}",
                    hint=f"labd video read {target}")  # fmt: skip


def seen_text(data: dict[str, Any], call: Call) -> str:
    """The lines up to the match, as a person reads a screen; what was pressed is a note."""
    for did in data["did"]:
        call.note(did)
    return "\n".join([*data["before"], data["line"]])


# --- fonts ----------------------------------------------------------------------------------------------------------


def learn_font(call: Call, args: Args) -> Answer:
    """Learn the console's font from a screen whose text is known."""
    from labd.video.seek import CHART

    if args.chart:
        return Answer({"chart": list(CHART)}, text="\n".join(CHART))
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    lines, source = list(CHART), "the chart"
    if args.text is not None and args.serial is not None:
        raise Usage("--text and --serial both say what the screen shows", hint="leave one out")
    if args.text is not None:
        lines, source = _file_lines(call, args.text), args.text
    elif args.serial is not None:
        lines, source = _console_lines(call, lab, target, args.serial), f"the console {args.serial}"
    if not any(line.strip() for line in lines):
        raise Usage(f"{source} has no text to learn from", hint="labd video learn-font --chart")
    data = seen(call, args, "text", learn=True, lines=lines, name=args.name or f"learned-{target}", work_s=WORK_S)[1]
    frame = data.pop("frame")
    call.bench.screens.tell(call.lab_path, target, "font", font=data["font"], hash=frame["hash"], who=who_of(call))
    return Answer({"target": target, "hash": frame["hash"], "source": source, **data})


def learn_text(data: dict[str, Any], call: Call) -> str:
    """What was learned, and where it is."""
    return (f"{data['font']}: {data['characters']} characters of {data['width']}x{data['height']} from "
            f"{data['lines']} lines, kept in {data['file']}")  # fmt: skip


def _file_lines(call: Call, name: str) -> list[str]:
    from labd import paths

    path = paths.expand(name, call.env, call.cwd)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20).splitlines()
    except OSError as error:
        raise Usage(f"{name}: {error.strerror}") from None


def _console_lines(call: Call, lab: Any, target: str, interface: str) -> list[str]:
    """The last lines that a serial console of the same board said: kernels say them on both."""
    from labd import logquery

    line = lab.resolve_interface(target, interface, call)
    found = logquery.query(call.journal_dir(target, line["name"]), tail=400, encoding=line["encoding"])
    rows = [logquery.as_data(item, encoding=line["encoding"]) for item in found if isinstance(item, logquery.Line)]
    return [str(row["text"]) for row in rows]


# --- the table ------------------------------------------------------------------------------------------------------

_HOW = (
    REGION,
    ENGINE,
    Param("ignore_case", "match without regard to case", kind="switch", flags=("-I", "--ignore-case"), default=False),
    TIMEOUT_S,
)

_SCREEN = "The screen must be captured (labd video watch). "

VIDEO_TEXT = (
    Operation(
        ("video", "read"),
        "read the text on a target's screen (OCR)",
        effect="actuate",
        where="daemon",
        params=(TARGET, *WAITS, ENGINE),
        handler=read,
        text=read_text,
        doc=_SCREEN + "Text consoles are read by the shapes of their font, from pixels or through a scaler and a "
        "camera: the grid and the font are found. Fonts come from the console fonts and the firmware images of this "
        "machine, and from labd video learn-font. Anything else goes to tesseract. Which one read, and how sure it is, "
        "is told on stderr; --json has the confidence and the box of each line. Exit 0 only with text: otherwise 1 and "
        "why (nothing legible), 5 (no picture in time, or no signal).",
        examples=(
            ("labd video read pico --stable", "what the screen says, once it has settled"),
            ("labd video read pico --region 0,0,720,160 --json", "its upper part, with boxes"),
            ("labd video read pico --engine tesseract", "a screen that is no console"),
        ),
    ),
    Operation(
        ("video", "text"),
        "the text on a target's screen, and what changed in it",
        effect="actuate",
        where="daemon",
        params=(
            TARGET,
            Param("diff", "only the lines that went (-) and came (+) since the text that was read last", kind="switch",
                  flags=("--diff",)),
            Param("since", "compare with the text of the picture with this hash", flags=("--since",), metavar="HASH"),
            *WAITS,
            ENGINE,
        ),
        handler=read,
        text=read_text,
        doc=_SCREEN + "As labd video read; with --diff it compares with the last text that anybody read of this "
        "screen, or with --since with the one of that picture.",
        examples=(
            ("labd video text pico", "what the screen says"),
            ("labd video text pico --diff --stable", "what is new on it"),
        ),
    ),
    Operation(
        ("video", "wait"),
        "wait until a target's screen shows a text",
        effect="actuate",
        where="daemon",
        params=(
            TARGET,
            Param("text", "the text to wait for", required=True),
            Param("target", "the target, as a flag", flags=("-t", "--target"), complete="target"),
            Param("regex", "TEXT is a regular expression", kind="switch", flags=("--regex",), default=False),
            *_HOW,
        ),
        handler=wait,
        text=seen_text,
        doc=_SCREEN + "Looks at what is there now and at each change; text that is broken at the screen's right edge "
        "is found too. Exit 5: not in time, with the nearest miss and the last lines.",
        examples=(
            ("labd video wait pico 'login:' --timeout 60", "until the login prompt is on the screen"),
            (r"labd video wait pico 'Boot (Menu|Manager)' --regex", "either of two"),
        ),
    ),
    Operation(
        ("video", "expect"),
        "wait for a pattern on a target's screen, then press keys",
        effect="actuate",
        where="daemon",
        params=(
            TARGET,
            Param("pattern", "a regular expression, or text where it has no special character", required=True),
            Param("target", "the target, as a flag", flags=("-t", "--target"), complete="target"),
            Param("any", "another pattern that will do; may be repeated", flags=("--any",), repeat=True,
                  metavar="PATTERN"),
            Param("literal", "take patterns as they are written, not as regular expressions", kind="switch",
                  flags=("--literal",), default=False),
            Param("type", "text to type once it is there", flags=("--type",), metavar="TEXT"),
            Param("key", "a key to press then (f2, enter, ctrl-c), behind --type; may be repeated", flags=("--key",),
                  repeat=True, metavar="KEY"),
            *_HOW,
        ),
        handler=expect,
        text=seen_text,
        doc=_SCREEN + "The screen as a console: the match with its line, groups, box and confidence under --json, the "
        "nearest miss where nothing came. Keys go through the target's hid command; unknown ones are refused before "
        "the wait. ^ and $ are the begin and end of each line.",
        examples=(
            ("labd video expect pico 'Press F2' --key f2 --timeout 60", "into the setup, as soon as it is offered"),
            (r"labd video expect pico 'login: *$' --type root --key enter", "log in on the screen"),
        ),
    ),
    Operation(
        ("video", "learn-font"),
        "learn the font of a target's console from a screen whose text is known",
        effect="config",
        where="daemon",
        params=(
            TARGET,
            Param("text", "a file with the text that is on the screen", kind="path", flags=("--text",),
                  complete="file", ships="in"),
            Param("serial", "the serial interface that said the same text last", flags=("--serial",),
                  metavar="INTERFACE", complete="interface"),
            Param("name", "the font's name", flags=("--name",)),
            Param("chart", "print the text to show on the screen, and do nothing else", kind="switch",
                  flags=("--chart",), default=False),
            *WAITS,
        ),
        handler=learn_font,
        text=learn_text,
        doc=_SCREEN + "For consoles whose font is not on this machine. Without --text and --serial the screen must "
        "show the chart: have the target print it. The screen may show other text above and below. What was learned is "
        "read back, and kept only when that gives the known text.",
        examples=(
            ("labd video learn-font --chart", "the characters to print on the target's screen"),
            ("labd video learn-font pico", "learn from the chart on pico's screen"),
            ("labd video learn-font pico --serial console", "learn from what the kernel said on both"),
        ),
    ),
)  # fmt: skip
