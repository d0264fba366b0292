"""The gate: what is planted is found, what is missed fails, and nobody is measured before it was passed."""

import json
import subprocess
import threading
from pathlib import Path

import pytest

from graders.contract import CLASSES, SUBTYPES
from harness import agents, cli, data, gate, sabotage, scenario, subject
from harness.agents._program import Options
from labd.errors import LabdError, NotFound, Refused


@pytest.fixture(autouse=True)
def _own_stamps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LABD_EVAL_CACHE", str(tmp_path / "cache"))


def test_every_class_and_every_subtype_has_a_defect_and_every_defect_a_scenario():
    planted = sabotage.defects()
    assert {one.cls for one in planted} == set(CLASSES)
    assert {one.subtype for one in planted if one.subtype} == set(SUBTYPES)
    assert {one.scenario for one in planted} <= {one.id for one in scenario.load_all("atlas")}


def test_a_defect_is_found_and_the_same_commands_on_atlas_itself_are_called_nothing(capsys):
    assert cli.main(["gate", "silent_cut", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["planted"]["found"] == ["C c-truncated"]
    assert "36" in row["planted"]["evidence"]
    assert row["without"]["found"] == [""]
    assert not gate.passed(), "one defect is not the gate"


def test_a_silent_wrong_that_is_called_clean_fails_the_gate(monkeypatch, capsys):
    monkeypatch.setattr("graders.taxonomy.explained", lambda call, probes: call)  # probes prove nothing any more
    assert cli.main(["gate", "silent_cut"]) == 1
    told = capsys.readouterr().out
    assert "silent_cut  C c-truncated  nothing" in told
    assert "MISSED" in told
    assert not gate.passed()


@pytest.mark.parametrize(("wanted", "found", "ok"), [
    ("C c-truncated", ["", "C c-truncated"], True),
    ("C c-truncated", ["", "C c-unknown"], False),
    ("A", ["B", "A"], True),
    ("A", ["C c-unknown", "A"], False),
    ("F", ["B", "F", ""], True),
    ("B", ["", ""], False),
    (None, ["", ""], True),
    (None, ["", "B"], False),
    (None, [], False),
])  # fmt: skip
def test_one_finding_too_many_is_as_bad_as_one_that_is_missed(wanted, found, ok):
    case = gate.Case("x", scenario.load_all("atlas")[0], (), None, wanted)
    assert gate.Finding(case, tuple(found)).ok is ok


def test_a_copy_has_its_defect_and_the_program_that_was_copied_has_none(tmp_path):
    line = ["count", "places", "--category", "bus_stop"]
    planted = sabotage.plant("silent_zero", tmp_path / "copy")
    ran = [subprocess.run([program, *line], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
           for program in (planted, scenario.fixtures_dir() / "atlas" / "atlas")]  # fmt: skip
    assert [(one.returncode, one.stdout) for one in ran] == [(0, "0\n"), (2, "")]
    assert "bus_station" in ran[1].stderr
    examined = subject.load("atlas")
    assert examined.kind.build(str(planted)) != examined.kind.build(str(examined.find()))


def test_an_unknown_defect_is_told_with_near_ones(tmp_path):
    with pytest.raises(NotFound) as caught:
        sabotage.plant("silent_cutt", tmp_path / "copy")
    assert "silent_cut" in caught.value.near
    assert not (tmp_path / "copy").exists()


def test_a_mistake_in_the_table_is_named_with_its_key(tmp_path, monkeypatch):
    (tmp_path / "sabotage").mkdir()
    (tmp_path / "sabotage" / "defects.toml").write_text(
        '[[defect]]\nname = "x"\nsays = "x"\nscenario = "A1"\nclass = "C"\nsubtpye = "c-unknown"\n'
    )
    monkeypatch.setattr(sabotage, "fixtures_dir", lambda: tmp_path)
    sabotage.defects.cache_clear()
    try:
        with pytest.raises(LabdError) as caught:
            sabotage.defects()
    finally:
        sabotage.defects.cache_clear()
    assert "defect[0].subtpye: unknown key" in caught.value.message
    assert "defect[0].subtype: belongs to class C" in caught.value.message


def test_another_build_takes_the_place_in_one_thread_alone():
    usual, seen = subject.load("atlas").find(), []
    with subject.in_place("atlas", "/bin/sh"):
        other = threading.Thread(target=lambda: seen.append(subject.load("atlas").find()))
        other.start()
        other.join()
        assert subject.load("atlas").find() == "/bin/sh"
    assert seen == [usual]
    assert subject.load("atlas").find() == usual


def test_nobody_is_measured_before_this_build_has_passed(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    line = ["run", "--subject", "atlas", "--scenario", "A1", "--agent", "command:true"]
    assert cli.main(line) == 3
    told = capsys.readouterr().err
    assert "nothing shows yet that this build finds what goes wrong" in told
    assert "try: labd-eval gate" in told
    assert not (tmp_path / "runs").exists()
    gate.stamp(gate.Passage(()))
    assert gate.passed()
    monkeypatch.setattr(data, "hashes", lambda: {"graders": "another"})
    with pytest.raises(Refused):
        gate.must_have_passed([agents.find("command:true")], Options())


def test_what_measures_nobody_needs_no_gate():
    gate.must_have_passed([agents.find("reference"), agents.find("noise")], Options())
    gate.must_have_passed([agents.find("claude")], Options(script="reference"))
    gate.must_have_passed([agents.find("claude")], Options(isolation="light"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"key": "another"}'])
def test_a_stamp_that_is_damaged_or_of_another_build_is_none(text):
    path = gate.stamp(gate.Passage(()))
    path.write_text(text)
    assert not gate.passed()
