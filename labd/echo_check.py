"""Typing that believes only what comes back: each piece is sent, its echo is compared, and what got lost is sent again.

For consoles that drop or flip input. Pure but for the two callables that it is given; no file, no port. The line end is
sent only when all that stands before it has come back right, so a line that was damaged on the way is never executed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from labd.errors import LabdError, Usage

#: How long an echo may take, in seconds, before the byte counts as lost.
PATIENCE_S = 0.5
#: How often one byte is tried.
TRIES = 5
#: The most that is sent without having seen its echo.
PIECE_MAX = 16
#: Nothing must come for this long before the next line is typed.
QUIET_S = 0.15
#: How long a console may go on printing before the first byte is typed all the same.
START_MAX_S = 2.0
#: A command may talk for this long before the next line is typed all the same.
OUTPUT_MAX_S = 30.0

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()].|[^\[\]()])|\x00|\x07")
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|$)")
_ERASE = b"\x7f"


@dataclass
class Checked:
    """What it took: bytes of text confirmed by their echo, bytes sent again, and erased again."""

    confirmed: int = 0
    resent: int = 0
    erased: int = 0


class Typist:
    """Types with `send(data)` and listens with `read(until)`, which gives what came, b"" if nothing did by then.

    `patience_s` is how long an echo may take; with `piece_max` 1 every byte waits for its own.
    """

    def __init__(self, send: Callable[[bytes], object], read: Callable[[float], bytes], *,
                 patience_s: float = PATIENCE_S, piece_max: int = PIECE_MAX) -> None:  # fmt: skip
        self.send = send
        self.read = read
        self.patience_s = patience_s
        self.piece_max = piece_max
        self.result = Checked()
        self._at = 0

    def type(self, data: bytes) -> Checked:
        """Type `data`, text in lines. Raises Usage for other control characters (their echo can't be known), LabdError
        naming the first byte that would not come back right; what stands before it was confirmed.
        """
        check_text(data)
        lines = list(_lines(data))
        self._until_quiet(min(QUIET_S, self.patience_s), START_MAX_S)
        for number, (text, end) in enumerate(lines):
            self._text(text, of=len(data))
            if end:
                self._end(end)
            if number + 1 < len(lines):
                self._until_quiet(QUIET_S, OUTPUT_MAX_S)
        return self.result

    # -- one line ----------------------------------------------------------------------------------------------------

    def _text(self, text: bytes, of: int) -> None:
        done, size, tries = 0, 1, 0
        while done < len(text):
            piece = text[done : done + size]
            self.send(piece)
            echo = self._hear(piece)
            right = _common(echo, piece)
            done += right
            self._at += right
            self.result.confirmed += right
            if right == len(piece):
                size, tries = min(size * 2, self.piece_max), 0
                continue
            tries = 1 if right else tries + 1
            wrong = echo[right:]
            if tries >= TRIES or (wrong and not self._erase(len(wrong))):
                raise self._differs(piece[right : right + 1], wrong, of)
            self.result.resent += len(piece) - right
            size = 1

    def _hear(self, piece: bytes) -> bytes:
        """The echo of `piece`, or what came in its place; colours and the like left out."""
        heard = b""
        until = time.monotonic() + self.patience_s
        while True:
            data = self.read(until)
            heard += data
            text = _wrapped(_ESCAPES.sub(b"", heard), piece)
            if text[: len(piece)] == piece or (b"\n" in heard and text[-len(piece) :] == piece):
                return piece  # also behind something that was printed in between
            if not data:
                return text
            if len(text) >= len(piece):
                until = min(until, time.monotonic() + self.patience_s / 4)  # it differs: is there more of it?

    def _erase(self, count: int) -> bool:
        """Take back `count` characters; whether the console did."""
        if count > self.piece_max:
            return False
        for _ in range(count):
            self.send(_ERASE)
            heard = b""
            until = time.monotonic() + self.patience_s
            while b"\b" not in heard and b"\x1b[" not in heard:
                data = self.read(until)
                if not data:
                    return False
                heard += data
            self.result.erased += 1
        self.read(time.monotonic() + self.patience_s / 10)
        return True

    def _end(self, end: bytes) -> None:
        """Send the line's end, and see that something answers it."""
        for _ in range(TRIES):
            self.send(end)
            if self.read(time.monotonic() + self.patience_s):
                self._at += len(end)
                return
            self.result.resent += len(end)
        raise LabdError(
            f"the line end after byte {self._at} had no answer in {TRIES} tries; the text before it came back right",
            hint="labd serial send --eol lf TEXT  # if the console wants another one",
        )

    def _until_quiet(self, quiet_s: float, most_s: float) -> None:
        give_up = time.monotonic() + most_s
        while self.read(time.monotonic() + quiet_s) and time.monotonic() < give_up:
            pass

    def _differs(self, sent: bytes, came: bytes, of: int) -> LabdError:
        what = f"came back as {came[:16]!r}" if came else f"did not come back in {TRIES} tries"
        return LabdError(
            f"byte {self._at + 1} of {of} ({sent!r}) {what}; the {self._at} before it are right, "
            "no line end was sent after them",
            hint="--key ctrl-c clears the line; --pace-ms helps where a console is slow; no echo at all: leave out "
            "--verify-echo",
        )


def check_text(data: bytes) -> None:
    """Raise Usage if `data` is more than lines of text: the echo of other bytes can't be known."""
    for at, byte in enumerate(data):
        if (byte < 0x20 and byte not in b"\r\n") or byte == 0x7F:
            raise Usage(f"--verify-echo is for text: byte {at + 1} is the control character 0x{byte:02x}")


def _lines(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    for found in _LINE.finditer(data):
        text = found[0].rstrip(b"\r\n")
        if found[0]:
            yield text, found[0][len(text) :]


def _wrapped(text: bytes, piece: bytes) -> bytes:
    """`text` without what a line editor puts where a row is full: a blank and CR, or CR LF, before or in the echo."""
    if text[: len(piece)] == piece or piece[:1] in b" ":
        return text
    return re.sub(rb" \r|\r\n|\r", b"", text)


def _common(one: bytes, other: bytes) -> int:
    size = 0
    while size < min(len(one), len(other)) and one[size] == other[size]:
        size += 1
    return size
