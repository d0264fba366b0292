"""argv → operation → answer, human or JSON; nothing else. The same code renders inside the daemon and without it.

`main` is the process without a daemon; `execute` is one call, wherever it runs. Knows no rule (the shim does) and no
hardware (the bench does).
"""

from __future__ import annotations

import os
import sys

from labd import __version__, shim
from labd.argv import parse
from labd.call import Call, encode, face_of
from labd.errors import Busy, LabdError, Unreachable
from labd.jsonlight import dumps, pretty
from labd.record import Passage
from labd.thin import Unwritable, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from labd.argv import Parsed
    from labd.operations.model import Args, Operation

#: Bytes of answer that are gathered before they are written on.
GATHER_BYTES = 32768


def main(argv: list[str], daemon_version: str = "") -> int:
    """Run `argv` in this process; returns the exit code. `daemon_version` is a running daemon's that can't serve us.

    Raises thin.Unwritable when the answer can't be written.
    """
    call = own_call(argv)
    try:
        return execute(call)
    except shim.NeedsDaemon:
        return _through_daemon(call, daemon_version)
    except KeyboardInterrupt:
        _die_of_interrupt()
        return 130


def _die_of_interrupt() -> None:
    """End as the signal would have ended us, so that a shell knows; all that was under way has been tidied."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def own_call(argv: list[str]) -> Call:
    """The call of this very process."""
    sink = Sink(write_all)
    stdout_tty, stderr_tty = _is_tty(1), _is_tty(2)
    try:
        columns = os.get_terminal_size(1 if stdout_tty else 2).columns if stdout_tty or stderr_tty else 0
    except OSError:
        columns = 0
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    env = dict(os.environ)
    face, client = face_of(env)
    if held := env.pop("LABD_LIFELINE", ""):
        from labd import lifeline

        lifeline.hold(int(held))
    call = Call(
        face=face,
        argv=argv,
        cwd=cwd,
        env=env,
        out=sink.out,
        err=sink.err,
        read_stdin=lambda: sys.stdin.buffer.read(),
        columns=width_of(str(columns) if columns else os.environ.get("COLUMNS", "")),
        stdin_tty=_is_tty(0),
        stdout_tty=stdout_tty,
        stderr_tty=stderr_tty,
        caller={"pid": os.getpid(), "ppid": os.getppid(), "uid": os.getuid(), **client},
        program=os.path.join(cwd, sys.argv[0]),
    )
    call.flush = sink.flush
    poll = call.wait_data

    def wait(directory: str, seconds: float) -> bool:
        sink.flush()
        return poll(directory, seconds)

    call.wait_data = wait
    return call


def width_of(text: str) -> int:
    """A terminal's width in columns from what somebody says it is; 80 for what is no width, at least 40."""
    return max(40, int(text)) if text.isascii() and text.isdigit() and 0 < int(text) < 10_000 else 80


class Sink:
    """Gathers the answer into larger writes; stderr goes out at once, behind what was answered before it."""

    def __init__(self, write: Callable[[int, bytes], None]) -> None:
        self.write = write
        self.held: list[bytes] = []
        self.size = 0

    def out(self, data: bytes) -> None:
        """Add to the answer."""
        self.held.append(data)
        self.size += len(data)
        if self.size >= GATHER_BYTES:
            self.flush()

    def err(self, data: bytes) -> None:
        """Write to stderr now."""
        self.flush()
        self.write(2, data)

    def flush(self) -> None:
        """Write what was gathered."""
        if self.held:
            data = b"".join(self.held)
            self.held, self.size = [], 0
            self.write(1, data)


def execute(call: Call, bench: Any = None) -> int:
    """Run one call to its end and return its exit code; errors are rendered, never raised.

    `bench` is the live side of the daemon that runs this, None elsewhere. Raises shim.NeedsDaemon or shim.NeedsClient
    when another process must do it; nothing was written then.
    """
    passage = Passage(call)
    _tee(call, passage)
    code: int | None = None
    signal: str | None = None
    moved = False
    try:
        code = _run(call, passage, bench)
        call.flush()
    except (shim.NeedsDaemon, shim.NeedsClient):
        moved = True
        raise
    except LabdError as error:
        code = _failed(call, error)
    except KeyboardInterrupt:
        code, signal = 130, "SIGINT"
        raise
    except Unwritable:
        code = 141
        raise
    except Exception as error:
        code = _failed(call, _defect(call, error))
    finally:
        if not moved:
            code = _recorded(call, passage, code, signal)
    return 1 if code is None else code


def _recorded(call: Call, passage: Passage, code: int | None, signal: str | None) -> int | None:
    """Write the end of the record; the exit code, which is a failure where that could not be written."""
    try:
        passage.end(code, signal)
    except LabdError as error:
        return code or _failed(call, error)
    return code


def _tee(call: Call, passage: Passage) -> None:
    """Let the record see the first bytes of both streams."""
    out, err = call.out, call.err

    def both_out(data: bytes) -> None:
        passage.saw(1, data)
        out(data)

    def both_err(data: bytes) -> None:
        passage.saw(2, data)
        err(data)

    call.out, call.err = both_out, both_err


def _run(call: Call, passage: Passage, bench: Any) -> int:
    call.json, call.quiet = _asked(call.argv, "--json"), _asked(call.argv, "--quiet", "-q")
    try:
        parsed = parse(call.argv)
    except LabdError:
        passage.start(operation=None, effect=None, decision="invalid")
        raise
    call.json, call.quiet = bool(parsed.globals.get("json")), bool(parsed.globals.get("quiet"))
    call.lab_flag = parsed.globals.get("lab")
    op, args = parsed.operation, parsed.args
    if op is None or args is None:
        passage.start(operation=op.name if op else None, effect="help", decision="permitted")
        return _help(call, parsed)
    return shim.perform(passage, op, args, call, bench, lambda: _answer(call, op, args))


def _asked(argv: list[str], *spellings: str) -> bool:
    """Whether a global flag stands on a line that may not parse: its error must come in the form asked for."""
    words = argv[: argv.index("--")] if "--" in argv else argv
    return any(word in spellings for word in words)


def _help(call: Call, parsed: Parsed) -> int:
    from labd import render

    if parsed.globals.get("version"):
        text = dumps({"version": __version__}) if call.json else f"labd {__version__}"
    elif parsed.operation is not None:
        text = render.operation_help(parsed.operation, call.columns)
    elif parsed.words:
        text = render.noun_help(parsed.words[0], call.columns)
    else:
        text = render.top_help(call.columns)
    call.out(encode((dumps({"help": text}) if call.json and not parsed.globals.get("version") else text) + "\n"))
    return 0


def _answer(call: Call, op: Operation, args: Args) -> int:
    """Call the handler and write what it answers; returns the exit code."""
    handler = op.handler
    assert handler is not None
    found = handler(call, args)
    if op.stream:
        return _stream(call, op, found)
    code, text = 0, None
    if type(found).__name__ == "Answer":
        code, text, found = found.code, found.text, found.data
    if call.json:
        call.out(encode((dumps(found) if call.face == "rpc" else pretty(found)) + "\n"))
        return int(code)
    if text is None:
        text = op.text(found, call) if op.text else _plain(found)
    if text:
        call.out(encode(text + "\n"))
    return int(code)


def _stream(call: Call, op: Operation, items: Any) -> int:
    """Write items as they come. An item that is an int ends the stream with that exit code."""
    for item in items:
        if isinstance(item, int):
            return item
        if isinstance(item, bytes):
            call.out(item)
        elif call.json:
            call.out(encode(dumps(item) + "\n"))
        else:
            text = op.text(item, call) if op.text else _plain(item)
            if text is not None:
                call.out(encode(text + "\n"))
    return 0


def _plain(data: Any) -> str:
    from labd.render import value_text

    return value_text(data)


def _failed(call: Call, error: LabdError) -> int:
    from labd import render
    from labd.lab.model import in_lab

    error.hint = in_lab(error.hint, call.lab_words())
    if call.on_error is not None:
        call.on_error(error)
        return error.exit_code
    try:
        call.err(encode((render.error_json(error) if call.json else render.error_text(error)) + "\n"))
    except Unwritable:
        pass  # nobody reads stderr any more; the exit code still tells
    return error.exit_code


def _defect(call: Call, error: Exception) -> LabdError:
    """An error of ours: one line for the user, the traceback on demand."""
    if call.env.get("LABD_DEBUG"):
        import traceback

        call.err(encode("".join(traceback.format_exception(error))))
    if isinstance(error, OSError):
        where = f" {error.filename}" if error.filename else ""
        return LabdError(f"{error.strerror or error}{where}")
    return LabdError(
        f"a defect in labd: {type(error).__name__}: {error}", hint="again with LABD_DEBUG=1, and report it"
    )


def _through_daemon(call: Call, daemon_version: str) -> int:
    """Start the daemon if there is none, and send it the words."""
    from labd import thin

    try:
        if daemon_version == thin.FULL:
            raise Busy("the daemon runs as many calls as it can", hint="labd daemons")
        if daemon_version:
            raise Unreachable(
                f"the running daemon is labd {daemon_version}, this program is labd {__version__}",
                hint="labd daemons restart",
            )
        from labd.client import start

        start(call)
        connection = thin.connect()
        if connection is None:
            raise Unreachable("the daemon started and went away", hint="labd daemons")
    except LabdError as error:
        return _failed(call, error)
    return int(thin.relay(connection, call.argv))


def _is_tty(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False
