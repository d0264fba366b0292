"""Asking a program after a trial: of the same build, on a copy of the state, within a budget, every word logged.

The bundles are those of real trials of git; the signs are made for the test.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from graders import signs
from graders.bundle_view import Bundle
from graders.contract import Record
from graders.probe_read import conclusion
from graders.signs import Signs
from harness import files, probing
from harness.agents import Agent
from harness.agents._script import play
from harness.probing import Budget, Probed, probe
from harness.scenario import Step, load_all
from harness.trial import Order, conduct
from tests.graders.records import attempt, call

LOG = """
[[probe]]
kind = "column_swap"
command = "log"
flags = ["--author"]
candidates = ["--grep", "--committer"]
replace = ["{candidate}={value}"]
"""
FIND = "log --format=%s --author=hours"  # a word of the messages, not of the names


def trial(tmp_path: Path, *lines: str, identity: str = "G4") -> Path:
    """The bundle of a trial in which these shell lines ran in the repository."""
    steps = [Step(line, shell=True) for line in lines]
    agent = Agent("other", "", frozenset({"fail"}), lambda bench: play(bench, steps))
    scenario = {one.id: one for one in load_all("git")}[identity]
    made = conduct(Order(identity, "cold", "other", 1), scenario, agent, tmp_path, facts={})
    assert made is not None
    return made


def silent(line: str) -> Record:
    return attempt(call("C", line))


def kinds(found: Probed, name: str) -> list[str]:
    return [line["kind"] for line in found.log if name in line]


def test_what_a_trial_left_answers_once_more_and_the_bundle_is_as_it_was(tmp_path: Path) -> None:
    bundle = trial(tmp_path, f"git {FIND}", "git commit -q --allow-empty -m 'Add more hours'")
    before = files.tree_digest(bundle)
    found = probe(bundle, silent(FIND), signs.load(LOG))
    (one,) = found.by_call[0]
    assert one.conclusive and one.ran == "log --format=%s --grep=hours"
    assert one.result.startswith("0 vs 2:")  # also the one that was made in the trial
    assert files.tree_digest(bundle) == before


def test_every_run_is_a_line_of_the_log_with_how_it_ended(tmp_path: Path) -> None:
    found = probe(trial(tmp_path, f"git {FIND}"), silent(FIND), signs.load(LOG))
    runs = [line for line in map(json.loads, found.lines().splitlines()) if "code" in line]
    assert [line["argv"][2] for line in runs] == ["--author=hours", "--grep=hours", "--grep=zq7xnowhere"]
    assert {(line["call"], line["kind"], line["code"], line["ended_by"]) for line in runs} == {
        (0, "column_swap", 0, "exit")
    }
    assert "Add opening hours" in runs[1]["stdout_head"] and all(line["changed"] is False for line in runs)


#: The candidate writes: a branch that every later question would see.
WRITES = """
[[probe]]
kind = "type_sweep"
command = "branch"
flags = ["--list"]
candidates = ["--no-track", "--all"]
replace = ["{candidate}", "zq-made-by-a-question"]

[[probe]]
kind = "type_sweep"
command = "branch"
having = ["--list"]
candidates = ["for-each-ref --format=%(refname) refs/heads"]
"""


def test_a_question_that_changes_the_state_changes_neither_the_bundle_nor_what_the_next_one_sees(
    tmp_path: Path,
) -> None:
    bundle = trial(tmp_path, "git branch --list zq-made-by-a-question")
    before = files.tree_digest(bundle)
    text = WRITES + 'replace = []\nsize = { rows = "lines", pattern = "zq-made" }\n'
    found = probe(bundle, silent("branch --list zq-made-by-a-question"), signs.load(text))
    changed = [line["argv"] for line in found.log if line.get("changed")]
    assert changed == [["branch", "--no-track", "zq-made-by-a-question"]]
    assert not any(one.conclusive for one in found.by_call[0])
    assert files.tree_digest(bundle) == before


def test_questions_run_where_the_call_ran_and_paths_of_the_sandbox_are_its_copys(tmp_path: Path) -> None:
    bundle = trial(tmp_path, "mkdir deep; cd deep; git log --format=%s --author=hours -- .", 'cat "$PWD/prices.txt"')
    assert Bundle(bundle).record is not None
    text = LOG.replace('["--grep", "--committer"]', '["--committer", "--grep"]')
    found = probe(bundle, silent("log --format=%s --author=hours -- ."), signs.load(text))
    assert not any(one.conclusive for one in found.by_call[0])  # nothing in deep/ was ever recorded


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a git before the real one that does `script` first, and is taken for the build of the trial."""

    def put(script: str) -> None:
        path = tmp_path / "slow" / "git"
        path.parent.mkdir()
        path.write_text(f'#!/bin/sh\n{script}\nexec /usr/bin/git "$@"\n')
        path.chmod(0o755)
        monkeypatch.setattr("harness.subject.shutil.which", lambda name: str(path))
        monkeypatch.setattr("harness.subjects._kind.Kind.build", lambda kind, program: "the same")

    return put


def same_build(bundle: Path) -> Path:
    told = json.loads((bundle / "trial.json").read_text())
    (bundle / "trial.json").write_text(json.dumps(told | {"build": "the same"}))
    return bundle


def test_a_question_that_hangs_costs_its_time_and_is_inconclusive(tmp_path: Path, slow: Callable[[str], None]) -> None:
    bundle = same_build(trial(tmp_path, f"git {FIND}"))
    slow('case "$*" in *--grep*) sleep 600;; esac')
    begun = time.monotonic()
    found = probe(bundle, silent(FIND), signs.load(LOG), Budget(run_s=2))
    (one,) = found.by_call[0]
    assert not one.conclusive and "--grep (no answer within 2 s)" in one.result
    assert time.monotonic() - begun < 60
    assert [line["ended_by"] for line in found.log if "code" in line] == ["exit", "time_limit", "exit"]


def test_the_time_of_a_question_is_spent_once_and_the_rest_is_inconclusive(
    tmp_path: Path, slow: Callable[[str], None]
) -> None:
    bundle = same_build(trial(tmp_path, f"git {FIND}"))
    slow("sleep 0.3")
    found = probe(bundle, silent(FIND), signs.load(LOG), Budget(total_s=0.2))
    (one,) = found.by_call[0]
    assert not one.conclusive and "0.2 s" in one.result


def test_a_question_that_is_killed_is_in_the_log_with_its_signal(tmp_path: Path, slow: Callable[[str], None]) -> None:
    bundle = same_build(trial(tmp_path, f"git {FIND}"))
    slow('case "$*" in *--grep*) kill -KILL $$;; esac')
    found = probe(bundle, silent(FIND), signs.load(LOG))
    (one,) = found.by_call[0]
    assert not one.conclusive and "ended by SIGKILL" in one.result
    killed = next(line for line in found.log if line.get("signal"))
    assert (killed["code"], killed["signal"]) == (None, "SIGKILL")


def test_the_budget_of_commands_is_a_questions_and_what_is_left_is_named(tmp_path: Path) -> None:
    bundle = trial(tmp_path, f"git {FIND}")
    record = attempt(call("C", FIND), call("C", "log --author=nobody"))
    found = probe(bundle, record, signs.load(LOG), Budget(runs=2))
    assert [one.conclusive for probes in found.by_call.values() for one in probes] == [False, False]
    assert found.by_call[1][0].result == "not concluded: the budget of 2 commands a question is spent"
    assert len(kinds(found, "code")) == 2 and len(kinds(found, "skipped")) == 2


def test_what_was_asked_once_is_not_asked_again(tmp_path: Path) -> None:
    bundle = trial(tmp_path, f"git {FIND}")
    found = probe(bundle, attempt(call("C", FIND), call("C", FIND)), signs.load(LOG))
    assert found.by_call[0] == found.by_call[1] and len(kinds(found, "code")) == 3


def test_once_explained_the_other_probes_of_a_call_are_left_out_aloud(tmp_path: Path) -> None:
    text = LOG + '[[probe]]\nkind = "type_sweep"\ncommand = "log"\ncandidates = ["shortlog HEAD"]\n'
    found = probe(trial(tmp_path, f"git {FIND}"), silent(FIND), signs.load(text))
    assert conclusion(found.by_call[0]) is not None
    assert [line["skipped"] for line in found.log if "skipped" in line] == ["explained by column_swap"]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"build": "0" * 64}, "another build is installed"),
        ({"build": None}, "the trial does not say which build it ran"),
    ],
)
def test_another_build_than_the_trial_ran_is_asked_nothing(tmp_path: Path, told: dict[str, str], why: str) -> None:
    bundle = trial(tmp_path, f"git {FIND}")
    known = json.loads((bundle / "trial.json").read_text())
    (bundle / "trial.json").write_text(json.dumps(known | told))
    found = probe(bundle, silent(FIND), signs.load(LOG))
    (one,) = found.by_call[0]
    assert not one.conclusive and why in one.result
    assert not kinds(found, "code") and why in found.log[0]["skipped"]


def test_a_bundle_without_the_state_is_asked_nothing_and_says_so(tmp_path: Path) -> None:
    bundle = trial(tmp_path, f"git {FIND}")
    (bundle / "work.after.tar.gz").unlink()
    found = probe(bundle, silent(FIND), signs.load(LOG))
    assert "its final state can't be laid out" in found.by_call[0][0].result
    (bundle / "work.after.tar.gz").write_bytes(b"no tar")
    assert "its final state can't be laid out" in probe(bundle, silent(FIND), signs.load(LOG)).by_call[0][0].result


def test_nothing_to_ask_starts_nothing(tmp_path: Path) -> None:
    found = probe(tmp_path, attempt("ok", "A", "B"), Signs())
    assert found == Probed({}, [])


def test_a_state_with_links_that_lead_out_is_laid_out_without_them(tmp_path: Path) -> None:
    bundle = trial(tmp_path, "ln -s /etc/passwd out; ln -s prices.txt in; mkfifo pipe; chmod 0700 prices.txt")
    from harness.subject import load

    root = tmp_path / "root"
    for name in ("work", "home"):
        (root / name).mkdir(parents=True)
    load("git").kind.restore(bundle, root)
    assert not (root / "work" / "out").exists() and not (root / "work" / "pipe").exists()
    assert (root / "work" / "in").is_symlink() and (root / "work" / ".git" / "HEAD").is_file()


def test_a_repository_that_would_start_programs_starts_none(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    bundle = trial(tmp_path, f"git config core.fsmonitor 'touch {mark}; false'", "git status", f"rm -f {mark}",
                   f"git {FIND}")  # fmt: skip
    assert probe(bundle, silent(FIND), signs.load(LOG)).by_call[0][0].conclusive
    assert not mark.exists()


def test_labds_lab_and_journals_are_there_again_and_nothing_may_be_driven(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    (bundle / "journal" / "pico" / "console").mkdir(parents=True)
    (bundle / "lab.after.toml").write_text(
        '[targets.pico]\n[[targets.pico.serial]]\nname = "console"\ndevice = "/dev/x"\n'
    )
    (bundle / "journal" / "pico" / "console" / "note").write_text("kept")
    from harness import sandbox
    from harness.execute import run
    from harness.subject import load

    labd = load("labd")
    program = labd.find()
    assert program is not None
    with sandbox.bare() as root:
        state = probing._State(bundle, root, labd, {"lane": "loopback"})
        state.lay_out()
        listed = run([program, "target", "list"], env=state.env, cwd=root / "work", limit_s=20)
        assert listed.stdout.startswith(b"pico")
        assert run([program, "target", "rm", "pico"], env=state.env, cwd=root / "work", limit_s=20).code == 3
        assert len(list(root.rglob("note"))) == 1
        state.renew()
        assert len(list(root.rglob("note"))) == 1
    assert not root.exists()


def test_the_build_of_labd_is_its_package_not_its_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.subject import load

    labd = load("labd")
    program = labd.find()
    assert program is not None
    before = labd.kind.build(program)
    monkeypatch.setattr("harness.data.hashes", lambda: {"labd": "another"})
    assert labd.kind.build(program) != before


def test_a_records_call_that_the_bundle_does_not_tell_runs_in_the_agents_directory(tmp_path: Path) -> None:
    bundle = trial(tmp_path, "mkdir deep; cd deep; git status")
    told = silent(FIND)
    assert probing._directories(Bundle(bundle), told) == [None]
    there = replace(told, calls=(call("ok", "status"),))
    assert [Path(str(one)).name for one in probing._directories(Bundle(bundle), there)] == ["deep"]


def test_the_steps_that_laid_the_desk_are_in_no_record_and_the_others_directories_are_known(tmp_path: Path) -> None:
    view = Bundle(trial(tmp_path, "git status", "mkdir deep; cd deep; git status -s"))
    view.scenario["loopback"] = {"prepared": [{"run": "git status"}]}
    there = replace(silent(FIND), calls=(call("ok", "status -s"),))
    assert [Path(str(one)).name for one in probing._directories(view, there)] == ["deep"]


def test_a_state_that_is_too_big_is_named_as_left_out_and_nothing_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.subjects.git.STATE_BYTES", 100)
    bundle = trial(tmp_path, f"git {FIND}")
    assert json.loads((bundle / "trial.json").read_text())["left_out"] == ["work.after.tar.gz: too big"]
    found = probe(bundle, silent(FIND), signs.load(LOG))
    assert "its final state can't be laid out" in found.by_call[0][0].result


def test_journals_that_are_too_big_are_not_laid_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.subject import load

    monkeypatch.setattr("harness.subjects.labd.STATE_BYTES", 2)
    (tmp_path / "bundle" / "journal").mkdir(parents=True)
    (tmp_path / "bundle" / "journal" / "rx").write_text("abc")
    with pytest.raises(ValueError, match="bigger than"):
        load("labd").kind.restore(tmp_path / "bundle", tmp_path / "root")
