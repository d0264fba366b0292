"""Transcripts of agents in one normal form: `parse` from raw bytes, `sniff` to tell whose bytes they are.

One pure parser a format. Text within a transcript is the agent's: it never decides how a run ended. Nothing here reads
a file, and nothing raises but TranscriptError, for bytes that are in no known format.
"""

from collections.abc import Callable, Mapping
from typing import Any

from harness.transcripts import agy, atif, claude, codex, gemini, lines, opencode, plain
from harness.transcripts.atif import to_atif
from harness.transcripts.model import Ended, Transcript, TranscriptError, from_dict

__all__ = ["PRODUCTS", "Ended", "Transcript", "TranscriptError", "format_of", "from_dict", "parse", "sniff", "to_atif"]

#: What `parse` takes.
PRODUCTS = ("claude", "codex", "gemini", "opencode", "agy", "atif", "text", "scripted")

_Parser = Callable[[bytes], Transcript]
_PARSERS: dict[tuple[str, str], _Parser] = {
    ("claude", "stream"): claude.stream,
    ("claude", "session"): lambda data: claude.session({"session.jsonl": data}),
    ("codex", "stream"): codex.stream,
    ("codex", "session"): codex.rollout,
    ("gemini", "stream"): gemini.stream,
    ("gemini", "session"): gemini.session,
    ("gemini", "json"): gemini.answer,
    ("opencode", "stream"): opencode.stream,
    ("agy", "stream"): agy.stream,
    ("agy", "session"): agy.log,
    ("atif", "json"): atif.read,
    ("scripted", "stream"): plain.scripted,
}
#: How far the first record that tells a format is looked for.
_LOOK = 50


def parse(product: str, raw: Mapping[str, bytes], *, ended: Ended | None = None) -> Transcript:
    """What an agent left (names under raw/: `stdout`, `stderr`, `session/…`) in the normal form.

    The stream tells most; a session log fills in what only it knows, or stands in where there is no stream. `ended` is
    what the harness saw: it counts where the transcript itself tells no end. Raises TranscriptError.
    """
    if product not in PRODUCTS:
        raise ValueError(f"no product {product!r}; known: {', '.join(PRODUCTS)}")
    files = {name.removeprefix("raw/"): data for name, data in raw.items()}
    made = _parse(product, files)
    if ended is not None and made.ended.how in ("unknown", "cut"):
        made.ended = ended
    return made


def _parse(product: str, files: Mapping[str, bytes]) -> Transcript:
    stdout = files.get("stdout", b"")
    logs = {name: data for name, data in files.items() if name.startswith("session/") and data.strip()}
    if product == "text":
        return plain.answer(stdout)
    if product == "scripted":
        return plain.scripted(files.get("calls.jsonl", stdout), files.get("answer.txt", b""))
    if stdout.strip() and (found := format_of(stdout)) and found[0] == product:
        return _filled(product, _read(found, stdout), logs)
    from_logs = _from_logs(product, logs)
    if from_logs is not None:
        return from_logs
    raise _senseless(stdout or next(iter(logs.values()), b""))


def _read(found: tuple[str, str], data: bytes) -> Transcript:
    try:
        return _PARSERS[found](data)
    except ValueError as error:
        raise TranscriptError(1, data[:200], f"no {found[0]} transcript: {error}") from error


def _from_logs(product: str, logs: Mapping[str, bytes]) -> Transcript | None:
    """The transcript that session logs tell, the longest where there are several."""
    mine = {name: data for name, data in logs.items() if (format_of(data) or ("", ""))[0] == product}
    if not mine:
        return None
    if product == "claude":
        return claude.session(logs)
    told = [_read(format_of(data), data) for data in mine.values()]
    return max(told, key=lambda one: len(one.calls) + len(one.messages))


def _filled(product: str, told: Transcript, logs: Mapping[str, bytes]) -> Transcript:
    """The stream with what only the log knows: Codex's invented calls, Gemini's exit codes."""
    log = _from_logs(product, logs) if logs and product in ("codex", "gemini") else None
    if log is None:
        return told
    if product == "gemini":
        return gemini.with_codes(told, log)
    if len(log.calls) < len(told.calls):
        return told  # a log that was cut
    log.ended, log.answer = told.ended, told.answer or log.answer
    log.usage = told.usage if told.usage.complete else log.usage
    log.problems, log.truncated = told.problems + log.problems, told.truncated or log.truncated
    log.format = f"{told.format} and {log.format}"
    return log


def sniff(data: bytes) -> str | None:
    """Whose transcript the bytes are; None where nothing says so."""
    found = format_of(data)
    return found[0] if found else None


def format_of(data: bytes) -> tuple[str, str] | None:
    """(product, `stream` | `session` | `json`) by the first record that tells it; None if none does."""
    if data.lstrip()[:1] != b"{":
        data = data[max(0, data.find(b"\n{")) :]  # lines of something else before the first record
    for count, (_, line) in enumerate(lines.split(data)):
        if count >= _LOOK:
            return None
        try:
            record = lines.value(line)
        except ValueError:
            if count == 0:
                return _document(data)
            continue
        found = _told_by(lines.obj(record))
        if found:
            return found
    return None


def _document(data: bytes) -> tuple[str, str] | None:
    """One JSON value over several lines."""
    try:
        return _told_by(lines.obj(lines.value(data)))
    except ValueError:
        return None


def _told_by(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """The format of which this is a record, by keys that no other one has together."""
    kind = record.get("type")
    if str(record.get("schema_version", "")).startswith("ATIF-"):
        return "atif", "json"
    if "event" in record and record["event"] in ("init", "step_update", "result"):
        return "agy", "stream"
    if "step_index" in record and "source" in record:
        return "agy", "session"
    if "step" in record and "argv" in record and "ended_by" in record:
        return "scripted", "stream"
    if "payload" in record and "timestamp" in record:
        return "codex", "session"
    if kind == "thread.started" or str(kind).startswith(("turn.", "item.")):
        return "codex", "stream"
    if "sessionID" in record and ("part" in record or "error" in record):
        return "opencode", "stream"
    if "parentUuid" in record or (kind == "queue-operation" and "sessionId" in record):
        return "claude", "session"
    if "session_id" in record and "uuid" in record and kind in ("system", "assistant", "user", "result"):
        return "claude", "stream"
    return _gemini(record, kind)


def _gemini(record: Mapping[str, Any], kind: Any) -> tuple[str, str] | None:
    if kind == "init" and "session_id" in record and "timestamp" in record:
        return "gemini", "stream"
    if kind in ("tool_use", "tool_result") and "tool_id" in record:
        return "gemini", "stream"
    if "response" in record and "stats" in record:
        return "gemini", "json"
    if kind == "result" and "stats" in record:
        return "gemini", "stream"
    if "projectHash" in record or (kind == "gemini" and "id" in record):
        return "gemini", "session"
    return None


def _senseless(data: bytes) -> TranscriptError:
    """The first line that is no record of any format, or what else is wrong with the whole."""
    first = next(lines.split(data), None)
    if first is None:
        return TranscriptError(1, b"", "the end of an empty transcript")
    if format_of(data):
        return TranscriptError(first[0], first[1][:200], "of another product")
    for number, line in lines.split(data):
        try:
            if not _told_by(lines.obj(lines.value(line))):
                return TranscriptError(number, line[:200])
        except ValueError:
            return TranscriptError(number, line[:200])
    return TranscriptError(first[0], first[1][:200])
