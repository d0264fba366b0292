"""What happened in one trial, in order, and what the grader saw: a bundle as plain data for a page. Reads only.

Entries come from three witnesses, and each says which: the recorder (`ran`: the program under test was started), the
agent's own account (`step` of a scripted agent; `said` and `call` of a transcript), the simulated board (`board`). A
step or call that the recorder saw is one entry with the recorder's exit code, and with the class of each of its runs
that went wrong, where the run was classified. Long texts are cut, and say by how much.
"""

import difflib
import json
import shlex
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from graders import attempts, explain, route, shell_words
from graders.argv_records import Invocation
from graders.bundle_view import Bundle, BundleError
from graders.contract import Record
from graders.sufficiency import Judged
from harness import grading
from harness.report import classes, enough
from harness.report.words import NEXT

Entry = dict[str, Any]

#: Characters kept of one text, and entries kept of one trial.
TEXT, ENTRIES = 4000, 400

#: What of trial.json is shown beside the timeline.
_FACTS = ("started", "ended", "ended_by", "detail", "lane", "grader", "policy", "limits", "agent_s",
           "commands_s", "duration_s")  # fmt: skip


def read(directory: Path) -> dict[str, Any]:
    """Goal, entries, answer, change of the lab, checks, traps, scores and facts of the trial in `directory`.

    A bundle that was damaged is told with its damage alone: nothing else in it may be believed.
    """
    damage = grading.damage(directory)
    if damage:
        return {"damage": damage}
    bundle, verdict = Bundle(directory), grading.kept(directory)
    record = classes.record_of(directory)
    entries = _in_order(bundle)
    _mark(entries, bundle, record)
    _follow(entries, enough.by_number(directory))
    return {
        "damage": "",
        "goal": cut((directory / "goal.txt").read_text("utf-8", "replace").strip()),
        "entries": entries[:ENTRIES],
        "left_out": max(0, len(entries) - ENTRIES),
        "answer": cut(bundle.answer or ""),
        "lab": cut(_difference(bundle.lab_before, bundle.lab_after)),
        "checks": [[check.name, check.ok, cut(check.detail, 800)] for check in verdict.checks] if verdict else [],
        "traps": [[trap.name, trap.ok, cut(trap.detail, 800)] for trap in verdict.traps] if verdict else [],
        "scores": dict(verdict.scores) if verdict else {},
        "agent_side": [explain.explain_hint(one) for one in record.agent_side] if record else [],
        "facts": {key: value for key, value in _facts(bundle).items() if value not in (None, "", [])},
    }


def _facts(bundle: Bundle) -> dict[str, Any]:
    """What is shown beside the timeline: of an agent that is a program, also what it is and what was asked of it."""
    told = {key: bundle.trial.get(key) for key in _FACTS}
    options = bundle.trial.get("options") or {}
    asked = {key: options.get(key) for key in ("isolation", "model", "turns", "tokens", "money_usd", "script")}
    return told | asked | dict(bundle.trial.get("program") or {})


def cut(text: str, most: int = TEXT) -> str:
    """`text`, or its beginning and end with the number of characters that are missing between."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters …]\n{text[-half:]}"


def _in_order(bundle: Bundle) -> list[Entry]:
    """All entries by their time; one without a time stands where its witness put it."""
    recorded = list(bundle.record.invocations) if bundle.record is not None else []
    told = [*_steps(bundle, recorded), *_transcript(bundle, recorded)]
    told += [_ran(one) for one in recorded]  # those that neither a step nor a call has claimed
    told += _board(bundle)
    begun = _seconds(bundle.trial.get("started"))
    last = begun or 0.0
    for entry in told:
        if entry["t"] is None:
            entry["t"] = last
        last = entry["t"]
    told.sort(key=lambda entry: entry["t"])
    for entry in told:
        entry["t"] = round(entry["t"] - begun, 3) if begun else None
    return told


def _mark(entries: list[Entry], bundle: Bundle, record: Record | None) -> None:
    """Put the classes of the calls at the entries that were those calls: `marks`, where there are any."""
    numbers = {one.start["id"]: number for number, one in enumerate(attempts.acted(bundle))}
    for entry in entries:
        calls = [numbers[run] for run in entry.pop("runs", ()) if run in numbers]
        marks = [_marked(record, number) for number in calls if record and number < len(record.calls)]
        if any(marks):
            entry["marks"] = [mark for mark in marks if mark]


def _follow(entries: list[Entry], judged: dict[int, Judged]) -> None:
    """Say at calls of the program what the agent did next: `next`, where there is a transcript that tells."""
    for entry in entries:
        one = judged.get(entry.pop("n", None) or 0)
        if one is not None:
            told = NEXT.get(str(one.bucket), "no verdict")
            entry["next"] = cut(f"then {one.next}{f' ({one.note})' if one.note else ''}: {told}", 400)


def _marked(record: Record, number: int) -> Entry | None:
    call = record.calls[number]
    if call.cls is None:
        return None
    about = explain.explain_call(call, number + 1, explain.program_of(record))
    return {"class": call.cls, "kind": call.subtype, "call": number + 1, "about": cut(about)}


def _ran(one: Invocation) -> Entry:
    end = one.end or {}
    return {
        "kind": "ran", "t": one.start.get("t"), "text": cut(str(one), 1000), "code": one.code, "signal": one.signal,
        "decision": one.decision, "effect": one.effect, "seconds": _positive(end.get("duration_ms"), 0.001),
        "out": cut(str(end.get("stdout_head") or "")), "err": cut(str(end.get("stderr_head") or "")),
        "runs": [one.start["id"]],
    }  # fmt: skip


def _steps(bundle: Bundle, recorded: list[Invocation]) -> Iterator[Entry]:
    """What a scripted agent ran. Removes from `recorded` what these steps were."""
    for call in bundle.calls:
        argv = [str(word) for word in call.get("argv") or ()]
        shell = argv[:1] == ["sh"] and len(argv) == 3
        told = _commands(argv[2], route.subject(bundle.trial)) if shell else [argv] * (call.get("tries") or 1)
        mine = _claim(recorded, told)
        yield {
            "kind": "step", "t": call.get("t"), "text": cut(argv[2] if shell else shlex.join(argv), 1000),
            "code": call.get("code"), "signal": call.get("signal"), "seconds": _positive(call.get("spent_s")),
            "tries": call.get("tries"), "recorded": len(mine), "decision": mine[-1].decision if mine else None,
            "effect": mine[-1].effect if mine else None, "out": cut(str(call.get("stdout") or "")),
            "err": cut(str(call.get("stderr") or "")), "runs": [one.start["id"] for one in mine],
        }  # fmt: skip


def _transcript(bundle: Bundle, recorded: list[Invocation]) -> Iterator[Entry]:
    """What an agent's transcript tells. Removes from `recorded` what its calls were."""
    told = bundle.transcript or {}
    both = [("said", one) for one in _dicts(told.get("messages"))] + [
        ("call", one) for one in _dicts(told.get("calls"))
    ]
    for kind, one in sorted(both, key=lambda pair: pair[1].get("n") or 0):
        entry: Entry = {"kind": kind, "t": _seconds(one.get("t")), "thread": one.get("thread")}
        if kind == "said":
            yield entry | {"text": cut(str(one.get("text") or "")), "role": one.get("role")}
            continue
        command = one.get("command") or " ".join(map(str, one.get("argv") or ()))
        mine = _claim(recorded, _commands(str(command), route.subject(bundle.trial)))
        codes = [invocation.code for invocation in mine]
        yield entry | {
            "text": cut(str(command or json.dumps(one.get("input"), sort_keys=True)), 1000), "tool": one.get("tool"),
            "code": codes[-1] if codes else one.get("exit_code"), "recorded": len(mine),
            "decision": mine[-1].decision if mine else None, "effect": mine[-1].effect if mine else None,
            "state": one.get("state"), "out": cut(str(one.get("output") or "")), "err": "",
            "runs": [invocation.start["id"] for invocation in mine], "n": one.get("n"),
        }  # fmt: skip


def _board(bundle: Bundle) -> Iterator[Entry]:
    """What a simulated board heard and said: neighbours of one kind are one entry."""
    for (target, interface), records in sorted(bundle.boards.items()):
        open_: Entry | None = None
        for record in records:
            kind = record.get("kind")
            if kind not in ("rx", "tx") or record.get("echo"):
                continue
            if open_ is not None and open_["role"] == kind:
                open_["text"] = cut(open_["text"] + str(record.get("data") or ""))
                continue
            if open_ is not None:
                yield open_
            open_ = {"kind": "board", "t": record.get("t"), "role": kind, "text": str(record.get("data") or ""),
                     "line": f"{target}.{interface}"}  # fmt: skip
        if open_ is not None:
            yield open_


def _claim(recorded: list[Invocation], commands: Iterable[list[Any]]) -> list[Invocation]:
    """The first invocations in `recorded` that are these commands, by their words without the program's path."""
    wanted = [[str(word).rpartition("/")[2], *map(str, rest)] for word, *rest in filter(None, commands)]
    mine = []
    for words in wanted:
        found = next((one for one in recorded if [*map(_base, one.argv[:1]), *one.argv[1:]] == words), None)
        if found is not None:
            recorded.remove(found)
            mine.append(found)
    return mine


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def _commands(line: str, subject: str) -> list[list[str]]:
    """The commands of the subject in a shell's text, those whose words are all told."""
    return [list(one.words) for one in shell_words.commands(line, subject) if not one.holes]


def _difference(before: bytes | None, after: bytes | None) -> str:
    """What changed in the lab file, as a unified diff; empty if nothing did."""
    old, new = ((data or b"").decode("utf-8", "replace").splitlines() for data in (before, after))
    return "\n".join(difflib.unified_diff(old, new, "lab before", "lab after", lineterm="", n=2))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _seconds(value: Any) -> float | None:
    """A time of a transcript or of trial.json, as seconds since 1970; None if it is none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def _positive(value: Any, unit: float = 1.0) -> float | None:
    return round(value * unit, 3) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def read_all(directory: Path, report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The timelines of all trials of a run that have a bundle, by their names. One that is unreadable says so."""
    found = {}
    for row in report["trials"]:
        if row["bundle"]:
            try:
                found[row["id"]] = read(directory / row["bundle"])
            except (BundleError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                found[row["id"]] = {"damage": f"can't be shown: {type(error).__name__}: {error}"}
    return found
