"""Transcripts made to measure: what an agent did, told once, written as each product would write it.

For the self-test of `labd-eval sufficiency`, whose rules must hold whatever program the log is of. No real log.
"""

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

FORMATS = ("claude", "claude-session", "codex", "gemini", "opencode")


@dataclass(frozen=True)
class Use:
    """A call: `ask` the thing under test, `shell`, `read`, `search`, `edit`, `todo`, `delegate`, or any tool's name.

    output: None if nothing ever came back. inner: what the subagent did, for `delegate`.
    """

    what: str
    about: str = ""
    output: str | None = "done"
    error: bool = False
    inner: Sequence["Turn"] = ()


@dataclass(frozen=True)
class Turn:
    """One answer of the model: words and calls; or what the user said."""

    parts: Sequence[Use | str] = field(default_factory=tuple)
    user: str = ""


def written(form: str, turns: Sequence[Turn], *, end: str = "final") -> dict[str, bytes]:
    """The files of a log. end: `final`, `cut` (within a line), `nothing` (no terminal event), `turns` (their limit)."""
    writer = {"claude": _claude, "claude-session": _session, "codex": _codex, "gemini": _gemini,
              "opencode": _opencode}[form]  # fmt: skip
    files = writer(turns, end)
    first = next(iter(files))
    if end == "cut":
        files[first] += b'{"type": "assistant", "message": {"id": "m99", "conte'
    return files


def _lines(records: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in records)


def _named(form: str, use: Use) -> tuple[str, dict[str, Any]]:
    """The tool and its input as a product has them."""
    claude = {"ask": "mcp__atlas__explore", "shell": "Bash", "read": "Read", "search": "Grep", "edit": "Edit",
              "todo": "TodoWrite", "delegate": "Agent"}  # fmt: skip
    names = {
        "claude": claude,
        "gemini": {"ask": "mcp_atlas_explore", "shell": "run_shell_command", "read": "read_file",
                   "search": "search_file_content", "edit": "replace", "todo": "write_todos"},
        "opencode": {"ask": "atlas_explore", "shell": "bash", "read": "read", "search": "grep", "edit": "edit",
                     "todo": "todowrite", "delegate": "task"},
    }[form]  # fmt: skip
    key = {"ask": "query", "shell": "command", "read": "filePath" if form == "opencode" else "file_path",
           "search": "pattern", "edit": "file_path", "todo": "todos", "delegate": "prompt"}  # fmt: skip
    return names.get(use.what, use.what), {key.get(use.what, "query"): use.about}


# -- Claude Code ---------------------------------------------------------------------------------------------------


def _claude(turns: Sequence[Turn], end: str) -> dict[str, bytes]:
    first = {"type": "system", "subtype": "init", "session_id": "s", "uuid": "u", "claude_code_version": "2.1.197"}
    last = {"final": [{"type": "result", "subtype": "success", "is_error": False, "result": "done", "num_turns": 1}],
            "turns": [{"type": "result", "subtype": "error_max_turns", "is_error": True, "num_turns": 1}]}  # fmt: skip
    return {"stdout": _lines([first, *_events(turns, None), *last.get(end, [])])}


def _events(turns: Sequence[Turn], parent: str | None, prefix: str = "") -> Iterator[dict[str, Any]]:
    """One event a block, results after all blocks of their message, a subagent's events between."""
    more = {"parent_tool_use_id": parent}
    for number, turn in enumerate(turns):
        if turn.user:
            yield {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": turn.user}]}} | more
        for at, part in enumerate(turn.parts):
            block = {"type": "text", "text": part}
            if isinstance(part, Use):
                tool, told = _named("claude", part)
                block = {"type": "tool_use", "id": f"{prefix}{number}.{at}", "name": tool, "input": told}
            message = {"id": f"{prefix}m{number}", "role": "assistant", "model": "made", "content": [block]}
            yield {"type": "assistant", "message": message} | more
        for at, part in enumerate(turn.parts):
            if isinstance(part, Use):
                name = f"{prefix}{number}.{at}"
                yield from _events(part.inner, name, f"{name}/")
                if part.output is not None:
                    block = {"type": "tool_result", "tool_use_id": name, "content": part.output, "is_error": part.error}
                    yield {"type": "user", "message": {"role": "user", "content": [block]}} | more


def _session(turns: Sequence[Turn], end: str) -> dict[str, bytes]:
    """The session's log, and one for each subagent with who started it beside it."""
    files: dict[str, list[dict[str, Any]]] = {}
    for count, event in enumerate(_events(turns, None)):
        parent = event.pop("parent_tool_use_id")
        record = {"parentUuid": None, "uuid": f"u{count}", "sessionId": "s", "version": "2.1.197",
                  "isSidechain": parent is not None, "timestamp": f"2026-01-01T00:{count // 60:02}:{count % 60:02}Z",
                  **event}  # fmt: skip
        files.setdefault("session/s.jsonl" if parent is None else f"session/agent-{parent.replace('/', '-')}.jsonl",
                         []).append(record)  # fmt: skip
        if parent is not None:
            files[f"session/agent-{parent.replace('/', '-')}.meta.json"] = [{"agentType": "x", "toolUseId": parent}]
    if end == "final":
        last = files["session/s.jsonl"][-1]
        last["message"]["stop_reason"] = "end_turn"
    return {name: _lines(records) for name, records in files.items()}


# -- the others ----------------------------------------------------------------------------------------------------


def _uses(turns: Sequence[Turn]) -> Iterator[tuple[int, int, Use | str]]:
    return ((number, at, part) for number, turn in enumerate(turns) for at, part in enumerate(turn.parts))


def _codex(turns: Sequence[Turn], end: str) -> dict[str, bytes]:
    """`exec --json`: no message ids. Files are read and searched in the shell."""
    records: list[dict[str, Any]] = [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}]
    for number, at, part in _uses(turns):
        name = f"item_{number}_{at}"
        if isinstance(part, str):
            records.append({"type": "item.completed", "item": {"id": name, "type": "agent_message", "text": part}})
            continue
        item = _codex_item(part) | {"id": name}
        records.append({"type": "item.started", "item": item | {"status": "in_progress"}})
        if part.output is not None:
            over = {"status": "failed" if part.error else "completed"}
            if item["type"] == "command_execution":
                over |= {"aggregated_output": part.output, "exit_code": int(part.error)}
            elif item["type"] == "mcp_tool_call":
                over |= {"result": {"content": [{"type": "text", "text": part.output}]}}
            records.append({"type": "item.completed", "item": item | over})
    if end == "final":
        records.append({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}})
    return {"stdout": _lines(records)}


def _codex_item(use: Use) -> dict[str, Any]:
    if use.what == "ask":
        return {"type": "mcp_tool_call", "server": "atlas", "tool": "explore", "arguments": {"query": use.about}}
    if use.what == "edit":
        return {"type": "file_change", "changes": [{"path": use.about, "kind": "update"}]}
    if use.what == "todo":
        return {"type": "todo_list", "items": []}
    if use.what == "delegate":
        return {"type": "collab_tool_call", "tool": "spawn_agent", "prompt": use.about}
    inner = {"read": f"cat {use.about}", "search": f"rg {use.about}"}.get(use.what, use.about)
    return {"type": "command_execution", "command": f"/bin/bash -lc {shlex.quote(inner)}"}


def _gemini(turns: Sequence[Turn], end: str) -> dict[str, bytes]:
    """`stream-json`: what is called before the first result is taken as one answer's."""
    at_ = {"timestamp": "2026-01-01T00:00:00Z"}
    records: list[dict[str, Any]] = [{"type": "init", "session_id": "s", "model": "made"} | at_]
    for number, turn in enumerate(turns):
        results = []
        if turn.user:
            records.append({"type": "message", "role": "user", "content": turn.user} | at_)
        for at, part in enumerate(turn.parts):
            if isinstance(part, str):
                records.append({"type": "message", "role": "assistant", "content": part} | at_)
                continue
            tool, told = _named("gemini", part)
            name = f"{number}.{at}"
            records.append({"type": "tool_use", "tool_name": tool, "tool_id": name, "parameters": told} | at_)
            if part.output is not None:
                ended: dict[str, Any] = {"status": "success", "output": part.output}
                if part.error:
                    ended = {"status": "error", "error": {"type": "failed", "message": part.output}}
                results.append({"type": "tool_result", "tool_id": name, **ended} | at_)
        records += results
    if end == "final":
        records.append({"type": "result", "status": "success", "stats": {"total_tokens": 1}} | at_)
    return {"stdout": _lines(records)}


def _opencode(turns: Sequence[Turn], end: str) -> dict[str, bytes]:
    """`run --format json`: one event a finished call; a call that never ended is not told."""
    records: list[dict[str, Any]] = []
    for number, turn in enumerate(turns):
        message, held = f"msg{number}", False
        for at, part in enumerate(turn.parts):
            told: dict[str, Any] = {"messageID": message}
            if isinstance(part, str):
                records.append({"type": "text", "timestamp": 1, "sessionID": "s", "part": told | {"text": part}})
            elif part.output is not None:
                tool, given = _named("opencode", part)
                state: dict[str, Any] = {"status": "completed", "input": given, "output": part.output}
                if part.what == "shell":
                    state["metadata"] = {"exit": int(part.error)}
                elif part.error:
                    state = {"status": "error", "input": given, "error": part.output}
                told |= {"tool": tool, "callID": f"{number}.{at}", "state": state}
                records.append({"type": "tool_use", "timestamp": 1, "sessionID": "s", "part": told})
                held = True
        last = end == "final" and number == len(turns) - 1
        records.append({"type": "step_finish", "timestamp": 1, "sessionID": "s",
                        "part": {"id": message, "reason": "stop" if last and not held else "tool-calls"}})  # fmt: skip
    return {"stdout": _lines(records)}
