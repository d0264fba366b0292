"""report.json, report.md, report.html and the card: all rendered from the one projection, none of them computes. Pure.

The page needs no script and no other file: what agents and programs have said is in it as text alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from harness import files
from harness.agents import JOURNEY
from harness.release import card
from harness.report.words import plain

NOT_MEASURED = "Not measured"

#: How it is to be read.
_TRIALS = """Each scenario shows its own trials that passed, of three that count. Nothing is averaged over scenarios,
nor with readiness. Three trials measure this task, and no more. What has no evidence is not measured, and no zero."""
_READY = """Readiness: the share of a domain's checks that apply and held; the whole is the mean of the domains, and
there is none while a check that applies has no evidence. No letter, no rank."""
RULES = tuple(" ".join(text.split()) for text in (_TRIALS, _READY))

#: One table: a heading of its own, a head, rows.
Table = tuple[str, list[str], list[list[str]]]

Face = Callable[[Mapping[str, Any]], bytes]


def write(place: Path, data: Mapping[str, Any]) -> None:
    """All faces, and the projection itself. Raises OSError."""
    for name, face in FACES.items():
        files.write_bytes(place / name, face(data))


def percent(share: float | None) -> str:
    """A share in words; that it was not measured where there is none."""
    return NOT_MEASURED if share is None else f"{100 * share:.1f} %"


def facts(data: Mapping[str, Any]) -> list[str]:
    """What it is a release of, a line each."""
    agents = dict.fromkeys(name for one in data["runs"] for name in one["agents"])
    models = dict.fromkeys(one["model"] or ("scripted" if one["scripted"] else "the agent's own choice")
                           for one in data["runs"])  # fmt: skip
    spent = data["spending"]
    cap = "no cap" if spent["cap_usd"] is None else f"a cap of {spent['cap_usd']:g} US dollars"
    cost = "not told" if spent["usd"] is None else f"{spent['usd']:g} US dollars"
    lines = [f"Published {data['published']}" + (f", after {data['previous']}" if data["previous"] else ""),
             f"Agent: {', '.join(agents) or 'none'}; model: {', '.join(models) or 'none'}",
             f"Spent: {cost}, under {cap} (told by {spent['told']} of {spent['of']} trials)"]  # fmt: skip
    return lines + [_limits(one) for one in data["limits"]]


_UNITS = {"turns": "turns", "tokens": "tokens", "time_s": "s"}


def amount(value: float | None) -> str:
    """A number with its thousands apart; that there is none."""
    return "no limit of" if value is None else f"{value:,.10g}"


def _limits(one: Mapping[str, Any]) -> str:
    drawn = (
        f"temperature {one['temperature']}, seed {one['seed']}" if one["sampling"] == "as asked" else one["sampling"]
    )
    most = ", ".join(f"{amount(one[key])} {unit}" for key, unit in _UNITS.items())
    return f"Limits of a trial: {most}; {drawn}"


def tables(data: Mapping[str, Any]) -> Iterator[Table]:
    """All tables, in order."""
    yield "Journeys, by product job", ["group", "subject", "job", "scenario", "passed"], [
        [job["group"], one["subject"], job["title"], scenario["variant"], scenario["result"]]
        for one, job in sorted(_jobs(data), key=lambda both: both[1]["group"]) for scenario in job["scenarios"]
    ]  # fmt: skip
    yield (
        "Readiness, by domain",
        ["subject", "domain", "checks that held", "share"],
        [row for one in data["subjects"] for row in _domains(one)],
    )
    yield "Readiness, check by check", ["subject", "check", "verdict", "why"], [
        [one["subject"], check["id"], check["verdict"].replace("_", " "), check["reason"]]
        for one in data["subjects"] if one["readiness"] for check in one["readiness"]["checks"]
    ]  # fmt: skip
    yield "Controls: the reference must pass, the others must fail", ["scenario", *JOURNEY], [
        [scenario, *row.values()] for _, job in _jobs(data) for stamp in job["controls"]
        for scenario, row in stamp["cells"].items()
    ]  # fmt: skip
    yield "Stages that were right", ["scenario", "agent", "condition", "stages"], [
        [scenario["id"], cell["agent"], cell["condition"], cell["right"]]
        for _, job in _jobs(data) for scenario in job["scenarios"] for cell in scenario["cells"]
    ]  # fmt: skip
    yield "Exactly what was measured", ["of", "what", "is"], [row for one in data["runs"] for row in _identity(one)] + [
        [one["readiness"]["from"], key, str(one["readiness"][key])]
        for one in data["subjects"] if one["readiness"] for key in ("program", "version", "build", "measured")
    ]  # fmt: skip


def _jobs(data: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    return ((one, job) for one in data["subjects"] for job in one["jobs"])


def _domains(one: Mapping[str, Any]) -> list[list[str]]:
    told = one["readiness"]
    if told is None:
        return [[one["subject"], "all", "", NOT_MEASURED]]
    rows = [[one["subject"], domain["title"], f"{domain['passed']} of {domain['applicable']}",
             percent(domain["score"]) if domain["applicable"] else "not applicable"]
            for domain in told["domains"]]  # fmt: skip
    lost = (
        f"without evidence: {', '.join(told['missing'])}" if told["missing"] else f"rubric {told['rubric']['version']}"
    )
    return [*rows, [one["subject"], "overall", lost, percent(told["overall"])]]


def _identity(one: Mapping[str, Any]) -> Iterator[list[str]]:
    told = one["identity"]
    for package in told["packages"]:
        yield [one["run"], "program", f"{package['program']}: {package['version']}"]
    yield [one["run"], "build (SHA-256)", ", ".join(told["builds"])]
    for what in ("versions", "hashes"):
        for name, text in sorted(told[what].items()):
            yield [one["run"], f"{name} ({what[:-1] if what == 'versions' else 'digest'})", str(text)]
    clean = one["cleanup"]
    yield [one["run"], "left running by agents", (f"{clean['ended_by_us']}, all ended; looked at in {clean['looked']} "
           f"of {clean['of']} trials")]  # fmt: skip


# -- Markdown ---------------------------------------------------------------------------------------------------------


def markdown(data: Mapping[str, Any]) -> bytes:
    """The report for people who read text."""
    lines = [f"# Release {data['name']}", ""]
    lines += [f"**{plain(label)}**\n" for label in data["labels"]]
    lines += [f"- {plain(fact)}" for fact in facts(data)] + [""]
    for heading, head, rows in tables(data):
        lines += [f"## {heading}", "", _row(head), _row(["---"] * len(head)), *map(_row, rows), ""]
    return "\n".join([*lines, *(line for rule in RULES for line in (rule, ""))]).encode("utf-8", "backslashreplace")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(plain(one).replace("|", "\\|").replace("<", "&lt;") for one in cells) + " |"


# -- HTML -------------------------------------------------------------------------------------------------------------

_STYLE = (Path(__file__).parent / "page.css").read_text("utf-8")


def html(data: Mapping[str, Any]) -> bytes:
    """The report as one page, light and dark by the reader's wish."""
    body = [f"<h1>Release {_(data['name'])}</h1>", *(f'<p class="label">{_(label)}</p>' for label in data["labels"]),
            '<ul class="facts">', *(f"<li>{_(fact)}</li>" for fact in facts(data)), "</ul>",
            *(f'<p class="rule">{_(rule)}</p>' for rule in RULES)]  # fmt: skip
    for heading, head, rows in tables(data):
        body += [f"<section><h2>{_(heading)}</h2><div class='wide'><table><thead><tr>",
                 *(f'<th scope="col">{_(one)}</th>' for one in head), "</tr></thead><tbody>",
                 *(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows),
                 "</tbody></table></div></section>"]  # fmt: skip
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    text = ("<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta name="color-scheme" content="light dark"><title>Release {_(data["name"])}</title>'
            f"<style>{_STYLE}</style></head><body><main>\n"
            + "\n".join(body) + "\n</main></body></html>\n")  # fmt: skip
    return text.encode("utf-8", "backslashreplace")


def _(text: Any) -> str:
    return escape(plain(str(text)))


def _cell(text: str) -> str:
    kind = "lost" if text.startswith(NOT_MEASURED) else "pass" if text == "pass" else "fail" if text == "fail" else ""
    return f'<td class="{kind}">{_(text)}</td>' if kind else f"<td>{_(text)}</td>"


FACES: dict[str, Face] = {
    "data.json": files.canonical, "report.json": files.canonical, "report.md": markdown, "report.html": html,
    "card.svg": card.svg, "card.png": card.png,
}  # fmt: skip
