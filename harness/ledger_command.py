"""`labd-eval ledger`: the ledger shown, measured anew, checked, and written out as docs/agent-friendly-cli.md.

Words are parsed in harness/cli.py. Ends with 1 where the page is not what the entries say, or a claim is not borne out.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from harness import files, ledger
from harness.telling import note
from labd.errors import LabdError, NotFound, Usage, nearest

HELP = "what makes a command line fit for agents: the properties, and what was measured about each"

EXAMPLES = """\
  labd-eval ledger                    the entries, how each stands, and by what evidence
  labd-eval ledger 7                  one entry in full
  labd-eval ledger --measure          run the commands of all evidence again, in throwaway sandboxes
  labd-eval ledger --measure 4 7      only those of entries 4 and 7
  labd-eval ledger --take RUN         keep what an experiment's run found beside its entry
  labd-eval ledger --write            make docs/agent-friendly-cli.md anew
  labd-eval ledger --check            whether the page and every claim are as the data says; runs nothing"""

#: Where the page lies in the working tree: an installed package has none.
PAGE = Path("docs/agent-friendly-cli.md")


def options(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("number", nargs="*", metavar="N", help="only these entries")
    for flag, about in (("--measure", "run the evidence again, and keep what came back"),
                        ("--write", f"make {PAGE} anew"),
                        ("--check", "change nothing; exit 1 if the page or a claim does not hold")):  # fmt: skip
        parser.add_argument(flag, action="store_true", help=about)
    parser.add_argument("--take", metavar="RUN", help="the directory of an experiment's run, or `latest`")
    parser.add_argument(
        "-o", "--out", default="runs", metavar="DIR", help="where run directories are (default: ./runs)"
    )


def do_ledger(values: argparse.Namespace, words: Sequence[str]) -> int:
    """Show, measure, take, write or check."""
    if values.check and (values.measure or values.write or values.take or values.number):
        raise Usage("--check looks at the whole ledger and changes nothing", hint="labd-eval ledger --check")
    chosen = _chosen(values.number)
    if values.check:
        return _check(values)
    if values.take:
        _take(values)
    if values.measure:
        _measure(values, chosen)
    if values.measure or values.take:
        chosen = _chosen(values.number)
    if values.write:
        _write(values)
    if not (values.measure or values.take or values.write):
        _show(values, chosen)
    problems = [problem for entry in chosen for problem in entry.problems()] if values.measure else []
    for problem in problems:
        note(values, f"not borne out: {problem}")
    return 1 if problems else 0


def _chosen(numbers: Sequence[str]) -> list[ledger.Entry]:
    """The entries that were named; all if none was. Raises NotFound."""
    known = {str(entry.number): entry for entry in ledger.load_all()}
    for number in numbers:
        if number not in known:
            raise NotFound(f"no entry {number!r}", near=nearest(number, list(known)), hint="labd-eval ledger")
    return [entry for number, entry in known.items() if not numbers or number in numbers]


def _measure(values: argparse.Namespace, chosen: Sequence[ledger.Entry]) -> None:
    from harness import ledger_measure

    for entry in chosen:
        measured = ledger_measure.measure(entry, lambda line: note(values, line))
        if ledger_measure.keep(entry, measured):
            note(values, f"{entry.number:>2} is another measurement than before")


def _take(values: argparse.Namespace) -> None:
    from harness import experiment

    found = experiment.found(experiment.find(Path(values.out), values.take))
    takers = [entry for entry in ledger.load_all() if found["name"] in {one.experiment for one in entry.changes}]
    if not takers:
        raise NotFound(f"no entry is tried by the experiment {found['name']}", hint="labd-eval ledger")
    for entry in takers:
        files.write_json(ledger.beside(entry.path, found["name"]), found)
        note(values, f"{entry.number:>2} has it now: {found['verdict']}")


def _page_text() -> bytes:
    from harness import ledger_page

    return ledger_page.render(ledger.load_all()).encode()


def _write(values: argparse.Namespace) -> None:
    if not PAGE.parent.is_dir():
        raise LabdError(f"{PAGE.parent} is not here: the page belongs to the working tree", hint="cd to the repository")
    files.write_bytes(PAGE, _page_text())
    note(values, f"wrote {PAGE}")


def _check(values: argparse.Namespace) -> int:
    """The page against the data, and the data against itself."""
    entries = ledger.load_all()
    problems = [problem for entry in entries for problem in entry.problems()]
    if (files.plain_bytes(PAGE) or b"") != _page_text():
        problems.append(f"{PAGE} is not what the entries say: labd-eval ledger --write")
    if values.json:
        _say(files.canonical({"entries": len(entries), "problems": problems}).decode())
    else:
        told = f"{len(problems)} problems" if problems else "no problems"
        _say("\n".join([*problems, f"{len(entries)} entries of the ledger checked: {told}"]) + "\n")
    return 1 if problems else 0


def _show(values: argparse.Namespace, chosen: Sequence[ledger.Entry]) -> None:
    if values.json:
        _say(files.canonical({"entries": [data(entry) for entry in chosen]}).decode())
    elif values.number:
        from harness import ledger_page

        _say("\n".join(map(ledger_page.entry_text, chosen)))
    else:
        lines = [f"{'':>2}  {'status':<10}  tier  {'does it':<16}  {'breaks it':<16}  property"]
        for entry in chosen:
            does, breaks = (", ".join(entry.subjects(stands)) or "–" for stands in ("holds", "violates"))
            lines.append(
                f"{entry.number:>2}  {entry.standing:<10}  {entry.tier:<4}  {does:<16}  {breaks:<16}  {entry.title}"
            )
        _say("\n".join(lines) + "\n")


def data(entry: ledger.Entry) -> dict[str, object]:
    """An entry as JSON."""
    return {
        "number": entry.number,
        "name": entry.name,
        "property": entry.title,
        "classes": list(entry.classes),
        "violation": entry.violation,
        "status": entry.standing,
        "tier": entry.tier,
        "before": [
            {"subject": one.subject, "stands": one.stands, "planted": one.planted, "claim": one.claim,
             "concludes": one.concludes, "runs": measured and measured["runs"]}
            for one, measured in zip(entry.evidence, entry.measured, strict=True)
        ],
        "changes": [
            {"lever": one.lever, "text": one.text, "why": one.why, "experiment": one.experiment, "after": one.found,
             "verdict": one.found["verdict"] if one.found and one.real else None}
            for one in entry.changes
        ],
        "problems": entry.problems(),
    }  # fmt: skip


def _say(text: str) -> None:
    sys.stdout.write(text)
