"""The processes of ours that belong to one runtime directory, found by their command lines.

The daemon, its capture process, its board players and what serves network boot carry the runtime directory in their
argv, so that `ps` is enough to know them.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MODULES = (
    "labd.daemon", "labd.capture_process", "labd.netboot.keeper", "labd.video.worker", "loopback", "loopback.machine",
)  # fmt: skip

#: Of these, what holds ports, screens and hooks by itself; its last word is the runtime directory.
_SERVERS = ("labd.daemon", "labd.capture_process")


def own_processes(runtime: str, ps: Callable[[], bytes]) -> list[dict[str, Any]]:
    """{pid, command} of each process that serves `runtime`. `ps` gives `pid command` lines where there is no /proc."""
    return [{"pid": pid, "command": " ".join(words)} for pid, words in _all(ps) if _is_ours(words, runtime)]


def elsewhere(runtime: str, ps: Callable[[], bytes]) -> list[dict[str, Any]]:
    """{runtime, pids} of each other runtime directory of this user that a daemon or its capture process serves."""
    found: dict[str, list[int]] = {}
    for pid, words in _all(ps):
        if "-m" not in words[:-2] or words[words.index("-m") + 1] not in _SERVERS:
            continue
        if words[-1] != runtime and _is_mine(words[-1]):
            found.setdefault(words[-1], []).append(pid)
    return [{"runtime": path, "pids": sorted(pids)} for path, pids in sorted(found.items())]


def _is_mine(path: str) -> bool:
    try:
        return os.stat(path).st_uid == os.getuid()
    except OSError:
        return False


def with_argument(program: str, argument: str, ps: Callable[[], bytes]) -> list[int]:
    """The processes of `program` that have exactly this argument."""
    return [pid for pid, words in _all(ps) if os.path.basename(words[0]) == program and argument in words[1:]]


def groups_of(parent: int, ps: Callable[[], bytes]) -> list[int]:
    """The process groups that children of `parent` lead. `ps` gives `pid ppid pgid` lines."""
    rows = [line.split() for line in os.fsdecode(ps()).splitlines()]
    return [int(pid) for pid, above, group in rows if above == str(parent) and pid == group]


def end_processes(pids: list[int], grace_s: float = 3.0) -> None:
    """Ask processes that are not our children to end, and end those that have not after `grace_s`."""
    import signal
    import time

    for number, seconds in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 1.0)):
        for pid in pids:
            try:
                os.kill(pid, number)
            except OSError:
                pass
        until = time.monotonic() + seconds
        while (pids := [pid for pid in pids if lives(pid)]) and time.monotonic() < until:
            time.sleep(0.02)
        if not pids:
            return


def lives(pid: int) -> bool:
    """Whether there is a process of this number, of whoever."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _all(ps: Callable[[], bytes]) -> list[tuple[int, list[str]]]:
    try:
        return _from_proc()
    except OSError:
        return _from_ps(ps())


def _is_ours(words: list[str], runtime: str) -> bool:
    if os.path.basename(words[0]) == "dnsmasq":
        return any(word.startswith(f"--dhcp-leasefile={runtime}/") for word in words)
    if "-m" not in words[:-1] or words[words.index("-m") + 1] not in MODULES:
        return False
    return any(word == runtime or word.startswith(runtime + "/") for word in words)


def _from_proc() -> list[tuple[int, list[str]]]:
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = os.fsdecode(file.read()).split("\0")[:-1]
        except OSError:
            continue  # it ended meanwhile, or is somebody else's
        if words:
            found.append((int(name), words))
    return found


def _from_ps(text: bytes) -> list[tuple[int, list[str]]]:
    lines = [line.split() for line in os.fsdecode(text).splitlines()]
    return [(int(words[0]), words[1:]) for words in lines if len(words) > 1 and words[0].isdigit()]
