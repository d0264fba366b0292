"""Whether a capture has everything that the board said, judged from the journal's events. Pure.

A session begins when a port is opened for the first time since a stop. Everything in it after which bytes may be
missing or altered is a loss, with its place and its reason in words. What can't have lost anything isn't one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from labd.journal_read import Event

#: The kinds of events that matter here; for `Reader.events_backwards`.
KINDS = ("open", "lost", "reopened", "closed", "overrun", "suspect", "gap", "error")
#: The kinds that tell, beside the bytes, that a port was captured then; none that the next capture tells as it begins.
SIGNS = ("open", "reopened", "overrun", "suspect", "gap", "attached", "tx", "break", "reset", "line", "trigger")


class Loss:
    """From `rx` on, something may be missing: `why`, in words. `wall_ns`: when that was noticed."""

    __slots__ = ("rx", "wall_ns", "why")

    def __init__(self, rx: int, wall_ns: int, why: str) -> None:
        self.rx = rx
        self.wall_ns = wall_ns
        self.why = why

    def __repr__(self) -> str:
        return f"<loss at {self.rx}: {self.why}>"


class Verdict:
    """On a session that began at the offset `rx` and the time `wall_ns`: what it may lack, in order of place."""

    __slots__ = ("losses", "rx", "wall_ns")

    def __init__(self, rx: int, wall_ns: int, losses: Sequence[Loss]) -> None:
        self.rx = rx
        self.wall_ns = wall_ns
        self.losses = list(losses)

    @property
    def complete(self) -> bool:
        """Whether nothing is known that could be missing."""
        return not self.losses


def judge(newest_first: Iterable[Event], last_sign: Callable[[Event], int] = lambda opened: 0) -> Verdict | None:
    """The verdict on the last session, from the events of KINDS; reads no further back. None: never captured.

    `last_sign(opened)` gives the time of the newest byte or event of SIGNS before an `open`; 0 if there is none.
    """
    session = _session(newest_first)
    if not session:
        return None
    begin = session[0]
    return Verdict(
        begin.rx, begin.wall_ns, sorted(_losses(session, last_sign), key=lambda loss: (loss.rx, loss.wall_ns))
    )


def _session(newest_first: Iterable[Event]) -> list[Event]:
    """The last session's events, oldest first. One that ended without a `closed` goes on in the next: it was cut."""
    found: list[Event] = []
    for event in newest_first:
        if found and found[-1].kind == "open" and event.kind == "closed":
            break
        if event.kind == "open" and event.fields.get("why"):
            continue  # only its settings changed
        if event.kind == "closed" and found:
            break  # what came after it belongs to no session yet
        found.append(event)
    while found and found[-1].kind not in ("open", "reopened"):
        found.pop()
    return found[::-1]


def _losses(session: list[Event], last_sign: Callable[[Event], int]) -> Iterator[Loss]:
    down: Event | None = None
    for number, event in enumerate(session):
        kind, fields = event.kind, event.fields
        if kind == "lost":
            down = event
        elif kind == "reopened":
            cause = str(fields.get("cause") or (down.fields.get("why") if down else "") or "the port was gone")
            yield Loss(event.rx, event.wall_ns, f"{cause}: nothing for {_time(fields.get('gap_ms'))}")
            down = None
        elif kind == "open" and number:
            signs = [past.wall_ns for past in session[:number] if past.kind in SIGNS]
            last = down.wall_ns if down is not None else max([*signs[-1:], last_sign(event)])
            away = max(0, event.wall_ns - last) / 1e6
            yield Loss(event.rx, event.wall_ns, f"labd ended without closing: nothing for up to {_time(away)}")
            down = None
        elif kind in _WORDS:
            why = _WORDS[kind](fields)
            if why:
                yield Loss(_begin(event), event.wall_ns, why)
    if down is not None:
        yield Loss(down.rx, down.wall_ns, f"{down.fields.get('why') or 'the port was lost'}; it has not come back")


def _begin(event: Event) -> int:
    """From which offset on a finding may matter: from the last look that found nothing."""
    since = event.fields.get("since_rx", event.rx)
    return since if isinstance(since, int) else event.rx


def _overrun(fields: dict[str, object]) -> str:
    if "events" in fields:
        return ""  # notes of ours, no byte of the board's
    count = fields.get("count")
    if fields.get("where") == "uart":
        return f"the port overflowed {count} times before labd could read it"
    return f"{count} bytes could not be stored ({fields.get('cause') or fields.get('where') or 'no reason known'})"


def _suspect(fields: dict[str, object]) -> str:
    return "" if fields.get("ended") else f"{fields.get('command')} (pid {fields.get('pid')}) had the port open, too"


def _gap(fields: dict[str, object]) -> str:
    """The capture process was away. (A stall of the daemon is no loss: it does not read the ports.)"""
    return f"{fields.get('cause') or 'nobody captured'}: nothing for {_time(fields.get('gap_ms'))}"


def _error(fields: dict[str, object]) -> str:
    return str(fields.get("message", "")) if fields.get("what") == "settings" else ""


_WORDS = {"overrun": _overrun, "suspect": _suspect, "gap": _gap, "error": _error}


def _time(ms: object) -> str:
    if not isinstance(ms, int | float):
        return "an unknown time"
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"
