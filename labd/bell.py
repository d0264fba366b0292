"""Waiting for a journal to grow, from outside the daemon: `Bell.wait` is what readers there call between looks.

The daemon rings when bytes or events came; with no daemon the journal is looked at often. It never reads the journal,
never starts the daemon, and carries no byte: readers read the files.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from labd.client import Client
from labd.errors import LabdError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Without a daemon: seconds between looks.
POLL_S = 0.02
#: Seconds between tries to reach a daemon that is away.
AGAIN_S = 0.5


class Bell:
    """Rings when the journal in `directory` may have grown. `close` may be called from any thread, `wait` from one."""

    def __init__(self, env: Mapping[str, str], directory: str) -> None:
        self.directory = directory
        self._env = dict(env)
        self._client: Client | None = None
        self._seen = -1  # so that the first wait ends at once: what came before it is not missed
        self._again_at = 0.0
        self._closed = threading.Event()

    @property
    def closed(self) -> bool:
        """Whether nobody waits any more."""
        return self._closed.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep until the journal may have grown, at most `seconds`. False once closed."""
        client = self._reach()
        if client is None:
            self._closed.wait(min(seconds, POLL_S))
        else:
            ask = {"directory": self.directory, "seen": self._seen, "seconds": seconds}
            try:
                self._seen = client.ask("journal.wait", ask, timeout_s=seconds + 30).result
            except LabdError:
                self._hang_up()
            except BaseException:  # an interrupt came between question and answer: this connection is out of step
                self._hang_up()
                raise
        return not self._closed.is_set()

    def close(self) -> None:
        """End the wait that runs, and all later ones."""
        self._closed.set()
        client = self._client
        if client is not None:
            client.interrupt()

    def _reach(self) -> Client | None:
        if self._client is None and time.monotonic() >= self._again_at and not self._closed.is_set():
            self._again_at = time.monotonic() + AGAIN_S
            try:
                self._client = Client(self._env)
                self._seen = -1
            except LabdError:
                return None
            if self._closed.is_set():
                self._client.interrupt()
        return self._client

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None
