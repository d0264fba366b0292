"""Which of a target's bytes are the echo of what was sent to it.

Pure and incremental; for `labd.match` alone. It is told what was sent and at which offset of the target's stream, and
looks at the target's bytes from there. A sent line counts as echoed when its characters come back in order, with what
terminals do to them: a line end becomes CR LF, a control character `^X` or nothing, a long line is wrapped, colours
and modes come in between, a character may get lost. Nothing need be echoed (a password), or only a part of it.

Where an echo is beyond doubt (a whole line with its end, where a prompt or a line's begin was; or six characters and
more) its bytes are no text of the target's and are left out of what is matched. Where it is likely only (a single
key; an echo that broke off), the bytes stay, but a match that lies wholly within them is none. What might still
become an echo is not decided until it has gone on, or nothing has come for a while.

An echo is looked for in the `REACH` bytes behind the place where the text was sent.
"""

from __future__ import annotations

#: How far behind the send an echo may begin, in bytes.
REACH = 1 << 16
#: From this many characters on, a line that comes back is an echo wherever it stands.
SURE = 6
#: Lines beyond this are remembered by their begin.
LINE_MAX = 1 << 12
#: How many lines that were sent are looked for at once: those before one that is found had no echo.
AHEAD = 4
#: Bytes followed in vain before the search for echo is given up.
STEPS_MAX = 1 << 20
_CONTEXT = 96
_PROMPTS = b"#$>:%=]?)"
_SKIPPED = b"\x00\x07"


class Span:
    """Echo, from one offset to another; `sure` or only likely."""

    __slots__ = ("start", "stop", "sure")

    def __init__(self, start: int, stop: int, sure: bool) -> None:
        self.start = start
        self.stop = stop
        self.sure = sure


class _Sent:
    """One line that was sent: its text, whether its end was sent too, the offset from which an echo may come."""

    __slots__ = ("end", "offset", "text")

    def __init__(self, text: bytes, end: bool, offset: int) -> None:
        self.text = text
        self.end = end
        self.offset = offset


class _Try:
    """An echo that has begun at `start`; `at` is how far it was followed, `done` how much of the text came back."""

    __slots__ = ("anchored", "at", "done", "lost", "sent", "start")

    def __init__(self, sent: _Sent, start: int, anchored: bool) -> None:
        self.sent = sent
        self.start = start
        self.at = start
        self.done = 0
        self.lost = 0
        self.anchored = anchored


class Echo:
    """Follows a stream. Give it what was sent before the bytes that came after that."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.end = 0
        self._waiting: list[_Sent] = []
        self._buffer = bytearray()  # from `_base` on, with what is needed to see where a line began
        self._base = 0
        self._at = 0
        self._try: _Try | None = None
        self._steps = 0

    @property
    def decided(self) -> int:
        """Up to this offset it is known what is echo."""
        return self._try.start if self._try is not None else self._at

    def sent(self, offset: int, data: bytes) -> None:
        """`data` was sent when the target's stream was at `offset`."""
        for line in data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").splitlines(keepends=True):
            end = line[-1:] == b"\n"
            text = line[:-1] if end else line
            last = self._waiting[-1] if self._waiting else None
            begun = self._try is not None and self._try.sent is last
            if last is not None and not last.end and (begun or last.offset == offset):
                last.text, last.end = (last.text + text)[:LINE_MAX], end
            elif text.strip(b"\x00"):
                self._waiting.append(_Sent(text[:LINE_MAX], end, offset))

    def feed(self, offset: int, data: bytes | bytearray) -> None:
        """The target sent `data`, which begins at `offset`. What lay between was lost and is not echo."""
        if offset != self.end:
            self._try, self._buffer, self._base, self._at = None, bytearray(), offset, offset
        self.end = offset + len(data)
        if not self._waiting:
            self._buffer = (self._buffer + data[-_CONTEXT:])[-_CONTEXT:]
            self._base, self._at = self.end - len(self._buffer), self.end
            return
        self._buffer += data
        self._run()

    def quiet(self) -> None:
        """Nothing has come for a while: what has begun is as much of an echo as there is."""
        while self._try is not None or self._at < self.end:
            if self._try is not None:
                self._broke_off(self._try)
            else:
                self._at = min(self._at + 1, self.end)
            self._run()

    def overlapping(self, start: int, stop: int) -> list[Span]:
        """The spans that touch the bytes between two offsets."""
        return [span for span in self.spans if span.start < stop and span.stop > start]

    # -- inside ------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            if self._try is None and not self._begin():
                break
            if self._try is None or not self._follow(self._try):
                break
        keep = max(0, self.decided - _CONTEXT - self._base)
        if keep > 4096 or not self._waiting:
            del self._buffer[:keep]
            self._base += keep

    def _begin(self) -> bool:
        """Find where one of the next lines may begin to come back; False if that is not to be seen yet."""
        while True:
            self._waiting = [sent for sent in self._waiting if self._at <= sent.offset + REACH]
            start, hold, sent = self._next()
            if sent is None:
                self._at = max(self._at, hold)
                return False
            anchored = self._anchored(start, sent)
            if anchored or len(sent.text) >= 3:
                self._at = start
                self._try = _Try(sent, start, anchored)
                return True
            self._at = start + 1

    def _next(self) -> tuple[int, int, _Sent | None]:
        """Where the first of the next lines may begin to come back and which; and up to where there is nothing."""
        best: tuple[int, _Sent | None] = (self.end, None)
        hold = self.end
        for sent in self._waiting[:AHEAD]:
            head = _printable_head(sent.text)
            start = max(self._at, sent.offset)
            if not head or start >= self.end:
                continue
            reach = sent.offset + REACH + len(head) - self._base
            at = self._buffer.find(head, start - self._base, max(0, reach))
            if at >= 0 and at + self._base < best[0]:
                best = (at + self._base, sent)
            elif at < 0 and len(head) > 1 and self._buffer[-1:] == head[:1]:
                hold = self.end - 1
        return best[0], hold, best[1]

    def _anchored(self, start: int, sent: _Sent) -> bool:
        """Whether typing would show there: right where it was sent, at a line's begin, behind a prompt or an echo."""
        if start == sent.offset or (self.spans and self.spans[-1].stop == start):
            return True
        before = bytes(self._buffer[max(0, start - self._base - _CONTEXT) : start - self._base])
        row = _without_escapes(before.replace(b"\r", b"\n").rpartition(b"\n")[2]).rstrip(b" ")
        return not row or row[-1] in _PROMPTS

    def _follow(self, trial: _Try) -> bool:
        """Go on with what has begun; False if more bytes must come first."""
        text, size = trial.sent.text, len(trial.sent.text)
        data, base, end = self._buffer, self._base, self.end
        while trial.done < size:
            if trial.at >= end:
                return False
            wanted, got = text[trial.done], data[trial.at - base]
            if wanted == got:
                trial.done, trial.at = trial.done + 1, trial.at + 1
                continue
            if got in _SKIPPED:
                trial.at += 1
                continue
            if got == 0x1B:
                after = _escape_end(data, trial.at - base)
                if after < 0:
                    return False
                trial.at = after + base
                continue
            if wanted < 0x20 or wanted == 0x7F:
                if got == 0x5E and trial.at + 1 >= end:
                    return False
                shown = got == 0x5E and data[trial.at + 1 - base] == wanted ^ 0x40
                trial.done, trial.at = trial.done + 1, trial.at + (2 if shown else 0)
                continue
            if got in b" \r\n" and trial.done:
                after = _wrap_end(data, trial.at - base)
                if after >= len(data):
                    return False
                if data[after] == wanted:
                    trial.at = after + base
                    continue
            if trial.done >= 2 and got in text[trial.done + 1 : trial.done + 3] and trial.lost < 1 + size // 8:
                trial.lost += 1
                trial.done = text.index(got, trial.done + 1)
                continue
            self._broke_off(trial)
            return True
        if not trial.sent.end:
            self._came(trial, trial.at)
            return True
        return self._line_end(trial)

    def _line_end(self, trial: _Try) -> bool:
        """The text is there; a line end must follow for it to be what was typed."""
        data, at = self._buffer, trial.at - self._base
        while at < len(data) and data[at] == 0x1B:
            after = _escape_end(data, at)
            if after < 0:
                return False
            at = after
        newline = at
        while newline < len(data) and data[newline] == 0x0D:
            newline += 1
        if newline >= len(data):
            return False
        if data[newline] == 0x0A:
            newline += 1
        if newline == at:
            self._broke_off(trial)
        else:
            self._came(trial, newline + self._base)
        return True

    def _came(self, trial: _Try, stop: int) -> None:
        sent = trial.sent
        sure = len(sent.text) >= SURE or (trial.anchored and sent.end)
        self.spans.append(Span(trial.start, stop, sure))
        self._waiting = self._waiting[self._waiting.index(sent) + 1 :]
        self._try, self._at = None, stop

    def _broke_off(self, trial: _Try) -> None:
        """It did not go on as an echo would. A part of one is likely where typing would show; the rest may follow."""
        self._try = None
        self._steps += trial.at - trial.start
        if self._steps > STEPS_MAX:
            self._waiting.clear()
            self._at = self.end
            return
        if trial.anchored and (trial.done >= 3 or trial.at == self.end):
            self.spans.append(Span(trial.start, trial.at, False))
            rest = trial.sent.text[trial.done :]
            left = self._waiting[self._waiting.index(trial.sent) + 1 :]
            self._waiting = [_Sent(rest, trial.sent.end, trial.at), *left] if rest else left
            self._at = trial.at
        else:
            self._at = trial.start + 1


def _printable_head(text: bytes) -> bytes:
    """The first two characters, or one where the second is no plain character; what an echo is found by."""
    if not text or text[0] < 0x20 or text[0] == 0x7F:
        return b""
    return text[:2] if len(text) > 1 and text[1] >= 0x20 and text[1] != 0x7F else text[:1]


def _escape_end(data: bytearray, at: int) -> int:
    """Behind the escape sequence at `at`; -1 if it has not ended."""
    if at + 1 >= len(data):
        return -1
    if data[at + 1] != 0x5B:
        return at + 2
    end = at + 2
    while end < len(data) and 0x20 <= data[end] <= 0x3F:
        end += 1
    return end + 1 if end < len(data) else -1


def _wrap_end(data: bytearray, at: int) -> int:
    """Behind what a terminal or a line editor puts where a long line goes on in the next row."""
    if data[at] == 0x20:
        if at + 1 < len(data) and data[at + 1] != 0x0D:
            return at
        at += 1
    while at < len(data) and data[at] == 0x0D:
        at += 1
    if at < len(data) and data[at] == 0x0A:
        at += 1
        while at < len(data) and data[at] == 0x0D:
            at += 1
    return at


def _without_escapes(row: bytes) -> bytes:
    parts = row.split(b"\x1b")
    return parts[0] + b"".join([part[_escape_end(bytearray(b"\x1b" + part), 0) - 1 :] for part in parts[1:]])
