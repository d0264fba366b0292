"""Pictures of a screen for a recording: one whenever a change is told while a recording of its target runs.

Runs on the daemon's loop; never raises for a screen that gives no picture just then.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import trio

from labd.errors import LabdError
from labd.recordings import Recordings

if TYPE_CHECKING:
    from labd.chronicle import Chronicle
    from labd.video.screen import Screen

#: The news of a screen that are worth a picture.
WORTH = ("opened", "back", "mode", "changed", "signal")

#: Seconds for the picture to come.
PATIENCE_S = 3.0


class Film:
    """Takes the pictures. One at a time a screen: what changes meanwhile is in the next."""

    def __init__(self, chronicle: Chronicle) -> None:
        self.chronicle = chronicle
        self._taking: set[Screen] = set()

    async def take(self, screen: Screen) -> None:
        """Take a picture of the screen now, if a recording of its target runs."""
        if screen in self._taking:
            return
        self._taking.add(screen)
        try:
            if await trio.to_thread.run_sync(self._recorded, screen):
                await self._take(screen)
        finally:
            self._taking.discard(screen)

    def _recorded(self, screen: Screen) -> bool:
        state = {**os.environ, "XDG_STATE_HOME": os.path.dirname(self.chronicle.state)}  # that of this daemon
        return Recordings(state, screen.lab_path, screen.target).running()

    async def _take(self, screen: Screen) -> None:
        try:
            found, png = await screen.link.ask({"do": "grab"}, PATIENCE_S)
        except LabdError:
            return  # no signal, or lost: that is told as what it is
        facts: dict[str, Any] = found["frame"]
        name = f"{facts['hash']}.png"
        await trio.to_thread.run_sync(self.chronicle.keep_picture, screen.lab_path, screen.target, name, png)
        self.chronicle.tell(screen.lab_path, screen.target, "video", "picture", hash=facts["hash"], picture=name)
