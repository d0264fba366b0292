"""Leads one TCP port on loopback through a UNIX socket, so that a program without a network reaches one server of ours.

    doorway PORT SOCKET PROGRAM ARGS…    inside: listen on 127.0.0.1:PORT, then become PROGRAM; ends when that ends

`open_to` is the other end, outside. Stands alone: standard library only, started without site-packages.
"""

import contextlib
import os
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterator


def relay(listener: socket.socket, dial: Callable[[], socket.socket]) -> None:
    """Join each connection that comes with one that `dial` makes, until the listener is closed."""
    while True:
        try:
            one, _ = listener.accept()
        except OSError:
            return
        try:
            other = dial()
        except OSError:
            one.close()
            continue
        for source, sink in ((one, other), (other, one)):
            threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    """Copy one direction; its end is passed on too, and the other direction goes on."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def open_to(port: int, place: str) -> Iterator[None]:
    """Have the UNIX socket `place` lead to 127.0.0.1:`port`. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        threading.Thread(
            target=relay, args=(listener, lambda: socket.create_connection(("127.0.0.1", port))), daemon=True
        ).start()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def _dial(place: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.connect(place)
    return made


def main(port: str, place: str, *argv: str) -> None:
    """Listen, and become the program. The one that listens ends with it."""
    listener = socket.create_server(("127.0.0.1", int(port)))
    there = os.pidfd_open(os.getpid())
    if os.fork() == 0:  # noqa: TID251 - a program of its own, run in the sandbox
        for fd in (0, 1, 2):  # nobody waits for the end of these because of us
            os.close(fd)
        threading.Thread(target=relay, args=(listener, lambda: _dial(place)), daemon=True).start()
        select.select([there], [], [])
        os._exit(0)
    listener.close()
    os.execvp(argv[0], argv)  # noqa: TID251 - the same


if __name__ == "__main__":
    main(*sys.argv[1:])
