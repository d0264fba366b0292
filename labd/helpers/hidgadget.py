"""this machine as a USB keyboard and mouse: reports for the /dev/hidgN of a Linux USB gadget, such as a Pi's.

A program of its own (`labd helper hidgadget …`) and what input hooks call. The gadget is a boot keyboard (reports of 8
bytes) and an absolute pointer (6: buttons, x and y 0 to 32767 with the low byte first, wheel), as KEYBOARD_DESCRIPTOR
and POINTER_DESCRIPTOR say; `setup` makes such a gadget, as root.
"""

import argparse
import os
import select
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from labd.errors import LabdError, TimedOut, Unreachable, Usage
from labd.helpers import _input
from labd.hid import reports

#: Seconds in which the target has to fetch a report.
FETCH_SECONDS = 2.0

USAGE = (
    "hidgadget [-k DEV] [-p DEV] WORDS, or setup [UDC]. DEV are the gadget's keyboard and absolute pointer (default "
    "/dev/hidg0 and /dev/hidg1). WORDS are those of labd hid send. setup makes the gadget through configfs, as root, "
    "on the USB device controller UDC (default: the only one). Exit 0 means that the target's USB host has room for "
    "every report or fetched it. Exit codes: 0 done, 1 failed, 2 bad usage and nothing sent, 5 the target fetches "
    "none, 7 no gadget, or no target at its USB port."
)
EXAMPLES = (
    ("hidgadget setup", "become a keyboard and pointer, as root"),
    ("hidgadget type hello", "type on the target"),
    ("hidgadget -k /dev/hidg2 key f12", "another gadget's keyboard"),
)

#: A boot keyboard (HID 1.11, appendix B.1), with all keys up to usage DD.
KEYBOARD_DESCRIPTOR = bytes.fromhex(
    "05010906a101050719e029e71500250175019508810295017508810395057501050819012905910295017503910395067508150026dd0005"
    "0719002add008100c0"
)
#: Three buttons, absolute X and Y from 0 to 32767, and a wheel.
POINTER_DESCRIPTOR = bytes.fromhex(
    "05010902a1010901a10005091901290315002501950375018102950175058103"
    "050109300931150026ff7f75109502810209381581257f750895018106c0c0"
)

GADGET = "/sys/kernel/config/usb_gadget/labd"
_FILES = {
    "idVendor": "0x1d6b",  # the Linux Foundation's, and its multifunction composite gadget
    "idProduct": "0x0104",
    "bcdUSB": "0x0200",
    "strings/0x409/manufacturer": "labd",
    "strings/0x409/product": "labd keyboard and pointer",
    "strings/0x409/serialnumber": "1",
    "configs/c.1/MaxPower": "100",
}


class Gadget(reports.Reporter):
    """The two devices of a gadget, opened as they are needed."""

    implementation = "hidgadget moveabs"
    most_keys = reports.BOOT_KEYS
    lacks: frozenset[int] = frozenset()

    def __init__(self, keyboard: str, pointer: str, place: reports.Place) -> None:
        self.keyboard = keyboard
        self.pointer = pointer
        super().__init__(place)
        self._open: dict[str, int] = {}

    def close(self) -> None:
        """Close what is open."""
        for fd in self._open.values():
            os.close(fd)
        self._open = {}

    def send_keyboard(self, report: bytes) -> None:
        """Send a keyboard's report."""
        self._report(self.keyboard, report)

    def send_pointer(self, report: bytes) -> None:
        """Send a pointer's report."""
        self._report(self.pointer, report)

    def release_all(self) -> None:
        """Let go of every key and button, where there is a pointer."""
        self.keys((), ())
        if os.path.exists(self.pointer):
            self.mouse(())

    def ping(self) -> None:
        """Raise unless the keyboard is there."""
        self._fd(self.keyboard)

    ready = ping

    def settled(self) -> None:
        """A report is written when the one before it has been fetched."""

    def _fd(self, path: str) -> int:
        if path not in self._open:
            try:
                self._open[path] = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                raise Unreachable(
                    f"{path} can't be opened: {error.strerror}", hint="labd helper hidgadget setup"
                ) from None
        return self._open[path]

    def _report(self, path: str, report: bytes) -> None:
        fd, end = self._fd(path), time.monotonic() + FETCH_SECONDS
        while True:
            try:
                os.write(fd, report)
                return
            except BlockingIOError:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimedOut(f"{path}: the target fetches no reports") from None
                select.select([], [fd], [], left)
            except OSError as error:
                raise Unreachable(f"{path}: no running target is at the gadget's USB port ({error.strerror})") from None


def set_up(gadget: str, controller: str) -> None:
    """Make the gadget at `gadget` in configfs and bind it to a USB device controller. Raises LabdError."""
    functions = {"hid.keyboard": (1, 8, KEYBOARD_DESCRIPTOR), "hid.pointer": (0, 6, POINTER_DESCRIPTOR)}
    try:
        for folder in ("", "strings/0x409", "configs/c.1"):
            os.makedirs(os.path.join(gadget, folder), exist_ok=True)
        for name, value in _FILES.items():
            _write(os.path.join(gadget, name), value.encode())
        for name, (protocol, length, descriptor) in functions.items():
            folder = os.path.join(gadget, "functions", name)
            os.makedirs(folder, exist_ok=True)
            _write(os.path.join(folder, "protocol"), b"%d" % protocol)
            _write(os.path.join(folder, "subclass"), b"%d" % protocol)
            _write(os.path.join(folder, "report_length"), b"%d" % length)
            _write(os.path.join(folder, "report_desc"), descriptor)
            link = os.path.join(gadget, "configs/c.1", name)
            if not os.path.islink(link):
                os.symlink(folder, link)
        _write(os.path.join(gadget, "UDC"), controller.encode())
    except OSError as error:
        raise LabdError(
            f"the gadget can't be made: {error.filename}: {error.strerror}",
            hint="as root, after sudo modprobe libcomposite; sudo mount -t configfs none /sys/kernel/config",
        ) from None


def controllers(folder: str = "/sys/class/udc") -> list[str]:
    """The USB device controllers of this machine."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def _setup(said: Sequence[str]) -> _input.Act:
    there = controllers()
    if len(said) > 1 or (said and said[0] not in there):
        raise Usage(f"setup takes a USB device controller; there is {', '.join(there) or 'none'}")
    if not said and len(there) != 1:
        raise Unreachable(f"which USB device controller? There is {', '.join(there) or 'none on this machine'}")

    def act(device: Gadget) -> str:
        set_up(GADGET, (said or there)[0])
        return f"{device.keyboard} {device.pointer}\n"

    return act


def _address(args: argparse.Namespace, env: Mapping[str, str]) -> str:
    return str(args.keyboard)


@contextmanager
def _connect(args: argparse.Namespace, address: str, place: str) -> Iterator[Gadget]:
    gadget = Gadget(args.keyboard, args.pointer, reports.Place(f"{place}.at"))
    try:
        yield gadget
    finally:
        gadget.close()


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-k", "--keyboard", default="/dev/hidg0", metavar="DEV", help="the keyboard (/dev/hidg0)")
    parser.add_argument("-p", "--pointer", default="/dev/hidg1", metavar="DEV", help="the pointer (/dev/hidg1)")


PROGRAM = _input.Program(
    name="hidgadget",
    summary="Be a USB keyboard and mouse, through a Linux USB gadget.",
    usage=USAGE,
    examples=EXAMPLES,
    options=_options,
    address=_address,
    connect=_connect,
    own={"setup": _setup},
)

if __name__ == "__main__":
    raise SystemExit(_input.as_program(PROGRAM))
