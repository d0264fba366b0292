"""A bundle on its way between machines: packed as bytes where its trial ran, held against its hashes where it lands.

What lands is put in place by the same rules as a bundle that was made there: gathered apart, sealed, renamed.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness import bundle, files


@dataclass(frozen=True)
class Parcel:
    """The files of a bundle, by their names in it, and the SHA-256 of its trial.json, which binds the rest."""

    files: Mapping[str, bytes]
    sha256: str


class Damaged(ValueError):
    """A parcel is not the bundle that was sent."""


def pack(directory: Path) -> Parcel:
    """The bundle in `directory`. Raises OSError."""
    found = {path.relative_to(directory).as_posix(): path.read_bytes()
             for path in sorted(directory.rglob("*")) if path.is_file() and not path.is_symlink()}  # fmt: skip
    return Parcel(found, files.digest(found["trial.json"]))


def land(parcel: Parcel, trials: Path, identity: str, sealed: Callable[[str, str], None]) -> Path:
    """Put the bundle in place under `trials`; returns its directory. Raises Damaged, FileExistsError, OSError."""
    _whole(parcel, identity)
    gathered = bundle.Bundle(trials, identity)
    try:
        for name, data in parcel.files.items():
            gathered.put(name, data)
        return gathered.place(sealed)
    except BaseException:
        gathered.discard()
        raise


def _whole(parcel: Parcel, identity: str) -> None:
    """Raises Damaged where a file is not what trial.json says, or trial.json not what was told of it."""
    found = dict(parcel.files)
    raw = found.pop("trial.json", b"")
    if files.digest(raw) != parcel.sha256:
        raise Damaged("trial.json is not the one that was sent")
    told = json.loads(raw)
    if told.get("id") != identity:
        raise Damaged(f"it is of another trial, {told.get('id')}")
    wanted = told["files"]
    for name in sorted({*found, *wanted}):
        if ".." in PurePosixPath(name).parts or name.startswith("/"):
            raise Damaged(f"{name!r} is no name in a bundle")
        if name not in found or name not in wanted or files.digest(found[name]) != wanted[name]:
            raise Damaged(f"{name} is not what was sent")
