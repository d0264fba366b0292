"""The player: one process that is one board on one cable, until its standard input ends.

`main` reads the command line; `Player` owns the cable, the board and the record. Standard output carries the ready
line and one answer to each request (`loopback.control`), nothing else; everything for people goes to standard
error. Exit codes: 0 ended as asked, 1 failed, 2 bad usage or a bad DUT file, 4 no such DUT.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import serial

from . import control, library, program
from .cable import Cable
from .dut import Board
from .dutfile import load
from .dutmodel import Dut
from .kernel import KernelLog
from .port import Port
from .program import NoProgramError, ProgramBoard
from .record import Record
from .strict import DutFileError


class Player:
    """Plays `dut` until `quit`; `device` None means on a cable of its own."""

    def __init__(
        self, dut: Dut, *, link: str | None, device: str | None, record: Record, baud: int | None, allowed: bool = False
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

    async def run(self) -> int:
        """Play; returns the exit code."""
        self._record.add(
            "start", dut=self._dut.name, file=self._dut.file, pid=os.getpid(), variables=dict(self._dut.variables)
        )
        tty = await (self._on_device(self._device) if self._device else self._on_cable())
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._finish, 0)
        self._answer({"ready": True, "dut": self._dut.name, "tty": tty, "link": self._link, "pid": os.getpid()})
        threading.Thread(target=self._listen, daemon=True).start()
        code = await self._end
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
            if self._boot is not None:
                self._boot.cancel()
            self._boot = self._loop.call_later(self._dut.settle_ms / 1000, self._board.power_on)

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
        _tell(f"the board crashed, which is a mistake in the player: {error!r}")
        self._finish(1)

    def _lost(self, why: str) -> None:
        if not self._end.done():
            _tell(f"{self._device or 'the far end of the cable'} went away: {why}")
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
        if "power" in request:
            if request["power"] in ("off", "cycle"):
                self._power_off()
            if request["power"] in ("on", "cycle"):
                self._board.power_on()
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


def _tell(text: str) -> None:
    sys.stderr.write(f"loopback: {text}\n")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    return name, value


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m loopback",
        description="Play a simulated board on a simulated serial cable until standard input ends.",
        epilog="Prints one JSON line when the near end can be opened; requests are read from standard input "
        "(unplug, replug, power cycle, stats, quit, or JSON: see loopback/control.py).",
    )
    parser.add_argument("dut", nargs="?", help="a built-in board (--list) or the path of a DUT file")
    parser.add_argument("--link", metavar="PATH", help="a symbolic link kept on the near end, over replugs too")
    parser.add_argument("--device", metavar="TTY", help="play on this tty instead of a cable")
    parser.add_argument("--baud", type=int, metavar="N", help="the line's speed instead of the file's; 0 = unpaced")
    parser.add_argument("--set", type=_setting, action="append", default=[], metavar="NAME=VALUE", dest="settings")
    parser.add_argument("--record", metavar="FILE", help="append what the board received and did, as JSON Lines")
    parser.add_argument(
        "--allow-programs", action="store_true", help="run a DUT file's [program] with your rights, not shut in"
    )
    parser.add_argument("--list", action="store_true", help="list the built-in boards and exit")
    parser.add_argument("--check", metavar="FILE", help="check a DUT file and exit")
    args = parser.parse_args(argv)
    chosen = [bool(args.list), args.check is not None, args.dut is not None]
    if sum(chosen) != 1:
        parser.error("name one board, or say --list or --check FILE")
    if args.device and args.link:
        parser.error("--link names the near end of a cable, and there is none with --device")
    if args.baud is not None and args.baud < 0:
        parser.error("--baud is 0 or more")
    return args


def _check(path: str, settings: dict[str, str]) -> int:
    dut = load(path, settings)
    answers = sum(len(state.respond) for state in dut.states.values())
    needs = f", needs --set {' '.join(f'{name}=…' for name in dut.needs)}" if dut.needs else ""
    sys.stdout.write(f"{path}: ok ({len(dut.states)} states, {answers} answers{needs})\n")
    return 0


async def _play(args: argparse.Namespace, dut: Dut, record: Record) -> int:
    player = Player(dut, link=args.link, device=args.device, record=record, baud=args.baud, allowed=args.allow_programs)
    return await player.run()


def main(argv: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit code."""
    args = _arguments(argv)
    settings = dict(args.settings)
    try:
        if args.list:
            for name, title in library.titles().items():
                sys.stdout.write(f"{name:<14} {title}\n")
            return 0
        if args.check is not None:
            return _check(args.check, settings)
        dut = library.find(args.dut, settings)
        if dut.needs:
            _tell(f"{dut.file}: {{{dut.needs[0]}}} has no value; give it with --set {dut.needs[0]}=…")
            return 2
        return asyncio.run(_play(args, dut, Record(args.record)))
    except library.NoSuchDut as error:
        _tell(str(error))
        return 4
    except DutFileError as error:
        _tell(str(error))
        return 2
    except (OSError, serial.SerialException, NoProgramError) as error:
        _tell(str(error))
        return 1
