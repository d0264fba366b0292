"""What the subjects' own [[probe]] entries find: on atlas with one defect at a time, on repositories, on a bench.

Each call is made in a real trial and asked about afterwards, as `labd-eval classify` does it.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from graders import attempts, signs
from graders.bundle_view import Bundle
from graders.contract import Call, Record
from graders.signs import Signs
from graders.taxonomy import classified
from harness import probing, sabotage
from harness.agents import Agent
from harness.agents._script import play
from harness.scenario import Step, load_all
from harness.scenario_fill import data_dir
from harness.trial import Order, conduct


def signs_of(name: str) -> Signs:
    path = data_dir("scenarios") / name / "signs.toml"
    return signs.load(path.read_text(), str(path))


def tried(tmp_path: Path, subject: str, identity: str, *lines: str | Step) -> tuple[Path, Record]:
    """The bundle of a trial in which these lines ran, and its record before anything is asked."""
    steps = [Step(line, shell=True) if isinstance(line, str) else line for line in lines]
    agent = Agent("other", "", frozenset({"fail"}), lambda bench: play(bench, steps))
    scenario = {one.id: one for one in load_all(subject)}[identity]
    bundle = conduct(Order(identity, "cold", "other", 1), scenario, agent, tmp_path, facts={})
    assert bundle is not None
    return bundle, attempts.attempt(Bundle(bundle), signs_of(subject))


def recorded(tmp_path: Path, subject: str, identity: str, *lines: str) -> Record:
    """The record of a trial in which these shell lines ran."""
    bundle, record = tried(tmp_path, subject, identity, *lines)
    known = signs_of(subject)
    return classified(record, known, probing.probe(bundle, record, known).by_call)


def label(call: Call) -> tuple[str | None, str | None]:
    return call.cls, call.subtype


# -- atlas


@pytest.fixture
def atlas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Call]:
    """Runs a line of atlas, with a defect or without, and asks what can be asked about it."""

    def ran(line: str, defect: str = "") -> Call:
        if defect:
            monkeypatch.setenv("LABD_EVAL_ATLAS", str(planted(tmp_path, defect)))
        return recorded(tmp_path, "atlas", "A1", line).calls[-1]

    return ran


def planted(tmp_path: Path, defect: str) -> Path:
    return sabotage.plant(defect, tmp_path / "copy")


CAMBRIDGE = '--in "Cambridge, Massachusetts"'


@pytest.mark.parametrize(
    ("defect", "line", "subtype", "evidence"),
    [
        ("silent_zero", f"atlas count places --category bus_stop {CAMBRIDGE}", "c-vocabulary", "nearest: bus_station"),
        ("silent_zero", "atlas places --category bus_stop --json", "c-vocabulary", "nearest: bus_station"),
        ("wrong_column", 'atlas landuse --class recreation --in "United Kingdom"', "c-wrong-column", "with subtype"),
        ("wrong_column", "atlas count landuse --class recreation --json", "c-wrong-column", "with subtype"),
        ("wrong_verb", "atlas landuse --class beach --in country:Malta", "c-wrong-type",
         "none with landuse, 3 with land"),
        ("wrong_verb", "atlas count landuse --class beach", "c-wrong-type", "with land"),
        ("dropped_flag", "atlas count places --category art_museum --category history_museum", "c-dropped-input",
         "all together"),
        ("dropped_flag", "atlas places --category art_museum --category history_museum --in London,GB",
         "c-dropped-input", "art_museum was dropped"),
        ("silent_cut", "atlas countries --currency EUR", "c-truncated", "cut off at an unspoken limit of 20"),
        ("silent_cut", "atlas countries --currency EUR --json", "c-truncated", "20 vs "),
        ("off_by_one", "atlas cities --in continent:Asia --limit 30", "c-truncated", "29 vs 171"),
        ("off_by_one", "atlas places --class museum --json", "c-truncated", "19 vs 109"),
        ("count_cut", "atlas count cities --in continent:Asia --json", "c-truncated", "20 vs "),
        ("ignored_place", "atlas cities --in Norway --json", "c-dropped-input", "with continent:Africa and with"),
        ("ignored_word", "atlas count cities --type capital", "c-dropped-input", "a value that nothing has"),
        ("in_words", "atlas count places --class museum", "c-unknown", ""),
        ("half", "atlas cities --in Norway --json", "c-unknown", ""),
        ("wrong_place", f"atlas count places --category bus_station {CAMBRIDGE}", "c-wrong-entity",
         "Massachusetts (region) was named, and what was resolved is of region England"),
        ("lost_rows", "atlas count countries --region Oceania --min-population 1000000", "c-unknown", ""),
    ],
)  # fmt: skip
def test_each_planted_defect_is_found_for_what_it_is(
    atlas: Callable[..., Call], defect: str, line: str, subtype: str, evidence: str
) -> None:
    call = atlas(line, defect)
    assert label(call) == ("C", subtype), call
    assert evidence in call.evidence


@pytest.mark.parametrize(
    "line",
    [
        f"atlas count places --category bus_station {CAMBRIDGE}",
        "atlas count places --category art_museum --category history_museum",
        "atlas places --category art_museum --category history_museum --in London,GB --in 'Paris, FR'",
        "atlas countries --currency EUR",
        "atlas countries --currency EUR --limit 3 --json",
        "atlas countries --currency EUR --limit 36",
        "atlas cities --in Malta,MT",
        'atlas cities --in "Malta, Montana"',
        'atlas places --in "Cambridge, England" --json',
        "atlas count cities --in Norway --in Oslo,NO",
        "atlas values",
        "atlas cities --in Norway --name o --limit 0",
        "atlas count places --class museum --in Norway",
        "atlas count countries --currency NOK",
        "atlas cities --min-population 5000000 --sort population --limit 0 --json",
        "atlas near Oslo --within 500",
        "atlas values places category --limit 0 --json",
        "atlas distance Oslo Oslo --json",
        "atlas city Oslo",
        "atlas country Malta --json",
        "atlas where Malta",
        "atlas places --help",
        "atlas count --help --json",
    ],
)
def test_the_same_questions_to_the_whole_program_find_nothing(atlas: Callable[..., Call], line: str) -> None:
    call = atlas(line)
    assert label(call) == (None, None), call
    assert not any(one.conclusive for one in call.probes)


# -- git


def git(tmp_path: Path, *lines: str, identity: str = "G4") -> Call:
    return recorded(tmp_path, "git", identity, *lines).calls[-1]


@pytest.mark.parametrize(
    ("line", "subtype", "evidence"),
    [
        ("git log --author='Mira Vos$'", "c-vocabulary", "nearest: Mira Voss"),
        ("git log --oneline --author hours", "c-wrong-column", "0 vs 1: none with author hours, 1 with --grep"),
        ("git log --oneline --grep=Operator", "c-wrong-column", "with --committer"),
        ("git log --oneline -- hour.txt", "c-vocabulary", "nearest: hours.txt"),
        ("git branch --list mian", "c-vocabulary", "nearest: main"),
        ("git ls-files hour.txt", "c-vocabulary", "nearest: hours.txt"),
        ("git diff HEAD -- hour.txt", "c-vocabulary", "nearest: hours.txt"),
        ("git status --short -- hours.txt hour.txt", "c-vocabulary", "nearest: hours.txt"),
    ],
)
def test_an_empty_answer_of_git_is_explained(tmp_path: Path, line: str, subtype: str, evidence: str) -> None:
    call = git(tmp_path, line)
    assert label(call) == ("C", subtype), call
    assert evidence in call.evidence


def test_what_is_on_another_branch_is_found_there(tmp_path: Path) -> None:
    call = git(tmp_path, "git log --oneline --grep=Correct", identity="G5")
    assert label(call) == ("C", "c-wrong-type"), call
    assert "with --all" in call.evidence


def test_a_branch_that_is_a_tag_is_found_as_one(tmp_path: Path) -> None:
    call = git(tmp_path, "git tag v1", "git branch --list v1")
    assert label(call) == ("C", "c-wrong-type"), call


@pytest.mark.parametrize(
    "line",
    ["git log -1 --format=%s", "git log -n 2 --oneline", "git log --max-count=1", "git branch -a", "git status --short",
     "git log --oneline -- index.txt hours.txt", "git log --author=Mira --author=build --oneline",
     "git branch made-now", "git diff -- hours.txt", "git diff HEAD -- ./hours.txt", "git status --short -- hours.txt",
     "git diff-index --cached HEAD -- hours.txt", "git log -n 3 --format=%D", "git log -3 --name-only --format=",
     "git log --author=Mira --format=%s"],
)  # fmt: skip
def test_git_asked_plainly_is_without_fault(tmp_path: Path, line: str) -> None:
    call = git(tmp_path, line)
    assert label(call) == (None, None), call


def test_a_limit_that_was_asked_of_git_is_recorded_and_no_fault(tmp_path: Path) -> None:
    call = git(tmp_path, "git log -1 --format=%s")
    assert [(one.kind, one.conclusive) for one in call.probes] == [("limit_raise", False)]
    assert "which was asked for" in call.probes[0].result


# -- labd


def test_a_benchs_answer_that_explains_itself_is_not_asked_about_and_would_be_found_otherwise(tmp_path: Path) -> None:
    """The journals of a trial are there again: what its console never said stands in the other line's."""
    words = "labd serial log dut -i console --grep 'asset tag'"
    bundle, record = tried(
        tmp_path, "labd", "S6", "labd serial watch dut", Step("labd serial log dut -i bmc", until="asset tag"), words,
        "labd serial log dut -i bmc --tail 1",
    )  # fmt: skip
    known = signs_of("labd")
    at = next(n for n, call in enumerate(record.calls) if "--grep" in call.argv)
    assert record.calls[at].cls == "B", record.calls[at]
    found = probing.probe(bundle, record, known)
    assert at not in found.by_call
    assert {"call": at, "kind": "type_sweep", "skipped": "the answer itself says how to go on"} in found.log
    last = [(one.kind, one.conclusive) for one in found.by_call[len(record.calls) - 1]]
    assert last == [("limit_raise", False), ("argv_echo", False)], found.by_call

    mute = replace(record.calls[at], recovery="unguided", subtype="c-unknown", stderr_head="")
    record = replace(record, calls=(*record.calls[:at], mute, *record.calls[at + 1 :]))
    call = classified(record, known, probing.probe(bundle, record, known).by_call).calls[at]
    assert label(call) == ("C", "c-wrong-type"), call
    assert "with bmc" in call.evidence
