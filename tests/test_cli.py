"""The command line as a whole: everything that somebody who drives it must never meet, and what he must."""

from __future__ import annotations

import atexit
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from typing import Any

import pexpect
import pytest

from labd import argv, cli, render
from labd.call import Call
from labd.errors import Usage
from labd.operations import NOUNS, all_operations
from labd.operations.model import Operation
from tests.conftest import LABD, BenchInAFolder, until

TABLE = all_operations()


def named(op: Operation) -> str:
    return op.name


def test_every_noun_has_operations_and_every_module_serves_its_noun():
    assert {op.path[0] for op in TABLE} == set(NOUNS)


def test_no_two_operations_share_a_spelling():
    spellings = [path for op in TABLE for path in (op.path, *op.aliases)]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize("op", TABLE, ids=named)
def test_every_operation_explains_itself_and_its_examples_parse(op: Operation):
    text = render.operation_help(op, 80)
    assert op.summary in text and all(param.help for param in op.params)
    assert op.examples, "an example shows more than a usage line"
    for line, what in op.examples:
        words = shlex.split(line)
        assert words[0] == "labd" and what
        parsed = argv.parse(words[1:])
        assert parsed.operation is op or parsed.wants_help


@pytest.mark.parametrize("op", [op for op in TABLE if op.missing], ids=named)
def test_what_is_not_there_yet_says_so_and_does_nothing(op: Operation, labd: BenchInAFolder):
    labd("target", "add", "pico")
    words = shlex.split(op.examples[0][0])[1:]
    done = labd(*words, check=7)
    assert op.missing.encode()[:30] in done.stderr and done.stdout == b""


HOME = tempfile.mkdtemp(prefix="labd-test-")
atexit.register(shutil.rmtree, HOME, True)


def run(words: list[str], env: dict[str, str] | None = None) -> tuple[int, bytes, bytes]:
    """One call in this process, in a home without a lab."""
    out: list[bytes] = []
    err: list[bytes] = []
    home = {"HOME": HOME, "LABD_LAB": f"{HOME}/lab.toml"}
    call = Call(face="cli", argv=words, cwd="/", env={**home, **(env or {})}, out=out.append, err=err.append)
    code = cli.execute(call)
    return code, b"".join(out), b"".join(err)


MISTAKES: list[tuple[str, int, str]] = [
    ("srial watch", 2, "'serial'"),
    ("serial wtach", 2, "'serial watch'"),
    ("serial log --tial 5", 2, "'--tail'"),
    ("serial log --tail five", 2, "whole number"),
    ("serial log --tail 5 --tail 6", 2, "twice"),
    ("skill ladb", 4, "'labd'"),
    ("helper shelyplug", 2, "'helper shellyplug'"),
    ("target list", 4, "labd init"),
    ("power", 2, "needs a verb"),
]


@pytest.mark.parametrize(("line", "code", "words"), MISTAKES)
def test_a_mistake_is_one_line_that_names_the_way_on(line: str, code: int, words: str):
    got, out, err = run(line.split())
    assert (got, out) == (code, b"")
    assert words in err.decode() and err.count(b"\n") == 1


@pytest.mark.parametrize(("line", "code", "words"), MISTAKES)
def test_under_json_a_mistake_is_one_object(line: str, code: int, words: str):
    got, out, err = run([*line.split(), "--json"])
    error = json.loads(err)["error"]
    assert got == code == error["exit"] and out == b""
    assert set(error) == {"code", "exit", "message", "hint", "near"}


def test_a_message_can_not_forge_a_second_line():
    _, _, err = run(["serial", "send", "x", "--nope\nlabd: all is well"])
    assert err.count(b"\n") == 1


def test_a_defect_is_one_line_and_the_traceback_on_demand(monkeypatch: pytest.MonkeyPatch):
    def broken(call: Any, args: Any) -> None:
        raise ZeroDivisionError("boom")

    op = next(op for op in TABLE if op.path == ("commands",))
    monkeypatch.setattr(op, "handler", broken)
    code, _, err = run(["commands"])
    assert code == 1 and err.count(b"\n") == 1 and b"ZeroDivisionError" in err
    assert b"Traceback" in run(["commands"], {"LABD_DEBUG": "1"})[2]


def test_an_unknown_policy_level_is_an_error():
    code, _, err = run(["discover"], {"LABD_POLICY": "obsrve"})
    assert code == 2 and b"'observe'" in err


def test_effects_above_the_level_are_refused_for_the_whole_table(tmp_path):
    levels = ["help", "observe", "config", "simulated", "bench"]
    needs = {"help": 0, "observe": 1, "config": 2, "admin": 3, "actuate": 4}
    for op in TABLE:
        if op.opaque or op.where == "client":
            continue
        for number, level in enumerate(levels[: needs[op.effect]]):
            words = shlex.split(op.examples[0][0])[1:]
            code, out, err = run(words, {"LABD_POLICY": level})
            assert code == 3, (op.name, level, number, code, err)
            assert out == b""


def test_quiet_keeps_notes_away_and_leaves_answers_and_errors(labd: BenchInAFolder):
    labd("target", "add", "pico")
    labd("serial", "add", "console", "-t", "pico", "--device", "loopback:uboot")
    assert labd("serial", "show").stderr != b""
    quiet = labd("serial", "show", "-q")
    assert quiet.stderr == b"" and quiet.stdout != b""


def test_a_guess_is_named_on_stderr(labd: BenchInAFolder):
    labd("target", "add", "pico")
    labd("serial", "add", "console", "-t", "pico", "--device", "loopback:uboot")
    assert b"pico" in labd("serial", "log").stderr


def test_an_empty_answer_says_why(board: BenchInAFolder):
    assert b"labd serial watch dut" in board("serial", "log", "dut").stderr


def test_output_that_was_cut_says_so(board: BenchInAFolder):
    board.lab.write_text(board.lab.read_text().replace("linux-login", "flood"))
    board("serial", "watch", "dut")
    until("300 lines", lambda: board.json("serial", "show", "dut")[0]["seq"] > 300)
    done = board("serial", "log", "dut")
    assert b"--tail 0" in done.stderr and done.stdout.count(b"\n") <= 201


def test_colour_is_for_terminals_and_no_color_ends_it(board: BenchInAFolder):
    board("serial", "watch", "dut")
    until("a line", lambda: board.json("serial", "show", "dut")[0]["seq"] > 1)
    for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        child = pexpect.spawn(LABD, ["serial", "log", "dut"], env={**board.env, "TERM": "xterm", **env})
        child.expect(pexpect.EOF)
        assert (b"\x1b[" in child.before) is coloured
        child.close()
    assert b"\x1b[" not in board("serial", "log", "dut").stdout


def test_help_fits_the_terminal(board: BenchInAFolder):
    for up in (False, True):
        if up:
            board("serial", "watch", "dut")
        child = pexpect.spawn(LABD, ["serial", "log", "--help"], env=board.env, dimensions=(24, 60))
        child.expect(pexpect.EOF)
        text = child.before.decode().replace("\r", "")
        child.close()
        prose = [line for line in text.splitlines() if not line.startswith(("usage:", "  labd"))]
        assert max(len(line) for line in prose) <= 62, up


def test_the_same_words_answer_the_same_with_and_without_a_daemon(board: BenchInAFolder):
    board("serial", "watch", "dut")
    board("serial", "stop", "dut")
    lines = ["target list", "target list --json", "config show", "config path", "serial log --tail 5 -q", "skill",
             "commands --json", "--help", "serial --help", "serial send --help", "target show nope"]  # fmt: skip
    up = [board(*line.split(), check=None) for line in lines]
    board("daemons", "stop")
    down = [board(*line.split(), check=None) for line in lines]
    for line, one, other in zip(lines, up, down, strict=True):
        assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr), line


def test_bytes_of_no_encoding_pass_through(labd: BenchInAFolder):
    done = subprocess.run([LABD.encode(), b"target", b"show", b"\xff\xfe"], env=labd.env, capture_output=True)
    assert done.returncode in (2, 4) and b"Traceback" not in done.stderr
    assert os.fsencode(json.loads(labd.log.read_text().splitlines()[0])["argv"][-1]) == b"\xff\xfe"


def test_parse_errors_are_usage_errors():
    with pytest.raises(Usage):
        argv.parse(["serial", "log", "--nope"])
