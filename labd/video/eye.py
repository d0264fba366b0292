"""The thread that always reads: opens the source, keeps its newest frame, judges each, opens it again after a loss.

Others wait for frames through `next_frame`; nobody but this thread touches the source. A camera that blocks for ever
blocks this thread alone: `blocked_s` tells, and the process is then to be ended.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any

import cv2

from labd.errors import LabdError
from labd.video import signal
from labd.video.change import Detector
from labd.video.frame import Frame, Grey, grey, hash_of
from labd.video.sources import Lost, Source

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds between looks at frames while nobody waits for one, and while somebody does.
IDLE_S, EAGER_S = 0.1, 0.03
#: Looking takes at most this part of the time: a source must be read as fast as it delivers.
LOOKING_SHARE = 0.5
#: Seconds before a lost source is opened again: first, and at most; one that lived so long begins afresh.
AGAIN_S, AGAIN_MOST_S, LIVED_S = 0.25, 2.0, 5.0
#: No new frame for this long, from a source that still is open, makes the last one stale, seconds.
STALE_S = 1.0
#: Contents that were given out by hash are kept to compare with, bytes of grey levels.
KEPT_BYTES = 64 << 20


class Eye(Thread):
    """See the module. `open_source` makes the source or raises Lost or LabdError; `hear(kind, facts)` hears news."""

    def __init__(self, open_source: Callable[[], Source], hear: Callable[..., None]) -> None:
        super().__init__(name="eye", daemon=True)
        self._open = open_source
        self._hear = hear
        self.news = Condition()
        self.newest: Frame | None = None
        self.changed_ns = 0
        """When the content changed last, monotonic ns."""
        self.moved_ns = 0
        """When it last changed, or may have: something small may be a cursor, or not."""
        self.lost_why: str | None = "it is being opened"
        """Why there is no picture; None while the source is open."""
        self.lost_error: LabdError | None = None
        self.lost_ns = 0
        """Since when, monotonic ns; 0 before the first try to open it is over."""
        self.opened = 0
        self.rate = 0.0
        """Frames a second, as they come."""
        self._eager = 0
        self._source: Source | None = None
        self._detector: Detector | None = None
        self._content = ""
        self._reference: Grey | None = None
        self._kept: OrderedDict[str, Grey] = OrderedDict()
        self._count = 0
        self._busy_since: float | None = None
        self._looked_at = 0.0
        self._cost = 0.0
        self._came_at = 0.0

    # --- for others ------------------------------------------------------------------------------------------------

    def next_frame(
        self, floor_ns: int, until: float, cancelled: Callable[[], bool] = lambda: False, *, after: Frame | None = None
    ) -> Frame | None:
        """The newest frame that is no older than `floor_ns`, and not `after` or before that.

        None when `until` (time.monotonic) is over before there is one.
        """
        with self.news:
            self._eager += 1
            self.news.notify_all()
            if self._source is not None and after is None:
                self._source.poke()
            try:
                while True:
                    frame = self.newest
                    if frame is not None and frame.floor_ns > floor_ns and (after is None or frame.n > after.n):
                        return frame
                    left = until - time.monotonic()
                    if left <= 0 or cancelled():
                        return None
                    self.news.wait(min(left, 0.5))
            finally:
                self._eager -= 1

    def give_out(self, frame: Frame) -> None:
        """Keep a content whose hash somebody now knows, as it was when it got that: a letter may have come since."""
        with self.news:
            if frame.hash not in self._kept:
                known = self._reference if frame.hash == self._content else None
                self._kept[frame.hash] = grey(frame.picture) if known is None else known
            self._kept.move_to_end(frame.hash)
            while sum(kept.nbytes for kept in self._kept.values()) > KEPT_BYTES and len(self._kept) > 1:
                self._kept.popitem(last=False)

    def kept(self, name: str) -> Grey | None:
        """The content with this hash, if it was given out and is still kept."""
        with self.news:
            return self._kept.get(name)

    @property
    def blocked_s(self) -> float:
        """For how long the source has not come back from a call."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def state(self) -> dict[str, Any]:
        """What is seen now: `signal` (ok, none, stale, lost), why, and the newest frame's facts."""
        with self.news:
            frame, why = self.newest, self.lost_why
            facts = frame.facts() if frame is not None else {}
            still_ms = (time.monotonic_ns() - self.changed_ns) // 1_000_000 if self.changed_ns else None
            facts |= {"rate": round(self.rate, 1), "opened": self.opened, "still_ms": still_ms}
            if why is not None:
                return {**facts, "signal": "lost", "why": why, "tried": bool(self.lost_ns)}
            assert frame is not None
            age_s = (time.monotonic_ns() - frame.mono_ns) / 1e9
            if age_s > STALE_S + 2 * IDLE_S:
                return {**facts, "signal": "stale", "why": f"the last frame came {age_s:.1f} s ago"}
            return facts

    # --- the thread ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """For ever."""
        pause = AGAIN_S
        while True:
            began = time.monotonic()
            source: Source | None = None
            error: LabdError | None = None
            try:
                with self._call():
                    source = self._open()
                with self.news:
                    self._source = source
                self._look(source)
            except Lost as lost:
                why = str(lost)
            except LabdError as wrong:
                error, why = wrong, wrong.message
            except cv2.error as broken:
                why = f"OpenCV fails: {str(broken).strip().splitlines()[-1]}"
            pause = AGAIN_S if time.monotonic() - began > LIVED_S else min(pause * 2, AGAIN_MOST_S)
            self._lose(why, error)
            with self.news:
                self._source = None
            if source is not None:
                with self._call():
                    source.close()
            time.sleep(pause)

    def _look(self, source: Source) -> None:
        first = True
        while True:
            self._wait_turn(source)
            with self._call():
                taken_ns = source.take()
            now = time.monotonic()
            if self._came_at and not first:
                self.rate += (1 / max(now - self._came_at, 1e-3) - self.rate) * 0.1
            self._came_at = now
            if not first and now - self._looked_at < self._interval():
                continue
            with self._call():
                picture = source.picture()
                no_signal = source.no_signal()
            self._take(source, taken_ns, picture, no_signal)
            self._looked_at = now
            self._cost = time.monotonic() - now
            if first:
                self.rate = 0.0
                first = False

    def _interval(self) -> float:
        """Seconds from one look to the next: all frames while somebody waits, unless looking would hold reading up."""
        return max(0.0 if self._eager else IDLE_S, self._cost / LOOKING_SHARE)

    def _wait_turn(self, source: Source) -> None:
        """A source that gives pictures when asked is asked at its pace, and more often while somebody waits."""
        if source.every_s is None:
            return
        with self.news:
            while (left := self._looked_at + (EAGER_S if self._eager else source.every_s) - time.monotonic()) > 0:
                self.news.wait(left)

    def _take(self, source: Source, taken_ns: int, picture: Any, no_signal: str) -> None:
        levels = grey(picture)
        if self._detector is None:
            self._detector = Detector(levels)
            changed = True
        else:
            changed = self._detector.changed(levels, taken_ns / 1e9)
        if changed:
            self._content, self._reference = hash_of(picture), levels
        source.seen(changed=changed)
        if changed or self._detector.doubtful:
            self.moved_ns = taken_ns
        why = no_signal or signal.missing(picture)
        verdict = ("none", why) if why else ("stale", source.stale) if source.stale else ("ok", "")
        self._count += 1
        wall_ns = time.time_ns() - (time.monotonic_ns() - taken_ns)
        floor_ns = taken_ns if source.floor_ns is None else source.floor_ns
        frame = Frame(self._count, wall_ns, taken_ns, floor_ns, picture, self._content, *verdict)
        with self.news:
            back = self.lost_why is not None
            self.lost_why = self.lost_error = None
            self.opened += back
            self.newest = frame
            if changed:
                self.changed_ns = taken_ns
            self.news.notify_all()
        if back:
            self._hear("back", frame.facts())
        elif changed:
            self._hear("changed", frame.facts())

    def _lose(self, why: str, error: LabdError | None) -> None:
        with self.news:
            if self.lost_why is None or not self.lost_ns:
                self.lost_ns = time.monotonic_ns()
            self.lost_why, self.lost_error = why, error
            self.news.notify_all()
        self._hear("lost", {"why": why, "tried": True, **_named(error)})

    def _call(self) -> _Busy:
        return _Busy(self)


class _Busy:
    """For how long the source has been busy."""

    def __init__(self, eye: Eye) -> None:
        self._eye = eye

    def __enter__(self) -> None:
        self._eye._busy_since = time.monotonic()

    def __exit__(self, *exc: object) -> None:
        self._eye._busy_since = None


def _named(error: LabdError | None) -> dict[str, Any]:
    return {} if error is None else {"kind": error.name, "hint": error.hint, "near": error.near}
