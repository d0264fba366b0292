"""hidgadget: the reports that it writes, a target that fetches none, and the gadget that it makes."""

import os
from pathlib import Path

import pytest

from labd.errors import LabdError
from labd.helpers import hidgadget
from labd.hid import keys
from tests.helpers.input_run import run


class Fifos:
    """A keyboard and a pointer whose reports are read from FIFOs, held open as a target's USB host holds them."""

    def __init__(self, folder: Path) -> None:
        self.paths = [str(folder / "hidg0"), str(folder / "hidg1")]
        for path in self.paths:
            os.mkfifo(path)
        self.fds = [os.open(path, os.O_RDWR | os.O_NONBLOCK) for path in self.paths]
        self.flags = ("-k", self.paths[0], "-p", self.paths[1])

    def reports(self, which: int, length: int) -> list[str]:
        try:
            data = os.read(self.fds[which], 65536)
        except BlockingIOError:
            return []
        return [data[at : at + length].hex() for at in range(0, len(data), length)]


@pytest.fixture
def gadget(tmp_path: Path):
    made = Fifos(tmp_path)
    yield made
    for fd in made.fds:
        os.close(fd)


def test_reports_are_those_of_its_descriptors(gadget: Fifos, home: Path) -> None:
    assert run(hidgadget.PROGRAM, home, *gadget.flags, "type", "A") == (0, "", "")
    assert gadget.reports(0, 8) == ["0200040000000000", "0000000000000000"]
    assert run(hidgadget.PROGRAM, home, *gadget.flags, "moveabs", "4660", "32767")[0] == 0
    assert run(hidgadget.PROGRAM, home, *gadget.flags, "click", "right")[0] == 0
    assert gadget.reports(1, 6) == ["003412ff7f00", "023412ff7f00", "003412ff7f00"]
    assert run(hidgadget.PROGRAM, home, *gadget.flags, "releaseall")[0] == 0
    assert (gadget.reports(0, 8), gadget.reports(1, 6)) == (["0000000000000000"], ["003412ff7f00"])


def test_a_target_that_fetches_nothing_is_exit_5(gadget: Fifos, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidgadget, "FETCH_SECONDS", 0.1)
    full = b"\0" * 65536
    while full:
        try:
            full = full[os.write(gadget.fds[0], full) :] or full
        except BlockingIOError:
            break
    code, _, err = run(hidgadget.PROGRAM, home, *gadget.flags, "key", "a")
    assert code == 5 and "the target fetches no reports" in err


def test_no_gadget_is_exit_7_with_what_makes_one(home: Path) -> None:
    code, _, err = run(hidgadget.PROGRAM, home, "-k", str(home / "none"), "key", "a")
    assert code == 7 and "labd helper hidgadget setup" in err


def test_the_gadget_is_made_in_configfs_and_bound_to_its_controller(tmp_path: Path) -> None:
    place = tmp_path / "labd"
    hidgadget.set_up(str(place), "dummy_udc.0")
    read = {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*") if file.is_file()}
    assert read["UDC"] == b"dummy_udc.0" and read["idVendor"] == b"0x1d6b"
    assert read["functions/hid.keyboard/report_desc"] == hidgadget.KEYBOARD_DESCRIPTOR
    assert (read["functions/hid.keyboard/report_length"], read["functions/hid.pointer/report_length"]) == (b"8", b"6")
    assert (place / "configs/c.1/hid.pointer").resolve() == place / "functions/hid.pointer"
    with pytest.raises(LabdError, match="can't be made"):
        hidgadget.set_up(str(tmp_path / "labd" / "UDC" / "x"), "y")


def test_the_keyboards_descriptor_lets_every_key_of_ours_through() -> None:
    highest = max(usage for usage in keys.NAMED.values() if usage not in keys.MODIFIERS)
    logical = hidgadget.KEYBOARD_DESCRIPTOR.split(b"\x26")[1][:2]
    usages = hidgadget.KEYBOARD_DESCRIPTOR.split(b"\x2a")[1][:2]
    assert logical == usages and int.from_bytes(logical, "little") >= highest
