"""Claude Code's formats, by real samples; by hand-made events where no sample shows a quirk."""

import pytest

from harness.transcripts import parse
from harness.transcripts.model import MAIN
from tests.harness.transcripts.samples import claude, data, jsonl, result, speak, told, use

CALL = "toolu_0002_1"
AGENT = "agent-a3d0a0d5d5e73c757"


def test_real_stream_with_a_subagent() -> None:
    """Its events are a thread of their own, its spending counts, results may come in another order than calls."""
    found = told("claude-subagent.jsonl")
    assert (found.answer, found.ended.how, found.product_version) == ("final answer", "completed", "2.1.197")
    assert [(one.id, one.parent, one.by_call, one.name) for one in found.threads] == [
        (MAIN, None, None, None), (CALL, MAIN, CALL, "general-purpose")]  # fmt: skip
    assert [(one.command, one.thread) for one in found.calls if one.kind == "shell"] == [
        ("echo explore", MAIN), ("sleep 0.5; echo parent-concurrent", MAIN), ("grep -rn foo . ; ls", CALL)]  # fmt: skip
    agent = next(one for one in found.calls if one.id == CALL)
    assert agent.kind == "agent" and "subagent report: nothing found" in (agent.output or "")
    usage = found.usage
    assert (usage.input, usage.output, usage.cost_usd, usage.turns, usage.complete) == (500, 100, 0.003, 4, True)
    assert not found.unknown_events and not found.problems


def test_first_record_lists_what_the_agent_had() -> None:
    first = told("claude-401.jsonl").first
    assert first.cwd == "/sandbox/claude-401/work" and first.mcp_servers == []
    assert first.tools and "Bash" in first.tools and first.skills and "verify" in first.skills
    assert first.agents and "Explore" in first.agents and first.memory and "/memory/" in first.memory[0]


def test_success_tells_no_exit_code() -> None:
    call = told("claude-maxturns.jsonl").calls[0]
    assert (call.state, call.is_error, call.exit_code, call.exit_source) == ("done", False, None, "unknown")


def test_real_limit_of_turns() -> None:
    found = told("claude-maxturns.jsonl")
    assert (found.ended.how, found.usage.turns, found.answer) == ("max_turns", 4, "")


def test_real_tool_that_is_not_enabled_was_denied_not_invented() -> None:
    assert {(one.state, one.kind) for one in told("claude-denied.jsonl").calls} == {("denied", "shell")}


def test_real_provider_error_without_a_result() -> None:
    found = told("claude-401.jsonl")
    assert (found.ended.how, found.ended.status) == ("provider_error", 401)
    assert not found.truncated and not found.calls and found.usage.source == "none"


def test_real_unicode_separators_are_text() -> None:
    found = told("claude-unicode.jsonl")
    assert "\u2028" in found.answer and "\x85" in (found.calls[0].command or "") and not found.problems


def test_real_session_with_its_subagents_log() -> None:
    """By ids and final usage; equal in all that matters to the stream of the same run."""
    logs = {f"session/s/subagents/{AGENT}{end}": data(f"claude-subagent.subagents/{AGENT}{end}")
            for end in (".jsonl", ".meta.json")}  # fmt: skip
    found = parse("claude", {"session/s.jsonl": data("claude-subagent.session.jsonl"), **logs})
    stream = told("claude-subagent.jsonl")
    assert (found.format, found.answer, found.ended.how) == ("session", stream.answer, "completed")
    assert (found.usage.input, found.usage.output, found.usage.complete) == (500, 100, True)
    assert [(one.id, one.thread, one.output) for one in found.calls] == [
        (one.id, one.thread, one.output) for one in stream.calls]  # fmt: skip
    assert found.threads == stream.threads
    assert all(one.t and one.ended_t and one.ended_t >= one.t for one in found.calls)


def test_session_without_its_subagents_knows_that_its_usage_is_not_all() -> None:
    found = parse("claude", {"session/s.jsonl": data("claude-subagent.session.jsonl")})
    assert (found.usage.input, found.usage.complete) == (300, False)


def test_replayed_records_of_a_session_count_once() -> None:
    log = data("claude-subagent.session.jsonl")
    assert (
        parse("claude", {"session/s.jsonl": log + log}).as_dict() == parse("claude", {"session/s.jsonl": log}).as_dict()
    )


# -- hand-made: no real sample shows these -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "code"),
    [("Exit code 3\nno such target", 3), ("Exit code 143\nCommand timed out after 1s", 143), ("Exit code 1", 1),
     ("said: Exit code 3", None)],
)  # fmt: skip
def test_handmade_exit_code_of_a_failed_command(content: str, code: int | None) -> None:
    call = claude(use("a", "x"), result("a", content, error=True)).calls[0]
    assert (call.exit_code, call.state, call.is_error) == (code, "failed", True)


def test_handmade_exit_code_is_never_read_from_what_succeeded() -> None:
    assert claude(use("a", "x"), result("a", "Exit code 3\n")).calls[0].exit_code is None


def test_handmade_invented_tool() -> None:
    found = claude(
        use("a", "x"), result("a", "<tool_use_error>Error: No such tool available: Bash</tool_use_error>", error=True)
    )
    assert found.calls[0].kind == "invented"


def test_handmade_parallel_results_in_another_order() -> None:
    found = claude(use("a", "1"), use("b", "2"), result("b", "two"), result("a", [{"type": "text", "text": "one"}]))
    assert [one.output for one in found.calls] == ["one", "two"]
    assert {one.message_id for one in found.calls} == {"m1"}


def test_handmade_budget_leaves_a_call_without_a_result() -> None:
    found = claude(use("a", "x"), {"type": "result", "subtype": "error_max_budget_usd", "is_error": True})
    assert (found.ended.how, found.calls[0].state, found.calls[0].output) == ("max_budget", "pending", None)


def test_handmade_success_that_is_an_error_of_the_provider() -> None:
    end = {
        "type": "result",
        "subtype": "success",
        "is_error": True,
        "api_error_status": 400,
        "result": "Credit balance is too low",
    }
    found = claude(speak("Credit balance is too low"), end)
    assert (found.ended.how, found.ended.status) == ("provider_error", 400)


def test_handmade_retries_before_a_success_are_no_end() -> None:
    retry = {"type": "system", "subtype": "api_retry", "error_status": 529, "error": "overloaded"}
    assert claude(retry, speak("ok"), {"type": "result", "subtype": "success"}).ended.how == "completed"
    assert claude(retry, speak("ok")).ended.how == "cut"
    assert claude(retry).ended.status == 529


def test_handmade_success_that_stopped_for_a_tool_was_interrupted() -> None:
    end = {"type": "result", "subtype": "success", "stop_reason": "tool_use", "result": ""}
    assert claude(use("a", "x"), end).ended.how == "interrupted"


def test_handmade_no_result_was_cut() -> None:
    assert claude(use("a", "x")).ended.how == "cut"


def test_handmade_several_segments() -> None:
    """A background task that ends later opens a new one: cost is cumulative, turns are a segment's."""
    started = result("a", "Command running in background", more={"backgroundTaskId": "b1"})
    note = {"type": "system", "subtype": "task_notification", "tool_use_id": "a", "status": "completed"}
    one = {
        "type": "result",
        "subtype": "success",
        "num_turns": 2,
        "total_cost_usd": 0.1,
        "modelUsage": {"m": {"inputTokens": 5}},
    }
    two = one | {"num_turns": 1, "total_cost_usd": 0.3, "modelUsage": {"m": {"inputTokens": 9}}}
    init = {"type": "system", "subtype": "init", "session_id": "s", "uuid": "v"}
    found = claude(use("a", "x"), started, speak("waiting"), one, init, note, speak("done", message="m8"), two)
    assert (found.answer, found.usage.turns, found.usage.cost_usd, found.usage.input) == ("done", 3, 0.3, 9)
    assert found.calls[0].background and found.calls[0].state == "done"


def test_handmade_answer_is_all_text_of_the_last_message() -> None:
    end = {"type": "result", "subtype": "success", "result": "one"}
    assert claude(speak("one"), speak("two"), end).answer == "onetwo"


def test_handmade_usage_of_the_messages_start_is_never_summed() -> None:
    start = use("a", "x")
    start["message"]["usage"] = {"input_tokens": 100, "output_tokens": 1}
    assert claude(start, start).usage.input is None


def test_handmade_errors_that_tools_print_end_nothing() -> None:
    text = 'API Error: 529 {"type":"result","subtype":"error_max_turns"}'
    assert claude(use("a", "x"), result("a", text), {"type": "result", "subtype": "success"}).ended.how == "completed"


def test_handmade_denied_by_the_list_of_denials() -> None:
    end = {"type": "result", "subtype": "success", "permission_denials": [{"tool_use_id": "a"}]}
    assert claude(use("a", "x"), result("a", "no", error=True), end).calls[0].state == "denied"


def test_handmade_unknown_events_are_counted() -> None:
    found = claude({"type": "news"}, {"type": "news"}, {"type": "system", "subtype": "other"})
    assert found.unknown_events == {"news": 2, "system/other": 1}


def test_handmade_thinking_is_reasoning() -> None:
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "redacted_thinking", "data": "x"}]
    found = claude({"type": "assistant", "message": {"id": "m", "content": blocks}})
    assert [(one.role, one.text) for one in found.messages] == [("reasoning", "hm"), ("reasoning", "[redacted]")]


def test_stream_is_preferred_to_the_session() -> None:
    raw = {"stdout": data("claude-maxturns.jsonl"), "session/s.jsonl": data("claude-subagent.session.jsonl")}
    assert parse("claude", raw).format == "stream-json"


def test_lines_of_something_else_before_the_first_record() -> None:
    found = parse("claude", {"stdout": b"warning: old node\n" + data("claude-maxturns.jsonl")})
    assert len(found.calls) == 3 and [one.line for one in found.problems] == [1]
    assert parse("claude", {"stdout": jsonl({"type": "x"}) + data("claude-maxturns.jsonl")}).unknown_events == {"x": 1}


_TODO = ("assistant", {"id": "m1", "content": [{"type": "tool_use", "id": "t", "name": "TodoWrite", "input": {}}]})


@pytest.mark.parametrize(("record", "role"), [
    ({"message": {"content": "And now?"}}, "user"),
    ({"message": {"content": "And now?"}, "origin": {"kind": "human"}}, "user"),
    ({"message": {"content": "<command-name>/review</command-name>\n<command-args></command-args>"}}, "user"),
    ({"message": {"content": "Why does <b>x</b> fail?"}}, "user"),
    ({"message": {"content": "x"}, "isMeta": True}, "system"),
    ({"message": {"content": "x"}, "isSynthetic": True}, "system"),
    ({"message": {"content": "Summary: x"}, "isCompactSummary": True}, "system"),
    ({"message": {"content": "x"}, "origin": {"kind": "task-notification"}}, "system"),
    ({"message": {"content": "<task-notification>x</task-notification>"}}, "system"),
    ({"message": {"content": "<system-reminder>x</system-reminder>\n<new-tag a='b'>y</new-tag>\n"}}, "system"),
    ({"message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"},
                              {"type": "text", "text": "the file changed"}]}}, "system"),
])  # fmt: skip
def test_handmade_only_what_a_person_said_is_the_users(record: dict, role: str) -> None:
    kind, message = _TODO
    for more in ({"session_id": "s"}, {"parentUuid": None, "sessionId": "s"}):
        made = ({"type": kind, "message": message} | more | {"uuid": "1"},
                {"type": "user"} | record | more | {"uuid": "2"})  # fmt: skip
        name = "session/s.jsonl" if "parentUuid" in more else "stdout"
        assert parse("claude", {name: jsonl(*made)}).messages[-1].role == role


def test_handmade_the_summary_behind_its_mark_is_no_users() -> None:
    mark = {"type": "system", "subtype": "compact_boundary", "session_id": "s", "uuid": "1"}
    said = [{"type": "user", "message": {"content": words}, "session_id": "s", "uuid": words}
            for words in ("It was so.", "Go.")]  # fmt: skip
    told = parse("claude", {"stdout": jsonl(mark, *said)})
    assert [one.role for one in told.messages] == ["system", "system", "user"]


def test_a_byte_order_mark_is_no_text() -> None:
    plain = jsonl({"type": "system", "subtype": "init", "session_id": "s", "uuid": "u", "model": "m"})
    assert parse("claude", {"stdout": b"\xef\xbb\xbf" + plain}).model == "m"
