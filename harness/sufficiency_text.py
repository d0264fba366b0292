"""The words of `labd-eval sufficiency`: a table of buckets by arm, then a line for each call. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from graders.sufficiency import BUCKETS
from harness.report.words import NEXT as NAMES
from harness.transcript_command import cut, shown

CONCURRENCY = {
    "messages": "by message",
    "order": "approximate: by the order of calls and results",
    "unknowable": "unknowable: no call tells its message",
}


def text(told: dict[str, Any]) -> str:
    """The answer for a terminal, with a final newline."""
    lines = [f"what the agent did after each answer of {' and of '.join(told['of'])}", ""]
    if told["others"]:
        lines += [f"no call of it in {_many(len(told['logs']), 'log')}. What is called there, and how to judge that:"]
        lines += [f"  {option}  ({_many(count, 'call')})" for option, count in told["others"].items()]
        lines += [f"  --tool '*{name}' takes it behind any server's name" for name in _behind(told)]
    else:
        lines += _table(told["arms"])
        if told["comparisons"]:
            lines += ["", *(f"{one['first']} → {one['second']}: {one['sentence']}" for one in told["comparisons"])]
        for log in told["logs"]:
            lines += ["", *_log(log)]
    if told["skipped"]:
        lines += ["", *(f"left out: {one['log']}: {one['why']}" for one in told["skipped"][:5])]
        lines += [f"left out: {len(told['skipped']) - 5} more"] if len(told["skipped"]) > 5 else []
    return "\n".join(cut(shown(line), 400) for line in [*lines, "", *told["notes"]]) + "\n"


def _behind(told: dict[str, Any]) -> list[str]:
    """The tool that was looked for, if one is there whose name only ends with it."""
    asked = [of.removeprefix("the tool ") for of in told["of"] if of.startswith("the tool ")]
    return [name for name in asked if any(option.casefold().endswith(name.casefold()) for option in told["others"])]


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _table(arms: dict[str, dict[str, Any]]) -> list[str]:
    """A row a bucket, a column an arm; then what is not in the shares."""
    rows = [["", *(arms if len(arms) > 1 else ["calls"]), ""]]
    for name in next(iter(arms.values()))["counts"]:
        cells = [_cell(arm["counts"].get(name, 0), arm["shares"].get(name)) for arm in arms.values()]
        rows.append([NAMES[name], *cells, BUCKETS[name]])
    rows += [[name, *(_cell(arm[key]) for arm in arms.values()), why] for key, name, why in _APART]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in
                                                  zip(row[1:-1], widths[1:-1], strict=True)), row[-1]]).rstrip()
            for row in rows]  # fmt: skip


#: Rows below the buckets: what the shares are of, and what is not in them.
_APART = (
    ("answered", "answered", "what the shares are of"),
    ("open", "no verdict", "answered, but nobody can know what came next: its line says why"),
    ("failed", "failed", "came back as an error: no answer to judge"),
    ("unanswered", "unanswered", "never came back, or in the background"),
    ("concurrent", "concurrent", "files accessed before the answer was there: stepped over"),
    ("other_route", "by another route", "reached in a way that is not judged here"),
    ("other_route_answered", "…with output", "of those: what contaminates an arm that is to do without"),
    ("passes", "passes", "logs"),
)


def _cell(count: int, share: float | None = None) -> str:
    """A count, and its share in a column of its own."""
    return f"{count}{'':7}" if share is None else f"{count} {share * 100:4.0f} %"


def _log(log: dict[str, Any]) -> Iterator[str]:
    """A heading, and a line a call: what was asked, what came, what the agent did next."""
    arm = "" if log["arm"] == "all" else f"{log['arm']}: "
    more = [f"{log['product']} {log['format']}"]
    more += [f"concurrent calls {CONCURRENCY[log['concurrency']]}"] if log["calls"] else []
    more += ["its end is missing"] if log["truncated"] else []
    more += [f"{log['problems']} lines could not be read"] if log["problems"] else []
    yield f"{arm}{log['log']} ({'; '.join(more)})"
    for number, call in enumerate(log["calls"], 1):
        yield _call(number, call)
    yield from (f"   -  {cut(asked, 70)} → failed" for asked in log["failed"])
    yield from (f"   -  {cut(asked, 70)} → never answered" for asked in log["unanswered"])
    if not log["calls"] and not log["failed"] and not log["unanswered"]:
        yield "      no call of it"


def _call(number: int, call: dict[str, Any]) -> str:
    size = _many(len(call["returned"]), "file") if call["returned"] else _many(call["lines"], "line")
    notes = [call["note"]] if call["note"] else []
    notes += [f"{call['concurrent']} concurrent"] if call["concurrent"] else []
    note = f" ({'; '.join(notes)})" if notes else ""
    verdict = NAMES[call["bucket"]] if call["bucket"] else "no verdict"
    thread = "" if call["thread"] == "main" else " (in a subagent)"
    return f"{number:4}. {cut(call['query'], 70)} [{size}]{thread} → {cut(call['next'], 80)}{note}: {verdict}"


def selftest(done: Sequence[tuple[str, str, list[str]]]) -> str:
    """A line a rule with the formats in which it held, then the sum."""
    rules: dict[str, list[tuple[str, list[str]]]] = {}
    for rule, form, problems in done:
        rules.setdefault(rule, []).append((form, problems))
    width = min(60, max(len(shown(rule)) for rule in rules))
    lines = []
    for rule, forms in rules.items():
        held = ", ".join(form for form, problems in forms if not problems)
        lines.append(f"{'ok  ' if all(not problems for _, problems in forms) else 'FAIL'}  "
                     f"{cut(shown(rule), 60).ljust(width)}  {held}")  # fmt: skip
        lines += [f"      {form}: {shown('; '.join(problems))}" for form, problems in forms if problems]
    failed = sum(bool(problems) for *_, problems in done)
    lines.append(f"{len(rules)} rules, {len(done)} logs: {f'{failed} failed' if failed else 'all as known'}")
    return "\n".join(lines) + "\n"
