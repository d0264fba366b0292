"""One target's screen as the daemon knows it: what is seen now, and what of it goes into the record.

Listens to the news of its capture process. A screen that changes all the time must not flood the record: changes are
told at most twice a second, and less and less often while they go on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import trio

from labd.lab.redact import redact
from labd.video.link import Link

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds between two changes that are told: at first, at most, and the pause after which it is the first again.
TELL_S, TELL_MOST_S, QUIET_S = 0.5, 16.0, 3.0
#: A signal must have been missing for so many signs of life (one a second) before that is told: modes switch.
SIGNS = 2


class Screen:
    """See the module. `device` is the lab's word, `opened` what the process is told to open; `tell(kind, **fields)`."""

    def __init__(self, lab_path: str, target: str, device: str, opened: str, level: str, runtime: str,
                 tell: Callable[..., None]) -> None:  # fmt: skip
        self.lab_path = lab_path
        self.target = target
        self.device = device
        self.shown = redact(device)
        """The device without the password that its URL may hold."""
        self.opened = opened
        self.level = level
        self.since = time.time()
        self.link = Link(target, runtime, opened, self._hear)
        self.preview: tuple[str, int] | None = None
        """The token and port of its page, once it was asked for."""
        self.sight: dict[str, Any] = {"signal": "lost", "why": "it is being opened"}
        self.news = trio.Event()
        """Set, and replaced, whenever `sight` is another one."""
        self._tell = tell
        self._told: dict[str, Any] = {}
        self._signs = 0
        self._lost_at = 0.0
        self._pause = TELL_S
        self._next_tell = 0.0
        self._changed_at = 0.0
        self._untold: dict[str, Any] | None = None

    def status(self) -> dict[str, Any]:
        """Plain data: what is captured and what is seen. Thread-safe."""
        return {"target": self.target, "lab": self.lab_path, "device": self.shown, "pid": self.link.pid,
                "restarts": self.link.restarts, "since": self.since, **self.sight}  # fmt: skip

    def _hear(self, kind: str, facts: dict[str, Any]) -> None:
        if kind == "alive":
            self._see(facts["state"])
            self._sign()
        elif kind == "back":
            self._see(facts)
            self._back(facts)
        elif kind == "changed":
            self._see({**self.sight, **facts})
            self._changed(facts)
        elif kind == "lost":
            self._lose(facts)
        elif kind == "ended":
            self._tell("restarted", why=facts["why"])
            self._lose({"why": facts["why"]})

    def _see(self, sight: dict[str, Any]) -> None:
        self.sight = sight
        news, self.news = self.news, trio.Event()
        news.set()

    def _lose(self, facts: dict[str, Any]) -> None:
        self._see({**self.sight, **facts, "signal": "lost"})
        if self._told and self._told["signal"] != "lost":
            self._lost_at = time.monotonic()
            self._tell("lost", why=facts["why"])
            self._told = {**self._told, "signal": "lost"}

    def _back(self, facts: dict[str, Any]) -> None:
        mode = _mode(facts)
        if not self._told:
            self._tell("opened", device=self.shown, mode=mode, hash=facts["hash"])
        elif self._told["signal"] == "lost":
            self._tell("back", after_s=round(time.monotonic() - self._lost_at, 1), mode=mode, hash=facts["hash"])
        self._told = {"signal": "ok", "mode": mode}
        self._signs = 0

    def _changed(self, facts: dict[str, Any]) -> None:
        now, mode = time.monotonic(), _mode(facts)
        if mode != self._told.get("mode", mode):
            self._tell("mode", mode=mode, before=self._told["mode"], hash=facts["hash"])
            self._told["mode"] = mode
        if now - self._changed_at > QUIET_S:
            self._pause = TELL_S
        self._changed_at = now
        if facts["signal"] == "ok":
            self._untold = facts
        self._tell_change(now)

    def _tell_change(self, now: float) -> None:
        if self._untold is not None and now >= self._next_tell:
            self._tell("changed", hash=self._untold["hash"])
            self._untold = None
            self._next_tell, self._pause = now + self._pause, min(self._pause * 2, TELL_MOST_S)

    def _sign(self) -> None:
        """Each second: tell a change that waits for its turn, and a signal that has gone or come for good."""
        now = time.monotonic()
        if now - self._changed_at > TELL_S:
            self._next_tell = min(self._next_tell, now)  # it has settled: how, is worth telling
        self._tell_change(now)
        signal = self.sight["signal"]
        if not self._told or signal in ("lost", self._told["signal"]):
            self._signs = 0
            return
        self._signs += 1
        if signal == "ok" or self._signs >= SIGNS:
            kind = {"none": "no-signal", "ok": "signal"}.get(signal, signal)
            self._tell(kind, **({"why": self.sight["why"]} if signal != "ok" else {"hash": self.sight["hash"]}))
            self._told["signal"] = signal
            self._signs = 0


def _mode(facts: dict[str, Any]) -> str:
    return f"{facts['width']}x{facts['height']}"
