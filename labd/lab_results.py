"""What the Python client answers with: plain frozen values, one type a question. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from labd.errors import Died, LabdError, TimedOut, Unreachable

if TYPE_CHECKING:
    from labd.client import Reply


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a console. `seq` counts from 1 and never changes; `text` is for people, `raw` is exact.

    `offset` is that of its first byte in all that the target ever sent, `time` (seconds since the epoch) that of its
    arrival. `partial`: its end has not come yet. `gap`: bytes inside or just before it were lost.
    """

    seq: int
    text: str
    raw: bytes
    offset: int
    time: float
    partial: bool = False
    gap: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: `kind` (`tx`, `open`, `lost`, `reopened` …), and the rx `offset` at which it did."""

    number: int
    kind: str
    offset: int
    time: float
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        """What was sent, of a `tx` event; empty for others."""
        return str(self.fields.get("data", "")).encode("latin-1", "replace") if self.kind == "tx" else b""


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface being captured: what its device resolved to, and its `state` (`open`, `lost` …)."""

    target: str
    name: str
    state: str
    device: str
    node: str | None
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sent:
    """What the port took. The answer begins at `offset`, in or after the line behind `seq`."""

    accepted: int
    seq: int
    offset: int
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def failing(self) -> str | None:
        """Why the journal could not be written, so that this or its answer may be missing in it; None when it could."""
        return self.fields.get("failing")


@dataclass(frozen=True, slots=True)
class Match:
    """What `expect` found: which pattern (`index`, `pattern`), its `text`, `groups`, and the text `before` it.

    `start` and `end` are its offsets in the raw bytes; `cursor=m.end` goes on from there. `fields` has all that
    `labd serial expect --json` tells.
    """

    index: int
    pattern: str
    text: str
    before: str
    groups: tuple[str | None, ...]
    start: int
    end: int
    fields: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, group: int) -> str | None:
        """Group `group`, as of `re.Match`; 0 is the whole match."""
        return self.text if group == 0 else self.groups[group - 1]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command on the target printed (`output`), and its exit code (`code`; None when it can't be known).

    `data` are the exact bytes of a run with `binary=True`, else the output in UTF-8.
    """

    output: str
    code: int | None
    data: bytes
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def failing(self) -> str | None:
        """Why the journal could not be written, so that output may be missing in it; None when it could."""
        return self.fields.get("failing")

    def __str__(self) -> str:
        return self.output


_ENDS = {"timed_out": TimedOut, "cancelled": TimedOut, "died": Died, "gone": Unreachable}


def match_of(reply: Reply, name: str) -> Match:
    """The match that `serial expect` answered with; raises why there was none, with what came as notes."""
    data = reply.result
    if data["ended"] != "matched":
        raise _unmatched(data, name)
    return Match(
        int(data["index"]),
        str(data["pattern"]),
        str(data["text"]),
        str(data["before"]),
        tuple(data["groups"]),
        int(data["start"]),
        int(data["stop"]),
        data,
    )


def _unmatched(data: dict[str, Any], name: str) -> LabdError:
    said = f"{data['pattern']!r} came, so the wait was ended" if data["ended"] == "died" else data["why"]
    error = _ENDS.get(data["ended"], LabdError)(f"{name}: {said}")
    for miss in data.get("nearest", ()):
        error.add_note(f"nearest to {miss['pattern']!r}: #{miss['seq']} {miss['text']!r}; {miss['differs']}")
    last = [f"  #{line['seq']}  {line['text']}" for line in data.get("last_lines", ())]
    if last:
        error.add_note("\n".join(["the last lines:", *last]))
    return error


def ran_of(data: dict[str, Any]) -> Ran:
    """The end of a command in what `serial run` answers."""
    code = data.get("code")
    if data.get("base64") is not None:
        from base64 import b64decode

        exact = b64decode(data["base64"])
        return Ran(exact.decode("utf-8", "replace"), code, exact, data)
    output = str(data.get("output") or "")
    return Ran(output, code, output.encode(), data)
