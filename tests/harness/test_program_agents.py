"""Programs as agents: started in the sandbox with their prompt, within the trial's time, with its variables."""

import time

import pytest

from harness.bench import Bench, Interrupted
from harness.sandbox import Sandbox
from tests.harness.conftest import ADD_PICO, make_scenario


def test_a_program_gets_its_prompt_on_stdin_and_works_in_the_sandbox(place: Sandbox) -> None:
    ended = Bench(make_scenario(ADD_PICO), place).program(["/bin/sh", "-c", "cat; pwd -P"], stdin=b"add a board\n")
    assert ended.stdout.decode().splitlines() == ["add a board", str(place.work.resolve())]
    assert ended.session in place.sessions


def test_an_adapter_adds_variables_and_replaces_none_of_the_sandbox(place: Sandbox) -> None:
    env = {"MODEL_URL": "http://127.0.0.1:9", "HOME": "/root", "PATH": "/nowhere"}
    ended = Bench(make_scenario(ADD_PICO), place).program(["/bin/sh", "-c", 'echo "$MODEL_URL $HOME $PATH"'], env)
    assert ended.stdout.decode().split() == ["http://127.0.0.1:9", place.env["HOME"], place.env["PATH"]]


def test_what_a_program_printed_before_its_time_was_up_is_kept(place: Sandbox) -> None:
    bench = Bench(make_scenario(ADD_PICO), place)
    bench.deadline = time.monotonic() + 0.3
    ended = bench.program(["/bin/sh", "-c", "echo begun; exec sleep 60"])
    assert (ended.ended_by, ended.stdout) == ("time_limit", b"begun\n")


def test_a_program_in_a_run_that_is_stopped_leaves_no_trial(place: Sandbox) -> None:
    with pytest.raises(Interrupted):
        Bench(make_scenario(ADD_PICO), place, cancelled=lambda: True).program(["/bin/sleep", "60"])
