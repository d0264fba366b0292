"""Which tools there are, how much they cost to know, and that no verb of the table is out of reach."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from labd.argv import parse
from labd.errors import Usage
from labd.mcp_tools import BY_EFFECT, INSTRUCTIONS, LOOKING, check, help_words, tools, words_of_line
from labd.operations import all_operations

TOOLS = {tool.name: tool for tool in tools()}
EXAMPLES = [(op, line) for op in all_operations() for line, _ in op.examples]


def test_they_are_few_and_cheap_to_know(run: Any) -> None:
    async def body(client: Any, ask: Any) -> tuple[list[Any], int]:
        listed = (await client.list_tools()).tools
        told = [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed]
        return told, len(json.dumps(told)) + len(client.instructions or "")

    told, size = run(body)
    assert [tool["name"] for tool in told] == list(TOOLS)
    assert len(told) <= 8
    assert size <= 8000, size
    assert INSTRUCTIONS.strip()


def test_what_only_looks_is_annotated_so_and_nothing_else_is(run: Any) -> None:
    async def body(client: Any, ask: Any) -> Any:
        return {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    hints = run(body)
    assert {name for name, hint in hints.items() if hint.read_only_hint} == {"labd_help", "labd_read", "labd_more"}
    assert {name for name, hint in hints.items() if hint.destructive_hint} == {"labd_config", "labd_act", "labd_admin"}


@pytest.mark.parametrize(("op", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_every_example_of_the_table_goes_through_the_tool_of_its_effect_alone(op: Any, line: str) -> None:
    words = words_of_line(line)
    if op.terminal:
        for name in BY_EFFECT:
            with pytest.raises(Usage):
                check(TOOLS[name], words)
        return
    args = parse(words).args
    effect = op.effect_of(args) if args is not None else "help"
    for name, (effects, *_) in BY_EFFECT.items():
        if effect in effects or effect in LOOKING:
            check(TOOLS[name], words)
        else:
            with pytest.raises(Usage, match="nothing ran"):
                check(TOOLS[name], words)


def test_every_verb_is_named_in_the_description_of_its_tool() -> None:
    for op in all_operations():
        if not op.terminal:
            named = [name for name in BY_EFFECT if op.path[-1] in TOOLS[name].description]
            assert named, op.name


def test_help_is_a_page_where_a_command_is_named_and_a_search_elsewhere() -> None:
    assert help_words("") == ["--help"]
    assert help_words("labd serial send") == ["serial", "send", "--help"]
    assert help_words("video") == ["video", "--help"]
    assert help_words("wait for the login prompt") == [
        "commands",
        "--search",
        *shlex.split("wait for the login prompt"),
    ]
