"""A microcontroller's REPL in the manner of MicroPython: a program for the board `mcu-repl`, shut in as it is run.

Friendly REPL with echo and continuation lines, ^A raw REPL as tools use it (code, ^D, then OK, output, ^D, error, ^D),
^B back, ^C interrupts what runs, ^D soft reset, ^E paste mode. Raw paste is answered with "not supported", as older
firmware does. It runs real Python; `machine` has Pin, reset, unique_id and freq. Imports nothing of the package.
"""

from __future__ import annotations

import codeop
import os
import signal
import sys
import termios
import time
import traceback
import types
from typing import Any, ClassVar

VERSION = "MicroPython v1.26.1 on 2026-09-11; Loopback board with LB2040"
BANNER = f'{VERSION}\nType "help()" for more information.\n'
RAW_BANNER = "raw REPL; CTRL-B to exit\n>"
RAW, NORMAL, INTR, SOFT, PASTE = b"\x01", b"\x02", b"\x03", b"\x04", b"\x05"


class SoftReset(Exception):
    """^D at the prompt."""


class Pin:
    """A pin that remembers what was written to it."""

    IN, OUT = 0, 1
    _levels: ClassVar[dict[Any, int]] = {}

    def __init__(self, number: Any, mode: int = 0, value: int | None = None) -> None:
        self.number, self.mode = number, mode
        if value is not None:
            self.value(value)

    def __repr__(self) -> str:
        return f"Pin(GPIO{self.number}, mode={'OUT' if self.mode else 'IN'})"

    def value(self, level: int | None = None) -> int | None:
        if level is None:
            return self._levels.get(self.number, 0)
        self._levels[self.number] = int(bool(level))
        return None

    def on(self) -> None:
        self.value(1)

    def off(self) -> None:
        self.value(0)

    def toggle(self) -> None:
        self.value(not self.value())


def machine() -> types.ModuleType:
    """The module `machine`."""
    module = types.ModuleType("machine")
    found: dict[str, Any] = {
        "Pin": Pin,
        "reset": lambda: os._exit(0),
        "unique_id": lambda: os.environ.get("BOARD", "none").encode(),
        "freq": lambda: 133_000_000,
    }
    module.__dict__.update(found)
    return module


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


class Interrupts:
    """^C as the terminal's signal: raised while something runs or is waited for, else kept until then."""

    armed = False
    kept = 0

    def __call__(self, *_: object) -> None:
        if not self.armed:
            self.kept += 1
            return
        self.armed = False
        raise KeyboardInterrupt

    def arm(self) -> None:
        """From now on it is raised; one that was kept is at once."""
        self.armed = True
        if self.kept:
            self.kept -= 1
            self.armed = False
            raise KeyboardInterrupt


INTERRUPTS = Interrupts()


def key() -> bytes:
    """The next byte that is typed; ^C too comes as a byte."""
    try:
        INTERRUPTS.arm()
        byte = os.read(0, 1)
        INTERRUPTS.armed = False
    except KeyboardInterrupt:
        return INTR
    return byte or os._exit(0)


def run(source: str, kind: str, world: dict[str, Any]) -> str:
    """Run `source`; returns the error's text, empty if there is none."""
    try:
        INTERRUPTS.arm()
        exec(compile(source, "<stdin>", kind), world)
    except SystemExit:
        raise SoftReset from None
    except KeyboardInterrupt:
        return 'Traceback (most recent call last):\n  File "<stdin>", line 1, in <module>\nKeyboardInterrupt: \n'
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)[1:]
        where = "".join(f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}\n' for frame in frames)
        what = f"{type(error).__name__}: {getattr(error, 'msg', None) or error}\n"
        return f"Traceback (most recent call last):\n{where}{what}"
    finally:
        INTERRUPTS.armed = False
        sys.stdout.flush()
    return ""


def line(prompt: str) -> str | bytes:
    """A line as typed with echo, or the control key that ended it."""
    say(prompt)
    typed = bytearray()
    while True:
        byte = key()
        if byte in (b"\r", b"\n"):
            say("\n")
            return typed.decode("utf-8", "replace")
        if byte in (RAW, NORMAL, INTR, PASTE) or (byte == SOFT and not typed):
            return byte
        if byte in (b"\x08", b"\x7f"):
            if typed:
                typed.pop()
                say("\b \b")
        elif byte >= b" " or byte == b"\t":
            typed += byte
            os.write(1, byte)


def friendly(world: dict[str, Any]) -> None:
    """The REPL for people, until ^A."""
    lines: list[str] = []
    while True:
        got = line("... " if lines else ">>> ")
        if isinstance(got, bytes):
            lines.clear()
            if got == RAW:
                say("\n")
                return
            if got == SOFT:
                say("\n")
                raise SoftReset
            if got == PASTE:
                paste(world)
            else:
                say("\n" if got == INTR else f"\n{BANNER}")
            continue
        lines.append(got)
        source = "\n".join(lines)
        try:
            if codeop.compile_command(source, "<stdin>", "single") is None:
                continue
        except (SyntaxError, ValueError, OverflowError):
            pass  # said when it runs
        lines.clear()
        if source.strip():
            say(run(source, "single", world))


def paste(world: dict[str, Any]) -> None:
    """Lines that are run together, until ^D."""
    say("\npaste mode; Ctrl-C to cancel, Ctrl-D to finish\n=== ")
    typed = bytearray()
    while (byte := key()) not in (INTR, SOFT):
        typed += b"\n" if byte == b"\r" else byte
        say("\n=== " if byte == b"\r" else byte.decode("latin-1"))
    say("\n")
    if byte == SOFT:
        say(run(typed.decode("utf-8", "replace"), "exec", world))


def raw(world: dict[str, Any]) -> None:
    """The REPL for tools, until ^B. Nothing is echoed."""
    say(RAW_BANNER)
    typed = bytearray()
    while True:
        byte = key()
        if byte == NORMAL:
            say("\n")
            return
        if byte == RAW:
            typed.clear()
            say(RAW_BANNER)
        elif byte == INTR:
            typed.clear()
        elif byte == PASTE:  # ^E A ^A asks for raw paste
            if key() + key() == b"A\x01":
                say("R\x00")
        elif byte == SOFT:
            if not typed:
                say("OK\nMPY: soft reboot\n")
                world.clear()
                say(RAW_BANNER)
                continue
            source, typed = typed.decode("utf-8", "replace"), bytearray()
            say("OK")
            error = run(source, "exec", world)
            say(f"\x04{error}\x04>")
        else:
            typed += byte


def main() -> None:
    """Live until the board loses power."""
    mode = termios.tcgetattr(0)
    mode[0] &= ~(termios.ICRNL | termios.IXON)
    mode[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
    mode[6][termios.VQUIT] = mode[6][termios.VSUSP] = b"\x00"
    mode[3] |= termios.NOFLSH  # ^C takes nothing with it that was typed
    termios.tcsetattr(0, termios.TCSANOW, mode)
    signal.signal(signal.SIGINT, INTERRUPTS)
    sys.modules["machine"] = machine()
    time.sleep_ms = lambda ms: time.sleep(ms / 1000)  # type: ignore[attr-defined]
    while True:
        world: dict[str, Any] = {"__name__": "__main__"}
        say(BANNER)
        try:
            while True:
                friendly(world)
                raw(world)
                say(BANNER)
        except SoftReset:
            say("MPY: soft reboot\n")


if __name__ == "__main__":
    main()
