"""The program that starts. With the daemon up, the words go to it and what comes back is copied; it parses nothing.

Imports only what is built in, and _socket, since each import costs a start (a test pins this). Without a daemon it
hands over to `labd.cli`, which is the same code that renders inside the daemon.

The wire: `X<len>\\n` and NUL-joined fields to the daemon (see `request`); back come
`a\\n` (the daemon lives and took the request), `o<len>\\n…` for stdout, `e<len>\\n…` for stderr,
`i\\n` (it wants stdin: the answer is `d<len>\\n…`, and `d0\\n` at the end), `x<code>\\n`,
and where this process must do the work itself `v<version>\\n` (it is another version), `f\\n` (too many calls run
there) or `h\\n` (the operation needs this process).
"""

import sys
from _signal import SIG_DFL, SIGINT, default_int_handler, getsignal, signal
from posix import O_RDWR, close, environ, getcwdb, getppid, getuid, isatty, read, stat, write
from posix import open as open_fd

from labd import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

#: What to say when the daemon ends in the middle of a call: what acts may have been done, so nobody should repeat it.
GONE = "the daemon went away before it answered, and may have done it already; look: labd timeline TARGET"

#: What stands for the daemon's version when it has no thread to spare for us.
FULL = "full"

#: Seconds to wait for the daemon's first sign of life before saying that it hangs.
ACK_SECONDS = 10.0

#: What the daemon needs to know of the caller's environment, besides everything that starts with LABD_; the passwords
#: are those that helpers in hooks take from there.
ENV_NAMES = (b"HOME", b"XDG_CONFIG_HOME", b"XDG_STATE_HOME", b"XDG_RUNTIME_DIR", b"PATH", b"TERM", b"NO_COLOR",
             b"CLICOLOR_FORCE", b"LANG", b"LC_ALL", b"LC_CTYPE", b"TZ", b"USER", b"LOGNAME",
             b"SSH_AUTH_SOCK", b"ANDROID_ADB_SERVER_PORT", b"SHELLYPLUG_PASSWORD", b"AMT_PASSWORD")  # fmt: skip


class Unwritable(Exception):
    """The answer can't be written: stdout or stderr is a full disk, or a pipe that nobody reads any more."""


def main() -> int:
    """Run `sys.argv`; returns the exit code. Ctrl-C ends it by that signal: the daemon sees it hang up."""
    if getsignal(SIGINT) is default_int_handler:  # not where a caller has it ignored
        signal(SIGINT, SIG_DFL)
    _fill_standard_streams()
    argv = sys.argv[1:]
    try:
        if argv in (["--version"], ["-V"]) and b"LABD_ARGV_LOG" not in environ:
            write_all(1, b"labd %s\n" % __version__.encode())
            return 0
        if argv[:1] == ["__complete"]:  # a Tab in a shell: never a matter for the daemon, which may be busy
            from labd.completing import main as complete

            return complete(argv[1:])
        connection = connect()
        return local(argv) if connection is None else relay(connection, argv)
    except Unwritable as error:
        return _unwritable(error)


def _unwritable(error: Unwritable) -> int:
    number, text = error.args
    if number == 32:  # EPIPE: nobody reads any more, which is theirs to decide
        return 141
    try:
        write(2, b"labd: the answer can't be written: %s\n" % text.encode())
    except OSError:
        pass
    return 1


def _fill_standard_streams() -> None:
    """Put /dev/null where stdin, stdout or stderr is closed: the next descriptor would take its number and words."""
    try:
        fd = open_fd("/dev/null", O_RDWR)
        while fd <= 2:
            fd = open_fd("/dev/null", O_RDWR)
        close(fd)
    except OSError:
        pass  # no /dev/null, or out of descriptors: nothing to put there


def runtime_dir() -> bytes:
    """The daemon's directory; the same rule as `labd.paths.runtime_dir`."""
    base = environ.get(b"XDG_RUNTIME_DIR", b"")
    return base + b"/labd" if base[:1] == b"/" else b"/tmp/labd-%d" % getuid()


def connect() -> "socket | None":
    """A connection to this user's daemon, or None when there is none or its directory could be somebody else's."""
    directory = runtime_dir()
    try:
        found = stat(directory)
    except OSError:
        return None
    if found.st_uid != getuid() or found.st_mode & 0o077:
        return None
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0)
    try:
        connection.connect(directory + b"/daemon.sock")
    except OSError:
        connection.close()
        return None
    return connection


def local(argv: list[str], daemon_version: str = "") -> int:
    """Do the work in this process."""
    from labd.cli import main as run

    if getsignal(SIGINT) == SIG_DFL:
        signal(SIGINT, default_int_handler)  # work that is under way here is ended tidily
    return run(argv, daemon_version)


def hello(argv: list[str]) -> bytes:
    """The request of this very process."""
    ttys = "".join("1" if _is_tty(fd) else "0" for fd in (0, 1, 2))
    return request(argv, ttys.encode(), _columns(ttys), environ)


def request(argv: list[str], ttys: bytes, columns: bytes, env: "dict[bytes, bytes]") -> bytes:
    """The request: protocol, version, cwd (empty: gone), tty bits, columns, program, parent's pid, environment, an
    empty field, the words."""
    try:
        cwd = getcwdb()
    except OSError:
        cwd = b""
    fields = [b"2", __version__.encode(), cwd, ttys, columns, _bytes(sys.argv[0]), b"%d" % getppid()]
    fields += [k + b"=" + v for k, v in env.items() if k.startswith(b"LABD_") or k in ENV_NAMES]
    body = b"\0".join([*fields, b"", *map(_bytes, argv)])
    return b"X%d\n%s" % (len(body), body)


def _bytes(text: str) -> bytes:
    return text.encode(sys.getfilesystemencoding(), "surrogateescape")


def _is_tty(fd: int) -> bool:
    try:
        return isatty(fd)
    except OSError:
        return False


def _columns(ttys: str) -> bytes:
    if "1" not in ttys[1:]:
        return environ.get(b"COLUMNS", b"80")
    from posix import get_terminal_size

    try:
        return b"%d" % get_terminal_size(1 if ttys[1] == "1" else 2)[0]
    except OSError:
        return b"80"


def relay(connection: "socket", argv: list[str]) -> int:
    """Send the words, copy the answer; returns the exit code. Raises Unwritable."""
    try:
        connection.sendall(hello(argv))
        connection.settimeout(ACK_SECONDS)
        return _copy(connection, argv)
    except TimeoutError:
        return _say(f"the daemon does not answer for {ACK_SECONDS:.0f} s; try: labd daemons restart --force", 7)
    except ConnectionError:
        return _say(GONE, 7)
    finally:
        connection.close()


def _copy(connection: "socket", argv: list[str]) -> int:
    buffer = b""
    while True:
        end = buffer.find(b"\n")
        if end < 0:
            data = connection.recv(262144)
            if not data:
                return _say(GONE, 7)
            buffer += data
            continue
        kind, head, buffer = buffer[:1], buffer[1:end], buffer[end + 1 :]
        if kind in (b"o", b"e"):
            buffer = _out(connection, 1 if kind == b"o" else 2, buffer, int(head))
        elif kind == b"x":
            return int(head)
        elif kind == b"a":
            connection.settimeout(None)
        elif kind == b"i":
            _send_stdin(connection)
        elif kind == b"h":
            connection.close()
            return local(argv)
        elif kind in (b"v", b"f"):
            connection.close()
            return local(argv, head.decode() if kind == b"v" else FULL)
        else:
            return _say("the daemon speaks another protocol; try: labd daemons restart", 7)


def _out(connection: "socket", fd: int, buffer: bytes, size: int) -> bytes:
    """Write `size` bytes to `fd`: those in the buffer, then those still to come; returns what is left over."""
    while size:
        if not buffer:
            buffer = connection.recv(262144)
            if not buffer:
                raise ConnectionError
        piece, buffer = buffer[:size], buffer[size:]
        size -= len(piece)
        write_all(fd, piece)
    return buffer


def write_all(fd: int, data: bytes) -> None:
    """Write everything, also to a terminal or pipe that was left non-blocking. Raises Unwritable."""
    while data:
        try:
            data = data[write(fd, data) :]
        except BlockingIOError:
            from select import select

            select([], [fd], [])
        except OSError as error:
            raise Unwritable(error.errno, error.strerror) from None


def _send_stdin(connection: "socket") -> None:
    while True:
        try:
            data = read(0, 65536)
        except OSError:  # a directory, or a terminal that is gone: there is nothing to read
            data = b""
        connection.sendall(b"d%d\n%s" % (len(data), data))
        if not data:
            return


def _say(text: str, code: int) -> int:
    write_all(2, b"labd: %s\n" % text.encode())
    return code


if __name__ == "__main__":
    sys.exit(main())
