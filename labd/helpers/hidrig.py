"""a hidrig: a microcontroller that is a USB keyboard and absolute mouse to the target, and may switch a relay.

A program of its own (`labd helper hidrig …`) and what input hooks call. On the wire (USB serial) every frame is
`[type][b1][length][payload]`: type 1 are HID reports (b1 1: a boot keyboard's 8 bytes, 2: an absolute mouse's 6), type
2 control (b1 1 ping, 2 version, 3 power), type 3 the target's console. Only control is answered, in order, so a ping
behind the reports tells that they were taken.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from labd.errors import LabdError, TimedOut, Usage
from labd.helpers import _input
from labd.helpers._tty import Tty
from labd.hid import reports

HID, CONTROL, CONSOLE = 1, 2, 3
KEYBOARD, MOUSE = 1, 2
PING, VERSION, POWER = 1, 2, 3
POWER_VERBS = ("off", "on", "cycle")

#: Seconds that the rig has for an answer.
ANSWER_SECONDS = 1.5

USAGE = (
    "hidrig -d DEV WORDS, or power on|off|cycle [SECONDS] where the rig has a relay (1 to 255 SECONDS off, default "
    "5). DEV is the rig's serial port. WORDS are those of labd hid send. Every run ends with a ping that the rig must "
    "answer, so exit 0 means that it took all of it. move counts from where the pointer was last put. Exit codes: 0 "
    "done, 1 the rig refused, 2 bad usage and nothing sent, 5 no answer in time, 6 another program has the port, 7 no "
    "such port."
)
EXAMPLES = (
    ("hidrig -d /dev/ttyACM1 type hello", "type on the target's keyboard"),
    ("hidrig -d /dev/ttyACM1 key f2", "one key"),
    ("hidrig -d /dev/ttyACM1 moveabs 16384 16384", "the pointer to the middle of the screen"),
    ("hidrig -d /dev/ttyACM1 run keys.txt", "the commands of a file, one a line"),
    ("hidrig -d /dev/ttyACM1 power cycle 5", "the relay off for 5 s"),
)


class Rig(reports.Reporter):
    """The rig on an open port."""

    implementation = "hidrig moveabs power"
    most_keys = reports.BOOT_KEYS
    lacks: frozenset[int] = frozenset()

    def __init__(self, tty: Tty, place: reports.Place) -> None:
        self.tty = tty
        super().__init__(place)
        self._data = b""

    def send_keyboard(self, report: bytes) -> None:
        """Send a keyboard's report."""
        self.tty.write(frame(HID, KEYBOARD, report))

    def send_pointer(self, report: bytes) -> None:
        """Send a pointer's report."""
        self.tty.write(frame(HID, MOUSE, report))

    def release_all(self) -> None:
        """Let go of every key and button: the rig knows only what a report says."""
        self.keys((), ())
        self.mouse(())

    def ping(self) -> None:
        """Raise unless the rig answers."""
        self.control(PING)

    ready = ping
    settled = ping

    def control(self, what: int, payload: bytes = b"") -> str:
        """The rig's answer to a control frame. Raises TimedOut, or LabdError with the rig's refusal."""
        self._data = b""
        self.tty.forget()
        self.tty.write(frame(CONTROL, what, payload))
        said = self._answer(what).decode("utf-8", "replace").strip("\0 \r\n")
        if said.upper().startswith("ERR"):
            raise LabdError(f"the rig at {self.tty.path} refuses: {said[3:].strip(' :') or 'no reason given'}")
        return said

    def _answer(self, what: int) -> bytes:
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            while (found := _next(self._data)) is not None:
                kind, which, payload, self._data = found
                if (kind, which) == (CONTROL, what):
                    return payload
            more = self.tty.read(deadline)
            if not more:
                raise TimedOut(f"the rig at {self.tty.path} did not answer within {ANSWER_SECONDS:g} s; "
                               "is it a hidrig, and is its program running?")  # fmt: skip
            self._data += more


def frame(kind: int, which: int, payload: bytes) -> bytes:
    """One frame on the wire."""
    return bytes([kind, which, len(payload)]) + payload


def _next(data: bytes) -> tuple[int, int, bytes, bytes] | None:
    """(type, b1, payload, what follows) of the first whole frame; bytes that begin none are skipped."""
    at = 0
    while at + 1 < len(data) and not _begins(data[at], data[at + 1]):
        at += 1
    if len(data) < at + 3 or len(data) < at + 3 + data[at + 2]:
        return None
    end = at + 3 + data[at + 2]
    return data[at], data[at + 1], data[at + 3 : end], data[end:]


def _begins(kind: int, which: int) -> bool:
    return kind == CONSOLE or (kind == CONTROL and which in (PING, VERSION, POWER))


def _power(said: Sequence[str]) -> _input.Act:
    if not said or said[0] not in POWER_VERBS or len(said) > (2 if said[0] == "cycle" else 1):
        raise Usage("power takes on, off or cycle [SECONDS]", hint="labd helper hidrig --help")
    what = bytes([POWER_VERBS.index(said[0])])
    if said[0] == "cycle":
        text = said[1] if len(said) == 2 else "5"
        if not text.isdigit() or not 1 <= int(text) <= 255:
            raise Usage(f"power cycle {text}: it is 1 to 255 seconds")
        what += bytes([int(text)])

    def act(rig: Rig) -> str:
        rig.control(POWER, what)
        return "off\n" if said[0] == "off" else "on\n"

    return act


def _address(args: argparse.Namespace, env: Mapping[str, str]) -> str:
    return str(args.device)


@contextmanager
def _connect(args: argparse.Namespace, address: str, place: str) -> Iterator[Rig]:
    with Tty(address, 115200) as tty:
        yield Rig(tty, reports.Place(f"{place}.at"))


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-d", "--device", required=True, metavar="DEV", help="the rig's serial port")


PROGRAM = _input.Program(
    name="hidrig",
    summary="Keyboard and mouse through a hidrig, a microcontroller on the target's USB.",
    usage=USAGE,
    examples=EXAMPLES,
    options=_options,
    address=_address,
    connect=_connect,
    own={"power": _power},
)

if __name__ == "__main__":
    raise SystemExit(_input.as_program(PROGRAM))
