"""Claude Code: `claude -p --output-format stream-json --verbose`, and its session logs with those of its subagents.

What is known of it (measured on 2.1): one event a content block, blocks of one answer share `message.id`; usage in
assistant events of the stream is of the message's start, only `result` has totals; there may be several `init` and
`result` events; a shell's exit code is told only on failure (`Exit code 3`); a killed program leaves no result.
"""

import re
from collections.abc import Iterator, Mapping
from heapq import merge
from typing import Any

from harness.transcripts import lines
from harness.transcripts.build import Builder, totalled
from harness.transcripts.lines import obj, objs, text, whole
from harness.transcripts.model import MAIN, Call, Ended, Role, State, Transcript, Usage

_EXIT = re.compile(r"(?:Error: )?Exit code (\d{1,3})(?:\n|$)")
_SUMMED = "[what was said so far was summed up]"
_UNKNOWN_TOOL = re.compile(r"<tool_use_error>Error: No such tool available: [^\n.<]*(\. \S+ exists but)?")
_QUIET = frozenset(
    ("task_progress", "task_updated", "status", "hook_started", "hook_response", "files_persisted",
     "session_state_changed")
)  # fmt: skip


def stream(data: bytes) -> Transcript:
    """The normal form of a stream."""
    read = lines.read(data)
    build = Builder("claude", "stream-json", read)
    reader = _Events(build)
    for _, event in read.records:
        reader.take(event)
    made = build.finish(reader.ended())
    reader.closing(made)
    return made


class _Events:
    """The events of a stream, one after the other."""

    def __init__(self, build: Builder) -> None:
        self.build, self.made = build, build.made
        self.results: list[dict[str, Any]] = []
        self.retry: dict[str, Any] | None = None
        self.tasks: set[str] = set()

    def take(self, event: dict[str, Any]) -> None:
        """One event; what is of no known type is counted."""
        kind = event.get("type")
        if kind == "system":
            self._system(event)
        elif kind in ("assistant", "user"):
            self.retry = None
            said(self.build, event, self._thread(event), tool_result=event.get("tool_use_result"))
        elif kind == "result":
            self.results.append(event)
        elif kind not in ("stream_event", "rate_limit_event"):
            self.build.unknown(kind)

    def _thread(self, event: dict[str, Any]) -> str:
        by = lines.maybe_text(event.get("parent_tool_use_id"))
        if by is None:
            return MAIN
        return self.build.thread(by, by_call=by, called=lines.maybe_text(event.get("subagent_type")))

    def _system(self, event: dict[str, Any]) -> None:
        kind = text(event.get("subtype"))
        if kind == "init":
            self._init(event)
        elif kind == "api_retry":
            self.retry = event
        elif kind in ("task_started", "task_notification"):
            self._task(kind, event)
        elif kind == "compact_boundary":
            self.build.say("system", _SUMMED)
        elif kind not in _QUIET:
            self.build.unknown(f"system/{kind}")

    def _init(self, event: dict[str, Any]) -> None:
        made, first = self.made, self.made.first
        if made.product_version is not None:
            return  # a later segment
        made.product_version = lines.maybe_text(event.get("claude_code_version"))
        made.model = lines.maybe_text(event.get("model"))
        for name in ("tools", "skills", "agents", "mcp_servers"):
            setattr(first, name, lines.names(event.get(name)))
        memory = event.get("memory_paths")
        first.memory = sorted(filter(None, map(text, memory.values()))) if isinstance(memory, dict) else None
        first.cwd = lines.maybe_text(event.get("cwd"))

    def _task(self, kind: str, event: dict[str, Any]) -> None:
        call = self.build.find(text(event.get("tool_use_id")))
        if call is None:
            return
        if kind == "task_started":
            call.background = call.background or event.get("task_type") == "local_bash"
        elif event.get("task_type") != "local_agent" and call.background:
            state = {"completed": "done", "failed": "failed", "stopped": "failed", "killed": "failed"}
            call.state = state.get(text(event.get("status")), "unknown")

    def ended(self) -> Ended:
        """By the last terminal event alone; what tools printed never counts."""
        if not self.results:
            if self.retry is not None:
                return Ended("provider_error", whole(self.retry.get("error_status")), text(self.retry.get("error")))
            return Ended("cut", None, "there is no result event")
        last = self.results[-1]
        kind, status = text(last.get("subtype")), whole(last.get("api_error_status"))
        why = "; ".join(lines.names(last.get("errors")) or []) or (text(last.get("result")) if status else "")
        if kind == "error_max_turns":
            return Ended("max_turns", status, why)
        if kind == "error_max_budget_usd":
            return Ended("max_budget", status, why)
        if status is not None:
            return Ended("provider_error", status, why[:500])
        if kind == "success" and last.get("is_error") is not True:
            if last.get("stop_reason") == "tool_use" and not last.get("result"):
                return Ended("interrupted", None, "it stopped for a tool and said nothing after")
            return Ended("completed")
        return Ended("interrupted" if kind == "error_during_execution" else "unknown", None, why or kind)

    def closing(self, made: Transcript) -> None:
        """The answer from what was said, else from the result; usage from results; denials from their list."""
        if not made.answer and self.results:
            made.answer = text(self.results[-1].get("result"))
        made.usage = _usage(self.results)
        for denied in (one for event in self.results for one in objs(event.get("permission_denials"))):
            call = self.build.find(text(denied.get("tool_use_id")))
            if call is not None:
                call.state = "denied"
        _opened_late(made)


def _opened_late(made: Transcript) -> None:
    """A stream that begins in the middle may tell a subagent's call after its own events."""
    known = {call.id: call.thread for call in made.calls}
    for thread in made.threads[1:]:
        thread.parent = known.get(thread.by_call or "", MAIN)


def _usage(results: list[dict[str, Any]]) -> Usage:
    """Totals of all models from the last result: its modelUsage and cost are cumulative, its turns are a segment's."""
    if not results:
        return Usage()
    last = results[-1]
    models = [obj(one) for one in obj(last.get("modelUsage")).values()]
    if models:
        keys = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        counts = [sum(whole(one.get(key)) or 0 for one in models) for key in keys]
        source = "result.modelUsage"
    else:
        told = obj(last.get("usage"))
        counts = [whole(told.get(key)) for key in _COUNTS]
        source = "result.usage"
    turns = [count for count in (whole(one.get("num_turns")) for one in results) if count is not None]
    return totalled(Usage(*counts, cost_usd=lines.number(last.get("total_cost_usd")),
                          turns=sum(turns) if turns else None, source=source, complete=True))  # fmt: skip


_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def said(build: Builder, event: dict[str, Any], thread: str, *, tool_result: Any) -> None:
    """A message of either side, in the form that stream and session share."""
    message = obj(event.get("message"))
    t = lines.seconds(event.get("timestamp"))
    identity = lines.maybe_text(message.get("id"))
    assistant = event.get("type") == "assistant"
    if assistant and thread == MAIN and build.made.model is None:
        build.made.model = lines.maybe_text(message.get("model"))
    content = message.get("content")
    role: Role = "assistant" if assistant else "system" if _own(build, event, content) else "user"
    if isinstance(content, str):
        build.say(role, text(content), thread=thread, t=t, id=identity)
    for block in objs(content):
        kind = block.get("type")
        if kind == "text":
            build.say(role, text(block.get("text")), thread=thread, t=t, id=identity)
        elif kind in ("thinking", "redacted_thinking"):
            build.say("reasoning", text(block.get("thinking")) or "[redacted]", thread=thread, t=t, id=identity)
        elif kind in ("tool_use", "server_tool_use"):
            call = build.call(text(block.get("id")), text(block.get("name")), block.get("input"), thread=thread,
                              message_id=identity, t=t)  # fmt: skip
            call.background = call.background or call.input.get("run_in_background") is True
        elif kind == "tool_result":
            call = build.call(text(block.get("tool_use_id")), "", None, thread=thread)
            _result(build, call, block, tool_result, t)
        elif kind not in ("image", "document"):
            build.unknown(f"content/{kind}")


def _own(build: Builder, event: dict[str, Any], content: Any) -> bool:
    """Whether a user's record is the program's own: so marked, beside a result, or the summary behind its mark."""
    marked = any(event.get(mark) is True for mark in ("isMeta", "isCompactSummary", "isSynthetic"))
    kind = obj(event.get("origin")).get("kind")
    beside = any(block.get("type") == "tool_result" for block in objs(content))
    return marked or beside or kind not in (None, "human") or build.last_said == _SUMMED


def _result(build: Builder, call: Call, block: dict[str, Any], tool_result: Any, t: float | None) -> None:
    output = lines.contents(block.get("content"))
    error = block.get("is_error") is True
    code = None
    state: State = "failed" if error else "done"
    missing = _UNKNOWN_TOOL.match(output) if error else None
    if missing:
        state = "denied" if missing[1] else "failed"
        call.kind = call.kind if missing[1] else "invented"
    elif error and call.kind == "shell" and (told := _EXIT.match(output)):
        code = int(told[1])
    elif error and output.startswith(("<tool_use_error>", "Permission to use", "The user doesn't want")):
        state = "denied" if not output.startswith("<") else "failed"
    if isinstance(tool_result, Mapping) and tool_result.get("backgroundTaskId"):
        call.background, state = True, "unknown"
    build.result(call, output, state=state, is_error=error, code=code, t=t)


# -- session logs ------------------------------------------------------------------------------------------------

_SESSION_QUIET = frozenset(
    ("queue-operation", "attachment", "last-prompt", "summary", "file-history-snapshot", "mode", "permission-mode",
     "ai-title", "pr-link")
)  # fmt: skip


def session(logs: Mapping[str, bytes]) -> Transcript:
    """The normal form of a session: its log, and those of its subagents (`…/agent-ID.jsonl` with `.meta.json`)."""
    found = sorted(name for name in logs if name.endswith(".jsonl"))
    build = Builder("claude", "session")
    told_by = []
    for name in sorted(found, key=lambda name: _agent(name) is not None):
        agent = _agent(name)
        thread = _thread(build, name, agent, logs) if agent else MAIN
        told_by.append(_timed(lines.read(logs[name]), thread, build))
    spent: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    last: dict[str, Any] = {}
    for _, thread, event in merge(*told_by, key=lambda one: one[0]):
        _logged(build, event, thread, seen, spent)
        last = event if thread == MAIN and event.get("type") in ("user", "assistant") else last
    made = build.finish(_session_end(last))
    told = {thread.by_call for thread in made.threads}
    whole_family = all(call.id in told for call in made.calls if call.kind == "agent")
    made.usage = _spent(spent, complete=whole_family and not made.truncated)
    _opened_late(made)
    return made


def _timed(read: lines.Read, thread: str, build: Builder) -> Iterator[tuple[float, str, dict[str, Any]]]:
    """The records of one log with their times, which never fall; one without a time has that of the one before it."""
    last = 0.0
    for _, event in read.records:
        t = lines.seconds(event.get("timestamp"))
        last = last if t is None else max(last, t)
        yield last, thread, event
    build.made.problems += read.problems
    build.made.truncated = build.made.truncated or read.truncated


def _agent(name: str) -> str | None:
    found = re.search(r"(?:^|/)agent-([^/]+)\.jsonl$", name)
    return found[1] if found else None


def _thread(build: Builder, name: str, agent: str, logs: Mapping[str, bytes]) -> str:
    try:
        meta = obj(lines.value(logs.get(name.removesuffix(".jsonl") + ".meta.json", b"{}")))
    except ValueError:
        meta = {}
    by = lines.maybe_text(meta.get("toolUseId"))
    return build.thread(by or agent, by_call=by, called=lines.maybe_text(meta.get("agentType")))


def _logged(
    build: Builder, event: dict[str, Any], thread: str, seen: set[str], spent: dict[str, dict[str, Any]]
) -> None:
    """One record of a log; a record that is there twice (a replay) counts once."""
    kind = text(event.get("type"))
    if kind in ("user", "assistant"):
        made = build.made
        made.product_version = made.product_version or lines.maybe_text(event.get("version"))
        made.first.cwd = made.first.cwd or lines.maybe_text(event.get("cwd"))
        identity = text(event.get("uuid"))
        if identity and identity in seen:
            return
        seen.add(identity)
        if event.get("isSidechain") is True and thread == MAIN:
            thread = build.thread(text(event.get("agentId")) or "sidechain")
        said(build, event, thread, tool_result=event.get("toolUseResult"))
        message = obj(event.get("message"))
        if kind == "assistant" and isinstance(message.get("usage"), dict):
            spent[text(message.get("id")) or identity] = message["usage"]
    elif kind == "system" and event.get("subtype") == "compact_boundary":
        build.say("system", _SUMMED, thread=thread)
    elif kind != "system" and kind not in _SESSION_QUIET:
        build.unknown(kind)


def _session_end(last: dict[str, Any]) -> Ended:
    """A log has no terminal event: an answer that stopped by itself is as near as it comes. `last`: the agent's own
    last record."""
    if last.get("isApiErrorMessage") is True:
        return Ended("provider_error", whole(last.get("apiErrorStatus")))
    reason = obj(last.get("message")).get("stop_reason")
    return (
        Ended("completed") if reason in ("end_turn", "stop_sequence") else Ended("unknown", None, "a log tells no end")
    )


def _spent(spent: dict[str, dict[str, Any]], *, complete: bool) -> Usage:
    """The sum over answers, each once by its id; subagents' spending is real too."""
    if not spent:
        return Usage()
    counts = [sum(whole(one.get(key)) or 0 for one in spent.values()) for key in _COUNTS]
    return totalled(Usage(*counts, turns=len(spent), source="session messages, once an id", complete=complete))
