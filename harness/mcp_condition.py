"""The condition `mcp`: the agent reaches the subject by tools alone.

Its product is told of the subject's own MCP server, in the product's own way, and the program is not on its PATH;
beside that it knows as much as one that is cold. That the server was there is not taken on trust: the product's own
first record lists it, the bench's record has its start, and with a scripted model its tools are in the first request.
An agent that finds the program elsewhere and types it has gone around the server: so `graders/route.py` says.
"""

import json
import re
from collections.abc import Sequence

from harness import subject as subjects
from harness.agents import Agent
from harness.agents._program import Ways
from harness.agents._servers import Server
from harness.sandbox import PROFILES, Sandbox, SandboxError
from harness.scenario import Scenario
from labd.errors import Usage

NAME = "mcp"

_Check = tuple[str, bool | None, str]


def must_be_possible(chosen: Sequence[Scenario], cast: Sequence[Agent], conditions: Sequence[str]) -> None:
    """Raises Usage, naming who or what, where an agent's product takes no server, or a subject has none."""
    if NAME not in conditions:
        return
    for agent in cast:
        if agent.program is None or not agent.program.ways.mcp:
            raise Usage(f"{agent.name} can't be played under the condition mcp: it takes no MCP server",
                        hint=f"labd-eval run --condition cold --agent {agent.name}")  # fmt: skip
    without = sorted({one.subject for one in chosen if not subjects.load(one.subject).server})
    if without:
        raise Usage(f"{without[0]} has no MCP server: its subject.toml names none", hint="labd-eval list")
    if all(one.lane == "stated" for one in chosen):
        raise Usage("under the condition mcp nothing is stated: an agent without a command line has none to state",
                    hint="labd-eval list --lane loopback")  # fmt: skip


def serve(ways: Ways, place: Sandbox) -> Server:
    """The server that the product is told of. From now on the program is not on the agent's PATH.

    Raises SandboxError, OSError.
    """
    if not ways.mcp or not place.examined.server:
        raise SandboxError(f"mcp: this product takes no server, or {place.examined.name} has none")
    server = Server(place.examined.name, (place.program, *place.examined.server), dict(place.env))
    place.env["PATH"] = ":".join(one for one in place.env["PATH"].split(":") if one != str(place.bin))
    for name in PROFILES:
        (place.home / name).unlink(missing_ok=True)
    return server


def started(place: Sandbox) -> _Check:
    """Whether the bench's own record has the start of a server."""
    name = "server started"
    try:
        lines = place.argv_log.read_bytes().splitlines()
    except OSError:
        return name, None, "there is no record"
    wanted = list(place.examined.server)
    for line in lines:
        try:
            if json.loads(line).get("argv", [])[1:] == wanted:
                return name, True, "it is in the record"
        except (ValueError, AttributeError):
            continue
    return name, False, "nothing started it"


def offered(name: str, asked: Sequence[bytes], wanted: bool) -> _Check:
    """Whether requests to a scripted model offer tools of the program `name`'s server, as they should or not."""
    tool = re.compile(rb'["_.]' + name.encode() + rb'_[a-z]+"')
    there = any(tool.search(line) for line in asked)
    return "tools reached the model", there == wanted, "offered" if there else "no tool of the server"
