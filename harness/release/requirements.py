"""What a release lacks: a pure list, each entry with what mends it. Nothing is published while it is not empty."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.agents import JOURNEY
from harness.journey_parts import VARIANTS
from harness.release.projection import TRIALS

REVIEW = "labd-review/1"

#: Readers of the comprehension test, and the share of its questions that each has to get right.
READERS, RIGHT = 5, 0.8


@dataclass(frozen=True)
class Missing:
    """One thing that is missing, and a way to it."""

    what: str
    mend: str

    def data(self) -> dict[str, str]:
        """Plain data."""
        return {"what": self.what, "mend": self.mend}


def missing(data: Mapping[str, Any]) -> list[Missing]:
    """All that stands in the way of publishing `data`; empty where nothing does."""
    found: list[Missing] = []
    if not data["runs"]:
        found.append(Missing("there is no run", "labd-eval journey run git --agent NAME"))
    for one in data["subjects"]:
        found += _readiness(one)
        found += [entry for job in one["jobs"] for entry in _job(one["subject"], job)]
        if not one["jobs"]:
            found.append(Missing(f"{one['subject']}: it has no journeys", f"scenarios/journeys/{one['subject']}/"))
    for one in data["runs"]:
        found += [*_budget(one), *_identity(one, data["subjects"]), *_conduct(one)]
    return [*found, *_review(data["review"])]


def _readiness(one: Mapping[str, Any]) -> Iterator[Missing]:
    name, told = one["subject"], one["readiness"]
    again = f"labd-eval readiness {name}"
    if told is None:
        yield Missing(f"{name}: its readiness was not measured", again)
        return
    if len(one["measurements"]) > 1:
        yield Missing(f"{name}: {len(one['measurements'])} measurements of its readiness", "give one --readiness")
    if told["missing"]:
        yield Missing(f"{name}: readiness without evidence: {', '.join(told['missing'])}", again)


def _job(name: str, job: Mapping[str, Any]) -> Iterator[Missing]:
    where, pack = f"{name} {job['job']}", f"scenarios/journeys/{name}/{job['job']}.toml"
    if not job["reviewed"]:
        yield Missing(f"{where}: its pack is not reviewed", f"`reviewed` in {pack}")
    if [one["variant"] for one in job["scenarios"]] != list(VARIANTS):
        yield Missing(f"{where}: not three scenarios", f"labd-eval check; {pack}")
    if job["stale"]:
        yield Missing(f"{where}: the pack is another one than was run: {', '.join(job['stale'])}", _again(name, job))
    yield from _controls(where, name, job)
    for one in job["scenarios"]:
        agents = [(cell["agent"], cell["condition"]) for cell in one["cells"]]
        for cell in one["cells"]:
            if cell["valid"] < TRIALS:
                yield Missing(f"{one['id']}: {cell['valid']} valid trials of {TRIALS} by {cell['agent']}",
                              f"labd-eval run --resume {cell['run']}")  # fmt: skip
            if cell["planned"] != cell["valid"]:
                yield Missing(f"{one['id']}: {cell['planned'] - cell['valid']} trials by {cell['agent']} that nothing "
                              "took the place of", f"labd-eval run --resume {cell['run']}")  # fmt: skip
        if not agents:
            yield Missing(f"{one['id']}: not measured", _again(name, job))
        if len(agents) != len(set(agents)):
            yield Missing(f"{one['id']}: twice by the same agent", "give one run of it, and the other its own release")


def _again(name: str, job: Mapping[str, Any]) -> str:
    return f"labd-eval journey run {name} --job {job['job']} --agent NAME"


def _controls(where: str, name: str, job: Mapping[str, Any]) -> Iterator[Missing]:
    mend = f"labd-eval journey controls {name} --job {job['job']}"
    runs = {cell["run"] for one in job["scenarios"] for cell in one["cells"]}
    stamped = {stamp["run"] for stamp in job["controls"]}
    if runs - stamped or not runs:
        yield Missing(f"{where}: its controls were not played before it was run", mend)
    wanted = {"reference": "pass", **dict.fromkeys(JOURNEY[1:], "fail")}
    for stamp in job["controls"]:
        wrong = [f"{scenario} {agent}: {found}" for scenario, row in stamp["cells"].items()
                 for agent, found in row.items() if found != wanted[agent]]  # fmt: skip
        lost = [one["id"] for one in job["scenarios"] if one["id"] not in stamp["cells"]]
        if wrong or lost or not stamp["ok"]:
            yield Missing(f"{where}: controls that do not hold: {', '.join([*wrong, *lost]) or 'a stage'}", mend)
        if not stamp["same_build"]:
            yield Missing(f"{where}: its controls were played on another build", mend)


def _budget(one: Mapping[str, Any]) -> Iterator[Missing]:
    spent = one["spent"]
    if spent["cap_usd"] is None:
        yield Missing(f"{one['run']}: it had no cap on what it may cost", "labd-eval journey run … --spend 20")
    elif (spent["usd"] or 0) > spent["cap_usd"]:
        yield Missing(f"{one['run']}: it cost {spent['usd']:g} of {spent['cap_usd']:g} US dollars", "a run within it")
    if spent["told"] < spent["of"] and not one["scripted"]:
        yield Missing(f"{one['run']}: of {spent['of'] - spent['told']} trials nobody tells what they cost",
                      "an agent whose transcript tells it")  # fmt: skip
    if any(limits[key] is None for limits in one["limits"] for key in ("turns", "tokens", "time_s")):
        yield Missing(f"{one['run']}: a trial without a limit of turns, tokens or time", "labd-eval journey run …")


def _identity(one: Mapping[str, Any], subjects: Sequence[Mapping[str, Any]]) -> Iterator[Missing]:
    told, again = one["identity"], "a new run: labd-eval journey run …"
    lost = [part for part in ("harness", "graders", "loopback", "fixtures") if not told["hashes"].get(part)]
    if lost or not told["versions"].get("python") or not told["versions"].get("system"):
        yield Missing(f"{one['run']}: it does not say what ran it ({', '.join(lost) or 'versions'})", again)
    if told["without"] or not told["builds"]:
        yield Missing(f"{one['run']}: {told['without']} trials do not say which program they ran", again)
    if len(told["builds"]) > 1:
        yield Missing(f"{one['run']}: {len(told['builds'])} builds of the program in one run", again)
    for subject in subjects:
        measured = subject["readiness"]
        if measured and subject["subject"] == one["subject"] and told["builds"] not in ([], [measured["build"]]):
            yield Missing(f"{one['run']}: readiness was measured of another build of {one['subject']}",
                          f"labd-eval readiness {one['subject']}")  # fmt: skip


def _conduct(one: Mapping[str, Any]) -> Iterator[Missing]:
    """That it was a run of journeys, watched from its beginning to its end, and left nothing running."""
    again = f"labd-eval run --resume {one['run']}"
    if not one["journeys"]:
        yield Missing(f"{one['run']}: no run of journeys", "labd-eval journey run …")
    if not one["watched"]["began"] or not one["watched"]["finished"] or one["watched"]["untold"]:
        yield Missing(f"{one['run']}: its log does not tell of it to its end", again)
    if one["cleanup"]["left"]:
        yield Missing(f"{one['run']}: processes that could not be ended: {', '.join(one['cleanup']['left'])}", again)
    if one["cleanup"]["looked"] < one["cleanup"]["of"]:
        yield Missing(f"{one['run']}: {one['cleanup']['of'] - one['cleanup']['looked']} trials without evidence that "
                      "nothing was left running", again)  # fmt: skip


def _review(told: Mapping[str, Any] | None) -> Iterator[Missing]:
    """The comprehension test, and that somebody looked at what was found."""
    if told is None:
        yield Missing("there is no review", "--review FILE (docs/exam.md has its form)")
        return
    if told.get("schema") != REVIEW:
        yield Missing(f"review: of schema {told.get('schema')!r}", f"schema = {REVIEW!r}")
    if not str(told.get("findings") or "").strip():
        yield Missing("review: the findings are not reviewed", "findings = 'date: what was looked at'")
    asked, readers = told.get("questions"), told.get("reader", [])
    if not isinstance(asked, int) or isinstance(asked, bool) or asked < 1:
        yield Missing("review: it does not say how many questions readers were asked", "questions = 5")
        return
    good = {str(one.get("who")) for one in readers if isinstance(one, Mapping) and _understood(one, asked)}
    if len(good) < READERS:
        yield Missing(f"comprehension test: {len(good)} of {READERS} readers got {RIGHT:.0%} right",
                      f"five [[reader]] with who, role, date, right (of {asked})")  # fmt: skip


def _understood(one: Mapping[str, Any], asked: int) -> bool:
    right = one.get("right")
    told = all(str(one.get(key) or "").strip() for key in ("who", "role", "date"))
    return told and isinstance(right, int) and not isinstance(right, bool) and RIGHT * asked <= right <= asked
