"""`labd-eval` as its users meet it: whole processes, their streams and exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import agents, cli, data, program_options
from labd.errors import Usage
from tests.harness.conftest import DEADLINE_S, wait_until

ROOT = Path(__file__).parents[2]
COMMANDS = ("list", "check", "run", "loopback", "grade", "report")


class Told:
    """What one call said."""

    def __init__(self, ended: "subprocess.CompletedProcess[str]") -> None:
        self.code, self.out, self.err = ended.returncode, ended.stdout, ended.stderr


#: The exam's own hashes, so that a run can be gone on with although somebody has edited the exam meanwhile.
HASHES = {"labd": "0", "loopback": "0"}
LAUNCH = f"import sys; from harness import cli, data; data.hashes = lambda: {HASHES}; sys.exit(cli.main())"


def start(*words: str, cwd: Path) -> "subprocess.Popen[str]":
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", LAUNCH, *words], cwd=cwd, env=env, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip


def call(*words: str, cwd: Path) -> Told:
    child = start(*words, cwd=cwd)
    out, err = child.communicate(timeout=6 * DEADLINE_S)
    return Told(subprocess.CompletedProcess(words, child.returncode, out, err))


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    """A call in this process, where nothing depends on the process: starting one for each mistake takes long."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(data, "hashes", lambda: HASHES)

    def run(*words: str) -> Told:
        try:
            code = cli.main(list(words))
        except SystemExit as error:
            code = int(error.code or 0)
        out, err = capfd.readouterr()
        return Told(subprocess.CompletedProcess(words, code, out, err))

    return run


def test_without_words_it_says_how_it_is_used(tmp_path: Path) -> None:
    told = call(cwd=tmp_path)
    assert (told.code, told.err) == (0, "")
    assert all(command in told.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(inside: Callable[..., Told], command: str) -> None:
    told = inside(command, "--help")
    assert told.code == 0
    assert f"labd-eval {command}" in told.out.partition("examples:")[2]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["rnu"], 2, ["'rnu'", "run"]),
        (["run", "--agnet", "noop"], 2, ["--agnet", "--agent"]),
        (["run", "--agent", "no-op"], 4, ["no-op", "noop", "labd-eval list"]),
        (["run", "--scenario", "C22"], 4, ["C22", "C2", "labd-eval list"]),
        (["run", "--lane", "virtuel"], 2, ["virtuel", "virtual", "loopback"]),
        (["run", "--jobs", "0"], 2, ["0"]),
        (["run", "--jobs", "2", "--jobs", "3"], 2, ["--jobs", "twice"]),
        (["run", "--all", "--agent", "noop"], 2, ["--all", "--agent"]),
        (["run", "--scenario", "S8", "--agent", "raw"], 2, ["raw", "tasks", "labd-eval versus"]),
        (["versus", "--agent", "noop"], 2, ["noop", "no arm"]),
        (["versus", "--scenario", "S8"], 2, ["tasks"]),
        (["run", "--cluster", "somewhere"], 2, ["somewhere", "labd-eval run --cluster 127.0.0.1:8786"]),
        (["run", "--resume", "nothing"], 4, ["nothing"]),
        (["run", "--resume", "x", "--agent", "noop"], 2, ["--resume"]),
        (["report"], 2, ["RUN"]),
        (["report", "latest"], 4, ["latest"]),
        (["list", "extra"], 2, ["extra"]),
    ],
)
def test_a_mistake_gets_a_code_the_word_and_what_was_meant(
    inside: Callable[..., Told], tmp_path: Path, words: list[str], code: int, says: list[str]
) -> None:
    told = inside(*words)
    assert (told.code, told.out) == (code, "")
    assert all(word in told.err for word in says), told.err
    assert "Traceback" not in told.err
    assert list(tmp_path.iterdir()) == []


def test_variables_that_are_named_are_given_to_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster's workers have variables of their own: those here need not be there."""
    cast = agents.select(["command:true"])
    words = ["run", "--agent", "command:true", "--env", "A_KEY", "--env", "A_KEY"]
    monkeypatch.setenv("A_KEY", "x")
    assert program_options.read(cli.parse(words), cast).env == ("A_KEY",)
    monkeypatch.delenv("A_KEY")
    with pytest.raises(Usage, match="A_KEY"):
        program_options.read(cli.parse(words), cast)
    assert program_options.read(cli.parse([*words, "--cluster", "127.0.0.1:8786"]), cast).env == ("A_KEY",)


def test_under_json_a_mistake_is_one_object(tmp_path: Path) -> None:
    told = call("run", "--agent", "refrence", "--json", cwd=tmp_path)
    error = json.loads(told.err)["error"]
    assert (told.code, error["code"], error["near"]) == (4, "not_found", ["reference"])
    assert "no agent" in error["message"]


def test_the_list_tells_scenarios_and_agents_also_to_programs(inside: Callable[..., Told]) -> None:
    told = inside("list")
    assert re.search(r"^C1 +config +core +\S", told.out, re.MULTILINE)
    assert "hand-edit" in told.out
    data = json.loads(inside("list", "--lane", "loopback", "--json").out)
    assert {scenario["lane"] for scenario in data["scenarios"]} == {"loopback"}
    assert data["agents"][0]["name"] == "reference"
    assert [one["name"] for one in data["subjects"]] == ["labd", "atlas", "git"]


def test_a_run_ends_with_0_when_all_ended_as_expected_and_leaves_its_report(subject: Path, tmp_path: Path) -> None:
    told = call("run", "--agent", "noop", "--scenario", "C2,c5", cwd=tmp_path)
    assert told.code == 0, told.err
    assert re.search(r"^C2 +config +fail$", told.out, re.MULTILINE)
    assert "[2/2]" in told.err
    (directory,) = (tmp_path / "runs").iterdir()
    page = (directory / "report.md").read_text()
    assert "| C2 | config | fail |" in page
    assert "2/2 (34–100 %)" in page
    assert json.loads((directory / "report.json").read_text())["as_expected"] is True


def test_a_run_ends_with_1_when_something_was_not_as_expected_and_says_what(
    subject: Path, inside: Callable[..., Told]
) -> None:
    told = inside("run", "--scenario", "C2", "--json", "--quiet")
    data = json.loads(told.out)
    assert (told.code, told.err) == (1, "")
    assert data["trials"][0]["verdict"] == "fail"
    assert data["trials"][0]["failed_checks"]
    again = inside("report", "latest")
    assert again.code == 0
    assert "C2.cold.reference.1: fail" in again.out
    assert json.loads(inside("report", "latest", "--json").out) == data


def test_grading_again_changes_nothing_and_ends_as_the_run_did(
    subject: Path, inside: Callable[..., Told], tmp_path: Path
) -> None:
    inside("run", "--agent", "controls", "--scenario", "C2")
    (directory,) = (tmp_path / "runs").iterdir()
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    told = inside("grade", directory.name)
    assert told.out.startswith("5 bundles graded, 0 verdicts changed\n")
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


def test_ctrl_c_keeps_what_is_finished_and_the_run_can_be_gone_on_with(subject: Path, tmp_path: Path) -> None:
    honest = subject.read_text()
    real = os.path.join(os.path.dirname(sys.executable), "labd")
    subject.write_text(f'#!/bin/sh\ncase "$*" in commands*|*--help|--version) exec "{real}" "$@";; esac\nsleep 600\n')
    child = start("run", "--all", "--scenario", "C2", "--jobs", "1", cwd=tmp_path)
    runs = tmp_path / "runs"
    wait_until("the run's log", lambda: list(runs.glob("*/log.jsonl")))
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=3 * DEADLINE_S)
    assert child.returncode == 130, err
    assert "not_run" in out
    assert "--resume" in err
    (directory,) = runs.iterdir()
    assert not list(directory.glob("trials/*reference*"))
    assert not list(directory.glob("trials/.partial*"))

    subject.write_text(honest)
    told = call("run", "--resume", "latest", cwd=tmp_path)
    assert (directory / "trials" / "C2.cold.reference.1" / "trial.json").exists(), told.err
    assert list(runs.iterdir()) == [directory]


def test_a_reader_that_goes_away_is_no_error_of_ours(tmp_path: Path) -> None:
    script = f"'{sys.executable}' -m harness.cli list --json | head -c 10"
    ended = subprocess.run(["/bin/sh", "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path,
                           capture_output=True, timeout=DEADLINE_S, check=False)  # fmt: skip
    assert (len(ended.stdout), ended.stderr) == (10, b"")


def test_a_full_disk_ends_a_run_with_its_path_and_the_way_to_go_on(
    subject: Path, inside: Callable[..., Told], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "runs" / "x"))

    with monkeypatch.context() as patched:
        patched.setattr("harness.bundle.Bundle.finish", full)
        told = inside("run", "--agent", "noop", "--scenario", "C2,C5")
    (directory,) = (tmp_path / "runs").iterdir()
    assert told.code == 1
    assert f"{tmp_path}/runs/x: No space left on device" in told.err
    assert f"labd-eval run --resume runs/{directory.name}" in told.err
    assert "Traceback" not in told.err
    assert inside("run", "--resume", directory.name).code == 0


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('operation == "target add"', 'operation == "target ad"', "no command 'target ad'"),
        ('"labd target add pico",', '"labd target ad pico",', "no such command"),
        ("Enter all of that", "Use target add for that", "is a word of the tool"),
        ("{nonce} at", "{nonse} at", "unknown placeholder"),
    ],
)
def test_a_run_does_not_start_when_its_scenarios_fail_the_exams_own_check(
    inside: Callable[..., Told], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, says: str
) -> None:
    from harness import scenario

    text = (scenario.scenarios_dir() / "c1.toml").read_text()
    assert old in text
    place = tmp_path / "own"
    place.mkdir()
    (place / "c1.toml").write_text(text.replace(old, new))
    monkeypatch.setattr(scenario, "scenarios_dir", lambda subject="labd": place)
    told = inside("run", "--agent", "noop")
    assert (told.code, told.out) == (1, "")
    assert says in told.err
    assert not (tmp_path / "runs").exists()


def test_the_program_is_asked_once_for_one_build_within_a_run(
    subject: Path, inside: Callable[..., Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness import soundness

    asked: list[object] = []
    monkeypatch.setattr(data, "hashes", lambda: {"labd": "0", "loopback": "0"})
    monkeypatch.setattr(soundness, "live", lambda chosen, **_: asked.append(chosen) or [])
    inside("run", "--agent", "noop", "--scenario", "C2")
    inside("run", "--resume", "latest")
    assert len(asked) == 1
    monkeypatch.setattr(soundness, "key", lambda chosen: "another build")
    inside("run", "--resume", "latest")
    assert len(asked) == 2


@pytest.mark.parametrize(
    "words", [["grade", "latest"], ["judge", "latest", "--judge", "cat"], ["compare", "latest", "latest"]]
)
def test_a_scenario_is_chosen_the_same_way_by_every_command(
    subject: Path, tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["-o", str(tmp_path)]
    assert cli.main(["run", "-s", "C2", "-q", *out]) in (0, 1)
    for given, code, said in (("C22", 4, "no scenario 'C22'"), (",", 2, "names no scenario")):
        capsys.readouterr()
        assert cli.main([*words, "-s", given, *out]) == code
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [["calibrate", "{}"], ["calibrate", "--judge", "scripted:{}"]])
def test_a_file_that_is_none_is_told_alike(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xf4\xff")
    broken = tmp_path / "broken.toml"
    broken.write_text("a = [")
    for path, said in ((tmp_path / "no.toml", "No such file"), (binary, "no text"), (broken, "Invalid value")):
        assert cli.main([word.format(path) for word in words]) == 1
        told = capsys.readouterr().err
        assert said in told and path.name in told and "Errno" not in told


def test_what_contradicts_itself_is_refused(subject: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--lane", "stated", "-s", "C1", "-o", str(tmp_path)]) == 2
    assert "in the lane 'stated'" in capsys.readouterr().err
    assert cli.main(["run", "-s", "C2", "-q", "-o", str(tmp_path)]) in (0, 1)
    assert cli.main(["report", "latest", "--json", "--format", "html", "-o", str(tmp_path)]) == 2
