"""What stands outside the bench in a trial: it comes up with its facts, does what is said, and leaves nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import cv2
import pytest

from harness import outside, screen
from harness.outside import Desk, Outside, OutsideError
from labd.ocr import reader
from tests.harness.conftest import alive, wait_until

QUIET = 'title = "quiet {nonce}"\nboot = "at-start"\nmode = "mute"\n'


def desk(root: Path, serve: str = "tty", **more: object) -> Desk:
    for name in ("run", "bin"):
        (root / name).mkdir(parents=True)
    told = Outside("quiet.toml", serve, QUIET, **more)  # type: ignore[arg-type]
    return Desk(told, root, root / "record.jsonl", lambda text: text.replace("{nonce}", "f00d"))


def records(root: Path, kind: str) -> list[dict[str, object]]:
    found = [json.loads(line) for line in (root / "record.jsonl").read_bytes().splitlines()]
    return [record for record in found if record["kind"] == kind]


def test_the_board_is_there_and_its_file_is_not(tmp_path: Path) -> None:
    one = desk(tmp_path / "d")
    try:
        assert os.path.exists(one.device)
        assert one.values == {"device": one.device}
        assert list((tmp_path / "d" / "opt").iterdir()) == [], "it would tell the trial's facts"
    finally:
        one.stop()
    assert not os.path.lexists(one.device)
    assert not alive(int(str(records(tmp_path / "d", "start")[0]["pid"])))


def test_a_board_behind_rfc2217_is_on_this_machine_alone(tmp_path: Path) -> None:
    one = desk(tmp_path / "d", "rfc2217")
    try:
        assert one.device.startswith("rfc2217://127.0.0.1:")
    finally:
        one.stop()


def test_acts_happen_before_and_after_the_question(tmp_path: Path) -> None:
    acts = {"before": ({"say": "first {nonce}"}, {"power": "cycle"}), "after": ({"wait_s": 0.05, "say": "second"},)}
    one = desk(tmp_path / "d", **acts)
    try:
        one.before()
        assert [record["data"] for record in records(tmp_path / "d", "tx")] == ["first f00d"]
        one.asked()
        wait_until("the second word", lambda: len(records(tmp_path / "d", "tx")) == 2)
    finally:
        one.stop()
    assert one.problem == ""


def test_what_was_to_come_later_is_not_waited_for(tmp_path: Path) -> None:
    one = desk(tmp_path / "d", after=({"wait_s": 600, "say": "never"},))
    one.asked()
    one.stop()
    assert records(tmp_path / "d", "tx") == []


@pytest.mark.parametrize(
    ("act", "end"),
    [
        ("letgo", "let go"),
        ("letgo-wrong", "never asked"),
        ("kill", "ended by somebody (code -15)"),
        ("", "never asked"),
    ],
)
def test_a_holder_lets_go_when_it_is_asked_and_tells_how_it_ended(tmp_path: Path, act: str, end: str) -> None:
    root = tmp_path / "d"
    one = desk(root, held=True)
    holder = one.values["holder"]
    try:
        if act.startswith("letgo"):
            word = holder if act == "letgo" else "1"
            asked = subprocess.run([root / "bin" / "letgo", word], capture_output=True, timeout=20, check=False)
            assert (asked.returncode == 0) is (act == "letgo")
        elif act:
            os.kill(int(holder), 15)
            wait_until("the holder's end", lambda: not alive(int(holder)))
    finally:
        one.stop()
    assert one.facts["holder"] == {"pid": int(holder), "end": end}


def test_a_board_that_cannot_be_played_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "QUIET", "nonsense")
    with pytest.raises(OutsideError):
        desk(tmp_path / "d")
    assert not any((tmp_path / "d" / "opt").iterdir())
    assert outside.PATIENCE_S > 1


@pytest.mark.skipif(screen.font() is None, reason="no console font on this machine (seabios has one)")
def test_a_screen_shows_its_lines_and_others_when_it_is_time(tmp_path: Path) -> None:
    one = desk(tmp_path / "d", "picture", after=({"wait_s": 0.05, "show": "halted at {nonce}"},))
    try:
        first = Path(one.device).read_bytes()
        beside = Path(one.values["device2"]).read_bytes()
        one.asked()
        wait_until("the second picture", lambda: Path(one.device).read_bytes() != first)
        assert Path(one.values["device2"]).read_bytes() == beside
        fonts = [font] if (font := screen.font()) else []
        page = reader.read_console(cv2.imread(one.device), fonts)
        assert page.text.split() == ["halted", "at", "f00d"]
    finally:
        one.stop()
    assert [record["text"] for record in records(tmp_path / "d", "shown")][-1] == "halted at f00d"
