"""Two runs held against each other: what the numbers can show is a regression, and nothing else is."""

import copy
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness import agents, compare, compare_command, run
from harness.report import model
from labd.errors import LabdError
from tests.harness.conftest import ADD_PICO, make_scenario
from tests.harness.test_report import REAL, manifest, row


def told(verdicts: dict[str, list[str]], name: str = "r1", **more: Any) -> dict[str, Any]:
    rows = [row(scenario, verdict, number=number)
            for scenario, some in verdicts.items() for number, verdict in enumerate(some, 1)]  # fmt: skip
    known = manifest(real=REAL) | {"id": name} | more
    scenarios = {key: value | {"sha256": "same"} for key, value in known["scenarios"].items()}  # type: ignore[attr-defined]
    return model.project(known, rows) | {"scenarios": scenarios}


def runs(verdict: str, *, scenarios: int = 8, trials: int = 1) -> dict[str, list[str]]:
    return {f"S{n}": [verdict] * trials for n in range(1, scenarios + 1)}


def test_what_fell_in_eight_scenarios_is_a_regression_and_what_rose_is_none() -> None:
    found = compare.compare(told(runs("pass")), told(runs("fail")))
    assert found["regression"] is True
    assert found["arms"][0]["finding"] == "worse"
    assert compare.compare(told(runs("fail")), told(runs("pass")))["regression"] is False


def test_one_scenario_of_three_trials_that_fell_is_told_and_is_no_regression() -> None:
    before = told({"S1": ["pass"] * 3, "S2": ["pass"] * 3})
    found = compare.compare(before, told({"S1": ["fail"] * 3, "S2": ["pass"] * 3}))
    assert found["regression"] is False
    assert found["arms"][0]["finding"] == "cannot show"
    (cell,) = found["cells"]
    assert (cell["scenario"], cell["shown"], cell["adjusted_p"]) == ("S1", "", 0.2)
    assert "S1 real cold: 3/3 (44–100 %) → 0/3 (0–56 %): not shown by so few trials" in compare_command.text(found)


def test_one_scenario_of_many_trials_can_show_it_alone() -> None:
    found = compare.compare(told({"S1": ["pass"] * 8}), told({"S1": ["fail"] * 8}))
    assert found["arms"][0]["finding"] == "cannot show"
    assert [cell["shown"] for cell in found["cells"]] == ["worse"]
    assert found["regression"] is True


def test_the_same_again_is_called_noise_and_another_version_is_named() -> None:
    one = told(runs("pass"))
    found = compare.compare(one, told(runs("pass"), "r2"))
    assert (found["differences"], found["cells"], found["regression"]) == ([], [], False)
    assert "nothing, so that any difference is noise" in compare_command.text(found)
    other = told(runs("pass"), "r2", versions={"labd": "0.2"}, hashes={"labd": "cd"})
    assert compare.compare(one, other)["differences"] == ["labd 0.1 → 0.2", "labd's code"]


def test_a_scenario_that_changed_is_refused_unless_said() -> None:
    one, other = told(runs("pass")), copy.deepcopy(told(runs("fail")))
    other["scenarios"]["S3"]["sha256"] = "other"
    with pytest.raises(LabdError, match="S3") as caught:
        compare.compare(one, other)
    assert "--changed" in caught.value.hint
    found = compare.compare(one, other, changed=True)
    assert found["changed_scenarios"] == ["S3"]
    assert "S3" in compare_command.text(found)


def test_new_lost_trials_are_told_and_bound_what_was_found() -> None:
    lost = {f"S{n}": ["provider_error" if n < 4 else "pass"] for n in range(1, 9)}
    found = compare.compare(told(runs("pass")), told(lost))
    arm = found["arms"][0]
    assert arm["not_valid"] == [{}, {"provider_failed": 3}]
    assert arm["unsafe"]
    assert arm["bounds"] == [-0.375, 0]
    text = compare_command.text(found)
    assert "not valid: none → 3 provider_failed" in text
    assert len([line for line in text.splitlines() if "valid of 1 attempted" in line]) == 3


def test_runs_that_share_nothing_are_refused() -> None:
    other = told(runs("pass"))
    other["agents"] = {"another": other["agents"]["real"]}
    with pytest.raises(LabdError, match="share no agent"):
        compare.compare(told(runs("pass")), other)


def test_stored_runs_are_compared_by_name_and_the_exit_code_tells(
    subject: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenarios = [make_scenario(ADD_PICO, identity=f"T{n}") for n in range(6)]
    directories = []
    for _ in range(2):
        with run.create(tmp_path, scenarios, agents.select(["noop"])) as held:
            run.carry_out(held, scenarios, jobs=2, on_result=lambda _: None)
        directories.append(held.directory)
    values = SimpleNamespace(first=str(directories[0]), second=directories[1].name, out=str(tmp_path), scenario=["t*"],
                             changed=False, json=True)  # fmt: skip
    assert compare_command.do_compare(values, []) == 0  # type: ignore[arg-type]
    found = json.loads(capsys.readouterr().out)
    assert (found["second"], found["arms"][0]["scenarios"]) == (directories[1].name, 6)
    assert found["arms"][0]["finding"] == "no difference shown"
