"""Packs: what is right becomes three scenarios; what a pack lacks is named. The command: controls, stamps, refusals."""

import json
from dataclasses import replace

import pytest

from graders.verdict import Stage, Verdict
from harness import agents, cli, controls, files, journeys, run
from harness.journey_parts import STAGES, VARIANTS
from harness.report import journeys as told
from harness.scenario import ScenarioError, lint
from labd.errors import NotFound, Refused

GIT = journeys.load("git")
SOURCE = (journeys.directory("git") / "publish.toml").read_text()

#: The one assertion that all three scenarios of it share.
ASKED = """[[verifier.assert]]
path = 'worktree."hours.txt"'
same = 'worktree."hours.txt"'
"""


@pytest.fixture
def read(tmp_path):
    """The scenarios of the shipped pack with some text changed, or the problems that it has then."""

    def loaded(*changes):
        text = SOURCE
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "publish.toml"
        path.write_text(text)
        try:
            return journeys.read(path, "git")
        except ScenarioError as error:
            return "\n".join(error.problems)

    return loaded


# -- packs ------------------------------------------------------------------------------------------------------------


def test_at_least_three_jobs_of_git_each_in_three_scenarios_with_the_fault_in_the_last_alone():
    jobs = controls.by_job(GIT)
    assert len(jobs) >= 3
    for mine in jobs.values():
        assert [one.journey.variant for one in mine] == list(VARIANTS)
        assert [one.journey.fault is not None for one in mine] == [False, False, True]
        normal, _, recovery = mine
        assert recovery.seed_text({}) != normal.seed_text({})
        assert [stage.name for stage in normal.journey.stages] == list(STAGES[:5])
        assert [stage.name for stage in recovery.journey.stages] == list(STAGES)
        assert all(one.journey.group and one.journey.reviewed for one in mine)
        assert len({one.goal for one in mine}) == 3


def test_goals_are_a_users_and_every_control_is_there():
    assert [problem for one in GIT for problem in lint(one)] == []
    for one in GIT:
        assert one.controls.printed_success
        assert all(one.control(name) for name in ("wrong-resource", "partial", "tampered-artifact"))
        assert one.timeout_s == 900
        assert [agent for agent in agents.JOURNEY if agents.find(agent).plays(one)] == list(agents.JOURNEY)
        assert not agents.find("hand-edit").plays(one)


def test_shared_parts_are_merged_and_a_scenario_may_only_ask_for_more(read):
    normal, _, recovery = read()
    for one in (normal, recovery):
        assert one.grader["assert"][0]["path"] == 'worktree."hours.txt"'
    assert recovery.grader["free"] == ["config", "head", "index", "branches.main"]
    assert "email" in [entry["path"] for entry in recovery.grader["assert"]][-1], "what says that the fault is gone"


@pytest.mark.parametrize(("old", "new", "said"), [
    ('schema = "labd-journey/1"', 'schema = "labd-journey/2"', "schema: expected"),
    ('job = "publish"', 'job = "other"', "job: 'other' does not fit"),
    ("[stage.verify]", "[stage.verfy]", "stage.verify: missing"),
    ("[stage.verify]", "[stage.verfy]", "stage.verfy: no such stage; did you mean verify?"),
    ('right = "answered"', 'right = "perfect"', "stage.verify.right: expected"),
    ('reached = "changed"', 'reached = "[argv hss]"', "stage.apply.reached: neither"),
    ('run = ["git push shop HEAD:main"]', "", "stage.replay.run: the stage replay"),
    ('variant = "ambiguous"', 'variant = "normal"', "exactly one has the variant 'ambiguous'; there are 0"),
    ('variant = "ambiguous"', 'variant = "ambigous"', "scenario.variant: no 'ambigous'; did you mean ambiguous?"),
    ('seed = "repos/publish-ahead.sh"', "", "scenario[recovery].fault: nothing is planted: seed or plants"),
    ('state = "repo_state"', "", "verifier.state: missing"),
    (ASKED, "", "verifier: it asks for nothing"),
    ("[[scenario.controls.tampered_artifact]]", "[[scenario.controls.tamper]]", "controls.tamper: unknown key"),
    ('seed = "repos/publish-ahead.sh"', 'seed = "repos/none.sh"', "fault.seed: no file"),
])  # fmt: skip
def test_what_a_pack_lacks_is_named_and_it_is_not_loaded(read, old, new, said):
    assert said in read((old, new))


def test_a_pack_without_one_of_its_controls_is_not_loaded(read):
    printed = 'printed_success = "main -> main. The newest'
    wrong = 'wrong_resource = ["git push shop main:release-1", "git log -1'
    for name, line in (("printed_success", printed), ("wrong_resource", wrong)):
        assert f"controls.{name}: missing, and each control has to fail" in read((line, f"# {line}"))


def test_a_fault_outside_the_recovery_scenario_is_named(read):
    planted = '[scenario.fault]\ntext = "x"\nseed = "repos/publish-ahead.sh"\n\n[[scenario]]\nvariant = "ambiguous"'
    said = "fault: the planted fault belongs to the recovery scenario, and it alone"
    assert f"scenario[normal].{said}" in read(('[[scenario]]\nvariant = "ambiguous"', planted))
    none = ("[scenario.fault]", "[scenario.task]"), ("[[scenario.fault.gone]]", "[[scenario.task.gone]]")
    assert f"scenario[recovery].{said}" in read(*none)


@pytest.mark.parametrize(("old", "new"), [
    ("[stage.verify]", "[stage]\nverify = 5\n[other]"), ("[verifier]", "verifier = 5\n[other]"),
    ("[scenario.fault]", "[[scenario.fault]]"), ("[scenario.controls]", "[[scenario.controls]]"),
    ("[scenario.verifier]", "[[scenario.verifier]]"), ('variant = "normal"', "variant = [1]"),
    ("[[verifier.assert]]", "[verifier.assert]"), ("[scenario.stage.replay]", "[scenario.stage.again]"),
    ("[scenario.stage.replay]\nrun", "[scenario.stage.replay]\nreached = 'x'\nrun"), ("schema", "\x00"),
    ("[[scenario]]", "[[scenarios]]"), ("[stage.discover]", "stage = []\n[other]"), ('group = "Source control"', ""),
])  # fmt: skip
def test_a_pack_of_any_form_is_told_what_is_wrong_with_it(read, old, new):
    found = read((old, new))
    assert isinstance(found, str) and "publish.toml" in found


def test_jobs_are_found_by_name_with_near_matches():
    assert {one.journey.job for one in journeys.chosen("git", ["join"])} == {"join"}
    with pytest.raises(NotFound) as caught:
        journeys.chosen("git", ["joyn"])
    assert caught.value.near == ["join"]


# -- controls ----------------------------------------------------------------------------------------------------


def test_a_control_goes_wrong_by_a_pass_by_an_unknown_or_by_a_stage_of_the_reference():
    passed, failed = Verdict("journey", "pass", "all held"), Verdict("journey", "fail", "no")
    assert controls.wrong("reference", passed) == controls.wrong("noop", failed) == ""
    assert controls.wrong("noop", passed).startswith("pass")
    assert controls.wrong("partial", replace(failed, verdict="unknown")).startswith("unknown")
    assert controls.wrong("reference", failed).startswith("fail")
    assert "stage replay: fail" in controls.wrong("reference", replace(passed, stages=(Stage("replay", "fail", "x"),)))
    assert "not been played" in controls.wrong("noop", None)
    table = controls.table({"J-X": dict.fromkeys(agents.JOURNEY, passed)})
    assert "pass WRONG" in table and "1 of 6 controls went as they must" in table


def test_controls_that_were_interrupted_are_called_not_played_and_counted_apart():
    failed = Verdict("journey", "fail", "no")
    table = controls.table({"J-X": {"noop": failed, "partial": failed, "tampered-artifact": None}})
    assert table.count("not played") == 5 and "WRONG" not in table and "to its end" not in table
    assert table.endswith("2 of 6 controls went as they must, 4 not played\n")


def test_without_a_stamp_of_this_build_or_with_a_wrong_control_nothing_is_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABD_EVAL_CACHE", str(tmp_path))
    mine = journeys.chosen("git", ["join"])
    with pytest.raises(Refused, match="its controls were not played on this build"):
        controls.must_have_held(mine)
    path = controls.stamp_path("git", mine)
    path.parent.mkdir(parents=True)
    cell = {"verdict": "pass", "reason": "", "wrong": "pass: all held", "stages": {}}
    stored = {
        "key": controls.key("git", mine),
        "ok": False,
        "job": "join",
        "scenarios": {"J-JOIN-NORMAL": {"noop": cell}},
    }
    files.write_json(path, stored)
    with pytest.raises(Refused, match="J-JOIN-NORMAL: noop: pass: all held"):
        controls.must_have_held(mine)
    assert cli.main(["journey", "run", "git", "--job", "join", "--agent", "loop", "-o", str(tmp_path)]) == 3
    assert "labd-eval journey controls git" in capsys.readouterr().err
    files.write_json(path, stored | {"ok": True})
    assert list(controls.must_have_held(mine)) == ["join"]
    files.write_json(path, stored | {"ok": True, "key": "of another build"})
    with pytest.raises(Refused):
        controls.must_have_held(mine)


@pytest.mark.parametrize("words", [
    ["run"], ["run", "git"], ["run", "git", "--agent", "noop"], ["list", "atlas"], ["run", "git", "--agent", "labd"],
])  # fmt: skip
def test_what_can_not_be_meant_is_refused_with_a_way_out(words, capsys):
    assert cli.main(["journey", *words]) == 2
    assert "try: labd-eval" in capsys.readouterr().err


def test_only_who_hands_a_temperature_on_is_given_one(tmp_path, capsys):
    assert cli.main(["run", "--subject", "git", "--agent", "claude", "--temperature", "0.6", "-o", str(tmp_path)]) == 2
    assert "hands no temperature and no seed on" in capsys.readouterr().err


# -- reports ----------------------------------------------------------------------------------------------------------


def row(scenario, number, verdict, **more):
    told = {"scenario": scenario, "agent": "x", "condition": "cold", "number": number, "verdict": verdict}
    found = {"valid": verdict in ("pass", "fail"), "bundle": "b", "replaced_by": None, "stages": {"apply": verdict}}
    return told | found | more


def cells(*rows):
    about = {"job": "publish", "title": "t", "group": "Source control", "variant": "normal", "stages": ["apply"]}
    found = told.project(rows, {"journeys": {"jobs": {"J": about}, "controls": None}})
    (cell,) = found["groups"][0]["jobs"][0]["scenarios"][0]["cells"]
    return told.result(cell)


def test_each_scenario_shows_its_own_n_and_what_was_not_measured_is_no_zero():
    assert cells(row("J", 1, "pass"), row("J", 2, "fail"), row("J", 3, "pass")) == "2/3"
    assert cells(*(row("J", n, "fail") for n in (1, 2, 3))) == "0/3"
    assert cells(*(row("J", n, "not_run", bundle=None) for n in (1, 2, 3))) == "Not measured (3 not run)"
    assert cells(row("J", 1, "pass"), row("J", 2, "pass"), row("J", 3, "blocked")) == "2/2 of 3 (1 blocked)"


def test_a_trial_that_was_lost_is_kept_and_another_one_counts_in_its_place():
    lost = row("J", 1, "provider_error", replaced_by="J.4")
    assert cells(lost, row("J", 2, "pass"), row("J", 3, "pass"), row("J", 4, "pass")) == "3/3"


def test_the_report_of_other_runs_says_nothing_of_journeys_and_no_number_is_over_jobs():
    assert told.project([], {}) is None
    about = {"job": "a", "title": "t", "group": "g", "stages": []}
    jobs = {f"J-{n}": about | {"variant": VARIANTS[n], "job": job} for job in ("a",) for n in range(3)}
    found = told.project([row("J-0", 1, "pass")], {"journeys": {"jobs": jobs, "controls": None}})
    assert [one["variant"] for one in found["groups"][0]["jobs"][0]["scenarios"]] == list(VARIANTS)
    assert set(found) == {"note", "controls", "groups"} and set(found["groups"][0]) == {"group", "jobs"}


# -- what may be spent ------------------------------------------------------------------------------------------------


def test_nothing_more_is_begun_once_the_money_is_spent(tmp_path):
    (one, *_) = journeys.chosen("git", ["join"])
    agent = agents.find("noop")
    held = run.create(tmp_path, [one], [agent], trials=3, spend_usd=1.5, journeys=journeys.facts([one], None))
    with held:
        assert not held.spent_up
        for number, cost in enumerate((1.0, None, 0.5)):
            place = held.trials / f"t{number}"
            place.mkdir()
            (place / "transcript.json").write_text(json.dumps({"usage": {"cost_usd": cost}}))
        assert (held.spent, held.spent_up) == (1.5, True)
        run.carry_out(held, [one], jobs=1, on_result=lambda result: pytest.fail("it was begun"))
    assert '"event": "spent"' in (held.directory / "log.jsonl").read_text()
