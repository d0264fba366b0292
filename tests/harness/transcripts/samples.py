"""The files in fixtures/transcripts, and small events to bend."""

import json
from pathlib import Path
from typing import Any

from harness.transcripts import Transcript, parse

HERE = Path(__file__).parents[3] / "fixtures" / "transcripts"
REAL = sorted(path.name for path in HERE.glob("*.jsonl"))
HANDMADE = sorted(f"handmade/{path.name}" for path in (HERE / "handmade").iterdir())
ALL = [*REAL, *HANDMADE]


def data(name: str) -> bytes:
    return (HERE / name).read_bytes()


def told(name: str, **more: bytes) -> Transcript:
    return parse(name.removeprefix("handmade/").partition("-")[0], {"stdout": data(name), **more})


def jsonl(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def claude(*records: dict[str, Any]) -> Transcript:
    first = {"type": "system", "subtype": "init", "session_id": "s", "uuid": "u", "claude_code_version": "2.1.197"}
    return parse("claude", {"stdout": jsonl(first, *records)})


def use(identity: str, command: str, *, message: str = "m1", **more: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": identity, "name": "Bash", "input": {"command": command}}
    return {"type": "assistant", "message": {"id": message, "content": [block]}, **more}


def speak(text: str, *, message: str = "m9") -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": message, "content": [{"type": "text", "text": text}]}}


def result(identity: str, content: Any, *, error: bool = False, more: Any = None) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": identity, "content": content, "is_error": error}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "tool_use_result": more}
