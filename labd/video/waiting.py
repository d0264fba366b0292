"""Waiting for the picture that is wanted: taken after the request, settled, changed since another one, or a part of it.

Runs in the capture process, in the thread of a request. Asks the eye, never the source.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labd.errors import LabdError, NotFound, TimedOut, Unreachable
from labd.video.change import Detector
from labd.video.frame import Frame, Region, check_hash, grey

if TYPE_CHECKING:
    from collections.abc import Callable

    from labd.video.eye import Eye
    from labd.video.frame import Grey

#: How long the content must have been still to be settled, ms.
STILL_MS = 500


@dataclass(frozen=True, slots=True)
class Wish:
    """What picture is wanted, and until when to wait for it (monotonic seconds)."""

    newer_ns: int
    until: float
    stable: bool = False
    still_ms: int = STILL_MS
    changed_since: str | None = None
    region: Region | None = None

    @classmethod
    def of(cls, request: dict[str, Any]) -> Wish:
        """From a request's fields, all optional: newer_ns, timeout_ms, stable, still_ms, changed_since, region.

        Raises Usage.
        """
        since, region = request.get("changed_since"), request.get("region")
        return cls(
            int(request.get("newer_ns") or time.monotonic_ns()),
            time.monotonic() + float(request.get("timeout_ms", 2000)) / 1000,
            bool(request.get("stable")),
            int(request.get("still_ms") or STILL_MS),
            check_hash(since) if since else None,
            Region.parse(region) if region else None,
        )


def wait(eye: Eye, wish: Wish, cancelled: Callable[[], bool]) -> Frame:
    """The first frame that fits. Raises TimedOut or Unreachable (which say what was seen), NotFound, Usage."""
    conditions: list[_Settled | _Changed] = []
    if wish.changed_since:
        conditions.append(_Changed(eye, wish.changed_since, wish.region))
    if wish.stable:
        conditions.append(_Settled(eye, wish.still_ms, wish.region))
    frame, seen = None, "no frame came"
    while True:
        frame = eye.next_frame(wish.newer_ns, wish.until, cancelled, after=frame)
        if frame is None:
            raise _why(eye, seen)
        if frame.signal != "ok":
            seen = f"{'no signal' if frame.signal == 'none' else 'the picture is stale'}: {frame.why}"
            continue
        unmet = [condition.unmet(frame) for condition in conditions]
        if not any(unmet):
            return frame
        seen = next(words for words in unmet if words)


def _why(eye: Eye, seen: str) -> LabdError:
    state = eye.state()
    if state["signal"] == "lost":
        error = eye.lost_error
        if error is not None:
            return type(error)(f"the screen is lost: {error.message}", hint=error.hint, near=error.near)
        return Unreachable(f"the screen is lost: {state['why']}")
    if state["signal"] == "stale" and state["why"]:
        seen = state["why"]
    return TimedOut(f"timed out; {seen}")


class _Settled:
    """The content, or that of a part, has been still for a while."""

    def __init__(self, eye: Eye, still_ms: int, region: Region | None) -> None:
        self._eye = eye
        self._still_ms = still_ms
        self._part = None if region is None else _Part(region)

    def unmet(self, frame: Frame) -> str:
        moved_ns = self._eye.moved_ns if self._part is None else self._part.moved_ns(frame)
        still_ms = max(0, frame.mono_ns - moved_ns) // 1_000_000
        if still_ms >= self._still_ms:
            return ""
        return f"the screen has not settled: it changed {still_ms} ms before the last frame (hash {frame.hash})"


class _Part:
    """When the content of a part of the picture changed last, or may have, as far as was looked."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._detector: Detector | None = None
        self._moved_ns = 0

    def moved_ns(self, frame: Frame) -> int:
        part = grey(self._region.of(frame.picture))
        if self._detector is None:
            self._detector = Detector(part)
            self._moved_ns = frame.mono_ns
        elif self._detector.changed(part, frame.mono_ns / 1e9) or self._detector.doubtful:
            self._moved_ns = frame.mono_ns
        return self._moved_ns


class _Changed:
    """The content, or that of a part, differs from the one with this hash."""

    def __init__(self, eye: Eye, name: str, region: Region | None) -> None:
        self._name = name
        self._region = region
        self._met = False
        newest = eye.newest
        if newest is not None and newest.hash == name:
            eye.give_out(newest)
        kept = eye.kept(name)
        if kept is None:
            raise NotFound(
                f"no picture with the hash {name} is known to this capture (any more), so it can't be told whether the "
                "screen has changed since"
            )
        self._detector = Detector(self._part(kept))

    def unmet(self, frame: Frame) -> str:
        """A change is one even if the screen then looks as before: it settles as what it is."""
        self._met = self._met or self._detector.changed(self._part(grey(frame.picture)), frame.mono_ns / 1e9)
        return "" if self._met else f"the screen has not changed since the picture with the hash {self._name}"

    def _part(self, levels: Grey) -> Grey:
        return levels if self._region is None else self._region.of(levels)
