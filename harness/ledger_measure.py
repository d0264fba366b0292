"""Measures the ledger's Tier 1 evidence: runs its command lines for real, each in a throwaway sandbox of its own.

The state is what a scenario begins with (its lab, its repository, its data), so that nothing of the user's is met.
Only what is the same each time is kept: paths and the trial's nonce are named, times of day are blanked, and of time
itself only whole seconds of silence. A line that does not end is ended, and measured as what it was.
"""

import contextlib
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import execute, files, ledger, sabotage, sandbox, scenario, subject, surface
from harness.ledger import Entry, Evidence, Line
from harness.telling import many
from labd.errors import LabdError, NotFound

#: The most that a line may take (seconds), and that is kept of each of its streams (characters).
LIMIT_S, KEPT = 60.0, 4000

_CLOCK = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")


def measure(entry: Entry, note: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The measurement of an entry's evidence, as it is kept beside it. Raises LabdError where one can't be made."""
    told = []
    for one in entry.evidence:
        planted = f" ({one.planted})" if one.planted else ""
        note(f"{entry.number:>2} {one.subject}{planted}: {many(len(one.lines), 'line')}")
        told.append({"key": one.key, "subject": one.subject, "runs": runs(one)})
    programs = {name: version(name) for name in dict.fromkeys(one.subject for one in entry.evidence)}
    return {"schema": ledger.MEASURED, "programs": programs, "evidence": told}


def keep(entry: Entry, measured: dict[str, Any]) -> bool:
    """Put a measurement beside its entry; whether it differs from what was there."""
    place, new = ledger.beside(entry.path, "measured"), files.canonical(measured)
    if place.is_file() and place.read_bytes() == new:
        return False
    files.write_bytes(place, new)
    return True


def version(name: str) -> str:
    """A subject's program in its own words."""
    with surface.live(name) as ask:
        code, out, err = ask([subject.load(name).program, "--version"])
    return (out or err).strip().splitlines()[0] if code == 0 and (out or err).strip() else name


def runs(evidence: Evidence) -> list[dict[str, Any]]:
    """What each line of an evidence gave, in order. Raises LabdError if its state can't be brought about."""
    with contextlib.ExitStack() as until_then:
        if evidence.planted:
            copy = Path(until_then.enter_context(tempfile.TemporaryDirectory(prefix="planted-"))) / "copy"
            program = str(sabotage.plant(evidence.planted, copy))
            until_then.enter_context(subject.in_place(evidence.subject, program))
        return _runs(evidence)


def _runs(evidence: Evidence) -> list[dict[str, Any]]:
    examined = subject.load(evidence.subject)
    program = examined.find()
    if program is None:
        raise NotFound(examined.missing, hint=examined.install)
    known = {one.id: one for one in scenario.load_all(evidence.subject)}
    if evidence.scenario not in known:
        raise NotFound(f"no scenario {evidence.scenario!r}", hint=f"labd-eval list --subject {evidence.subject}")
    try:
        place = sandbox.create(known[evidence.scenario], program)
    except sandbox.SandboxError as error:
        raise LabdError(f"{evidence.subject}: {error}") from error
    try:
        for line in evidence.before:
            ended = _run(line, place)[0]
            if not ended.ok:
                raise LabdError(f"{line}: exit {ended.code}: {ended.stderr.decode('utf-8', 'replace')[:300]}")
        return [_measured(line, place) for line in evidence.lines]
    finally:
        place.stop()
        place.close()


def _run(line: str, place: sandbox.Sandbox) -> tuple[execute.Ended, int]:
    """How a line ended, and for how many whole seconds at most it said nothing."""
    heard = {"at": time.monotonic(), "sizes": (0, 0), "silent": 0.0}
    log = place.root / "rec" / "stderr"
    log.unlink(missing_ok=True)

    def listen(out: bytearray) -> None:
        sizes, now = (len(out), log.stat().st_size if log.exists() else 0), time.monotonic()
        if sizes != heard["sizes"]:
            heard.update(at=now, sizes=sizes)
        heard["silent"] = max(heard["silent"], now - heard["at"])  # type: ignore[call-overload,operator]

    # stderr goes by a file, so that its growth can be seen while the line runs
    ended = execute.run(["/bin/sh", "-c", f"exec 2>'{log}'\n{line}"], env=place.env, cwd=place.work, limit_s=LIMIT_S,
                        mark=place.mark, kept=KEPT * 4, halt=listen)  # fmt: skip
    place.sessions.add(ended.session)
    return ended, int(heard["silent"])  # type: ignore[call-overload]


def _measured(line: Line, place: sandbox.Sandbox) -> dict[str, Any]:
    ended, silent = _run(line.run, place)
    log = place.root / "rec" / "stderr"
    told = {"run": line.run, "exit": ended.code, "stdout": _plain(ended.stdout, place),
            "stderr": _plain(log.read_bytes() if log.exists() else b"", place)}  # fmt: skip
    # Only what the claim rests on: the rest of the time is another one each time.
    telling = min(silent, line.silent_s) if line.silent_s else silent if silent >= line.speaks_within_s > 0 else 0
    return told | ({"silent_s": telling} if telling else {})


def _plain(raw: bytes, place: sandbox.Sandbox) -> str:
    """A stream as it is kept: what is different each time is named instead."""
    text = raw.decode("utf-8", "replace")
    for value, word in ((str(Path(place.values["home"])), "~"), (str(place.root), "/bench"),
                        (place.values["nonce"], "NONCE")):  # fmt: skip
        text = text.replace(value, word)
    text = _CLOCK.sub("TIME", text)
    lost = len(text) - KEPT
    return text if lost <= 0 else f"{text[:KEPT]}\n[{lost} more characters]\n"
