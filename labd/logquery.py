"""What `serial log` shows of a journal: which lines, which events, in what order, and why there may be nothing.

A pure reader: needs no daemon and writes nothing but the memory of unfinished lines shown (`labd.logshown`).
Selectors narrow each other down: `--since`, `--from/--to`, `--since-boot` choose lines, `--grep` filters them, and
`--tail` keeps the last of what is left. Without any of the choosing ones it is the last 200. Light.

`--since N` gives what came after line N. Where line N was shown unfinished (or is written `N*`) and has grown since,
it comes again, whole: no line is ever lost to who asks with the last number that he saw. `N+BYTES` says how much of
line N was seen (its newline counts as one): then it comes again once for each time that it has grown.
"""

from __future__ import annotations

from labd.errors import LabdError, Usage
from labd.journal_read import LINE_MAX, Event, Line, Reader
from labd.logfacts import Facts, Note
from labd.logshown import Shown
from labd.logtext import as_data, as_text, event_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from labd.journal_seams import Seam
    from labd.loggrep import Pattern

#: How many lines are shown when no selector says otherwise.
DEFAULT_TAIL = 200

__all__ = [
    "DEFAULT_TAIL",
    "Facts",
    "Line",
    "Note",
    "Query",
    "as_data",
    "as_text",
    "parse_cursor",
    "parse_since",
    "query",
]


def query(
    directory: str,
    *,
    tail: int | None = None,
    since: int | str | None = None,
    frm: int | None = None,
    to: int | None = None,
    grep: str | None = None,
    ignore_case: bool = False,
    since_boot: bool = False,
    events: bool = False,
    raw: bool = False,
    pending: bool = True,
    follow: bool = False,
    wait: Callable[[str, float], bool] | None = None,
    encoding: str = "utf-8",
) -> Query:
    """Ask the journal in `directory`, which need not exist (`facts.captured` is False then, and nothing is yielded).

    Iterate over the result: `Line`, `Event` (with `events`) and `Note`, or `bytes` and `Note` (with `raw`). `tail=0`
    is all. `follow` goes on for ever after what there is, sleeping in `wait(directory, seconds)`, until that is
    False. Raises Usage for selectors that contradict each other or a bad pattern, before anything is shown.
    """
    if raw and events:
        raise Usage(
            "--raw is the target's bytes and nothing else, so it can't show --events", hint="labd serial log --help"
        )
    if frm is not None and to is not None and to < frm:
        raise Usage(f"--to {to} is before --from {frm}", hint=f"labd serial log --from {to} --to {frm}")
    if follow and (to is not None or wait is None):
        raise Usage("--follow has no end, so it can't have --to", hint="labd serial log --help")
    try:
        asked = Query(Reader(directory), encoding)
    except OSError as problem:
        import shlex

        raise LabdError(
            f"{directory} can't be read: {problem.strerror}", hint=f"ls -ld {shlex.quote(directory)}"
        ) from problem
    if grep is not None:
        from labd.loggrep import Pattern

        asked.pattern = Pattern(grep, ignore_case=ignore_case, encoding=encoding)
        asked.pattern_text = grep
    asked.events, asked.raw, asked.pending = events, raw, pending
    asked.wait = wait if follow else None
    asked.select(tail, None if since is None else parse_cursor(since), frm, to, since_boot)
    return asked


def parse_since(word: int | str) -> tuple[int, bool]:
    """(seq, whether it was unfinished when seen) of `12`, `12*`, `#12*`, `12+30`. Raises Usage."""
    seq, seen = parse_cursor(word)
    return seq, seen is not None


def parse_cursor(word: int | str) -> tuple[int, int | None]:
    """(seq, how many bytes of it were seen) of `12` (None), `12*` (0: some), `12+30`, each also with `#`.

    Raises Usage.
    """
    text = str(word).removeprefix("#")
    number, plus, seen = text.partition("+")
    star = number.endswith("*") and not plus
    number = number.removesuffix("*") if star else number
    if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in ([number, seen] if plus else [number])):
        raise Usage(f"--since takes the number of the last line you saw, not {str(word)!r}",
                    hint="labd serial log --since 1840")  # fmt: skip
    return int(number), int(seen) if plus else 0 if star else None


class Query:
    """One question to a journal. Made by `query`; iterate over it once, then ask for its `notes`."""

    def __init__(self, reader: Reader, encoding: str) -> None:
        self.reader = reader
        self.encoding = encoding
        self.facts = Facts(reader)
        self.pattern: Pattern | None = None
        self.pattern_text = ""
        self.events = self.raw = False
        self.pending = True
        self.wait: Callable[[str, float], bool] | None = None
        self.tail: int | None = None
        self.since: int | None = None
        self.limited_by_default = False
        self.shown_before = Shown(reader.directory)
        self._events_from = 0
        self._events_to: int | None = None
        self.wants_boot = False
        self.last_event = 0
        self.events_shown = 0
        self.boot_seq = 0
        self.asked_first: int | None = None
        self.last_seen: tuple[int, int, bool] | None = None

    # -- choosing -----------------------------------------------------------------------------------------------

    def select(
        self, tail: int | None, since: tuple[int, int | None] | None, frm: int | None, to: int | None, since_boot: bool
    ) -> None:
        """Turn the selectors into a first and a last line, and the offsets between which events are shown."""
        facts = self.facts
        first, last = facts.first_seq, facts.last_seq
        if not self.pending and facts.partial:
            last -= 1
        if frm is not None:
            self.asked_first = frm
            first = max(first, frm)
        if since is not None:
            self.since, self.asked_first = since[0], since[0] + 1
            first = max(first, self._after(*since))
        if since_boot:
            first = max(first, self._boot())
        if to is not None:
            last = min(last, to)
        chosen = since is not None or frm is not None or to is not None or (since_boot and facts.boot is not None)
        if tail is None and not chosen:
            tail, self.limited_by_default = DEFAULT_TAIL, True
        self.tail = tail or None
        if self.pattern is None:
            facts.matched = max(0, last - first + 1 - facts.missing(first, last))
            if self.tail is not None:
                first = max(first, facts.back(last, self.tail))
        facts.start_seq, facts.stop_seq = first, last
        if self.events:
            self._select_events(to)

    def _select_events(self, to: int | None) -> None:
        facts, reader = self.facts, self.reader
        if self.since is not None:  # also what was done while line N was the last
            seq, offset = reader.locate(self.since)
            self._events_from = offset + 1 if seq == self.since else offset
            if self.since == 0:
                self._events_from = 0
        elif facts.start_seq > facts.first_seq or facts.first_seq > 1:
            self._events_from = reader.locate(facts.start_seq)[1]
        if to is not None and facts.stop_seq < facts.last_seq:
            self._events_to = reader.locate(facts.stop_seq + 1)[1] - 1

    def _after(self, seq: int, seen: int | None) -> int:
        """The first line for who has seen line `seq`, and `seen` bytes of it."""
        facts = self.facts
        facts.cursor_beyond = seq > facts.last_seq
        known = seen or self.shown_before.length(seq)
        if seq > facts.last_seq or seq < facts.first_seq or (known is None and seen is None):
            return seq + 1
        line = next(self.reader.lines(seq, seq), None)
        if line is None:
            return seq + 1
        whole_seen = line.length + 1 if not line.partial else line.length
        if seen:
            return seq + 1 if whole_seen <= seen else seq
        return seq + 1 if line.partial and known is not None and line.length <= known else seq

    def _boot(self) -> int:
        from labd.logboot import last_boot

        self.wants_boot = True
        boot = last_boot(self.reader)
        if boot is None:
            return 1
        self.facts.boot = boot.why
        self.boot_seq = boot.seq
        return boot.seq

    # -- answering ----------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Line | Event | Note | bytes]:
        yield from self._now()
        if self.wait is not None:
            from labd.logfollow import follow

            yield from follow(self)

    def notes(
        self,
        name: str = "the interface",
        *,
        watch: str = "labd serial watch",
        live: bool = False,
        failing: str | None = None,
    ) -> list[str]:
        """What to tell beside the answer, once it was iterated: what was left out or lost, or why there is nothing.

        `name` is the interface, `watch` the command that starts its capture, `live` whether that runs, `failing` why
        its journal can't be written now.
        """
        from labd.logexplain import losses, notes, why_empty

        lost = losses(self, name, failing)
        if self.facts.shown or self.events_shown:
            return notes(self) + lost
        return [why_empty(self, name, watch, live), *lost]

    def _now(self) -> Iterator[Line | Event | bytes]:
        lines = self.flagged(self._lines())
        if self.raw:
            yield from self._raw_bytes(lines)
        elif self.events:
            yield from self.merged(lines)
        else:
            for line in lines:
                self.count(line)
                yield line

    def count(self, line: Line) -> None:
        """Note that a line is being shown."""
        self.facts.shown += 1
        self.facts.gaps += line.gap
        self.last_seen = (line.seq, line.length + (not line.partial), line.partial)
        if line.partial:
            self.shown_before.remember(line.seq, line.length)

    def flagged(self, lines: Iterator[Line]) -> Iterator[Line]:
        """The lines, those with an interruption inside marked as such, and told which."""
        seams: list[Seam] | None = None
        at = 0
        for line in lines:
            if seams is None:
                seams = self.reader.seams(line.offset + 1)
            while at < len(seams) and seams[at].rx <= line.offset:
                at += 1
            if at == len(seams):
                yield line
                yield from lines
                return
            for seam in seams[at:]:
                if seam.since >= line.end:
                    break
                if seam.within(line.offset, line.end):
                    line.gap, line.seams = True, (*line.seams, self._timed(seam))
            yield line

    def _timed(self, seam: Seam) -> Seam:
        """With the time at which it went on."""
        if not seam.wall_ns:
            after = self.reader.record_at(seam.rx)
            seam.wall_ns = after.wall_ns if after is not None else 0
        return seam

    def _lines(self) -> Iterator[Line]:
        facts = self.facts
        if self.pattern is None:
            return self.reader.lines(facts.start_seq, facts.stop_seq) if facts.matched else iter(())
        found = self._matching()
        return found if self.tail is None else iter(self._last_of(found, self.tail))

    def _last_of(self, found: Iterator[Line], count: int) -> list[Line]:
        ring: list[Line] = []
        for number, line in enumerate(found):
            if number < count:
                ring.append(line)
            else:
                ring[number % count] = line
        turn = self.facts.matched % count if self.facts.matched > count else 0
        return ring[turn:] + ring[:turn]

    def _matching(self) -> Iterator[Line]:
        """The lines whose text matches, looking closer only at blocks where one may be."""
        reader, pattern, facts = self.reader, self.pattern, self.facts
        assert pattern is not None
        seq, at = reader.locate(facts.start_seq)
        end = reader.end_offset if facts.stop_seq >= facts.last_seq else reader.locate(facts.stop_seq + 1)[1]
        while at < end and seq <= facts.stop_seq:
            found, block = next(reader.chunks(at, end), (end, b""))
            if found != at:  # evicted while we read
                seq, at = reader.seq_at(found), found
                continue
            cut = block.rfind(b"\n") + 1
            if cut and not pattern.maybe(block[:cut]):
                passed = block.count(b"\n", 0, cut)
                seq, at, facts.looked = seq + passed, at + cut, facts.looked + passed
                continue
            for line in reader.walk(seq, at, stop=at + cut if cut else None, to_seq=None if cut else seq):
                facts.looked += 1
                if self.line_matches(line):
                    facts.matched += 1
                    yield line
                seq, at = line.seq + 1, line.end

    def line_matches(self, line: Line) -> bool:
        """Whether the pattern (if there is one) is found in the line, however long it is."""
        pattern = self.pattern
        if pattern is None or pattern.matches_raw(line.raw, partial=line.partial):
            return True
        from labd.loggrep import OVERLAP

        stop = line.offset + line.skipped
        step = LINE_MAX - OVERLAP
        for start in range(line.offset, stop, step):
            piece = self.reader.bytes(start, min(start + LINE_MAX, line.offset + line.length))
            if pattern.matches_raw(piece):
                line.raw, line.skipped = piece, start - line.offset  # what is shown is what was found
                return True
        return False

    def merged(self, lines: Iterator[Line]) -> Iterator[Line | Event]:
        """Each event before the first line that began after it, so behind the line it happened in."""
        happened = self.happened()
        event = next(happened, None)
        for line in lines:
            while event is not None and event.rx <= line.offset:
                yield event
                event = next(happened, None)
            self.count(line)
            yield line
        while event is not None:
            yield event
            event = next(happened, None)

    def happened(self) -> Iterator[Event]:
        """The chosen events that were not given yet."""
        for event in self.reader.events(self._events_from, self._events_to, after=self.last_event):
            self.last_event = event.number
            if self.pattern is None or self.pattern.matches(event_text(event)):
                self.events_shown += 1
                yield event

    def _raw_bytes(self, lines: Iterator[Line]) -> Iterator[bytes]:
        """The exact bytes of the lines; whole blocks of them where no pattern picks among them."""
        facts, reader = self.facts, self.reader
        if self.pattern is not None:
            for line in lines:
                self.count(line)
                yield from (data for _, data in reader.chunks(line.offset, line.end))
            return
        if not facts.matched:
            return
        start = reader.locate(facts.start_seq)[1]
        end = facts.end_offset if facts.stop_seq >= facts.last_seq else reader.locate(facts.stop_seq + 1)[1]
        facts.shown = min(facts.matched, self.tail or facts.matched)
        facts.gaps = sum(seam.within(start, end) for seam in reader.seams(start + 1))
        if facts.stop_seq == facts.last_seq:
            self.last_seen = (facts.last_seq, end - reader.locate(facts.last_seq)[1], facts.partial)
        if facts.partial and facts.stop_seq == facts.last_seq:
            self.shown_before.remember(facts.last_seq, facts.end_offset - reader.locate(facts.last_seq)[1])
        yield from (data for _, data in reader.chunks(start, end))
