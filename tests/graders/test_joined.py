"""What a transcript says against what was recorded: findings where one denies the other, and no false accusation."""

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import pytest

from graders import joined, outcome, t1_config
from graders.bundle_view import Bundle
from graders.joined import CODES, OUTPUTS, RECORDED
from graders.verdict import Check
from tests.graders import bundles

NAMES = [RECORDED, CODES, OUTPUTS]


def call(command: str | None, **more: Any) -> dict[str, Any]:
    base = {
        "kind": "shell",
        "tool": "bash",
        "thread": "main",
        "state": "done",
        "background": False,
        "output": "",
        "is_error": None,
        "exit_code": None,
        "exit_source": "unknown",
        "argv": None,
        "input": {},
    }
    return {**base, "command": command, **more}


def bundle(tmp_path: Path, *calls: dict[str, Any], ran: tuple[Any, ...] = (), made: Any = None) -> Bundle:
    """`ran`: (line, exit code) or (line, exit code, what it printed) of each recorded run."""
    maker = made or bundles.config()
    if made is None:
        maker.records = []
    for line, code, *printed in ran:
        maker.run(line, code=code, **({"stdout_head": printed[0]} if printed else {}))
    place = maker.write(tmp_path).directory
    told = [{"n": n, "id": f"c{n}", **one} for n, one in enumerate(calls, 1)]
    (place / "transcript.json").write_text(json.dumps({"schema": "labd-transcript/1", "calls": told, "messages": []}))
    return Bundle(place)


def by_name(found: Bundle) -> dict[str, Check]:
    checks = joined.check(found)
    assert [one.name for one in checks] == NAMES
    return {one.name: one for one in checks}


def test_all_matched_in_order(tmp_path: Path) -> None:
    found = bundle(
        tmp_path,
        call("cd x && labd status", exit_code=0),
        call("labd serial log pico | head -3; labd status", exit_code=3),
        ran=(("status", 0), ("serial log pico", 0), ("status", 3), ("skill", 0)),
    )
    made = joined.join(found.transcript or {}, found.record.invocations if found.record else (), "labd")
    assert [(one.call["id"], one.runs[0].start["id"]) for one in made.matched] == [
        ("c1", "r0"),
        ("c2", "r2"),
        ("c2", "r4"),
    ]
    assert [str(one) for one in made.only_recorded] == ["labd skill"] and not made.only_said
    assert all(one.ok for one in by_name(found).values())


@pytest.mark.parametrize(
    "told",
    [
        call("labd status", exit_code=0),
        call("/usr/bin/labd status", exit_code=3, state="failed"),
        call("labd status", is_error=False),
        call("cd x && labd status && echo ok", exit_code=0),
        call("bash -lc 'labd status'", exit_code=0),
        call(None, argv=["labd", "status"], exit_code=0),
    ],
)
def test_said_that_it_ran_and_nothing_ran(told: dict[str, Any], tmp_path: Path) -> None:
    check = by_name(bundle(tmp_path, told))[RECORDED]
    assert check.ok is False and "unobserved route" in check.detail and "status" in check.detail


@pytest.mark.parametrize(
    "told",
    [
        call("echo labd status; echo 'labd status'", exit_code=0),
        call("false && labd status", exit_code=1, state="failed"),
        call("true || labd status", exit_code=0),
        call("labd status", state="denied"),
        call("labd status", state="pending"),
        call("labd status", exit_code=127, state="failed"),
        call("labd status", is_error=True, state="failed"),
        call("labd status &", exit_code=0),
        call("labd status '", exit_code=0),
        call("if x; then labd status; fi", exit_code=0),
        call("labd status", exit_code=0, background=True),
        call("labd status", kind="invented", state="failed"),
        call("for t in $(ls); do labd status; done", exit_code=0),
        call("labd status", kind="write", exit_code=0),
        call("cat > x.sh <<E\nlabd status\nE", exit_code=0),
        call("which labd && man labd", exit_code=0),
    ],
)
def test_what_need_not_have_run_is_no_accusation(told: dict[str, Any], tmp_path: Path) -> None:
    assert by_name(bundle(tmp_path, told))[RECORDED].ok is True


@pytest.mark.parametrize(
    "told",
    [
        call("labd status; echo done", exit_code=0),
        call("labd status", exit_code=2, state="failed"),
        call("labd status"),
        call("labd status", exit_code=143, state="failed"),
        call("timeout 5 labd status", exit_code=0),
    ],
)
def test_what_may_not_have_been_found_is_a_question(told: dict[str, Any], tmp_path: Path) -> None:
    assert by_name(bundle(tmp_path, told))[RECORDED].ok is None


def test_a_damaged_record_accuses_nobody(tmp_path: Path) -> None:
    found = bundle(tmp_path, call("labd status", exit_code=0))
    (found.directory / "argv.jsonl").write_text('{"rec": "st\n')
    assert by_name(Bundle(found.directory))[RECORDED].ok is None


def test_an_exit_code_that_was_another(tmp_path: Path) -> None:
    check = by_name(bundle(tmp_path, call("labd status", exit_code=0), ran=(("status", 3),)))[CODES]
    assert check.ok is False and "exited 0, the recorder saw 3" in check.detail
    assert by_name(bundle(tmp_path, call("labd status && true", exit_code=0), ran=(("status", 3),)))[CODES].ok is False


@pytest.mark.parametrize(
    ("told", "code"),
    [
        (call("labd status; true", exit_code=0), 3),
        (call("labd status | cat", exit_code=0), 3),
        (call("! labd status", exit_code=0), 3),
        (call("labd status || true", exit_code=0), 3),
        (call("timeout 1 labd status", exit_code=124, state="failed"), 0),
        (call("labd status", exit_code=143), 0),
        (call("labd status", is_error=False), 3),
        (call("labd status && false", exit_code=1), 0),
        (call("labd status", exit_code=0), None),
    ],
)
def test_a_code_that_is_not_the_commands_own_denies_nothing(
    told: dict[str, Any], code: int | None, tmp_path: Path
) -> None:
    assert by_name(bundle(tmp_path, told, ran=(("status", code),)))[CODES].ok is True


def test_runs_that_may_have_changed_places_deny_nothing(tmp_path: Path) -> None:
    """Parallel calls of the same words: no pairing is sure."""
    told = (call("labd status", exit_code=3), call("labd status", exit_code=0))
    assert by_name(bundle(tmp_path, *told, ran=(("status", 0), ("status", 3))))[CODES].ok is True


def test_a_command_that_surely_ran_comes_before_one_that_may_have(tmp_path: Path) -> None:
    told = (call("x || labd status", exit_code=0), call("labd status", exit_code=0))
    assert by_name(bundle(tmp_path, *told, ran=(("status", 0),)))[RECORDED].ok is True


def test_loops_and_words_that_are_not_told(tmp_path: Path) -> None:
    found = bundle(
        tmp_path,
        call("for t in a b; do labd target show $t; done", exit_code=0),
        call('labd send "$X"', exit_code=0),
        ran=(("target show a", 0), ("target show b", 0), ("send hello", 0)),
    )
    made = joined.join(found.transcript or {}, found.record.invocations if found.record else (), "labd")
    assert [len(one.runs) for one in made.matched] == [2, 1] and not made.only_recorded


def test_an_output_that_was_never_printed_is_a_question(tmp_path: Path) -> None:
    def of(output: str, printed: str) -> bool | None:
        maker = bundles.config()
        maker.records = []
        maker.run("status", stdout_head=printed)
        assert maker.records is not None
        maker.records[-1]["stderr_head"] = ""
        return by_name(bundle(tmp_path, call("labd status", exit_code=0, output=output), made=maker))[OUTPUTS].ok

    assert of("pico is up\n", "nothing is up\n") is None
    assert of("\x1b[1mpico\x1b[0m is up", "pico is up\nmore\n") is True
    assert of("Output: pico is up\nExit Code: 0", "pico is up\n") is True
    assert of("anything", "x" * 512) is True, "not all of it is known"
    assert of("(no output)", "") is True


def test_the_recorders_code_is_the_calls(tmp_path: Path) -> None:
    found = bundle(
        tmp_path,
        call("labd a"),
        call("labd b; true"),
        call("labd c"),
        call("labd c"),
        ran=(("a", 3), ("b", 3), ("c", 0), ("c", 1)),
    )
    assert found.transcript and found.record
    told = joined.confirmed(found.transcript, joined.join(found.transcript, found.record.invocations, "labd"))
    assert [(one["exit_code"], one["exit_source"]) for one in told["calls"]] == [
        (3, "recorder"),
        (None, "unknown"),
        (None, "unknown"),
        (None, "unknown"),
    ]


@pytest.mark.parametrize("grader", [t1_config, outcome])
def test_the_verdict_goes_by_it(grader: Any, tmp_path: Path) -> None:
    """Without a transcript nothing is asked; a right trial whose transcript agrees passes; another route fails."""
    maker = bundles.config() if grader is t1_config else bundles.loopback()
    plain = grader.grade(dataclasses.replace(maker).write(tmp_path))
    assert plain.verdict == "pass" and not {check.name for check in plain.checks} & set(NAMES)
    line = (
        "labd serial add bmc -t pico --device /dev/ttyUSB1 --baud 9600"
        if grader is t1_config
        else "labd serial watch dut"
    )
    assert grader.grade(bundle(tmp_path, call(line, exit_code=0), made=maker)).verdict == "pass"
    verdict = grader.grade(bundle(tmp_path, call(line, exit_code=0), call("/opt/labd list", exit_code=0), made=maker))
    assert verdict.verdict == "fail" and verdict.reason.startswith(RECORDED)


def test_a_transcript_that_is_damaged_is_no_mistake_of_ours(tmp_path: Path) -> None:
    found = bundle(tmp_path)
    for wrong in (
        {"calls": 3},
        {"calls": [None, 3, {}, {"kind": "shell"}, {"kind": "shell", "command": 3, "argv": [3]}]},
        {"calls": [{"kind": "shell", "command": "labd x", "state": 3, "exit_code": "0", "id": [], "n": "y"}]},
    ):
        (found.directory / "transcript.json").write_text(json.dumps(wrong))
        assert by_name(Bundle(found.directory))[RECORDED].ok is not False


def test_many_calls_cost_little(tmp_path: Path) -> None:
    calls = [call('labd add "$X" $Y $Z', exit_code=0) for _ in range(3000)]
    found = bundle(tmp_path, *calls, ran=tuple((f"add {n}", 0) for n in range(3000)))
    begun = time.process_time()
    joined.check(found)
    assert time.process_time() - begun < 5
