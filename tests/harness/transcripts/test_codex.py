"""Codex's formats, by real samples and a hand-made rollout."""

import pytest

from harness.transcripts import parse
from harness.transcripts.model import Transcript
from tests.harness.transcripts.samples import data, jsonl, told


def stream(*records: dict) -> Transcript:
    return parse("codex", {"stdout": jsonl({"type": "thread.started", "thread_id": "t"}, *records)})


def command(status: str, code: int | None) -> dict:
    item = {
        "id": "i",
        "type": "command_execution",
        "command": "/bin/bash -lc 'labd x'",
        "status": status,
        "exit_code": code,
    }
    return {"type": "item.completed", "item": item}


def test_real_stream() -> None:
    found = told("codex-basic.jsonl")
    assert (found.answer, found.ended.how) == ("All done.", "completed")
    assert [(one.command, one.state, one.exit_code) for one in found.calls] == [
        ("echo hello-from-codex; exit 3", "failed", 3),
        ("echo two > out.txt; cat out.txt", "done", 0),
        ("sleep 0.3; echo parallel", "done", 0),
        ("sleep 4; echo late", "pending", None),
        ("printf 'a\\tb\\nc d\\n'; kill -9 $$", "failed", 137),
    ]
    assert (found.usage.input, found.usage.output, found.usage.total) == (500, 100, 600)
    assert all(one.message_id is None for one in found.calls), "the stream does not tell which belong together"


def test_real_provider_error_is_the_failed_turns_and_warnings_are_none() -> None:
    found = told("codex-401.jsonl")
    assert (found.ended.how, found.ended.status) == ("provider_error", 401)
    assert [one.role for one in found.messages] == ["system"] * 3


def test_handmade_completion_without_a_code_is_unknown() -> None:
    assert stream(command("completed", None)).calls[0].state == "unknown"
    assert stream(command("declined", None)).calls[0].state == "denied"


def test_handmade_turn_without_an_end_was_cut() -> None:
    assert stream({"type": "turn.started"}).ended.how == "cut"


def test_handmade_cached_input_is_told_apart_and_turns_add_up() -> None:
    turn = {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 10}}
    usage = stream(turn, turn).usage
    assert (usage.input, usage.cache_read, usage.total, usage.turns) == (80, 120, 220, 2)


@pytest.mark.parametrize("line", ["/bin/bash -lc 'unclosed", "labd x", "/bin/bash -lc a b"])
def test_handmade_command_that_is_no_shell_is_kept_as_it_is(line: str) -> None:
    event = command("completed", 0)
    event["item"]["command"] = line
    assert stream(event).calls[0].command == line


def test_handmade_other_items() -> None:
    items = [
        {"id": "a", "type": "file_change", "changes": [{"path": "x", "kind": "add"}], "status": "completed"},
        {"id": "b", "type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {"q": 1}, "status": "failed",
         "error": {"message": "no"}},
        {"id": "c", "type": "collab_tool_call", "tool": "spawn_agent", "prompt": "p", "status": "completed"},
        {"id": "d", "type": "web_search", "query": "q"},
        {"id": "e", "type": "reasoning", "text": "hm"},
        {"id": "f", "type": "novelty"},
    ]  # fmt: skip
    found = stream(*({"type": "item.completed", "item": item} for item in items))
    assert [(one.tool, one.kind, one.state) for one in found.calls] == [
        ("file_change", "write", "done"), ("s.t", "other", "failed"), ("spawn_agent", "agent", "done"),
        ("web_search", "web", "done")]  # fmt: skip
    assert found.unknown_events == {"item/novelty": 1} and found.calls[1].output == "no"


def test_handmade_rollout() -> None:
    found = told("handmade/codex-rollout.jsonl")
    assert (found.format, found.answer, found.ended.how, found.first.cwd) == (
        "rollout",
        "All done.",
        "completed",
        "/work",
    )
    assert [(one.command, one.kind, one.state, one.exit_code, one.message_id) for one in found.calls] == [
        ("labd status", "shell", "failed", 3, "response 1"),
        ("labd frobnicate", "invented", "failed", None, "response 1"),
        ("sleep 9", "shell", "unknown", None, "response 2"),
        (None, "other", "done", None, "response 2"),
    ]
    assert found.calls[3].input == {"opaque": "await tools.shell('labd x')"}
    assert (found.usage.input, found.usage.cache_read, found.usage.total) == (160, 140, 350), "cumulative, not a sum"
    assert [one.text for one in found.messages] == ["GOAL", "All done."], "instructions are nobody's words"


def test_rollout_tells_the_invented_call_that_the_stream_does_not() -> None:
    """Its usage and its end are the stream's."""
    said = {"type": "item.completed", "item": {"id": "x", "type": "agent_message", "text": "Streamed."}}
    raw = {"stdout": jsonl({"type": "thread.started"}, {"type": "turn.started"}, said),
           "session/rollout-1.jsonl": data("handmade/codex-rollout.jsonl")}  # fmt: skip
    found = parse("codex", raw)
    assert (found.answer, found.ended.how) == ("Streamed.", "cut")
    assert [one.kind for one in found.calls].count("invented") == 1


def test_rollout_that_was_cut_does_not_replace_the_stream() -> None:
    raw = {"stdout": data("codex-basic.jsonl"), "session/r.jsonl": data("handmade/codex-rollout.jsonl")[:900]}
    assert parse("codex", raw).format == "exec-json"
