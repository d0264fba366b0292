"""Asks a subject, after a trial, what could tell what its answers meant: graders/probe_plan.py says what, and
graders/probe_read.py what it proves. Never part of a trial, never in a transcript.

The program is the same build, its state a copy that is laid out from the bundle in a sandbox of its own, and laid out
anew when a question changed it: the bundle is only read. Every question, and every one that was not asked, is one line
of the log.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graders import attempts
from graders.argv_records import Invocation
from graders.bundle_view import Bundle, BundleError
from graders.contract import Probe, Record
from graders.probe_plan import Plan, Planned, Signs, plan
from graders.probe_read import Answer, Asking, asking
from harness import execute, sandbox
from harness import subject as subjects

#: Bytes of an answer that are read. What is longer is no answer.
ANSWER_BYTES = 4 << 20
#: Bytes of an answer's streams that the log keeps.
HEAD = 512


@dataclass(frozen=True)
class Budget:
    """What the probes of one question may cost: commands, seconds for each, seconds in all."""

    runs: int = 60
    run_s: float = 10.0
    total_s: float = 60.0


@dataclass(frozen=True)
class Probed:
    """What came of it: the probes by call, and the log, one plain object a line."""

    by_call: dict[int, tuple[Probe, ...]]
    log: list[dict[str, Any]]

    def lines(self) -> bytes:
        """The log as JSON Lines."""
        return "".join(json.dumps(line, sort_keys=True) + "\n" for line in self.log).encode("ascii")


def probe(bundle: Path, record: Record, signs: Signs, budget: Budget | None = None) -> Probed:
    """Ask all that the plan has for `record`, within the budget. Changes nothing in the bundle; never raises for what
    the program does. Where nothing can be asked at all, the log says why, for each probe."""
    wanted = plan(record, signs)
    log = [{"call": one.at, "kind": one.kind, "skipped": one.why} for one in wanted.skipped]
    if not wanted.planned:
        return Probed({}, log)
    view = Bundle(bundle)
    try:
        examined, program = _same_build(view)
    except (_CantAsk, BundleError) as error:
        return _nothing_asked(wanted, log, str(error))
    try:
        with sandbox.bare() as root:
            state = _State(bundle, root, examined, view.trial)
            state.lay_out()
            asker = _Asker(program, state, _directories(view, record), budget or Budget(), log)
            return Probed(_by_call(asker, wanted, log), log)
    except (OSError, ValueError, sandbox.SandboxError) as error:
        return _nothing_asked(wanted, log, f"its final state can't be laid out: {error}")


class _CantAsk(Exception):
    """Why nothing can be asked about a bundle."""


def _same_build(view: Bundle) -> tuple[subjects.Subject, str]:
    """The subject and its installed program, if that is the build that the trial ran. Raises _CantAsk."""
    name = str(view.scenario.get("subject") or subjects.DEFAULT)
    if name not in subjects.names():
        raise _CantAsk(f"there is no subject {name}")
    examined = subjects.load(name)
    program = examined.find()
    if program is None:
        raise _CantAsk(examined.missing)
    told, found = view.trial.get("build"), examined.kind.build(program)
    if not told:
        raise _CantAsk("the trial does not say which build it ran")
    if told != found:
        raise _CantAsk(f"another build is installed ({found[:12]}) than the trial ran ({str(told)[:12]})")
    return examined, program


def _nothing_asked(wanted: Plan, log: list[dict[str, Any]], why: str) -> Probed:
    log += [{"call": one.at, "kind": one.kind, "skipped": why} for one in wanted.planned]
    by_call: dict[int, tuple[Probe, ...]] = {}
    for one in wanted.planned:
        by_call[one.at] = (*by_call.get(one.at, ()), Probe(one.kind, "", f"not asked: {why}", False))
    return Probed(by_call, log)


def _by_call(asker: "_Asker", wanted: Plan, log: list[dict[str, Any]]) -> dict[int, tuple[Probe, ...]]:
    """The probes of each call; once one explains it, the others are left out."""
    found: dict[int, tuple[Probe, ...]] = {}
    for one in wanted.planned:
        before = found.get(one.at, ())
        explained = next((probe.kind for probe in before if probe.conclusive), None)
        if explained:
            log.append({"call": one.at, "kind": one.kind, "skipped": f"explained by {explained}"})
            continue
        probe = asker.conduct(one)
        log.append({"call": one.at, **asdict(probe)})
        found[one.at] = (*before, probe)
    return found


# -- one question after the other ------------------------------------------------------------------------------------


@dataclass
class _Asker:
    """Runs the questions, keeps to the budget, and knows what was asked already."""

    program: str
    state: "_State"
    directories: list[str | None]
    budget: Budget
    log: list[dict[str, Any]]
    runs: int = 0
    started: float = field(default_factory=time.monotonic)
    known: dict[tuple[str, tuple[str, ...]], Answer] = field(default_factory=dict)

    def conduct(self, planned: Planned) -> Probe:
        """Play one probe to its end, or to the end of the budget."""
        questions: Asking = asking(planned)
        try:
            argv = next(questions)
            while True:
                if self._key(planned.at, argv) not in self.known and (spent := self._spent()):
                    self.log.append({"call": planned.at, "kind": planned.kind, "skipped": spent, "argv": list(argv)})
                    return Probe(planned.kind, "", f"not concluded: {spent}", False)
                argv = questions.send(self._ask(planned, argv))
        except StopIteration as end:
            found: Probe = end.value
            return found
        finally:
            questions.close()

    def _spent(self) -> str:
        if self.runs >= self.budget.runs:
            return f"the budget of {self.budget.runs} commands a question is spent"
        if time.monotonic() - self.started >= self.budget.total_s:
            return f"the budget of {self.budget.total_s:g} s a question is spent"
        return ""

    def _key(self, at: int, argv: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        return self.state.directory(self.directories[at]), argv

    def _ask(self, planned: Planned, argv: tuple[str, ...]) -> Answer:
        key = self._key(planned.at, argv)
        if key not in self.known:
            self.known[key] = self._run(planned, argv, key[0])
        return self.known[key]

    def _run(self, planned: Planned, argv: tuple[str, ...], directory: str) -> Answer:
        self.runs += 1
        left = self.budget.total_s - (time.monotonic() - self.started)
        limit = min(self.budget.run_s, max(0.1, left))
        words = [self.program, *map(self.state.here, argv)]
        ended = execute.run(words, env=self.state.env, cwd=directory, limit_s=limit, mark=self.state.mark,
                            kept=ANSWER_BYTES)  # fmt: skip
        changed = self.state.renew()
        stdout, stderr = (self.state.as_told(raw.decode("utf-8", "replace")) for raw in (ended.stdout, ended.stderr))
        self.log.append(
            {"call": planned.at, "kind": planned.kind, "argv": list(argv), "code": ended.code, "signal": ended.signal,
             "ended_by": ended.ended_by, "duration_s": ended.duration_s, "stdout_head": stdout[:HEAD],
             "stderr_head": stderr[:HEAD], "changed": changed}
        )  # fmt: skip
        return Answer(ended.code, stdout, stderr, _trouble(ended, limit))


def _trouble(ended: execute.Ended, limit: float) -> str:
    if ended.ended_by == "time_limit":
        return f"no answer within {limit:.2g} s"
    if ended.ended_by != "exit":
        return ended.error or ended.ended_by
    if ended.cut:
        return f"an answer of more than {ANSWER_BYTES >> 20} MiB"
    return f"ended by {ended.signal}" if ended.signal else ""


# -- where they run --------------------------------------------------------------------------------------------------


class _State:
    """The copy of a trial's final state: laid out from the bundle, and anew when something has changed it."""

    def __init__(self, bundle: Path, root: Path, examined: subjects.Subject, trial: Mapping[str, Any]) -> None:
        self._bundle, self.root, self._kind = bundle, root, examined.kind
        lane = str(trial.get("lane") or examined.lane)
        self.env = {**sandbox.environment(root, lane, examined), **examined.kind.asking(root)}
        home = (trial.get("values") or {}).get("home")
        self._then = str(Path(home).parent) if isinstance(home, str) and home else None
        self.mark = execute.new_mark()
        self._laid_out: dict[str, tuple[int, ...]] = {}
        self._parts: tuple[Path, ...] = ()

    def lay_out(self) -> None:
        """Raises OSError or ValueError if the bundle does not have the state."""
        self._parts = self._kind.restore(self._bundle, self.root)
        self._laid_out = dict(self._signature())

    def renew(self) -> bool:
        """Lay the state out anew if it is no longer as it was laid out; says whether it was not."""
        if dict(self._signature()) == self._laid_out:
            return False
        for part in self._parts:
            sandbox.remove(part)
        (self.root / "work").mkdir(mode=0o700, exist_ok=True)
        self.lay_out()
        return True

    def _signature(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """What every file and directory of the state is known by, without reading it."""
        for part in self._parts:
            for path in (part, *part.rglob("*")) if part.is_dir() else (part,):
                try:
                    told = path.lstat()
                except OSError:
                    continue
                yield str(path), (told.st_ino, told.st_mode, told.st_size, told.st_mtime_ns, told.st_ctime_ns)

    def directory(self, then: str | None) -> str:
        """Where a call ran, here; the agent's directory if that is not known or no longer there."""
        here = Path(self.here(then)) if then and self._then and then.startswith(f"{self._then}/") else None
        return str(here if here and here.is_dir() else self.root / "work")

    def here(self, word: str) -> str:
        """A word of the trial, with the paths of its sandbox as they are here."""
        return word.replace(self._then, str(self.root)) if self._then else word

    def as_told(self, text: str) -> str:
        """What the program said, with our paths as they were in the trial."""
        return text.replace(str(self.root), self._then) if self._then else text


def _directories(view: Bundle, record: Record) -> list[str | None]:
    """In which directory each call ran; None where the bundle does not tell it for just these words."""
    ran: list[Invocation] = attempts.acted(view)
    if [tuple(one.argv[1:]) for one in ran] != [call.argv for call in record.calls]:
        return [None] * len(record.calls)
    return [one.start.get("cwd") for one in ran]
