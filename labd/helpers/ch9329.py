"""a CH9329: a chip (in many KVM cables) that is a USB keyboard and mouse to the target, driven over a serial port.

A program of its own (`labd helper ch9329 …`) and what input hooks call. Frames are `57 AB 00 CMD LEN DATA SUM`, the
last byte the sum of all before it; the chip answers each with CMD|80 or, where it failed, CMD|C0 and a reason (WCH,
CH9329 communication protocol). The rate is found by asking: chips come with 9600 and are often set to 115200.
"""

import argparse
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from labd.errors import LabdError, TimedOut, Unreachable, Usage
from labd.helpers import _input
from labd.helpers._tty import Tty
from labd.hid import reports
from labd.hid.device import Pace
from labd.hid.words import FAR

HEAD = b"\x57\xab\x00"
INFO, KEYBOARD, ABSOLUTE, RELATIVE, GET_CONFIG, SET_CONFIG, RESET = 0x01, 0x02, 0x04, 0x05, 0x08, 0x09, 0x0F
OK, FAILED = 0x80, 0xC0
REASONS = {
    0xE1: "it heard only a part of the frame in time",
    0xE2: "it did not recognise the frame's head",
    0xE3: "it does not know the command",
    0xE4: "the checksum was wrong",
    0xE5: "a value was wrong",
    0xE6: "it could not do it",
}
#: What the chip did not carry out, and may be told again.
UNHEARD = (0xE1, 0xE2, 0xE4)

#: The rates that are tried, and the seconds that each has for an answer.
RATES = (115200, 57600, 9600)
PROBE_SECONDS, ANSWER_SECONDS = 0.3, 0.6
#: The axes of the chip's absolute pointer go to this.
FAR_THERE = 4095
#: Bytes of its configuration, and where the rate is in it, high byte first.
CONFIG_BYTES, RATE_AT = 50, 3
SETTABLE = (9600, 19200, 38400, 57600, 115200)

USAGE = (
    "ch9329 -d DEV [-b BAUD] WORDS, or info, or baud RATE. DEV is the serial port that the chip is on; BAUD is its "
    "rate (default: 115200, 57600 and 9600 are tried). WORDS are those of labd hid send; the chip answers each "
    "report, so exit 0 means that it took all of them. info is JSON: version, whether the target has taken up the "
    "keyboard, lock lights, rate. baud stores another rate in the chip. Exit codes: 0 done, 1 the chip refused, 2 bad "
    "usage and nothing sent, 5 no answer in time, 6 another program has the port, 7 no port, no chip, or no target "
    "behind it."
)
EXAMPLES = (
    ("ch9329 -d /dev/ttyUSB0 type hello", "type on the target's keyboard"),
    ("ch9329 -d /dev/ttyUSB0 combo ctrl alt delete", "keys together"),
    ("ch9329 -d /dev/ttyUSB0 info", "is there a chip, and a target behind it"),
    ("ch9329 -d /dev/ttyUSB0 -b 9600 baud 115200", "make it quicker, for good"),
)


class Chip:
    """The chip on an open port, at a rate at which it answers."""

    implementation = "ch9329 move moveabs info"
    most_keys = reports.BOOT_KEYS
    lacks: frozenset[int] = frozenset()

    def __init__(self, tty: Tty, baud: int) -> None:
        self.tty = tty
        self.baud = baud
        self.answer_s = ANSWER_SECONDS

    # --- an input device ---------------------------------------------------------------------------------------------

    def keys(self, held: Sequence[int], before: Sequence[int]) -> None:
        """Exactly these keys are down now."""
        self.ask(KEYBOARD, reports.keyboard(held))

    def buttons(self, held: Collection[str], before: Collection[str]) -> None:
        """Exactly these mouse buttons are down now, told by its relative mouse: the other one's would move it."""
        self._relative(held)

    def move(self, dx: int, dy: int, held: Collection[str]) -> None:
        """Move the pointer by this, in as many steps as a byte an axis needs."""
        for n in range(max(len(reports.parts(dx)), len(reports.parts(dy)))):
            self._relative(held, *((reports.parts(by)[n : n + 1] or [0])[0] for by in (dx, dy)))

    def point(self, x: int, y: int, held: Collection[str]) -> None:
        """Move the pointer there, from a step beside it: a host takes no notice of a place that it has heard last."""
        at_x, at_y = round(x * FAR_THERE / FAR), round(y * FAR_THERE / FAR)
        for beside in (1 if at_x < FAR_THERE else -1, 0):
            place = (at_x + beside).to_bytes(2, "little") + at_y.to_bytes(2, "little")
            self.ask(ABSOLUTE, bytes([2, reports.buttons(held)]) + place + b"\0")

    def scroll(self, notches: int, held: Collection[str]) -> None:
        """Turn the wheel."""
        for part in reports.parts(notches):
            self._relative(held, wheel=part)

    def release_all(self) -> None:
        """Let go of every key and button: the chip knows only what a report says."""
        self.keys((), ())
        self._relative(())

    def ping(self) -> None:
        """Raise unless the chip answers."""
        self.info()

    def ready(self) -> None:
        """Raise unless the target has taken up the keyboard."""
        if not self.info().connected:
            raise Unreachable(f"the CH9329 at {self.tty.path} answers, but no running target is on its USB side; "
                              "nothing was sent")  # fmt: skip

    def settled(self) -> None:
        """The chip has answered each report."""

    def _relative(self, held: Collection[str], dx: int = 0, dy: int = 0, wheel: int = 0) -> None:
        self.ask(RELATIVE, bytes([1, reports.buttons(held), dx & 0xFF, dy & 0xFF, wheel & 0xFF]))

    # --- the chip itself ---------------------------------------------------------------------------------------------

    def info(self) -> "Info":
        """What the chip says of itself and its target."""
        data = self.ask(INFO)
        if len(data) < 3:
            raise LabdError(f"the CH9329 at {self.tty.path} tells only {data.hex()} of itself")
        lights = {name: bool(data[2] & 1 << bit) for bit, name in enumerate(("num_lock", "caps_lock", "scroll_lock"))}
        return Info(f"1.{data[0] - 0x30}", data[1] == 1, lights, self.baud)

    def store_baud(self, baud: int) -> None:
        """Have it speak at `baud` from now on, and after its next power-up; returns once it does."""
        config = self.ask(GET_CONFIG)
        if len(config) != CONFIG_BYTES:
            raise LabdError(f"the CH9329 at {self.tty.path} gave {len(config)} bytes of configuration, not "
                            f"{CONFIG_BYTES}; nothing was changed")  # fmt: skip
        self.ask(SET_CONFIG, config[:RATE_AT] + baud.to_bytes(4, "big") + config[RATE_AT + 4 :])
        self.ask(RESET)
        self.tty.set_baud(baud)
        self.baud = baud
        end = time.monotonic() + 3
        while True:  # it is deaf while it starts
            try:
                self.ping()
                return
            except TimedOut:
                if time.monotonic() > end:
                    raise

    def ask(self, command: int, data: bytes = b"") -> bytes:
        """The data of the chip's answer. Raises TimedOut, or LabdError with its reason."""
        for last in (False, True):
            self.tty.forget()
            self.tty.write(frame(command, data))
            kind, answer = self._answer(command)
            reason = answer[0] if answer else 0
            if kind == command | OK and (command in (INFO, GET_CONFIG) or reason == 0):
                return answer
            if reason not in UNHEARD or last:
                break
        why = REASONS.get(reason, f"reason {reason:#x}")
        raise LabdError(f"the CH9329 at {self.tty.path} refuses command {command:#04x}: {why}")

    def _answer(self, command: int) -> tuple[int, bytes]:
        deadline = time.monotonic() + self.answer_s
        data = b""
        while True:
            for kind, payload in frames(data):
                if kind in (command | OK, command | FAILED):
                    return kind, payload
            more = self.tty.read(deadline)
            if not more:
                raise TimedOut(f"the CH9329 at {self.tty.path} did not answer at {self.baud} baud")
            data += more


class Info(NamedTuple):
    """What a chip says of itself: its version, whether a target has taken up its keyboard, the lights, its rate."""

    chip_version: str
    connected: bool
    lights: dict[str, bool]
    baud: int


def frame(command: int, data: bytes) -> bytes:
    """One frame on the wire."""
    body = HEAD + bytes([command, len(data)]) + data
    return body + bytes([sum(body) & 0xFF])


def frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(CMD, DATA) of every whole frame with a right sum in `data`, whatever is between them."""
    at = data.find(HEAD[:2])
    while at >= 0 and len(data) >= at + 6:
        end = at + 5 + data[at + 4]
        if len(data) > end and sum(data[at:end]) & 0xFF == data[end]:
            yield data[at + 3], data[at + 5 : end]
            at = data.find(HEAD[:2], end + 1)
        else:
            at = data.find(HEAD[:2], at + 1)


def find(tty: Tty, rates: Sequence[int]) -> Chip:
    """The chip at the first of `rates` at which it answers. Raises Unreachable."""
    for rate in rates:
        tty.set_baud(rate)
        chip = Chip(tty, rate)
        chip.answer_s = PROBE_SECONDS
        try:
            chip.ping()
        except TimedOut:
            continue
        chip.answer_s = ANSWER_SECONDS
        return chip
    tried = ", ".join(map(str, rates))
    raise Unreachable(f"no CH9329 answers at {tty.path}, tried at {tried} baud", hint="labd discover")


def _info(said: Sequence[str]) -> _input.Act:
    if said:
        raise Usage(f"info takes no words: {' '.join(said)}")

    def act(chip: Chip) -> str:
        info = chip.info()
        told = {"chip_version": info.chip_version, "target_connected": info.connected, **info.lights, "baud": info.baud}
        return json.dumps(told) + "\n"

    return act


def _baud(said: Sequence[str]) -> _input.Act:
    if len(said) != 1 or not said[0].isdigit() or int(said[0]) not in SETTABLE:
        raise Usage(f"baud takes one of {', '.join(map(str, SETTABLE))}")

    def act(chip: Chip) -> str:
        chip.store_baud(int(said[0]))
        return f"{said[0]}\n"

    return act


def _rate(text: str) -> int:
    if not text.isdigit() or int(text) not in SETTABLE:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(map(str, SETTABLE))}")
    return int(text)


def _address(args: argparse.Namespace, env: Mapping[str, str]) -> str:
    return str(args.device)


@contextmanager
def _connect(args: argparse.Namespace, address: str, place: str) -> Iterator[Chip]:
    with Tty(address, args.baud or RATES[0]) as tty:
        yield find(tty, [args.baud] if args.baud else RATES)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-d", "--device", required=True, metavar="DEV", help="the serial port that the chip is on")
    parser.add_argument("-b", "--baud", type=_rate, metavar="BAUD", help="its rate (default: found out)")


PROGRAM = _input.Program(
    name="ch9329",
    summary="Keyboard and mouse through a CH9329, the chip of many KVM cables.",
    usage=USAGE,
    examples=EXAMPLES,
    options=_options,
    address=_address,
    connect=_connect,
    own={"info": _info, "baud": _baud},
    pace=Pace(char_hold=0.008, char_gap=0.007),
)

if __name__ == "__main__":
    raise SystemExit(_input.as_program(PROGRAM))
