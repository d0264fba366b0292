"""hidrig against a rig on a pseudo-terminal: exact frames, what is confirmed, what is kept, what goes wrong."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labd.helpers import hidrig
from tests.conftest import until
from tests.helpers.fake_rig import FakeRig
from tests.helpers.input_run import run, start

NONE = "0101080000000000000000"


@pytest.fixture
def rig() -> Iterator[FakeRig]:
    fake = FakeRig()
    yield fake
    fake.close()


def test_frames_are_those_of_the_wire(rig: FakeRig, home: Path) -> None:
    assert run(hidrig.PROGRAM, home, "-d", rig.path, "type", "A") == (0, "", "")
    assert rig.hid == ["0101080200040000000000", NONE]
    rig.frames.clear()
    run(hidrig.PROGRAM, home, "-d", rig.path, "moveabs", "4660", "86")
    assert rig.hid == ["010206003412560000"]
    assert [frame.hex() for frame in rig.frames if frame[0] == 2] == ["020100", "020100"]
    rig.frames.clear()
    assert run(hidrig.PROGRAM, home, "-d", rig.path, "power", "cycle", "5") == (0, "on\n", "")
    assert [frame.hex() for frame in rig.frames] == ["0203020205"]


def test_exit_0_means_that_the_rig_answered_behind_all_reports(rig: FakeRig, home: Path, monkeypatch) -> None:
    run(hidrig.PROGRAM, home, "-d", rig.path, "type", "hello")
    assert [frame[0] for frame in rig.frames] == [2, *[1] * 10, 2]
    monkeypatch.setattr(hidrig, "ANSWER_SECONDS", 0.1)
    rig.mute = True
    rig.frames.clear()
    code, out, err = run(hidrig.PROGRAM, home, "-d", rig.path, "key", "a")
    assert (code, out) == (5, "") and "did not answer within 0.1 s" in err and rig.hid == []


def test_an_answer_is_found_among_console_bytes_and_noise(rig: FakeRig, home: Path) -> None:
    rig.noise = b"\xff\x00\x09" + bytes([3, 0, 4]) + b"\x02\x01\x00!" + bytes([2, 7, 1]) + b"x"
    assert run(hidrig.PROGRAM, home, "-d", rig.path, "ping") == (0, "OK\n", "")
    assert run(hidrig.PROGRAM, home, "-d", rig.path, "version") == (0, "1 hidrig moveabs power\n", "")


def test_bytes_that_only_look_like_a_frame_are_skipped() -> None:
    whole = hidrig.frame(2, 1, b"ok")
    assert hidrig._next(b"\x02\xc8\xff\x00" + whole + b"\x02") == (2, 1, b"ok", b"\x02")
    assert hidrig._next(whole[:-1]) is None and hidrig._next(b"\x02") is None and hidrig._next(b"") is None
    assert hidrig._next(hidrig.frame(3, 0, b"\x02\x01\x00") + whole)[3] == whole


def test_a_refusal_of_the_rig_is_told(rig: FakeRig, home: Path) -> None:
    rig.refusal = "ERR no relay"
    code, out, err = run(hidrig.PROGRAM, home, "-d", rig.path, "power", "on")
    assert (code, out) == (1, "") and "refuses: no relay" in err


def test_a_click_is_where_the_pointer_was_put_by_an_earlier_start(rig: FakeRig, home: Path) -> None:
    run(hidrig.PROGRAM, home, "-d", rig.path, "moveabs", "100", "200")
    run(hidrig.PROGRAM, home, "-d", rig.path, "move", "-50", "1")
    rig.frames.clear()
    run(hidrig.PROGRAM, home, "-d", rig.path, "--gap-ms", "1", "click", "right")
    assert rig.hid == ["010206023200c90000", "010206003200c90000"]


def test_releaseall_lets_go_of_the_mouse_buttons_too(rig: FakeRig, home: Path) -> None:
    run(hidrig.PROGRAM, home, "-d", rig.path, "releaseall")
    assert rig.hid == [NONE, "010206000040004000"]


def test_what_is_left_down_without_a_kept_helper_is_said(rig: FakeRig, home: Path) -> None:
    code, _, err = run(hidrig.PROGRAM, home, "-d", rig.path, "down", "shift")
    assert code == 0 and "left_shift stays down until the next command" in err and "labd hid serve" in err


def test_nothing_is_sent_for_words_that_are_wrong_anywhere_in_a_file(rig: FakeRig, home: Path) -> None:
    keys = home / "keys.txt"
    keys.write_text("key a\ntype ü\n")
    code, out, err = run(hidrig.PROGRAM, home, "-d", rig.path, "run", str(keys))
    assert (code, out) == (2, "") and f"{keys}, line 2: can't type 'ü'" in err
    code, _, err = run(hidrig.PROGRAM, home, "-d", rig.path, "key", "etner")
    assert code == 2 and "did you mean enter" in err
    code, _, err = run(hidrig.PROGRAM, home, "-d", rig.path, "powre", "on")
    assert code == 2 and "did you mean power" in err
    assert rig.frames == []


def test_a_command_file_is_played_and_counted(rig: FakeRig, home: Path) -> None:
    assert run(hidrig.PROGRAM, home, "-d", rig.path, "run", "-", stdin="key a\n# no\nkey b\n") == (
        0, "OK (2 commands)\n", "")  # fmt: skip
    assert rig.hid[::2] == ["0101080000040000000000", "0101080000050000000000"]


def test_no_port_and_no_device_are_told(home: Path) -> None:
    code, _, err = run(hidrig.PROGRAM, home, "-d", str(home / "none"), "ping")
    assert code == 7 and "No such file" in err
    code, _, err = run(hidrig.PROGRAM, home, "ping")
    assert code == 2 and "-d/--device" in err


def test_a_kept_helper_holds_keys_over_several_starts_and_lets_go_at_its_end(rig: FakeRig, home: Path) -> None:
    kept = start(hidrig.PROGRAM, home, "-d", rig.path, "serve")
    try:
        assert kept.stdout.readline() == f"serving {rig.path}\n".encode()
        assert run(hidrig.PROGRAM, home, "-d", rig.path, "down", "shift") == (0, "", "")
        began = time.monotonic()
        assert run(hidrig.PROGRAM, home, "-d", rig.path, "--hold-ms", "150", "key", "a") == (0, "", "")
        assert time.monotonic() - began > 0.15
        assert rig.hid[:3] == ["0101080200000000000000", "0101080200040000000000", "0101080200000000000000"]
        assert run(hidrig.PROGRAM, home, "-d", rig.path, "power", "off") == (0, "off\n", "")
        code, _, err = run(hidrig.PROGRAM, home, "-d", rig.path, "serve")
        assert code == 6 and "in use" in err
        kept.stdin.close()
        until("the kept helper's end", lambda: kept.poll() is not None)
        assert (kept.returncode, rig.hid[-1]) == (0, NONE)
    finally:
        kept.kill()
        kept.wait()
    assert run(hidrig.PROGRAM, home, "-d", rig.path, "ping") == (0, "OK\n", "")


def test_a_kept_helper_goes_on_with_a_rig_that_was_plugged_in_again_elsewhere(home: Path) -> None:
    first, link = FakeRig(), home / "by-id"
    os.symlink(first.path, link)
    kept = start(hidrig.PROGRAM, home, "-d", str(link), "serve")
    try:
        kept.stdout.readline()
        assert run(hidrig.PROGRAM, home, "-d", str(link), "down", "shift")[0] == 0
        code, _, err = run(hidrig.PROGRAM, home, "-d", first.path, "ping")
        assert code == 6 and "in use" in err
        second = FakeRig()
        first.close()
        code, _, err = run(hidrig.PROGRAM, home, "-d", str(link), "key", "a")
        assert code == 7 and "is gone" in err
        link.unlink()
        os.symlink(second.path, link)
        assert run(hidrig.PROGRAM, home, "-d", str(link), "key", "a") == (0, "", "")
        assert second.hid[0] == "0101080200040000000000"
        second.close()
    finally:
        kept.kill()
        kept.communicate()


def test_a_kept_helper_that_was_killed_leaves_nothing_in_the_way(rig: FakeRig, home: Path) -> None:
    kept = start(hidrig.PROGRAM, home, "-d", rig.path, "serve")
    kept.stdout.readline()
    kept.kill()
    kept.communicate()
    assert run(hidrig.PROGRAM, home, "-d", rig.path, "ping") == (0, "OK\n", "")
    again = start(hidrig.PROGRAM, home, "-d", rig.path, "serve")
    assert again.stdout.readline().startswith(b"serving")
    assert run(hidrig.PROGRAM, home, "-d", rig.path, "stop") == (0, "", "")
    assert again.communicate(timeout=20)[1] == b"" and again.returncode == 0
    code, _, err = run(hidrig.PROGRAM, home, "-d", rig.path, "stop")
    assert code == 0 and "nothing serves" in err


def test_sigterm_in_a_press_lets_go_of_the_key(rig: FakeRig, home: Path) -> None:
    one = start(hidrig.PROGRAM, home, "-d", rig.path, "--hold-ms", "60000", "key", "a")
    until("the key to be down", lambda: rig.hid)
    one.send_signal(signal.SIGTERM)
    _, err = one.communicate(timeout=20)
    assert one.returncode == 130 and b"interrupted" in err
    until("the key to be released", lambda: rig.hid[-1] == NONE)
