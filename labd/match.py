"""Waiting for text in a stream of bytes: give it bytes as they come, and it says when a pattern is there for certain.

Pure: no clock, no file, no thread; `labd.expect` drives it over a journal, triggers feed it from the capture. The cost
is linear in the bytes, however much came without a match and in whatever pieces it came.

When is a match certain? That must not depend on how the bytes were cut into reads, so each pattern has one answer:

* a pattern whose matches can't grow (text, or a regex of one width: `login: `, `[$#] `) as soon as its last character
  is there, also at the live edge;
* any other (`rc=(\\d+)`) when the line it ends in has ended, or when nothing has come for `quiet_ms`. So `rc=1` is
  not taken for the answer when `rc=127` is on its way.

The pattern that is certain first wins; of two at the same byte the one given first; an awaited one before a death
pattern. `$` at the live edge is what the quiet time is for.

Text is what `labd.view` shows, without colours, redrawn as a terminal would; what stood on a line for a while and was
redrawn counts for patterns that can't grow. With `raw` it is the bytes, one character each. The echo of what was sent
(`labd.match_echo`) is no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from labd.match_echo import Echo
from labd.match_pattern import DEATHS, SPAN, Found, Pattern, compile_all, death_text
from labd.match_result import Result
from labd.match_text import LINE_CUT, Cell, Kind, Piece, Window

__all__ = ["DEATHS", "QUIET_MS", "Matcher", "Pattern", "Result", "compile_all"]

#: How long nothing must come for what is at the live edge to be final, in milliseconds. Case 9 of docs/torture.md (a
#: device that stops for 200 ms in the midst of `rc=127`, from pexpect's documentation) and half of that for a machine
#: that is busy. Only matches that could still grow wait for it.
QUIET_MS = 300.0
#: In a flood of small pieces (so many looks in so many seconds) they are looked at together: so many bytes, or so late.
BURST_LOOKS, BURST_S = 16, 0.01
GATHER_BYTES, GATHER_S = 1 << 15, 0.002
_BLOCK = 1 << 16
_ECHOES_TOLD = 64


class _Hit:
    """A match that is certain; `known` is the offset behind the byte that made it so."""

    __slots__ = ("found", "known", "order", "pattern", "start", "stop", "text", "why")

    def __init__(self, pattern: Pattern, order: int, known: int, span: tuple[int, int], text: str, why: str,
                 found: Found) -> None:  # fmt: skip
        self.pattern = pattern
        self.order = order
        self.known = known
        self.start, self.stop = span
        self.text = text
        self.why = why
        self.found = found


class Matcher:
    """Waits for one of `patterns` from the offset `start` on. Raises Usage for a bad pattern, with its position.

    `deaths` are texts that end the wait as died, `death_patterns` more of them as regexes. `echo_of` is what was sent
    already: (offset of the stream then, bytes). After a `Result` was given the matcher is done.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        start: int = 0,
        literal: bool = False,
        ignore_case: bool = False,
        raw: bool = False,
        encoding: str = "utf-8",
        deaths: Sequence[str] = DEATHS,
        death_patterns: Sequence[str] = (),
        quiet_ms: float = QUIET_MS,
        echo_of: Iterable[tuple[int, bytes]] = (),
    ) -> None:
        self.patterns = compile_all(list(patterns), literal=literal, ignore_case=ignore_case, raw=raw)
        wanted = [death for death in deaths if not any(death.lower() in p.source.lower() for p in self.patterns)]
        self._all = self.patterns + [death_text(death, raw) for death in wanted]
        self._all += compile_all(list(death_patterns), raw=raw, as_written="")
        self.start = self.end = start
        self.quiet_s = quiet_ms / 1000
        self.echo = Echo()
        for offset, data in echo_of:
            self.echo.sent(offset, data)
        self._kind = Kind(raw=raw, encoding=encoding)
        self._buffer = bytearray()  # from the begin of the open line on
        self._base = start
        self._seen = start  # up to here the echo has been looked for
        self._settled = start  # up to here the live edge has been looked at
        self._look_at = self._last = 0.0
        self._look_end = start
        self._burst_at, self._burst = 0.0, 0
        self._carry: list[Piece] = []
        self._folded = any(pattern.folded for pattern in self._all)
        self._reach = SPAN if any(p.lines and not p.fixed for p in self._all) else 0
        self._reach = max([self._reach, *(p.width for p in self._all if p.lines and p.fixed)])

    @property
    def deadline(self) -> float | None:
        """When to call `poll` if nothing comes before; None if only bytes can change anything."""
        if self._seen != self.end:
            return self._look_at
        return None if self._settled == self.end else self._last + self.quiet_s

    @property
    def resume(self) -> int:
        """Where another matcher must begin to find what this one would: with the open line, or what reaches into it."""
        return self._carry[0].offset if self._carry else self._base

    def prime(self, offset: int, data: bytes) -> None:
        """Bytes from before `start`: only to know the echo that may reach into what is waited for."""
        self.echo.feed(offset, data)

    def sent(self, offset: int, data: bytes) -> None:
        """`data` was sent when the stream was at `offset`; to be told before the bytes that came after it."""
        self.echo.sent(offset, data)

    def feed(self, offset: int, data: bytes, now: float, *, arrived: float | None = None) -> Result | None:
        """The target sent `data`, which begins at `offset`. `now` is any clock in seconds; `arrived` when it came."""
        if offset != self.end:
            self._jump(offset)
        self._buffer += data
        self.end = end = offset + len(data)
        self._last = now if arrived is None else arrived
        return None if now < self._look_at and end < self._look_end else self._look(now)

    def poll(self, now: float) -> Result | None:
        """Look at what has not been looked at, and at the live edge if it has been quiet long enough."""
        due = min(self._look_at, self._last + self.quiet_s)
        if self._seen != self.end and now >= due and (found := self._look(now)):
            return found
        if self._settled == self.end or now < self._last + self.quiet_s:
            return None
        return self._settle(f"nothing followed for {self.quiet_s * 1000:g} ms")

    def finish(self, why: str = "nothing followed until the end") -> Result | None:
        """There will be no more bytes: whatever is there is final."""
        return (self._look(self._look_at) if self._seen != self.end else None) or self._settle(why)

    def ended(self, ended: str, why: str) -> Result:
        """The result of a wait that ended without a match."""
        return Result(ended, why, echo=self._echoes(), cursor=self.end)

    # -- looking -----------------------------------------------------------------------------------------------------

    def _look(self, now: float) -> Result | None:
        begin = self._seen - self._base
        self.echo.feed(self._seen, self._buffer[begin:] if begin else self._buffer)
        self._seen = self.end
        hit = self._scan()
        # Playing a long open line again and again must not cost more than a tenth of the time.
        slow = len(self._buffer) * 1e-5 if len(self._buffer) > 512 else 0.0
        if now - self._burst_at > BURST_S:
            self._burst_at, self._burst = now, 0
        self._burst += 1
        self._look_at = now + slow + (GATHER_S if self._burst > BURST_LOOKS else 0.0)
        self._look_end = self.end + GATHER_BYTES
        return None if hit is None else self._result(hit)

    def _settle(self, why: str) -> Result | None:
        self._settled = self.end
        self.echo.quiet()
        hit = self._scan() or self._edge(why)
        return None if hit is None else self._result(hit)

    def _scan(self) -> _Hit | None:
        """Go through the lines that have ended, then look at the open one for what can't grow."""
        limit = self.echo.decided - self._base
        complete = self._buffer.rfind(b"\n", 0, max(0, limit)) + 1
        at = 0
        while at < complete:
            stop = self._block_end(at, complete)
            hit = self._whole(bytes(self._buffer[at:stop]), self._base + at)
            at = stop
            if hit is not None:
                return hit
        while limit - at > LINE_CUT:
            hit = self._whole(bytes(self._buffer[at : at + LINE_CUT]), self._base + at)
            at += LINE_CUT
            if hit is not None:
                return hit
        if at:
            del self._buffer[:at]
            self._base += at
        return self._open(limit - at)

    def _block_end(self, at: int, complete: int) -> int:
        """The end of a block of whole lines that begins at `at`, or of a piece of a line that is too long."""
        newline = self._buffer.find(b"\n", at, at + LINE_CUT + 1)
        if newline < 0:
            return at + LINE_CUT
        stop = min(complete, at + _BLOCK)
        end = self._buffer.rfind(b"\n", newline, stop) + 1
        if end - at <= LINE_CUT:
            return end
        probe = newline + 1
        while end - probe > LINE_CUT:  # a line that is too long ends the block before it
            following = self._buffer.rfind(b"\n", probe, probe + LINE_CUT + 1)
            if following < 0:
                return probe
            probe = following + 1
        return end

    def _whole(self, raw: bytes, offset: int) -> _Hit | None:
        """Look through whole lines."""
        if self._nothing(raw):
            return None
        pieces = self._kind.pieces(raw, offset, self._masked())
        window, new = self._window(pieces)
        hits = []
        for order, pattern in enumerate(self._all):
            hit = (
                self._fixed(pattern, order, window, new) if pattern.fixed else self._grown(pattern, order, window, new)
            )
            if hit is not None:
                hits.append(hit)
            if pattern.fixed and (hit := self._passing(pattern, order, pieces)) is not None:
                hits.append(hit)
        if hits:
            return min(hits, key=lambda hit: (hit.known, hit.order))
        if self._reach:
            self._carry = _last_of(self._carry + pieces, self._reach)
        return None

    def _nothing(self, raw: bytes) -> bool:
        """Whether it is quick to see that no pattern can have a part in these lines: then they need no text."""
        if self._reach or (self.echo.spans and self.echo.spans[-1].stop > self._base):
            return False
        shown = raw if self._kind.raw else self._kind.bare(raw)
        if shown is None:
            return False
        lowered = shown.lower() if self._folded else b""
        return all(pattern.absent(shown, lowered) for pattern in self._all)

    def _open(self, size: int) -> _Hit | None:
        """Look at the first `size` bytes of the open line for patterns that can't grow."""
        if size <= 0:
            return None
        piece = self._kind.open(bytes(self._buffer[:size]), self._base, self._masked())
        window, new = self._window([piece])
        hits = []
        for order, pattern in enumerate(self._all):
            if pattern.fixed:
                hits += [self._fixed(pattern, order, window, new), self._passing(pattern, order, [piece])]
        return min((hit for hit in hits if hit is not None), key=lambda hit: (hit.known, hit.order), default=None)

    def _edge(self, why: str) -> _Hit | None:
        """Look at the live edge for patterns that could have grown."""
        pieces = []
        if self._buffer:
            pieces = [self._kind.open(bytes(self._buffer), self._base, self._masked())]
        window, new = self._window(pieces)
        hits = []
        for order, pattern in enumerate(self._all):
            if pattern.fixed or not (pieces or (pattern.at_end and window.pieces)):
                continue
            found, at = None, max(0, new - SPAN) if pattern.lines else new
            while (found := pattern.find(window.text, at)) is not None:
                fresh = found.stop > new or (pattern.at_end and found.stop == len(window.text))
                span = window.span(found.start, found.stop)
                if fresh and not self._only_echo(span):
                    hits.append(_Hit(pattern, order, span[1], span, window.text[found.start : found.stop], why, found))
                    break
                at = found.start + 1
        return min(hits, key=lambda hit: (hit.known, hit.order), default=None)

    def _fixed(self, pattern: Pattern, order: int, window: Window, new: int) -> _Hit | None:
        at = max(0, new - pattern.width + 1) if pattern.lines else new
        while (found := pattern.find(window.text, at)) is not None:
            span = window.span(found.start, found.stop)
            if not self._only_echo(span):
                text = window.text[found.start : found.stop]
                return _Hit(pattern, order, span[1], span, text, "it was complete", found)
            at = found.start + 1
        return None

    def _passing(self, pattern: Pattern, order: int, pieces: list[Piece]) -> _Hit | None:
        """The first match in what stood on a line before it was redrawn."""
        for piece in pieces:
            for number, state in enumerate(piece.states):
                if pattern.find("".join(state)) is None:
                    continue
                cells = self._state(piece, number)
                found = pattern.find("".join(cells))
                known = [cell for cell in cells[found.start : found.stop] if isinstance(cell, Cell)] if found else []
                if found is None or not known:
                    continue
                start = piece.offset + min(cell.start for cell in known)
                stop = piece.offset + max(cell.stop for cell in known)
                if not self._only_echo((start, stop)):
                    text = "".join(cells[found.start : found.stop])
                    return _Hit(pattern, order, stop, (start, stop), text, "it was complete", found)
        return None

    def _state(self, piece: Piece, number: int) -> list[str]:
        """A passing state of a line with its offsets; progress bars have theirs worked out only now."""
        state = piece.states[number]
        if not state or isinstance(state[0], Cell):
            return state
        body = piece.raw[:-1] if piece.raw[-1:] == b"\n" else piece.raw
        played = self._kind.cells(body, piece.offset, piece.partial, [])
        return played[number] if number < len(played) else []

    def _grown(self, pattern: Pattern, order: int, window: Window, new: int) -> _Hit | None:
        """The first match that the end of a line has made certain."""
        text = window.text
        at = max(0, new - SPAN) if pattern.lines else new
        while (found := pattern.find(text, at)) is not None:
            if found.stop == len(text) and pattern.at_end:
                return None
            if found.stop > new:
                found, line_end = self._first_line(pattern, text, at, new, found)
                span = window.span(found.start, found.stop)
                if not self._only_echo(span):
                    known = window.span(line_end - 1, line_end)[1]
                    return _Hit(pattern, order, known, span, text[found.start : found.stop], "its line ended", found)
            at = found.start + 1
        return None

    @staticmethod
    def _first_line(pattern: Pattern, text: str, at: int, new: int, found: Found) -> tuple[Found, int]:
        """The match as it was when the first line that made one certain ended, and that line's end."""
        if not pattern.lines:
            return found, _line_end(text, found.stop)
        ends = [_line_end(text, new + 1)]
        while ends[-1] < found.stop:
            ends.append(_line_end(text, ends[-1] + 1))
        low, high = 0, len(ends) - 1
        while low < high:
            middle = (low + high) // 2
            earlier = pattern.find(text, at, ends[middle])
            if earlier is not None and earlier.stop > new:
                found, high = earlier, middle
            else:
                low = middle + 1
        return found, ends[high]

    # -- parts -------------------------------------------------------------------------------------------------------

    def _window(self, pieces: list[Piece]) -> tuple[Window, int]:
        """The new pieces behind what is carried, and where the new text begins."""
        window = Window([*self._carry, *pieces])
        return window, len(window.text) - sum(len(piece.text) for piece in pieces)

    def _masked(self) -> list[tuple[int, int]]:
        return [(span.start, span.stop) for span in self.echo.spans if span.sure and span.stop > self._base]

    def _only_echo(self, span: tuple[int, int]) -> bool:
        """Whether a match lies within one echo."""
        return any(echo.start <= span[0] and span[1] <= echo.stop for echo in self.echo.overlapping(*span))

    def _echoes(self) -> tuple[tuple[int, int], ...]:
        return tuple((span.start, span.stop) for span in self.echo.spans[-_ECHOES_TOLD:])

    def _result(self, hit: _Hit) -> Result:
        died = hit.order >= len(self.patterns)
        return Result(
            "died" if died else "matched",
            hit.why,
            pattern=hit.pattern.source,
            index=hit.order - len(self.patterns) if died else hit.order,
            text=hit.text,
            groups=hit.found.groups,
            named=hit.found.named,
            start=hit.start,
            stop=hit.stop,
            echo=self._echoes(),
            cursor=hit.stop,
        )

    def _jump(self, offset: int) -> None:
        """What lies between can't be had any more."""
        self._buffer.clear()
        self._carry.clear()
        self._base = self._seen = self.end = self._look_end = offset


def _line_end(text: str, stop: int) -> int:
    """Behind the newline that ends the line of the character before `stop`."""
    end = text.find("\n", max(0, stop - 1))
    return len(text) if end < 0 else end + 1


def _last_of(pieces: list[Piece], size: int) -> list[Piece]:
    """The last pieces that together hold `size` characters, if there are as many."""
    kept, held = [], 0
    for piece in reversed(pieces):
        kept.append(piece)
        held += len(piece.text)
        if held >= size:
            break
    return kept[::-1]
