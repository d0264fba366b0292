"""The daemon's end of the capture process: found or started, attached to, handed ports, listened to, replaced.

One task (`run`) listens for as long as the daemon lives. When the capture process dies, the next one is started and
handed every port again, and each journal gets a `gap` event with cause and duration; when it speaks another protocol
(an upgrade), it is replaced in the same way. Nothing here reads a port's bytes: notices only say that the journal
grew. Implements `labd.channels.capturer.Capturer`; knows boards only as descriptors to `hold`.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import trio

from labd.capture_start import ANSWER_S, START_S, Starter, kill
from labd.capture_wire import Wire
from labd.errors import Busy, LabdError, Unreachable
from labd.journal_shared import SharedJournal
from labd.lab.model import quoted
from labd.platform import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from labd.channels.portmodel import Port

#: Seconds between questions whether it is well; one that does not answer in ANSWER_S is replaced.
PING_S = 5.0


class LinkLost(Exception):
    """The capture process went away before it answered."""


class RemoteTap:
    """One port that the capture process reads for us. `number` names it in notices, 0 while nobody reads it."""

    def __init__(
        self, port: Port, journal: SharedJournal, on_gone: Callable[..., None], wake: Callable[[], None], meta: Any
    ) -> None:
        self.port = port
        self.journal = journal
        self.on_gone = on_gone
        self.wake = wake
        self.meta = meta
        self.number = 0
        self.start = 0

    @property
    def key(self) -> str:
        """How both sides name it."""
        return self.journal.directory


class CaptureLink:
    """See the module. `start()` starts a capture process for `runtime`; `log(text)` writes the daemon's log.

    After `run` has started, `found` holds what an earlier daemon left behind: ports (`key`, `meta`, `live`, `fds`)
    and `found_holds` what boards hang on, by key. The descriptors in them belong to whoever takes them up.
    """

    def __init__(self, runtime: str, start: Callable[[], Any], log: Callable[[str], None]) -> None:
        self.runtime = runtime
        self.log = log
        self.hello: dict[str, Any] = {}
        self.found: list[dict[str, Any]] = []
        self.found_holds: dict[str, dict[str, Any]] = {}
        self.replaced = 0
        self._starter = Starter(runtime, start, log)
        self._wire: Wire | None = None
        self._up = trio.Event()
        self._taps: dict[str, RemoteTap] = {}
        self._numbers: dict[int, RemoteTap] = {}
        self._journals: dict[str, SharedJournal] = {}
        self._early: dict[str, list[dict[str, Any]]] = {}
        self._early_ends: dict[int, dict[str, Any]] = {}
        self._holds: dict[str, tuple[Any, list[int]]] = {}
        self._gaps: dict[str, tuple[float, str]] = {}
        self._answers: dict[int, tuple[trio.Event, list[dict[str, Any]]]] = {}
        self._ids = 0
        self._attached_once = False
        self._quitting = False
        self._to_send = trio.Event()

    def status(self) -> dict[str, Any]:
        """Plain data for `labd daemons`; thread-safe."""
        return {"pid": self.hello.get("pid"), "version": self.hello.get("version"), "ports": len(self._taps),
                "replaced": self.replaced, "attached": self._wire is not None}  # fmt: skip

    # -- for the daemon -----------------------------------------------------------------------------------------------

    async def run(self, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        """Be attached, until cancelled or told to quit. Started once the first attachment stands."""
        cause = "the capture process died"
        while True:
            try:
                wire, self.hello = await self._starter.find(self._replaced)
                OURS.add(int(self.hello["pid"]))
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._listen, wire)
                    nursery.start_soon(self._send, wire)
                    await self._attach(wire)
                    task_status.started()
                    task_status = trio.TASK_STATUS_IGNORED
                    nursery.start_soon(self._hand_over)
                    nursery.start_soon(self._ask_whether_well)
            except* (LinkLost, OSError, EOFError, ValueError, KeyError) as problems:
                cause = "the capture process died"
                if not self._quitting:
                    self.log(f"capture process (pid {self.hello.get('pid')}): gone ({_first(problems)!r})")
            finally:
                self._down(cause)
            if self._quitting:
                return
            self.replaced += 1
            await trio.sleep(0.02 if self.replaced < 5 else 0.5)

    async def hold(self, key: str, meta: Any, fds: Sequence[int]) -> None:
        """Have these descriptors kept open over the end of this daemon, for the next one."""
        self._forget_hold(key)
        self._holds[key] = (meta, [os.dup(fd) for fd in fds])
        await self._try({"do": "hold", "key": key, "meta": meta}, fds)

    def keep(self, key: str, found: dict[str, Any]) -> None:
        """Go on holding what was found, whose descriptors are the caller's."""
        self._holds[key] = (found["meta"], [os.dup(fd) for fd in found["fds"]])

    async def drop(self, key: str) -> None:
        """Close them everywhere but in the caller's own hands."""
        self._forget_hold(key)
        await self._try({"do": "drop", "key": key})

    async def let_go(self, found: dict[str, Any]) -> None:
        """Have a port that an earlier daemon left behind captured no longer; its journal goes on."""
        for fd in found["fds"]:
            os.close(fd)
        found["fds"] = []
        await self._try({"do": "release", "key": found["key"]})

    async def forget(self, found: dict[str, Any]) -> None:
        """Let go of a port that an earlier daemon left behind and nobody wants, its journal too."""
        await self.let_go(found)
        await self._try({"do": "finish", "key": found["key"]})

    async def quit(self) -> None:
        """End the capture process, after everything else; returns when it is gone."""
        self._quitting = True
        if self._wire is not None:
            self._post({"do": "quit"})
        await self._starter.gone(self.hello.get("pid"))

    # -- for lines (Capturer) -----------------------------------------------------------------------------------------

    async def open_journal(self, directory: str, *, keep_bytes: int | None, keep_ns: int | None) -> SharedJournal:
        """The events of the journal in `directory`, and how far its rx reaches."""
        journal = await trio.to_thread.run_sync(
            lambda: SharedJournal(directory, keep_bytes=keep_bytes, keep_ns=keep_ns)
        )
        self._journals[directory] = journal
        for message in self._early.pop(directory, ()):
            self._hear_told(message)
        return journal

    async def begin(
        self, port: Port, journal: SharedJournal, on_gone: Callable[..., None], wake: Callable[[], None], meta: Any
    ) -> RemoteTap:
        """Have `port` captured. One that was found captured already just goes on."""
        tap = RemoteTap(port, journal, on_gone, wake, meta)
        found = next((item for item in self.found if item["key"] == tap.key), None)
        if found is not None and found.get("taken") and found["live"] and found["port"] >= 0:
            self.found.remove(found)
            tap.start = journal.rx_end
            self._taps[tap.key] = tap
            self._listens(tap, found["port"])
            self.remember(tap, meta)
            return tap
        with trio.move_on_after(START_S):
            while True:
                try:
                    await self._capture(tap)
                    return tap
                except LinkLost:
                    await self._up.wait()
        raise Unreachable("the capture process does not answer", hint=f"tail {quoted(self.runtime + '/capture.log')}")

    async def end(self, tap: RemoteTap) -> None:
        """Store what has arrived, close the capture process's descriptor; returns when the driver has let go."""
        if self._taps.get(tap.key) is tap:
            del self._taps[tap.key]
            self._gaps.pop(tap.key, None)
        self._numbers.pop(tap.number, None)
        with trio.CancelScope(shield=True):
            await self._try({"do": "release", "key": tap.key})

    def remember(self, tap: RemoteTap, meta: Any) -> None:
        """Tell what a later daemon needs to know."""
        tap.meta = meta
        if self._wire is not None:
            self._post({"do": "meta", "key": tap.key, "meta": meta})

    async def close_journal(self, journal: SharedJournal) -> None:
        """Both halves."""
        with trio.CancelScope(shield=True):
            await self._try({"do": "finish", "key": journal.directory})
            await self.leave(journal)

    async def leave(self, journal: SharedJournal) -> None:
        """Our half only."""
        if self._journals.get(journal.directory) is journal:
            del self._journals[journal.directory]
        with trio.CancelScope(shield=True), trio.move_on_after(5.0):
            await trio.to_thread.run_sync(journal.close, abandon_on_cancel=True)

    # -- attaching ----------------------------------------------------------------------------------------------------

    def _replaced(self, keys: list[str], why: str) -> None:
        for key in keys:
            self._gaps.setdefault(key, (time.monotonic(), why))

    async def _attach(self, wire: Wire) -> None:
        self._wire = wire
        self.found, self.found_holds = [], {}
        await self._ask({"do": "attach"})
        self._up.set()
        if self._attached_once:
            self.log(f"capture process (pid {self.hello['pid']}): attached")
        for item in list(self.found):
            tap = self._taps.get(item["key"])
            if tap is not None or self._attached_once:
                for fd in item["fds"]:
                    os.close(fd)
                self.found.remove(item)
                if tap is not None and item["live"]:
                    self._gaps.pop(tap.key, None)  # it went on reading all the while
                    self._listens(tap, item["port"])
        self._attached_once = True

    async def _hand_over(self) -> None:
        """Give a new capture process what the one before it had."""
        for key, (meta, fds) in list(self._holds.items()):
            if key not in self.found_holds:
                await self._try({"do": "hold", "key": key, "meta": meta}, fds)
        for tap in [tap for tap in self._taps.values() if not tap.number]:
            if tap.port.closed or self._taps.get(tap.key) is not tap:
                continue
            try:
                await self._capture(tap)
            except LabdError as error:
                self._taps.pop(tap.key, None)
                tap.on_gone(f"capture could not go on: {error.message}", {})

    async def _capture(self, tap: RemoteTap) -> None:
        """Raises LinkLost, and what the capture process says."""
        limits = tap.journal.limits
        answer = await self._ask({"do": "capture", "key": tap.key, "meta": tap.meta, **limits}, [tap.port.fd])
        if not answer.get("ok"):
            kind = {"busy": Busy, "unreachable": Unreachable}.get(answer.get("error", ""), LabdError)
            raise kind(answer.get("message", "?"), hint=answer.get("hint"))
        tap.start = int(answer["end"])
        self._taps[tap.key] = tap
        gap = self._gaps.pop(tap.key, None)
        if gap is not None:
            since, cause = gap
            tap.journal.event("gap", cause=cause, gap_ms=round((time.monotonic() - since) * 1000), rx=tap.start)
        self._listens(tap, int(answer["port"]))

    def _listens(self, tap: RemoteTap, number: int) -> None:
        self._numbers.pop(tap.number, None)
        tap.number = number
        self._numbers[number] = tap
        early = self._early_ends.pop(number, None)
        if early is not None:
            self._hear_end(early)
        tap.wake()

    def _down(self, cause: str) -> None:
        """No connection any more."""
        wire, self._wire = self._wire, None
        if self.hello.get("pid"):
            OURS.discard(int(self.hello["pid"]))
        self._up = trio.Event()
        if wire is not None:
            wire.close()
        for event, _ in self._answers.values():
            event.set()
        self._answers.clear()
        self._numbers.clear()
        self._early.clear()
        self._early_ends.clear()
        for tap in self._taps.values():
            tap.number = 0
            if not self._quitting:
                self._gaps.setdefault(tap.key, (time.monotonic(), cause))

    # -- talking ------------------------------------------------------------------------------------------------------

    def _post(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        assert self._wire is not None
        self._wire.post(message, fds)
        try:
            if not self._wire.flush():
                self._to_send.set()
        except OSError:
            pass  # the listener finds out

    async def _ask(self, message: dict[str, Any], fds: Sequence[int] = ()) -> dict[str, Any]:
        """The answer. Raises LinkLost when there is none."""
        if self._wire is None:
            raise LinkLost
        self._ids += 1
        number = self._ids
        event, answer = self._answers[number] = (trio.Event(), [])
        try:
            self._post({**message, "id": number}, fds)
            with trio.move_on_after(ANSWER_S):
                await event.wait()
        finally:
            self._answers.pop(number, None)
        if not answer:
            raise LinkLost
        return answer[0]

    async def _try(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Ask for something that a dead capture process has done by dying."""
        try:
            await self._ask(message, fds)
        except LinkLost:
            pass

    async def _listen(self, wire: Wire) -> None:
        while True:
            await trio.lowlevel.wait_readable(wire.fileno())
            for message in wire.receive():
                self._hear(message)

    async def _send(self, wire: Wire) -> None:
        """Push what did not fit at once."""
        while True:
            await self._to_send.wait()
            self._to_send = trio.Event()
            while not wire.flush():
                await trio.lowlevel.wait_writable(wire.fileno())

    async def _ask_whether_well(self) -> None:
        """One that is stuck is as bad as a dead one, and must not come to and read beside its successor."""
        while True:
            await trio.sleep(PING_S)
            try:
                await self._ask({"do": "ping"})
            except LinkLost:
                if not self._quitting:
                    self.log(f"capture process (pid {self.hello['pid']}) does not answer: ending it")
                    kill(self.hello["pid"], signal.SIGKILL)
                raise

    def _hear(self, message: Any) -> None:
        if isinstance(message, tuple):
            tap = self._numbers.get(message[0])
            if tap is not None:
                tap.wake()
        elif "re" in message:
            event, answer = self._answers.get(message["re"], (None, None))
            if event is not None and answer is not None:
                answer.append(message)
                event.set()
        elif "port" in message:
            self.found.append(message)
        elif "hold" in message:
            self._found_hold(message)
        elif "gone" in message:
            self._hear_end(message)
        elif "told" in message:
            self._hear_told(message)
        elif (journal := self._journals.get(message.get("failing", ""))) is not None:
            journal.rx_failing = message["what"]

    def _found_hold(self, message: dict[str, Any]) -> None:
        self.found_holds[message["hold"]] = message
        if self._attached_once:  # we have our own copies
            for fd in message["fds"]:
                os.close(fd)

    def _hear_end(self, message: dict[str, Any]) -> None:
        tap = self._numbers.pop(message["gone"], None)
        if tap is None:
            self._early_ends[message["gone"]] = message
        else:
            tap.on_gone(message["why"], {key: message[key] for key in ("wall_ns", "mono_ns", "rx")})

    def _hear_told(self, message: dict[str, Any]) -> None:
        """What the writer of rx has to tell is recorded among the events, and then acknowledged."""
        journal = self._journals.get(message["told"])
        if journal is None:
            self._early.setdefault(message["told"], []).append(message)
            return
        try:
            journal.told(message["kind"], message["fields"], message["wall_ns"], message["mono_ns"])
        except ValueError:  # closed just now
            return
        if self._wire is not None:
            self._post({"do": "ack", "key": message["told"], "n": message["n"]})
        tap = self._taps.get(message["told"])
        if tap is not None:
            tap.wake()

    def _forget_hold(self, key: str) -> None:
        for fd in self._holds.pop(key, (None, []))[1]:
            os.close(fd)


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
