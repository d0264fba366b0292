"""Whole boards, claimed by people and agents: who, until when, why. Kept in the state directory, over daemons' lives.

A claim keeps others from acting on a target (the shim asks `check` before anything that acts); it never keeps anybody
from reading. Whoever claims goes by a name: `LABD_AS`, else the account's. One file a target, replaced whole. Light:
asking costs one failed `open` where nothing is claimed.
"""

from __future__ import annotations

import os
import time

from labd import paths
from labd.errors import Busy, LabdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

#: Environment variable: the name that claims and records know the caller by.
NAME_VARIABLE = "LABD_AS"


def name_of(env: Mapping[str, str]) -> str:
    """What the caller goes by."""
    named = env.get(NAME_VARIABLE) or env.get("USER") or env.get("LOGNAME")
    if named:
        return named
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (KeyError, ImportError):
        return f"uid {os.getuid()}"


def read(env: Mapping[str, str], lab_path: str, target: str) -> dict[str, Any] | None:
    """The claim in force on a target: `target`, `lab`, `by`, `why`, `since`, `until` (seconds since 1970)."""
    found = _load(_path(env, lab_path, target))
    return found if found is not None and found["until"] > time.time() else None


def all_claims(env: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Every claim in force, of all labs."""
    root = _root(env)
    for lab in sorted(_listed(root)):
        for name in sorted(_listed(os.path.join(root, lab))):
            found = _load(os.path.join(root, lab, name)) if name.endswith(".json") else None
            if found is not None and found["until"] > time.time():
                yield found


def claim(env: Mapping[str, str], lab_path: str, target: str, *, seconds: float, why: str = "",
          take: bool = False) -> dict[str, Any]:  # fmt: skip
    """Claim a target, or one's own claim anew. Raises Busy (who, until when, why) while another has it."""
    by = name_of(env)
    with _Locked(env, lab_path) as directory:
        before = read(env, lab_path, target)
        if before is not None and before["by"] != by and not take:
            raise refusal(before, "labd claim " + target + " --take")
        now = time.time()
        again = before is not None and before["by"] == by
        fields = {"target": target, "lab": os.path.realpath(lab_path), "by": by,
                  "why": why or (before or {}).get("why", "") if again else why,
                  "since": before["since"] if again and before else now, "until": now + seconds}  # fmt: skip
        _store(os.path.join(directory, target + ".json"), fields)
    return {**fields, "taken_from": before["by"] if before is not None and not again else None}


def release(env: Mapping[str, str], lab_path: str, target: str, *, force: bool = False) -> dict[str, Any] | None:
    """Give a target back; what its claim was, None if there was none. Raises Busy for another's, unless `force`."""
    with _Locked(env, lab_path) as directory:
        before = read(env, lab_path, target)
        if before is not None and before["by"] != name_of(env) and not force:
            raise refusal(before, f"labd release {target} --force")
        try:
            os.unlink(os.path.join(directory, target + ".json"))
        except FileNotFoundError:
            pass
    return before


def check(env: Mapping[str, str], lab_path: str, target: str) -> None:
    """Raise Busy if another has claimed the target."""
    found = read(env, lab_path, target)
    if found is not None and found["by"] != name_of(env):
        raise refusal(found, f"ask {found['by']}, or labd claim {target} --take")


def refusal(claim: Mapping[str, Any], hint: str) -> Busy:
    """Who has it, until when, why."""
    why = f" ({claim['why']})" if claim.get("why") else ""
    return Busy(
        f"{claim['target']} is claimed by {claim['by']} until {when(claim['until'])}{why}; nothing was done", hint=hint
    )


def when(wall_s: float) -> str:
    """A time of day as people read it, with the day where it is not today."""
    then = time.localtime(wall_s)
    today = time.localtime()[:3] == then[:3]
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M", then)


# -- files -----------------------------------------------------------------------------------------------------------


def _root(env: Mapping[str, str]) -> str:
    return os.path.join(paths.state_dir(env), "claims")


def _path(env: Mapping[str, str], lab_path: str, target: str) -> str:
    return os.path.join(_root(env), paths.lab_id(lab_path), target + ".json")


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _load(path: str) -> dict[str, Any] | None:
    """The claim in a file; None where there is none that can be read."""
    try:
        with open(path, "rb") as file:
            text = file.read(65536)
    except OSError:
        return None
    import json

    try:
        found = json.loads(text)
        whole = isinstance(found, dict) and isinstance(found["until"], (int, float)) and found["by"] and found["target"]
        return found if whole else None
    except (ValueError, KeyError):
        return None


def _store(path: str, fields: dict[str, Any]) -> None:
    import json

    fresh = f"{path}.{os.getpid()}"
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            json.dump(fields, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError as problem:
        from labd.lab.model import quoted

        if os.path.exists(fresh):
            os.unlink(fresh)
        raise LabdError(
            f"{path} can't be written: {problem.strerror}; {fields['target']} is not claimed",
            hint=f"df -h {quoted(os.path.dirname(path))}",
        ) from None


class _Locked:
    """`with _Locked(env, lab) as directory`: the directory of a lab's claims, this process alone changing it."""

    def __init__(self, env: Mapping[str, str], lab_path: str) -> None:
        self.directory = os.path.join(_root(env), paths.lab_id(lab_path))
        self.fd = -1

    def __enter__(self) -> str:
        import fcntl

        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            self.fd = os.open(os.path.join(self.directory, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise LabdError(f"{self.directory} can't be written: {problem.strerror}") from None
        fcntl.flock(self.fd, fcntl.LOCK_EX)
        return self.directory

    def __exit__(self, *exc: object) -> None:
        os.close(self.fd)
