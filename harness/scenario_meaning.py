"""What the shape of a scenario file can't say: that its files are there, its names known, its parts fit together.

Used by harness/scenario.py when it loads a file. Every problem is told, each with its key. Runs nothing.
"""

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graders import when
from harness import inline_board, subject
from harness.scenario import HOLE, KNOWN, NO_LINE, Controls, Scenario, Step, fixtures_dir
from labd.errors import nearest

_SAMPLES = {"nonce": "0a1b2c3d4e", "lab": "/lab.toml", "home": "/home", "device": "/dev/ttyUSB0",
            "device2": "/dev/ttyUSB1", "holder": "1"}  # fmt: skip


def problems_of(scenario: Scenario) -> list[str]:
    """All that is wrong with a scenario whose shape is right, each line with its key."""
    found: list[str] = []
    if scenario.journey is None and scenario.id.lower() != scenario.path.stem.lower():
        found.append(f"id: {scenario.id!r} does not fit the file's name {scenario.path.name!r}")
    missing = list(_files(scenario))
    found += missing
    kind = scenario.grader.get("state", "") if scenario.journey else scenario.grader["type"]
    if scenario.journey and not kind:
        found.append("verifier.state: missing; it says what reads the end state: repo_state, outcome or t1_config")
        return found
    if scenario.loopback and kind != "outcome":
        found.append(f"grader.type: a scenario with [{scenario.lane}] is graded by outcome, not {kind}")
    if not scenario.loopback and kind == "outcome":
        found.append("grader.type: outcome is for scenarios with [loopback] or [virtual]")
    if (kind in ("repo_state", "answer")) != (scenario.lane == "local"):
        found.append("grader.type: repo_state and answer are for the lane local, which is graded by one of them")
    if kind == "answer" and not (scenario.grader.get("answer") and scenario.grader.get("ran")):
        found.append(
            "grader: answer needs at least one [[grader.answer]] and one [[grader.ran]]: knowing is not asking"
        )
    if kind in ("t1_config", "repo_state") and not any(scenario.grader.get(k) for k in ("assert", "answer")):
        found.append(f"grader: {kind} needs at least one [[grader.assert]] or [[grader.answer]]")
    if (kind == "stated") != (scenario.lane == "stated"):
        found.append("grader.type: stated is for scenarios whose commands are said, and what is said is graded by it")
    if kind == "stated":
        found += _said_only(scenario)
    if kind != "repo_state" and any("same" in entry for entry in scenario.grader.get("assert", ())):
        found.append("grader.assert: same is of repo_state: only that keeps the facts of before")
    found += _controls_complete(scenario)
    found += [f"{where}: {problem}" for where, problem in _lines(scenario)]
    found += _holes(scenario)
    found += [f"{where}: {limit:g} s is longer than the trial's {scenario.timeout_s:g} s"
              for where, limit in _waits(scenario) if limit > scenario.timeout_s]  # fmt: skip
    if scenario.boards and not scenario.loopback:
        found.append("boards: only a scenario with [loopback] or [virtual] drives a board")
    if scenario.loopback and not missing:
        found += _board_in_seed(scenario)
        found += _desk(scenario)
    return found


#: What the predicate language can't know of a command that was only said.
_OF_RUNS = ("code", "signal", "decision", "face", "cwd", "program")


def _said_only(scenario: Scenario) -> Iterator[str]:
    """Predicates over what only a run has, and an answer of which nothing is asked."""
    entries = scenario.grader.get("stated", ())
    if not entries and not scenario.grader.get("answer"):
        yield "grader: stated needs at least one [[grader.stated]] or [[grader.answer]]"
    texts = [(f"grader.stated[{n}].when", entry.get("when")) for n, entry in enumerate(entries)]
    texts += [(f"traps[{n}].when", trap.when) for n, trap in enumerate(scenario.traps)]
    for where, text in texts:
        names = when.names(text) if text else ()
        yield from (f"{where}: nothing ran, so {name} is never known" for name in _OF_RUNS if name in names)
    if scenario.grader.get("ran"):
        yield "grader.ran: nothing runs in the lane stated; use [[grader.stated]]"


def _files(scenario: Scenario) -> Iterator[str]:
    """Files that are not there, or are not where fixtures are."""
    root = fixtures_dir().resolve()
    named = [("seed", scenario.seed)] if scenario.seed is not None else []
    fault = scenario.journey.fault if scenario.journey else None
    named += [("fault.seed", fault.seed)] if fault and fault.seed is not None else []
    beside = scenario.loopback.files if scenario.loopback else {}
    named += [("loopback.files", source) for source in beside.values()]
    named += [("loopback.outside.file", scenario.outside.file)] if scenario.outside else []
    for key, name in named:
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            yield f"{key}: {name!r} is not in {fixtures_dir()}"
        elif not path.is_file():
            yield f"{key}: no file {name!r} in {fixtures_dir()}"
    for name in beside:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or name == "lab.toml":
            yield f"loopback.files: {name!r} is no name for a file beside the lab"
    if scenario.loopback and scenario.loopback.board is not None and inline_board.NAME in beside:
        yield f"loopback.files: {inline_board.NAME} is the name of the board that [loopback] itself describes"


def _desk(scenario: Scenario) -> Iterator[str]:
    """Mistakes about what stands outside the bench, and about the task that is for everybody."""
    board, outside = scenario.loopback, scenario.outside
    expect = board.expect if board else {}
    if outside is not None:
        if outside.held and outside.serve != "tty":
            yield "loopback.outside.held: only a tty can be held"
        if "{device}" not in (scenario.seed_text({}) or ""):
            yield 'seed: no line has device = "{device}", the port of the board that is outside'
        for kind in ("before", "after"):
            for number, act in enumerate(getattr(outside, kind)):
                if len(act.keys() - {"wait_s"}) > 1:
                    yield f"loopback.outside.{kind}[{number}]: one act at a time"
    elif {"pulses", "boots", "power", "holder"} & set(expect):
        yield "loopback.expect: pulses, power, boots and holder are of a board that is outside; there is none"
    for number, bounds in enumerate(expect.get("pulses", ())):
        if len(bounds) != 2 or bounds[0] > bounds[1]:
            yield f"loopback.expect.pulses[{number}]: expected [shortest, longest]"
    if scenario.lane == "virtual" and expect.get("received"):
        yield "virtual.expect.received: only simulated boards tell what they received; say it as a journal of kind tx"
    if scenario.task is not None and (outside is None or outside.serve != "tty"):
        yield "task: a task for everybody needs a board on a tty outside the bench"


def _board_in_seed(scenario: Scenario) -> Iterator[str]:
    """Lines that [loopback] speaks about but the seed lab does not have, and boards of the seed that have no file."""
    board = scenario.loopback
    assert board is not None
    if scenario.seed is None:
        yield "seed: missing, and [loopback] needs a lab that its boards are in"
        return
    try:
        text = (scenario.seed_text(_SAMPLES) or "").removeprefix("\ufeff").replace("\r\n", "\n")
        targets = tomllib.loads(text).get("targets", {})
    except tomllib.TOMLDecodeError as error:
        yield f"seed: {scenario.seed}: {error}"
        return
    lines = {name: {line.get("name"): line.get("device", "") for line in entry.get("serial", ())}
             for name, entry in targets.items()}  # fmt: skip
    asked = [("loopback", board.target, board.interface)]
    for kind in ("received", "journal", "may_receive"):
        for number, entry in enumerate(board.expect.get(kind, ())):
            if not isinstance(entry, str):
                line = entry.get("target", board.target), entry.get("interface", board.interface)
                asked.append((f"loopback.expect.{kind}[{number}]", *line))
    for key, target, interface in asked:
        if (interface == NO_LINE and target in lines) or _to_be_entered(scenario, target):
            continue
        if target not in lines:
            yield f"{key}.target: no {target!r} in {scenario.seed}{_meant(target, lines)}"
        elif interface not in lines[target]:
            yield f"{key}.interface: {target} has no {interface!r} in {scenario.seed}{_meant(interface, lines[target])}"
    there = {*board.files, *([inline_board.NAME] if board.board is not None else [])}
    for name in sorted({device for line in lines.values() for device in line.values()}):
        kind, _, dut = str(name).partition(":")
        if kind == "loopback" and dut.endswith(".toml") and dut not in there:
            yield f"loopback.files: {scenario.seed} has {name!r}, and there is no such file{_meant(dut, there)}"


def _to_be_entered(scenario: Scenario, target: str) -> bool:
    """Whether entering that target is the job: a journey's verifier speaks of its lines."""
    paths = [entry["path"] for entry in scenario.grader.get("assert", ())] if scenario.journey else []
    return any(path.startswith(f"targets.{target}.serial") for path in paths)


def _meant(word: str, known: Iterable[Any]) -> str:
    near = nearest(word, [str(name) for name in known])
    return f"; did you mean {', '.join(near)}?" if near else ""


# -- placeholders --------------------------------------------------------------------------------------------------


def _holes(scenario: Scenario) -> Iterator[str]:
    """Placeholders that nothing fills in. In texts for a shell, a board or a lab, where braces have other meanings as
    well, only those that look like a misspelt one."""
    for where, text in _texts(scenario):
        yield from _unknown(where, text, KNOWN)
    for where, steps in _groups(scenario).items():
        known = set(KNOWN)
        for number, step in enumerate(steps):
            if not step.prose:
                yield from _unknown(f"{where}[{number}]", step.run, known, loose=step.shell)
            for text in (step.until or "", *step.save.values()):
                yield from _unknown(f"{where}[{number}]", text, KNOWN)
            known |= set(step.save)
    for name, text in _fixtures(scenario):
        yield from _unknown(name, text, KNOWN, loose=True)


def _unknown(where: str, text: str, known: Iterable[str], *, loose: bool = False) -> Iterator[str]:
    for match in HOLE.finditer(text):
        name = match[1]
        if name in known or (match.start() and text[match.start() - 1] == "$"):
            continue
        near = nearest(name, sorted(known))
        if near or not loose:
            yield f"{where}: unknown placeholder {match[0]}{_meant(name, known)}"


def _texts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """(key, text) of all that is filled in, but for lines that are run."""
    yield "goal", scenario.goal
    yield from _inside("grader", scenario.grader)
    for number, trap in enumerate(scenario.traps):
        yield f"traps[{number}].when", trap.when or ""
    if scenario.loopback:
        yield from _inside("loopback.expect", scenario.loopback.expect)
    if scenario.controls:
        yield "controls.printed_success", scenario.controls.printed_success


def _inside(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _inside(f"{key}.{name}", item)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _inside(f"{key}[{number}]", item)


def _fixtures(scenario: Scenario) -> Iterator[tuple[str, str]]:
    root = fixtures_dir()
    names = {"seed": scenario.seed} if scenario.seed else {}
    if scenario.loopback:
        names |= {f"loopback.files.{name}": source for name, source in scenario.loopback.files.items()}
        if scenario.loopback.board is not None:
            yield "loopback", scenario.loopback.board
        if scenario.outside is not None:
            yield "loopback.outside", scenario.outside.source
    for key, source in names.items():
        path = Path(root / str(source))
        if path.is_file() and path.resolve().is_relative_to(root.resolve()):
            yield f"{key}: {source}", path.read_text(encoding="utf-8")


# -- lines ---------------------------------------------------------------------------------------------------------


def _controls_complete(scenario: Scenario) -> list[str]:
    controls = scenario.controls or Controls()
    own = "invented" if scenario.lane == "stated" else "tampered_artifact" if scenario.journey else "hand_edit"
    missing = [name for name in ("printed_success", "wrong_resource", own) if not getattr(controls, name)]
    if not scenario.control("partial"):
        missing.append("partial")  # a reference of one line leaves nothing to derive it from
    return [f"controls.{name}: missing, and each control has to fail" for name in missing]


def _groups(scenario: Scenario) -> dict[str, tuple[Step, ...]]:
    controls = scenario.controls or Controls()
    prepared = scenario.loopback.prepared if scenario.loopback else ()
    return {"reference": scenario.reference, "loopback.prepared": prepared,
            "controls.wrong_resource": controls.wrong_resource, "controls.partial": controls.partial,
            "controls.hand_edit": controls.hand_edit, "controls.invented": controls.invented,
            "controls.tampered_artifact": controls.tampered_artifact}  # fmt: skip


def _waits(scenario: Scenario) -> Iterator[tuple[str, float]]:
    for where, steps in _groups(scenario).items():
        yield from ((f"{where}[{number}].within_s", step.within_s) for number, step in enumerate(steps) if step.until)


def _lines(scenario: Scenario) -> Iterable[tuple[str, str]]:
    program = subject.load(scenario.subject).program
    for where, steps in _groups(scenario).items():
        for number, step in enumerate(steps):
            try:
                words = ["sh"] if step.shell else step.run.split() if step.prose else shlex.split(step.run)
                if not words:
                    yield f"{where}[{number}]", "an empty line"
                elif step.prose and words[0] == program:
                    yield f"{where}[{number}]", "a command over several lines would be taken for an explanation"
            except ValueError as error:
                yield f"{where}[{number}]", f"cannot be split into words: {error}"
