"""The condition `mcp`: who can be tried under it, what is told to each product, and what shows that it held."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import agents, conditions, mcp_condition, plan, sandbox, scenario
from harness.agents._program import Options, Ways
from harness.agents._servers import Server
from harness.commands import Values, _conditions
from harness.model_server.script import Call
from harness.model_server.tools import translate
from harness.sandbox import Sandbox, SandboxError
from harness.subject import load
from harness.transcripts.model import First, Transcript
from labd.errors import Usage
from tests.harness.conftest import ADD_PICO, make_scenario

PRODUCTS = ("claude", "codex", "gemini", "opencode")
SERVER = Server("labd", ("/bench/bin/labd", "mcp"), {"LABD_LAB": "/bench/lab.toml", "LABD_POLICY": 'con"fig'})
GOAL = "Enter the board."


@pytest.fixture
def place(subject: Path) -> Iterator[Sandbox]:
    made = sandbox.create(make_scenario(ADD_PICO), str(subject))
    yield made
    made.close()


@pytest.mark.parametrize("name", ["reference", "loop", "command:./agent"])
def test_an_agent_that_takes_no_server_is_refused_by_name(name: str) -> None:
    with pytest.raises(Usage, match="can't be played under the condition mcp: it takes no MCP server"):
        mcp_condition.must_be_possible([make_scenario(ADD_PICO)], [agents.find(name)], ["cold", "mcp"])
    mcp_condition.must_be_possible([make_scenario(ADD_PICO)], [agents.find(name)], ["cold"])


def test_a_subject_without_a_server_is_refused_and_so_is_what_is_only_stated() -> None:
    every = scenario.load_all("git")
    with pytest.raises(Usage, match="git has no MCP server"):
        mcp_condition.must_be_possible(every, [agents.find("claude")], ["mcp"])
    stated = [one for one in scenario.load_all("labd") if one.lane == "stated"]
    with pytest.raises(Usage, match="nothing is stated"):
        mcp_condition.must_be_possible(stated, [agents.find("claude")], ["mcp"])
    drawn = plan.draw([agents.find("claude")], scenario.load_all("labd"), ["cold", "mcp"], 1, None)
    by_condition = {name: {one.scenario for one in drawn if one.condition == name} for name in ("cold", "mcp")}
    assert by_condition["cold"] - by_condition["mcp"] == {one.id for one in stated}


def test_all_conditions_are_those_of_what_is_known_and_mcp_is_asked_for_by_name() -> None:
    asked = Values()
    asked.condition = ["all"]
    assert _conditions(asked) == ["cold", "warm", "preloaded"]
    asked.condition = ["all", "mcp"]
    assert _conditions(asked) == list(plan.CONDITIONS)


def test_the_server_has_the_bench_and_the_agent_has_no_program_on_its_path(place: Sandbox) -> None:
    before = dict(place.env)
    made = conditions.realise(Ways(mcp=True), place, "mcp", ())
    assert made.server is not None and made.server.argv == (place.program, "mcp")
    assert made.server.env == before and str(place.bin) in before["PATH"]
    assert str(place.bin) not in place.env["PATH"]
    assert not any((place.home / name).exists() for name in sandbox.PROFILES)
    assert list(place.work.iterdir()) == [] and made.before == ""
    with pytest.raises(SandboxError, match="takes no server"):
        conditions.realise(Ways(), place, "mcp", ())


@pytest.mark.parametrize("name", PRODUCTS)
def test_each_product_is_told_in_its_own_way(place: Sandbox, name: str) -> None:
    program = agents.find(name).program
    assert program is not None and program.ways.mcp
    written = program.prepare(place, Options(server=SERVER))
    command = program.command(GOAL, place, Options(server=SERVER))
    told = {
        "claude": lambda: json.loads(command.argv[command.argv.index("--mcp-config") + 1])["mcpServers"]["labd"],
        "codex": lambda: tomllib.loads(next(word for word in command.argv if word.startswith("mcp_servers")))[
            "mcp_servers"]["labd"],
        "gemini": lambda: json.loads(written[0].read_text())["mcpServers"]["labd"],
        "opencode": lambda: json.loads(written[0].read_text())["mcp"]["labd"],
    }[name]()  # fmt: skip
    assert told.get("env", told.get("environment")) == SERVER.env
    words = told["command"] if isinstance(told["command"], list) else [told["command"], *told["args"]]
    assert words == list(SERVER.argv)
    bare = program.command(GOAL, place, Options())
    assert "mcp" not in " ".join(bare.argv) and "MCP" not in " ".join(bare.env)


def checked(place: Sandbox, made: conditions.Realised, servers: list[str] | None, tools: str) -> dict[str, bool | None]:
    told = Transcript("claude", "stream", first=First(mcp_servers=servers))
    sent = json.dumps({"body": {"tools": [{"name": tools}], "messages": [GOAL]}}).encode()
    found = conditions.record(made, Ways(mcp=True), told, sent, GOAL, (), place)
    return {one["name"]: one["ok"] for one in found["checks"]}


def test_that_it_held_is_seen_in_three_places_and_one_that_denies_it_breaks_it(place: Sandbox) -> None:
    made = conditions.realise(Ways(mcp=True), place, "mcp", ())
    names = ("servers in the first record", "tools reached the model", "server started")
    assert [checked(place, made, ["labd"], "mcp__labd__labd_read")[one] for one in names] == [True, True, False]
    place.argv_log.write_text(json.dumps({"rec": "start", "argv": ["labd", "mcp"], "operation": "mcp"}) + "\n")
    assert [checked(place, made, ["labd"], "mcp__labd__labd_read")[one] for one in names] == [True, True, True]
    assert [checked(place, made, [], "Bash")[one] for one in names] == [False, False, True]
    cold = checked(place, conditions.Realised("cold"), ["labd"], "mcp_labd_labd_read")
    assert [cold.get(one) for one in names] == [False, False, None]


def test_a_scripted_model_plays_a_command_by_the_tool_of_its_effect_where_that_is_offered() -> None:
    call = Call(shell="labd serial watch dut", by=load("labd").kind.tool_for(["labd", "serial", "watch", "dut"]))
    use = translate(call, frozenset({"Bash", "mcp__labd__labd_read", "mcp__labd__labd_act"}), "1")
    assert (use.name, use.input) == ("mcp__labd__labd_act", {"command": "labd serial watch dut"})
    assert translate(call, frozenset({"Bash"}), "1").name == "Bash"
