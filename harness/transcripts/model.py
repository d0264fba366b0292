"""The normal form of what an agent said and did: `labd-transcript/1`. Plain values; the same bytes for the same form.

Whatever a transcript does not tell is None (or `unknown`), never a zero and never a guess. Times are seconds since
1970. `n` counts messages and calls together, in the order in which they were told.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

SCHEMA = "labd-transcript/1"

How = Literal["completed", "max_turns", "max_budget", "provider_error", "interrupted", "cut", "unknown"]
Role = Literal["user", "assistant", "system", "reasoning"]
Kind = Literal["shell", "skill", "read", "write", "agent", "web", "other", "invented"]
State = Literal["done", "failed", "pending", "denied", "unknown"]
Source = Literal["recorder", "transcript", "unknown"]

#: The first thread's id: the agent that was asked.
MAIN = "main"


class TranscriptError(ValueError):
    """Bytes in no format that is known. `line` (from 1) made no sense; `first_bytes` is how it begins."""

    def __init__(self, line: int, first_bytes: bytes, why: str = "in no known format") -> None:
        self.line, self.first_bytes, self.why = line, first_bytes, why
        super().__init__(f"line {line} is {why}: {first_bytes[:80].decode('utf-8', 'replace')!r}")


@dataclass
class Ended:
    """How the agent's program ended by its own account. `status` is the provider's HTTP status, where it was one."""

    how: How = "unknown"
    status: int | None = None
    detail: str = ""


@dataclass
class First:
    """What the agent's own first record lists; None where it has no such list."""

    tools: list[str] | None = None
    skills: list[str] | None = None
    agents: list[str] | None = None
    mcp_servers: list[str] | None = None
    memory: list[str] | None = None
    cwd: str | None = None


@dataclass
class Thread:
    """The agent that was asked, or one that it started by the call `by_call`."""

    id: str
    parent: str | None = None
    by_call: str | None = None
    name: str | None = None


@dataclass
class Message:
    """Something said. Parts that the product tells apart by `id` belong to one answer of the model."""

    n: int
    thread: str
    role: Role
    text: str
    t: float | None = None
    id: str | None = None


@dataclass
class Call:
    """A use of a tool. `command`: a shell's text; `argv`: its words, where the product tells words.

    is_error is what the product claims and proves nothing; exit_code is there only where a number was told. answered_n:
    the last entry that had been told when it came back; what has that number or a lower one was begun before.
    """

    n: int
    id: str
    thread: str
    tool: str
    kind: Kind = "other"
    message_id: str | None = None
    command: str | None = None
    argv: list[str] | None = None
    input: dict[str, Any] = field(default_factory=dict)
    t: float | None = None
    ended_t: float | None = None
    state: State = "pending"
    background: bool = False
    output: str | None = None
    is_error: bool | None = None
    exit_code: int | None = None
    exit_source: Source = "unknown"
    answered_n: int | None = None


@dataclass
class Usage:
    """Tokens, US dollars and turns. `input` is without what came from a cache; `complete`: of the whole run."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    total: int | None = None
    cost_usd: float | None = None
    turns: int | None = None
    source: str = "none"
    complete: bool = False


@dataclass
class Problem:
    """A line (from 1; 0: no line) that could not be read or makes no sense, and what is wrong with it."""

    line: int
    what: str


@dataclass
class Transcript:
    """One agent's run, as its transcript tells it. `truncated`: the end of the file is missing."""

    product: str
    format: str
    product_version: str | None = None
    model: str | None = None
    answer: str = ""
    ended: Ended = field(default_factory=Ended)
    first: First = field(default_factory=First)
    threads: list[Thread] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    truncated: bool = False
    problems: list[Problem] = field(default_factory=list)
    unknown_events: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain data with its schema's name."""
        return {"schema": SCHEMA, **asdict(self)}

    def dumps(self) -> bytes:
        """JSON, the same bytes for the same transcript, with a final newline."""
        return (json.dumps(self.as_dict(), indent=1, sort_keys=True) + "\n").encode("ascii")


def from_dict(data: Mapping[str, Any]) -> Transcript:
    """A Transcript from what `as_dict` gave. Raises ValueError for another schema or missing parts."""
    if data.get("schema") != SCHEMA:
        raise ValueError(f"not a {SCHEMA} record: {data.get('schema')!r}")
    try:
        told = {one.name: data[one.name] for one in fields(Transcript)}
        for name, made in (("ended", Ended), ("first", First), ("usage", Usage)):
            told[name] = made(**told[name])
        for name, each in (("threads", Thread), ("messages", Message), ("calls", Call), ("problems", Problem)):
            told[name] = [each(**entry) for entry in told[name]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"no whole {SCHEMA} record: {error}") from error
    return Transcript(**told)
