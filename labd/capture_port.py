"""One port in the capture process: its descriptor, the rx stream of its journal, and what the daemon must hear of it.

What happens while no daemon listens waits here, numbered, until one has acknowledged it. `tell` may be called in any
thread; everything else belongs to the process's own loop.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from labd.capture import Token
    from labd.journal_rx import RxJournal

#: News that may wait for a daemon; later ones are counted.
NEWS_MOST = 4096


class HeldPort:
    """See the module. `key` is the journal's directory, `number` names the port in notices, each time it is opened."""

    def __init__(self, key: str, meta: Any, poke: Callable[[], None]) -> None:
        self.key = key
        self.number = 0
        self.meta = meta
        self.journal: RxJournal | None = None
        self.fd = -1
        self.token: Token | None = None
        self.gone: dict[str, Any] | None = None
        self.failing: str | None = None
        self.mono_ns = 0
        self.unsynced = False
        self.gone_told = False
        self._poke = poke
        self._news: list[dict[str, Any]] = []
        self._sent = 0
        self._number = 0

    @property
    def end(self) -> int:
        """The offset of the next byte."""
        return self.journal.end if self.journal else 0

    def rx(self, data: bytes, wall_ns: int, mono_ns: int) -> None:
        """The sink of the capture loop."""
        assert self.journal is not None
        self.journal.rx(data, wall_ns, mono_ns)
        self.mono_ns = mono_ns
        self.unsynced = True

    def opened(self, journal: RxJournal) -> None:
        """Take the journal and tell what its opening mended."""
        self.journal = journal
        if journal.repaired:
            what = {"what": journal.repaired, "lost": journal.stream.lost}
            self.tell("repaired", what, time.time_ns(), time.monotonic_ns())
        journal.begin(self.tell)

    def tell(self, kind: str, fields: dict[str, Any], wall_ns: int, mono_ns: int) -> None:
        """Something that belongs among the events, which the daemon writes."""
        news = {"kind": kind, "fields": {"rx": self.end, **fields}, "wall_ns": wall_ns, "mono_ns": mono_ns}
        if len(self._news) >= NEWS_MOST and kind == "clock":
            return
        self._number += 1
        self._news.append({"told": self.key, "n": self._number, **news})
        self._poke()

    def end_of(self, reason: str) -> None:
        """The other end is gone: remembered until the daemon has let go of the port."""
        self.token = None
        self.gone_told = False
        self.gone = {"why": reason, "wall_ns": time.time_ns(), "mono_ns": time.monotonic_ns(), "rx": self.end}
        self._poke()

    def released(self) -> None:
        """The daemon has let go of it and recorded that: the next one is told why, and does not record it again."""
        known = self.gone or {"why": "it was let go of", "wall_ns": time.time_ns(), "mono_ns": time.monotonic_ns(),
                              "rx": self.end}  # fmt: skip
        self.gone, self.gone_told = {**known, "recorded": True}, True

    def unsent(self) -> list[dict[str, Any]]:
        """News that this connection has not been sent yet."""
        fresh, self._sent = self._news[self._sent :], len(self._news)
        return fresh

    def again(self) -> None:
        """A new daemon listens: it has been sent nothing yet."""
        self._sent = 0
        self.gone_told = False

    def acknowledge(self, number: int) -> None:
        """The daemon has recorded the news up to this number."""
        kept = [news for news in self._news if news["n"] > number]
        self._sent -= len(self._news) - len(kept)
        self._news = kept
