"""What the verbs that type into a console share: which console, who types, and holding its lease. Light."""

from __future__ import annotations

from labd.errors import Busy, Usage
from labd.operations.model import Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.lab import Lab
    from labd.lease import Lease
    from labd.operations.model import Args

#: Seconds that a send may take beyond its pacing before it is given up.
SEND_SECONDS = 10.0

TARGET_EITHER = Param("target", "the target, as a flag", flags=("-t", "--target"), complete="target")

#: What to do while somebody else writes to the console.
WRITER_PARAMS = (
    Param("wait", "while somebody else writes to the console, wait this long for my turn", kind="float",
          flags=("--wait",), default=2.0, unit="s", minimum=0, maximum=86400),
    Param("take", "take the console over from whoever writes to it", kind="switch", flags=("--take",), default=False),
)  # fmt: skip

PACE_PARAMS = (
    Param("pace_ms", "wait after each byte, for a polled console without flow control", kind="float",
          flags=("--pace-ms",), default=0.0, unit="ms", minimum=0, maximum=60000),
    Param("line_pace_ms", "wait after each line's end, for a console that is deaf while it works", kind="float",
          flags=("--line-pace-ms",), default=0.0, unit="ms", minimum=0, maximum=600000),
)  # fmt: skip


def console(call: Call, args: Args) -> tuple[Lab, str, dict[str, Any]]:
    """(lab, target, interface's table) that the words mean. Raises NotFound."""
    lab = call.lab()
    target = lab.resolve_target(args.target, call)
    line = lab.resolve_interface(target, args.interface, call)
    _not_forgotten(args, lab, target, line["name"])
    return lab, target, line


def _not_forgotten(args: Args, lab: Lab, target: str, interface: str) -> None:
    """Refuse a text that is the name of a target or of the console, where none was named: it is the text that was
    forgotten, and the board would be sent its own name."""
    given = {} if args.target is not None else args.given("text", "pattern")
    for name, word in given.items():
        if word in lab.targets or word == interface:
            what = "a target" if word in lab.targets else "an interface"
            raise Usage(f"{word!r} is the name of {what}, and no {name} is given; with -t {target}, it is the {name}",
                        hint=f"labd {lab.words}serial --help")  # fmt: skip


def who_of(call: Call) -> dict[str, Any]:
    """Who is calling, for records and refusals: face, pid, and the name that claims know him by."""
    from labd.claims import name_of

    return {"face": call.face, "pid": call.caller.get("pid"), "user": name_of(call.env)}


def paced_seconds(data: bytes, args: Args) -> float:
    """How long the pacing makes a send last."""
    lines = data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")
    return float(len(data) * args.pace_ms + lines * args.line_pace_ms) / 1000


def tell_failing(call: Call, name: str, failing: str | None) -> None:
    """Say that what is sent and answered now is not recorded, where that is so."""
    if failing:
        call.note(f"the journal of {name} can't be written just now ({failing}): what is said meanwhile may be missing")


class Held:
    """`with Held(call, args, …) as lease`: the console's lease, given back at the end whatever happens.

    Raises Busy when another keeps it longer than --wait.
    """

    def __init__(self, call: Call, args: Args, lab: Lab, target: str, interface: str, *, what: str,
                 ttl_s: float) -> None:  # fmt: skip
        self.call = call
        self.args = args
        self.place = (lab, target, interface)
        self.what = what
        self.ttl_s = ttl_s
        self.lease: Lease | None = None

    def __enter__(self) -> Lease:
        call, args = self.call, self.args
        who = who_of(call)
        take_now = {"what": self.what, "take": args.take}
        try:
            lease: Lease = call.hop(call.bench.hold, *self.place, who, self.ttl_s, wait_s=0.0, **take_now)
        except Busy as error:
            if args.wait <= 0:
                raise
            if args.wait > 2:
                call.note(f"{error.message.partition('; nothing')[0]}; waiting up to {args.wait:g} s …")
            lease = call.hop(call.bench.hold, *self.place, who, self.ttl_s, wait_s=args.wait, **take_now)
        self.lease = lease
        return lease

    def __exit__(self, *exc: object) -> None:
        if self.lease is not None:
            self.call.bench.release(self.lease)
