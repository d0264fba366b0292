"""ATIF, the interchange form of agents' trajectories: reads 1.0 to 1.8, writes 1.8.

It has no place for exit codes, threads' calls and message ids: those go into `extra`, from where we read them again.
What a step's `extra` says of an exit code is somebody's word like any other transcript's.
"""

import re
from datetime import UTC, datetime
from typing import Any

from harness.transcripts import lines
from harness.transcripts.build import Builder, last_words, parts, shell
from harness.transcripts.lines import obj, objs, text, whole
from harness.transcripts.model import MAIN, Call, Ended, Transcript, Usage

VERSION = "ATIF-v1.8"
_KNOWN = re.compile(r"ATIF-v1\.[0-8]")


def read(data: bytes) -> Transcript:
    """The normal form of a trajectory. Raises ValueError for another version."""
    told = obj(lines.value(data))
    version = text(told.get("schema_version"))
    if not _KNOWN.fullmatch(version):
        raise ValueError(f"ATIF of the version {version!r}; 1.0 to 1.8 are known")
    build = Builder("atif", version)
    agent, extra = obj(told.get("agent")), obj(told.get("extra"))
    build.made.product_version = lines.maybe_text(agent.get("version"))
    build.made.model = lines.maybe_text(agent.get("model_name"))
    build.made.first.tools = lines.names(agent.get("tool_definitions"), "name")
    _trajectory(build, told, MAIN, 0)
    ended = obj(extra.get("ended"))
    made = build.finish(
        Ended(text(ended.get("how")) or "unknown", whole(ended.get("status")), text(ended.get("detail")))
    )
    made.answer = text(extra.get("answer")) or made.answer
    made.usage = _usage(obj(told.get("final_metrics")), objs(told.get("steps")))
    return made


def _trajectory(build: Builder, told: dict[str, Any], thread: str, depth: int) -> None:
    parts_ = {text(one.get("trajectory_id")): one for one in objs(told.get("subagent_trajectories"))}
    for step in objs(told.get("steps")):
        if step.get("is_copied_context") is True:
            continue
        message = f"{thread}/{step.get('step_id')}"
        extra, t = obj(step.get("extra")), lines.seconds(step.get("timestamp"))
        message = text(extra.get("message_id")) or message
        build.say("reasoning", text(step.get("reasoning_content")), thread=thread, t=t, id=message)
        role = {"user": "user", "agent": "assistant"}.get(text(step.get("source")), "system")
        build.say(role, lines.contents(step.get("message")), thread=thread, t=t, id=message)
        for each in objs(step.get("tool_calls")):
            line = lines.maybe_text(obj(each.get("extra")).get("command"))
            build.call(text(each.get("tool_call_id")), text(each.get("function_name")), each.get("arguments"),
                       thread=thread, message_id=message, t=t, command=line)  # fmt: skip
        for result in objs(obj(step.get("observation")).get("results")):
            _result(build, result, step)
            by = text(result.get("source_call_id"))
            for ref in objs(result.get("subagent_trajectory_ref")):
                inner = parts_.pop(text(ref.get("trajectory_id")), None)
                if inner is not None and depth < 20:
                    name = text(obj(inner.get("agent")).get("name"))
                    _trajectory(build, inner, build.thread(by, by_call=by, called=name), depth + 1)
    for name, inner in parts_.items():
        if depth < 20:
            called = text(obj(inner.get("agent")).get("name"))
            _trajectory(build, inner, build.thread(name, called=called), depth + 1)


def _result(build: Builder, result: dict[str, Any], step: dict[str, Any]) -> None:
    identity = lines.maybe_text(result.get("source_call_id"))
    if identity is None:
        calls = objs(step.get("tool_calls"))
        identity = text(calls[0].get("tool_call_id")) if len(calls) == 1 else None
    call = build.find(identity or "")
    output = lines.contents(result.get("content"))
    if call is None:
        build.say("system", output)
        return
    extra = obj(result.get("extra"))
    code = whole(extra.get("exit_code"))
    unsure = call.kind == "shell" and code is None
    state = text(extra.get("state"))
    if state not in ("done", "failed", "pending", "denied", "unknown"):
        state = "unknown" if unsure else "failed" if code else "done"
    told = extra.get("is_error")
    claimed = told if isinstance(told, bool) else None if unsure else bool(code)
    build.result(call, output, state=state, is_error=claimed, code=code)


def _usage(final: dict[str, Any], steps: list[dict[str, Any]]) -> Usage:
    prompt, cached = whole(final.get("total_prompt_tokens")), whole(final.get("total_cached_tokens"))
    output = whole(final.get("total_completion_tokens"))
    if prompt is None and output is None:
        return Usage()
    total = None if prompt is None or output is None else prompt + output
    turns = sum(1 for step in steps if step.get("source") == "agent")
    return Usage(parts(prompt, cached), output, cached, total=total, cost_usd=lines.number(final.get("total_cost_usd")),
                 turns=turns, source="final_metrics", complete=True)  # fmt: skip


# -- export ------------------------------------------------------------------------------------------------------


def to_atif(told: Transcript) -> dict[str, Any]:
    """The transcript as ATIF 1.8: its threads are trajectories, its messages and their calls are steps."""
    return _written(told, MAIN)


def _written(told: Transcript, thread: str) -> dict[str, Any]:
    agent = {"name": told.product, "version": told.product_version or "unknown"}
    if told.model is not None:
        agent["model_name"] = told.model
    made: dict[str, Any] = {"schema_version": VERSION, "trajectory_id": thread, "agent": agent,
                            "steps": _steps(told, thread)}  # fmt: skip
    if thread != MAIN:
        return made
    made["final_metrics"] = _metrics(told.usage)
    made["extra"] = {"ended": {"how": told.ended.how, "status": told.ended.status, "detail": told.ended.detail},
                     "truncated": told.truncated, "usage_complete": told.usage.complete}  # fmt: skip
    if told.answer != last_words(told.messages):
        made["extra"]["answer"] = told.answer
    others = [one.id for one in told.threads if one.id != MAIN]
    if others:
        made["subagent_trajectories"] = [_written(told, one) for one in others]
    return made


def _metrics(usage: Usage) -> dict[str, Any]:
    known = (usage.input, usage.cache_read, usage.cache_write)
    prompt = None if usage.input is None else sum(part or 0 for part in known)
    told = {"total_prompt_tokens": prompt, "total_completion_tokens": usage.output, "total_cost_usd": usage.cost_usd,
            "total_cached_tokens": usage.cache_read}  # fmt: skip
    return {key: value for key, value in told.items() if value is not None}


def _steps(told: Transcript, thread: str) -> list[dict[str, Any]]:
    """One step a message; calls join the step of their message where it stands right before them."""
    entries = sorted([*told.messages, *told.calls], key=lambda one: one.n)
    steps: list[dict[str, Any]] = []
    for entry in entries:
        if entry.thread != thread:
            continue
        identity = entry.message_id if isinstance(entry, Call) else entry.id
        step = steps[-1] if steps else None
        joins = step is not None and step["source"] == "agent" and identity is not None and \
            obj(step.get("extra")).get("message_id") == identity  # fmt: skip
        if isinstance(entry, Call):
            if not joins:
                step = _step(steps, "agent", entry.t, identity)
            assert step is not None
            _put(step, entry, told)
        elif joins and entry.role == "assistant" and step is not None and not step.get("tool_calls"):
            step["message"] += entry.text
        else:
            source = {"user": "user", "system": "system"}.get(entry.role, "agent")
            step = _step(steps, source, entry.t, identity)
            step["reasoning_content" if entry.role == "reasoning" else "message"] = entry.text
    return steps or [_step([], "system", None, None)]


def _step(steps: list[dict[str, Any]], source: str, t: float | None, message: str | None) -> dict[str, Any]:
    step: dict[str, Any] = {"step_id": len(steps) + 1, "source": source, "message": ""}
    if t is not None and 0 <= t < 32503680000:
        step["timestamp"] = datetime.fromtimestamp(t, UTC).isoformat()
    if message is not None:
        step["extra"] = {"message_id": message}
    steps.append(step)
    return step


def _put(step: dict[str, Any], call: Call, told: Transcript) -> None:
    each: dict[str, Any] = {"tool_call_id": call.id, "function_name": call.tool or "unknown", "arguments": call.input}
    if call.command is not None and call.command != shell(call.input)[0]:
        each["extra"] = {"command": call.command}
    step.setdefault("tool_calls", []).append(each)
    opened = [one.id for one in told.threads if one.by_call == call.id]
    if call.output is None and call.state == "pending" and not opened:
        return
    extra = {"exit_code": call.exit_code, "exit_code_source": call.exit_source, "state": call.state,
             "is_error": call.is_error, "message_id": call.message_id}  # fmt: skip
    result: dict[str, Any] = {"source_call_id": call.id, "content": call.output or "", "extra": extra}
    if opened:
        result["subagent_trajectory_ref"] = [{"trajectory_id": one} for one in opened]
    step.setdefault("observation", {"results": []})["results"].append(result)
