"""`labd-eval transcript` as its users meet it."""

import json
import re
from pathlib import Path

import pytest

from harness import cli
from tests.harness.transcripts.samples import ALL, HERE, data, jsonl, speak

AGENT = "agent-a3d0a0d5d5e73c757"


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert cli.main(["transcript", *words]) == code
    streams = capsys.readouterr()
    return streams.out if code == 0 else streams.err


@pytest.mark.parametrize("name", ALL)
def test_prints_a_table_the_normal_form_and_atif(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(HERE / name)
    assert "ended: " in said(capsys, path)
    assert json.loads(said(capsys, path, "--json"))["schema"] == "labd-transcript/1"
    assert json.loads(said(capsys, path, "--atif"))["schema_version"] == "ATIF-v1.8"


def test_a_row_tells_thread_command_exit_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys, str(HERE / "codex-basic.jsonl")).split("\n")
    assert [" ".join(line.split()) for line in told][4:6] == [
        "main shell failed 3 transcript echo hello-from-codex; exit 3",
        "main shell done 0 transcript echo two > out.txt; cat out.txt"]  # fmt: skip
    assert "general-purpose  Bash" in said(capsys, str(HERE / "claude-subagent.jsonl"))


def test_no_known_format_is_a_mistake_of_the_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("dear diary\nnothing\n")
    told = said(capsys, str(tmp_path / "x"), code=2)
    assert "line 1 is in no known format: 'dear diary'" in told and "--product text" in told
    assert "of another product" in said(capsys, str(HERE / "codex-401.jsonl"), "--product", "claude", code=2)
    assert "no transcript" in said(capsys, str(tmp_path / "missing"), code=4)
    (tmp_path / "empty").mkdir()
    assert "empty" in said(capsys, str(tmp_path / "empty"), code=2)
    assert "nothing" in said(capsys, str(tmp_path / "x"), "--product", "text")


def test_directories_of_one_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A session with its subagents beside it, a directory of logs, and a stored trial are read as one."""
    (tmp_path / "s" / "subagents").mkdir(parents=True)
    (tmp_path / "s.jsonl").write_bytes(data("claude-subagent.session.jsonl"))
    for end in (".jsonl", ".meta.json"):
        (tmp_path / "s" / "subagents" / (AGENT + end)).write_bytes(data(f"claude-subagent.subagents/{AGENT}{end}"))
    for place in (tmp_path / "s.jsonl", tmp_path):
        assert json.loads(said(capsys, str(place), "--json"))["usage"]["total"] == 600
    trial = tmp_path / "trial"
    (trial / "raw").mkdir(parents=True)
    (trial / "raw" / "stdout").write_bytes(data("gemini-basic.jsonl"))
    (trial / "trial.json").write_text('{"schema": "other"}')
    assert "not of schema" in said(capsys, str(trial), code=1)
    (trial / "trial.json").write_text('{"schema": "labd-trial/1", "subject": "echo"}')
    records = ({"rec": "start", "id": "1", "argv": ["echo", "par"]}, {"rec": "end", "id": "1", "code": 0})
    (trial / "argv.jsonl").write_bytes(jsonl(*records))
    assert re.search(r"done +0 +recorder +echo par", said(capsys, str(trial)))
    assert said(capsys, str(trial)).startswith("gemini")
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "trial.json").write_text('{"schema": "labd-trial/1"}')
    (bare / "calls.jsonl").write_bytes(jsonl({"step": "x", "argv": ["labd", "x"], "ended_by": "exit", "code": 3}))
    (bare / "answer.txt").write_text("bye")
    assert "labd x" in said(capsys, str(bare)) and "bye" in said(capsys, str(bare))


def test_what_an_agent_wrote_cannot_drive_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = {"type": "system", "subtype": "init", "session_id": "s", "uuid": "u", "model": "m\x1b[2J"}
    (tmp_path / "x").write_bytes(jsonl(first, {"type": "\x1b]0;t\x07"}, speak("a\x1b[31m\u202eb\nc\ud800")))
    told = said(capsys, str(tmp_path / "x"))
    assert all(char.isprintable() or char == "\n" for char in told)
    assert "a\\x1b[31m\\u202eb\n  c\\ud800" in told
