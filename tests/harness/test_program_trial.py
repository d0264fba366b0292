"""A program as an agent, from its start in the sandbox to its bundle and verdict: real small programs, every end."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import agents, execute, files, grading, program_trial, transcripts
from harness.agents import noise
from harness.agents._program import Options
from harness.scenario import fixtures_dir
from harness.trial import Order, conduct
from tests.harness.conftest import ADD_PICO, make_scenario

Tried = tuple[str, dict[str, Any], Path]
Try = Callable[..., Tried]


@pytest.fixture
def tried(subject: Path, tmp_path: Path) -> Try:
    """Has a shell text play the scenario as an agent's program: the verdict, trial.json, the bundle."""

    def play(text: str, *, agent: str = "", options: Options | None = None, **fields: Any) -> Tried:
        scenario = make_scenario(ADD_PICO, **fields)
        found = agents.find(agent or "command:" + shlex.join(["/bin/sh", "-c", text]))
        bundle = conduct(Order("T1", "cold", found.name, 1), scenario, found, tmp_path, facts={}, options=options)
        assert bundle is not None
        return grading.grade(bundle)[0].verdict, files.read_json(bundle / "trial.json"), bundle

    return play


def test_a_program_that_does_it_passes_and_leaves_what_it_printed(tried: Try) -> None:
    verdict, trial, bundle = tried("echo to err >&2; labd target add pico >&2 && echo 'pico is in'")
    assert (verdict, trial["ended_by"]) == ("pass", "completed")
    assert (bundle / "raw" / "stdout").read_bytes() == b"pico is in\n"
    assert (bundle / "raw" / "stderr").read_bytes() == b"to err\npico: added\n"
    assert (bundle / "answer.txt").read_text() == "pico is in"
    assert json.loads((bundle / "transcript.json").read_bytes())["product"] == "text"
    assert {"raw/stdout", "transcript.json"} <= set(trial["files"])


def test_the_goal_is_on_its_stdin_or_where_it_is_asked_for(tried: Try) -> None:
    assert (tried("cat")[2] / "answer.txt").read_text() == "Enter the board pico."
    found = tried("", agent="command:/bin/echo 'goal: {goal}' end")[2]
    assert (found / "answer.txt").read_text() == "goal: Enter the board pico. end"


def test_a_script_is_started_with_the_interpreter_of_our_path(
    tried: Try, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    for name, text in (
        ("odd-sh", '#!/bin/sh\necho odd; exec /bin/sh "$@"\n'),
        ("my-agent", "#!/usr/bin/env odd-sh\npwd\n"),
    ):
        (ours / name).write_text(text)
        (ours / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{ours}:{os.environ['PATH']}")
    said = (tried("", agent="command:my-agent")[2] / "answer.txt").read_text().split()
    assert said[0] == "odd"
    assert said[1].endswith("/work")


def test_a_program_that_is_missing_blocks_and_says_what_to_install(tried: Try) -> None:
    verdict, trial, _ = tried("", agent="command:no-such-agent --fast")
    assert (verdict, trial["ended_by"]) == ("blocked", "agent_missing")
    assert "no-such-agent" in trial["detail"]
    assert "install" in trial["detail"]


def test_one_that_ends_before_it_began_is_no_result(tried: Try) -> None:
    verdict, trial, _ = tried("echo 'cannot find module' >&2; exit 4")
    assert (verdict, trial["ended_by"]) == ("harness_error", "agent_failed_to_start")
    assert trial["detail"] == "exit 4: cannot find module"


@pytest.mark.parametrize(
    ("act", "why"), [("echo half; exit 3", "exit 3: "), ("echo half; kill -SEGV $$", "ended by SIGSEGV: ")]
)
def test_one_that_ends_in_error_is_graded_by_what_it_did(tried: Try, act: str, why: str) -> None:
    verdict, trial, _ = tried(act)
    assert (verdict, trial["ended_by"], trial["detail"]) == ("fail", "agent_exit", why)


def test_a_silent_one_that_used_the_bench_had_begun(tried: Try) -> None:
    assert tried("labd target add pico; exit 1")[1]["ended_by"] == "agent_exit"


def test_one_that_ignores_the_request_to_end_is_ended(tried: Try) -> None:
    begun = time.monotonic()
    verdict, trial, bundle = tried("trap '' TERM INT HUP; echo on; while :; do sleep 1; done", timeout_s=0.5)
    assert (verdict, trial["ended_by"]) == ("fail", "time_limit")
    assert (bundle / "raw" / "stdout").read_bytes() == b"on\n"
    assert time.monotonic() - begun < 10


def test_the_runs_time_limit_counts_where_it_is_shorter(tried: Try) -> None:
    _, trial, _ = tried("sleep 60", options=Options(time_s=0.3))
    assert (trial["ended_by"], trial["options"]["time_s"]) == ("time_limit", 0.3)
    assert trial["program"]["duration_s"] < 5


def test_a_flood_is_stopped_and_what_is_kept_is_bounded(tried: Try, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.bench.PROGRAM_BYTES", 100_000)
    verdict, trial, bundle = tried("yes")
    assert (verdict, trial["ended_by"]) == ("fail", "output_limit")
    assert (bundle / "raw" / "stdout").stat().st_size == 100_000


def test_a_daemon_that_floods_its_output_does_not_keep_the_trial(tried: Try) -> None:
    begun = time.monotonic()
    _, trial, bundle = tried("echo first; setsid -f sh -c 'sleep 0.3; exec yes'; sleep 0.1")
    assert trial["ended_by"] == "completed"
    assert (bundle / "raw" / "stdout").read_bytes().startswith(b"first\n")
    assert time.monotonic() - begun < 10


def test_daemons_with_nothing_of_the_sandbox_about_them_do_not_survive(tried: Try) -> None:
    _, trial, _ = tried("for i in 1 2 3; do env -i setsid -f sleep 600 </dev/null >/dev/null 2>&1; done; echo ok")
    assert [one.endswith("sleep 600") for one in trial["left_running"]] == [True] * 3  # setsid may not have become it


@pytest.mark.parametrize("shell", ["bash -lc", "sh -lc", "env -i HOME=$HOME LABD_LAB=$LABD_LAB bash -lc"])
def test_a_login_shell_comes_by_the_benchs_door(tried: Try, shell: str) -> None:
    verdict, _, bundle = tried(f"{shell} 'command -v labd'")
    assert verdict == "fail"
    assert (bundle / "answer.txt").read_text().endswith("/bin/labd")
    assert "/bench-" in (bundle / "answer.txt").read_text()


def test_an_absolute_path_around_the_door_is_seen(tried: Try, subject: Path) -> None:
    verdict, _, bundle = tried(f"{subject} target add pico")
    assert verdict == "fail"
    assert "around the sandbox's program" in grading.grade(bundle)[0].reason


def test_a_copied_binary_is_seen(tried: Try) -> None:
    verdict, _, bundle = tried('cp -L "$(command -v labd)" ./mine && ./mine target add pico')
    assert verdict == "fail"
    assert "copied binary" in grading.grade(bundle)[0].reason


def test_light_isolation_is_labelled_and_never_counts(
    tried: Try, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    verdict, trial, bundle = tried('labd target add pico >&2; echo "$HOME"', options=Options(isolation="light"))
    assert (verdict, trial["ended_by"]) == ("not_applicable", "smoke")
    assert (bundle / "answer.txt").read_text() == str(tmp_path)
    assert "completed" in grading.grade(bundle)[0].reason


def test_noise_uses_up_its_time_and_gets_nothing(tried: Try, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise.PROGRAM, "time_s", 0.8)
    verdict, trial, bundle = tried("", agent="noise")
    assert (verdict, trial["ended_by"]) == ("fail", "time_limit")
    assert (bundle / "raw" / "stdout").stat().st_size > 100
    assert agents.find("noise").control


def test_noise_of_one_seed_is_the_same_noise() -> None:
    def said(seed: str) -> bytes:
        script = Path(noise.__file__).with_name("_babble.py")
        return subprocess.run([sys.executable, "-IS", script, seed, "6"], input=b"add pico", stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env={"PATH": "/nowhere"}, check=True).stdout  # fmt: skip

    assert said("7") == said("7") != said("8")


@pytest.mark.parametrize(
    ("sample", "cause"), [("claude-401.jsonl", "provider_failed"), ("claude-maxturns.jsonl", "time_limit")]
)
def test_time_that_ran_out_before_the_model_said_a_word_is_the_providers_failure(sample: str, cause: str) -> None:
    """A product asks a provider that refuses again and again, longer than a trial lasts."""
    raw = {"stdout": (fixtures_dir() / "transcripts" / sample).read_bytes()}
    told = transcripts.parse("claude", raw)
    ended = execute.Ended(("claude",), None, "SIGTERM", raw["stdout"], b"", 0, 0.0, 60.0, "time_limit")
    assert program_trial._cause(ended, told, "", Options(), began=True)[0] == cause
