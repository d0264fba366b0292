"""What a measurement's directory comes to: exceptions, domains, the whole, and what has no number."""

import json
from pathlib import Path

import pytest

from graders import readiness
from graders.readiness_rules import RULES
from harness import readiness_plan

PASSING = {"schema": "x", "target": [], "states": [], "steps": []}
DOMAINS = [{"name": "a", "title": "A"}, {"name": "b", "title": "B"}]


def check(name: str, domain: str, verdict: str) -> dict[str, str]:
    return {"id": name, "domain": domain, "verdict": verdict}


def test_the_whole_is_the_mean_of_domains_not_of_checks():
    told = readiness.score(DOMAINS, [check("1", "a", "pass"), check("2", "b", "pass"), check("3", "b", "fail"),
                                     check("4", "b", "fail"), check("5", "b", "fail")])  # fmt: skip
    assert told["overall"] == 0.625 and [one["score"] for one in told["domains"]] == [1.0, 0.25]


@pytest.mark.parametrize("dark", ["unknown", "not_run", "blocked", "not_reached", "harness_error"])
def test_one_applicable_check_without_evidence_leaves_no_number_and_never_zero(dark):
    told = readiness.score(DOMAINS, [check("1", "a", "pass"), check("2", "b", dark)])
    assert told["overall"] is None and told["missing"] == ["2"]
    assert told["domains"][1]["score"] is None and told["domains"][1]["evidenced"] == 0
    assert told["domains"][0]["score"] == 1.0


def test_what_does_not_apply_is_in_no_count_and_an_empty_domain_in_no_mean():
    told = readiness.score(DOMAINS, [check("1", "a", "fail"), check("2", "b", "not_applicable")])
    assert told["overall"] == 0.0 and told["domains"][1]["applicable"] == 0 and told["domains"][1]["score"] is None
    assert readiness.score(DOMAINS, [check("2", "b", "not_applicable")])["overall"] is None


@pytest.fixture
def measurement(tmp_path: Path) -> Path:
    """One in which help was found, a flag was refused, and nothing else was tried."""
    (tmp_path / "checks").mkdir()
    (tmp_path / "rubric.toml").write_bytes(readiness_plan.rubric_path().read_bytes())
    (tmp_path / "plan.toml").write_text("")
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": readiness.EVIDENCE, "rubric_sha256": "r",
                                                        "subject": "tool"}))  # fmt: skip
    return tmp_path


def evidence(place: Path, name: str, **told: object) -> None:
    (place / "checks" / f"{name}.json").write_text(json.dumps({"check": name, "target": [], "states": [], "steps": [],
                                                               **told}))  # fmt: skip


def verdicts(place: Path) -> dict[str, str]:
    return {one["id"]: one["verdict"] for one in readiness.grade(place)["checks"]}


def test_what_was_not_exercised_is_not_run_and_what_could_not_be_is_blocked_or_the_harnesss(measurement):
    evidence(measurement, "help", blocked="no display")
    evidence(measurement, "preview", broken="disk full")
    found = verdicts(measurement)
    assert set(found) == set(RULES) and found["help"] == "blocked" and found["preview"] == "harness_error"
    assert {found[name] for name in found if name not in ("help", "preview")} == {"not_run"}


def test_not_applicable_needs_a_reason_that_was_reviewed(measurement):
    (measurement / "plan.toml").write_text(
        '[not_applicable.scope-auth]\nreason = "no scopes"\nreviewed = "2026-11-30"\n'
        '[not_applicable.missing-auth]\nreason = "works on this machine only"\nreviewed = "2026-11-30"\n'
        '[not_applicable.valid-auth]\nreason = "no credentials"\n'
        '[not_applicable.invalid-auth]\nreviewed = "2026-11-30"\n'
    )
    found = verdicts(measurement)
    assert found["scope-auth"] == found["missing-auth"] == "not_applicable"
    assert found["valid-auth"] == found["invalid-auth"] == "unknown"


def test_what_applies_to_every_program_is_never_excepted(measurement):
    (measurement / "plan.toml").write_text('[not_applicable.help]\nreason = "none"\nreviewed = "2026-11-30"\n')
    assert verdicts(measurement)["help"] == "unknown"


def test_a_capability_that_is_documented_is_told_beside_and_changes_no_verdict(measurement):
    page = {"role": "document", "run": "tool --help", "wanted": {"finds": ["--dry-run"]}, "ended_by": "exit", "code": 0,
            "cut": 0, "stdout": "--dry-run", "stderr": "", "state": {"before": {}, "after": {}}}  # fmt: skip
    evidence(measurement, "preview", steps=[page])
    told = next(one for one in readiness.grade(measurement)["checks"] if one["id"] == "preview")
    assert told["documented"] is True and told["verdict"] == "unknown"


def test_there_is_no_letter_no_rank_and_no_outcome_of_a_workflow_in_a_result(measurement):
    told = readiness.grade(measurement)
    assert set(told) == {"schema", "rubric", "subject", "program", "version", "build", "measured", "hashes", "versions",
                         "checks", "domains", "overall", "missing"}  # fmt: skip


@pytest.mark.parametrize("schema", ["labd-scan/1", "labd-trial/1", None])
def test_another_lanes_record_is_no_measurement(measurement, schema):
    (measurement / "manifest.json").write_text(json.dumps({"schema": schema}))
    with pytest.raises(readiness.NotReadiness, match=r"manifest\.json"):
        readiness.grade(measurement)


def test_another_version_of_the_rubric_is_never_judged_by_these_rules(measurement):
    text = (measurement / "rubric.toml").read_text().replace('version = "4.0.0"', 'version = "4.1.0"')
    (measurement / "rubric.toml").write_text(text)
    with pytest.raises(readiness.NotReadiness, match=r"4\.1\.0"):
        readiness.grade(measurement)


@pytest.mark.parametrize("broken", ["{", "[]", '{"steps": 3}', '{"check": "help", "steps": [{}]}'])
def test_evidence_that_is_none_is_named_by_its_file(measurement, broken):
    (measurement / "checks" / "help.json").write_text(broken)
    with pytest.raises(readiness.NotReadiness, match=r"help\.json"):
        readiness.grade(measurement)
