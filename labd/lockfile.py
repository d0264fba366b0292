"""Who holds a lock file: what is alive is known by its lock, never by a pid alone. Light."""

from __future__ import annotations

import os


def holder(path: str) -> int | None:
    """The pid that the holder of the lock at `path` has written into it; None when it is free or not there."""
    import fcntl

    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        text = os.read(fd, 32).strip()
        return int(text) if text.isdigit() else None
    finally:
        os.close(fd)
    return None
