"""Reading the log of a target's servers: the last lines, and those that come. Light."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds between looks at a log that is followed.
FOLLOW_SECONDS = 0.2


def lines(path: str, tail: int, wait: Callable[[str, float], bool] | None) -> Iterator[str]:
    """The last `tail` lines; then, while `wait(path, seconds)` says that somebody listens, each that comes."""
    identity, rest = 0, b""
    at = 0
    if os.path.exists(path):
        with open(path, "rb") as file:
            identity = os.fstat(file.fileno()).st_ino
            data = file.read()
        at = len(data)
        *whole, rest = data.split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in whole[max(0, len(whole) - tail) :])
    while wait is not None and wait(path, FOLLOW_SECONDS):
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_ino != identity:
                    identity, at, rest = os.fstat(file.fileno()).st_ino, 0, b""  # it began anew
                file.seek(at)
                data = file.read()
        except OSError:
            continue
        at += len(data)
        *whole, rest = (rest + data).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in whole)
