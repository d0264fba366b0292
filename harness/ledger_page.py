"""The ledger as a page: docs/agent-friendly-cli.md from the entries, their measurements and what experiments found.

Pure: the same entries give the same bytes. Says what is not known as plainly as what is.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from harness import experiment_page
from harness.experiment_page import shown
from harness.experiment_page import wrapped as _wrapped
from harness.ledger import Change, Entry, Evidence

_STANDS = {"holds": "does it", "violates": "breaks it"}

HEAD = """\
# What makes a command line fit for agents

Properties that a command-line program should have if agents are to drive it, each with what was measured about it. The
question behind them: when an agent fails at a program that works, what did the program leave unsaid?

This page is made from data (`labd-eval ledger --write`); every command below was run, and every output is what came
back (`labd-eval ledger --measure` runs them again). Nothing in a console box was typed in by hand.

## How to read it

Each entry has a **property**, the **violation** that shows where it is missing (by the classes of failures listed
below), a **status**, what happens **before** the change, the **change** and whether it is made in the tool or in the
instructions that agents are given, what happens **after** it, and a **verdict**.

Evidence has two tiers, and they are not worth the same:

- **Tier 1: the program knew, and did not say.** Asking the program alone shows it: one command comes back empty, the
  next proves that there was something. It makes a property a candidate and never confirms it. No agent is involved, so
  that nothing is known yet of what agents would do.
- **Tier 2: it was said, and agents did better, or did not.** The same questions under the same conditions are played
  with the change and without (`labd-eval experiment run NAME`), and the two are compared in pairs. Only this confirms a
  property, or refutes it; a refuted one stays on this page like a confirmed one. A *scripted* model, which plays a
  fixed part, shows that the experiment works from end to end. It says nothing about what a model would do, and its
  result never counts.

| class | what went wrong |
|---|---|
| A | an error, and no guidance out of it |
| B | an error or an empty answer *with* guidance: nearly free, as the next call can be right |
| C | silently wrong: it looks like an answer. Seven kinds: vocabulary (no such value), \
wrong column (it is in another field), wrong type (it is under another command), \
dropped input, truncated, wrong entity, unknown (empty, and nobody found out why) |
| D | degenerate: it takes, or prints, far too much |
| E | the environment failed: counted for nobody |
| F | the agent's own: it was told, and went on the same way |

The programs: **git**, which nobody here wrote; **labd**, the lab bench of this repository; **atlas**, a small program
that answers questions of geography and into which one defect at a time can be planted. What a planted defect shows is
what such a defect looks like, not how common it is.
"""

NEXT = """\
## How an entry moves

```console
$ labd-eval gate                                    # this build finds what goes wrong, on planted defects
$ labd-eval experiment run NAME --agent claude --model MODEL --trials 3
$ labd-eval ledger --take latest --write            # what came of it goes beside the entry, and onto this page
```

Confirmed: agents were right more often, or as often with fewer commands, by exact paired tests in which scenarios are
the unit. Refuted: they were right less often, or a gain that would be worth the change can be ruled out. All else is
inconclusive, and says why. Nobody writes a status: it follows from what was found.
"""


def render(entries: Sequence[Entry]) -> str:
    """The page, with a final newline."""
    parts = [HEAD, _standing(entries), _table(entries), NEXT, *(entry_text(entry) for entry in entries)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _standing(entries: Sequence[Entry]) -> str:
    """Where the whole stands, in words; nobody writes these numbers."""
    counts = {name: sum(entry.standing == name for entry in entries) for name in ("confirmed", "refuted", "hypothesis")}
    real = [entry for entry in entries if entry.tier == 2]
    changes = [(entry, change) for entry in entries for change in entry.changes]
    scripted = dict.fromkeys(str(entry.number) for entry, change in changes if change.found and not change.real)
    levers = [change.lever for _, change in changes]
    lines = [
        f"{counts['confirmed']} confirmed, {counts['refuted']} refuted, {counts['hypothesis']} still hypotheses.",
        f"{len(real)} of {len(entries)} were tried with a real model." if real else
        "No entry has been tried with a real model, so that none of them is an answer yet: each is a candidate, and "
        "the next thing to do about it is its experiment.",
    ]  # fmt: skip
    if scripted:
        lines.append(f"A scripted model has played the experiments of {'entry' if len(scripted) == 1 else 'entries'} "
                     f"{' and '.join(scripted)} from end to end, to show that they work.")  # fmt: skip
    lines.append(
        f"Of the changes that are proposed {levers.count('tool')} are in the tool, {levers.count('instructions')} in "
        "the instructions; which of them pays is itself a question for Tier 2."
    )
    programs = dict.fromkeys(told for entry in entries for told in (entry.programs or {}).values())
    measured = f"What was measured: {', '.join(programs)}." if programs else "Nothing was measured yet."
    return f"## Where it stands\n\n{_wrapped(' '.join(lines))}\n\n{_wrapped(measured)}\n"


def _table(entries: Sequence[Entry]) -> str:
    names = list(dict.fromkeys(one.subject for entry in entries for one in entry.evidence))
    lines = [
        f"| | property | shows as | {' | '.join(names)} | tier | status |",
        f"|---|---|---|{'---|' * len(names)}---|---|",
    ]
    for entry in entries:
        cells = [_cell(entry, name) for name in names]
        link = f"[{entry.title}](#{_anchor(entry)})"
        lines.append(f"| {entry.number} | {link} | {', '.join(entry.classes)} | {' | '.join(cells)} | {entry.tier} | "
                     f"{entry.standing} |")  # fmt: skip
    lines += ["", _wrapped("A program *does it*, *breaks it*, or *both*: in one command the one, in the next the "
                           "other. *planted*: only with a defect that was put there to be seen.")]  # fmt: skip
    return "\n".join(lines) + "\n"


def _cell(entry: Entry, name: str) -> str:
    stands = {one.stands for one in entry.evidence if one.subject == name and not one.planted}
    if len(stands) == 2:
        return "both"
    if stands:
        return _STANDS[next(iter(stands))]
    return "planted" if any(one.subject == name for one in entry.evidence) else "–"


def _anchor(entry: Entry) -> str:
    """The anchor that GitHub and its like give the entry's heading."""
    kept = "".join(letter for letter in f"{entry.number} {entry.title}".lower() if letter.isalnum() or letter in " -")
    return kept.replace(" ", "-")


def entry_text(entry: Entry) -> str:
    """One entry in full, with a final newline."""
    parts = [
        f"## {entry.number}. {entry.title}",
        _wrapped(entry.meaning),
        _wrapped(f"**Violation** ({', '.join(entry.classes)}): {entry.violation}."),
        _wrapped(f"**Status**: {_status(entry)}"),
        "### Before",
        *(text for pair in zip(entry.evidence, entry.measured, strict=True) for text in _evidence(*pair)),
        *(text for change in entry.changes for text in _change(change, len(entry.changes) > 1)),
    ]
    return "\n\n".join(parts) + "\n"


def _change(change: Change, several: bool) -> Iterator[str]:
    """A change, what came after it, and the verdict."""
    of = f", lever {change.lever}" if several else ""
    yield f"### Change{of}"
    yield _wrapped(f"Lever: **{change.lever}**. {change.text}")
    yield _wrapped(f"Why this lever: {change.why}")
    if change.found is None:
        run = (
            f"`labd-eval experiment run {change.experiment}` would."
            if change.experiment
            else "No experiment of it is defined yet."
        )
        yield f"### After{of}"
        yield f"Not known. {run}"
        yield f"### Verdict{of}"
        yield "None: without Tier 2 there is nothing to judge."
        return
    yield f"### After{of}: the same questions without the change and with it"
    found = change.found
    if found["scripted"]:
        yield _wrapped(f"*{found['label'].capitalize()}.*")
    yield from map(_wrapped, experiment_page.title(found))
    yield from experiment_page.diff(found)
    yield "Before the change:"
    yield from experiment_page.trace(found, 0)
    yield "After it:"
    yield from experiment_page.trace(found, 1)
    yield "All questions of the experiment:"
    yield experiment_page.table(found)
    yield f"### Verdict{of}"
    yield from experiment_page.verdict_paragraphs(found)


def _status(entry: Entry) -> str:
    if entry.standing != "hypothesis":
        return f"{entry.standing} (tier 2)."
    planted = [one.planted for one in entry.evidence if one.stands == "violates" and one.planted]
    parts = (
        [f"{' and '.join(broken)} break{'s' if len(broken) == 1 else ''} it"]
        if (broken := entry.subjects("violates"))
        else []
    )
    parts += [f"a defect planted in atlas shows it ({', '.join(planted)})"] if planted else []
    told = "; ".join(parts) or "no program here was seen to break it"
    return f"hypothesis (tier {entry.tier}; {told})."


def _evidence(one: Evidence, measured: dict[str, Any] | None) -> Iterator[str]:
    who = f"**{one.subject} {_STANDS[one.stands]}"
    who += f", with a defect planted ({one.planted}).**" if one.planted else ".**"
    yield _wrapped(f"{who} {one.claim}")
    if measured is None:
        yield "(not measured)"
        return
    yield "\n".join(["```console", *(line for ran in measured["runs"] for line in shown(ran)), "```"])
    if one.concludes:
        yield _wrapped(f"What a reader is led to believe: {one.concludes}")
