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

from graders import parsed, readiness
from graders.verdict import Verdict
from harness import files, grading
from labd.lab.redact import redact

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
    withheld: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def data(self) -> dict[str, list[str]]:
        """Plain data."""
        return {"redacted": self.redacted, "withheld": self.withheld, "unread": self.unread}


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
    """A copy of a trial's bundle, with its verdict, in a run's directory that has its log. Raises NotTheSame.

    Where the copy is another, its trial.json is issued anew, and the log gets the line that binds it.
    """
    verdict = grading.judge(source)
    before = files.read_json(source / "trial.json")
    told = _copied(source, target, [name for name in before["files"] if name.split("/")[0] != "grades"])
    log = target.parent.parent / "log.jsonl"
    unbound = log.read_bytes()

    def same(record: Mapping[str, Any]) -> bool:
        if record == before:
            shutil.copyfile(source / "trial.json", target / "trial.json")
        else:
            files.write_json(target / "trial.json", record)
            digest = files.digest((target / "trial.json").read_bytes())
            lines = {"event": "redacted", "id": target.name}, {"event": "sealed", "id": target.name, "sha256": digest}
            log.write_bytes(unbound + b"".join(json.dumps(line, sort_keys=True).encode() + b"\n" for line in lines))
        return _found(grading.judge(target)) == _found(verdict)

    _settle(source, target, "trial.json", told, same)
    grading.grade(target)
    return told


def _found(verdict: Verdict) -> list[Any]:
    """What a verdict says, without the words in which it says so: those may quote a secret."""
    asked = [[(one.name, one.ok) for one in some] for some in (verdict.checks, verdict.traps)]
    return [verdict.verdict, *asked, [(one.name, one.verdict) for one in verdict.stages], dict(verdict.scores)]


def measurement(source: Path, target: Path) -> Told:
    """A copy of a measurement of readiness, with its result. Raises NotTheSame, graders.readiness.NotReadiness."""
    before = _scored(source)
    told = _copied(source, target, list(files.read_json(source / "manifest.json")["files"]))

    def same(record: Mapping[str, Any]) -> bool:
        files.write_json(target / "manifest.json", record)
        return _scored(target) == before

    _settle(source, target, "manifest.json", told, same)
    files.write_json(target / "result.json", readiness.grade(target))
    return told


def _scored(place: Path) -> list[Any]:
    told = readiness.grade(place)
    return [told["domains"], told["overall"], told["missing"], [(one["id"], one["verdict"]) for one in told["checks"]]]


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


def _settle(source: Path, target: Path, name: str, told: Told, same: Callable[[Mapping[str, Any]], bool]) -> None:
    """Write the copy's manifest, of that name, with as little in it that is no text as its findings need.

    `same` puts a manifest in place and says whether the copy still comes to what its original does. Raises NotTheSame.
    """
    before = files.read_json(source / name)

    def record() -> dict[str, Any]:
        hashes = {one: files.digest((target / one).read_bytes()) for one in before["files"] if (target / one).is_file()}
        clean = {**value(before), "files": hashes}
        if clean == before and not told.unread:
            return clean
        return {**clean, **told.data(), "original": files.digest((source / name).read_bytes())}

    if not same(record()):
        raise NotTheSame(f"{source.name}: without its secrets ({', '.join(told.redacted)}) it comes to something else")
    for one in list(told.unread):
        (target / one).unlink()
        told.unread.remove(one)
        told.withheld.append(one)
        if same(record()):
            continue
        told.withheld.remove(one)
        told.unread.append(one)
        shutil.copyfile(source / one, target / one)
        if any(redact(seen) != seen for seen in _readable((source / one).read_bytes())):
            raise NotTheSame(f"{source.name}: {one} holds what looks like a secret, and what was found needs it")
    same(record())


def _readable(data: bytes) -> list[str]:
    """What can be read in bytes that are no text. What is packed can't be: it is told as unread."""
    return [found.decode() for found in re.findall(rb"[\t\x20-\x7e]{12,}", data)]
