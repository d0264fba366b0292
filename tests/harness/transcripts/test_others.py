"""opencode by a real sample; Antigravity, ATIF, text and our own calls by hand-made ones."""

import json

import pytest

from harness.transcripts import Ended, TranscriptError, from_dict, parse, sniff, to_atif
from harness.transcripts.model import Transcript
from tests.harness.transcripts.samples import ALL, data, jsonl, told


def opencode(*records: dict) -> Transcript:
    start = {"type": "step_start", "sessionID": "s", "part": {"id": "p", "messageID": "m"}}
    return parse("opencode", {"stdout": jsonl(start, *({"sessionID": "s", **record} for record in records))})


def finish(identity: str, reason: str = "stop") -> dict:
    tokens = {"input": 100, "output": 20, "reasoning": 5, "cache": {"read": 40, "write": 0}}
    return {"type": "step_finish", "part": {"id": identity, "reason": reason, "tokens": tokens, "cost": 0.25}}


# -- opencode ------------------------------------------------------------------------------------------------------


def test_real_opencode() -> None:
    found = told("opencode-basic.jsonl")
    assert [(one.tool, one.kind, one.state, one.exit_code) for one in found.calls] == [
        ("bash", "shell", "failed", 3), ("bash", "shell", "done", 0), ("bash", "shell", "done", 0),
        ("nosuch", "invented", "failed", None), ("read", "read", "denied", None)]  # fmt: skip
    assert (found.ended.how, found.ended.detail) == ("interrupted", "a permission was refused, which ended the run")
    assert (found.usage.input, found.usage.total, found.usage.turns) == (300, 360, 3)
    assert found.calls[1].message_id == found.calls[2].message_id != found.calls[0].message_id


def test_handmade_opencode_step_that_was_cut_keeps_its_calls() -> None:
    state = {"status": "error", "input": {"command": "labd x"}, "error": "it broke"}
    found = opencode({"type": "tool_use", "part": {"tool": "bash", "callID": "c", "state": state}})
    assert (found.ended.how, found.calls[0].output, found.calls[0].state) == ("cut", "it broke", "failed")


def test_handmade_opencode_errors_and_sums() -> None:
    error = {"name": "APIError", "data": {"statusCode": 429, "message": "slow down"}}
    found = opencode(finish("a"), finish("a"), finish("b"), {"type": "error", "error": error})
    assert (found.ended.how, found.ended.status) == ("provider_error", 429)
    assert (found.usage.input, found.usage.cost_usd, found.usage.complete) == (200, 0.5, False), "once an id"
    assert opencode(finish("a")).ended.how == "completed"


# -- Antigravity -----------------------------------------------------------------------------------------------------


def test_handmade_agy_log() -> None:
    """Results by order and kind, snapshots superseded but for final ones, wrapped requests, arguments as JSON."""
    found = told("handmade/agy-log.jsonl")
    assert [(one.tool, one.state, one.exit_code, one.output) for one in found.calls] == [
        ("view_file", "failed", None, "no such file"), ("run_command", "failed", 3, "no daemon")]  # fmt: skip
    assert found.calls[1].command == "labd status" and found.calls[0].input == {"AbsolutePath": "/x"}
    assert [one.text for one in found.messages if one.role in ("user", "assistant")] == [
        "GOAL",
        "Looking.",
        "All done.",
    ]
    assert (found.answer, found.ended.how, found.usage.source) == ("All done.", "unknown", "none")


def test_handmade_agy_stream() -> None:
    found = told("handmade/agy-stream.jsonl")
    assert [(one.tool, one.state, one.output) for one in found.calls] == [
        ("run_command", "done", "no\x85daemon"), ("read_url_content", "failed", "refused")]  # fmt: skip
    assert (found.answer, found.ended.how, found.first.cwd, found.model) == ("All done.", "completed", "/work", "m")
    assert (found.usage.input, found.usage.cache_read, found.usage.total) == (100, 40, 165), (
        "cached is not within input"
    )
    assert [one.text for one in found.messages][:2] == ["GOAL", "Looking."]


@pytest.mark.parametrize(
    ("end", "how"),
    [({"status": "SUCCESS", "response": "part", "usage": {"input_tokens": 0, "total_tokens": 0}}, "unknown"),
     ({"status": "SUCCESS", "response": "", "denied_actions": [{"tool_name": "t"}]}, "interrupted"),
     ({"status": "ERROR", "error": "not signed in"}, "unknown")],
)  # fmt: skip
def test_handmade_agy_success_is_not_believed(end: dict, how: str) -> None:
    found = parse("agy", {"stdout": jsonl({"event": "init", "init": {}}, {"event": "result", "result": end})})
    assert found.ended.how == how and found.usage.input is None, "nothing but zeros is unknown"


# -- ATIF ------------------------------------------------------------------------------------------------------------


def test_handmade_atif() -> None:
    found = told("handmade/atif-1.4.json")
    assert [(one.id, one.output, one.exit_code, one.state) for one in found.calls] == [
        ("c1", "one", 3, "failed"), ("c2", "two", None, "unknown")]  # fmt: skip
    assert [(one.role, one.text) for one in found.messages] == [
        ("user", "GOAL"), ("reasoning", "hm"), ("assistant", "Looking."), ("assistant", "All done.")]  # fmt: skip
    assert (found.usage.input, found.usage.cache_read, found.usage.total) == (100, 40, 160)


def test_atif_of_another_version_is_refused() -> None:
    with pytest.raises(TranscriptError, match=r"ATIF of the version 'ATIF-v2\.0'"):
        parse("atif", {"stdout": b'{"schema_version": "ATIF-v2.0", "steps": []}'})


@pytest.mark.parametrize("name", ALL)
def test_export_keeps_atifs_rules_and_reads_back_the_same(name: str) -> None:
    found = told(name)
    made = to_atif(found)
    for trajectory in [made, *made.get("subagent_trajectories", ())]:
        steps = trajectory["steps"]
        assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1)) and steps
        for step in steps:
            called = {one["tool_call_id"] for one in step.get("tool_calls", ())}
            results = step.get("observation", {"results": []})["results"]
            assert {one["source_call_id"] for one in results} <= called
            agents_only = {"tool_calls", "reasoning_content", "metrics", "model_name", "reasoning_effort"}
            assert step["source"] == "agent" or not agents_only & set(step)
    again = parse("atif", {"stdout": json.dumps(made).encode()})
    kept = ("id", "tool", "command", "output", "exit_code", "state", "thread", "input")
    for one, other in zip(sorted(found.calls, key=_id), sorted(again.calls, key=_id), strict=True):
        assert [getattr(one, key) or "" for key in kept[1:]] == [getattr(other, key) or "" for key in kept[1:]]
    assert (again.ended, again.answer) == (found.ended, found.answer)
    assert again.usage.cost_usd == found.usage.cost_usd and again.usage.output == found.usage.output


def _id(call) -> str:
    return call.id


# -- the rest --------------------------------------------------------------------------------------------------------


def test_text_is_the_answer_and_tells_nothing_else() -> None:
    found = parse("text", {"stdout": b"I would run labd status.\n\xff\n"})
    assert (found.answer, found.calls, found.ended.how) == ("I would run labd status.\n\ufffd", [], "unknown")


def test_handmade_scripted_calls() -> None:
    call = {"step": "labd x", "argv": ["labd", "x y"], "code": 3, "ended_by": "exit", "stdout": "o", "stderr": "e"}
    call |= {"t": 5.0, "duration_s": 0.5}
    killed = call | {"code": None, "signal": "SIGKILL", "ended_by": "time_limit"}
    found = parse("scripted", {"calls.jsonl": jsonl(call, killed), "answer.txt": b"bye"})
    assert [(one.command, one.exit_code, one.state, one.output) for one in found.calls] == [
        ("labd 'x y'", 3, "failed", "oe"), ("labd 'x y'", None, "failed", "oe")]  # fmt: skip
    assert (found.calls[0].argv, found.calls[0].ended_t, found.answer) == (["labd", "x y"], 5.5, "bye")


@pytest.mark.parametrize("name", ALL)
def test_sniffs_whose_it_is_and_the_form_reads_back(name: str) -> None:
    product = name.removeprefix("handmade/").partition("-")[0]
    assert sniff(data(name)) == product
    found = told(name)
    assert from_dict(json.loads(found.dumps())) == found and found.dumps() == told(name).dumps()
    assert [one.n for one in sorted([*found.messages, *found.calls], key=lambda one: one.n)] == list(
        range(1, len(found.messages) + len(found.calls) + 1))  # fmt: skip


@pytest.mark.parametrize(
    "wrong", [b"", b"\n \n", b"hello\nworld\n", b"[1, 2]\n", b'{"a": 1}\n', b"\x00" * 99, b'{"type": 1']
)
def test_no_known_format_names_the_first_line_that_made_no_sense(wrong: bytes) -> None:
    assert sniff(wrong) is None
    for product in ("claude", "codex", "gemini", "opencode", "agy", "atif"):
        with pytest.raises(TranscriptError) as error:
            parse(product, {"stdout": wrong})
        assert error.value.line == 1 and str(error.value).startswith("line 1 is ")


def test_another_products_transcript_is_no_transcript_of_this_one() -> None:
    with pytest.raises(TranscriptError, match="of another product"):
        parse("codex", {"stdout": data("claude-401.jsonl")})


def test_what_the_harness_saw_counts_where_the_transcript_tells_no_end() -> None:
    seen = Ended("interrupted", None, "time limit")
    cut = data("claude-maxturns.jsonl")[:-900]
    assert parse("claude", {"stdout": cut}, ended=seen).ended == seen
    assert parse("claude", {"stdout": data("claude-maxturns.jsonl")}, ended=seen).ended.how == "max_turns"
