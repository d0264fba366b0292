"""A board that is a real program under a PTY: a shell, so that a bench meets readline, busybox and dash themselves.

What it can reach: `loopback.confine` shuts it in before it begins, so whoever may type on this board's console can
run the machine's programs on files in a HOME of their own, which is gone with the board, and nothing more: no other
file, process, socket or network. That is still more than a simulated board of texts gives: processor time, memory
and 64 MiB a file. Where the kernel cannot do it, and for DUT files that are not the package's own, the board is
refused unless `--allow-programs` was given; then the program runs with all that its starter may do.

Same interface as `loopback.dut.Board`. All that the program started ends with power and with the player: on Linux
even what left its session (the player adopts orphans).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import struct
import subprocess  # noqa: TID251 — the bench's rule; a board is a program of its own
import sys
import termios
from collections.abc import Callable
from pathlib import Path

from . import confine
from .dutmodel import Dut, ProgramSpec
from .home import Home
from .kernel import Output
from .memory import Memory
from .question import Question
from .record import Record
from .strict import DutFileError
from .template import Template

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
READ = 4096
HANG_UP_S = 0.05  # the terminal hangs up a moment before its program has ended
PYTHON = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
PR_SET_CHILD_SUBREAPER = 36


class NoProgramError(Exception):
    """The program is not installed, or may not be run; the text says what to do."""


def check(dut: Dut, allowed: bool) -> bool:
    """Whether `dut` will be shut in. Raises NoProgramError or DutFileError when it may not or cannot run."""
    spec = dut.program
    assert spec is not None
    if allowed:
        return False
    if not spec.built_in:
        raise DutFileError(dut.file, "program", "is a real program; give --allow-programs to run it, with your rights")
    if why := confine.why_not():
        raise NoProgramError(
            f"{dut.name} is a real program, and {why} to shut it in; --allow-programs runs it with your rights"
        )
    return True


class ProgramBoard:
    """The board that `dut.program` describes. Give it a port with `connect`, then power with `power_on`."""

    def __init__(
        self, dut: Dut, record: Record, clock: Callable[[], float], crashed: Callable[[BaseException], None], free: bool
    ) -> None:
        assert dut.program is not None
        self.dut = dut
        self.spec: ProgramSpec = dut.program
        self.memory = Memory(dut, clock)
        self.lost_input = 0
        self.powered = False
        self._free = free
        self._record = record
        self._port: Output | None = None
        self._home: Home | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._master = -1
        self._pump: asyncio.Task[None] | None = None
        self._readable = asyncio.Event()
        self._crashed = crashed
        self._question: Question | None = None
        _adopt_orphans()
        self.argv = self._find()

    def _find(self) -> list[str]:
        tried = []
        for templates in (self.spec.argv, self.spec.argv_or):
            argv = [self._render(template) for template in templates]
            if argv[:1] == ["python"]:
                return [PYTHON, *argv[1:]]
            if argv and (path := shutil.which(argv[0], path=PATH)):
                return [path, *argv[1:]]
            tried += argv[:1]
        raise NoProgramError(f"{self.dut.name} needs {' or '.join(tried)}, which is not installed in {PATH}")

    def _render(self, template: Template) -> str:
        return template.render(self.memory.look)

    @property
    def where(self) -> str | None:
        """What `stats` calls the state."""
        return None if not self.powered else "running" if self._process is not None else "ended"

    def connect(self, port: Output) -> None:
        """The board's end of the line."""
        self._port = port
        if self.spec.ask_position:
            prompt = self._render(self.spec.prompt).encode()
            self._question = Question(prompt, self._send, self._type)

    # -- power --------------------------------------------------------------------------------------------------

    def power_on(self) -> None:
        """Start the program; nothing if it has power already."""
        if not self.powered:
            self._record.add("power", on=True)
            self.powered = True
            self._pump = asyncio.get_running_loop().create_task(self._live())
            self._pump.add_done_callback(self._ended)

    def power_off(self) -> None:
        """End the program and all that it started."""
        if self.powered:
            self._record.add("power", on=False)
            self.powered = False
            assert self._pump is not None
            self._pump.cancel()
        self._end()
        if self._home is not None:
            self._home.remove()
            self._home = None

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crashed(error)

    async def _live(self) -> None:
        while True:
            self.memory.boot()
            self._record.add("state", state="running", boots=self.memory.boots)
            self._send(self.dut.encoded(self.dut.banner.render(self.memory.look)))
            self._start()
            await self._carry()
            await asyncio.sleep(HANG_UP_S)
            code = self._end()
            self._record.add("state", state="ended", code=code, boots=self.memory.boots)
            if not self.spec.restart_ms:
                return
            await asyncio.sleep(self.spec.restart_ms / 1000)

    def _start(self) -> None:
        if self._home is None:
            self._home = Home()
        home = self._home.path
        for name in self.spec.copies:
            shutil.copyfile(Path(__file__).parent / name, Path(home, name))
        for name, text in self.spec.files:
            Path(home, name).write_text(self._render(text), encoding="utf-8")
        env = {"PATH": PATH, "HOME": home, "TERM": "vt100"}
        env.update({name: self._render(value) for name, value in self.spec.env})
        self._master, slave = os.openpty()
        os.set_blocking(self._master, False)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("=4H", self.spec.rows, self.spec.columns, 0, 0))
        try:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    confine.__file__,
                    home,
                    *(["--free"] if self._free else []),
                    "--",
                    *self.argv,
                ],
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env=env,
                start_new_session=True,
            )
        finally:
            os.close(slave)

    def _end(self) -> int | None:
        """End the program if it runs; returns its exit code."""
        if self._master >= 0:
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)
            self._master = -1
        process, self._process = self._process, None
        if process is None:
            return None
        if process.returncode is None:  # not reaped yet, so the number is still its own, and its group's
            with contextlib.suppress(OSError):
                os.killpg(process.pid, 9)
        code = process.wait()  # only then its children are this process's
        _end_orphans()
        return code

    # -- bytes --------------------------------------------------------------------------------------------------

    async def _carry(self) -> None:
        """Pass on what the program prints, no faster than the line takes it, until it hangs up."""
        assert self._port is not None
        loop = asyncio.get_running_loop()
        while True:
            await self._port.drain()
            try:
                data = os.read(self._master, READ)
            except BlockingIOError:
                loop.add_reader(self._master, self._readable.set)
                self._readable.clear()
                await self._readable.wait()
                loop.remove_reader(self._master)
                continue
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                return
            if not data:
                return
            self._send(data)
            if self._question is not None:
                self._question.printed(data)

    def _send(self, data: bytes) -> None:
        if self._port is not None and data:
            self._record.bytes("tx", data)
            self._port.write(data)

    def say(self, data: bytes) -> None:
        """Send exactly these bytes, now, whatever the program is doing."""
        self._send(data)

    def received(self, data: bytes) -> None:
        """Bytes came in on the port."""
        self._record.bytes("rx", data)
        if self._question is not None:
            self._question.typed(data)
        else:
            self._type(data)

    def _type(self, data: bytes) -> None:
        taken = 0
        if self._master >= 0 and data:
            with contextlib.suppress(OSError):
                taken = os.write(self._master, data)
        if self.powered and (lost := data[taken:]):
            self.lost_input += len(lost)
            self._record.bytes("lost", lost)


def _adopt_orphans() -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), *[ctypes.c_ulong(0)] * 3)


def _children() -> list[int]:
    """This process's own children, Linux only."""
    me = os.getpid()
    found = []
    for name in os.listdir("/proc") if sys.platform.startswith("linux") else []:
        with contextlib.suppress(OSError):
            if name.isdigit():
                fields = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
                if int(fields[1]) == me:
                    found.append(int(name))
    return found


def _end_orphans() -> None:
    """End what the program left behind; all of it became this process's child, one generation after the other."""
    for _ in range(64):
        left = _children()
        if not left:
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        for pid in left:
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)
