"""The daemon's process: one a user and runtime directory. Lock, socket, signals, and the nursery of all that lives.

It is known by its lock and its answer, never by a pid alone: whoever holds the lock owns the socket's name, so a
left-over socket is simply replaced, and kill -9 leaves nothing that blocks the next start. Runs as
`labd daemon` in the foreground (systemd, launchd), or detached when the first runtime verb needs it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from labd import __version__, paths
from labd.bench import Bench
from labd.channels.pump import STALL_MS, StallWatch
from labd.errors import Busy, LabdError
from labd.policy import in_force
from labd.rpc import Internal, Server

if TYPE_CHECKING:
    from collections.abc import Callable

#: A step that got no processor for this long (ms) is told too: the bytes were late whoever was to blame.
STARVED_MS = 100

#: Stalls are told at most this often (seconds), the longest of them with their count.
STALL_TELL_SECONDS = 5.0


def main(argv: list[str] | None = None) -> int:
    """Run the daemon until it is told to stop; returns its exit code."""
    detached = "--detached" in (sys.argv[1:] if argv is None else argv)
    try:
        return run(detached)
    except Busy as error:
        if detached:
            return 0  # another one was started at the same moment and won
        print(f"labd: {error.message}", file=sys.stderr)  # noqa: T201 - no face renders for the daemon itself
        return error.exit_code
    except LabdError as error:
        print(f"labd: {error.message}", file=sys.stderr)  # noqa: T201
        return error.exit_code


def run(detached: bool) -> int:
    """Take the lock and serve. Raises Busy when a daemon already runs, Refused for an unsafe directory."""
    level, _ = in_force([("LABD_POLICY", os.environ["LABD_POLICY"])] if os.environ.get("LABD_POLICY") else [])
    runtime = paths.private_dir(paths.runtime_dir(os.environ))
    lock = Lock(runtime)
    sys.setswitchinterval(0.0005)  # a thread that renders must not hold the capture loop for 5 ms
    trio.run(partial(_serve, level, runtime, lock))
    return 0


class Lock:
    """The held lock of a runtime directory. Raises Busy naming the holder. Never unlinked: that would be a race."""

    def __init__(self, runtime: str) -> None:
        self.runtime = runtime
        self.path = os.path.join(runtime, "daemon.lock")
        self.fd = self._take()

    def _take(self) -> int:
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(fd, 32).decode("ascii", "replace").strip()
            os.close(fd)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise Busy(f"a daemon already runs here (pid {holder or 'unknown'})", hint="labd daemons") from None
            raise
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        return fd

    def again(self) -> None:
        """Make directory and lock file again where a sweep took them. Raises Busy when a new daemon was faster."""
        paths.private_dir(self.runtime)
        try:
            if os.path.samestat(os.stat(self.path), os.fstat(self.fd)):
                return
        except FileNotFoundError:
            pass
        old, self.fd = self.fd, self._take()
        os.close(old)


def log(text: str) -> None:
    """One line in the daemon's log (stderr), unless the disk is full: that stops nothing."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with suppress(OSError):
        print(f"{stamp} {text}", file=sys.stderr, flush=True)  # noqa: T201 - stderr is the log


async def _serve(level: str, runtime: str, lock: Lock) -> None:
    path = os.path.join(runtime, "daemon.sock")
    async with trio.open_nursery() as nursery:
        bench = Bench(nursery, level=level, runtime=runtime, log=log)
        server = Server(bench)
        door = _Door(path, server, lock.again)
        stop = trio.Event()
        stalls = _Stalls(bench)
        trio.lowlevel.add_instrument(StallWatch(stalls.add))
        bench.internal = _internal(bench, server, stop)
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            nursery.start_soon(_on_signals, signals, stop)
            await nursery.start(bench.capture.run)
            await bench.adopt()
            nursery.start_soon(bench.follow_labs)
            nursery.start_soon(stalls.tell)
            await nursery.start(door.keep_open)
            notify("READY=1")
            log(f"labd {__version__} serves {path}, policy level {level}")
            await stop.wait()
            leave = bench.leaving
            log("leaving what is captured to the next daemon" if leave else "stopping")
            notify("STOPPING=1")
            door.shut()  # who comes now is not to wait for a hook that runs to its end
            with trio.move_on_after(10, shield=True):
                await bench.close(leave=leave)
            nursery.cancel_scope.cancel()


class _Door:
    """The listening socket; made again when its file vanishes."""

    def __init__(self, path: str, server: Server, relock: Callable[[], None]) -> None:
        self.path = path
        self.server = server
        self.relock = relock
        self._open = trio.CancelScope()

    async def keep_open(self, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        """Listen for ever; calls that came through a door that vanished go on to their end."""
        listener = self._listen()
        task_status.started()
        try:
            async with trio.open_nursery() as calls:
                with self._open:
                    while True:
                        identity = os.stat(self.path).st_ino
                        async with trio.open_nursery() as nursery:
                            nursery.start_soon(self._accept, listener, calls)
                            while self._is_there(identity):
                                await trio.sleep(1)
                            nursery.cancel_scope.cancel()
                        await listener.aclose()
                        log("the socket file vanished; making it again")
                        self.relock()
                        listener = self._listen()
                listener.socket.close()
        finally:
            if self._is_there(identity):
                self._remove()

    def shut(self) -> None:
        """Let nobody in any more. Calls that are under way go on."""
        self._open.cancel()
        self._remove()

    def _listen(self) -> trio.SocketListener:
        raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._remove()
        raw.bind(self.path)  # in a 0700 directory; the mode below is the second lock on the same door
        os.chmod(self.path, 0o600)
        raw.listen(128)
        return trio.SocketListener(trio.socket.from_stdlib_socket(raw))

    async def _accept(self, listener: trio.SocketListener, nursery: trio.Nursery) -> None:
        while True:
            try:
                stream = await listener.accept()
            except (trio.ClosedResourceError, trio.BrokenResourceError):
                return
            except OSError as error:  # out of descriptors: wait for some to come free
                log(f"accept: {error.strerror}")
                await trio.sleep(0.1)
                continue
            nursery.start_soon(self._guarded, stream)

    async def _guarded(self, stream: trio.SocketStream) -> None:
        try:
            await self.server.serve(stream)
        except Exception as error:
            log(f"a connection crashed: {error!r}")

    def _is_there(self, identity: int) -> bool:
        try:
            return os.stat(self.path).st_ino == identity
        except OSError:
            return False

    def _remove(self) -> None:
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass


def _internal(bench: Bench, server: Server, stop: trio.Event) -> dict[str, Any]:
    """The methods that are no operations: what the program itself needs of its daemon."""

    async def hello() -> dict[str, Any]:
        return {"version": __version__, "pid": os.getpid(), "level": bench.level, "started": bench.started,
                "state": bench.state}  # fmt: skip

    async def status() -> dict[str, Any]:
        calls = [{"pid": c["pid"], "argv": c["argv"]} for c in server.calls.values()]
        return {**await hello(), "channels": bench.channels(), "boards": bench.board_list(), "calls": calls,
                "capture": bench.capture.status(), "screens": bench.screens.list(), "netboots": bench.netboots.list(),
                "kept": bench.kept_hooks.rows(), "hooks": bench.hooks.running()}  # fmt: skip

    async def stop_daemon(leave: bool = False) -> dict[str, Any]:
        bench.leaving = leave
        stop.set()
        return {"stopping": True, "pid": os.getpid()}

    async def stop_board(name: str) -> dict[str, Any]:
        return await bench.stop_board(name)

    async def journal_wait(directory: str, seen: int | None = None, seconds: float = 5.0) -> int:
        return await bench.growth.sleep(directory, min(float(seconds), 60.0), seen)

    return {
        "daemon.hello": Internal(hello),
        "daemon.status": Internal(status),
        "daemon.stop": Internal(stop_daemon, may=("leave",), words=("daemons", "stop")),
        "daemon.stop_board": Internal(stop_board, need=("name",), words=("daemons", "stop")),
        "journal.wait": Internal(journal_wait, need=("directory",), may=("seen", "seconds")),
    }


async def _on_signals(signals: Any, stop: trio.Event) -> None:
    async for number in signals:
        log(f"got {signal.Signals(number).name}")
        if number != signal.SIGHUP:
            stop.set()


class _Stalls:
    """Gathers the loop's long steps and puts the worst of each while into the journals: bytes may have been late."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.count = 0
        self.worst = (0.0, 0.0, "")

    def add(self, task: str, wall_ms: float, cpu_ms: float) -> None:
        """One step that was too long, by our own doing or for want of a processor."""
        if cpu_ms > STALL_MS or wall_ms > STARVED_MS:
            self.count += 1
            self.worst = max(self.worst, (wall_ms, cpu_ms, task))

    async def tell(self) -> None:
        """For ever."""
        while True:
            await trio.sleep(STALL_TELL_SECONDS)
            if self.count:
                wall_ms, cpu_ms, task = self.worst
                count, self.count, self.worst = self.count, 0, (0.0, 0.0, "")
                self.bench.event_everywhere(
                    "stall", max_ms=round(wall_ms, 1), cpu_ms=round(cpu_ms, 1), task=task, count=count
                )


def notify(state: str) -> None:
    """Tell a service manager (sd_notify(3)); nothing where there is none."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        try:
            out.connect("\0" + address[1:] if address.startswith("@") else address)
            out.sendall(state.encode())
        except OSError as error:
            log(f"NOTIFY_SOCKET: {error.strerror}")


if __name__ == "__main__":
    sys.exit(main())
