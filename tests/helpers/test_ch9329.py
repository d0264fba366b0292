"""ch9329 against a chip on a pseudo-terminal: frames and sums, the rate, refusals, a target that is not there."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from labd.helpers import ch9329
from tests.helpers.fake_ch9329 import FakeCh9329
from tests.helpers.input_run import run


@pytest.fixture
def chip() -> Iterator[FakeCh9329]:
    fake = FakeCh9329(115200)
    yield fake
    fake.close()


def test_the_frames_of_the_chips_document() -> None:
    assert ch9329.frame(0x01, b"").hex() == "57ab00010003"
    assert ch9329.frame(0x02, bytes.fromhex("0000040000000000")).hex() == "57ab000208000004000000000010"
    noisy = b"\x57\x57\xab\x00\x81\x01\x00\x99" + bytes.fromhex("57ab00820100 85".replace(" ", "")) + b"\x57\xab"
    assert list(ch9329.frames(noisy)) == [(0x82, b"\x00")]


def test_keys_and_the_mouse(chip: FakeCh9329, home: Path) -> None:
    assert run(ch9329.PROGRAM, home, "-d", chip.path, "type", "A") == (0, "", "")
    assert chip.sent == ["02 0200040000000000", "02 0000000000000000"]
    chip.taken.clear()
    run(ch9329.PROGRAM, home, "-d", chip.path, "moveabs", "32767", "0")
    assert chip.sent == ["04 0200fe0f000000", "04 0200ff0f000000"]
    chip.taken.clear()
    run(ch9329.PROGRAM, home, "-d", chip.path, "move", "-130", "5")
    assert chip.sent == ["05 0100810500", "05 0100fd0000"]
    chip.taken.clear()
    run(ch9329.PROGRAM, home, "-d", chip.path, "click", "middle")
    assert chip.sent == ["05 0104000000", "05 0100000000"]
    chip.taken.clear()
    run(ch9329.PROGRAM, home, "-d", chip.path, "scroll", "-1")
    run(ch9329.PROGRAM, home, "-d", chip.path, "releaseall")
    assert chip.sent == ["05 01000000ff", "02 0000000000000000", "05 0100000000"]


def test_the_rate_is_found_by_asking(home: Path) -> None:
    chip = FakeCh9329(9600)
    try:
        code, out, err = run(ch9329.PROGRAM, home, "-d", chip.path, "info")
        assert (code, err) == (0, "")
        assert json.loads(out) == {"chip_version": "1.1", "target_connected": True, "num_lock": False,
                                   "caps_lock": True, "scroll_lock": False, "baud": 9600}  # fmt: skip
        assert chip.heard_at == {115200, 57600, 9600}
        code, _, err = run(ch9329.PROGRAM, home, "-d", chip.path, "-b", "115200", "ping")
        assert code == 7 and "tried at 115200 baud" in err
    finally:
        chip.close()


def test_another_rate_is_stored_and_used_from_then_on(home: Path) -> None:
    chip = FakeCh9329(9600)
    try:
        assert run(ch9329.PROGRAM, home, "-d", chip.path, "-b", "9600", "baud", "115200") == (0, "115200\n", "")
        assert (chip.rate, chip.stored) == (115200, 115200)
        assert run(ch9329.PROGRAM, home, "-d", chip.path, "baud", "12345")[0] == 2
    finally:
        chip.close()


def test_a_frame_that_was_not_heard_is_sent_again_and_a_refusal_is_told(chip: FakeCh9329, home: Path) -> None:
    chip.noise = b"\x00\x57\xab"
    chip.fail = [0xE4]
    assert run(ch9329.PROGRAM, home, "-d", chip.path, "-b", "115200", "ping")[0] == 0
    chip.fail = [0xE4, 0xE4]
    code, _, err = run(ch9329.PROGRAM, home, "-d", chip.path, "-b", "115200", "ping")
    assert code == 1 and "the checksum was wrong" in err
    chip.fail = [0xE5]
    code, _, err = run(ch9329.PROGRAM, home, "-d", chip.path, "-b", "115200", "ping")
    assert code == 1 and "a value was wrong" in err


def test_a_target_that_is_off_is_told_and_nothing_is_sent(chip: FakeCh9329, home: Path) -> None:
    chip.connected = False
    code, out, err = run(ch9329.PROGRAM, home, "-d", chip.path, "type", "hello")
    assert (code, out) == (7, "") and "no running target" in err and chip.sent == []
    assert run(ch9329.PROGRAM, home, "-d", chip.path, "version") == (0, "1 ch9329 move moveabs info\n", "")
