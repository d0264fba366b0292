"""Codex CLI: `codex exec --json`, and its rollout logs.

What is known of it (measured on 0.171): `command` is one quoted string in the stream and words in the rollout; an item
of type `error` is a warning, `turn.failed` is a failure; a tool that the model invented is only in the rollout; a
command that still runs when the turn ends has no completion; the rollout's usage is cumulative.
"""

import re
import shlex
from typing import Any

from harness.transcripts import lines
from harness.transcripts.build import Builder, parts, unwrapped
from harness.transcripts.lines import obj, text, whole
from harness.transcripts.model import Call, Ended, State, Transcript, Usage

_STATUS = re.compile(r"(?:unexpected |last )?status:? (\d{3})\b", re.IGNORECASE)
_STATES: dict[str, State] = {"completed": "done", "failed": "failed", "declined": "denied", "in_progress": "pending"}


def stream(data: bytes) -> Transcript:
    """The normal form of a stream."""
    read = lines.read(data)
    build = Builder("codex", "exec-json", read)
    ended, usage = Ended("cut", None, "the turn has no end"), Usage()
    for _, event in read.records:
        kind = text(event.get("type"))
        if kind.startswith("item."):
            _item(build, kind, obj(event.get("item")))
        elif kind == "turn.completed":
            ended, usage = Ended("completed"), _added(usage, obj(event.get("usage")))
        elif kind == "turn.failed":
            ended = failed(text(obj(event.get("error")).get("message")))
        elif kind == "turn.started":
            ended = Ended("cut", None, "the turn has no end")
        elif kind == "error":
            build.say("system", text(event.get("message")))
        elif kind != "thread.started":
            build.unknown(kind)
    made = build.finish(ended)
    made.usage = usage
    return made


def failed(message: str) -> Ended:
    """The end that a failed turn's own message tells of."""
    found = _STATUS.search(message)
    return Ended("provider_error", int(found[1]) if found else None, message[:500])


def _added(before: Usage, told: dict[str, Any]) -> Usage:
    """Usage is a turn's: turns add up."""
    cached = whole(told.get("cached_input_tokens"))
    prompt, output = whole(told.get("input_tokens")), whole(told.get("output_tokens"))
    wrote = whole(told.get("cache_write_input_tokens"))
    own = (parts(prompt, cached, wrote), output, cached, wrote, whole(told.get("reasoning_output_tokens")))
    old = (before.input, before.output, before.cache_read, before.cache_write, before.reasoning)
    summed = [
        None if new is None and was is None else (new or 0) + (was or 0) for new, was in zip(own, old, strict=True)
    ]
    total = None if prompt is None or output is None else (before.total or 0) + prompt + output
    return Usage(*summed, total=total, turns=(before.turns or 0) + 1, source="turn.completed", complete=True)


def _item(build: Builder, event: str, item: dict[str, Any]) -> None:
    kind, identity = text(item.get("type")), text(item.get("id"))
    if kind == "command_execution":
        _command(build, item, identity)
    elif kind in ("file_change", "mcp_tool_call", "collab_tool_call", "web_search"):
        _tool(build, item, identity, kind, over=event == "item.completed")
    elif event != "item.completed":
        return
    elif kind in ("agent_message", "plan"):
        build.say("assistant", text(item.get("text")), id=identity)
    elif kind == "reasoning":
        build.say("reasoning", text(item.get("text")), id=identity)
    elif kind == "error":
        build.say("system", text(item.get("message")), id=identity)
    elif kind != "todo_list":
        build.unknown(f"item/{kind}")


def _command(build: Builder, item: dict[str, Any], identity: str) -> None:
    line = text(item.get("command"))
    call = build.call(identity, "shell", {"command": line}, command=inner(line))
    status, code = text(item.get("status")), whole(item.get("exit_code"))
    if status == "in_progress":
        return
    state = _STATES.get(status, "unknown")
    if code is None and state in ("done", "failed"):
        state = "unknown"  # older builds complete what still runs
    build.result(call, text(item.get("aggregated_output")), state=state, code=code,
                 is_error=None if code is None else code != 0)  # fmt: skip


def inner(line: str) -> str:
    """The script within `/bin/bash -lc '…'`; the line itself where it is no such thing."""
    try:
        return unwrapped(words) if len(words := shlex.split(line)) == 3 else line
    except ValueError:
        return line


def _tool(build: Builder, item: dict[str, Any], identity: str, kind: str, *, over: bool) -> None:
    name = ".".join(filter(None, (text(item.get("server")), text(item.get("tool"))))) or kind
    hidden = ("id", "type", "status", "result", "error")
    told = item.get("arguments") if kind == "mcp_tool_call" else {k: v for k, v in item.items() if k not in hidden}
    kinds = {"file_change": "write", "web_search": "web", "collab_tool_call": "agent", "mcp_tool_call": "other"}
    call = build.call(identity, name, told, kind=kinds[kind])
    if not over:
        return
    error = obj(item.get("error")) or item.get("error")
    output = lines.contents(obj(item.get("result")).get("content")) or text(obj(item.get("error")).get("message"))
    state = _STATES.get(text(item.get("status")), "failed" if error else "done")
    build.result(call, output or None, state=state, is_error=state == "failed")


# -- rollout -----------------------------------------------------------------------------------------------------

_EXITED = re.compile(r"(?:^|\n)(?:Process exited with code|Exit code:) (-?\d{1,5})(?:\n|$)")
_RUNNING = re.compile(r"(?:^|\n)Process running with session ID")


def rollout(data: bytes) -> Transcript:
    """The normal form of a rollout log."""
    read = lines.read(data)
    build = Builder("codex", "rollout", read)
    log = _Rollout(build)
    for _, record in read.records:
        log.take(record)
    made = build.finish(log.ended)
    made.usage = log.usage
    return made


class _Rollout:
    """The records of a rollout. Calls between two records of usage belong to one answer of the model."""

    def __init__(self, build: Builder) -> None:
        self.build, self.made = build, build.made
        self.ended = Ended("cut", None, "the task has no end")
        self.usage = Usage()
        self.answer = 1

    def take(self, record: dict[str, Any]) -> None:
        """One record."""
        kind, payload = text(record.get("type")), obj(record.get("payload"))
        t = lines.seconds(record.get("timestamp"))
        if kind == "session_meta":
            self.made.product_version = lines.maybe_text(payload.get("cli_version"))
            self.made.first.cwd = lines.maybe_text(payload.get("cwd"))
        elif kind == "turn_context":
            self.made.model = lines.maybe_text(payload.get("model")) or self.made.model
        elif kind == "response_item":
            self._item(payload, t)
        elif kind == "event_msg":
            self._event(payload, t)
        elif kind == "token_usage_record":
            self._used(payload.get("thread_token_usage"))
            self.answer += 1
        elif kind not in ("world_state", "compacted"):
            self.build.unknown(kind)

    def _item(self, item: dict[str, Any], t: float | None) -> None:
        kind, identity = text(item.get("type")), text(item.get("call_id")) or text(item.get("id"))
        if kind == "message":
            role = text(item.get("role"))
            spoken = {"assistant": "assistant", "user": "user"}.get(role, "system")
            if role not in ("developer", "system"):
                self.build.say(spoken, lines.contents(item.get("content")), t=t, id=lines.maybe_text(item.get("id")))
        elif kind == "reasoning":
            self.build.say("reasoning", lines.contents(item.get("summary")), t=t)
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            self._called(item, identity, t)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._output(identity, item.get("output"), t)
        else:
            self.build.unknown(f"response_item/{kind}")

    def _called(self, item: dict[str, Any], identity: str, t: float | None) -> None:
        told: Any = item.get("arguments") or item.get("action") or item.get("input")
        if isinstance(told, str):
            told = _arguments(told, opaque=item.get("type") == "custom_tool_call")
        name = text(item.get("name")) or "local_shell"
        call = self.build.call(identity, name, told, message_id=f"response {self.answer}", t=t)
        if call.kind == "shell" and call.command is not None and call.argv is None:
            call.command = inner(call.command)

    def _output(self, identity: str, told: Any, t: float | None) -> None:
        call = self.build.call(identity, "", None)
        output = lines.contents(told) or text(obj(told).get("content"))
        if re.fullmatch(r"unsupported (?:custom tool )?call: .*", output.strip()):
            call.kind = "invented"
            self.build.result(call, output, state="failed", is_error=True, t=t)
            return
        code = _code(output) if call.kind == "shell" else None
        running = call.kind == "shell" and code is None and _RUNNING.search(output.partition("Output:")[0]) is not None
        call.background = call.background or running
        state: State = "pending" if running else "failed" if code else "done"
        if call.kind == "shell" and code is None and not running:
            state = "unknown"
        self.build.result(call, output, state=state, code=code, is_error=None if code is None else code != 0, t=t)

    def _event(self, event: dict[str, Any], t: float | None) -> None:
        kind = text(event.get("type"))
        if kind == "item_completed":
            self._finished(obj(event.get("item")), t)
        elif kind in ("task_complete", "turn_complete"):
            self.ended = Ended("completed")
        elif kind in ("turn_aborted", "task_aborted"):
            self.ended = Ended("interrupted", None, text(event.get("reason")))
        elif kind in ("error", "stream_error"):
            self.ended = failed(text(event.get("message"))) if kind == "error" else self.ended
        elif kind == "token_count":
            self._used(obj(event.get("info")).get("total_token_usage"))
        elif kind in ("task_started", "turn_started"):
            self.ended = Ended("cut", None, "the task has no end")

    def _finished(self, item: dict[str, Any], t: float | None) -> None:
        """The product's own end of a command; -1 is none (it was ended with the turn)."""
        if item.get("type") != "CommandExecution":
            return
        call = self.build.find(text(item.get("call_id")) or text(item.get("id"))) or self._same(item)
        code = whole(item.get("exit_code"))
        if call is None or code is None:
            return
        if code < 0:
            call.state = "unknown" if call.state == "pending" else call.state
            return
        output = call.output if call.output is not None else text(item.get("aggregated_output"))
        self.build.result(call, output, state="failed" if code else "done", code=code, is_error=code != 0, t=t)

    def _same(self, item: dict[str, Any]) -> Call | None:
        """The first call of that command of which no end is known yet."""
        argv = item.get("command")
        if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
            return None
        return next((one for one in self.made.calls if one.kind == "shell" and one.exit_code is None
                     and one.command == unwrapped(argv)), None)  # fmt: skip

    def _used(self, told: Any) -> None:
        """Cumulative: the last one is the total."""
        counts = obj(told)
        if whole(counts.get("input_tokens")) is not None:
            self.usage = _added(Usage(), counts)
            self.usage.source, self.usage.turns = "rollout, cumulative", self.answer


def _arguments(told: str, *, opaque: bool) -> dict[str, Any]:
    """Arguments are JSON in a string; a custom tool's input is anything, kept as it is."""
    if not opaque:
        try:
            return obj(lines.value(told.encode("utf-8", "surrogatepass")))
        except ValueError:
            pass
    return {"opaque": text(told)}


def _code(output: str) -> int | None:
    """The exit code in the envelope around a command's output, which the command's own text can't reach."""
    found = _EXITED.search(re.split(r"(?:^|\n)(?:Total output lines|Output):", output, maxsplit=1)[0])
    if found:
        return int(found[1])
    try:
        meta = obj(obj(lines.value(output.encode("utf-8", "surrogatepass"))).get("metadata"))
    except ValueError:
        return None
    return whole(meta.get("exit_code"))
