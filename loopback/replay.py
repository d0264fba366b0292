"""Makes a board of a captured journal: `python -m loopback --from-journal DIR > dut.toml`.

What was heard before anything was sent comes when the board boots; what was heard after a line was sent is that line's
answer; both with the pauses that were between them (`--speed 10` makes them ten times shorter, 0 takes them out). The
lines may be sent in another order. One that was sent several times has its answers in turn, then the last one again.

What cannot be known is made up: a line that was never sent has no answer. A single key, ^C, and a line that was not
echoed (a password) are answered where they came in the capture, each in a state of its own. What came more than a
second after an answer comes meanwhile, so that it holds nothing up. The echo is the board's, at once, as it was typed.

Reads through `loopback.capture`; writes nothing.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from . import dutfile
from .capture import Capture, Chunk, read

AT_ONCE_MS = 3  # chunks that came closer together are one
MEANWHILE_MS = 1000
ENDS = b"\r\n"
UNIT = re.compile(
    rb"[\x03\x04\x1a]|\x1b[^\r\n\x03\x04\x1a]*|[^\r\n\x03\x04\x1a\x1b]*(?:\r\n|\r|\n)|[^\r\n\x03\x04\x1a\x1b]+"
)
KEYS = b"\x03\x04\x1a\x1b"  # answered by themselves, not as part of a line
ECHO, QUIET, KEY = "lines", "quiet", "key"


Timed = list[tuple[float, bytes]]


@dataclass(frozen=True)
class Turn:
    """Something that was sent, and what was heard until the next: from offset `start`, counted from `when`."""

    sent: bytes
    start: int
    when: Chunk
    kind: str = ECHO


def make(directory: Path, speed: float) -> str:
    """The DUT file that replays the journal in `directory`. Raises capture.NoJournal, OSError."""
    capture = read(directory)
    text = "\n".join(_file(capture, speed)) + "\n"
    dutfile.parse(tomllib.loads(text), "replay", "replay", {})  # what is printed can be played
    return text


# -- turns ------------------------------------------------------------------------------------------------------


def turns(capture: Capture) -> list[Turn]:
    """What was sent, a line or a key each, in order."""
    heard = _Heard(capture.heard)
    found: list[Turn] = []
    begun: Turn | None = None
    for chunk in capture.sent:
        for unit in _units(chunk.data):
            if begun is not None and unit[:1] not in KEYS and heard.is_echo(begun, chunk.at):
                begun = Turn(begun.sent + unit, begun.start, chunk)
            else:
                found += [] if begun is None else [begun]
                begun = Turn(unit, chunk.at, chunk)
            if unit[-1:] in ENDS or unit in KEYS:
                found.append(begun)
                begun = None
    found += [] if begun is None else [begun]
    return [replace(turn, kind=heard.kind(turn, end)) for turn, end in zip(found, heard.ends(found), strict=True)]


def _units(data: bytes) -> Iterator[bytes]:
    r"""`data` cut behind each line end (CR LF is one) and around each key of KEYS."""
    for found in UNIT.finditer(data):
        yield found[0]


class _Heard:
    """The rx stream, to be looked at by offset."""

    def __init__(self, heard: tuple[Chunk, ...]) -> None:
        self._chunks = heard
        self._starts = [chunk.at for chunk in heard]
        self.end = heard[-1].at + len(heard[-1].data)

    def between(self, start: int, end: int) -> list[Chunk]:
        first = max(0, bisect_right(self._starts, start) - 1)
        found = [chunk.cut(start, end) for chunk in self._chunks[first : bisect_right(self._starts, end)]]
        return [chunk for chunk in found if chunk.data]

    def ends(self, sent: list[Turn]) -> list[int]:
        """Where what was heard after each turn ends."""
        return [turn.start for turn in sent[1:]] + [self.end] * bool(sent)

    def bytes(self, start: int, end: int) -> bytes:
        return b"".join(chunk.data for chunk in self.between(start, end))

    def is_echo(self, turn: Turn, until: int) -> bool:
        """Whether nothing but its own echo came from `turn` until an offset: more of the line may follow."""
        return turn.sent.startswith(self.bytes(turn.start, until)) and turn.sent[:1] not in KEYS

    def kind(self, turn: Turn, end: int) -> str:
        text = turn.sent.rstrip(ENDS)
        if turn.sent[:1] in KEYS or text == turn.sent:
            return KEY
        return ECHO if self.bytes(turn.start, end).startswith(text) else QUIET


# -- the file ---------------------------------------------------------------------------------------------------


def _file(capture: Capture, speed: float) -> Iterator[str]:
    heard = _Heard(capture.heard)
    sent = turns(capture)
    ends = {id(turn): end for turn, end in zip(sent, heard.ends(sent), strict=True)}
    first = sent[0].start if sent else heard.end
    groups = _groups(sent)
    yield f"title = {_string(f'Replay of a capture: {heard.end - capture.heard[0].at} bytes, {len(sent)} times sent')}"
    yield 'encoding = "latin-1"'
    yield "[line]\nbaud = 0"
    opening = heard.between(0, first)
    for number, group in enumerate(groups or [[]]):
        name = f"s{number}"
        following = f"s{number + 1}" if number + 1 < len(groups) else None
        kind = group[0].kind if group else ECHO
        yield f"\n[states.{name}]"
        if kind == KEY:
            yield 'mode = "key"'
        elif kind == QUIET:
            yield "echo = false"
        if number == 0:
            yield from _steps("steps", _timed(opening, opening[0] if opening else None, speed))
        answers = [(turn, heard.between(turn.start, ends[id(turn)])) for turn in group]
        yield from _responses(name, answers, following, speed)


def _groups(sent: list[Turn]) -> list[list[Turn]]:
    """Turns that one state answers: lines that were echoed together, all others alone."""
    groups: list[list[Turn]] = []
    for turn in sent:
        if groups and turn.kind == ECHO and groups[-1][-1].kind == ECHO:
            groups[-1].append(turn)
        else:
            groups.append([turn])
    return groups


def _responses(
    state: str, answers: list[tuple[Turn, list[Chunk]]], following: str | None, speed: float
) -> Iterator[str]:
    times: Counter[bytes] = Counter()
    known: dict[bytes, str] = {}
    blocks: list[tuple[int, list[str]]] = []
    for number, (turn, chunks) in enumerate(answers):
        text = _text(turn)
        times[text] += 1
        name = known.setdefault(text, f"{state}_{len(known)}_")
        lines = [f"[[states.{state}.respond]]", f"match = {_string(re.escape(text.decode('latin-1')))}"]
        if times[text] > 1:
            lines.append(f"when_env = {_string(name + str(times[text]))}")
        lines.append(f'setenv = {{ {name}{times[text] + 1} = "1" }}')
        if number + 1 == len(answers) and following is not None:
            lines.append(f"goto = {_string(following)}")
        now, later = _answer(turn, chunks, speed)
        lines += [*_steps("steps", now), *_steps("later", later)]
        blocks.append((times[text], lines))
    for _, lines in sorted(blocks, key=lambda block: -block[0]):  # the later of the same first: they have a condition
        yield from lines


def _text(turn: Turn) -> bytes:
    """What a board's software gets to see of it."""
    return turn.sent[-1:] if turn.kind == KEY else turn.sent.strip()


def _answer(turn: Turn, chunks: list[Chunk], speed: float) -> tuple[Timed, Timed]:
    """What comes at once, and what comes meanwhile."""
    if turn.kind == ECHO:
        chunks = _without_echo(turn.sent.rstrip(ENDS), chunks)
    timed = _timed(chunks, turn.when, 1)
    late = next((number for number, (wait_ms, _) in enumerate(timed) if number and wait_ms > MEANWHILE_MS), len(timed))
    return _faster(timed[:late], speed), _faster(timed[late:], speed)


def _without_echo(text: bytes, chunks: list[Chunk]) -> list[Chunk]:
    whole = b"".join(chunk.data for chunk in chunks)
    echo = re.match(rb"(?s).{%d}(?:\r\r\n|\r\n|\r|\n)?" % len(text), whole)
    start = chunks[0].at + (echo.end() if echo else 0) if chunks else 0
    found = [chunk.cut(start, chunk.at + len(chunk.data)) for chunk in chunks if chunk.at + len(chunk.data) > start]
    return [chunk for chunk in found if chunk.data]


def _timed(chunks: list[Chunk], since: Chunk | None, speed: float) -> Timed:
    """Each chunk with the pause before it in milliseconds; those that came together are joined."""
    out: Timed = []
    for chunk in chunks:
        wait_ms = chunk.after_ms(since) if since is not None else 0.0
        if out and wait_ms < AT_ONCE_MS:
            out[-1] = (out[-1][0], out[-1][1] + chunk.data)
        else:
            out.append((wait_ms, chunk.data))
        since = chunk
    return _faster(out, speed)


def _faster(timed: Timed, speed: float) -> Timed:
    return [(wait_ms / speed if speed else 0.0, data) for wait_ms, data in timed]


def _steps(key: str, timed: Timed) -> Iterator[str]:
    texts = [(round(wait_ms), _string(data.decode("latin-1"))) for wait_ms, data in timed]
    lines = [f"  {{ wait_ms = {wait_ms}, bytes = {text} }}," for wait_ms, text in texts]
    if lines:
        yield "\n".join([f"{key} = [", *lines, "]"])


def _string(text: str) -> str:
    """A TOML basic string: JSON's escapes are among TOML's, but for DEL."""
    return json.dumps(text).replace("\x7f", "\\u007f")
