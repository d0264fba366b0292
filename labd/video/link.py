"""One screen's capture process, from the daemon's side: started, asked, watched over, started again.

It is never waited for without a limit: one that says nothing for `SILENT_S` (stopped, wedged with the interpreter's
lock held) is killed, and what was asked of it is asked of the next one. Runs on the daemon's loop; opens no device.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio

from labd import shim
from labd.errors import Busy, LabdError, NotFound, Refused, TimedOut, Unreachable, Usage
from labd.video import wire

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds for a new process to say that it is ready (it loads OpenCV), and without a sign of life after that.
READY_S, SILENT_S = 60.0, 4.0
#: Seconds before a process that died is followed by another: first and at most; one that lived this long starts afresh.
AGAIN_S, AGAIN_MOST_S, LIVED_S = 0.2, 10.0, 30.0
#: Seconds that an answer may be late beside what was waited for.
LATE_S = 10.0
#: Pictures that were given out are given to the next process, so that it knows their hashes: the newest.
KNOWN_MOST = 8

#: What a process may raise, by name.
ERRORS: dict[str, type[LabdError]] = {
    kind.name: kind for kind in (LabdError, Usage, Refused, NotFound, TimedOut, Busy, Unreachable)
}


class Link:
    """See the module. `hear(kind, facts)` hears the process's news, and `ended` with `why` when there is none more."""

    def __init__(self, name: str, runtime: str, device: str, hear: Callable[[str, dict[str, Any]], None]) -> None:
        self.name = name
        self.device = device
        self.pid: int | None = None
        self.restarts = 0
        self._runtime = runtime
        self._hear = hear
        self._scope = trio.CancelScope()
        self._nursery: trio.Nursery | None = None
        self._process: trio.Process | None = None
        self._ready = trio.Event()
        self._gone = trio.Event()
        self._sending = trio.Lock()
        self._pending: dict[int, _Asked] = {}
        self._next = 0
        self._known: OrderedDict[str, bytes] = OrderedDict()

    async def run(self) -> None:
        """Keep a process running until `stop`."""
        pause = AGAIN_S
        try:
            with self._scope:
                async with trio.open_nursery() as self._nursery:
                    while True:
                        began = trio.current_time()
                        why = await self._live()
                        self._hear("ended", {"why": why})
                        lived = trio.current_time() - began
                        pause = AGAIN_S if lived > LIVED_S else pause
                        await trio.sleep(pause)
                        pause = min(pause * 2, AGAIN_MOST_S)
                        self.restarts += 1
        finally:
            self._nursery = None
            self._gone.set()
            self._forsake()

    async def stop(self) -> None:
        """End the process, and wait until it has ended."""
        self._scope.cancel()
        await self._gone.wait()

    async def ask(self, request: dict[str, Any], timeout_s: float) -> tuple[dict[str, Any], bytes]:
        """The answer to a request; one that a process took with it is asked of the next, while there is time.

        `work_s` of the request is what the answer may take beyond its picture: reading text, for instance.

        Raises what the process raised, TimedOut when none answers, Unreachable when the capture was stopped.
        """
        until = trio.current_time() + timeout_s
        with trio.move_on_at(until + LATE_S + float(request.get("work_s", 0))):
            while not self._gone.is_set():
                await self._ready.wait()
                asked = await self._asked({**request, "timeout_ms": max(0.0, until - trio.current_time()) * 1000})
                if asked.answer is not None:
                    return self._answered(*asked.answer)
            raise Unreachable(f"{self.name}: the capture was stopped")
        raise TimedOut(f"{self.name}: the capture process did not answer in time; it may be starting again")

    async def loaded(self) -> None:
        """Until the process can work, at most READY_S: loading OpenCV takes long on a slow machine."""
        with trio.move_on_after(READY_S):
            await self._ready.wait()

    def remember(self, name: str, png: bytes) -> None:
        """This whole picture was given out under this hash."""
        self._known[name] = png
        self._known.move_to_end(name)
        while len(self._known) > KNOWN_MOST:
            self._known.popitem(last=False)

    async def _asked(self, request: dict[str, Any]) -> _Asked:
        self._next += 1
        number = self._next
        asked = self._pending[number] = _Asked()
        try:
            if self._process is not None:
                await self._post({**request, "id": number})
                await asked.done.wait()
        finally:
            del self._pending[number]
            if asked.answer is None and self._nursery is not None:
                self._nursery.start_soon(self._post, {"drop": number})
        return asked

    def _answered(self, message: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
        if "ok" in message:
            return message["ok"], body
        error = message["error"]
        kind = ERRORS.get(error["kind"], LabdError)
        raise kind(f"{self.name}: {error['message']}", hint=error.get("hint"), near=error.get("near") or ())

    async def _post(self, message: dict[str, Any], body: bytes = b"") -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        try:
            async with self._sending:
                await process.stdin.send_all(wire.pack(message, body))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # it has ended; whoever reads from it knows

    async def _live(self) -> str:
        """One process's life; why it ended."""
        try:
            process = await shim.start_camera(self._runtime, self.name)
        except OSError as error:
            return f"the capture process can't be started: {error.strerror}"
        self._process, self.pid = process, process.pid
        self._sending = trio.Lock()  # a write that was cut off belongs to the process before
        try:
            return await self._serve(process)
        finally:
            self._process, self.pid = None, None
            self._forsake()
            with trio.CancelScope(shield=True):
                with suppress(ProcessLookupError):
                    process.kill()  # it holds nothing that it could save, and may not be able to listen
                for stream in (process.stdin, process.stdout):
                    if stream is not None:
                        await trio.aclose_forcefully(stream)
                await process.wait()

    async def _serve(self, process: trio.Process) -> str:
        assert process.stdout is not None
        unpacker = wire.Unpacker()
        wedged = ""
        while True:
            limit = SILENT_S if self._ready.is_set() else READY_S
            with trio.move_on_after(limit) as silence:
                data = await process.stdout.receive_some(1 << 18)
            if silence.cancelled_caught:
                return f"the capture process gave no sign of life for {limit:.0f} s and was killed"
            if not data:
                with trio.move_on_after(2):
                    await process.wait()
                return wedged or _ending(process.returncode)
            try:
                messages = unpacker.feed(bytes(data))
            except ValueError as error:
                return f"the capture process talked nonsense and was killed: {error}"
            for message, body in messages:
                if message.get("news") == "wedged":
                    wedged = str(message["why"])
                self._take(message, body)

    def _take(self, message: dict[str, Any], body: bytes) -> None:
        news = message.pop("news", None)
        if news == "ready":
            assert self._nursery is not None
            self._nursery.start_soon(self._greet)
        elif news is not None:
            self._hear(news, message)
        elif (asked := self._pending.get(message["id"])) is not None:
            asked.answer = (message, body)
            asked.done.set()

    async def _greet(self) -> None:
        await self._post({"do": "open", "device": self.device})
        for name, png in list(self._known.items()):
            self._next += 1
            await self._post({"do": "know", "id": self._next, "hash": name}, png)
        self._ready.set()

    def _forsake(self) -> None:
        """Whoever waits for an answer of a process that is gone asks the next one."""
        if self._gone.is_set():
            self._ready.set()
        elif self._ready.is_set():
            self._ready = trio.Event()
        for asked in self._pending.values():
            asked.done.set()


class _Asked:
    """A request on its way; `done` without an answer means that its process is gone."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.answer: tuple[dict[str, Any], bytes] | None = None


def _ending(code: int | None) -> str:
    if code is None:
        return "the capture process hung up"
    return f"the capture process was killed by signal {-code}" if code < 0 else f"the capture process ended ({code})"
