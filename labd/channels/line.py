"""One serial interface: opened, captured, watched over, reopened when it comes back, closed.

A `Line` is one task. It owns its port and its journal; everything that happens to the port becomes an event there.
It survives its device (back-off, at most 0.25 s between tries), its own mistakes (an `error` event, then it starts
over), and cancellation (port and journal are closed all the same). It never sees another line.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import trio

from labd.channels import adopting, sense, watchover
from labd.channels.capturer import Capturer, LineJournal, Tap, When
from labd.channels.netport import open_board, open_net
from labd.channels.opening import close_in_thread, open_in_thread
from labd.channels.port import Port, Settings, Terminal, change_settings, open_port, terminal_of
from labd.channels.portmodel import NETWORK
from labd.channels.typed import Typed
from labd.errors import LabdError, Unreachable
from labd.lab.redact import redact
from labd.platform import current

RETRY_FIRST_S = 0.02
RETRY_MOST_S = 0.25
CRASH_PAUSE_S = 1.0
SYNC_EVERY_S = 1.0
RETRY_MOST_NET_S = 0.4
"""A server that is down is asked less often than a socket for a plug is looked at."""

RETRY_MOST_FLAP_S = 5.0
"""A server that takes the connection and hangs up at once is left in peace: each time costs two events."""

STEADY_S = 1.0
"""A port that lived for less is not reopened at once: that would go round and round."""

StartDut = Callable[[str, str, Mapping[str, Any]], Awaitable[str]]


@dataclass(frozen=True)
class Surroundings:
    """What all lines of a channel share. `start_dut(device, interface, config)` gives a simulated board's tty.

    `remembered()` is what a later daemon needs to know of the channel.
    """

    lab_path: str
    target: str
    capturer: Capturer
    start_dut: StartDut
    on_data: Callable[[str], None]
    limiter: trio.CapacityLimiter
    open_journal: Callable[[str], Awaitable[LineJournal]]
    remembered: Callable[[], dict[str, Any]] = dict
    watch_every_s: float = 5.0


class Line:
    """See the module. `state` is "opening", "open", "lost" or "closed"; `why` says what led to the last two."""

    def __init__(
        self, config: Mapping[str, Any], around: Surroundings, adopted: adopting.Adopted | None = None
    ) -> None:
        self.config = dict(config)
        self.name = str(config["name"])
        self.label = f"{around.target}.{self.name}"
        self.around = around
        self.settings = Settings.of(config)
        self.state = "opening"
        self.why = "not opened yet"
        self.port: Port | None = None
        self.journal: LineJournal | None = None
        self.sending = trio.StrictFIFOLock()
        self.wires = trio.StrictFIFOLock()
        self.typed = Typed(self)
        self.sent = 0
        self.opens = adopted.opens if adopted else 0
        self.suspects: list[dict[str, Any]] = []
        self.sensed: dict[str, Any] | None = None
        self.finished = trio.Event()
        self._identity: dict[str, Any] | None = None
        self._terminal: Terminal | None = adopted.terminal if adopted else None
        self._error: LabdError | None = None
        self._outcome = trio.Event()
        self._poke = trio.Event()
        self._gone = trio.Event()
        self.why_unsynced: str | None = None
        self._scope = trio.CancelScope()
        self._lost_at = 0.0
        self._lost_why = ""
        self._unsynced = False
        self._adopted = adopted
        self._tap: Tap | None = None
        self._leaving = False
        self._when: When = {}
        self._owner = f"{self.label} of {around.lab_path}"
        self._stop_reason = "the daemon stops"

    # What the channel calls -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """The line's life: until its first open fails (see `wait_open`), or it is stopped."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._sync_now_and_then)
                    nursery.start_soon(self.typed.tell_in_time)
                    await self._live()
                    nursery.cancel_scope.cancel()
        finally:
            await self._finish()

    async def wait_open(self) -> None:
        """Try now, if it is not open, and raise why that failed: Unreachable, Busy, or the board's trouble."""
        if self.state == "open":
            return
        if self.finished.is_set():
            raise self._error or Unreachable(f"{self.label}: {self.why}")
        self._terminal = None  # who asks for it takes what has the name now
        outcome = self._outcome
        self._poke.set()
        await outcome.wait()
        if self.state != "open":
            raise self._error or Unreachable(f"{self.label}: {self.why}")

    async def stop(self, reason: str) -> None:
        """Close port and journal, with a `closed` event; returns when it is done."""
        self._stop_reason = reason
        self._scope.cancel()
        await self.finished.wait()

    async def leave(self) -> None:
        """End without closing anything for good: a later daemon goes on, and the port is captured meanwhile."""
        self._leaving = True
        self._scope.cancel()
        await self.finished.wait()

    def remember(self) -> None:
        """Tell who captures what a later daemon must know, now that it has changed."""
        if self._tap is not None and self.port is not None:
            self.around.capturer.remember(self._tap, self._meta(self.port))

    async def change(self, config: Mapping[str, Any]) -> str | None:
        """Take a new configuration. What was done, for people; None when nothing differs that matters here.

        The same device with other settings stays open. Raises Unreachable when the port refuses them.
        """
        old, self.config = self.config, dict(config)
        settings = Settings.of(config)
        same_device = old["device"] == config["device"]
        if same_device and settings == self.settings:
            return None
        if same_device and self.port is not None:
            port = self.port
            await trio.to_thread.run_sync(
                lambda: change_settings(port, settings, label=self.label), limiter=self.around.limiter
            )
            self.settings = settings
            self.tell("open", why="settings changed", **self._facts(port))
            self.remember()
            return f"{self.name}: now {settings.baud} baud, still open"
        self.settings = settings
        self._identity = None if not same_device else self._identity
        self._terminal = None if not same_device else self._terminal
        shown = redact(str(config["device"]))
        self._ended(f"the lab now says {shown}")
        self._poke.set()
        return f"{self.name}: reopening as {shown}"

    def status(self) -> dict[str, Any]:
        """Plain data; may be called from any thread."""
        port = self.port
        journal = self.journal
        return {
            "name": self.name,
            "device": redact(str(self.config["device"])),
            "node": port.node if port else None,
            "kind": self.kind if port is None else port.kind,
            "baud": self.settings.baud,
            "settings": self.settings.plain(),
            "state": self.state,
            "why": self.why,
            "identity": self._identity,
            "note": "; ".join(self._notes(port)),
            "rx": journal.rx_end if journal else 0,
            "seq": journal.rx_line if journal else 0,
            "sent": self.sent,
            "reopened": max(self.opens - 1, 0),
            "suspects": list(self.suspects),
            "latency_ms": port.latency_ms if port else None,
            "sense": self.sensed if port else None,
            "journal": journal.directory if journal else None,
            "failing": journal.failing if journal else None,
        }

    @property
    def kind(self) -> str:
        """What the device is by its name; "pty" is only known once it is open."""
        scheme = str(self.config["device"]).partition(":")[0]
        return scheme if scheme in ("loopback", "board", *NETWORK) else "tty"

    @property
    def rx_end(self) -> int:
        """The offset of the next byte that comes."""
        return self.journal.rx_end if self.journal else 0

    def wake(self) -> None:
        """Tell whoever waits that the journal grew."""
        self.typed.tell()
        self._unsynced = True
        self.around.on_data(self.name)

    def tell(self, kind: str, **fields: Any) -> None:
        """Record an event about this line. Silent before its first open and after its end."""
        self.typed.tell()
        if self.journal is not None and not self.finished.is_set():
            self.journal.event(kind, **fields)
            self.wake()

    def tell_sent(self, data: bytes, **fields: Any) -> None:
        """Record what the port took."""
        self.typed.tell()
        if self.journal is not None and not self.finished.is_set():
            self.journal.tx(data, **fields)
            self.wake()

    # Its life ---------------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        """Open and carry, again and again. Returns only when the very first open failed."""
        pause = RETRY_FIRST_S
        while True:
            most = RETRY_MOST_NET_S if self.kind in NETWORK else RETRY_MOST_S
            try:
                wanted = (self.config["device"], self.settings)
                port = await self._connect()
                if wanted != (self.config["device"], self.settings) and not port.adopted:
                    await close_in_thread(port, hung_up=False, limiter=self.around.limiter)
                    continue  # the lab was edited while this was being opened
                opened = trio.current_time()
                await self._carry(port)
                if trio.current_time() - opened >= STEADY_S:
                    pause = RETRY_FIRST_S
                    continue
                most = RETRY_MOST_FLAP_S if self.kind in NETWORK else most
            except LabdError as error:
                self._failed(error)
            except Exception as error:
                self._failed(LabdError(f"{self.label}: {type(error).__name__}: {error}"))
                pause = CRASH_PAUSE_S
            if not self.opens:
                return
            with trio.move_on_after(pause):
                await self._poke.wait()
            self._poke = trio.Event()
            pause = min(pause * 1.6, most)

    async def _connect(self) -> Port:
        """The port, open; and on the first time the journal too."""
        if self._adopted is not None:
            if self.journal is None:
                self.journal = await self.around.open_journal(self.name)
            adopted, self._adopted = self._adopted, None
            if adopted.port is not None:
                return adopted.port
            self._lost_while_away(adopted.ended or {})
        device = path = str(self.config["device"])
        if self.kind in ("loopback", "board"):
            path = await self.around.start_dut(device, self.name, self.config)
        settings, kind, identity = self.settings, self.kind if self.kind == "loopback" else None, self._identity
        terminal = self._terminal
        whose: dict[str, Any] = {"label": self.label, "owner": self._owner}
        port = await open_in_thread(
            (lambda: open_net(path, settings, **whose))
            if self.kind in NETWORK
            else (lambda: open_board(path, device, settings, **whose))
            if self.kind == "board"
            else lambda: open_port(path, settings, **whose, kind=kind, expected=identity, terminal=terminal),
            label=self.label,
            node=path,
            limiter=self.around.limiter,
        )
        if self.journal is None:
            try:
                self.journal = await self.around.open_journal(self.name)
            except BaseException:
                await close_in_thread(port, hung_up=False, limiter=self.around.limiter)
                raise
        return port

    def _lost_while_away(self, ended: Mapping[str, Any]) -> None:
        """The port went while no daemon was there, or (`recorded`) when the last one was."""
        when = {key: value for key, value in ended.items() if key not in ("why", "recorded")}
        self.state = "open"  # as it was then
        self._ended(str(ended.get("why", "it was lost while no daemon was there")), when)
        self._lost_why = self.why
        if not ended.get("recorded"):
            self.tell("lost", why=self.why, **when)

    async def _carry(self, port: Port) -> None:
        """Capture from an open port until it is gone."""
        assert self.journal is not None
        self._gone, self._when = trio.Event(), {}
        adopted = self.opens if port.adopted else 0
        try:
            self._tap = await self.around.capturer.begin(port, self.journal, self._ended, self.wake, self._meta(port))
            self._now_open(port, adopted)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watchover.watch_over, self, port)
                nursery.start_soon(sense.follow, self, port)
                await self._gone.wait()
                nursery.cancel_scope.cancel()
        finally:
            self.port = None
            await self._let_go(port)

    async def _let_go(self, port: Port) -> None:
        """The port is done: its last bytes, the event, the descriptors."""
        tap, self._tap = self._tap, None
        if self._leaving:
            await close_in_thread(port, hung_up=True, limiter=self.around.limiter, leave=True)
            return
        if tap is not None:
            await self.around.capturer.end(tap)
        hung_up = self._gone.is_set()
        if hung_up:
            self.why = self._lost_why = port.why_gone(self.why)
            unsent = port.unsent()
            self.tell("lost", why=self.why, node=port.node, **({"unsent": unsent} if unsent else {}), **self._when)
        if not await close_in_thread(port, hung_up=hung_up, limiter=self.around.limiter):
            self.tell("error", what="close", message=f"the driver did not let go of {port.node} in time")

    def _now_open(self, port: Port, adopted: int) -> None:
        assert self._tap is not None
        self.opens += 0 if adopted else 1
        self.port, self.state, gone = port, "open", self._gone.is_set()
        self._identity = port.identity or self._identity
        self._terminal = terminal_of(port)
        self._error = None
        facts = {**self._facts(port), "rx": self._tap.start}
        if adopted:
            self.tell("attached", why="a new daemon; its port was captured all the while", node=port.node)
        elif self.opens == 1:
            self.tell("open", **facts)
        else:
            gap = trio.current_time() - self._lost_at
            self.tell("reopened", gap_ms=round(gap * 1000), cause=self._lost_why, **facts)
        if gone:
            self._ended(self.why, self._when)  # it went before it was told to be open
        else:
            self.why = "open"
        self._announce_outcome()

    def _ended(self, reason: str, when: When | None = None) -> None:
        """The capture loop, or a change of the lab, says that this port is done; `when`, if it is not just now."""
        self.why = reason
        self._when = when or {}
        if self.state == "open":
            self.state = "lost"
            ago_ns = time.monotonic_ns() - self._when.get("mono_ns", time.monotonic_ns())
            self._lost_at = trio.current_time() - max(ago_ns, 0) / 1e9
        self._gone.set()

    def _failed(self, error: LabdError) -> None:
        """An attempt failed: remember why, and record it once."""
        if self._error is None or self._error.message != error.message:
            self.tell("error", what="open", code=error.name, message=error.message)
        self._error = error
        self.state = "lost" if self.opens else "closed"
        self.why = error.message
        self._announce_outcome()

    def _announce_outcome(self) -> None:
        self._outcome.set()
        self._outcome = trio.Event()

    async def _finish(self) -> None:
        self.typed.tell()
        journal, self.state = self.journal, "closed"
        if journal is not None and self._leaving:
            await self.around.capturer.leave(journal)
        elif journal is not None:
            self.why = self._stop_reason
            self.tell("closed", why=self._stop_reason)
            await self.around.capturer.close_journal(journal)
        self._announce_outcome()
        self.finished.set()

    async def _sync_now_and_then(self) -> None:
        """Bring the journal to the disk each second, when there is anything new."""
        while True:
            await trio.sleep(SYNC_EVERY_S)
            if self.journal is not None and self._unsynced:
                self._unsynced = False
                try:
                    await trio.to_thread.run_sync(self.journal.sync, limiter=self.around.limiter)
                except OSError as error:  # somebody removed its files: capture goes on, and says so
                    self.why_unsynced = f"{error.strerror or error} {error.filename or ''}".strip()

    def _meta(self, port: Port) -> dict[str, Any]:
        """What a later daemon needs to go on with this port."""
        return {**self.around.remembered(), "config": self.config, "opens": max(self.opens, 1),
                "terminal": terminal_of(port), "port": adopting.facts(port)}  # fmt: skip

    def _facts(self, port: Port) -> dict[str, Any]:
        return {
            "device": redact(str(self.config["device"])),
            "node": port.node,
            "port_kind": port.kind,
            "settings": port.settings.plain(),
            "identity": port.identity,
            "boot": current().boot_id(),
        }

    def _notes(self, port: Port | None) -> list[str]:
        notes = list(port.notes) if port else []
        notes += [f"also open by {who['command']} (pid {who['pid']}): bytes may be missing" for who in self.suspects]
        failing = (self.journal.failing if self.journal else None) or self.why_unsynced
        return notes + ([f"the journal can't be written: {failing}"] if failing else [])
