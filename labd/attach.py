"""An interactive session on a captured console: what the board says is shown, what is typed goes out. One select loop.

For `serial connect`. Shows the journal's bytes from now on, so capture goes on and any number of sessions may watch;
sends through the daemon, as `serial send`; holds the console's lease by `serial hold` unless it only watches. Neither
a stalled line nor a daemon that is away keeps the keys from quitting.
"""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING, Any

from labd.client import Client, reply_of
from labd.errors import Busy, LabdError
from labd.lab_console import exact
from labd.lease import INTERACTIVE
from labd.terminal import Keys, Terminal, key_name

if TYPE_CHECKING:
    from labd.journal_read import Event
    from labd.lab_console import Console

#: Bytes that are shown between two looks at the keyboard, and bytes of keys that one send takes.
SHOW_BYTES = 1 << 18
SEND_BYTES = 1 << 12
#: Without a daemon: seconds between looks at the journal, and between tries to reach one.
POLL_S = 0.05
AGAIN_S = 0.5

HELP = """{key} then
    q  quit              ?  this help
    b  send a break      s  state of the port, and who writes to it
    {key}  send {key} itself"""


class Quit(Exception):
    """The person, or the end of the terminal, ends the session."""


class Peer:
    """A connection on which one question at a time is under way, its answer taken when it comes."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.waiting = False

    def ask(self, console: Console, method: str, params: dict[str, Any]) -> None:
        """Ask about a console (or with `console`'s lab alone, where `params` say it all)."""
        self.client.post(method, params, lab=console.lab.path)
        self.waiting = True

    def answers(self) -> list[dict[str, Any]]:
        """What came. Raises Unreachable when the daemon hung up."""
        arrived = self.client.arrived()
        if any("method" not in answer for answer in arrived):
            self.waiting = False
        return arrived


class Session:
    """One terminal on one console."""

    def __init__(self, console: Console, terminal: Terminal, *, escape: int | None, tail: int, read_only: bool) -> None:
        self.console = console
        self.terminal = terminal
        self.keys = Keys(escape)
        self.read_only = read_only
        self.tail = tail
        self.where: dict[str, Any] = {"target": console.target, "interface": console.interface}
        self.reader = console.reader()
        self.at = self.reader.end_offset
        self.last_event = 0
        for event in self.reader.events(self.at):
            self.last_event = event.number
        self.first_event_at = self.at
        self.pending = bytearray()
        self.sending = 0
        self.seen = -1
        self.bell: Peer | None = None
        self.hands: Peer | None = None
        self.grip: Peer | None = None
        self.again_at = 0.0
        self.hold_at = 0.0
        self.told_read_only = False
        self.told_away = False

    def run(self, grip: Client | None) -> None:
        """Until the person quits. `grip` is the connection on which the lease is held, None when only watching."""
        self.grip = Peer(grip) if grip is not None else None
        self._show_tail()
        try:
            while True:
                self._reach()
                more = self._show()
                self._wait(0.0 if more else 5.0)
        except Quit:
            return
        finally:
            for peer in (self.bell, self.hands, self.grip):
                if peer is not None:
                    peer.client.close()

    # --- showing -----------------------------------------------------------------------------------------------------

    def _show_tail(self) -> None:
        """The last lines, and the unfinished one, as text: replayed bytes could make the terminal answer."""
        from labd.view import plain

        reader = self.reader
        count = self.tail + reader.partial if reader.captured else 0
        for line in reader.tail(count):
            text = plain(line.raw, str(self.console.config["encoding"]), partial=line.partial)
            self.terminal.write(text.encode("utf-8", "replace") + (b"" if line.partial else b"\r\n"))
            self.at = max(self.at, line.end)

    def _show(self) -> bool:
        """Show what has come; True when there may be more at once."""
        self.reader.refresh()
        shown = 0
        for offset, data in self.reader.chunks(self.at):
            if offset > self.at:
                self.terminal.say(f"{offset - self.at} bytes were evicted before they could be shown")
            self.terminal.write(data)
            self.at = offset + len(data)
            shown += len(data)
            if shown >= SHOW_BYTES:
                return True
        for event in self.reader.events(self.first_event_at, after=self.last_event):
            self.last_event = event.number
            self._tell(event)
        return False

    def _tell(self, event: Event) -> None:
        fields = event.fields
        if event.kind == "lost":
            self.terminal.say(f"{self.console.name} is lost: {fields.get('why')}; waiting for it to come back")
        elif event.kind in ("reopened", "open"):
            self.terminal.say(f"{self.console.name} is {'back' if event.kind == 'reopened' else 'open'}: "
                              f"{fields.get('node') or fields.get('device')}")  # fmt: skip
        elif event.kind == "closed":
            self.terminal.say(f"the capture was stopped; labd serial watch {self.console.target} starts it again")
        elif event.kind == "overrun":
            self.terminal.say("bytes were lost (labd serial log --events tells how many)")

    # --- waiting -----------------------------------------------------------------------------------------------------

    def _reach(self) -> None:
        """Connect to the daemon where that is not done; ask for the next ring; send what is typed."""
        if self.bell is None and time.monotonic() >= self.again_at:
            self.again_at = time.monotonic() + AGAIN_S
            try:
                self.bell, self.hands = Peer(Client(self.console.lab.env)), Peer(Client(self.console.lab.env))
            except LabdError:
                self._away()
                return
            self.seen = -1
            if self.told_away:
                self.terminal.say("the daemon is back")
                self.told_away = False
        self._hold_again()
        try:
            if self.bell is not None and not self.bell.waiting:
                ask = {"directory": self.console.directory, "seen": self.seen, "seconds": 5.0}
                self.bell.ask(self.console, "journal.wait", ask)
            self._send()
        except LabdError:
            self._away()

    def _hold_again(self) -> None:
        """Hold the console anew after its daemon went away with the lease; who types there by now goes on."""
        if self.bell is None or not self._unheld or time.monotonic() < self.hold_at:
            return
        self.hold_at = time.monotonic() + AGAIN_S
        try:
            self.grip = Peer(self.console.grip(take=False, wait=1.0, why=INTERACTIVE))
        except Busy as error:
            self._lost_hold(error)
        except LabdError:
            pass  # it is not captured yet

    @property
    def _unheld(self) -> bool:
        """Whether the console should be held and is not."""
        return not self.read_only and self.grip is None

    def _lost_hold(self, error: LabdError) -> None:
        self.terminal.say(f"{error.message}; watching on without the keyboard")
        self.read_only, self.grip = True, None
        self.pending.clear()

    def _away(self) -> None:
        for peer in (self.bell, self.hands, self.grip):
            if peer is not None:
                peer.client.close()
        self.bell = self.hands = self.grip = None
        if self.sending or self.pending:
            self.terminal.say("the daemon went away; what was typed last may not have been sent")
            self.told_away = True
        elif not self.told_away:
            self.terminal.say("the daemon is away; nothing can be sent")
            self.told_away = True
        self.pending.clear()
        self.sending = 0

    def _wait(self, seconds: float) -> None:
        """Sleep until a key, a ring or an answer comes, and take it."""
        peers = [peer for peer in (self.bell, self.hands, self.grip) if peer is not None]
        if self.bell is None:
            seconds = min(seconds, POLL_S)
        elif self._unheld:
            seconds = min(seconds, AGAIN_S)
        watched: list[Any] = [self.terminal.fd, *(peer.client for peer in peers)]
        ready, _, _ = select.select(watched, [], [], seconds)
        if self.terminal.fd in ready:
            self._typed()
        for peer in peers:
            if peer.client in ready:
                self._answered(peer)

    def _answered(self, peer: Peer) -> None:
        try:
            answers = peer.answers()
        except LabdError:
            if peer is self.grip:
                self.grip = None
            else:
                self._away()
            return
        for answer in answers:
            if "method" in answer:
                continue
            try:
                reply = reply_of(answer)
            except LabdError as error:
                self._refused(peer, error)
                continue
            if peer is self.bell:
                self.seen = int(reply.result)
            elif peer is self.hands:
                self.sending = 0

    def _refused(self, peer: Peer, error: LabdError) -> None:
        if peer is self.grip:
            self._lost_hold(error)
        elif peer is self.hands:
            self.terminal.say(error.message)
            self.pending.clear()
            self.sending = 0

    # --- keys --------------------------------------------------------------------------------------------------------

    def _typed(self) -> None:
        try:
            data = os.read(self.terminal.fd, 65536)
        except OSError:
            data = b""
        if not data:
            raise Quit  # the terminal is gone
        for kind, part in self.keys.feed(data):
            if kind == "keys":
                self._key(part)
            else:
                self._command(part)

    def _key(self, data: bytes) -> None:
        if self.read_only:
            if not self.told_read_only:
                self.terminal.say("only watching: keys are not sent" + self._how_to_quit())
            self.told_read_only = True
        elif self.hands is None:
            self.terminal.say("not sent: the daemon is away")
        else:
            self.pending += data

    def _send(self) -> None:
        if self.hands is None or self.hands.waiting or not self.pending:
            return
        data = bytes(self.pending[:SEND_BYTES])
        del self.pending[:SEND_BYTES]
        self.sending = len(data)
        self.hands.ask(self.console, "serial.send", {**self.where, **exact(data), "wait": 0})

    def _command(self, letter: bytes) -> None:
        if letter in (b"q", b"Q", b"."):
            raise Quit
        if letter in (b"?", b"h"):
            assert self.keys.escape is not None
            text = HELP.format(key=key_name(self.keys.escape))
            self.terminal.write(b"\r\n" + text.replace("\n", "\r\n").encode() + b"\r\n")
        elif letter == b"b":
            self._break()
        elif letter == b"s":
            self._state()
        else:
            self.terminal.say("no such command" + self._how_to_quit())

    def _how_to_quit(self) -> str:
        if self.keys.escape is None:
            return ""
        name = key_name(self.keys.escape)
        return f" ({name} then q quits, {name} then ? helps)"

    def _break(self) -> None:
        if self.read_only:
            self.terminal.say("only watching: no break was sent")
            return
        try:
            self.console.lab.call("serial.break", **self.where)
            self.terminal.say("break sent")
        except LabdError as error:
            self.terminal.say(error.message)

    def _state(self) -> None:
        try:
            state = self.console.state()
        except LabdError as error:
            self.terminal.say(error.message)
            return
        writer = state.fields.get("writer") or {}
        who = writer.get("who", {})
        by = f"; written to by pid {who.get('pid')} ({writer.get('what')})" if writer else ""
        self.terminal.say(f"{self.console.name}: {state.state}, {state.node or state.device}{by}")
