"""Puts a release in place: gathered beside its place, checked, synced, renamed; its name is never written again.

`current` names the last one that was checked. Whatever goes wrong before leaves it, and its date, as they were, and a
line in log.jsonl. One process at a time; what a killed one left is removed by the next.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graders.readiness import NotReadiness
from harness import controls, data, files, grading, journeys, readiness, run
from harness.release import card, check, faces, projection, redaction
from harness.release.requirements import Missing, missing
from labd.errors import Busy, LabdError, Refused, Usage

SCHEMA, STAGING = "labd-release/1", ".staging-"
CURRENT, LOG = check.CURRENT, check.LOG

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Incomplete(Refused):
    """Something is missing; `found` has all of it."""

    def __init__(self, name: str, found: Sequence[Missing]) -> None:
        lines = [f"{name} is not published: {len(found)} things are missing"]
        lines += [f"- {one.what}\n    mend: {one.mend}" for one in found]
        super().__init__("\n".join(lines), hint="labd-eval publish --help")
        self.found = list(found)


def publish(name: str, runs: Sequence[Path], measured: Sequence[Path], review: Path | None, home: Path,
            note: Callable[[str], None] = lambda _: None) -> Path:  # fmt: skip
    """Publish as `home`/`name`; returns that directory. Raises Usage, Refused, Incomplete, LabdError, OSError."""
    if not _NAME.fullmatch(name) or name in (CURRENT, LOG):
        raise Usage(f"{name!r} is no name of a release: small letters, digits, `.`, `_`, `-`; not {CURRENT!r}",
                    hint="labd-eval publish --help")  # fmt: skip
    fresh = not home.exists()
    home.mkdir(parents=True, exist_ok=True)
    try:
        with _alone(home):
            return _put(name, runs, measured, review, home, note)
    except BaseException as error:
        if fresh and not any(path for path in home.iterdir() if path.name != ".lock"):
            shutil.rmtree(home, ignore_errors=True)
        else:
            _tell(home, name, error)
        raise


@contextlib.contextmanager
def _alone(home: Path) -> Iterator[None]:
    lock = os.open(home / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"{home}: somebody else publishes there", hint="wait for it, or stop it") from None
        for left in home.glob(f"{STAGING}*"):  # of a process that was killed: we hold the lock
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(lock)


def _tell(home: Path, name: str, error: BaseException) -> None:
    """Why a release did not come about. Where there is no room even for that, what was there stays as it is."""
    told = getattr(error, "message", None) or str(error) or type(error).__name__
    line = {"event": "failed", "name": name, "why": told.splitlines()[0], "current": current(home)}
    if isinstance(error, Incomplete):
        line["missing"] = [one.what for one in error.found]
    with contextlib.suppress(OSError):
        _log(home, line)


def _log(home: Path, line: dict[str, Any]) -> None:
    text = json.dumps({"t": _now(), **line}, sort_keys=True) + "\n"
    with (home / LOG).open("a") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def current(home: Path) -> str | None:
    """The name of the current release; None if there is none."""
    try:
        return os.readlink(home / CURRENT)
    except OSError:
        return None


# -- gathering --------------------------------------------------------------------------------------------------------


def _put(name: str, runs: Sequence[Path], measured: Sequence[Path], review: Path | None, home: Path,
         note: Callable[[str], None]) -> Path:  # fmt: skip
    final = home / name
    if final.exists() or final.is_symlink():
        raise Refused(f"{final} is published already, and what is published stays as it is",
                      hint="give it another --name")  # fmt: skip
    place = Path(tempfile.mkdtemp(prefix=f"{STAGING}{name}-", dir=home))
    try:
        _gather(place, runs, measured, review, note, final, current(home))
        problems = check.problems(place)
        if problems:
            raise LabdError("\n".join(["what was gathered does not bear itself out:", *map(str, problems)]))
        _sync(place)
        place.chmod(0o755)
        os.rename(place, final)
        files.sync_directory(home)
    except OSError as error:
        raise LabdError(f"{error.filename or home}: {error.strerror}; nothing was published, {CURRENT} is as it was",
                        hint=f"df -h {home}") from error  # fmt: skip
    finally:
        shutil.rmtree(place, ignore_errors=True)
    _log(home, {"event": "published", "name": name, "sha256": files.digest((final / check.MANIFEST).read_bytes())})
    _point(home, name)
    return final


def _gather(place: Path, runs: Sequence[Path], measured: Sequence[Path], review: Path | None,
            note: Callable[[str], None], final: Path, previous: str | None) -> None:  # fmt: skip
    lacking: list[Missing] = []
    (place / "runs").mkdir()
    (place / "readiness").mkdir()
    for source in runs:
        lacking += _run(source, place / "runs", note)
    for source in measured:
        lacking += _measurement(source, place / "readiness")
    if review is not None:
        files.read_toml(review)
        files.write_bytes(place / "review.toml", redaction.redact(review.read_text("utf-8")).encode())
    subjects = {run.subject_of(run.load(source)) for source in runs}
    subjects |= {str(files.read_json(path)["subject"]) for path in place.glob("readiness/*/manifest.json")}
    files.write_json(place / "catalog.json", {one: catalog(one) for one in sorted(subjects)})
    published = _now()
    told = projection.project(place, final.name, published, previous)
    lacking += missing(told)
    if lacking:
        raise Incomplete(final.name, lacking)
    faces.write(place, told)
    files.write_json(place / check.MANIFEST, {
        "schema": SCHEMA, "name": final.name, "published": published, "previous": previous,
        "versions": data.versions(), "hashes": data.hashes(), "painter": card.painter(),
        "files": check.hashes(place),
    })  # fmt: skip


def catalog(name: str) -> dict[str, Any]:
    """The jobs of a subject as they stand now: what a complete release has, and what was reviewed."""
    found: dict[str, Any] = {}
    for (_, job), mine in controls.by_job(journeys.load(name)).items():
        about = mine[0].journey
        assert about is not None
        found[job] = {"title": about.title, "group": about.group, "reviewed": about.reviewed, "scenarios": [
            {"id": one.id, "variant": one.journey.variant, "sha256": run.fingerprint(one)}
            for one in mine if one.journey]}  # fmt: skip
    return found


def _run(source: Path, into: Path, note: Callable[[str], None]) -> Iterator[Missing]:
    """A copy of a run: its manifest, its log, its command reference as it is, and every bundle, lost ones too."""
    manifest = run.load(source)
    target = into / str(manifest["id"])
    if target.exists():
        raise Usage(f"{source} is given twice", hint="labd-eval publish --help")
    (target / "trials").mkdir(parents=True)
    files.write_json(target / "run.json", redaction.value(manifest))
    shutil.copyfile(source / "log.jsonl", target / "log.jsonl")
    if (source / "surface.json").is_file():
        shutil.copyfile(source / "surface.json", target / "surface.json")
    changed = 0
    for bundle in sorted(path for path in (source / "trials").iterdir() if path.is_dir() and path.name[0] != "."):
        broken = grading.damage(bundle)
        if broken:
            yield Missing(f"{bundle.name}: not as the trial left it: {broken}", "the run as it was, or a new one")
            continue
        copy, log = target / "trials" / bundle.name, (target / "log.jsonl").read_bytes()
        try:
            changed += bool(redaction.bundle(bundle, copy).redacted)
        except redaction.NotTheSame as error:
            yield Missing(f"it can't be redacted: {error}", "a run in which no secret is in what was recorded")
            shutil.rmtree(copy)  # nothing is published: as it is, it says what else is missing
            shutil.copytree(bundle, copy)
            (target / "log.jsonl").write_bytes(log)
    told = redaction.text((target / "log.jsonl").read_bytes(), "log.jsonl")
    if told is None:
        yield Missing(f"{target.name}: its log is no text", "the run as it was, or a new one")
    else:
        files.write_bytes(target / "log.jsonl", told)
    note(f"{target.name}: copied; secrets were taken out of {changed} trials")


def _measurement(source: Path, into: Path) -> Iterator[Missing]:
    try:
        touched = readiness.touched(source)
        for name in touched:
            yield Missing(f"{source.name}: {name} is not what was measured", "labd-eval readiness SUBJECT")
        if not touched:
            redaction.measurement(source, into / source.resolve().name)
    except redaction.NotTheSame as error:
        yield Missing(f"it can't be redacted: {error}", "labd-eval readiness SUBJECT")
    except (NotReadiness, ValueError, KeyError, TypeError) as error:
        raise LabdError(
            f"{source}: no measurement of readiness: {error}", hint="labd-eval readiness --history"
        ) from error


# -- in place ---------------------------------------------------------------------------------------------------------


def _sync(place: Path) -> None:
    """All of it on the disk before it gets its name."""
    for folder, _, names in os.walk(place):
        for name in names:
            fd = os.open(os.path.join(folder, name), os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        files.sync_directory(Path(folder))


def _point(home: Path, name: str) -> None:
    """Make it the current one, in one step."""
    fresh = home / f".{CURRENT}.new"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(name)
    os.replace(fresh, home / CURRENT)
    files.sync_directory(home)
