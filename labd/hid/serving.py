"""An input helper that stays: it listens at a UNIX socket of its device, and every other start of it finds it there.

One request is one JSON line `{"argv": […], "stdin": "…"}` or `{"stop": true}`, one answer `{"code": 0, "out": "…",
"err": "…"}`, as if the helper had been run with this argv. One at a time. It ends when its stdin does (whoever started
it is gone), at SIGTERM, or when asked to stop, and lets go of what it holds.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
import sys
import zlib
from typing import TYPE_CHECKING, Any

from labd import paths
from labd.errors import Busy, Unreachable, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    #: (argv, stdin) → exit code, stdout, stderr.
    Handle = Callable[[Sequence[str], str], tuple[int, str, str]]

#: The most bytes of a request, and the seconds that a client has for sending it.
REQUEST_BYTES, REQUEST_SECONDS = 1 << 20, 5.0


def place(env: Mapping[str, str], name: str, address: str) -> str:
    """Where the helper `name` listens for the device called `address`: called, as behind a stable name is another node
    after a replug.

    Raises Refused or Unreachable where there can be no such place.
    """
    folder = paths.private_dir(os.path.join(paths.private_dir(paths.runtime_dir(env)), "hid"))
    path = os.path.join(folder, f"{name}-{zlib.crc32(os.fsencode(os.path.abspath(address))):08x}")
    if len(os.fsencode(path)) > paths.SOCKET_BYTES:
        raise Unreachable(f"{path} is too long for a socket's name", hint="set XDG_RUNTIME_DIR to a shorter directory")
    return path


def ask(path: str, request: Mapping[str, Any], timeout_s: float) -> tuple[int, str, str] | None:
    """What the helper that listens at `path` answers: exit code, stdout, stderr; None where nobody listens.

    Raises Unreachable when it goes away or does not answer in time, Usage when the request is too long.
    """
    line = json.dumps(request).encode() + b"\n"
    if len(line) > REQUEST_BYTES:
        raise Usage(f"{len(line)} bytes of commands are too many at once; at most {REQUEST_BYTES} are taken")
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(timeout_s)
        try:
            client.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        try:
            client.sendall(line)
            found = json.loads(_line(client))
        except TimeoutError:
            raise Unreachable(f"the kept input helper did not answer within {timeout_s:.0f} s") from None
        except (OSError, ValueError):
            raise Unreachable("the kept input helper went away before it had answered") from None
    return int(found["code"]), str(found["out"]), str(found["err"])


def serve(path: str, handle: Handle, ready: Callable[[], None]) -> None:
    """Listen at `path` and have `handle` answer; calls `ready` once it listens. Returns when it is to end.

    Raises Busy when another one serves there. Only for the main thread.
    """
    with open(f"{path}.lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Busy("another helper serves this device already", hint="labd daemons") from None
        if os.path.lexists(path):
            os.unlink(path)  # whoever held the lock is gone
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(path)
            door.listen(16)
            _end_with_stdin()
            try:
                ready()
                while _answer(door, handle):
                    pass
            except KeyboardInterrupt:
                pass
            finally:
                os.unlink(path)


def _answer(door: socket.socket, handle: Handle) -> bool:
    """Take one request; False when it asks to stop."""
    client, _ = door.accept()
    with client:
        client.settimeout(REQUEST_SECONDS)
        try:
            request: dict[str, Any] = json.loads(_line(client))
            stop, argv, stdin = "stop" in request, request.get("argv", ()), str(request.get("stdin", ""))
        except (OSError, ValueError, TypeError):
            return True
        code, out, err = (0, "", "") if stop else handle([str(word) for word in argv], stdin)
        try:
            client.sendall(json.dumps({"code": code, "out": out, "err": err}).encode() + b"\n")
        except OSError:
            pass  # it did not wait; what it asked for is done
    return not stop


def _line(sock: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n") and len(data) < REQUEST_BYTES:
        more = sock.recv(65536)
        if not more:
            raise ConnectionError
        data += more
    return data


def _end_with_stdin() -> None:
    """Take the end of stdin as SIGTERM, where it is a pipe, a socket or a terminal: then somebody holds its far end."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or sys.stdin.isatty()):
        return
    import threading

    main = threading.main_thread().ident
    assert main is not None

    def watch() -> None:
        try:
            while os.read(0, 4096):
                pass
        except OSError:
            pass
        signal.pthread_kill(main, signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
