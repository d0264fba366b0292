"""What an agent does to its sandbox may cost it the trial, and never the run."""

import os
from pathlib import Path

import pytest

from harness import agents, execute, files, grading, sandbox
from harness.bundle import Bundle
from harness.scenario import Step
from harness.subject import load
from harness.subjects.labd import journal as journal_of
from harness.trial import Order, conduct
from tests.harness.conftest import ADD_PICO, make_scenario


def judged(tmp_path: Path, *lines: str, timeout_s: float = 20.0) -> tuple[str, dict[str, object], Path]:
    """The verdict on an agent that runs these shell lines, its trial.json, and its bundle."""
    scenario = make_scenario(*(Step(line, shell=True) for line in lines), timeout_s=timeout_s)
    bundle = conduct(Order("T1", "cold", "reference", 1), scenario, agents.find("reference"), tmp_path, facts={})
    assert bundle is not None
    return grading.grade(bundle)[0].verdict, files.read_json(bundle / "trial.json"), bundle


def test_the_honest_one_passes(subject: Path, tmp_path: Path) -> None:
    assert judged(tmp_path, ADD_PICO)[0] == "pass"


@pytest.mark.parametrize(
    "act",
    [
        'rm -f "$LABD_LAB"; mkfifo "$LABD_LAB"',
        'rm -f "$LABD_LAB"; mkdir "$LABD_LAB"',
        'rm -f "$LABD_LAB"; ln -s /dev/zero "$LABD_LAB"',
        'rm -rf "$HOME" "$XDG_RUNTIME_DIR"',
    ],
)
def test_something_else_in_the_labs_place_is_no_lab(subject: Path, tmp_path: Path, act: str) -> None:
    verdict, trial, bundle = judged(tmp_path, ADD_PICO, act)
    assert (verdict, trial["ended_by"]) == ("fail", "completed")
    assert not (bundle / "lab.after.toml").exists()


@pytest.mark.parametrize("act", ['rm "$LABD_ARGV_LOG"', 'rm "$LABD_ARGV_LOG"; mkdir "$LABD_ARGV_LOG"'])
def test_a_record_that_was_removed_is_missing_evidence_not_a_clean_record(
    subject: Path, tmp_path: Path, act: str
) -> None:
    assert judged(tmp_path, ADD_PICO, act)[0] == "unknown"


@pytest.mark.parametrize("act", ["truncate -s -20", "truncate -s -600"])
def test_a_record_that_was_cut_short_is_unknown_whether_at_a_line_or_in_it(
    subject: Path, tmp_path: Path, act: str
) -> None:
    assert judged(tmp_path, ADD_PICO, "labd config show; labd config show", f'{act} "$LABD_ARGV_LOG"')[0] == "unknown"


def test_an_emptied_record_no_longer_explains_the_lab(subject: Path, tmp_path: Path) -> None:
    assert judged(tmp_path, ADD_PICO, ': > "$LABD_ARGV_LOG"')[0] == "fail"


def test_links_and_pipes_among_the_evidence_are_left_out_and_named(subject: Path, tmp_path: Path) -> None:
    place = sandbox.create(make_scenario(ADD_PICO), str(subject))
    gathered = Bundle(tmp_path, "x")
    try:
        journal = journal_of(place) / "dut" / "console"
        journal.mkdir(parents=True)
        (journal / "directory").symlink_to("/etc")
        (journal / "file").symlink_to("/etc/passwd")
        os.mkfifo(journal / "pipe")
        (journal / "plain").write_text("x")
        gathered.put_evidence(place)
    finally:
        place.close()
    assert [path.name for path in (gathered.directory / "journal").rglob("*") if path.is_file()] == ["plain"]
    assert gathered.left_out == [f"journal/dut/console/{name}: no plain file" for name in ("file", "pipe")]


def test_its_own_words_are_kept_whatever_bytes_they_are(subject: Path, tmp_path: Path) -> None:
    _, _, bundle = judged(tmp_path, ADD_PICO, "printf 'a\\000b\\377\\033[31m'")
    assert (bundle / "answer.txt").read_text() == "a\0b\ufffd\x1b[31m"


def test_output_without_end_costs_its_time_and_not_our_memory(
    subject: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.execute.KEPT_BYTES", 1000)
    verdict, trial, bundle = judged(tmp_path, "yes", timeout_s=1.0)
    assert (verdict, trial["ended_by"]) == ("fail", "time_limit")
    assert (bundle / "calls.jsonl").stat().st_size < 10_000


@pytest.mark.skipif(not execute._marking(1), reason="no prlimit here: only sessions and the environment tell")
def test_a_process_with_a_session_and_an_environment_of_its_own_does_not_survive(subject: Path, tmp_path: Path) -> None:
    act = "env -i setsid -f /bin/sleep 600 <&- >&- 2>&-; echo done"
    _, trial, _ = judged(tmp_path, ADD_PICO, act)
    [left] = trial["left_running"]
    assert left.endswith("/bin/sleep 600")  # setsid may not have become it yet
    assert trial["ended_by"] == "completed"


def test_marks_of_two_sandboxes_differ_and_only_the_marked_process_is_found(tmp_path: Path) -> None:
    one, two = (sandbox.Sandbox(tmp_path, "config", {}, {}, None, "", examined=load()) for _ in range(2))
    assert one.mark != two.mark
    assert execute.processes_of([], (), 0.0, one.mark) == []
