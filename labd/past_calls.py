"""What the argv record tells of a target's history beside its journals: claims, refusals, changes of the lab.

Reads the bench's own record (secrets are blanked in it), as far as it is kept: a few MiB. Never raises for what can't
be read: a record cut by a crash or a full disk is what it is.
"""

from __future__ import annotations

import json
import os

from labd.journal_read import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def past_calls(path: str, lab_path: str, target: str, sole: bool) -> Iterator[tuple[str, Event]]:
    """(`claim`, `refusal` or `config`; what happened) of the commands about `target`, in the order of their starts.

    `sole`: the lab has no other target, so a command that named none meant it.
    """
    real = os.path.realpath(lab_path)
    ends: dict[str, dict[str, Any]] = {}
    starts: list[dict[str, Any]] = []
    for record in _records(path):
        if record.get("rec") == "end":
            ends[str(record.get("id"))] = record
        elif _is_about(record, real, target, sole):
            starts.append(record)
    for start in sorted(starts, key=lambda record: float(record.get("t") or 0)):
        end = ends.get(str(start.get("id")), {})
        channel = _channel(start, end)
        if channel:
            yield channel, _event(start, end)


def _records(path: str) -> Iterator[dict[str, Any]]:
    """The records of the older file and of the one being written."""
    for name in (path + ".1", path):
        try:
            with open(name, "rb") as file:
                data = file.read()
        except OSError:
            continue
        for line in data.split(b"\n"):
            try:
                record = json.loads(line) if line else None
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


def _is_about(record: dict[str, Any], real: str, target: str, sole: bool) -> bool:
    named = record.get("target")
    if named != target and not (named is None and sole):
        return False
    lab = record.get("lab")
    return isinstance(lab, str) and os.path.realpath(lab) == real


def _channel(start: dict[str, Any], end: dict[str, Any]) -> str:
    operation = str(start.get("operation") or "")
    if start.get("decision") == "refused":
        return "refusal"
    if operation in ("claim", "release") and end.get("code") == 0 and start.get("target") is not None:
        return "claim"
    if start.get("effect") == "config" and end.get("lab_before") != end.get("lab_after"):
        return "config"
    return ""


def _event(start: dict[str, Any], end: dict[str, Any]) -> Event:
    import shlex

    argv = start.get("argv")
    words = [str(word) for word in argv] if isinstance(argv, list) else []
    fields = {"command": shlex.join(words), "why": _first_line(end), "code": end.get("code"), "pid": start.get("pid"),
              "face": start.get("face")}  # fmt: skip
    wall_ns = int(float(start.get("t") or 0) * 10**9)
    return Event(0, str(start.get("operation")), 0, wall_ns, int(start.get("mono_ns") or 0), fields)


def _first_line(end: dict[str, Any]) -> str | None:
    """What a refused command was told."""
    said = str(end.get("stderr_head") or "").strip()
    return said.splitlines()[0].removeprefix("labd: ") if said and end.get("code") else None
