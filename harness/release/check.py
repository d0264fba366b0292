"""Is a release what was published, and do its numbers follow from what it stores? Everything is computed once more.

Every file against its hash; every bundle graded again; readiness scored again; the projection, and each face of it,
compared byte for byte. Says which file was touched and which number is another. Changes nothing.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graders import readiness as grader
from harness import data, files, grading
from harness.release import card, faces, projection
from harness.release.requirements import missing
from labd.errors import LabdError, NotFound

MANIFEST = "release.json"


@dataclass(frozen=True)
class Problem:
    """Something that is not as it was published."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


def hashes(place: Path) -> dict[str, str]:
    """Every file of a release but its manifest, with its SHA-256. A link is told as one: it may lead anywhere."""
    found = {}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if path.is_symlink():
            found[name] = f"link to {os.readlink(path)}"
        elif not path.is_dir() and name != MANIFEST:
            held = files.plain_bytes(path)
            found[name] = "no plain file" if held is None else files.digest(held)
    return found


def sync_directory(path: Path) -> None:
    """Its names, on the disk."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def problems(place: Path) -> list[Problem]:
    """All that is wrong with a release; empty if nothing is. Raises NotFound where there is none."""
    try:
        told = files.read_json(place / MANIFEST)
        wanted = dict(told["files"])
        about = str(told["name"]), str(told["published"]), told["previous"]
    except FileNotFoundError:
        raise NotFound(f"{place} is no release: it has no {MANIFEST}", hint="labd-eval publish --help") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [Problem(MANIFEST, f"it can't be read: {type(error).__name__}: {error}")]
    found = [*_bound(place), *_files(place, wanted)]
    for step in (_graded, _measured):
        found += step(place)
    try:
        fresh = projection.project(place, *about)
        found += [*_numbers(place, fresh), *_faces(place, fresh, told.get("painter"))]
        found += [Problem("data.json", f"incomplete: {one.what}") for one in missing(fresh)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, LabdError) as error:
        found.append(Problem("data.json", f"it can't be computed from what is stored: {error}"))
    return list(dict.fromkeys(found))


def notes(place: Path) -> list[str]:
    """What differs between the exam that published it and this one: then other faces are no sign of a touch."""
    try:
        told = files.read_json(place / MANIFEST)
        then, now = told["hashes"], data.hashes()
        changed = [name for name in ("harness", "graders") if then.get(name) != now.get(name)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return [f"checked by other code than published it: {', '.join(changed)}"] if changed else []


def _bound(place: Path) -> Iterator[Problem]:
    """The manifest itself, by the log beside the releases, if it is there."""
    log = place.parent / "log.jsonl"
    digest = files.digest((place / MANIFEST).read_bytes())
    try:
        lines = [json.loads(line) for line in log.read_text("utf-8").splitlines() if '"published"' in line]
    except (OSError, ValueError):
        return
    told = [one.get("sha256") for one in lines if one.get("event") == "published" and one.get("name") == place.name]
    if told and told[-1] != digest:
        yield Problem(MANIFEST, "it is not the one that the log of releases knows")


def _files(place: Path, wanted: dict[str, str]) -> Iterator[Problem]:
    there = hashes(place)
    for name in sorted({*wanted, *there}):
        if name not in there:
            yield Problem(name, "it is missing")
        elif name not in wanted:
            yield Problem(name, "it was not published")
        elif there[name] != wanted[name]:
            yield Problem(name, "it has changed")


def _graded(place: Path) -> Iterator[Problem]:
    for path in sorted(place.glob("runs/*/trials/*")):
        again, kept = grading.judge(path), grading.kept(path)
        if kept is None or again.dumps() != kept.dumps():
            before = kept.verdict if kept else "nothing"
            yield Problem(
                path.relative_to(place).as_posix(),
                f"the stored verdict is {before}; graded again it is {again.verdict}: {again.reason}",
            )


def _measured(place: Path) -> Iterator[Problem]:
    for path in sorted(place.glob("readiness/*/")):
        name = path.relative_to(place).as_posix()
        try:
            if files.canonical(grader.grade(path)) != (path / "result.json").read_bytes():
                yield Problem(f"{name}/result.json", "scored again, the evidence comes to something else")
        except (grader.NotReadiness, OSError, ValueError, KeyError, TypeError) as error:
            yield Problem(name, f"it can't be scored: {error}")


def _numbers(place: Path, fresh: dict[str, Any]) -> Iterator[Problem]:
    for name in ("data.json", "report.json"):
        try:
            stored = files.read_json(place / name)
        except (OSError, ValueError) as error:
            yield Problem(name, f"it can't be read: {error}")
            continue
        for where, before, now in _differences(stored, fresh):
            yield Problem(name, f"{where} is {_short(before)}; from what is stored it is {_short(now)}")


def _differences(stored: Any, fresh: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The places where two values differ, the deepest that can be named."""
    if isinstance(stored, dict) and isinstance(fresh, dict):
        for key in sorted({*stored, *fresh}):
            yield from _differences(stored.get(key), fresh.get(key), f"{where}.{key}".lstrip("."))
    elif isinstance(stored, list) and isinstance(fresh, list) and len(stored) == len(fresh):
        for at, (one, other) in enumerate(zip(stored, fresh, strict=True)):
            yield from _differences(one, other, f"{where}[{at}]")
    elif stored != fresh or type(stored) is not type(fresh):
        yield where, stored, fresh


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _faces(place: Path, fresh: dict[str, Any], painter: Any) -> Iterator[Problem]:
    for name, face in faces.FACES.items():
        if name == "card.png" and painter != card.painter():
            continue  # another version draws other bytes: its hash has to do
        held = files.plain_bytes(place / name)
        if held is not None and held != face(fresh):
            yield Problem(name, "rendered again, it is another one")
