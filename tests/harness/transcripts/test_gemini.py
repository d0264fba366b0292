"""Gemini CLI's formats, by a real sample; by hand-made ones where no sample shows a quirk."""

from harness.transcripts import parse
from harness.transcripts.model import Transcript
from tests.harness.transcripts.samples import data, jsonl, told

INIT = {"type": "init", "timestamp": "2026-01-01T00:00:00Z", "session_id": "s", "model": "m"}


def stream(*records: dict) -> Transcript:
    return parse("gemini", {"stdout": jsonl(INIT, *records)})


def test_real_stream() -> None:
    found = told("gemini-basic.jsonl")
    assert (found.answer, found.ended.how, found.model) == ("All done.", "completed", "gemini-2.5-pro")
    assert [(one.tool, one.kind, one.state, one.is_error) for one in found.calls] == [
        ("run_shell_command", "shell", "done", None), ("run_shell_command", "shell", "done", None),
        ("run_shell_command", "shell", "done", None), ("nosuch", "invented", "failed", True),
        ("read_file", "read", "failed", True)]  # fmt: skip
    assert all(one.exit_code is None and one.exit_source == "unknown" for one in found.calls), "success proves nothing"
    assert [one.message_id for one in found.calls] == [f"answer {n} (by order)" for n in (1, 2, 2, 3, 3)]
    assert (found.usage.input, found.usage.output, found.usage.total) == (400, 80, 480)


def test_handmade_pieces_are_joined() -> None:
    pieces = [{"type": "message", "role": "assistant", "content": part, "delta": True} for part in ("a", "b", "c")]
    assert [one.text for one in stream(*pieces).messages] == ["abc"]


def test_handmade_no_result_was_cut() -> None:
    assert stream().ended.how == "cut"


def test_a_quota_that_is_told_without_its_status_is_the_providers_failure() -> None:
    told = "[API Error: scripted: the quota is used up]\\nPlease wait and try again later."
    line = f'{{"type":"result","status":"error","error":{{"type":"unknown","message":"{told}"}},"stats":{{}}}}\n'
    found = parse("gemini", {"stdout": b'{"type":"init","session_id":"s","model":"m"}\n' + line.encode()})
    assert (found.ended.how, found.ended.status) == ("provider_error", None)


def test_handmade_provider_error() -> None:
    error = {"type": "FatalAPIError", "message": '{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}'}
    found = stream({"type": "result", "status": "error", "error": error, "stats": {}})
    assert (found.ended.how, found.ended.status) == ("provider_error", 429)
    turns = {"type": "FatalTurnLimitedError", "message": "Reached max session turns"}
    assert stream({"type": "result", "status": "error", "error": turns}).ended.how == "max_turns"


def test_handmade_single_object() -> None:
    stats = {"models": {"m": {"tokens": {"prompt": 100, "candidates": 20, "cached": 40, "thoughts": 5, "total": 125}}}}
    found = parse("gemini", {"stdout": jsonl({"session_id": "s", "response": "hi", "stats": stats})})
    assert (found.format, found.answer, found.ended.how) == ("json", "hi", "completed")
    assert (found.usage.input, found.usage.output, found.usage.reasoning) == (60, 25, 5)
    failed = {"session_id": "s", "response": "", "stats": {}, "error": {"type": "E", "message": "m", "code": 400}}
    assert parse("gemini", {"stdout": jsonl(failed)}).ended.status == 400


def test_handmade_session() -> None:
    """Later records of an id supersede, what was taken back is gone, and exit codes are here alone."""
    found = told("handmade/gemini-session.jsonl")
    assert [one.text for one in found.messages] == ["GOAL", "Looking.", "All done."]
    assert [(one.command, one.state, one.exit_code) for one in found.calls] == [
        ("labd status", "failed", 3), ("echo ok", "done", 0)]  # fmt: skip
    assert (found.usage.input, found.usage.output, found.usage.total, found.usage.turns) == (260, 35, 335, 2)


def test_session_gives_the_stream_its_exit_codes() -> None:
    """By id, or by the same input in order where ids differ."""
    tool = {"type": "tool_use", "tool_name": "run_shell_command"}
    events = [tool | {"tool_id": "run_shell_command_1", "parameters": {"command": "labd status"}},
              tool | {"tool_id": "other", "parameters": {"command": "echo ok"}},
              tool | {"tool_id": "more", "parameters": {"command": "echo ok"}}]  # fmt: skip
    done = [{"type": "tool_result", "tool_id": one["tool_id"], "status": "success", "output": "x"} for one in events]
    raw = {
        "stdout": jsonl(INIT, *events, *done),
        "session/chats/session-1.jsonl": data("handmade/gemini-session.jsonl"),
    }
    calls = parse("gemini", raw).calls
    assert [(one.exit_code, one.state) for one in calls] == [(3, "failed"), (0, "done"), (None, "done")]
