"""opencode: `opencode run --format json`.

What is known of it (measured on 1.18): one event a finished call, none for its start; an invented tool is the tool
`invalid` with status `completed`; a refused permission ends the run with code 0 and without a word; a turn that was
cut has no `step_finish`, and is kept all the same.
"""

from typing import Any

from harness.transcripts import lines
from harness.transcripts.build import Builder
from harness.transcripts.lines import obj, text, whole
from harness.transcripts.model import Ended, State, Transcript, Usage

_REFUSED = ("The user rejected permission", "The user has specified a rule which prevents", "Permission denied")


def stream(data: bytes) -> Transcript:
    """The normal form of a stream."""
    read = lines.read(data)
    build = Builder("opencode", "json", read)
    steps: dict[str, dict[str, Any]] = {}
    ended = Ended("cut", None, "no step has finished")
    for _, event in read.records:
        kind, part, t = event.get("type"), obj(event.get("part")), lines.seconds(event.get("timestamp"))
        message = lines.maybe_text(part.get("messageID"))
        if kind == "text":
            build.say("assistant", text(part.get("text")), t=t, id=message)
        elif kind == "reasoning":
            build.say("reasoning", text(part.get("text")), t=t, id=message)
        elif kind == "user":
            build.say("user", text(part.get("text")), t=t, id=message)
        elif kind == "tool_use":
            _call(build, part, message)
        elif kind == "step_start":
            ended = Ended("cut", None, "a step has no end")
        elif kind == "step_finish":
            steps[text(part.get("id")) or f"#{len(steps)}"] = part
            ended = _stopped(text(part.get("reason")))
        elif kind == "error":
            ended = _failed(obj(event.get("error")) or obj(part.get("error")))
        else:
            build.unknown(kind)
    made = build.finish(ended)
    if made.ended.how == "interrupted" and made.calls and made.calls[-1].state == "denied":
        made.ended.detail = "a permission was refused, which ended the run"
    if steps:
        made.usage = _usage(list(steps.values()), complete=made.ended.how in ("completed", "interrupted"))
    return made


def _stopped(reason: str) -> Ended:
    if reason == "tool-calls":
        return Ended("interrupted", None, "nothing came after the last calls")
    if reason == "stop":
        return Ended("completed")
    return Ended("unknown", None, f"the last step finished for {reason!r}")


def _failed(error: dict[str, Any]) -> Ended:
    told = obj(error.get("data"))
    status = whole(told.get("statusCode"))
    name, why = text(error.get("name")), text(told.get("message"))
    if name == "MessageAbortedError":
        return Ended("interrupted", None, why)
    provider = status is not None or name in ("APIError", "ProviderAuthError")
    return Ended("provider_error" if provider else "unknown", status, f"{name}: {why}"[:500])


def _call(build: Builder, part: dict[str, Any], message: str | None) -> None:
    state = obj(part.get("state"))
    tool, told, times = text(part.get("tool")), obj(state.get("input")), obj(state.get("time"))
    invented = tool == "invalid"
    call = build.call(
        text(part.get("callID")), text(told.get("tool")) if invented else tool, told, message_id=message,
        kind="invented" if invented else None, t=lines.seconds(times.get("start")),
    )  # fmt: skip
    status, ended = text(state.get("status")), lines.seconds(times.get("end"))
    code = whole(obj(state.get("metadata")).get("exit")) if call.kind == "shell" else None
    if status == "completed":
        failed = invented or bool(code)
        unsure = call.kind == "shell" and code is None
        verdict: State = "failed" if failed else "unknown" if unsure else "done"
        build.result(call, text(state.get("output")), state=verdict, code=code, t=ended,
                     is_error=None if unsure else failed)  # fmt: skip
    elif status == "error":
        why = text(state.get("error"))
        refused: State = "denied" if why.startswith(_REFUSED) else "failed"
        build.result(call, why, state=refused, is_error=True, code=code, t=ended)


def _usage(steps: list[dict[str, Any]], *, complete: bool) -> Usage:
    """The sum of all steps, each once by its id."""
    tokens = [obj(step.get("tokens")) for step in steps]
    caches = [obj(one.get("cache")) for one in tokens]

    def added(told: list[dict[str, Any]], key: str) -> int | None:
        known = [count for count in (whole(one.get(key)) for one in told) if count is not None]
        return sum(known) if known else None

    made = Usage(added(tokens, "input"), added(tokens, "output"), added(caches, "read"), added(caches, "write"),
                 added(tokens, "reasoning"), added(tokens, "total"), turns=len(steps), source="step_finish, once an id",
                 complete=complete)  # fmt: skip
    costs = [cost for cost in (lines.number(step.get("cost")) for step in steps) if cost is not None]
    made.cost_usd = sum(costs) if costs else None
    if made.total is None and made.input is not None:
        made.total = sum(part or 0 for part in (made.input, made.output, made.cache_read, made.cache_write,
                                                made.reasoning))  # fmt: skip
    return made
