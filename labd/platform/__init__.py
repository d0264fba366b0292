"""Every difference between Linux and macOS, behind one interface.

`current()` gives the module of this system; the functions that it must have are `Platform`. Channels, the capture
loop and the inventory call it; nothing here knows a lab, a journal or a face, and nothing here starts a process.
"""

import sys
from typing import Any, Protocol, cast


class Poller(Protocol):
    """Many descriptors behind one that an event loop can wait on. Level-triggered. Not thread-safe."""

    safety_poll_s: float | None
    """How often every port must be looked at anyway, since this system's notices can't be trusted. None: never."""

    def fileno(self) -> int:
        """The descriptor that is readable when any other is."""

    def add(self, fd: int) -> None:
        """Watch `fd` for input and hang-up. Raises OSError when the system can't by any means."""

    def remove(self, fd: int) -> None:
        """Stop watching `fd`; must come before its close. Unknown descriptors are ignored."""

    def ready(self) -> list[tuple[int, bool]]:
        """What is ready now, without waiting: (descriptor, hung up)."""

    def done(self, fd: int) -> None:
        """`fd` has been read; report it again when it is ready again."""

    def hung_up(self, fd: int) -> bool:
        """Whether an empty read of `fd` means that its other end is gone."""

    def close(self) -> None:
        """Free what it holds."""


class Platform(Protocol):
    """What each system's module offers."""

    def new_poller(self) -> Poller:
        """A poller for the capture loop."""

    def is_pty(self, path: str) -> bool:
        """Whether `path` is a pseudo-terminal, and so has neither modem lines nor a baud rate. False if absent."""

    def callout(self, path: str) -> str:
        """The node to open for `path`: on macOS `cu.X` in place of `tty.X`, whose open waits for a carrier."""

    def holders(self, path: str, max_age_s: float = 0.0) -> list[dict[str, Any]]:
        """Which other processes have the device `path` open: `{pid, command, master}`; `master`: a PTY's far end.

        The answer may be `max_age_s` old, which lets many askers share one walk through all processes. This process
        and those in `OURS` are left out.

        Empty when nobody has, when the path is absent, and when this system won't tell.
        """

    def boot_id(self) -> str:
        """A string that changes with every start of the machine; "unknown" when the system has none."""

    def serial_ports(self) -> list[dict[str, Any]]:
        """The serial ports of this machine, sorted by path.

        Each has `path` (the most stable name), `node`, `by_id`, `by_path`, `description`, `manufacturer`,
        `product`, `vid`, `pid`, `serial`, `interface`, `topology`, `driver`, `latency_ms`, `twins` (nodes that
        can't be told apart by id); None where the system doesn't know.
        """

    def identity(self, node: str) -> dict[str, Any] | None:
        """What makes the adapter behind `node` recognisable when it returns under another name; None if nothing."""

    def find(self, identity: dict[str, Any]) -> str | None:
        """The node where the adapter with this identity is now."""

    def line_errors(self, fd: int) -> dict[str, int] | None:
        """The driver's counts of lost and broken bytes since boot; None when it doesn't count."""

    def low_latency(self, fd: int, node: str) -> int | None:
        """Ask the adapter on the open `fd` to hand over bytes at once; how many ms it still waits, None if unknown."""


OURS: set[int] = set()
"""The pids of our own helpers (a capture process) that hold our ports with us: no holder that anybody is warned of."""


def current() -> Platform:
    """The module for the system that we run on."""
    if sys.platform == "darwin":
        from labd.platform import macos

        return cast(Platform, macos)
    from labd.platform import linux

    return cast(Platform, linux)


def same_adapter(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    """Whether two identities are one adapter: by its serial number if that is its alone, else by the socket it is in.

    `twins` in `one` says that another adapter with the same ids, and the same serial number or none, was seen.
    """
    if one is None or other is None:
        return False
    keys = ["vid", "pid", "interface", "serial" if one.get("serial") and not one.get("twins") else "topology"]
    return all(one.get(key) == other.get(key) for key in keys)
