"""What an agent's program can reach of the machine: by real processes, behind bubblewrap where that is installed."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness import agents, files, grading, isolation, sandbox, scenario
from harness import subject as subjects
from harness.agents._program import Options
from harness.bench import Bench
from harness.sandbox import Sandbox, SandboxError
from harness.trial import Order, conduct
from tests.harness.conftest import ADD_PICO, make_scenario


def _bwrap_works() -> bool:
    words = ["bwrap", "--ro-bind", "/", "/", "--unshare-net", "true"]
    return shutil.which("bwrap") is not None and subprocess.run(words, capture_output=True, check=False).returncode == 0


needs_bwrap = pytest.mark.skipif(not _bwrap_works(), reason="no bubblewrap that works here")


def enclosed(place: Sandbox, text: str) -> tuple[int | None, str]:
    """How a shell text fares behind bubblewrap: its exit code and its output."""
    words = isolation.enclosed(["/bin/sh", "-c", text], place, "bwrap")
    ended = Bench(make_scenario(ADD_PICO), place).program(list(words))
    return ended.code, (ended.stdout + ended.stderr).decode()


def test_instructions_above_the_working_directory_are_found(tmp_path: Path) -> None:
    work = tmp_path / "a" / "work"
    work.mkdir(parents=True)
    before = isolation.above(work)
    (tmp_path / "CLAUDE.md").write_text("use the bench")
    assert set(isolation.above(work)) - set(before) == {str(tmp_path / "CLAUDE.md")}


def test_a_sandbox_under_somebodys_instructions_is_none(place: Sandbox) -> None:
    isolation.check(place, "home")
    (place.root / "AGENTS.md").write_text("use the bench")
    with pytest.raises(SandboxError, match=r"AGENTS\.md"):
        isolation.check(place, "home")


@needs_bwrap
def test_behind_bubblewrap_the_system_is_read_only_and_the_sandbox_is_not(place: Sandbox) -> None:
    assert enclosed(place, "echo x > /etc/never")[0] != 0
    assert not Path("/etc/never").exists()
    assert enclosed(place, 'echo x > "$HOME/kept" && pwd') == (0, f"{place.work}\n")
    assert (place.home / "kept").read_text() == "x\n"


@needs_bwrap
def test_behind_bubblewrap_nothing_of_the_users_is_there(place: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    with tempfile.NamedTemporaryFile(dir=place.root.parent) as other:
        _, said = enclosed(
            place, f"cat {tmp_path}/secret; ls -A {shlex.quote(str(Path.home()))} {place.root.parent} /run"
        )
        assert "mine" not in said
        assert Path(other.name).name not in said
        assert place.root.name in said


@needs_bwrap
def test_behind_bubblewrap_the_exams_answers_are_not_there(place: Sandbox) -> None:
    ours = Path(isolation.__file__).parent.parent
    _, said = enclosed(place, f"ls -A {ours}/scenarios {ours}/tests; ls {ours}/labd/thin.py")
    assert said.split() == [f"{ours}/scenarios:", f"{ours}/tests:", f"{ours}/labd/thin.py"]


@needs_bwrap
def test_behind_bubblewrap_a_subject_of_ours_runs_and_what_can_be_planted_in_it_is_not_there() -> None:
    atlas = next(one for one in scenario.load_all("atlas") if one.id == "A1")
    made = sandbox.create(atlas, str(subjects.load("atlas").find()))
    try:
        code, said = enclosed(made, f"atlas country Norway; ls {scenario.fixtures_dir() / 'sabotage'}")
    finally:
        made.stop()
        made.close()
    assert (code, "Oslo" in said, "defects" in said) == (0, True, False)


@needs_bwrap
def test_behind_bubblewrap_there_is_no_network_but_loopback(place: Sandbox) -> None:
    _, said = enclosed(place, "tail -n +3 /proc/self/net/dev | cut -d: -f1")
    assert said.split() == ["lo"]


FETCH = "import os, urllib.request as r; print(r.urlopen(os.environ['OPENAI_BASE_URL'] + '/models').read().decode())"


@pytest.mark.parametrize("kind", ["home", pytest.param("bwrap", marks=needs_bwrap)])
def test_a_scripted_model_is_reached_the_bench_too_and_the_log_is_kept(
    subject: Path, tmp_path: Path, kind: isolation.Isolation
) -> None:
    python = shlex.join([os.path.realpath(sys.executable), "-c", FETCH])
    agent = agents.find("command:" + shlex.join(["/bin/sh", "-c", f"labd target add pico >&2; {python}"]))
    options = Options(isolation=kind, script="reference")
    bundle = conduct(Order("T1", "cold", agent.name, 1), make_scenario(ADD_PICO), agent, tmp_path, facts={},
                     options=options)  # fmt: skip
    assert bundle is not None
    trial = files.read_json(bundle / "trial.json")
    assert (grading.grade(bundle)[0].verdict, trial["ended_by"], trial["left_running"]) == ("pass", "completed", [])
    assert json.loads((bundle / "answer.txt").read_text())["data"][0]["id"] == "scripted"
    assert (bundle / "raw" / "requests.jsonl").is_file()
    assert "never a model's skill" in trial["program"]["scripted_model"]
    assert trial["options"]["isolation"] == kind
