"""The parts of a checked DUT file, as frozen data. Built by `loopback.dutfile`, read by everything else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from .template import Lookup, Template

PIECE = 16384


@dataclass(frozen=True)
class Line:
    """The serial line's settings. `byte_s` is the time of one character, 0 on an unpaced line."""

    baud: int = 115200
    bytesize: int = 8
    parity: str = "none"
    stopbits: int = 1
    flow: str = "none"
    fifo: int = 4096

    @property
    def byte_s(self) -> float:
        bits = 1 + self.bytesize + (self.parity != "none") + self.stopbits
        return bits / self.baud if self.baud else 0.0


@dataclass(frozen=True)
class Step:
    """One step of a script: first `wait_ms`, then `data`, or else `text` rendered, `count` times, `every_ms` apart."""

    wait_ms: float
    text: Template
    data: bytes
    count: int
    every_ms: int

    def pieces(self, look: Lookup, encoded: Callable[[str], bytes]) -> Iterator[bytes]:
        """What to send, each piece of a size that fits a buffer unless its own is larger."""
        plain = not any(field.name == "n" for field in self.text.fields)
        one = self.data or (encoded(self.text.render(look)) if plain else b"")
        batch = 1 if self.every_ms else max(1, PIECE // len(one)) if one else 64
        for first in range(1, self.count + 1, batch):
            numbers = range(first, min(first + batch, self.count + 1))
            if plain:
                yield one * len(numbers)
            else:
                yield b"".join(encoded(self.text.render(_counted(look, number))) for number in numbers)


def _counted(look: Lookup, number: int) -> Lookup:
    return lambda name, arg: format(number, arg) if name == "n" else look(name, arg)


@dataclass(frozen=True)
class Wires:
    """What the modem lines of a served port are wired to: `dtr` "reset", "rise", "power-button" or "none"."""

    dtr: str = "reset"
    hold_ms: int = 4000


@dataclass(frozen=True)
class DamageSpec:
    """Bytes that the cable drops (`bit` None) or flips from the beginning; `above` in bytes a second."""

    bit: int | None
    every: int
    count: int
    direction: str
    above: int


@dataclass(frozen=True)
class Act:
    """What happens besides printing."""

    goto: str | None = None
    reboot: bool = False
    wander_ms: int = 0
    stall_ms: int = 0


@dataclass(frozen=True)
class After:
    """Spontaneous output `ms` after the last input (`since` "input") or the entry."""

    ms: int
    print: Template
    act: Act
    since: str
    repeat: bool


@dataclass(frozen=True)
class Respond:
    """One answer."""

    match: re.Pattern[str]
    reply: Template
    act: Act
    delay_ms: int
    line_ms: int
    prompt: bool
    steps: tuple[Step, ...]
    later: tuple[Step, ...]
    status: int
    set: tuple[tuple[str, Template], ...]
    setenv: tuple[tuple[Template, Template], ...]
    unsetenv: Template
    saveenv: bool
    when_env: Template
    flood: str
    flood_rate: Template


@dataclass(frozen=True)
class Countdown:
    """An autoboot countdown."""

    seconds: Template
    text: Template
    tick_ms: int
    goto: str
    interrupt: str


@dataclass(frozen=True)
class XmodemSpec:
    """A file transfer. `role` "receive" or "send"; `bad` are the numbers of blocks that fail once."""

    role: str
    crc: bool
    size: int
    wait_ms: int
    bad: tuple[int, ...]
    content: tuple[Step, ...]
    goto: str
    failed: str


@dataclass(frozen=True)
class FloodSpec:
    """Numbered lines without end."""

    line: Template
    rate: int
    start: bool
    first: int


@dataclass(frozen=True)
class KernelSpec:
    """Lines that the board's kernel writes on the console, and where: each number n is "every n-th", 0 is never."""

    lines: tuple[Template, ...]
    prompt: Template
    mid_line: int
    between: int
    before_prompt: int
    after_prompt: int
    in_echo: int
    every_ms: int


@dataclass(frozen=True)
class ProgramSpec:
    """A real program that is the board. `built_in` says that the package's own file names it."""

    argv: tuple[Template, ...]
    argv_or: tuple[Template, ...]
    env: tuple[tuple[str, Template], ...]
    files: tuple[tuple[str, Template], ...]
    copies: tuple[str, ...]
    columns: int
    rows: int
    restart_ms: int
    prompt: Template
    ask_position: bool
    built_in: bool


@dataclass(frozen=True)
class State:
    """One state of the board."""

    name: str
    enter: Template
    steps: tuple[Step, ...]
    then: str | None
    mode: str
    echo: bool
    prompt: Template
    unknown: Template
    shell: bool
    line_ms: int
    poll_ms: int
    countdown: Countdown | None
    xmodem: XmodemSpec | None
    flood: FloodSpec | None
    after: tuple[After, ...]
    respond: tuple[Respond, ...]


@dataclass(frozen=True)
class Dut:
    """A whole board, checked."""

    name: str
    file: str
    title: str
    description: str
    start: str
    boot: str
    settle_ms: int
    banner: Template
    eol: str
    encoding: str
    line: Line
    input_fifo: int
    variables: Mapping[str, str]
    env: Mapping[str, str]
    texts: Mapping[str, Template]
    states: Mapping[str, State]
    wires: Wires = field(default=Wires())
    damage: tuple[DamageSpec, ...] = ()
    kernel: KernelSpec | None = None
    program: ProgramSpec | None = None
    needs: tuple[str, ...] = field(default=())

    def encoded(self, text: str) -> bytes:
        """`text` as the board sends it: its line ends, its encoding."""
        text = text.replace("\r\n", "\n").replace("\n", self.eol)
        return text.encode(self.encoding, "surrogateescape" if self.encoding == "utf-8" else "replace")
