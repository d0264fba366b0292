"""The lab file: the reviewed source of truth about what hardware is wired to what (design section 5).

`load` reads it, `edit` changes it, `Lab` answers questions about it. Everybody may call these three. Nothing here
opens a device, starts a process or knows an operation. Reading is on the path of every command, so this module and
the warm path (`cache`, `model`) import next to nothing; parsing and editing are imported when they are needed.
"""

import os

from labd import paths
from labd.lab.model import Lab, in_lab, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from labd.lab.change import Change
    from labd.lab.editing import Edited

__all__ = ["Lab", "edit", "foresee", "load"]


def load(path: str, env: "Mapping[str, str]") -> Lab:
    """The lab at `path`, valid. From the cache under the state directory of `env` when the file is as it was.

    Raises NotFound when there is no file, and LabdError, naming file, line and column, when it cannot be read,
    parsed or accepted.
    """
    from labd.lab import cache

    words = _words(path, env)
    key = cache.key_of(path)
    kept = cache.recall(path, key, env) if key else None
    if kept is not None:
        return Lab(path, kept[1], kept[0], words)
    from labd.errors import LabdError
    from labd.lab import reading

    try:
        found = reading.read_lab(path, env)
    except LabdError as error:
        error.hint = in_lab(error.hint, words)
        raise
    found.words = words
    return found


def _words(path: str, env: "Mapping[str, str]") -> str:
    """What a command needs to mean this lab: nothing for the one that the environment names."""
    if path == paths.lab_path(env, os.getcwd() if env.get("LABD_LAB", "/")[:1] not in ("/", "~") else "/"):
        return ""
    return f"--lab {quoted(path)} "


def edit(path: str, change: "Callable[[dict[str, Any]], Iterable[Change]]", env: "Mapping[str, str]") -> "Edited":
    """Change the lab at `path` as `change` says, on disk, and nothing else in it.

    `change` gets the data as they are now (under the lock) and returns the changes to make; what it raises comes
    out with the file untouched. A missing file is created. See `labd.lab.editing.edit` for what is raised.
    """
    from labd.lab import editing

    return editing.edit(path, change, env)


def foresee(path: str, change: "Callable[[dict[str, Any]], Iterable[Change]]", env: "Mapping[str, str]") -> "Edited":
    """What `edit` would do, with everything checked that it checks. Nothing is written, not even a lock."""
    from labd.lab import editing

    return editing.foresee(path, change, env)
