"""Writing to consoles as the bench offers it: leases, sends under them, breaks. A part of `labd.bench`, on its loop."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import trio

from labd.errors import Busy, Unreachable
from labd.lease import INTERACTIVE, Key, Lease, Leases

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from labd.channels.serial import SerialChannel
    from labd.lab import Lab

#: A wait for a lease looks again after this long (seconds) at the latest: leases also run out.
LOOK_AGAIN_S = 0.5


class Writers:
    """The leases of all consoles, and what may be done under them. `channel_of` gives a target's channel, if any."""

    def __init__(self, channel_of: Callable[[str, str], SerialChannel | None]) -> None:
        self._channel_of = channel_of
        self._changed = trio.Event()
        self._token = trio.lowlevel.current_trio_token()
        self.leases = Leases(self._tell_changed)
        self.on_send: Callable[[Key, int, bytes], None] = lambda key, rx, data: None

    async def hold(
        self,
        lab: Lab,
        target: str,
        interface: str,
        who: Mapping[str, Any],
        ttl_s: float,
        *,
        take: bool = False,
        wait_s: float = 0.0,
        what: str = "a session",
    ) -> Lease:
        """Become the console's writer for `ttl_s` seconds at most. Waits up to `wait_s` while another is, or takes
        over. Raises Busy (who holds it, and until when), Unreachable where nothing captures the console.
        """
        key = key_of(lab, target, interface)
        self._captured(key)
        give_up = trio.current_time() + wait_s
        while True:
            before = self.leases.holder(key)
            try:
                lease = self.leases.take(key, who, what, ttl_s, force=take)
            except Busy:
                left = give_up - trio.current_time()
                if left <= 0:
                    raise
                with trio.move_on_after(min(left, LOOK_AGAIN_S)):
                    await self._changed.wait()
                continue
            if before is not None:
                self._captured(key).tell(
                    "lease", only=interface, what="taken over", by=dict(who), to=what, was=before.plain()
                )
            return lease

    async def send(
        self,
        lab: Lab,
        target: str,
        interface: str,
        data: bytes,
        *,
        pace_ms: float,
        who: dict[str, Any],
        timeout_s: float,
        line_pace_ms: float = 0.0,
        lease: Lease | None = None,
    ) -> dict[str, Any]:
        """Write bytes to an open interface. Raises Unreachable when it is not captured or down, Busy while another
        holds its lease; nothing is queued.

        `seq` in the answer is the last line that was whole before: what comes after it may be an answer. `failing` says
        why the journal can't be written, where it can't.
        """
        key = key_of(lab, target, interface)
        channel = self._captured(key)
        self.leases.admit(key, who, lease)
        rx, seq = channel.position(interface)
        channel.check_open(interface)  # what can't be sent has no echo, and whoever looks for one would look in vain
        self.on_send(key, rx, data)

        def may_go_on() -> None:
            self.leases.admit(key, who, lease)

        held = self.leases.holder(key)
        typed = held is not None and held.what == INTERACTIVE and held.who.get("pid") == who.get("pid")
        sent = await channel.send(interface, data, pace_ms=pace_ms, who=who, timeout_s=timeout_s,
                                  line_pace_ms=line_pace_ms, may_go_on=may_go_on, typed=typed)  # fmt: skip
        failing = next((row["failing"] for row in channel.status() if row["name"] == interface), None)
        return {**sent, "seq": seq, **({"failing": failing} if failing else {})}

    async def break_(
        self, lab: Lab, target: str, interface: str, ms: float, who: dict[str, Any], lease: Lease | None = None
    ) -> dict[str, Any]:
        """Hold the line in break for `ms` milliseconds. Raises Unreachable where there is no such thing, Busy."""
        key = key_of(lab, target, interface)
        channel = self._captured(key)
        self.leases.admit(key, who, lease)
        return {"target": target, **await channel.send_break(interface, ms, who=who)}

    def holder(self, key: Key) -> dict[str, Any] | None:
        """Who writes to a console just now, for status. Thread-safe."""
        lease = self.leases.holder(key)
        return None if lease is None else lease.plain()

    def _captured(self, key: Key) -> SerialChannel:
        channel = self._channel_of(key[0], key[1])
        if channel is None:
            raise Unreachable(
                f"{key[1]}.{key[2]} is not being captured; nothing was sent", hint=f"labd serial watch {key[1]}"
            )
        return channel

    def _tell_changed(self) -> None:
        try:
            self._token.run_sync_soon(self._wake)
        except trio.RunFinishedError:
            pass

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def key_of(lab: Lab, target: str, interface: str) -> Key:
    """What a console is known by in the daemon."""
    return (os.path.realpath(lab.path), target, interface)
