"""Gemini CLI: `--output-format stream-json` and `json`, and its session logs.

What is known of it (measured on 0.61): the stream says `success` for a shell command whatever its exit code; the code
is in the session log alone; pieces of an answer (`delta`) are to be joined; records of a session log supersede earlier
ones of the same id, and may be taken back (`$rewindTo`).
"""

import re
from typing import Any

from harness.transcripts import lines
from harness.transcripts.build import Builder, parts
from harness.transcripts.lines import obj, objs, text, whole
from harness.transcripts.model import Call, Ended, How, Transcript, Usage

_EXIT = re.compile(r"(?:^|\n)Exit Code: (-?\d{1,5})(?=\n|$)")
_DENIED = frozenset({"tool_not_allowed", "permission_denied", "policy_denied", "user_rejected", "execution_denied"})
#: How its last record begins when the provider failed; at times without the status (its 429 is kind words).
_PROVIDER = "[API Error: "
_STATUS = re.compile(r"\b(?:status|code)\W{1,4}(\d{3})\b")


def stream(data: bytes) -> Transcript:
    """The normal form of a stream. Consecutive calls before the first result are taken as one answer's."""
    read = lines.read(data)
    build = Builder("gemini", "stream-json", read)
    ended = Ended("cut", None, "there is no result event")
    answer, calling = 0, False
    for _, event in read.records:
        kind, t = event.get("type"), lines.seconds(event.get("timestamp"))
        if kind == "init":
            build.made.model = lines.maybe_text(event.get("model"))
        elif kind == "message":
            role = "user" if event.get("role") == "user" else "assistant"
            (build.append if event.get("delta") is True else build.say)(role, text(event.get("content")), t=t)
        elif kind == "tool_use":
            answer += not calling
            build.call(text(event.get("tool_id")), text(event.get("tool_name")), event.get("parameters"), t=t,
                       message_id=f"answer {answer} (by order)")  # fmt: skip
        elif kind == "tool_result":
            _result(build, event, t)
        elif kind == "error":
            build.say("system", text(event.get("message")), t=t)
        elif kind == "result":
            ended = _end(event)
            build.made.usage = _usage(obj(event.get("stats")))
        else:
            build.unknown(kind)
        calling = kind == "tool_use"
    return build.finish(ended)


def _result(build: Builder, event: dict[str, Any], t: float | None) -> None:
    call = build.call(text(event.get("tool_id")), "", None)
    error = obj(event.get("error"))
    kind = text(error.get("type"))
    output = text(event.get("output")) or text(error.get("message"))
    if event.get("status") == "success":
        build.result(call, output, state="done", is_error=None if call.kind == "shell" else False, t=t)
        return
    if kind == "tool_not_registered":
        call.kind = "invented"
    build.result(call, output, state="denied" if kind in _DENIED else "failed", is_error=True, t=t)


def _end(event: dict[str, Any]) -> Ended:
    if event.get("status") == "success":
        return Ended("completed")
    error = obj(event.get("error"))
    kind, why = text(error.get("type")), text(error.get("message"))
    if "MaxSessionTurns" in kind or "TurnLimit" in kind:
        return Ended("max_turns", None, why[:500])
    found = _STATUS.search(why)
    status = whole(error.get("code")) or (int(found[1]) if found else None)
    known = status is not None and 400 <= status < 600
    how: How = "provider_error" if known or why.startswith(_PROVIDER) else "unknown"
    return Ended(how, status if known else None, f"{kind}: {why}"[:500])


def _usage(stats: dict[str, Any]) -> Usage:
    if not stats:
        return Usage()
    cached = whole(stats.get("cached"))
    own = whole(stats.get("input"))
    prompt = whole(stats.get("input_tokens"))
    return Usage(own if own is not None else parts(prompt, cached), whole(stats.get("output_tokens")), cached,
                 total=whole(stats.get("total_tokens")), source="result.stats", complete=True)  # fmt: skip


def answer(data: bytes) -> Transcript:
    """The normal form of `--output-format json`: one object, which tells the answer and no calls."""
    told = obj(lines.value(data))
    build = Builder("gemini", "json")
    build.say("assistant", text(told.get("response")))
    error = obj(told.get("error"))
    made = build.finish(_end({"status": "error", "error": error}) if error else Ended("completed"))
    models = [obj(obj(one).get("tokens")) for one in obj(obj(told.get("stats")).get("models")).values()]
    if models:
        count = {key: sum(whole(one.get(key)) or 0 for one in models)
                 for key in ("prompt", "candidates", "cached", "thoughts", "total")}  # fmt: skip
        made.usage = Usage(parts(count["prompt"], count["cached"]), count["candidates"] + count["thoughts"],
                           count["cached"], reasoning=count["thoughts"], total=count["total"], source="stats.models",
                           complete=True)  # fmt: skip
    return made


# -- session logs ------------------------------------------------------------------------------------------------


def session(data: bytes) -> Transcript:
    """The normal form of a session log, or of the one JSON object that older versions wrote."""
    read = lines.read(data)
    build = Builder("gemini", "session", read)
    records = _latest([record for _, record in read.records])
    spent: list[dict[str, Any]] = []
    for record in records:
        kind, t = record.get("type"), lines.seconds(record.get("timestamp"))
        identity = lines.maybe_text(record.get("id"))
        if kind == "user":
            build.say("user", lines.contents(record.get("content")), t=t, id=identity)
        elif kind in ("gemini", "model"):
            build.made.model = lines.maybe_text(record.get("model")) or build.made.model
            for thought in objs(record.get("thoughts")):
                said = ": ".join(filter(None, (text(thought.get("subject")), text(thought.get("description")))))
                build.say("reasoning", said, t=t, id=identity)
            build.say("assistant", lines.contents(record.get("content")), t=t, id=identity)
            for told in objs(record.get("toolCalls")):
                _logged(build, told, identity)
            spent.append(obj(record.get("tokens")))
        elif kind in ("info", "warning", "error"):
            build.say("system", lines.contents(record.get("content")), t=t, id=identity)
        elif kind is not None:
            build.unknown(kind)
    made = build.finish(Ended("unknown", None, "a log tells no end"))
    if any(spent):
        made.usage = _spent(spent)
    return made


def _latest(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records by their last state: the same id supersedes in place, `$rewindTo` takes back what came after."""
    kept: dict[str, dict[str, Any]] = {}
    for number, record in enumerate(records):
        if isinstance(record.get("messages"), list):
            kept.update((text(one.get("id")) or f"{number}.{n}", one) for n, one in enumerate(objs(record["messages"])))
        elif isinstance(back := record.get("$rewindTo"), str):
            names = list(kept)
            for name in names[names.index(back) + 1 :] if back in kept else ():
                del kept[name]
        elif record.get("type") == "message_update":
            name = text(record.get("id"))
            changed = {key: value for key, value in record.items() if key != "type"}
            kept[name] = {**kept.get(name, {}), **changed}
        elif record.get("type") is not None:
            kept[text(record.get("id")) or f"#{number}"] = record
    return list(kept.values())


def _logged(build: Builder, told: dict[str, Any], message: str | None) -> None:
    call = build.call(text(told.get("id")), text(told.get("name")), told.get("args"), message_id=message,
                      t=lines.seconds(told.get("timestamp")))  # fmt: skip
    status = text(told.get("status"))
    output = "\n".join(filter(None, map(_response, objs(told.get("result"))))) or text(told.get("resultDisplay"))
    found = list(_EXIT.finditer(output)) if call.kind == "shell" else []
    code = int(found[-1][1]) if found else None  # the product's line stands behind the command's own output
    if "not found in registry" in output or (status == "error" and re.match(r"Tool \"[^\"]*\" not found", output)):
        call.kind = "invented"
    state = {"success": "done", "error": "failed", "cancelled": "denied"}.get(status, "pending")
    if code and state == "done":
        state = "failed"
    is_error = code != 0 if code is not None else None if call.kind == "shell" and status == "success" else (
        status == "error" if status else None)  # fmt: skip
    build.result(call, output or None, state=state, is_error=is_error, code=code)


def _response(part: dict[str, Any]) -> str:
    response = obj(obj(part.get("functionResponse")).get("response"))
    return text(response.get("output")) or text(response.get("error"))


def _spent(spent: list[dict[str, Any]]) -> Usage:
    count = {key: sum(whole(one.get(key)) or 0 for one in spent)
             for key in ("input", "output", "cached", "thoughts", "total")}  # fmt: skip
    return Usage(parts(count["input"], count["cached"]), count["output"] + count["thoughts"], count["cached"],
                 reasoning=count["thoughts"], total=count["total"], turns=len(spent),
                 source="session messages, once an id", complete=True)  # fmt: skip


def with_codes(stream_told: Transcript, log: Transcript) -> Transcript:
    """The stream's transcript with exit codes that only the log knows: by id, else by the same input in order."""
    by_id = {call.id: call for call in log.calls}
    left = list(log.calls)
    for call in stream_told.calls:
        same = by_id.get(call.id) or next((one for one in left if _same(one, call)), None)
        if same is None or same not in left:
            continue
        left.remove(same)
        if same.exit_code is not None and call.exit_code is None:
            call.exit_code, call.exit_source = same.exit_code, same.exit_source
            call.state, call.is_error = same.state, same.is_error
    return stream_told


def _same(one: Call, other: Call) -> bool:
    return one.tool == other.tool and one.input == other.input
