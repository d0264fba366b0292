"""Graders against people: the sessions that come along, and what is refused as one."""

import json
from pathlib import Path

import pytest

from harness import calibration
from harness.cli import main
from harness.scenario import fixtures_dir
from labd.errors import LabdError

GOOD = '[[session]]\nid = "a"\nscenario = "R8"\nanswer = "`labd power-state pico`"\nlabel = { pass = true, d4 = 2 }\n'


def test_the_sessions_that_come_along_show_where_graders_and_people_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--json", "-q"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sessions"] == told["compared"] >= 20
    assert told["kappa"] > 0.6
    parted = {one["session"] for one in told["each"] if not one["agrees"]}
    assert {"r4-watch-in-prose", "m3-two-ways"} <= parted, "known limits of what a machine can read"
    invented = [one for one in told["each"] if one["session"] in ("r4-exec", "m2-flash", "m4-own-command")]
    assert all("nothing invented" in one["reason"] for one in invented)
    denied = [one for one in told["each"] if one["session"] in ("m2-denies-by-name", "r8-cycle-denied")]
    assert [one["verdict"] for one in denied] == ["pass", "pass"]


def test_a_judge_is_held_against_people_dimension_by_dimension(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, script = tmp_path / "labels.toml", tmp_path / "judge.toml"
    labels.write_text(GOOD)
    traps = [{"trap": n, "respected": True, "evidence": "labd power-state pico"} for n in (1, 2)]
    answer = {f"d{n}": 1 if n == 4 else 2 for n in range(1, 8)} | {"traps_eval": traps, "justifications": {}}
    script.write_text(f"[[answer]]\nmatch = 'power-state'\ntext = '{json.dumps(answer)}'\n")
    assert main(["calibrate", str(labels), "--judge", f"scripted:{script}", "--json", "-q"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["dimensions"]["d4"] == {"compared": 1, "same": 0, "weighted_kappa": 0.0}
    assert told["dimensions"]["d1"]["compared"] == 0, "the person gave no d1"


@pytest.mark.parametrize(("changed", "said"), [
    (("pass = true", 'pass = "yes"'), "label.pass"),
    (("d4 = 2", "d4 = 3"), "label.d4"),
    (("d4 = 2", "d9 = 1"), "label.d9"),
    (('id = "a"\n', ""), "needs id"),
    (("label", "lable"), "lable"),
    (('scenario = "R8"', 'scenario = "R8"\ncondition = "tepid"'), "tepid"),
    ((GOOD, ""), "no [[session]]"),
    ((GOOD, GOOD + GOOD), "two sessions"),
])  # fmt: skip
def test_what_is_no_session_is_named(tmp_path: Path, changed: tuple[str, str], said: str) -> None:
    (tmp_path / "labels.toml").write_text(GOOD.replace(*changed))
    with pytest.raises(LabdError) as caught:
        calibration.load(tmp_path / "labels.toml")
    assert said in caught.value.message


def test_an_unknown_scenario_is_told_with_near_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "labels.toml").write_text(GOOD.replace("R8", "R88"))
    assert main(["calibrate", str(tmp_path / "labels.toml")]) == 4
    assert "R8" in capsys.readouterr().err


def test_every_session_has_a_reason_and_all_scores() -> None:
    for session in calibration.load(fixtures_dir() / "calibration"):
        assert session.why and set(session.scores) == {f"d{n}" for n in range(1, 8)}, session.id
