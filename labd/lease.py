"""Who may write to a console just now: one writer at a time, with a time to live and a holder that everybody sees.

A lease is held by whoever types for longer than one write: an interactive session, a `run`, a paced or echoed send.
Others who would write are refused, wait, or take it over; readers are never limited. The bench owns the one table.
The methods are thread-safe, as a call that is cancelled gives its lease back from its own thread. Nothing here writes
to a port or reads one, and nothing outlives the daemon (claims do: `labd.claims`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from labd.claims import when
from labd.errors import Busy

Key = tuple[str, str, str]
"""The lab file's real path, the target, the interface."""

INTERACTIVE = "an interactive session"
"""What a lease is held for by somebody who types at a terminal."""

_REMEMBERED = 200


@dataclass(frozen=True)
class Lease:
    """`what` it is held for, by `who` (face, pid, user), since and until when (monotonic seconds)."""

    id: int
    key: Key
    who: Mapping[str, Any]
    what: str
    since: float
    until: float

    def plain(self) -> dict[str, Any]:
        """For status and answers; times as wall clock (seconds since 1970) and seconds left."""
        now = time.monotonic()
        return {
            "what": self.what,
            "who": dict(self.who),
            "since": round(time.time() - (now - self.since), 3),
            "until": round(time.time() + (self.until - now), 3),
            "left_s": round(max(0.0, self.until - now), 1),
        }


class Leases:
    """The table. `changed()` is called, in whatever thread, when a lease was given back or taken away."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._held: dict[Key, Lease] = {}
        self._taken: dict[int, Lease] = {}  # leases that were taken over, by id: by whom
        self._next = 0

    def holder(self, key: Key) -> Lease | None:
        """Who holds the console; None when nobody does, or his time is over."""
        with self._lock:
            return self._holder(key)

    def take(self, key: Key, who: Mapping[str, Any], what: str, ttl_s: float, *, force: bool = False) -> Lease:
        """Hold the console for at most `ttl_s` seconds. Raises Busy while another holds it, unless `force`."""
        now = time.monotonic()
        with self._lock:
            held = self._holder(key)
            if held is not None and not force:
                raise busy(held)
            self._next += 1
            lease = self._held[key] = Lease(self._next, key, dict(who), what, now, now + ttl_s)
            if held is not None:
                self._taken[held.id] = lease
                while len(self._taken) > _REMEMBERED:
                    del self._taken[next(iter(self._taken))]
        if held is not None:
            self._changed()
        return lease

    def renew(self, lease: Lease, ttl_s: float) -> Lease:
        """Hold it for `ttl_s` seconds from now. Raises Busy when it was taken over or, once over, given to another."""
        with self._lock:
            held = self._holder(lease.key)
            if lease.id in self._taken or (held is not None and held.id != lease.id):
                raise lost(held or self._taken[lease.id])
            renewed = self._held[lease.key] = replace(lease, until=time.monotonic() + ttl_s)
            return renewed

    def release(self, lease: Lease) -> bool:
        """Give it back; False if it was not held any more."""
        with self._lock:
            held = self._held.get(lease.key)
            ours = held is not None and held.id == lease.id
            if ours:
                del self._held[lease.key]
            self._taken.pop(lease.id, None)
        self._changed()
        return ours

    def admit(self, key: Key, who: Mapping[str, Any], lease: Lease | None = None) -> None:
        """Raise Busy if `who` may not write now: another holds the console, or took over the `lease` that is shown.

        The process that holds a lease may also write beside it.
        """
        with self._lock:
            held = self._holder(key)
            if lease is not None and lease.id in self._taken:
                raise lost(held or self._taken[lease.id])
            if held is None or (lease is not None and held.id == lease.id):
                return
            if lease is None and held.who.get("pid") and held.who.get("pid") == who.get("pid"):
                return
            raise busy(held)

    def _holder(self, key: Key) -> Lease | None:
        held = self._held.get(key)
        if held is not None and held.until <= time.monotonic():
            del self._held[key]
            return None
        return held


def person(who: Mapping[str, Any]) -> str:
    """`ann (cli, pid 4711)`."""
    origin = ", ".join(str(part) for part in (who.get("face"), who.get("pid") and f"pid {who['pid']}") if part)
    user = str(who.get("user") or "")
    return f"{user} ({origin})" if user and origin else user or origin or "somebody"


def busy(held: Lease) -> Busy:
    """The refusal: who writes, what for, until when."""
    left = max(0.0, held.until - time.monotonic())
    return Busy(
        f"{held.key[1]}.{held.key[2]} is written to by {person(held.who)}: {held.what}, "
        f"until {when(time.time() + left)} ({left:.0f} s from now) at the latest; nothing was sent",
        hint="again with --wait SECONDS, or --take to take over",
    )


def lost(now: Lease) -> Busy:
    """What the one who held it is told."""
    return Busy(
        f"{now.key[1]}.{now.key[2]} was taken over by {person(now.who)}: {now.what}; nothing more was sent",
        hint="labd serial show",
    )
