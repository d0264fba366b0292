"""What a run has to run: a seeded order, several conditions, new trials for lost ones and never for failures."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from graders.verdict import RATED
from harness import agents, data, files, plan, report, run
from harness.causes import CAUSES
from harness.scenario import Scenario
from harness.trial import Order
from labd.errors import LabdError
from tests.harness.conftest import ADD_PICO, make_scenario

GOOD = make_scenario(ADD_PICO, identity="T1")
HASHES = {"labd": "0", "loopback": "1", "harness": "2", "graders": "3"}


@pytest.fixture(autouse=True)
def _code_that_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "hashes", lambda: HASHES)


def manifest(trials: int, cap: int) -> dict[str, Any]:
    orders = [asdict(Order("T1", "cold", "noop", number)) for number in range(1, trials + 1)]
    return {"orders": orders, "replacements": cap, "trials": trials}


def numbers(planned: dict[str, Any], causes: dict[int, str]) -> list[int]:
    return [order.number for order in plan.orders(planned, lambda order: causes.get(order.number))]


def test_a_lost_trial_gets_a_new_number_and_a_lost_replacement_another_up_to_the_cap() -> None:
    assert numbers(manifest(3, 3), {}) == [1, 2, 3]
    assert numbers(manifest(3, 3), {2: "sandbox_failed"}) == [1, 2, 3, 4]
    assert numbers(manifest(3, 3), {2: "sandbox_failed", 4: "provider_failed"}) == [1, 2, 3, 4, 5]
    assert numbers(manifest(1, 2), dict.fromkeys(range(1, 9), "sandbox_failed")) == [1, 2, 3]
    assert numbers(manifest(2, 0), {1: "sandbox_failed"}) == [1, 2]


def test_no_valid_trial_is_ever_run_again_whatever_came_of_it() -> None:
    for policy in CAUSES.values():
        if policy.valid or policy.verdict in RATED:
            assert numbers(manifest(1, 9), {1: policy.cause}) == [1], policy.cause


def test_what_is_missing_here_is_not_tried_again_in_the_same_run() -> None:
    assert numbers(manifest(1, 9), {1: "subject_missing"}) == [1]
    assert numbers(manifest(1, 9), {1: "capability_missing"}) == [1]


def test_the_same_seed_draws_the_same_order_and_another_one_another() -> None:
    scenarios = [make_scenario(ADD_PICO, identity=f"T{n}") for n in range(8)]
    cast = agents.select(["reference", "noop"])

    def drawn(seed: int | None) -> list[Order]:
        return plan.draw(cast, scenarios, ["cold", "warm"], 3, seed)

    assert drawn(7) == drawn(7) != drawn(8)
    assert sorted(map(str, drawn(7))) == sorted(map(str, drawn(None)))
    assert len({order.identity for order in drawn(7)}) == 2 * 8 * 2 * 3
    assert drawn(None)[:3] == [Order("T0", "cold", "reference", n) for n in (1, 2, 3)]


def test_a_run_keeps_its_seed_its_order_and_all_its_conditions(subject: Path, tmp_path: Path) -> None:
    only_cold = make_scenario(ADD_PICO, identity="T2", conditions=("cold",))
    with run.create(tmp_path, [GOOD, only_cold], agents.select(["noop"]), conditions=["cold", "preloaded"],
                    trials=2, seed=5) as held:  # fmt: skip
        drawn = [order.identity for order in held.orders]
        carry(held, [GOOD, only_cold])
    assert files.read_json(held.directory / "run.json")["seed"] == 5
    told = report.write(held.directory)
    assert told["order"] == {"agent": ["noop"], "scenario": ["T1", "T2"], "condition": ["cold", "preloaded"]}
    names = ["T1.cold.noop.1", "T1.cold.noop.2", "T1.preloaded.noop.1", "T1.preloaded.noop.2", "T2.cold.noop.1",
             "T2.cold.noop.2"]  # fmt: skip
    assert [row["id"] for row in told["trials"]] == [*names[:2], *names[4:], *names[2:4]] or sorted(
        row["id"] for row in told["trials"]
    ) == names
    assert sorted(drawn) == names
    assert drawn != names, "the order was drawn"


def carry(held: run.Run, scenarios: list[Scenario]) -> dict[str, run.Result]:
    results: dict[str, run.Result] = {}
    run.carry_out(held, scenarios, jobs=2, on_result=lambda r: results.update({r.order.identity: r}))
    return results


def breaks(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """The agent noop crashes in the harness's own code this many times."""
    from harness.agents import noop

    left = [times]

    def act(bench: object) -> str:
        left[0] -= 1
        if left[0] >= 0:
            raise RuntimeError("the harness broke")
        return ""

    monkeypatch.setattr(noop, "act", act)


def test_a_trial_that_the_exam_lost_is_kept_and_another_takes_its_place(
    subject: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch, 2)
    with run.create(tmp_path, [GOOD], agents.select(["noop"]), trials=2) as held:
        results = carry(held, [GOOD])
    assert sorted(results) == [f"T1.cold.noop.{n}" for n in (1, 2, 3, 4)]
    assert sum(result.again for result in results.values()) == 2
    told = report.write(held.directory)
    assert told["counts"] == {"fail": 2, "harness_error": 2}
    assert told["as_expected"] is True
    for text in (report.table_text(told, color=False), (held.directory / "report.md").read_text()):
        assert "all 2 trials that count ended as expected; 2 lost and replaced" in text
    lost = [row for row in told["trials"] if row["verdict"] == "harness_error"]
    assert {row["replaced_by"] for row in lost} <= {"T1.cold.noop.3", "T1.cold.noop.4"}
    overall = told["agents"]["noop"]["conditions"]["cold"]["overall"]
    assert (overall["valid"], overall["attempted"]) == (2, 4)
    with run.resume(held.directory, [GOOD]) as again:
        assert carry(again, [GOOD]) == {}


def test_what_is_lost_over_and_over_ends_at_the_cap_and_is_no_success(
    subject: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch, 99)
    with run.create(tmp_path, [GOOD], agents.select(["noop"]), trials=1, replacements=2) as held:
        assert sorted(carry(held, [GOOD])) == [f"T1.cold.noop.{n}" for n in (1, 2, 3)]
    assert report.write(held.directory)["as_expected"] is False


def test_a_run_that_ended_before_the_replacement_goes_on_with_it(
    subject: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch, 1)
    with run.create(tmp_path, [GOOD], agents.select(["noop"])) as held, monkeypatch.context() as early:
        early.setattr(plan, "replacements", lambda *_: [])
        assert list(carry(held, [GOOD])) == ["T1.cold.noop.1"]
    with run.resume(held.directory, [GOOD]) as again:
        assert list(carry(again, [GOOD])) == ["T1.cold.noop.2"]


@pytest.mark.parametrize("name", ["labd", "loopback", "harness", "graders"])
def test_trials_of_other_versions_are_not_pooled(
    subject: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with run.create(tmp_path, [GOOD], agents.select(["noop"])) as held:
        pass
    monkeypatch.setattr(data, "hashes", lambda: HASHES | {name: "other"})
    with pytest.raises(LabdError, match=f"{name} changed since"):
        run.resume(held.directory, [GOOD])


def test_a_scenario_that_changed_is_not_pooled_either(subject: Path, tmp_path: Path) -> None:
    with run.create(tmp_path, [GOOD], agents.select(["noop"])) as held:
        pass
    with pytest.raises(LabdError, match="T1 changed since"):
        run.resume(held.directory, [replace(GOOD, goal="Something else.")])
