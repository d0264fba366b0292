"""The processes of ours that belong to one runtime directory, found by their command lines.

The daemon, its capture process and its board players carry the runtime directory in their argv, so that `ps` is
enough to know them.
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


def own_processes(runtime: str, ps: Callable[[], bytes]) -> list[dict[str, Any]]:
    """{pid, command} of each daemon and player of `runtime`. `ps` gives `pid command` lines where there is no /proc."""
    try:
        found = _from_proc()
    except OSError:
        found = _from_ps(ps())
    return [{"pid": pid, "command": " ".join(words)} for pid, words in found if _is_ours(words, runtime)]


def _is_ours(words: list[str], runtime: str) -> bool:
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
