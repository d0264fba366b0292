"""Which of the lab's hosts is this machine. Asks the machine for its name, at most; light."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def is_here(name: "str | None", table: "Mapping[str, Any]") -> bool:
    """Whether a host of the lab is this machine: `local`, reached as `local`, or of this machine's full name."""
    if name in (None, "local") or table.get("ssh") == "local":
        return True
    wanted, own = str(table.get("hostname") or "").lower(), own_name().lower()
    if not wanted or wanted.split(".")[0] != own.split(".")[0]:
        return False
    if wanted == own:
        return True
    import socket  # a machine that calls itself `bench1` may be bench1.example.com: only then is a resolver asked

    return wanted == socket.getfqdn().lower()


def own_name() -> str:
    """What this machine calls itself."""
    return os.uname().nodename
