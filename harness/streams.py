"""The descriptors of a recorded program: copying a stream, pipes out of the way of 0, 1 and 2, what a descriptor is.

Used by harness/recorder.py alone, in the small process that stands in for the program. Starts nothing and knows no
record. As light as the recorder.
"""

import os
import sys
import time

HEAD_BYTES = 512
STAMP_BYTES = 8  # in front of a head: when its first byte came (monotonic, ns, big-endian)
CHUNK = 65536


def copy(source: int, sink: int, stop: int, control: int) -> None:
    """Copy `source` to `sink` until its end, in a process of its own. Tells the head on `control`, behind the time at
    which it began to come, then closes that.

    `control` is closed as soon as all is passed on that was in the pipe when `stop` was closed (the program has
    ended). A `sink` that nobody reads any more closes `source`, so that the program's next write gets its SIGPIPE.
    """
    import select

    close_all_but(source, sink, stop, control)
    told, due = 0, None  # due: bytes still to pass on before the head is complete; None while the program runs
    poller = select.poll()
    poller.register(source, select.POLLIN)
    poller.register(stop, select.POLLIN)
    if _is_pipe(sink):
        poller.register(sink, 0)
    while True:
        ready = {fd for fd, _ in poller.poll()}
        if due is None and stop in ready:
            poller.unregister(stop)
            due = _waiting(source)
        if source in ready:
            chunk = os.read(source, CHUNK)
            if told < HEAD_BYTES and control >= 0:
                head = chunk[: HEAD_BYTES - told]
                if head and not told:
                    _tell(control, time.monotonic_ns().to_bytes(STAMP_BYTES, "big"))
                told += _tell(control, head)
            if not chunk or not _pass_on(sink, chunk):
                os._exit(0)
            due = None if due is None else max(0, due - len(chunk))
        elif sink in ready:
            os._exit(0)
        if due == 0 and control >= 0:
            os.close(control)
            control = -1


def _tell(control: int, head: bytes) -> int:
    try:
        return os.write(control, head)
    except OSError:  # the recorder has ended: it didn't wait for a slow reader
        return HEAD_BYTES


def _pass_on(sink: int, chunk: bytes) -> bool:
    """Write it all; False when nobody can take it."""
    try:
        write_all(sink, chunk)
    except OSError:
        return False
    return True


def can_go_on(pid: int) -> bool:
    """Whether a process is kept waiting by the machine alone, for its turn or for a disk, and by nobody who reads from
    it. False where the system does not tell (macOS)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] in (b"R", b"D")
    except OSError:
        return False


def write_all(fd: int, data: bytes) -> None:
    """Write it all, also where writes are short or the descriptor doesn't block. Raises OSError."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:  # somebody made the shared stream non-blocking
            import select

            select.select([], [fd], [])


def _waiting(fd: int) -> int:
    """How many bytes wait in the pipe."""
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"), sys.byteorder)


def pipe() -> tuple[int, int]:
    """A pipe whose ends are closed on exec and never take the place of a standard stream that is closed."""
    import fcntl

    ends = os.pipe()
    if min(ends) > 2:
        return ends
    high = tuple(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in ends)
    for fd in ends:
        os.close(fd)
    return high  # type: ignore[return-value]


def close_all_but(*kept: int) -> None:
    """Close every descriptor but these: what is held open here would keep others waiting for its end."""
    below = 0
    for fd in sorted(kept):
        os.closerange(below, fd)
        below = fd + 1
    os.closerange(below, 65536 if sys.platform == "linux" else 4096)


def is_open(fd: int) -> bool:
    """Whether the descriptor is open."""
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _is_pipe(fd: int) -> bool:
    import stat

    return stat.S_ISFIFO(os.fstat(fd).st_mode)


def same_file(one: int, other: int) -> bool:
    """Whether two descriptors lead to one file or pipe."""
    first, second = os.fstat(one), os.fstat(other)
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)
