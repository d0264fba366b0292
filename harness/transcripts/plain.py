"""What isn't a product's own format: any command's stdout as an answer, and our scripted agents' calls.jsonl."""

import shlex
from typing import Any

from harness.transcripts import lines
from harness.transcripts.build import Builder
from harness.transcripts.lines import text, whole
from harness.transcripts.model import Ended, State, Transcript


def answer(data: bytes) -> Transcript:
    """All that a command printed is its answer, and nothing is known of what it did."""
    build = Builder("text", "text")
    build.say("assistant", lines.text(data.decode("utf-8", "replace")))
    made = build.finish(Ended("unknown", None, "text tells no end"))
    made.answer = made.answer.strip("\n")
    return made


def scripted(data: bytes, said: bytes = b"") -> Transcript:
    """The normal form of calls.jsonl, with the answer that was kept beside it."""
    read = lines.read(data)
    build = Builder("scripted", "calls.jsonl", read)
    for number, record in read.records:
        _call(build, number, record)
    build.say("assistant", lines.text(said.decode("utf-8", "replace")))
    return build.finish(Ended("cut" if read.truncated else "completed"))


def _call(build: Builder, number: int, record: dict[str, Any]) -> None:
    argv = record.get("argv")
    argv = [str(word) for word in argv] if isinstance(argv, list) else []
    t, spent = lines.seconds(record.get("t")), lines.number(record.get("duration_s"))
    call = build.call(f"call {number}", "run", {"step": text(record.get("step"))}, kind="shell", argv=argv,
                      command=shlex.join(argv), t=t)  # fmt: skip
    code, how = whole(record.get("code")), record.get("ended_by")
    state: State = "failed" if code or record.get("signal") or how != "exit" else "done"
    output = text(record.get("stdout")) + text(record.get("stderr"))
    ended = t + spent if t is not None and spent is not None else None
    build.result(call, output, state=state, code=code, is_error=state == "failed", t=ended)
