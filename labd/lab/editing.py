"""One edit of a lab file, from lock to rename: read under the lock, change, hold against the oracle, check, replace.

The only code that writes a lab. Called through `labd.lab.edit`; the operations' handlers are its callers.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from labd import paths
from labd.errors import Busy, LabdError
from labd.lab import reading, storage
from labd.lab.change import Change
from labd.lab.rewrite import rewritten
from labd.lab.validate import problems

#: What a new lab begins with.
HEADING = "# The lab: what hardware is wired to what. `labd config show` prints it, `labd --help` edits it.\n"

#: How often to start again when an editor changes the file under us.
ATTEMPTS = 5

Changer = Callable[[dict[str, Any]], Iterable[Change]]


class Edited:
    """What an edit did: the digests before (None: there was no file) and after, whether it changed or made the file.

    `texts`: what the file held before and after, for whoever wants to show the difference.
    """

    __slots__ = ("after", "before", "changed", "created", "texts")

    def __init__(self, before: str | None, after: str, *, changed: bool, created: bool,
                 texts: tuple[str, str] = ("", "")) -> None:  # fmt: skip
        self.before = before
        self.after = after
        self.changed = changed
        self.created = created
        self.texts = texts


def edit(path: str, change: Changer, env: Mapping[str, str]) -> Edited:
    """Change the lab at `path`; make it first if it is missing.

    Raises what `change` raises, Busy if another writer keeps the lock or an editor keeps saving, NotFound or
    LabdError if the file cannot be read or does not validate, now or afterwards. The file is untouched then.
    """
    if not os.path.lexists(path):
        list(change({}))  # raises before anything is made
        _make_home(path, env)
    for _ in range(ATTEMPTS):
        with storage.locked(path) as real:
            try:
                return _edit(path, real, change, env)
            except storage.Moved:
                continue
    raise Busy(f"{path} was saved by somebody else each time it was about to be written",
               hint=f"fuser -v {shlex.quote(path)}")  # fmt: skip


def foresee(path: str, change: Changer, env: Mapping[str, str]) -> Edited:
    """What `edit` would do to the lab at `path`; writes nothing, takes no lock. Raises what it would raise."""
    return _rewritten(path, os.path.realpath(path), change, env)[0]


def create(path: str, env: Mapping[str, str]) -> Edited:
    """Make an empty lab at `path`. Raises LabdError if there is a file already."""
    _make_home(path, env)
    with storage.locked(path) as real:
        if os.path.lexists(real):
            raise LabdError(f"{path} exists already; it is left as it is", hint="labd config show")
        raw = HEADING.encode()
        try:
            storage.replace(path, real, raw, None)
        except storage.Moved:
            raise LabdError(f"{path} was made by somebody else just now", hint="labd config show") from None
        return Edited(None, reading.digest(raw), changed=True, created=True)


def _edit(path: str, real: str, change: Changer, env: Mapping[str, str]) -> Edited:
    done, raw, found = _rewritten(path, real, change, env)
    if done.changed:
        storage.replace(path, real, raw, found)
    return done


def _rewritten(path: str, real: str, change: Changer, env: Mapping[str, str]
               ) -> tuple[Edited, bytes, os.stat_result | None]:  # fmt: skip
    """What the edit comes to, the bytes that the file has to have then, and the file that it was made from."""
    source = reading.read_source(real, env) if os.path.lexists(real) else reading.Source(HEADING.encode(), None, path)
    created = source.found is None
    data = reading.parse(source.text, path)
    reading.check(data, source.text, path)
    text, after = rewritten(source.text, data, list(change(data)))
    _check_after(after, path)
    raw = (("\ufeff" if source.bom else "") + text).encode()
    done = Edited(None if created else source.digest, reading.digest(raw), changed=raw != source.raw or created,
                  created=created, texts=("" if created else source.text, text))  # fmt: skip
    return done, raw, source.found


def _check_after(after: dict[str, Any], path: str) -> None:
    """Raise LabdError unless what the new text holds is a valid lab."""
    wrong = problems(after)
    if wrong:
        raise LabdError(f"{wrong[0].message}; {path} is as it was", near=wrong[0].near, hint=wrong[0].hint or None)


def _make_home(path: str, env: Mapping[str, str]) -> None:
    """Our own configuration directory is made at need; a directory that somebody named has to be there."""
    directory = os.path.dirname(os.path.realpath(path))
    if directory == os.path.realpath(paths.config_dir(env)):
        storage.make_directory(directory)
