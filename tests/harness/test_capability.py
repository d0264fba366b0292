"""What a scenario needs of this machine: where it is missing, the trial is blocked, and says what to install."""

from pathlib import Path

import pytest

from harness import capability, grading
from harness.agents import find
from harness.causes import as_expected
from harness.scenario import load_all
from harness.trial import Order, conduct

SCENARIOS = {one.id: one for one in load_all()}


def test_boards_in_qemu_are_those_of_the_seed() -> None:
    assert capability.boards(SCENARIOS["R4-LIVE"]) == ["uboot-x86"]
    assert capability.boards(SCENARIOS["R5-LIVE"]) == capability.boards(SCENARIOS["S2"]) == []
    assert capability.missing(SCENARIOS["S2"]) == ""


def test_a_trial_without_qemu_is_blocked_and_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    bundle = conduct(
        Order("R4-LIVE", "cold", "reference", 1), SCENARIOS["R4-LIVE"], find("reference"), tmp_path, facts={}
    )
    assert bundle is not None
    verdict = grading.grade(bundle)[0]
    assert verdict.verdict == "blocked"
    assert "qemu-system-x86_64 is not on PATH (package qemu-system-x86)" in verdict.reason


def test_what_a_machine_lacks_is_no_surprise_and_anything_else_is() -> None:
    assert as_expected("blocked", "capability_missing", {"pass"})
    assert not as_expected("blocked", "subject_missing", {"pass"})
    assert not as_expected("fail", "completed", {"pass"})
