"""Waiting for text on a captured console: `labd.match` driven over a journal, from a cursor, for a limited time.

For `serial expect`, `serial send --expect`, `serial run`, the Python client: in any thread but the daemon's loop,
which pays nothing for a wait. Reads the journal only; what the target said and what was sent to it are both there.

A wait sees every byte from its cursor on exactly once, however it was stored, and begins with what is already there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from labd.errors import LabdError, Usage
from labd.journal_read import Event, Reader
from labd.lab.model import quoted
from labd.match import DEATHS, QUIET_MS, Matcher, Result
from labd.match_echo import REACH
from labd.match_near import LINES, nearest

__all__ = ["Cursor", "Result", "cursor_since", "expect", "live_end"]

#: How much of the text before a match is told, in bytes.
BEFORE_MAX = 1 << 16
#: How many lines are told when nothing matched.
LAST_LINES = 10
#: The longest sleep: the caller may have gone, or the capture.
NAP_S = 1.0
#: A wait that is longer than this says what it waits for.
PROGRESS_S = 2.0
_BACK = 1 << 12
_RECENT = 12
_BLOCK = 1 << 18
# A flood of small reads wakes us for each: after so many wakes in so many seconds we sleep a little before we look.
_FLOOD_WAKES, _FLOOD_WINDOW_S = 16, 0.02
_FLOOD_S = 0.004

#: Where a wait begins: an offset of the target's stream.
Cursor = int


def live_end(directory: str) -> Cursor:
    """The offset of the next byte that the target will send."""
    return Reader(directory).end_offset


def cursor_since(directory: str, since: int | str) -> Cursor:
    """The offset where what came after line `since` begins (`12`, `12*`, `12+30`): as `serial log --since` means it.

    `12*` is a line that was unfinished when it was seen: it begins there. `12+30` is one of which 30 bytes were seen:
    it begins behind them. Raises Usage for anything else.
    """
    from labd.logquery import parse_cursor
    from labd.logshown import Shown

    seq, had = parse_cursor(since)
    reader = Reader(directory)
    line = next(reader.lines(seq, seq), None) if seq >= reader.first_seq else None
    if line is not None:
        if had:
            return min(line.offset + had, line.end)
        seen = Shown(directory).length(seq)
        if had is not None or (seen is not None and not (line.partial and line.length <= seen)):
            return line.offset
        return reader.end_offset if line.partial else line.end
    return reader.end_offset if seq > reader.last_seq else reader.first_offset


def expect(
    directory: str,
    patterns: Sequence[str],
    *,
    cursor: Cursor | None = None,
    timeout_s: float = 30.0,
    wait: Callable[[str, float], bool],
    literal: bool = False,
    ignore_case: bool = False,
    raw: bool = False,
    encoding: str = "utf-8",
    deaths: Sequence[str] = DEATHS,
    death_patterns: Sequence[str] = (),
    settle_ms: float = QUIET_MS,
    live: Callable[[], bool] | None = None,
    progress: Callable[[str], None] | None = None,
    matcher: Matcher | None = None,
) -> Result:
    """Wait until one of `patterns` is there, from `cursor` on (an offset; by default the live end), and say which.

    `wait(directory, seconds)` sleeps until the journal in `directory` may have grown, at most so long, and says whether
    the caller still listens. `live()` says whether the interface is being captured; where it is not, what is stored is
    looked through and the wait ends as `gone`. `progress` takes a sentence once the wait has lasted two seconds.
    `timeout_s` 0 looks at what is there. `deaths` are texts and `death_patterns` regexes that end the wait as `died`.

    Raises Usage for a bad pattern or a cursor that is no more kept, TimedOut when a pattern takes too long to look for.
    May be called in any thread. A wait that ends without a match is a Result too.
    """
    try:
        reader = Reader(directory)
    except OSError as problem:
        raise LabdError(
            f"{directory} can't be read: {problem.strerror}", hint=f"ls -ld {quoted(directory)}"
        ) from problem
    start = reader.end_offset if cursor is None else cursor
    if start < reader.first_offset:
        raise Usage(
            f"offset {start} is no more kept; the oldest byte is {reader.first_offset} (line #{reader.first_seq})",
            hint=f"--since {reader.first_seq - 1}",
        )
    made = matcher or Matcher(
        patterns,
        start=start,
        literal=literal,
        ignore_case=ignore_case,
        raw=raw,
        encoding=encoding,
        deaths=deaths,
        death_patterns=death_patterns,
        quiet_ms=settle_ms,
    )
    return _Wait(reader, made, timeout_s, wait, live, progress, encoding, ignore_case).run()


class _Wait:
    """One wait."""

    def __init__(
        self,
        reader: Reader,
        matcher: Matcher,
        timeout_s: float,
        wait: Callable[[str, float], bool],
        live: Callable[[], bool] | None,
        progress: Callable[[str], None] | None,
        encoding: str,
        ignore_case: bool,
    ) -> None:
        self.reader = reader
        self.matcher = matcher
        self.timeout_s = timeout_s
        self.wait = wait
        self.live = live
        self.progress = progress
        self.encoding = encoding
        self.ignore_case = ignore_case
        self.begun = time.monotonic()
        self.start = matcher.start
        self.last_event = 0
        self.wakes, self.window = 0, 0.0

    def run(self) -> Result:
        """Until it ends."""
        self._echo_from_before()
        deadline = self.begun + self.timeout_s
        gone = False
        while True:
            size = self.matcher.end
            result = self._read()
            now = time.monotonic()
            if result is None:
                result = self.matcher.poll(now)
            if result is not None:
                return self._complete(result)
            if now >= deadline:
                result = self.matcher.finish("nothing followed until the time was up")
                return self._complete(result or self._timed_out())
            if gone and self.matcher.end == size:
                result = self.matcher.finish("nothing followed until the capture ended")
                return self._complete(result or self.matcher.ended("gone", "it is not being captured"))
            gone = self.live is not None and not self.live()
            if not gone and not self._sleep(now, deadline, self.matcher.end - size):
                return self._complete(self.matcher.ended("cancelled", "nobody waits any more"))
            self.reader.refresh()

    def _sleep(self, now: float, deadline: float, came: int) -> bool:
        """Until something came or something is due; False if the caller has gone."""
        until = min(deadline, now + NAP_S)
        if self.matcher.deadline is not None:
            until = min(until, self.matcher.deadline)
        if self.progress is not None:
            due = self.begun + PROGRESS_S
            if now >= due:
                self._tell_progress()
            else:
                until = min(until, due)
        if now - self.window > _FLOOD_WINDOW_S:
            self.window, self.wakes = now, 0
        self.wakes += 0 < came < 4096
        if self.wakes > _FLOOD_WAKES:
            time.sleep(min(_FLOOD_S, max(0.0, deadline - now)))
        return self.wait(self.reader.directory, max(0.0, until - now))

    def _tell_progress(self) -> None:
        assert self.progress is not None
        wanted = " or ".join(repr(pattern.source) for pattern in self.matcher.patterns)
        left = self.timeout_s - PROGRESS_S
        size = self.matcher.end - self.start
        self.progress(f"waiting for {wanted}, {left:.0f} s more at most; {size} bytes came so far …")
        self.progress = None

    def _echo_from_before(self) -> None:
        """What was sent shortly before the cursor may come back behind it."""
        back = max(self.reader.first_offset, self.start - _BACK)
        sent = [event for event in self._events_from(back) if self._sent(event)]
        if sent and (first := min(sent_at(event) for event in sent)) < self.start:
            first = max(first, self.reader.first_offset, self.start - REACH)
            for offset, data in self.reader.chunks(first, self.start):
                self.matcher.prime(offset, data)

    def _events_from(self, back: int) -> Iterable[Event]:
        """The events from the offset `back` on; at the live edge the newest few will do, and cost little."""
        newest = list(self.reader.events(after=max(0, self.reader.event_count - _RECENT)))
        at_the_edge = len(newest) < _RECENT or newest[0].rx <= self.start
        return newest if at_the_edge else self.reader.events(back)

    def _sent(self, event: Event) -> bool:
        """Take note of an event; whether it was a send."""
        self.last_event = event.number
        if event.kind != "tx":
            return False
        data = str(event.fields.get("data", "")).encode("latin-1", "replace")
        self.matcher.sent(sent_at(event), data)
        return True

    def _read(self) -> Result | None:
        """All that has come, with what was sent before it."""
        matcher, reader = self.matcher, self.reader
        if matcher.end >= reader.end_offset:
            return None
        for event in reader.events(after=self.last_event) if self.last_event else reader.events(self.start):
            self._sent(event)
        # Bytes that are old when we see them have been quiet for as long as that.
        age = max(0.0, time.time() - reader.last_wall_ns / 1e9) if reader.last_wall_ns else 0.0
        arrived = time.monotonic() - age
        for offset, data in reader.chunks(matcher.end):
            result = matcher.feed(offset, data, time.monotonic(), arrived=arrived)
            if result is not None:
                return result
        return None

    # -- telling -----------------------------------------------------------------------------------------------------

    def _timed_out(self) -> Result:
        size = self.matcher.end - self.start
        came = f"{size} bytes came" if size else "nothing came"
        return self.matcher.ended("timed_out", f"not within {self.timeout_s:g} s; {came}")

    def _complete(self, result: Result) -> Result:
        """The result with all that the journal knows about it."""
        reader = self.reader
        reader.refresh()
        waited = round(time.monotonic() - self.begun, 3)
        if result.start is not None and result.stop is not None:
            before = self._text(max(self.start, result.start - BEFORE_MAX), result.start)
            seq, seq_end = reader.seq_at(result.start), reader.seq_at(result.stop - 1)
            return replace(result, seq=seq, seq_end=seq_end, before=before, waited_s=waited)
        begin = max(self.start, self.matcher.end - _BLOCK)
        lines = self._lines(begin, self.matcher.end)
        missed = []
        for pattern in self.matcher.patterns if result.ended == "timed_out" else []:
            miss = self._stood_before(pattern) or nearest(pattern, lines, ignore_case=self.ignore_case)
            if miss is not None:
                missed.append(miss)
        seen = self._lines(begin, self.matcher.end, echo=True)[-LAST_LINES:]
        last = tuple({"seq": seq, "text": text} for seq, text in seen)
        return replace(result, nearest=tuple(missed), last_lines=last, waited_s=waited)

    def _stood_before(self, pattern: Any) -> dict[str, Any] | None:
        """The last line before the cursor that has a match: it was there, but from before the wait."""
        found = None
        for seq, text in self._lines(max(self.reader.first_offset, self.start - _BACK), self.start):
            if pattern.find(text) is not None:
                found = {"pattern": pattern.source, "seq": seq, "text": text}
        if found is None:
            return None
        return {**found, "differs": f"it came before the wait began; --since {found['seq'] - 1} includes it"}

    def _lines(self, start: int, stop: int, *, echo: bool = False) -> list[tuple[int, str]]:
        """The last lines between two offsets, (seq, text) each; with what was echo if asked."""
        seq = self.reader.seq_at(start) if stop > start else 1
        texts = self._text(start, stop, echo=echo).split("\n") if stop > start else []
        if texts and not texts[-1]:
            texts.pop()
        return [(seq + number, text) for number, text in enumerate(texts)][-LINES:]

    def _text(self, start: int, stop: int, *, echo: bool = False) -> str:
        """The text between two offsets, without what was echo unless asked."""
        from labd.match_text import Kind, Window

        raw = self.reader.bytes(start, stop)
        left_out = [(span.start, span.stop) for span in self.matcher.echo.spans if span.sure and not echo]
        cut = raw.rfind(b"\n") + 1
        kind = Kind(encoding=self.encoding)
        pieces = kind.pieces(raw[:cut], start, left_out) if cut else []
        if raw[cut:]:
            pieces.append(kind.open(raw[cut:], start + cut, left_out))
        return Window(pieces).text if pieces else ""


def sent_at(event: Event) -> int:
    """The offset of the first byte that can be the echo of what was sent."""
    begun = event.fields.get("rx_before")
    return min(begun, event.rx) if isinstance(begun, int) else event.rx
