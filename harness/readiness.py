"""Measures the readiness of a subject: runs each check's exercise in a throwaway sandbox and keeps what happened.

A measurement is a directory: the manifest, copies of rubric and plan, `checks/ID.json` with the evidence, and what was
found in it (`result.json`, by graders/readiness.py, which can be asked again years later). It never grades, retries or
leaves out: a command that hangs is ended and kept as that, and a check that can't be exercised says why.
"""

import os
import re
import secrets
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from glob import glob
from pathlib import Path
from typing import Any

from graders import readiness as grader
from graders.readiness_evidence import NotParsed, from_dict, records
from harness import data, execute, files, ledger_measure, sandbox, scenario, subject
from harness.readiness_plan import LIMIT_S, MOST_PAGES, Check, Plan, rubric_path
from harness.scenario_fill import data_dir, fill
from harness.telling import many
from labd.errors import LabdError, NotFound

#: The most that is kept of each stream of a step (bytes); what is longer is cut, and told to be.
KEPT = 1 << 20

#: How long before its time is up it is looked at what a step waits in (seconds).
LOOK_S = 0.5

#: Seconds that a line may take which brings about what a check needs.
PREPARE_S = 60.0

#: Checks at once: most of each is waiting for programs to start, and for boards to boot.
AT_ONCE = 4

PREFIX = "readiness-"

#: Preparations that took too long, by scenario and lines up to the one that did, with what was said of it: nobody waits
#: for the same once more.
Slow = dict[tuple[str, ...], str]


def measure(plan: Plan, out: Path, only: Sequence[str] = (), note: Callable[[str], None] = lambda _: None) -> Path:
    """Exercise the checks (all, or these); returns the measurement's directory. Raises NotFound, LabdError, OSError."""
    examined = subject.load(plan.subject)
    program = examined.find()
    if program is None:
        raise NotFound(examined.missing, hint=examined.install)
    chosen = [one for one in plan.checks if not only or one.id in only]
    known = {one.id: one for one in scenario.load_all(plan.subject)}
    lost = [f"{one.id}: there is no scenario {one.scenario!r}" for one in chosen if one.scenario not in known]
    if lost:
        raise LabdError("\n".join(lost), hint=f"labd-eval list --subject {plan.subject}")
    out.mkdir(parents=True, exist_ok=True)
    began = datetime.now(UTC)
    place = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=out))
    try:
        (place / "checks").mkdir()
        note(f"{plan.subject}: {many(len(chosen), 'check')}, each in a sandbox of its own")
        for check, evidence in _exercised(plan, chosen, known, program):
            note(f"{check.id}: {many(len(evidence['steps']), 'command')}")
            files.write_json(place / "checks" / f"{check.id}.json", evidence)
        files.write_bytes(place / "plan.toml", plan.text)
        files.write_bytes(place / "rubric.toml", rubric_path().read_bytes())
        files.write_json(place / "manifest.json", _manifest(plan, examined, program, began, place))
        files.write_json(place / "result.json", grader.grade(place))
        name = f"{PREFIX}{plan.subject}-{began:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        os.chmod(place, 0o755)
        os.rename(place, out / name)
        return out / name
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _exercised(plan: Plan, chosen: Sequence[Check], known: Mapping[str, scenario.Scenario], program: str
               ) -> Iterator[tuple[Check, dict[str, Any]]]:  # fmt: skip
    """Each check with its evidence, some at once. Whoever stops asking ends what runs."""
    stop = threading.Event()
    slow: Slow = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            yield from pool.map(
                lambda one: (one, exercise(plan, one, known[one.scenario], program, stop.is_set, slow)), chosen
            )
        finally:
            stop.set()


def _manifest(plan: Plan, examined: subject.Subject, program: str, began: datetime, place: Path) -> dict[str, Any]:
    """Who was measured by what, exactly, and a hash for each file of the measurement."""
    kept = sorted(path for path in place.rglob("*") if path.is_file())
    return {
        "schema": grader.EVIDENCE, "subject": plan.subject, "title": examined.title, "program": examined.program,
        "version": ledger_measure.version(plan.subject), "build": examined.kind.build(program),
        "measured": began.isoformat(timespec="seconds").replace("+00:00", "Z"), "rubric": grader.VERSION,
        "rubric_sha256": files.file_digest(rubric_path()), "plan_sha256": files.digest(plan.text),
        "hashes": data.hashes(), "versions": data.versions(),
        "files": {str(path.relative_to(place)): files.file_digest(path) for path in kept},
    }  # fmt: skip


def touched(directory: Path) -> list[str]:
    """The files of a measurement that are not what was measured: changed, missing, or not of it. Raises ValueError or
    OSError where there is no manifest."""
    told = files.read_json(directory / "manifest.json")["files"]
    there = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    changed = [name for name, digest in told.items() if name in there
               and files.digest((directory / name).read_bytes()) != digest]  # fmt: skip
    missing = [name for name in told if name not in there]
    return sorted([*changed, *missing, *(there - set(told) - {"manifest.json", "result.json"})])


# -- one check --------------------------------------------------------------------------------------------------------


def exercise(plan: Plan, check: Check, begins: scenario.Scenario, program: str,
             cancelled: Callable[[], bool] = lambda: False, slow: Slow | None = None) -> dict[str, Any]:  # fmt: skip
    """The evidence of one check. Never raises for what the program does; what the harness can't do is told in it.
    `slow` is looked at and added to."""
    told: dict[str, Any] = {"check": check.id, "states": list(check.states), "target": list(check.target),
                            "steps": [], "prepared": [], "blocked": None, "broken": None}  # fmt: skip
    slow = {} if slow is None else slow
    stages = [(begins.id, *check.before[:count]) for count in range(len(check.before) + 1)]
    waited = next((slow[one] for one in stages if one in slow), None)
    if waited is not None:
        return {**told, "blocked": waited}
    try:
        place = sandbox.create(begins, program)
    except sandbox.TooSlow as error:
        slow[stages[0]] = str(error)
        return {**told, "blocked": str(error)}
    except sandbox.SandboxError as error:
        return {**told, "broken": str(error)}
    try:
        runner = _Runner(place, {name: plan.state[name] for name in check.states}, program, cancelled)
        for line, stage in zip(check.before, stages[1:], strict=True):
            ended = runner.prepare(line)
            told["prepared"].append({"run": line, "exit": ended.code, "stderr": _text(ended.stderr)[-400:]})
            if not ended.ok:
                told["blocked"] = _unprepared(line, ended)
                if ended.ended_by == "time_limit":
                    slow[stage] = told["blocked"]
                return told
        for step in check.steps:
            told["steps"].extend(runner.steps(step))
    except OSError as error:
        told["broken"] = f"{error.filename or ''}: {error.strerror or error}"
    finally:
        place.stop()
        place.close()
    return told


def _unprepared(line: str, ended: execute.Ended) -> str:
    """Why what a check needs is not there."""
    if ended.ended_by == "time_limit":
        return f"preparing took longer than {PREPARE_S:g} s: {line}"
    why = _text(ended.stderr).strip()[-200:] or ended.error or ended.signal or f"exit {ended.code}"
    return f"what it needs could not be brought about: {line}: {why}"


class _Runner:
    """Runs the steps of one check in its sandbox, and takes digests of the declared states around each."""

    def __init__(self, place: sandbox.Sandbox, states: Mapping[str, Mapping[str, Any]], program: str,
                 cancelled: Callable[[], bool]) -> None:  # fmt: skip
        self.place = place
        self.states = states
        self.cancelled = cancelled
        plain = f"{os.path.dirname(program)}:/usr/bin:/bin"
        self.own = {**place.env, "PATH": plain}  # the harness's own doings are not in the subject's record
        self.values = {**place.values, "root": str(place.root), "work": str(place.work), "python": sys.executable,
                       "fixtures": str(data_dir("fixtures"))}  # fmt: skip

    def prepare(self, line: str) -> execute.Ended:
        """One line that brings about what the check needs."""
        return self._run(fill(line, self.values), self.place.env, PREPARE_S)

    def steps(self, step: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """A step's evidence: one command; for pages as many as there are."""
        wanted = self._wanted(step)
        if step["role"] != "page" or ("next" not in step and "{seen}" not in step["run"]):
            yield self._step(step, wanted, fill(step["run"], self.values))
            return
        seen: list[str] = []
        following = {"seen": "0", "next": ""}
        for _ in range(MOST_PAGES):
            told = self._step(step, wanted, fill(step["run"], {**self.values, **following}))
            yield told
            try:
                page = records(from_dict({"check": "", "states": [], "target": [], "steps": [told]}).steps[0])
            except NotParsed:
                return
            found = re.search(step["next"], told["stdout"] + "\n" + told["stderr"]) if "next" in step else None
            fresh = [one for one in page if one not in seen]
            if not fresh or ("next" in step and found is None):
                return
            seen += fresh
            following = {"seen": str(len(seen)), "next": (found[1] if found else "")}

    def _wanted(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """What the step must show, with the sandbox's facts in place of their names."""
        told: dict[str, Any] = {key: step[key] for key in ("exit", "refused", "parse", "pick") if key in step}
        for key in ("finds", "lacks"):
            if key in step:
                told[key] = [fill(one, self.values, pattern=True) for one in step[key]]
        if "counts" in step:
            told["counts"] = {fill(one, self.values, pattern=True): many for one, many in step["counts"].items()}
        planted = [fill(one, self.values) for one in step.get("planted", ())]
        if "planted_from" in step:
            planted += Path(fill(step["planted_from"], self.values)).read_text("utf-8").splitlines()
        if "sequence" in step:
            text, last = fill(step["sequence"]["text"], self.values), step["sequence"]["to"]
            planted += [text.replace("{n}", str(number)) for number in range(1, last + 1)]
        return told | ({"planted": planted} if planted else {})

    def _step(self, step: Mapping[str, Any], wanted: dict[str, Any], line: str) -> dict[str, Any]:
        looking = step["role"] == "look" or step.get("by") == "harness"
        before = {} if step["role"] == "look" else self._digests()
        waiting: list[str] = []
        deadline = time.monotonic() + step.get("within_s", 0)
        while True:
            env = self.own if looking else self.place.env
            ended = self._run(line, env, step.get("limit_s", LIMIT_S), waiting)
            if "until" not in step or time.monotonic() >= deadline or re.search(
                    fill(step["until"], self.values, pattern=True), _text(ended.stdout + ended.stderr)):  # fmt: skip
                break
            time.sleep(0.1)
        return {
            "role": step["role"], "by": "harness" if looking else "subject", "run": line, "wanted": wanted,
            "ended_by": ended.ended_by, "code": ended.code, "signal": ended.signal, "error": ended.error,
            "cut": ended.cut, "stdout": _text(ended.stdout), "stderr": _text(ended.stderr),
            "duration_s": round(ended.duration_s, 3), "waiting": waiting,
            "state": {"before": before, "after": {} if step["role"] == "look" else self._digests()},
        }  # fmt: skip

    def _run(self, line: str, env: Mapping[str, str], limit_s: float, waiting: list[str] | None = None
             ) -> execute.Ended:  # fmt: skip
        late = time.monotonic() + limit_s - LOOK_S

        def watch(_: bytearray) -> None:
            if waiting is not None and not waiting and time.monotonic() >= late:
                waiting.extend(sorted({os.path.basename(one.command.split(" ")[0]) for one in self.place.processes()}))

        ended = execute.run(["/bin/sh", "-c", line], env=env, cwd=self.place.work, limit_s=limit_s,
                            mark=self.place.mark, kept=KEPT, halt=watch, cancelled=self.cancelled)  # fmt: skip
        self.place.sessions.add(ended.session)
        if waiting and ended.ended_by == "exit":
            waiting.clear()
        return ended

    def _digests(self) -> dict[str, dict[str, Any] | None]:
        return {name: self._digest(state) for name, state in self.states.items()}

    def _digest(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """The digest of one declared state; None where it can't be observed, or where there is nothing of it."""
        if "command" in state:
            ended = self._run(fill(state["command"], self.values), self.own, LIMIT_S)
            observed = ended.ok and not ended.cut
            return {"sha256": files.digest(ended.stdout), "bytes": len(ended.stdout)} if observed else None
        found = {}
        for pattern in state["files"]:
            for name in glob(fill(pattern, self.values), recursive=True, include_hidden=True):
                path = Path(name)
                if any(path.match(fill(one, self.values)) or f"/{one}/" in name for one in state.get("without", ())):
                    continue
                if path.is_symlink():
                    found[name] = f"-> {os.readlink(path)}"
                elif path.is_file():
                    try:
                        found[name] = files.digest(path.read_bytes())
                    except OSError:
                        return None
        if not found:
            return None
        return {"sha256": files.digest(files.canonical(found)), "files": len(found)}


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


# -- earlier measurements ---------------------------------------------------------------------------------------------


def keep(directory: Path, into: Path) -> Path:
    """Put a measurement's result among those that are kept, a file each; returns it. Raises LabdError where that name
    is taken by another result: what was measured once stays as it is."""
    told = files.read_json(directory / "result.json")
    into.mkdir(parents=True, exist_ok=True)
    path = into / f"{told['subject']}-{re.sub('[^0-9TZ]', '', told['measured'])}.json"
    if path.exists() and path.read_bytes() != files.canonical(told):
        raise LabdError(f"{path} is there already, with another result", hint="labd-eval readiness --history")
    files.write_json(path, told)
    return path


def history(out: Path, name: str = "") -> list[dict[str, Any]]:
    """The results under `out` (of measurements, and those kept by `keep`), the oldest first, each with the version of
    the rubric that it was made by: none is ever brought to another one. `name`: of one subject alone."""
    found = []
    for path in sorted([*out.glob(f"{PREFIX}*/result.json"), *out.glob("*.json")]):
        try:
            told = files.read_json(path)
        except (OSError, ValueError):
            continue
        if isinstance(told, dict) and told.get("schema") == grader.RESULT and name in ("", told["subject"]):
            found.append({**told, "from": str(path if path.parent == out else path.parent)})
    return sorted(found, key=lambda one: str(one["measured"]))
