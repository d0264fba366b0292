"""All cases, by number, and those of the list that can't exist here."""

from __future__ import annotations

from tests.torture import cases_bytes, cases_match, cases_port
from tests.torture.stage import Absent, Case


def _order(number: str) -> tuple[bool, int, str]:
    digits = "".join(filter(str.isdigit, number))
    return (number.startswith("M"), int(digits), number)


CASES: tuple[Case, ...] = tuple(
    sorted((*cases_bytes.CASES, *cases_match.CASES, *cases_port.CASES), key=lambda case: _order(case.number))
)

ABSENT: tuple[Absent, ...] = (
    Absent(
        "20",
        "two adapters with one by-id name",
        "needs udev and two USB adapters; the naming rule itself is tested on a "
        "made-up machine in tests/platform/test_naming.py",
    ),
    Absent(
        "29",
        "macOS: /dev/tty.* blocks in open",
        "macOS with a USB adapter; the rule cu.* for tty.* is tested in tests/platform/test_macos.py",
    ),
    Absent(
        "30",
        "kqueue refuses a descriptor (EINVAL)",
        "macOS; the fall-back to a thread with select is tested in tests/platform/test_macos.py",
    ),
    Absent("31", "FTDI's latency timer", "a real FTDI adapter"),
    Absent(
        "34", "a stale or made-up video frame", "not of a serial port: tests/video holds it; no peer here has video"
    ),
    Absent("35", "text recognition errors", "not of a serial port: tests/ocr holds it; no peer here has video"),
    Absent("M1", "a hook's children outlive its cancellation", "not of a serial port: tests/test_hookrun.py holds it"),
    Absent("M4", "the wall clock jumps while logging", "would need this machine's clock to be set"),
    Absent(
        "M5",
        "a node that is root's until udev has finished",
        "permissions stop nobody when the suite runs as root, as it does in containers",
    ),
    Absent("M6", "an adapter that is enumerated but dead", "a real USB stack; a silent port is `open` on a PTY too"),
    Absent(
        "M7",
        "O_NONBLOCK left on the caller's terminal",
        "belongs to interactive terminals (`labd serial connect`), not to a capture",
    ),
    Absent("M8", "fixture names of pytest plugins collide", "no input of a console; tests/client has it"),
)
