"""Copies of bundles and measurements without the secrets that can be recognised, which still say the very same.

A text becomes one with `***`; its hash is told anew, with that of the original. What is no text can't be blanked: it is
left out where grading does not need it, and named where it does. A copy that grades to something else is refused.
"""

import base64
import itertools
import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graders import parsed
from harness import files, grading
from labd.lab.redact import redact, redacted

#: Keys whose text is a secret whatever it looks like.
_SECRET = re.compile(
    r"(?i)(?:^|[\w.-]*[_.-])(?:password|passwd|passphrase|secret|token|credentials?|api_?key|private_?key)$"
)
_FLAG = re.compile(r"--?[\w-]+")

#: Bytes of these are offsets of something else, so that a text in them can't change its length.
_FIXED = (".raw", ".idx", ".bin")

HIDDEN = "***"


class NotTheSame(ValueError):
    """A redacted copy says something else than its original, or holds a secret that can't be blanked."""


@dataclass
class Told:
    """What was done to the files of one copy: which were redacted, left out, or kept without having been read."""

    redacted: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def data(self) -> dict[str, list[str]]:
        """Plain data."""
        return {"redacted": self.redacted, "left_out": self.left_out, "unread": self.unread}


# -- texts ------------------------------------------------------------------------------------------------------------


def text(data: bytes, name: str) -> bytes | None:
    """The file without its secrets; the same object where it has none; None where it is no text that can be changed.

    JSON and JSON Lines are redacted value by value, so that they stay what they are.
    """
    if name.endswith(_FIXED):
        return data if redact(seen := data.decode("latin-1")) == seen else None
    try:
        plain = data.decode()
    except UnicodeDecodeError:
        return None
    if "\0" in plain:
        return None
    if name.endswith(".json"):
        return _whole(data, plain)
    if name.endswith(".jsonl"):
        lines = data.split(b"\n")
        clean = [_line(line) for line in lines]
        return data if clean == lines else b"\n".join(clean)
    return data if (clear := redact(plain)) == plain else clear.encode()


def _whole(data: bytes, plain: str) -> bytes:
    try:
        told = parsed.from_json(data)
    except ValueError:
        return redact(plain).encode()
    clean = value(told)
    return data if clean == told else files.canonical(clean)


def _line(line: bytes) -> bytes:
    try:
        told = parsed.from_json(line)
    except ValueError:
        return redact(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    clean = value(told)
    return line if clean == told else json.dumps(clean, sort_keys=True).encode()


def value(told: Any) -> Any:
    """Plain data without its secrets: in texts, behind a flag in a list of words, under a key that says so."""
    if isinstance(told, str):
        return _nested(told)
    if isinstance(told, dict):
        return {key: _under(key, one) for key, one in told.items()}
    if isinstance(told, list):
        words = [value(one) for one in told]
        for at, (flag, word) in enumerate(itertools.pairwise(told)):
            both = isinstance(flag, str) and isinstance(word, str) and _FLAG.fullmatch(flag)
            if both and word and not word.startswith("-") and redact(f"{flag} x") == f"{flag} {HIDDEN}":
                words[at + 1] = HIDDEN
        return words
    return told


def _nested(told: str) -> str:
    """A text; one that is JSON itself (what a model's tool was given) is redacted as such."""
    if told.startswith(("{", "[")):
        try:
            inner = parsed.from_json(told.encode("utf-8", "surrogatepass"))
        except ValueError:
            return redact(told)
        clean = value(inner)
        return told if clean == inner else json.dumps(clean)
    return redact(told)


def _under(key: str, one: Any) -> Any:
    if isinstance(one, str) and one and _SECRET.fullmatch(key):
        return HIDDEN
    if isinstance(one, str) and key.endswith("b64"):
        try:
            raw = base64.b64decode(one, validate=True).decode("latin-1")
        except ValueError:
            return redact(one)
        clean = redact(raw)
        return one if clean == raw else base64.b64encode(clean.encode("latin-1")).decode()
    return value(one)


# -- copies -----------------------------------------------------------------------------------------------------------


def bundle(source: Path, target: Path) -> Told:
    """A copy of a trial's bundle in a run's directory that is there already, with its verdict. Raises NotTheSame.

    `target`'s run has the log's line that binds the copy (`sealed` again, behind `redacted`), if it differs.
    """
    verdict = grading.judge(source)
    manifest = files.read_json(source / "trial.json")
    told = _copied(source, target, [name for name in manifest["files"] if name.split("/")[0] != "grades"])
    record = _reissued(value(manifest), told, target, files.digest((source / "trial.json").read_bytes()))

    def same() -> bool:
        _bind(target, record)
        return bool(redacted(grading.judge(target).as_dict()) == redacted(verdict.as_dict()))

    _without_unread(source, target, told, record, same)
    log = target.parent.parent / "log.jsonl"
    with log.open("a") as file:
        if record != manifest:
            file.write(json.dumps({"event": "redacted", "id": target.name, **told.data()}, sort_keys=True) + "\n")
    grading.grade(target)
    return told


def _bind(target: Path, record: Mapping[str, Any]) -> None:
    """Write trial.json, and the line of the run's log that knows it."""
    files.write_json(target / "trial.json", record)
    digest = files.digest((target / "trial.json").read_bytes())
    with (target.parent.parent / "log.jsonl").open("a") as file:
        file.write(json.dumps({"event": "sealed", "id": target.name, "sha256": digest}, sort_keys=True) + "\n")


def measurement(source: Path, target: Path) -> Told:
    """A copy of a measurement of readiness, with its result. Raises NotTheSame, graders.readiness.NotReadiness."""
    from graders import readiness as grader

    before, manifest = grader.grade(source), files.read_json(source / "manifest.json")
    told = _copied(source, target, list(manifest["files"]))
    record = _reissued(manifest, told, target, files.digest((source / "manifest.json").read_bytes()))

    def same() -> bool:
        files.write_json(target / "manifest.json", record)
        return bool(redacted(grader.grade(target)) == redacted(before))

    _without_unread(source, target, told, record, same)
    files.write_json(target / "result.json", grader.grade(target))
    return told


def _copied(source: Path, target: Path, names: list[str]) -> Told:
    told = Told()
    target.mkdir(parents=True)
    for name in sorted(names):
        data = (source / name).read_bytes()
        clean = text(data, name)
        if clean is None:
            told.unread.append(name)
        elif clean != data:
            told.redacted.append(name)
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(data if clean is None else clean)
    return told


def _reissued(manifest: Mapping[str, Any], told: Told, target: Path, original: str) -> dict[str, Any]:
    """The manifest of a copy; the very same one where nothing was changed."""
    record = dict(manifest)
    if told.redacted:
        hashes = {name: files.digest((target / name).read_bytes()) for name in record["files"]}
        record |= {"files": hashes, "redacted": told.redacted, "original": original}
    return record


def _without_unread(source: Path, target: Path, told: Told, record: dict[str, Any], same: Callable[[], bool]) -> None:
    """Leave out what is no text, all of it or what of it is not needed. `record` is changed; raises NotTheSame."""
    for name in list(told.unread):
        kept = dict(record["files"])
        record["files"] = {one: digest for one, digest in kept.items() if one != name}
        (target / name).unlink()
        if same():
            told.unread.remove(name)
            told.left_out.append(name)
            continue
        record["files"] = kept
        shutil.copyfile(source / name, target / name)
        seen = (source / name).read_bytes().decode("latin-1")
        if redact(seen) != seen:
            raise NotTheSame(f"{source.name}: {name} holds what looks like a secret, and its verdict needs it")
    if told.left_out or told.unread:
        record |= {"unread": told.unread, "withheld": told.left_out}
        record.setdefault("original", files.digest((source / _manifest_name(source)).read_bytes()))
    if not same():
        raise NotTheSame(f"{source.name}: without its secrets ({', '.join(told.redacted)}) it comes to another verdict")


def _manifest_name(source: Path) -> str:
    return "trial.json" if (source / "trial.json").is_file() else "manifest.json"
