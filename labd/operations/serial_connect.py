"""`labd serial connect`: a person's terminal on a console. Light: `serial log` loads it too."""

from __future__ import annotations

from labd.errors import Usage
from labd.operations.consoles import console
from labd.operations.model import INTERFACE, TARGET, Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.lab_client import Lab
    from labd.lab_console import Console
    from labd.lab_results import Interface
    from labd.operations.model import Args

ESCAPE = "ctrl-]"


def connect(call: Call, args: Args) -> Answer:
    """Attach the terminal until the person quits; 128 and the number when a signal ended it."""
    from labd.lab_client import Lab
    from labd.terminal import Ended, Terminal, escape_byte

    if args.read_only and args.take:
        raise Usage("--read-only and --take contradict each other", hint="leave one out")
    escape = escape_byte(args.escape)
    lab, target, line = console(call, args)
    name = f"{target}.{line['name']}"
    terminal = Terminal(0, 1, title=f"{name} — labd")
    with Lab(lab.path, env=call.env) as bench:
        found = bench[target][line["name"]]
        call.flush()
        try:
            if args.exclusive:
                _alone(call, args, bench, found, line, terminal, escape)
            else:
                _shared(call, args, found, line, terminal, escape)
        except Ended as ended:
            return Answer({"target": target, "interface": line["name"]}, code=128 + ended.number, text="")
        finally:
            call.note(f"labd serial watch {target} starts the capture again" if args.exclusive else
                      f"detached from {name}; its capture goes on (labd serial stop {target} ends it)")  # fmt: skip
    return Answer({"target": target, "interface": line["name"]}, text="")


def _shared(call: Call, args: Args, found: Console, line: dict[str, Any], terminal: Any, escape: int | None) -> None:
    from labd.attach import Session
    from labd.lease import INTERACTIVE

    opened = (_watched(found) if args.read_only else None) or found.watch()
    grip = None if args.read_only else found.grip(take=args.take, wait=0, why=INTERACTIVE)
    try:
        session = Session(found, terminal, escape=escape, tail=args.tail, read_only=args.read_only)
        where = opened.node or opened.device
        call.note(f"{found.name} on {where}, {line['baud']} baud{_keys(escape)}"
                  + ("; only watching" if args.read_only else ""))  # fmt: skip
        with terminal:
            session.run(grip)
    finally:
        if grip is not None:
            grip.close()


def _watched(found: Console) -> Interface | None:
    """The console's state where it is being captured, so that only watching does nothing to the board."""
    state = found.state() if found.lab.daemon_runs else None
    return state if state is not None and state.state in ("open", "lost") else None


def _alone(call: Call, args: Args, bench: Lab, found: Console, line: dict[str, Any], terminal: Any,
           escape: int | None) -> None:  # fmt: skip
    from labd.exclusive import Port, converse

    port = Port(line, found.name)  # refuses what can't be opened before the capture is touched
    stopped = found.stop() if bench.daemon_runs else False
    with port:
        if stopped:
            call.note(f"stopped the capture of {found.name}: what comes now is not recorded")
        call.note(f"{found.name} on {line['device']}, {line['baud']} baud, opened by this program alone{_keys(escape)}")
        with terminal:
            converse(port, terminal, escape)


def _keys(escape: int | None) -> str:
    from labd.terminal import key_name

    if escape is None:
        return "; no escape key: end it with kill"
    return f"; {key_name(escape)} then q quits, {key_name(escape)} then ? helps"


SERIAL_CONNECT = Operation(
    ("serial", "connect"),
    "attach this terminal to the console",
    effect="actuate",
    looking=("read_only",),
    where="client",
    terminal=True,
    params=(
        TARGET,
        INTERFACE,
        Param("tail", "begin with the last N lines", kind="int", flags=("-n", "--tail"), default=0, metavar="N",
              minimum=0, maximum=100000),
        Param("escape", "the key that introduces commands, or none", flags=("--escape",), default=ESCAPE,
              metavar="KEY"),
        Param("read_only", "only watch: keys are not sent", kind="switch", flags=("--read-only",), default=False),
        Param("take", "take the console over from whoever writes to it", kind="switch", flags=("--take",),
              default=False),
        Param("exclusive", "stop the capture and open the port in this program alone", kind="switch",
              flags=("--exclusive",), default=False),
    ),
    handler=connect,
    doc="Starts the capture if need be, and leaves it running: all that is said and typed is in the journal, other "
    "sessions may watch, and serial log, expect and triggers work beside it. Keys go out as they are typed, Ctrl-C "
    "too; Ctrl-] then q quits, then ? shows the other commands, then b sends a break, and Ctrl-] twice sends one. "
    "While it is attached nobody else writes to the console unless they take it over; --read-only leaves that to "
    "others, and only looks: to start the capture, where none runs, takes what serial watch takes. It says when "
    "the port is lost and when it is back. --exclusive is for what must have the port for "
    "itself, a vendor's protocol for instance: nothing is recorded then, and serial watch starts the capture again.",
    examples=(
        ("labd serial connect pico", "an interactive session"),
        ("labd serial connect pico --tail 50 --read-only", "look over a colleague's shoulder"),
        ("labd serial connect pico --escape ctrl-a", "inside a terminal that keeps Ctrl-] for itself"),
    ),
)  # fmt: skip
