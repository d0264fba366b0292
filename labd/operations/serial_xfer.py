"""`labd serial xfer`: files over a console by X-, Y- or ZMODEM. Light: `serial log` loads it too."""

from __future__ import annotations

from labd.errors import LabdError, NotFound, Usage
from labd.lab.model import quoted
from labd.operations.consoles import WRITER_PARAMS, Held, console, who_of
from labd.operations.model import INTERFACE, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from labd.call import Call
    from labd.console_io import Console
    from labd.operations.model import Args

#: What a board says when a transfer is started begins within the first, ends with a pause of the second, and is not
#: waited for beyond the third (seconds).
WORDS_BEGIN_S, WORDS_QUIET_S, WORDS_MOST_S = 1.0, 0.3, 5.0
PROTOCOLS = {"x": "XMODEM", "y": "YMODEM", "z": "ZMODEM"}


def xfer(call: Call, args: Args) -> dict[str, Any]:
    """Run the transfer program on the line; the answer says how much went over."""
    from labd import transfer
    from labd.transfer_end import Ending

    lab, target, line = console(call, args)
    send = args.direction == "send"
    paths, size = _to_send(call, args) if send else (_to_receive(call, args), None)
    program = transfer.program(send, args.protocol, call.env)
    directory, names = (call.cwd, paths) if send else _place(call, paths)
    argv = transfer.argv_of(program, send, args.protocol, names, flow=line["flow"])
    what = f"a {PROTOCOLS[args.protocol]} transfer"
    with Held(call, args, lab, target, line["name"], what=what, ttl_s=transfer.TTL_S) as lease:
        from labd.console_io import Console

        board = Console(call, lab, target, line, who_of(call), lease)

        def carry(cwd: str) -> dict[str, Any]:
            if args.start is not None:
                board.send(args.start.encode("utf-8", "surrogateescape") + line["eol"].encode())
                if not send and args.protocol in "xy":
                    _let_speak(board)
            ending = None if send or args.protocol != "z" else Ending()
            return transfer.run(call, board, argv, cwd=cwd, size=size, ending=ending)

        files, done = (paths, carry(directory)) if send else _received(call, directory, carry)
    return {"target": target, "interface": line["name"], "direction": args.direction, "protocol": args.protocol,
            "files": files, **done}  # fmt: skip


def _let_speak(board: Console) -> None:
    """Read on until the board has said that it is ready: who sends by X- or YMODEM then waits to be asked, and a
    receiver that takes its words for a broken block asks for the wrong kind of blocks."""
    import time

    give_up = time.monotonic() + WORDS_MOST_S
    quiet_s = WORDS_BEGIN_S
    while (now := time.monotonic()) < give_up and board.read(min(give_up, now + quiet_s)):
        quiet_s = WORDS_QUIET_S


def _received(call: Call, directory: str, carry: Callable[[str], dict[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """Receive, and put what came into `directory` beside what is there. A failed transfer's pieces are named."""
    from labd.transfer_place import Staging

    staging = Staging(directory)
    for old in staging.abandoned():
        call.note(f"an earlier transfer was cut off; what came of it is in {old}")
    try:
        done = carry(staging.path)
    except BaseException as error:
        left = staging.give_up()
        if left and isinstance(error, LabdError):
            error.message += f"; what came until then is in {left}"
        raise
    return staging.take_out(call.note), done


def _to_send(call: Call, args: Args) -> tuple[list[str], int]:
    """The files' full paths, and their bytes. Raises Usage before anything is sent."""
    import os

    from labd import paths

    if not args.files:
        raise Usage("serial xfer send needs a file", hint="labd serial xfer send FILE")
    if args.protocol == "x" and len(args.files) > 1:
        raise Usage("XMODEM carries one file", hint="--protocol y or z for several")
    found = [paths.expand(name, call.env, call.cwd) for name in args.files]
    size = 0
    for name, path in zip(args.files, found, strict=True):
        if not os.path.exists(path):
            raise NotFound(f"no file {name}", hint=f"ls {quoted(os.path.dirname(path))}")
        if not os.path.isfile(path) or not os.access(path, os.R_OK):
            raise Usage(f"{name} is not a file that can be read", hint=f"ls -ld {quoted(path)}")
        size += os.path.getsize(path)
    return found, size


def _to_receive(call: Call, args: Args) -> list[str]:
    """Where to: XMODEM has no names, the others bring theirs."""
    import os

    from labd import paths

    if args.protocol != "x":
        if args.files:
            raise Usage(f"with {PROTOCOLS[args.protocol]} the sender names the files, which arrive in this directory",
                        hint="cd to where they should go, and leave the name out")  # fmt: skip
        return []
    if len(args.files) != 1:
        raise Usage("XMODEM needs the name of the one file to receive into", hint="labd serial xfer recv FILE -p x")
    path = paths.expand(args.files[0], call.env, call.cwd)
    if os.path.exists(path):
        raise LabdError(f"{args.files[0]} is there already; nothing was received", hint="name a new file, or remove it")
    return [path]


def _place(call: Call, paths: list[str]) -> tuple[str, list[str]]:
    """The directory to receive in, and the name there: receivers refuse other paths."""
    import os

    if not paths:
        return call.cwd, []
    if not os.path.isdir(os.path.dirname(paths[0])):
        raise NotFound(f"no directory {os.path.dirname(paths[0])}", hint="mkdir -p, or name another")
    return os.path.dirname(paths[0]), [os.path.basename(paths[0])]


def xfer_text(data: dict[str, Any], call: Call) -> str:
    """What went over."""
    verb = "sent" if data["direction"] == "send" else "received"
    rate = data["bytes"] / data["seconds"] if data["seconds"] else 0.0
    names = ", ".join(data["files"]) or "files"
    return f"{verb} {names}: {data['bytes']} bytes on the line in {data['seconds']:.1f} s ({rate:.0f} bytes/s)"


SERIAL_XFER = Operation(
    ("serial", "xfer"),
    "carry files over the console by X-, Y- or ZMODEM",
    effect="actuate",
    where="daemon",
    params=(
        Param("direction", "send (to the board) or recv (from it)", kind="choice", choices=("send", "recv"),
              required=True),
        Param("files", "the files; for recv one new name with -p x, none else", repeat=True, complete="file",
              metavar="FILE…", ships="direction"),
        Param("target", "the target", flags=("-t", "--target"), complete="target"),
        INTERFACE,
        Param("protocol", "x, y or z: XMODEM, YMODEM, ZMODEM", kind="choice", flags=("-p", "--protocol"),
              choices=tuple(PROTOCOLS), default="z"),
        Param("start", "type this first, to start the board's side (loady, rz, sz FILE)", flags=("--start",),
              metavar="COMMAND"),
        *WRITER_PARAMS,
    ),
    handler=xfer,
    text=xfer_text,
    doc="Runs lrzsz (sx, sb, sz, rx, rb, rz) on the captured line, so the transfer is in the journal too; nobody else "
    "writes meanwhile. Exit 7 names the package where lrzsz is missing; its own exit code is passed on. XMODEM fills "
    "the last block up, so a file may arrive up to 127 bytes longer. What is there already is never overwritten: a "
    "file whose name is taken arrives as NAME.1, a hidden .NAME as dot.NAME. Ctrl-C ends it and tells the board so.",
    examples=(
        ("labd serial xfer send u-boot.img -t pico -p y --start 'loady 0x82000000'", "into U-Boot's memory"),
        ("labd serial xfer send app.bin notes.txt -t pico --start rz", "to Linux with lrzsz"),
        ("labd serial xfer recv -t pico --start 'sz /var/log/messages'", "from Linux, into this directory"),
        ("labd serial xfer recv dump.bin -t pico -p x", "the board's program was started by hand"),
    ),
)  # fmt: skip
