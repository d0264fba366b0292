"""A simulated board at run time: its states, its timers, its memory of variables and environment.

One task lives the board's life from power-on; bytes that arrive are turned into events by the tty discipline at
once (so echo is immediate, as a kernel's is, even while the board is busy printing) and wait in a queue for it.
Owned by `loopback.player`, which gives it a port and power. Never blocks, starts no process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from . import shell, transfer
from .discipline import Discipline, Event
from .dutmodel import Act, Dut, Respond, State, Step, XmodemSpec
from .fifo import InputFifo
from .flood import Flood
from .kernel import Output
from .memory import Memory
from .record import Record
from .template import Lookup, Template
from .timers import Timers

MAX_EVENTS = 4096
ARRIVES_S = 0.05  # for the last bytes to arrive


class _Interrupted(Exception):
    """^C while something was being printed."""


class _Reboot(Exception):
    """The board starts over."""


class Board:
    """The board that `dut` describes. Give it a port with `connect`, then power with `power_on`."""

    def __init__(
        self, dut: Dut, record: Record, clock: Callable[[], float], crashed: Callable[[BaseException], None]
    ) -> None:
        self.dut = dut
        self.memory = Memory(dut, clock)
        self.fault: Callable[[str, int], None] = lambda fault, ms: None  # what its adapter does
        self.state: State | None = None
        self._record = record
        self._clock = clock
        self._crashed = crashed
        self._port: Output | None = None
        self._tty = Discipline(dut.eol.encode(dut.encoding, "replace"))
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._interrupt = asyncio.Event()
        self._fifo = InputFifo(dut.input_fifo, self._read, lambda: self._sent_by - clock(), record)
        self._life: asyncio.Task[None] | None = None
        self._later: set[asyncio.Task[None]] = set()
        self._touched = 0.0
        self._sent_by = 0.0  # when the line has carried what was printed

    # -- power --------------------------------------------------------------------------------------------------

    def connect(self, port: Output) -> None:
        """The board's end of the line."""
        self._port = port

    @property
    def powered(self) -> bool:
        return self._life is not None

    @property
    def where(self) -> str | None:
        """The name of the state it is in."""
        return None if self.state is None else self.state.name

    def power_on(self) -> None:
        """Boot; nothing if it has power already."""
        if self._life is None:
            self._record.add("power", on=True)
            self._life = asyncio.get_running_loop().create_task(self._live())
            self._life.add_done_callback(self._ended)

    def power_off(self) -> None:
        """Fall silent at once, mid-byte if need be; what was in memory is gone."""
        if self._life is not None:
            self._record.add("power", on=False)
            self._life.cancel()
            self._life = None
        self._stop_all()
        self._tty.mode = "mute"
        self.state, self._fifo.poll_ms = None, 0

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crashed(error)

    def _stop_all(self) -> None:
        for task in self._later:
            task.cancel()
        self._later.clear()
        if self.memory.flood is not None:
            self._flood("stop")
            self.memory.flood = None
        self._fifo.clear()
        self._events = asyncio.Queue()
        self._tty.reset()

    # -- input --------------------------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Bytes came in on the port."""
        self._fifo.received(data)

    @property
    def lost_input(self) -> int:
        """How many bytes its FIFO could not hold, since the player began."""
        return self._fifo.lost

    def _read(self, data: bytes) -> None:
        self._record.bytes("rx", data)
        if self._life is None:
            return
        self._touched = self._clock()
        echo, events = self._tty.feed(data)
        self._send(echo, echo=True)
        for event in events:
            if event.kind == "intr":
                self._forget()  # as a tty does: what was typed ahead goes too
                self._interrupt.set()
            if self._events.qsize() < MAX_EVENTS:
                self._events.put_nowait(event)

    def _forget(self) -> None:
        while not self._events.empty():
            self._events.get_nowait()

    def _interrupted(self) -> None:
        """The ^C did its work: its event, the first in the queue, is not to be answered once more."""
        self._interrupt.clear()
        if not self._events.empty():
            self._events.get_nowait()

    # -- output -------------------------------------------------------------------------------------------------

    def _send(self, data: bytes, **fields: bool) -> None:
        if self._port is not None and data:
            self._record.bytes("tx", data, **fields)
            self._sent_by = max(self._clock(), self._sent_by) + len(data) * self.dut.line.byte_s
            self._port.write(data)

    def say(self, data: bytes) -> None:
        """Send exactly these bytes, now, whatever the board is doing."""
        self._send(data)

    async def _print(self, template: Template, look: Lookup, line_ms: int = 0) -> None:
        text = template.render(look)
        if not text:
            return
        for line in text.splitlines(keepends=True) if line_ms else [text]:
            self._send(self.dut.encoded(line))
            assert self._port is not None
            await self._port.drain()
            if line_ms:
                await self._pause(line_ms)

    async def _play(self, steps: tuple[Step, ...], look: Lookup) -> None:
        """Print what a script says, piece by piece."""
        for step in steps:
            if step.wait_ms:
                await self._pause(step.wait_ms)
            for data in step.pieces(look, self.dut.encoded):
                self._send(data)
                assert self._port is not None
                await self._port.drain()
                await self._pause(step.every_ms)

    async def _pause(self, ms: float) -> None:
        """Wait, but not through a ^C."""
        if not ms:
            await asyncio.sleep(0)
        else:
            self._fifo.pauses = True
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._interrupt.wait(), ms / 1000)
            self._fifo.pauses = False
        if self._interrupt.is_set():
            raise _Interrupted

    # -- life ---------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        while True:
            self._boot()
            try:
                await self._print(self.dut.banner, self.memory.look)
                name = self.dut.start
                while True:
                    name = await self._in_state(self.dut.states[name])
                    await asyncio.sleep(0)  # a circle of timers of 0 ms must not stop the cable
            except _Reboot:
                await asyncio.sleep(0)

    def _boot(self) -> None:
        self._stop_all()
        self._tty.mode = "mute"
        self.memory.boot()
        self._touched = self._clock()

    def _enter(self, state: State) -> None:
        self.state, self._fifo.poll_ms = state, state.poll_ms
        self._record.add("state", state=state.name, boots=self.memory.boots)
        if state.mode != self._tty.mode:
            self._tty.reset()
        if state.mode != "line" or state.xmodem:
            self._events = asyncio.Queue()
        self._tty.mode, self._tty.echo = ("raw" if state.xmodem else state.mode), state.echo
        self._interrupt.clear()
        if self.memory.flood is not None:
            self._flood("stop")
        self.memory.flood = None
        if state.flood is not None and self._port is not None:
            spec = state.flood
            self.memory.flood = Flood(
                self._port, spec.line, self.memory.look, self.dut.eol, spec.rate, spec.first, lambda: self.memory.uptime
            )

    async def _in_state(self, state: State) -> str:
        """Live in `state`; returns the name of the next one."""
        self._enter(state)
        try:
            await self._print(state.enter, self.memory.look, state.line_ms)
            await self._play(state.steps, self.memory.look)
        except _Interrupted:
            self._interrupted()
        if state.then is not None:
            return state.then
        if state.xmodem is not None:
            return await self._transfer(state.xmodem)
        if state.countdown is not None:
            return await self._count_down(state)
        await self._print(state.prompt, self.memory.look)
        if state.flood is not None and state.flood.start:
            self._flood("start")
        timers = Timers(state.after, self._clock())
        while True:
            event = await self._next(timers)
            goto = await (self._fire(timers) if event is None else self._handle(state, event))
            if goto is not None:
                return goto

    async def _next(self, timers: Timers) -> Event | None:
        """The next event, or None when a timer of `state.after` is due."""
        while True:
            if not self._events.empty():
                return self._events.get_nowait()
            soonest = timers.soonest(self._touched)
            if soonest is not None and soonest <= self._clock():
                return None
            try:
                wait = None if soonest is None else max(0.0, soonest - self._clock())
                return await self._event(wait)
            except TimeoutError:
                continue  # keys may have put it off

    async def _event(self, wait_s: float | None) -> Event:
        """The next event; raises TimeoutError. Only in here a polling board looks for input."""
        self._fifo.listens = True
        try:
            return await asyncio.wait_for(self._events.get(), wait_s)
        finally:
            self._fifo.listens = False

    async def _fire(self, timers: Timers) -> str | None:
        for after, count in timers.fire(self._clock(), self._touched):
            await self._print(after.print, self.memory.look_with({"n": count}))
            if (goto := self._act(after.act)) is not None:
                return goto
        return None

    async def _transfer(self, spec: XmodemSpec) -> str:
        """Move a file by X-modem; returns the state that follows."""
        look = self.memory.look
        content = b"".join(data for step in spec.content for data in step.pieces(look, self.dut.encoded))
        done, data = await transfer.run(spec, content, self._event, self._send, self._clock)
        self.memory.transfer = transfer.facts(spec, done, data, self._record)
        return spec.goto if done.result == "ok" else spec.failed

    async def _count_down(self, state: State) -> str:
        spec = state.countdown
        assert spec is not None
        seconds = spec.seconds.render(self.memory.look).strip()
        for left in range(int(seconds) if seconds.lstrip("-").isdigit() else 0, 0, -1):
            await self._print(spec.text, self.memory.look_with({"left": left}))
            try:
                await self._event(spec.tick_ms / 1000)
            except TimeoutError:
                continue
            return spec.interrupt
        await self._print(spec.text, self.memory.look_with({"left": 0}))
        return spec.goto

    def _act(self, act: Act) -> str | None:
        for fault, ms in (("wander", act.wander_ms), ("stall", act.stall_ms)):
            if ms:  # once the line has carried what was said before
                wait_s = max(0.0, self._sent_by - self._clock()) + ARRIVES_S
                asyncio.get_running_loop().call_later(wait_s, self.fault, fault, ms)
        if act.reboot:
            raise _Reboot
        return act.goto

    # -- answers ------------------------------------------------------------------------------------------------

    async def _handle(self, state: State, event: Event) -> str | None:
        if event.kind == "key" and state.mode != "key":
            return None
        self._interrupt.clear()
        text = event.data.decode(self.dut.encoding, "surrogateescape")
        if event.kind == "intr":
            text = "\x03"
        elif event.kind == "eof":
            text = "\x04"
        try:
            found, goto = await self._answer(state, text)
        except _Interrupted:
            self._interrupted()
            found, goto = None, None
        if goto is None and state.mode == "line" and (found is None or found.prompt) and event.kind != "eof":
            await self._print(state.prompt, self.memory.look)
        return goto

    async def _answer(self, state: State, text: str) -> tuple[Respond | None, str | None]:
        if not state.shell or text in ("\x03", "\x04"):
            return await self._command(state, text if state.mode == "key" else text.strip())
        found = None
        for joint, command in shell.split(text):
            if (joint == "&&" and self.memory.status) or (joint == "||" and not self.memory.status):
                continue
            expanded = shell.expand(command, self.memory.parameter)
            found, goto = await self._command(state, expanded)
            if goto is not None:
                return found, goto
        return found, None

    async def _command(self, state: State, line: str) -> tuple[Respond | None, str | None]:
        self.memory.line = line
        for spec in state.respond:
            match = spec.match.fullmatch(line)
            if match is None:
                continue
            groups: dict[str, object] = {str(n): match[n] or "" for n in range(spec.match.groups + 1)}
            groups.update({name: value or "" for name, value in match.groupdict().items()})
            look = self.memory.look_with(groups)
            if spec.when_env and spec.when_env.render(look) not in self.memory.env:
                continue
            return spec, await self._respond(spec, look)
        if line and line not in ("\x03", "\x04") and state.mode == "line":
            self.memory.status = 127
            await self._print(state.unknown, self.memory.look_with({"0": line}))
        return None, None

    async def _respond(self, spec: Respond, look: Lookup) -> str | None:
        if spec.delay_ms:
            await self._pause(spec.delay_ms)
        self.memory.store(spec, look)
        rate = spec.flood_rate.render(look)
        if self.memory.flood is not None and rate.isdigit():
            self.memory.flood.rate = int(rate)
        if spec.flood == "stop":
            self._flood("stop")
        await self._print(spec.reply, look, spec.line_ms)
        await self._play(spec.steps, look)
        if spec.flood == "start":
            self._flood("start")
        self.memory.status = spec.status
        if spec.later:
            self._meanwhile(spec.later, look)
        return self._act(spec.act)

    def _meanwhile(self, steps: tuple[Step, ...], look: Lookup) -> None:
        asked = {"line": self.memory.line, "word": self.memory.look("word", "")}  # not what is asked until then

        def then(name: str, arg: str) -> object:
            return asked[name] if name in asked else look(name, arg)

        task = asyncio.get_running_loop().create_task(self._play_later(steps, then))
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _play_later(self, steps: tuple[Step, ...], look: Lookup) -> None:
        for step in steps:
            await asyncio.sleep(step.wait_ms / 1000)
            for data in step.pieces(look, self.dut.encoded):
                self._send(data)
                await asyncio.sleep(step.every_ms / 1000)

    def _flood(self, what: str) -> None:
        flood = self.memory.flood
        if flood is None or flood.running == (what == "start"):
            return
        flood.start() if what == "start" else flood.stop()
        self._record.add("flood", running=what == "start", next=flood.next, sent=flood.sent)
