"""`bench.screens`: the screens that are being captured, each by a process of its own, and asking them.

Runs on the daemon's loop, but for what says `thread-safe`. Loads no camera library. What is watched is also written
down in the runtime directory, so that the next daemon watches it again; `labd daemons stop` forgets it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio

from labd import paths
from labd.errors import LabdError, Unreachable
from labd.lab.redact import redact
from labd.policy import SIMULATED, in_force, permits
from labd.video import film, kept
from labd.video.link import ERRORS
from labd.video.screen import Screen
from labd.video.wire import DUMP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from labd.bench import Bench
    from labd.lab import Lab

#: Seconds for a screen to be seen for the first time, once its process has loaded what it needs.
OPEN_S = 20.0

Key = tuple[str, str]


class Screens:
    """All screens of one daemon, by lab (its real path) and target."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._screens: dict[Key, Screen] = {}
        self._turns: dict[Key, trio.Lock] = {}
        self._recalls: dict[Key, trio.Event] = {}
        """What is being watched again, as an earlier daemon did: set once it is, or can't be."""
        self._seen: dict[str, tuple[int, int, int] | None] = {}
        self._film = film.Film(bench.chronicle)
        bench.machines.users.append(self._uses_machine)

    # --- what operations ask ---------------------------------------------------------------------------------------

    async def watch(self, lab: Lab, target: str, level: str, *, restart: bool = False,
                    patient: bool = False) -> dict[str, Any]:  # fmt: skip
        """Capture a target's screen; its state once it was seen, or could not be.

        Raises NotFound for a device that there is not, Unreachable for one that can't be captured from; then nothing
        is captured, unless `patient`.
        """
        device = str(lab.channel(target, "video")["device"])
        key = (os.path.realpath(lab.path), target)
        async with self._turn(key):
            screen = self._screens.get(key)
            if screen is not None and (restart or screen.device != device):
                await self._stop(screen, "restarted" if restart else f"it is to be {redact(device)}")
                screen = None
            if screen is not None and device.startswith("board:"):
                await self._to_open(*key, device)  # somebody may have ended the board; what captures it finds it again
            if screen is None:
                screen = await self._start(key, device, level)
                await self._first_sight(screen, patient)
            screen.level = level
        return screen.status()

    async def stop(self, lab: Lab, target: str) -> bool:
        """Stop capturing a target's screen; whether it was captured."""
        key = (os.path.realpath(lab.path), target)
        async with self._turn(key):
            screen = self._screens.get(key)
            if screen is not None:
                await self._stop(screen, "stopped")
        return screen is not None

    async def leave_board(self, real: str, target: str) -> bool:
        """Stop capturing the screen of a target's virtual board, which is about to be ended; whether it was."""
        async with self._turn((real, target)):
            screen = self._screens.get((real, target))
            if screen is None or not screen.device.startswith("board:"):
                return False
            await self._stop(screen, "its virtual board was stopped")
            return True

    async def ask(self, lab: Lab, target: str, request: Mapping[str, Any], timeout_s: float
                  ) -> tuple[dict[str, Any], bytes]:  # fmt: skip
        """A request's answer and its body. `{"do": "grab", …}`: a picture as PNG; `{"do": "text", …}`: what it says.

        Both wait for the picture that they want, at most `timeout_s`: `newer_ns` (monotonic; by default the request's
        own time), `stable`, `still_ms`, `changed_since`, `region`. Raises Usage, NotFound (a hash that is not known),
        TimedOut (with what was seen), Unreachable (not captured, or lost).
        """
        screen = await self._screen(lab, target)
        found, body = await screen.link.ask(dict(request), timeout_s)
        whole = request.get("do") == "grab" and not request.get("region") and request.get("format") != "jpeg"
        if whole:
            screen.link.remember(found["frame"]["hash"], body)
        return found, body

    async def preview(self, lab: Lab, target: str) -> str:
        """The address of a page that shows a target's screen live; it stays the same while the screen is captured."""
        screen = await self._screen(lab, target)
        async with self._turn((screen.lab_path, target)):
            return await self._preview(screen)

    def status(self, lab_path: str, target: str) -> dict[str, Any] | None:
        """What is captured of a target's screen and seen there; None if it is not captured. Thread-safe."""
        screen = self._screens.get((os.path.realpath(lab_path), target))
        return None if screen is None else screen.status()

    def list(self) -> list[dict[str, Any]]:
        """All of them. Thread-safe."""
        return [screen.status() for screen in list(self._screens.values())]

    async def film(self, lab_path: str, target: str) -> None:
        """Take a first picture for a recording that has just begun, if the target's screen is captured."""
        screen = self._screens.get((os.path.realpath(lab_path), target))
        if screen is not None:
            await self._film.take(screen)

    def tell(self, lab_path: str, target: str, kind: str, **fields: Any) -> None:
        """Put an event of a target's screen into its record. Thread-safe."""
        self._bench.chronicle.tell(lab_path, target, "video", kind, **fields)

    # --- what the daemon runs --------------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Take up edits of the lab files in use; called each second."""
        for path in {screen.lab_path for screen in self._screens.values()}:
            now = paths.identity(path)
            if now is None or now == self._seen.get(path) or now[2] == 0:
                continue
            self._seen[path] = now
            from labd.lab import load

            try:
                lab = await trio.to_thread.run_sync(load, path, dict(os.environ))
            except LabdError as error:
                self._bench.log(f"{path}: {error.message}; going on with what was read before")
                continue
            for screen in [screen for screen in self._screens.values() if screen.lab_path == path]:
                await self._take_up(lab, screen)

    async def recall(self) -> None:
        """Watch again what an earlier daemon watched. Before anybody is served; waits for no camera."""
        for lab_path, target, level in kept.read(self._bench.runtime):
            self._recalls[lab_path, target] = trio.Event()
            self._bench.nursery.start_soon(self._recall, lab_path, target, level)

    async def close(self, *, leave: bool = False) -> None:
        """End all; with `leave`, the next daemon is to watch them again."""
        for screen in list(self._screens.values()):
            await screen.link.stop()
        self._screens.clear()
        if not leave:
            kept.forget(self._bench.runtime)

    # --- inside ----------------------------------------------------------------------------------------------------

    def _turn(self, key: Key) -> trio.Lock:
        return self._turns.setdefault(key, trio.Lock())

    async def _screen(self, lab: Lab, target: str) -> Screen:
        lab.channel(target, "video")
        key = (os.path.realpath(lab.path), target)
        if key in self._recalls:
            await self._recalls[key].wait()
        screen = self._screens.get(key)
        if screen is None:
            raise Unreachable(f"{target}'s screen is not being captured", hint=f"labd {lab.words}video watch {target}")
        return screen

    async def _start(self, key: Key, device: str, level: str) -> Screen:
        real, target = key
        opened = await self._to_open(real, target, device)

        def tell(kind: str, **fields: Any) -> None:
            self.tell(real, target, kind, **fields)
            if kind in film.WORTH:
                self._bench.nursery.start_soon(self._film.take, screen)

        screen = Screen(real, target, device, opened, level, self._bench.runtime, tell)
        self._screens[key] = screen
        self._recalled(key)
        self._seen.setdefault(real, paths.identity(real))
        self._bench.nursery.start_soon(self._run, screen)
        self._keep()
        return screen

    async def _run(self, screen: Screen) -> None:
        """One screen's task tree behind a barrier: its crash is told, and touches no other."""
        try:
            await screen.link.run()
        except Exception as error:
            self._bench.log(f"the capture of {screen.target}'s screen crashed: {error!r}")
        finally:
            if self._screens.get((screen.lab_path, screen.target)) is screen:
                del self._screens[screen.lab_path, screen.target]

    async def _first_sight(self, screen: Screen, patient: bool) -> None:
        await screen.link.loaded()
        with trio.move_on_after(OPEN_S):
            while screen.sight["signal"] == "lost" and not screen.sight.get("tried"):
                await screen.news.wait()
        if screen.sight["signal"] != "lost" or patient:
            return
        sight = screen.sight
        await self._stop(screen, sight["why"])
        kind = ERRORS.get(sight.get("kind") or "", Unreachable)
        raise kind(f"{screen.target}'s screen can't be captured: {sight['why']}", hint=sight.get("hint"),
                   near=sight.get("near") or ())  # fmt: skip

    async def _stop(self, screen: Screen, why: str) -> None:
        self._screens.pop((screen.lab_path, screen.target), None)
        self._keep()
        await screen.link.stop()
        self.tell(screen.lab_path, screen.target, "stop", why=why)
        await self._bench.machines.release(screen.lab_path, screen.target)
        if screen.device.startswith("board:"):
            with suppress(OSError):  # there only where the capture process was ended in the midst of a picture
                os.unlink(os.path.join(os.path.dirname(screen.opened.removeprefix("qmp:")), DUMP))

    async def _to_open(self, real: str, target: str, device: str) -> str:
        """What the capture process is told to open: a virtual board by its socket, a file by its whole path."""
        if device.startswith("board:"):
            directory = await self._bench.machines.need(real, target, device, "video")
            return "qmp:" + os.path.join(directory, "qmp-video")
        if "/" in device and "://" not in device:
            return paths.expand(device, dict(os.environ), os.path.dirname(real))
        return device

    def _uses_machine(self, lab_path: str, target: str) -> bool:
        screen = self._screens.get((lab_path, target))
        return screen is not None and screen.device.startswith("board:")

    async def _preview(self, screen: Screen) -> str:
        import secrets

        token, port = screen.preview or (secrets.token_urlsafe(18), 0)
        ask = {"do": "preview", "title": screen.target, "token": token, "port": port}
        found, _ = await screen.link.ask(ask, 5.0)
        screen.preview = (token, int(found["port"]))
        return f"http://127.0.0.1:{found['port']}/{token}/"

    async def _take_up(self, lab: Lab, screen: Screen) -> None:
        """What an edit of the lab means for a screen: another device, none any more, or not permitted."""
        target = screen.target
        device = lab.targets.get(target, {}).get("video", {}).get("device")
        async with self._turn((screen.lab_path, target)):
            if device == screen.device or self._screens.get((screen.lab_path, target)) is not screen:
                return  # nothing new, or somebody else has seen to it meanwhile
            if device is None:
                await self._stop(screen, "it is no longer in the lab")
                return
            levels = [*lab.policy_levels(target), screen.level, self._bench.level]
            level, _ = in_force([("the lab", level) for level in levels])
            if not permits(level, "simulated" if device.startswith(SIMULATED) else "bench"):
                self._bench.log(f"{screen.lab_path}: {target}'s screen is not taken up at policy level {level}")
                return
            await self._stop(screen, f"the lab says {redact(device)} now")
            try:
                screen = await self._start((screen.lab_path, target), device, screen.level)
                self.tell(screen.lab_path, target, "watch", device=screen.shown, who="an edit of the lab")
            except LabdError as error:
                self._bench.log(f"{screen.lab_path}: {target}'s screen: {error.message}")

    async def _recall(self, lab_path: str, target: str, level: str) -> None:
        from labd.lab import load

        try:
            lab = await trio.to_thread.run_sync(load, lab_path, dict(os.environ))
            await self.watch(lab, target, level, patient=True)
        except LabdError as error:
            self._bench.log(f"{lab_path}: {target}'s screen is not watched again: {error.message}")
        finally:
            self._recalled((lab_path, target))

    def _recalled(self, key: Key) -> None:
        event = self._recalls.pop(key, None)
        if event is not None:
            event.set()

    def _keep(self) -> None:
        try:
            kept.write(self._bench.runtime, [(s.lab_path, s.target, s.level) for s in self._screens.values()])
        except OSError as error:
            self._bench.log(f"which screens are watched can't be written down: {error.strerror}")
