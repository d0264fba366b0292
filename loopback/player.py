"""The player: one process that is one board on one cable, until its standard input ends.

`Player` owns the cable, the board, the server and the record. Standard output carries the ready line and one answer
to each request (`loopback.control`), nothing else; everything for people goes to standard error. The ready line is
{"ready": true, "dut": name, "tty": node of the near end, "link": path, "pid": n}; with a served port "tty" is null
and "url" is what pyserial opens.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from typing import Any

from . import control, program
from .cable import Cable
from .dut import Board
from .dutmodel import Dut
from .kernel import KernelLog
from .modem import Uart
from .port import Port
from .program import ProgramBoard
from .record import Record
from .server import Server


class Player:
    """Plays `dut` until `quit`; `device` None means on a cable of its own."""

    def __init__(
        self,
        dut: Dut,
        *,
        link: str | None,
        device: str | None,
        record: Record,
        baud: int | None,
        allowed: bool = False,
        serve: tuple[str, int] | None = None,
        rfc2217: bool = False,
    ) -> None:
        self._line = dut.line if baud is None else replace(dut.line, baud=baud)
        self._dut = dut = replace(dut, line=self._line)
        self._device = device
        self._link = link
        self._record = record
        self._loop = asyncio.get_running_loop()
        self._board: Board | ProgramBoard
        if dut.program is None:
            self._board = Board(dut, record, self._loop.time, self._crashed)
        else:
            shut_in = program.check(dut, allowed)
            self._board = ProgramBoard(dut, record, self._loop.time, self._crashed, free=not shut_in)
        self._kernel: KernelLog | None = None
        self._cable: Cable | None = None
        self._end: asyncio.Future[int] = self._loop.create_future()
        self._boot: asyncio.TimerHandle | None = None
        self._supply = True
        self._serve = serve
        self._server: Server | None = None
        self._uart: Uart | None = None
        if rfc2217:
            self._uart = Uart(
                dut.wires, dut.line, record, lambda: self._supply, self._held, self._pressed, self._settle
            )

    async def run(self) -> int:
        """Play; returns the exit code."""
        self._record.add(
            "start", dut=self._dut.name, file=self._dut.file, pid=os.getpid(), variables=dict(self._dut.variables)
        )
        ready: dict[str, Any] = {"tty": await (self._on_device(self._device) if self._device else self._on_cable())}
        if self._serve is not None:
            self._server = Server(self._near, self._uart, self._record)
            ready = {"tty": None, "url": await self._server.start(*self._serve)}
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._finish, 0)
        self._answer({"ready": True, "dut": self._dut.name, **ready, "link": self._link, "pid": os.getpid()})
        threading.Thread(target=self._listen, daemon=True).start()
        code = await self._end
        if self._server is not None:
            self._server.close()
        self._board.power_off()
        if self._cable is not None:
            self._cable.close()
        self._record.add("exit", code=code)
        return code

    async def _on_cable(self) -> str:
        cable = Cable(
            self._loop,
            byte_s=self._line.byte_s,
            fifo=self._line.fifo,
            hold=self._line.flow != "none",
            link=self._link,
            on_port=self._port_changed,
        )
        self._cable = cable
        for damage in self._dut.damage:
            if damage.every or damage.count:
                cable.damage(damage.direction, damage.bit, damage.every, damage.count, damage.above)
        if isinstance(self._board, Board):
            self._board.fault = self._adapter
        assert cable.near is not None
        await self._connect(cable.far.path)
        cable.start()
        if self._dut.boot == "at-start":
            self._board.power_on()
        return cable.near.path

    async def _on_device(self, device: str) -> str:
        await self._connect(device)
        self._board.power_on()  # nobody can see when the other end of a real cable is opened
        return device

    async def _connect(self, path: str) -> None:
        port = await Port.open(path, self._line, self._board.received, self._lost)
        kernel = self._dut.kernel
        if kernel is None:
            self._board.connect(port)
        else:
            self._kernel = KernelLog(port, kernel, self._board.memory.look, self._dut.encoded, self._record)
            self._board.connect(self._kernel)

    def _port_changed(self, what: str) -> None:
        self._record.add("port", state=what)
        if what == "opened" and (self._dut.boot == "each-open" or self._board.memory.boots == 0):
            self._power_off()
            self._stop_boot()
            self._boot = self._loop.call_later(self._dut.settle_ms / 1000, self._first_boot)

    def _stop_boot(self) -> None:
        if self._boot is not None:
            self._boot.cancel()
            self._boot = None

    def _settle(self) -> None:
        """The opener still sets its port up: pyserial takes half a second for that, and drops what came meanwhile."""
        if self._boot is not None:
            self._boot.cancel()
            self._boot = self._loop.call_later(self._dut.settle_ms / 1000, self._first_boot)

    def _first_boot(self) -> None:
        self._boot = None
        if self._supply:
            self._board.power_on()

    def _near(self) -> str | None:
        return None if self._cable is None or self._cable.near is None else self._cable.near.path

    def _held(self, down: bool) -> None:
        """Reset is pulled, or let go: the board starts over then, if it has power."""
        self._stop_boot()
        if down:
            self._power_off()
        elif self._supply:
            self._record.add("reset", by="dtr")
            if self._dut.wires.dtr == "rise":
                self._boot = self._loop.call_later(self._dut.settle_ms / 1000, self._first_boot)
            else:
                self._board.power_on()

    def _pressed(self, ms: float) -> None:
        """The power button was pressed for so long."""
        self._record.add("button", ms=ms)
        if not self._supply:
            self._power("on")
        elif ms >= self._dut.wires.hold_ms:
            self._power("off")

    def _power(self, what: str) -> None:
        if what in ("off", "cycle"):
            self._supply = False
            self._power_off()
        if what in ("on", "cycle"):
            self._supply = True
            self._board.power_on()

    def _adapter(self, fault: str, ms: int) -> None:
        assert self._cable is not None
        self._record.add("fault", fault=fault, ms=ms)
        if fault == "wander":
            self._cable.wander(ms)
        else:
            self._cable.to_dut.stall(ms / 1000)

    def _power_off(self) -> None:
        self._board.power_off()
        if self._kernel is not None:
            self._kernel.reset()

    def _crashed(self, error: BaseException) -> None:
        tell(f"the board crashed, which is a mistake in the player: {error!r}")
        self._finish(1)

    def _lost(self, why: str) -> None:
        if not self._end.done():
            tell(f"{self._device or 'the far end of the cable'} went away: {why}")
            self._finish(1)

    def _finish(self, code: int) -> None:
        if not self._end.done():
            self._end.set_result(code)

    # -- control ------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Read requests in a thread of its own: standard input may be a file, a pipe or a terminal."""
        pending = b""
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the loop has closed meanwhile
            while data := os.read(0, 65536):
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._loop.call_soon_threadsafe(self._request, line.decode("utf-8", "replace"))
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._finish, 0)

    def _request(self, line: str) -> None:
        try:
            request = control.parse(line)
        except control.ControlError as error:
            self._answer({"id": error.id, "ok": False, "error": str(error), "near": error.near})
            return
        if request is None:
            return
        try:
            found = self._act(request)
        except (OSError, ValueError) as error:
            self._answer({"id": request.get("id"), "ok": False, "error": str(error), "near": []})
            return
        self._answer({"id": request.get("id"), "ok": True, **found})

    def _act(self, request: dict[str, Any]) -> dict[str, Any]:
        if "quit" in request:
            self._loop.call_soon(self._finish, 0)
            return {"quit": True}
        if "stats" in request:
            return {"stats": self.stats()}
        if "say" in request:
            self._board.say(request["say"].encode("latin-1"))
            return {"say": len(request["say"])}
        if "lines" in request:
            if self._uart is None:
                raise ValueError("there are modem lines only with --rfc2217")
            self._uart.inputs.update(request["lines"])
            return {"lines": self._uart.levels}
        if "power" in request:
            self._power(request["power"])
            return {"power": request["power"], "boots": self._board.memory.boots}
        return {"fault": request["fault"], **self._fault(request)}

    def _fault(self, request: dict[str, Any]) -> dict[str, Any]:
        cable = self._cable
        if cable is None:
            raise ValueError("faults live in the cable, and there is none with --device")
        self._record.add("fault", **{key: value for key, value in request.items() if key != "id"})
        fault, direction = request["fault"], request.get("direction", "to_host")
        if fault == "unplug":
            cable.unplug()
        elif fault == "replug":
            return {"tty": cable.replug(), "link": self._link}
        elif fault == "wander":
            cable.wander(request["ms"])
        elif fault == "stall":
            for wire in cable.wires(direction):
                wire.stall(request["ms"] / 1000 if "ms" in request else None)
        elif fault == "resume":
            for wire in cable.wires("both"):
                wire.resume()
        elif fault in ("drop", "flip"):
            bit = request.get("bit", 0) if fault == "flip" else None
            cable.damage(direction, bit, request.get("every", 0), request.get("count", 0), request.get("above", 0))
        elif fault == "fifo":
            for wire in cable.wires("both"):
                wire.fifo = request["bytes"]
        elif fault == "baud":
            for wire in cable.wires("both"):
                wire.byte_s = replace(self._line, baud=request["baud"]).byte_s
        elif fault == "clear":
            cable.clear()
        return {}

    def stats(self) -> dict[str, Any]:
        """Everything countable."""
        board, memory, flood = self._board, self._board.memory, self._board.memory.flood
        return {
            **({} if self._cable is None else self._cable.stats()),
            **({} if self._uart is None else {"lines": self._uart.levels}),
            "powered": board.powered,
            "boots": memory.boots,
            "state": board.where,
            "uptime_s": round(memory.uptime, 3) if board.powered else None,
            "cpu_s": round(time.process_time(), 4),
            "lost_input": board.lost_input,
            "flood": None if flood is None else {"running": flood.running, "sent": flood.sent, "next": flood.next},
        }

    def _answer(self, message: dict[str, Any]) -> None:
        if message.get("id", "") is None:
            del message["id"]
        try:
            os.write(1, json.dumps(message).encode() + b"\n")
        except OSError:
            self._finish(0)  # nobody reads the answers: the owner is gone


def tell(text: str) -> None:
    sys.stderr.write(f"loopback: {text}\n")
