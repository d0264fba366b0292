"""Who is at the other end of a UNIX socket: (pid, uid), each None where the system does not say."""

from __future__ import annotations

import struct
import sys
from typing import Any

#: `SOL_LOCAL`, `LOCAL_PEERCRED` and `LOCAL_PEERPID` of macOS's <sys/un.h>, which Python does not name.
SOL_LOCAL, LOCAL_PEERCRED, LOCAL_PEERPID = 0, 1, 2


def peer_of(connection: Any) -> tuple[int | None, int | None]:
    """(pid, uid) of the process that connected. uid None means unknown and must be refused."""
    try:
        return _macos(connection) if sys.platform == "darwin" else _linux(connection)
    except (OSError, struct.error):
        return None, None


def _linux(connection: Any) -> tuple[int | None, int | None]:
    """`struct ucred` of unix(7): pid, uid, gid."""
    import socket

    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, 17, 12))  # 17 is SO_PEERCRED
    return pid, uid


def _macos(connection: Any) -> tuple[int | None, int | None]:
    """`struct xucred`: version, uid, …; the pid is an option of its own."""
    _, uid = struct.unpack_from("2I", connection.getsockopt(SOL_LOCAL, LOCAL_PEERCRED, 76))
    (pid,) = struct.unpack("i", connection.getsockopt(SOL_LOCAL, LOCAL_PEERPID, 4))
    return pid, uid
