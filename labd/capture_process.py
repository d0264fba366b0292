"""The capture process: `python -m labd.capture_process RUNTIME_DIR`. It reads every port and writes every rx stream.

It outlives the daemon, which starts it through the shim, hands it an open and configured port's descriptor, and hears
of new bytes by notices that never delay a read. It gives descriptors back to the daemon that comes next, and keeps
what simulated boards hang on (`hold`). It ends when it is told to, and when no daemon has been there for a minute and
no port is captured, or lost and to be opened again. It opens no device, writes no events, starts no process, and judges
nothing. No trio here.
"""

from __future__ import annotations

import _thread
import gc
import os
import select
import signal
import sys
import time
from collections import deque

from labd import __version__
from labd.capture import CaptureLoop
from labd.capture_door import Door
from labd.capture_port import HeldPort
from labd.capture_wire import PROTOCOL, Wire, notice
from labd.errors import LabdError
from labd.journal_rx import RxJournal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Seconds without a daemon and without a port, live or lost, until it ends by itself.
IDLE_S = 60.0
#: Seconds between syncs to the disk, and between looks at the clock for everything else.
SYNC_S = 1.0


class CaptureProcess:
    """The whole process: make one, call `run`."""

    def __init__(self, runtime: str, idle_s: float = IDLE_S) -> None:
        self.runtime = runtime
        self.idle_s = idle_s
        self.loop = CaptureLoop()
        self.ports: dict[str, HeldPort] = {}
        self.holds: dict[str, tuple[Any, list[int]]] = {}
        self.daemon: Wire | None = None
        self.done = False
        self._dirty: dict[HeldPort, None] = {}
        self._numbers = 0
        self._idle_since = time.monotonic()
        self._next_second = 0.0
        self._syncing = False
        self._completed: deque[Callable[[], None]] = deque()
        self._news = False
        self._pipe_r, self._pipe_w = os.pipe()
        for fd in (self._pipe_r, self._pipe_w):
            os.set_blocking(fd, False)
        self._poll = select.poll()
        self.door = Door(runtime, self._poll)
        for fd in (self._pipe_r, self.loop.fileno()):
            self._poll.register(fd, select.POLLIN)

    # -- the loop -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until told to quit, or idle."""
        signal.set_wakeup_fd(self._pipe_w, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        safety = self.loop.safety_poll_s
        turn_ms = int(min(SYNC_S, safety or SYNC_S) * 1000)
        while not self.done:
            ready = self._poll.poll(turn_ms)
            self.loop.step()
            for fd, events in ready:
                self._serve(fd, events)
            if time.monotonic() >= self._next_second:
                self._each_second(sweep=safety is not None)
            self._speak()
        self._finish()

    def _serve(self, fd: int, events: int) -> None:
        if fd == self._pipe_r:
            try:
                os.read(fd, 4096)
            except BlockingIOError:
                pass
            while self._completed:
                self._completed.popleft()()
        elif fd == self.door.fd:
            self._greet()
        elif (wire := self.door.peers.get(fd)) is not None:
            try:
                if events & ~select.POLLOUT:
                    for message in wire.receive():
                        self._obey(wire, message)
            except Exception as error:  # whatever a peer says, it ends that peer alone
                if not isinstance(error, EOFError | OSError):
                    log(f"a peer was cut off: {error!r}")
                self._hang_up(wire)

    def _speak(self) -> None:
        """Tell the daemon what is new. Notices are made only when all before them is out, so they never pile up."""
        wire = self.daemon
        if wire is not None and self._news:
            self._news = False
            for port in self.ports.values():
                self._post_news(wire, port)
        if wire is not None and self._dirty and not wire.backlog:
            self._post_notices(wire)
        for gone in self.door.flush():
            self._hang_up(gone)

    def _post_news(self, wire: Wire, port: HeldPort) -> None:
        if wire is not self.daemon:
            return
        for news in port.unsent():
            wire.post(news)
        if port.gone is not None and not port.gone_told:
            port.gone_told = True
            wire.post({"gone": port.number, **port.gone})

    def _post_notices(self, wire: Wire) -> None:
        dirty, self._dirty = self._dirty, {}
        lines = []
        for port in dirty:
            journal = port.journal
            if journal is None:
                continue
            failing = journal.failing
            if failing != port.failing:
                port.failing = failing
                wire.post({"failing": port.key, "what": failing})
            lines.append(notice(port.number, journal.end, journal.line, port.mono_ns))
        wire.post_raw(b"".join(lines))

    def _each_second(self, *, sweep: bool) -> None:
        now = time.monotonic()
        self._next_second = now + SYNC_S
        if sweep:
            self.loop.sweep()
        wanted = [port for port in self.ports.values() if port.unsynced and port.journal is not None]
        if wanted and not self._syncing:
            self._syncing = True
            for port in wanted:
                port.unsynced = False
            _thread.start_new_thread(self._sync, (wanted,))
        if not self.door.see_to_it() and self.daemon is None:
            self.done = True  # without the directory, nobody can find us any more
        if self.daemon is not None or self.ports:  # those that are lost too: the next daemon goes on with them
            self._idle_since = now
        elif now - self._idle_since >= self.idle_s:
            self.done = True

    def _sync(self, ports: list[HeldPort]) -> None:
        """In a thread of its own, one at a time."""
        for port in ports:
            journal = port.journal
            if journal is not None:
                try:
                    journal.sync()
                except Exception as error:
                    log(f"{port.key}: {error!r}")
                port.unsynced = port.unsynced or journal.failing is not None
        self._syncing = False
        self._after(lambda: self._dirty.update(dict.fromkeys(port for port in ports if port.key in self.ports)))

    # -- who may talk -------------------------------------------------------------------------------------------------

    def _greet(self) -> None:
        wire = self.door.accept()
        if wire is None:
            return
        ports = [{"key": port.key, "end": port.end, "live": port.token is not None} for port in self.ports.values()]
        wire.post({"labd": "capture", "protocol": PROTOCOL, "version": __version__, "pid": os.getpid(), "ports": ports,
                   "holds": [{"key": key, "pid": pid_of(meta)} for key, (meta, _) in self.holds.items()]})  # fmt: skip

    def _hang_up(self, wire: Wire) -> None:
        self.door.hang_up(wire)
        if wire is self.daemon:
            self.daemon = None
            self._idle_since = time.monotonic()

    # -- what is asked ------------------------------------------------------------------------------------------------

    def _obey(self, wire: Wire, message: Any) -> None:
        act = getattr(self, f"_do_{message.get('do')}", None) if isinstance(message, dict) else None
        if act is None:
            raise ValueError(f"unknown request {message!r:.100}")
        number = message.get("id")

        def answer(**facts: Any) -> None:
            if number is not None and wire.fileno() >= 0:
                wire.post({"re": number, **facts})

        act(wire, message, answer)

    def _do_quit(self, wire: Wire, message: dict[str, Any], answer: Callable[..., None]) -> None:
        self.done = True

    def _do_ping(self, wire: Wire, message: dict[str, Any], answer: Callable[..., None]) -> None:
        answer(ok=True)

    def _do_attach(self, wire: Wire, message: dict[str, Any], answer: Callable[..., None]) -> None:
        """This connection is the daemon's: it gets what there is, descriptors included, and all news from now on."""
        if self.daemon is not None and self.daemon is not wire:
            self._hang_up(self.daemon)
        self.daemon = wire
        for port in self.ports.values():
            port.again()
            port.failing = None
            self._dirty[port] = None
            port.gone_told = True  # here and now
            wire.post({"port": port.number, "key": port.key, "meta": port.meta, "live": port.token is not None,
                       "ended": port.gone}, [port.fd] if port.token is not None else [])  # fmt: skip
        for key, (meta, fds) in self.holds.items():
            wire.post({"hold": key, "meta": meta}, fds)
        self._news = True
        answer(ok=True)

    def _do_capture(self, wire: Wire, message: dict[str, Any], answer: Callable[..., None]) -> None:
        """Read the descriptor that came along into the journal `key`, from now on."""
        key, (fd,) = message["key"], message["fds"]
        port = self.ports.get(key)
        if port is None:
            port = HeldPort(key, message.get("meta"), self._has_news)
        port.meta = message.get("meta")

        def go(journal: RxJournal | None, error: LabdError | None) -> None:
            if journal is None:
                os.close(fd)
                answer(ok=False, error=error.name if error else "error", message=error.message if error else "?",
                       hint=error.hint if error else None)  # fmt: skip
                return
            if port.journal is None:
                port.opened(journal)
            self.ports[key] = port
            begin = port.end
            try:
                self._start(port, fd)
            except OSError as problem:
                os.close(fd)
                answer(ok=False, error="unreachable", message=f"it can't be watched: {problem.strerror}", hint=None)
                return
            answer(ok=True, port=port.number, end=begin)

        if port.journal is not None:
            go(port.journal, None)
        else:
            limits: dict[str, Any] = {"keep_bytes": message.get("keep_bytes"), "keep_ns": message.get("keep_ns")}
            self._in_thread(lambda: RxJournal(key, **limits), go)

    def _start(self, port: HeldPort, fd: int) -> None:
        self._let_go(port)
        self._numbers += 1
        port.number = self._numbers  # so that no late word about the last one is taken for one about this
        port.gone = None
        port.fd = fd
        port.token = self.loop.add(fd, port.rx, port.end_of, lambda: self._dirty.setdefault(port))

    def _do_release(self, wire: Wire, message: dict[str, Any], answer: Callable[..., None]) -> None:
        """Store what has arrived, then close the descriptor; answered when the driver has let go of it."""
        port = self.ports.get(message["key"])
        if port is None:
            answer(ok=True)
            return

        port.released()

        def closed() -> None:
            self._post_news(wire, port)  # what it was told belongs before the answer
            answer(ok=True, end=port.end)

        self._let_go(port, closed)

    def _do_finish(self, wire: Wire, message: dict[str, Any], answer: Callable[..., None]) -> None:
        """Give up the journal too."""
        port = self.ports.pop(message["key"], None)
        if port is None or port.journal is None:
            answer(ok=True)
            return
        self._let_go(port)
        self._dirty.pop(port, None)

        def closed(done: Any, error: Any) -> None:
            self._post_news(wire, port)
            answer(ok=True, end=port.end)

        self._in_thread(port.journal.close, closed)

    def _do_meta(self, wire: Wire, message: dict[str, Any], answer: Callable[..., None]) -> None:
        port = self.ports.get(message["key"])
        if port is not None:
            port.meta = message["meta"]

    def _do_ack(self, wire: Wire, message: dict[str, Any], answer: Callable[..., None]) -> None:
        port = self.ports.get(message["key"])
        if port is not None:
            port.acknowledge(message["n"])

    def _do_hold(self, wire: Wire, message: dict[str, Any], answer: Callable[..., None]) -> None:
        """Keep these descriptors open for the daemon that comes next."""
        self._drop(message["key"])
        self.holds[message["key"]] = (message.get("meta"), message["fds"])
        answer(ok=True)

    def _do_drop(self, wire: Wire, message: dict[str, Any], answer: Callable[..., None]) -> None:
        self._drop(message["key"])
        answer(ok=True)

    def _drop(self, key: str) -> None:
        for fd in self.holds.pop(key, (None, []))[1]:
            os.close(fd)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _let_go(self, port: HeldPort, then: Callable[[], None] | None = None) -> None:
        """Out of the loop, and close the descriptor in a thread: some drivers take their time."""
        if port.token is not None:
            self.loop.remove(port.token, drain=True)
            port.token = None
            self._dirty[port] = None
        fd, port.fd = port.fd, -1
        if fd < 0:
            if then:
                then()
            return
        self._in_thread(lambda: os.close(fd), lambda done, error: then() if then else None)

    def _in_thread(self, work: Callable[[], Any], then: Callable[[Any, Any], None]) -> None:
        def run() -> None:
            result = error = None
            try:
                result = work()
            except LabdError as problem:
                error = problem
            except Exception as problem:
                error = LabdError(f"{type(problem).__name__}: {problem}")
            self._after(lambda: then(result, error))

        _thread.start_new_thread(run, ())

    def _after(self, act: Callable[[], None]) -> None:
        """In any thread: have the loop do this."""
        self._completed.append(act)
        self._poke()

    def _has_news(self) -> None:
        self._news = True
        self._poke()

    def _poke(self) -> None:
        try:
            os.write(self._pipe_w, b"!")
        except BlockingIOError:
            pass  # it is awake

    def _on_signal(self, number: int, frame: Any) -> None:
        self.done = True

    def _finish(self) -> None:
        """The last bytes, the disk, the door."""
        for port in self.ports.values():
            if port.token is not None:
                self.loop.remove(port.token, drain=True)
            if port.journal is not None:
                port.journal.close()
        self.door.remove()


def pid_of(meta: Any) -> int | None:
    """The process behind what is held, if whoever held it said so."""
    known = meta.get("ready") if isinstance(meta, dict) else None
    return known.get("pid") if isinstance(known, dict) else None


def log(text: str) -> None:
    """One line in the log (stderr)."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    sys.stderr.write(f"{stamp} capture: {text}\n")
    sys.stderr.flush()


def main(argv: list[str]) -> int:
    """RUNTIME_DIR [IDLE_SECONDS]."""
    try:
        process = CaptureProcess(argv[1], float(argv[2]) if len(argv) > 2 else IDLE_S)
    except BlockingIOError:
        return 0  # another one runs here already
    sys.setswitchinterval(0.0005)  # the sync's thread must not hold up a read
    gc.freeze()
    process.run()
    return 0


if __name__ == "__main__":
    code = main(sys.argv)
    sys.stderr.flush()
    os._exit(code)  # not sys.exit: a thread may still wait for a driver that does not let go
