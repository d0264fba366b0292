"""`labd serial send` and `labd serial break`: bytes and breaks into a console. Light: `serial log` loads it too."""

from __future__ import annotations

from labd.errors import Busy, Usage, nearest
from labd.operations.consoles import (
    PACE_PARAMS,
    SEND_SECONDS,
    TARGET_EITHER,
    WRITER_PARAMS,
    Held,
    console,
    paced_seconds,
    tell_failing,
    who_of,
)
from labd.operations.model import INTERFACE, TARGET, Operation, Param
from labd.operations.serial_expect import HOW_PARAMS, await_patterns, checked, expect_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.lab import Lab
    from labd.lease import Lease
    from labd.operations.model import Args

EOLS = {"cr": b"\r", "lf": b"\n", "crlf": b"\r\n", "none": b""}
FILE_MAX = 64 << 20

EOL = Param("eol", "the line end to send, instead of the interface's own", kind="choice", flags=("--eol",),
            choices=tuple(EOLS))  # fmt: skip
NO_NEWLINE = Param("no_newline", "send just the bytes, without a line end", kind="switch", flags=("--no-newline",),
                   default=False)  # fmt: skip
KEY = Param("key", "press a key instead: ctrl-c, esc, enter, tab, up, f1 …; may be repeated", flags=("--key",),
            repeat=True, metavar="NAME", complete="key")  # fmt: skip
HEX = Param("hex", "send these bytes, written in hex (1b 5b 41)", flags=("--hex",), metavar="BYTES")


def send(call: Call, args: Args) -> Any:
    """Write bytes to the console, now or not at all; with --expect, wait for the answer."""
    lab, target, line = console(call, args)
    data = payload(call, args, line)
    patterns = checked(args.expect, args) if args.expect is not None else None
    if patterns is None and args.timeout is not None:
        raise Usage("--timeout is for --expect; a send has none", hint="labd serial send --help")
    if args.verify_echo:
        from labd.echo_check import check_text

        check_text(data)
    sent = _sent(call, args, lab, target, line, data)
    tell_failing(call, f"{target}.{line['name']}", sent.get("failing"))
    if patterns is None:
        return sent
    timeout = 30.0 if args.timeout is None else args.timeout
    return await_patterns(call, target, line, patterns, args, cursor=sent["rx"], timeout_s=timeout,
                          more={"sent": sent})  # fmt: skip


def _sent(call: Call, args: Args, lab: Lab, target: str, line: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Send under a lease where it takes a while, else straight away."""
    if args.verify_echo:
        with Held(call, args, lab, target, line["name"], what="an echoed send", ttl_s=_echo_seconds(data)) as lease:
            return _echoed(call, args, lab, target, line, data, lease)
    seconds = paced_seconds(data, args)
    if seconds > 2:
        call.note(f"sending {len(data)} bytes, paced: about {seconds:.0f} s …")
    how = {"pace_ms": args.pace_ms, "line_pace_ms": args.line_pace_ms, "who": who_of(call),
           "timeout_s": SEND_SECONDS + seconds}  # fmt: skip

    def now(lease: Lease | None = None) -> dict[str, Any]:
        sent = call.hop(call.bench.send, lab, target, line["name"], data, lease=lease, **how)
        return {"target": target, "interface": line["name"], **sent}

    what = "a paced send" if seconds else "a send"
    if not (seconds or args.file or args.take):
        try:
            return now()
        except Busy:
            if args.wait <= 0:
                raise
    with Held(call, args, lab, target, line["name"], what=what, ttl_s=SEND_SECONDS + seconds) as lease:
        return now(lease)


def _echo_seconds(data: bytes) -> float:
    return 60.0 + len(data) * 0.5


def _echoed(call: Call, args: Args, lab: Lab, target: str, line: dict[str, Any], data: bytes,
            lease: Lease) -> dict[str, Any]:  # fmt: skip
    """Send with each piece's echo compared."""
    from labd.console_io import Console
    from labd.echo_check import PATIENCE_S, PIECE_MAX, Typist

    board = Console(call, lab, target, line, who_of(call), lease)
    begin, seq = board.cursor, board.reader.seq_at(board.cursor) - 1
    paced = args.pace_ms > 0

    def one(piece: bytes) -> None:
        board.skip()
        board.send(piece, pace_ms=args.pace_ms)
        if args.line_pace_ms and piece[-1:] in b"\r\n":
            board.pause(args.line_pace_ms / 1000)

    if len(data) > 200:
        call.note(f"sending {len(data)} bytes, each compared with its echo …")
    typist = Typist(one, board.read, patience_s=PATIENCE_S + 4 * args.pace_ms / 1000,
                    piece_max=1 if paced else PIECE_MAX)  # fmt: skip
    done = typist.type(data)
    if done.resent:
        call.note(f"the console lost or changed input: {done.resent} bytes were sent again, {done.erased} erased")
    return {"target": target, "interface": line["name"], "bytes": len(data), "accepted": len(data), "rx": begin,
            "seq": seq, "echo": dict(vars(done))}  # fmt: skip


def payload(call: Call, args: Args, line: dict[str, Any]) -> bytes:
    """What to send, from whichever source was named. Raises Usage, before anything is sent."""
    sources = [name for name in ("text", "hex", "file", "key") if getattr(args, name, None) not in (None, [])]
    if len(sources) > 1:
        raise Usage(f"{_spelled(sources[0])} and {_spelled(sources[1])} both say what to send", hint="leave one out")
    if args.no_newline and args.eol not in (None, "none"):
        raise Usage(f"--no-newline and --eol {args.eol} contradict each other", hint="leave one out")
    eol = b"" if args.no_newline else line["eol"].encode() if args.eol is None else EOLS[args.eol]
    source = sources[0] if sources else "text"
    if source in ("hex", "key"):
        data = from_hex(args.hex) if source == "hex" else keys(args.key)
        data += eol if args.eol is not None else b""
    elif source == "file":
        data = _file(call, args.file)
        data = data if args.eol is None else _with_ends(data, eol)
    elif args.text == "-":
        data = call.read_stdin()
        if args.eol is not None and eol:
            data = _with_ends(data, eol)
        elif eol:
            data = data.removesuffix(b"\n").removesuffix(b"\r") + eol
    else:
        data = args.text.encode("utf-8", "surrogateescape") + eol
    if not data:
        raise Usage("there is nothing to send: no byte, and no line end")
    return data


def _spelled(name: str) -> str:
    return "the text" if name == "text" else f"--{name}"


def keys(names: list[str]) -> bytes:
    """The bytes of keys by name. Raises Usage with near matches."""
    from labd.keys import key

    return b"".join([key(name) for name in names])


def from_hex(text: str) -> bytes:
    """`1b 5b 41`, `1b:5b:41`, `0x1b,0x5b` or `1b5b41` as bytes. Raises Usage that names the place."""
    cleaned = []
    for part in text.replace(",", " ").replace(":", " ").split():
        digits = part[2:] if part[:2] in ("0x", "0X", "\\x") else part
        bad = next((char for char in digits if char not in "0123456789abcdefABCDEF"), None)
        if bad is not None:
            raise Usage(f"--hex: {bad!r} in {part!r} is no hex digit", hint="two digits a byte, like: 1b 5b 41")
        if len(digits) % 2 or not digits:
            raise Usage(f"--hex: {part!r} has an odd number of digits", hint="two digits a byte, like: 1b 5b 41")
        cleaned.append(digits)
    return bytes.fromhex("".join(cleaned))


def _file(call: Call, path: str) -> bytes:
    import os

    from labd import paths

    full = paths.expand(path, call.env, call.cwd)
    try:
        size = os.stat(full).st_size
        if size > FILE_MAX:
            raise Usage(
                f"--file: {path} has {size} bytes; at most {FILE_MAX} can be sent", hint="labd serial xfer send FILE"
            )
        with open(full, "rb") as file:
            return file.read(FILE_MAX)
    except OSError as problem:
        raise Usage(f"--file: {path} can't be read: {problem.strerror}", near=_near_files(full)) from None


def _near_files(full: str) -> list[str]:
    import os

    directory, name = os.path.split(full)
    try:
        return nearest(name, sorted(os.listdir(directory))[:1000])
    except OSError:
        return []


def _with_ends(data: bytes, eol: bytes) -> bytes:
    """Each line ended by `eol`, the last one too."""
    lines = data.replace(b"\r\n", b"\n").removesuffix(b"\n").split(b"\n")
    return b"".join([line + eol for line in lines])


def send_text(data: dict[str, Any], call: Call) -> str:
    """How much was sent where, and how to read the answer; or the answer."""
    if "sent" in data:
        return expect_text(data, call)
    where = f"{data['target']}.{data['interface']}"
    since = data.get("seq")
    follow = (
        f"labd {call.lab_words()}serial log {data['target']} -i {data['interface']} --since {since}"
        if since is not None
        else ""
    )
    return f"sent {data['accepted']} bytes to {where}" + (f"; read on with: {follow}" if follow else "")


def send_break(call: Call, args: Args) -> Any:
    """Hold the line in break."""
    lab, target, line = console(call, args)
    if not args.take:
        return call.hop(call.bench.break_, lab, target, line["name"], args.ms, who_of(call))
    with Held(call, args, lab, target, line["name"], what="a break", ttl_s=SEND_SECONDS + args.ms / 1000):
        return call.hop(call.bench.break_, lab, target, line["name"], args.ms, who_of(call))


def break_text(data: dict[str, Any], call: Call) -> str:
    """What was done to the wire."""
    return f"{data['target']}.{data['interface']}: break for {data['ms']:g} ms"


SERIAL_SEND = Operation(
    ("serial", "send"),
    "type into the console: a line, keys, bytes, a file",
    effect="actuate",
    where="daemon",
    params=(
        TARGET,
        Param("text", "what to type; - reads it from stdin", required=True, unless=("hex", "file", "key")),
        TARGET_EITHER,
        INTERFACE,
        NO_NEWLINE,
        EOL,
        KEY,
        HEX,
        Param("file", "send the bytes of a file", flags=("--file",), kind="path", metavar="PATH", complete="file",
              ships="in"),
        *PACE_PARAMS,
        Param("verify_echo", "compare what comes back: send again what got lost, and never end a line that is wrong",
              kind="switch", flags=("--verify-echo",), default=False),
        *WRITER_PARAMS,
        Param("expect", "then wait for this pattern (see serial expect)", flags=("--expect",), metavar="PATTERN"),
        Param("timeout", "with --expect: give up after this long (default 30)", kind="float", flags=("--timeout",),
              unit="s", minimum=0, maximum=604800),
        *HOW_PARAMS,
    ),
    handler=send,
    text=send_text,
    doc="Goes through the running capture, so watch first. A text gets the line end of the interface (eol, a carriage "
    "return unless set); keys, --hex and --file are sent as they are, unless --eol says what their lines end in. When "
    "the port is down nothing is sent and nothing is kept for later. The console must read its UART for the text to "
    "have an effect. A text that starts with a dash goes behind --.\n\n"
    "Keys: enter, tab, esc, space, backspace, delete, insert, up, down, left, right, home, end, pageup, pagedown, f1"
    " to f12, ctrl-a to ctrl-z, alt-x, or one character.\n\n"
    "--expect looks only at what comes after the send, and not at its echo. While somebody else writes (an interactive "
    "session, a run, a paced send) this waits for --wait, then exits 6 and says who it is and until when.",
    examples=(
        ('labd serial send pico "uname -a"', "run a command on the board"),
        ("labd serial send pico root --expect 'Password:' --timeout 5", "and wait for the answer"),
        ("labd serial send pico --key ctrl-c", "interrupt what runs"),
        ('labd serial send pico " " --no-newline --pace-ms 20', "one bare key, slowly"),
        ("labd serial send pico --file boot.cmd --eol cr --line-pace-ms 200", "type a script, line by line"),
        ("labd serial send pico 'setenv bootdelay 5' --verify-echo", "on a console that loses input"),
        ("labd serial send pico -- -v", "a text that starts with a dash"),
    ),
)  # fmt: skip

SERIAL_BREAK = Operation(
    ("serial", "break"),
    "send a break (SysRq, a boot ROM's attention)",
    effect="actuate",
    where="daemon",
    params=(
        TARGET,
        INTERFACE,
        Param("ms", "how long", kind="float", flags=("--ms",), default=250.0, unit="ms", minimum=1, maximum=10000),
        WRITER_PARAMS[1],
    ),
    handler=send_break,
    text=break_text,
    doc="Exit 7 where there is no break, as on a simulated board's pseudo-terminal.",
    examples=(("labd serial break pico", "on Linux, a key sent right after it is a SysRq command"),),
)  # fmt: skip
