"""The player of a virtual board: one QEMU, until standard input ends.

    python -m loopback.machine uboot-x86 --dir /tmp/board

starts the board, powered on, and prints one JSON line when its sockets in --dir can be used: `serial` (its serial
port, one client at a time), `qmp` and `qmp-video` (QEMU's control protocol, twice: for who switches and types, and for
who looks), `pid` (QEMU's own). Then a line for each change: {"state": "reset" | "off" | "on" | "paused"}. Switching
off by `stop` and `system_reset` keeps the sockets; `cont` switches on again. A board that switches itself off stays so
until it is reset.

Emulation only (TCG), never KVM: the same on every host. QEMU does not outlive this process, however that ends (on
Linux; elsewhere a player that was killed is cleared away by the next one).

Exit codes: 0 ended as asked, 1 failed, 2 a bad board file, 4 no such board, 7 QEMU or firmware is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import sys
import threading
import zlib
from typing import Any

from . import machinefile
from .strict import DutFileError

#: Seconds for QEMU to be ready, and to end when asked.
START_SECONDS = 10.0
END_SECONDS = 2.0

#: Seconds that a change gets to settle before it is told: one reset is several events.
SETTLE_SECONDS = 0.03

SOCKETS = ("qmp", "qmp-video", "serial")
PR_SET_PDEATHSIG = 1


class FailedError(Exception):
    """The board can't be played: why."""


class Qmp:
    """QEMU's control protocol over its standard input and output: the player's own monitor."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.events: asyncio.Queue[str] = asyncio.Queue()

    async def listen(self) -> None:
        """Until QEMU ends."""
        while line := await self._out.readline():
            with contextlib.suppress(ValueError):
                said = json.loads(line)
                if "event" in said:
                    self.events.put_nowait(said["event"])
                elif "return" in said or "error" in said:
                    self._answers.put_nowait(said)
        self.events.put_nowait("")
        self._answers.put_nowait({"error": {"desc": "QEMU has ended"}})

    async def ask(self, command: str) -> Any:
        """What QEMU returns. Raises FailedError with its words."""
        with contextlib.suppress(ConnectionError):
            self._in.write(json.dumps({"execute": command}).encode() + b"\n")
            await self._in.drain()
        answer = await self._answers.get()
        if "error" in answer:
            raise FailedError(f"{command}: {answer['error'].get('desc', '?')}")
        return answer["return"]


class MachinePlayer:
    """Plays one board in `directory`; `wait` seconds at most, its power waits for a client of its serial port."""

    def __init__(self, board: machinefile.Machine, directory: str, *, tap: str | None, wait: float) -> None:
        self._board = board
        self._dir = directory
        self._tap = tap
        self._wait = wait
        self._end = asyncio.Event()
        self._state = "on"

    async def run(self) -> int:
        """Play; returns the exit code. Raises FailedError, OSError."""
        lock = self._take()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._end.set)
        process = await self._start()
        qmp = Qmp(process)
        tasks = [asyncio.create_task(qmp.listen())]
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._settle_in(qmp, process)
            tasks.append(asyncio.create_task(self._tell_changes(qmp)))
            tasks.append(asyncio.create_task(self._power_on(qmp)))
            threading.Thread(target=self._until_stdin_ends, args=(loop,), daemon=True).start()
            tasks.append(asyncio.create_task(self._end.wait()))
            ended = asyncio.create_task(process.wait())
            await asyncio.wait([tasks[-1], ended], return_when=asyncio.FIRST_COMPLETED)
            return 0 if self._end.is_set() or process.returncode == 0 else 1
        except (FailedError, TimeoutError):
            raise FailedError(self._complaint()) from None
        finally:
            await _end(process)
            for task in tasks:
                task.cancel()
            self._clear()
            os.close(lock)

    def _take(self) -> int:
        """The directory is ours: its lock, which the system frees however we end, and nothing left in it."""
        os.makedirs(self._dir, mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(self._dir, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FailedError(f"a board is being played in {self._dir} already") from None
        _quit_leftover(os.path.join(self._dir, "qmp"))
        self._clear()
        return lock

    async def _start(self) -> asyncio.subprocess.Process:
        key = zlib.crc32(os.fsencode(self._dir))
        mac = f"52:54:00:{key >> 16 & 255:02x}:{key >> 8 & 255:02x}:{key & 255:02x}"
        nic = f"tap,id=net0,ifname={self._tap},script=no,downscript=no" if self._tap else "user,id=net0,restrict=on"
        place = self._dir.replace(",", ",,")
        argv = [
            *self._board.argv(self._dir, nic, mac),
            *("-nodefaults", "-no-user-config", "-display", "none", "-accel", "tcg", "-no-shutdown", "-S"),
            *("-name", f"{self._board.name}", "-pidfile", f"{self._dir}/pid"),
            *("-chardev", "stdio,id=own,signal=off", "-mon", "chardev=own,mode=control"),
            *("-qmp", f"unix:{place}/qmp,server=on,wait=off", "-qmp", f"unix:{place}/qmp-video,server=on,wait=off"),
        ]
        if "serial" in self._board.has:
            argv += ["-chardev", f"socket,id=ser0,path={place}/serial,server=on,wait=off", "-serial", "chardev:ser0"]
        with open(os.path.join(self._dir, "log"), "wb") as log:
            return await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                preexec_fn=_die_with_us,
            )

    async def _settle_in(self, qmp: Qmp, process: asyncio.subprocess.Process) -> None:
        await qmp.ask("qmp_capabilities")
        if not self._wait:  # before anybody can be told to switch it off
            await qmp.ask("cont")
        _say({"ready": True, "board": self._board.name, "has": self._board.has, "directory": self._dir,
              "pid": os.getpid(), "qemu": process.pid})  # fmt: skip

    async def _power_on(self, qmp: Qmp) -> None:
        """Let it run, if it does not yet; its first words wait for who is going to hear them."""
        if not self._wait:
            return
        with contextlib.suppress(TimeoutError, FailedError):
            async with asyncio.timeout(self._wait):
                while not await _connected(qmp):
                    await asyncio.sleep(0.01)
        with contextlib.suppress(FailedError):
            await qmp.ask("cont")

    async def _tell_changes(self, qmp: Qmp) -> None:
        """Say what became of the board's power, once a change."""
        while name := await qmp.events.get():
            await asyncio.sleep(SETTLE_SECONDS)
            names = {name}
            while not qmp.events.empty():
                names.add(qmp.events.get_nowait())
            with contextlib.suppress(FailedError):
                self._changed(names, (await qmp.ask("query-status"))["status"])

    def _changed(self, names: set[str], status: str) -> None:
        state = {"running": "on", "prelaunch": "off", "shutdown": "off", "paused": "paused"}.get(status, status)
        if state == "on" and self._state == "on" and "RESET" in names:
            _say({"state": "reset"})
        elif state != self._state:
            _say({"state": state})
        self._state = state

    def _until_stdin_ends(self, loop: asyncio.AbstractEventLoop) -> None:
        while os.read(0, 4096):
            pass
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            loop.call_soon_threadsafe(self._end.set)

    def _complaint(self) -> str:
        try:
            with open(os.path.join(self._dir, "log"), encoding="utf-8", errors="replace") as log:
                said = [line for line in log.read().splitlines() if line.strip()]
        except OSError:
            said = []
        return said[0] if said else f"{self._board.program} said nothing"

    def _clear(self) -> None:
        for name in (*SOCKETS, "pid", "log"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._dir, name))


async def _connected(qmp: Qmp) -> bool:
    """Whether somebody is connected to the serial port."""
    for device in await qmp.ask("query-chardev"):
        if device["label"] == "ser0":
            return not device["filename"].startswith("disconnected")
    return True


async def _end(process: asyncio.subprocess.Process) -> None:
    for end in (process.terminate, process.kill):
        if process.returncode is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            end()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), END_SECONDS)


def _die_with_us() -> None:
    """In the child, before it becomes QEMU."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), *[ctypes.c_ulong(0)] * 3)
        if os.getppid() == 1:
            os._exit(1)


def _quit_leftover(path: str) -> None:
    """End a QEMU that a killed player left, where the system does not: it still answers at its socket."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
        line.settimeout(1.0)
        line.connect(path)
        line.sendall(b'{"execute": "qmp_capabilities"}{"execute": "quit"}')
        while line.recv(4096):
            pass


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m loopback.machine", description="Play a virtual board in QEMU until standard input ends."
    )
    parser.add_argument("board", nargs="?", help="a built-in board (--list) or the path of a board file")
    parser.add_argument("--dir", metavar="DIR", help="where its sockets are made")
    parser.add_argument("--tap", metavar="IF", help="plug its Ethernet into this tap interface of the host")
    parser.add_argument(
        "--wait", type=float, default=0.0, metavar="S", help="its power waits for a client of its serial port so long"
    )
    parser.add_argument("--list", action="store_true", help="list the built-in boards and exit")
    parser.add_argument("--check", action="store_true", help="say as JSON what it has and what is missing, and exit")
    args = parser.parse_args(argv)
    if not args.list and (args.board is None or not (args.check or args.dir)):
        parser.error("name a board, and --dir or --check; or say --list")
    return args


def _play(args: argparse.Namespace) -> int:
    board = machinefile.find(args.board)
    lacks = board.missing()
    if args.check:
        _say({"board": board.name, "title": board.title, "has": board.has, "missing": lacks})
        return 7 if lacks else 0
    if lacks:
        packages = " ".join(dict.fromkeys(lack["package"] for lack in lacks))
        what = "; ".join(lack["what"] for lack in lacks)
        sys.stderr.write(f"{what} (sudo apt-get install {packages})\n")
        return 7

    async def run() -> int:
        return await MachinePlayer(board, os.path.realpath(args.dir), tap=args.tap, wait=args.wait).run()

    return asyncio.run(run())


def main(argv: list[str] | None = None) -> int:
    """The command line. Returns the exit code."""
    args = _arguments(argv)
    try:
        if args.list:
            for name in machinefile.names():
                sys.stdout.write(f"{name:<14} {machinefile.find(name).title}\n")
            return 0
        return _play(args)
    except machinefile.NoSuchBoardError as error:
        code, said = 4, str(error)
    except DutFileError as error:
        code, said = 2, str(error)
    except (OSError, FailedError) as error:
        code, said = 1, str(error)
    sys.stderr.write(said + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
