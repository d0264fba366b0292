"""Antigravity `agy`: its stream (1.1.8 and later) and its transcript_full.jsonl. By what is documented; never run here.

What is known of it: records of the log repeat while a step is in progress (the last one counts, unless an earlier one
was final); results carry no call's id and belong to the latest answer's calls in order; argument values are JSON in
strings; SUCCESS may hide a refusal or a timeout; usage of nothing but zeros is unknown.
"""

import re
from typing import Any

from harness.transcripts import lines
from harness.transcripts.build import Builder
from harness.transcripts.lines import obj, objs, text, whole
from harness.transcripts.model import Call, Ended, State, Transcript, Usage

_FINAL = frozenset({"DONE", "ERROR", "FAILED", "CANCELED", "CANCELLED", "REJECTED"})
_ASKED = re.compile(r"\s*<USER_REQUEST>(.*?)</USER_REQUEST>", re.DOTALL)


def stream(data: bytes) -> Transcript:
    """The normal form of a stream."""
    read = lines.read(data)
    build = Builder("agy", "stream-json", read)
    ended = Ended("cut", None, "there is no result event")
    for _, event in read.records:
        kind = text(event.get("event"))
        told = obj(event.get(kind)) or event
        if kind == "init":
            build.made.model = lines.maybe_text(told.get("model"))
            build.made.first.tools = lines.names(told.get("tools"))
            build.made.first.cwd = lines.maybe_text(told.get("cwd"))
        elif kind == "step_update":
            _step(build, told)
        elif kind == "result":
            ended = _end(build, told)
            build.made.usage = _usage(told)
        else:
            build.unknown(kind)
    return build.finish(ended)


def _step(build: Builder, step: dict[str, Any]) -> None:
    kind, identity = text(step.get("step_type")), f"step {step.get('step_index')}"
    if kind in ("tool", "subagent"):
        info = obj(step.get("tool_info"))
        name = text(step.get("tool_name")) or text(info.get("name")) or kind
        call = build.call(identity, name, _decoded(obj(info.get("parameters"))),
                          kind="agent" if kind == "subagent" else None)  # fmt: skip
        state, why = text(step.get("state")), text(info.get("error"))
        if state in _FINAL:
            failed = state != "DONE" or bool(why)
            shell = call.kind == "shell" and not failed
            build.result(call, text(info.get("output")) or why, state="failed" if failed else "done",
                         is_error=None if shell else failed)  # fmt: skip
    elif kind == "agent_response":
        build.append("assistant", text(step.get("text_delta")))
    elif kind == "user_input":
        build.append("user", text(step.get("text_delta")))
    else:
        build.unknown(f"step/{kind}")


def _end(build: Builder, told: dict[str, Any]) -> Ended:
    """SUCCESS is believed only where something was answered and nothing was refused."""
    why = text(told.get("error")) or text(obj(told.get("error")).get("message"))
    denied = told.get("denied_actions")
    build.made.answer = text(told.get("response"))
    if told.get("status") != "SUCCESS":
        return Ended("unknown", None, why[:500])
    if denied:
        _deny(build, objs(denied))
        return Ended("interrupted", None, "an action was refused")
    if _usage(told).source == "none":
        return Ended("unknown", None, "success without any usage: it may have run out of time")
    return Ended("completed")


def _deny(build: Builder, actions: list[dict[str, Any]]) -> None:
    """Refused actions are calls that never ran."""
    names = [text(action.get("tool_name")) or text(action.get("name")) for action in actions]
    for call in build.made.calls:
        if call.state != "done" and call.tool in names:
            names.remove(call.tool)
            call.state = "denied"


def _usage(told: dict[str, Any]) -> Usage:
    usage = obj(told.get("usage"))
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "thinking_tokens", "total_tokens")
    prompt, output, cached, thought, total = (whole(usage.get(name)) for name in names)
    if not any((prompt, output, cached, thought, total)):
        return Usage()
    return Usage(prompt, output, cached, reasoning=thought, total=total, turns=whole(told.get("num_turns")),
                 source="result.usage", complete=True)  # fmt: skip


def _decoded(told: dict[str, Any]) -> dict[str, Any]:
    """Argument values are JSON in strings, mostly."""
    found: dict[str, Any] = {}
    for key, kept in told.items():
        found[key] = kept
        if isinstance(kept, str) and kept[:1] in '"[{':
            try:
                found[key] = lines.value(kept.encode("utf-8", "surrogatepass"))
            except ValueError:
                pass
    return found


# -- transcript_full.jsonl ---------------------------------------------------------------------------------------

_SILENT = frozenset({"CHECKPOINT", "CONVERSATION_HISTORY", "EPHEMERAL_MESSAGE", "USER_INPUT", "PLANNER_RESPONSE"})


def log(data: bytes) -> Transcript:
    """The normal form of a full log. It tells no usage and no end."""
    read = lines.read(data)
    build = Builder("agy", "transcript_full", read)
    waiting: list[Call] = []
    for record in _latest([record for _, record in read.records]):
        kind, t = text(record.get("type")), lines.seconds(record.get("created_at"))
        content, source = text(record.get("content")), record.get("source")
        if kind == "USER_INPUT":
            asked = _ASKED.match(content)
            build.say("user", asked[1].strip() if asked else content, t=t)
        elif kind == "PLANNER_RESPONSE":
            waiting = _planned(build, record, content, t)
        elif kind in _SILENT:
            build.say("system", content, t=t)
        elif source == "MODEL" or record.get("exit_code") is not None or waiting:
            _outcome(build, waiting, record, t)
        else:
            build.unknown(kind)
    return build.finish(Ended("unknown", None, "a log tells no end"))


def _latest(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: dict[tuple[str, str, str], dict[str, Any]] = {}
    for record in records:
        key = str(record.get("step_index")), text(record.get("type")), text(record.get("source"))
        if key not in kept or text(kept[key].get("status")) not in _FINAL:
            kept[key] = record
    return list(kept.values())


def _planned(build: Builder, record: dict[str, Any], content: str, t: float | None) -> list[Call]:
    message = f"step {record.get('step_index')}"
    build.say("reasoning", text(record.get("thinking")), t=t, id=message)
    build.say("assistant", content, t=t, id=message)
    return [
        build.call(
            f"{message}.{number}", text(told.get("name")), _decoded(obj(told.get("args"))), message_id=message, t=t
        )
        for number, told in enumerate(objs(record.get("tool_calls")))
    ]


def _outcome(build: Builder, waiting: list[Call], record: dict[str, Any], t: float | None) -> None:
    """A result: of the first call that waits and is of that kind, else of the first that waits."""
    kind, status = text(record.get("type")), text(record.get("status"))
    call = next((one for one in waiting if one.tool.upper() == kind), waiting[0] if waiting else None)
    if call is None:
        call = build.call(f"step {record.get('step_index')}", kind.lower(), None, t=t)
    else:
        waiting.remove(call)
    code = whole(record.get("exit_code"))
    if status not in _FINAL:
        return
    state: State = "failed" if status != "DONE" or code else "done"
    unsure = call.kind == "shell" and code is None and state == "done"
    build.result(call, text(record.get("content")), state=state, code=code, t=t,
                 is_error=None if unsure else state == "failed")  # fmt: skip
