"""Trials under the condition `mcp`: a tool's call is a command, the server's start is none, typing goes around."""

import json
from typing import Any

import pytest

from graders import argv_records, joined, route


def line(rec: str, key: str, **fields: Any) -> bytes:
    return json.dumps({"rec": rec, "id": key, **fields}).encode() + b"\n"


def ran(key: str, *words: str, face: str = "mcp", code: int = 0) -> bytes:
    start = line("start", key, argv=["labd", *words], face=face, operation=" ".join(words[:2]), program="/bin/labd")
    return start + line("end", key, code=code, signal=None, stdout_head="", stderr_head="")


SERVER = line("start", "0-a", argv=["labd", "mcp"], face="cli", operation="mcp")


def test_the_start_of_the_server_is_no_call_also_where_it_was_killed() -> None:
    record = argv_records.read(SERVER + ran("1-a", "target", "list"))
    assert [one.argv for one in record.invocations] == [["labd", "target", "list"]]
    assert record.torn == ()


def test_what_was_typed_went_around_the_server() -> None:
    through = argv_records.read(SERVER + ran("1-a", "target", "list")).invocations
    typed = argv_records.read(ran("1-a", "target", "list") + ran("2-a", "target", "show", face="cli")).invocations
    assert route.by_tools(through).ok is True
    assert route.by_tools(typed).ok is False and "labd target show" in route.by_tools(typed).detail


def call(tool: str, command: str, **more: Any) -> dict[str, Any]:
    return {"n": 1, "id": "1", "tool": tool, "kind": "other", "input": {"command": command}, "state": "done",
            "is_error": False, **more}  # fmt: skip


@pytest.mark.parametrize(
    "tool", ["mcp__labd__labd_act", "labd.labd_act", "mcp_labd_labd_act", "labd_labd_act", "labd_act"]
)
@pytest.mark.parametrize("command", ["serial send dut 'a b'", "labd serial send dut 'a b'"])
def test_a_call_of_a_tool_is_the_recorded_command(tool: str, command: str) -> None:
    runs = argv_records.read(ran("1-a", "serial", "send", "dut", "a b", code=5)).invocations
    told = {"calls": [call(tool, command, is_error=True)]}
    found = joined.join(told, runs, "labd")
    assert [one.runs for one in found.matched] == [runs] and not found.only_recorded
    (confirmed,) = joined.confirmed(told, found)["calls"]
    assert (confirmed["exit_code"], confirmed["exit_source"]) == (5, "recorder")


def test_a_call_that_claims_success_and_was_never_recorded_is_a_contradiction() -> None:
    found = joined.join({"calls": [call("labd_labd_act", "serial watch dut")]}, (), "labd")
    assert [one.check for one in found.contradictions] == [joined.RECORDED]


@pytest.mark.parametrize("tool", ["Bash", "mcp__other__labdish", "labd_tool2"])
def test_other_tools_with_a_command_are_none_of_it(tool: str) -> None:
    assert not joined.join({"calls": [call(tool, "target list")]}, (), "labd").only_said
