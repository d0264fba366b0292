"""The published table: what was played, who passed, one line why, how it was measured. Pure: results in, text out."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.torture.cases import ABSENT, CASES
from tests.torture.stage import Case

MARKS = {"pass": "pass", "fail": "**fail**", "n/a": "–", "broken": "?"}
SUBJECTS = {
    "labd": "this project, through its installed program and its daemon",
    "conserver": "a console server; its log; `console` for typing",
    "ser2net": "serial port to raw TCP; a client of ours stores what it hands out and connects again when hung up on",
    "tio": "a terminal program, on a terminal of its own; its log",
    "pexpect": "`fdspawn` on pyserial's descriptor; `logfile_read`; it reads only while it expects",
    "labgrid": "SerialDriver, ShellDriver for run, txdelay as pacing; its console log; it reads only while it expects",
    "naive": "bad on purpose: pyserial, lines, text, a search over all of it (tests/torture/drivers/naive_driver.py)",
    "cat": "bad on purpose: what `cat NODE >> LOG` does (tests/torture/drivers/cat_driver.py)",
}
HEAD = """\
# The torture table

Written by `make bench-peers`; do not edit. Each case is a way in which a console has failed somebody (the source is
given). The same bytes with the same timing are given to every subject through a pseudo-terminal that it opens itself,
and the same check judges what it stored, showed, matched or said. **–** means that the subject has no such function: it
is no failure. The tests run the same cases against labd, and against two loggers that are bad on purpose and must fail
(`tests/torture/`).
"""
HOW = """\
## How it was measured

- The device is the far end of a pseudo-terminal under a lasting name (`tests/torture/far.py`), handed out with a
  terminal's settings (cooked), as a kernel does; the simulated boards are `python -m loopback …`. A node that any other
  process has open is not used.
- *Stored* is what the subject keeps by itself, byte for byte; *shown* is the text that it gives to people and agents;
  for a subject that keeps a raw log, these are the lines of the log.
- CPU is that of all the subject's processes, by the kernel's clock for each; memory is what is their own (RssAnon).
- Times are limits for a busy machine: a prompt has to be seen within 1 s, a returned device within 1 s; what was
  measured is said. Another program on the port has to be named within 6 s.
- Each peer has its best settings for the purpose: conserver `!ixon, reinitoncc, autoreinit`, labgrid and tio a pause of
  3 ms between bytes where input gets lost.
- Every process was started for this, is ended by its id, and is checked to be gone.
"""


@dataclass(frozen=True)
class Result:
    """A verdict: "pass", "fail", "n/a", or "broken" when the case itself failed; and one line why."""

    verdict: str
    why: str


@dataclass
class Run:
    """All that one run found: results by subject and case number."""

    date: str
    machine: str
    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    results: dict[str, dict[str, Result]] = field(default_factory=dict)


def document(run: Run) -> str:
    """The whole file."""
    played = [case for case in CASES if any(case.number in results for results in run.results.values())]
    parts = [HEAD, _about(run), _matrix(run, played), _absent(), HOW, "## Case by case\n"]
    parts += [_case(run, case) for case in played]
    return "\n".join(parts)


def _about(run: Run) -> str:
    lines = [f"Run on {run.date}: {run.machine}.", ""]
    lines += [f"- **{name}** {run.versions[name]}: {SUBJECTS[name]}" for name in run.results]
    lines += [f"- {name}: not played, {why}" for name, why in run.missing.items()]
    return "\n".join(lines) + "\n"


def _matrix(run: Run, played: list[Case]) -> str:
    names = list(run.results)
    lines = ["| # | case | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names)]
    for case in played:
        marks = [MARKS[run.results[name][case.number].verdict] for name in names]
        lines.append(f"| {case.number} | {_cell(case.title)} | " + " | ".join(marks) + " |")
    for verdict in ("pass", "fail", "n/a"):
        counts = [str(sum(r.verdict == verdict for r in run.results[name].values())) for name in names]
        lines.append(f"| | *{verdict}* | " + " | ".join(counts) + " |")
    return "## Who passes\n\n" + "\n".join(lines) + "\n"


def _absent() -> str:
    lines = [f"| {absent.number} | {_cell(absent.title)} | {_cell(absent.why)} |" for absent in ABSENT]
    return "\n".join(["## What can't exist here\n", "| # | case | why |", "|---|---|---|", *lines]) + "\n"


def _case(run: Run, case: Case) -> str:
    lines = [f"### {case.number} · {case.title}", "", f"Source: {case.source}. Given: {_text(case.given)}.",
             f"Right: {_text(case.right)}.", ""]  # fmt: skip
    for name, results in run.results.items():
        result = results[case.number]
        why = f": {_text(result.why)}" if result.why else ""
        lines.append(f"- {name}: {MARKS[result.verdict].replace('–', 'n/a')}{why}")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")


def _text(text: str) -> str:
    """Without what Markdown would take for markup."""
    return text.replace("\\", "\\\\").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_").rstrip(".")
