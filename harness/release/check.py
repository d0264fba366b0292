"""Is a release what was published, and do its numbers follow from what it stores? Everything is computed once more.

Every file against its hash; every bundle graded again; readiness scored again; the projection, and each face of it,
compared byte for byte. Says which file was touched and which number is another. Changes nothing.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graders import readiness as grader
from harness import data, files, grading
from harness.release import card, faces, projection
from harness.release.requirements import missing
from labd.errors import LabdError, NotFound

MANIFEST, LOG, CURRENT = "release.json", "log.jsonl", "current"

#: What a manifest has (harness/release/store.py writes it).
KEYS = {"schema", "name", "published", "previous", "versions", "hashes", "painter", "files"}


@dataclass(frozen=True)
class Problem:
    """Something that is not as it was published."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


def hashes(place: Path) -> dict[str, str]:
    """Every file of a release but its manifest, with its SHA-256. A link is told as one: it may lead anywhere; so is a
    directory with nothing in it."""
    found = {}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if path.is_symlink():
            found[name] = f"link to {os.readlink(path)}"
        elif path.is_dir():
            with contextlib.suppress(PermissionError):
                if not any(path.iterdir()):
                    found[f"{name}/"] = "empty directory"
        elif name != MANIFEST:
            held = files.plain_bytes(path)
            found[name] = "no plain file" if held is None else files.digest(held)
    return found


def problems(place: Path) -> list[Problem]:
    """All that is wrong with a release in itself; empty if nothing is. Raises NotFound where there is none."""
    try:
        told = files.read_json(place / MANIFEST)
        wanted = dict(told["files"])
        about = str(told["name"]), str(told["published"]), told["previous"]
    except FileNotFoundError:
        raise NotFound(f"{place} is no release: it has no {MANIFEST}", hint="labd-eval publish --help") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [Problem(MANIFEST, f"it can't be read: {type(error).__name__}: {error}")]
    found = [*_form(place, told), *_files(place, wanted)]
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
    """What limits a check: no log to hold the manifest against, or an exam that is another than published it: then
    other faces are no sign of a touch."""
    unbound = f"there is no {LOG} beside it: {MANIFEST} is held against nothing, nor is {CURRENT}"
    return [*_other_code(place), *([unbound] if _log(place.parent) is None else [])]


def _other_code(place: Path) -> list[str]:
    try:
        told = files.read_json(place / MANIFEST)
        then, now = told["hashes"], data.hashes()
        changed = [name for name in ("harness", "graders") if then.get(name) != now.get(name)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return [f"checked by other code than published it: {', '.join(changed)}"] if changed else []


def bound(place: Path) -> list[Problem]:
    """What is not as the log beside the releases tells: the manifest itself, and which release is current."""
    told = _log(place.parent)
    if told is None:
        return []
    mine = [digest for name, digest in told if name == place.name]
    found = []
    if not mine:
        found.append(Problem(MANIFEST, "the log of releases knows no release of this name"))
    elif mine[-1] != files.digest(files.plain_bytes(place / MANIFEST) or b""):
        found.append(Problem(MANIFEST, "it is not the one that the log of releases knows"))
    link, newest = place.parent / CURRENT, told[-1][0] if told else None
    points = os.readlink(link) if link.is_symlink() else None
    if newest and points != newest:
        found.append(Problem(f"../{CURRENT}", f"it leads to {points or 'nothing'}; made current last was {newest}"))
    return found


def _log(home: Path) -> list[tuple[str, str]] | None:
    """The releases that the log tells of, the oldest first: name and digest; None without a log."""
    try:
        lines = (home / LOG).read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    found = []
    for line in lines:
        try:
            one = json.loads(line)
        except ValueError:
            continue  # the end of what a full disk cut off
        if isinstance(one, dict) and one.get("event") == "published":
            found.append((str(one.get("name")), str(one.get("sha256"))))
    return found


def _form(place: Path, told: Mapping[str, Any]) -> Iterator[Problem]:
    """What shows in the manifest even without a log."""
    try:
        written: bytes | None = files.canonical(told)
    except ValueError:  # half a character
        written = None
    if files.plain_bytes(place / MANIFEST) != written:
        yield Problem(MANIFEST, "it is not in the form in which it was written")
    if other := sorted(set(told) ^ KEYS):
        yield Problem(MANIFEST, f"it has other keys than it was published with: {', '.join(other)}")


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
