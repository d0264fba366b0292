"""The serial channel of one target: its interfaces as lines, each a task of its own.

The daemon makes one for each lab and target that is watched, runs it in its nursery, and calls it through the bench
that the shim lends out. Device classes: a tty's path, and `loopback:` for a simulated board. It opens, captures,
sends; it never interprets what a target says, and never decides whether a request is permitted.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import trio

from labd.capture import CaptureLoop
from labd.channels import modem, transmit
from labd.channels.adopting import Adopted
from labd.channels.capturer import Capturer, LineJournal, LocalCapturer
from labd.channels.line import Line, StartDut, Surroundings
from labd.errors import LabdError, NotFound, Unreachable, nearest

_DAY_NS = 86_400 * 10**9


class SerialChannel:
    """The serial lines of `target` in the lab at `lab_path`.

    `journal_root` is the directory that holds one directory for each interface. `on_data(name)` is called, in the
    loop, whenever that interface's journal has grown. `settings` may have `keep_mb`, `keep_days` (retention),
    `watch_every_s` (how often to look who else has a port open). `capture` reads the ports: a loop of this process,
    or whatever else is a `Capturer`.
    """

    def __init__(
        self,
        lab_path: str,
        target: str,
        *,
        journal_root: str,
        capture: CaptureLoop | Capturer,
        start_dut: StartDut,
        on_data: Callable[[str], None],
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.lab_path = lab_path
        self.target = target
        self.journal_root = journal_root
        self.whole = False
        self.known: dict[str, Any] = {}
        """What the channel's owner wants to find again after a restart of the daemon."""
        self._settings = dict(settings or {})
        self._lines: dict[str, Line] = {}
        self._nursery: trio.Nursery | None = None
        self._reconciling = trio.Lock()
        limiter = trio.CapacityLimiter(64)
        self._around = Surroundings(
            lab_path=lab_path,
            target=target,
            capturer=LocalCapturer(capture, limiter) if isinstance(capture, CaptureLoop) else capture,
            start_dut=start_dut,
            on_data=on_data,
            limiter=limiter,
            open_journal=self._open_journal,
            remembered=self._remembered,
            watch_every_s=float(self._settings.get("watch_every_s", 5.0)),
        )

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Hold the lines until cancelled; then each closes its port and its journal before this returns."""
        async with trio.open_nursery() as self._nursery:
            try:
                task_status.started()
                await trio.sleep_forever()
            finally:
                self._nursery.cancel_scope.cancel()

    async def watch(self, configs: Sequence[Mapping[str, Any]], *, whole: bool = False) -> list[dict[str, Any]]:
        """Open each interface, or find it open; the `status` of each, in that order, all with state "open".

        `whole` says that these are all of the target's interfaces, so that `reconcile` opens later ones too. If any
        can't be opened, the first one's Unreachable or Busy is raised, telling of all; the others stay open and are
        named, and what was never open is not tried again.
        """
        if whole and not self.whole:
            self.whole = True
            for line in self._lines.values():
                line.remember()
        failures: dict[str, LabdError] = {}
        async with trio.open_nursery() as nursery:
            for config in configs:
                nursery.start_soon(self._watch_one, dict(config), failures)
        names = [str(config["name"]) for config in configs]
        if failures:
            ordered = [failures[name] for name in names if name in failures]
            raise self._together(ordered, [name for name in names if self._state(name) == "open"])
        return [self._lines[name].status() for name in names]

    async def adopt(self, config: Mapping[str, Any], adopted: Adopted) -> None:
        """Go on with what an earlier daemon opened; returns when it is taken up. What was lost is tried again."""
        if self._nursery is None:
            raise RuntimeError("the channel is not running")
        line = self._lines[str(config["name"])] = Line(config, self._around, adopted)
        self._nursery.start_soon(self._run_line, line)
        if adopted.port is not None:
            await line.wait_open()

    async def leave(self) -> None:
        """End, but leave every port open and captured for a later daemon."""
        async with trio.open_nursery() as nursery:
            for line in list(self._lines.values()):
                nursery.start_soon(line.leave)

    async def reconcile(
        self, configs: Sequence[Mapping[str, Any]], barred: Mapping[str, str] | None = None
    ) -> list[str]:
        """The lab was edited: `configs` are all of the target's interfaces now. What was done, a sentence each.

        `barred` are those that may not be captured any more, each with why. A line that is gone from the lab is closed,
        a changed one is set or opened anew, and a new one is opened if the whole target is watched. Never raises for a
        port's sake: what can't be opened is said, and retried if it was open before.
        """
        async with self._reconciling:
            done = []
            wanted = {str(config["name"]): config for config in configs}
            for name in [name for name in self._lines if name not in wanted]:
                why = (barred or {}).get(name)
                await self._end(name, why or "no longer in the lab")
                done.append(f"{name}: closed, {why or 'it is no longer in the lab'}")
            for name, config in wanted.items():
                try:
                    if name in self._lines:
                        said = await self._lines[name].change(config)
                        done += [said] if said else []
                    elif self.whole:
                        await self._open(dict(config))
                        done.append(f"{name}: opened, it is new in the lab")
                except LabdError as error:
                    done.append(error.message)
            return done

    async def stop(self, names: Sequence[str] | None = None, *, why: str = "stopped") -> list[str]:
        """Close these interfaces (None: all); the names of those that were there."""
        if names is None:
            self.whole = False
        chosen = [name for name in (list(self._lines) if names is None else names) if name in self._lines]
        async with trio.open_nursery() as nursery:
            for name in chosen:
                nursery.start_soon(self._end, name, why)
        return chosen

    async def send(
        self,
        name: str,
        data: bytes,
        *,
        pace_ms: float = 0.0,
        who: dict[str, Any] | None = None,
        timeout_s: float = 10.0,
        **more: Any,
    ) -> dict[str, Any]:
        """Send `data`, whole and in turn. See `labd.channels.transmit.send`. Unreachable when the port is down."""
        return await transmit.send(self._line(name), data, pace_ms=pace_ms, who=who or {}, timeout_s=timeout_s, **more)

    def send_now(self, name: str, data: bytes, *, who: dict[str, Any]) -> int:
        """Send what the port takes in this very step, if nobody is sending; how much. For the loop alone."""
        line = self._lines.get(name)
        return 0 if line is None else transmit.send_now(line, data, who=who)

    async def pulse_dtr(self, name: str, ms: float, *, who: dict[str, Any] | None = None) -> dict[str, Any]:
        """Turn DTR over for `ms` and back, on the open handle. Unreachable when the port is down or has no DTR."""
        return await modem.pulse_dtr(self._line(name), ms, who or {})

    async def send_break(self, name: str, ms: float, *, who: dict[str, Any] | None = None) -> dict[str, Any]:
        """Hold the line in a break for `ms`, in its turn. Unreachable when the port is down or has no break."""
        return await modem.send_break(self._line(name), ms, who or {})

    async def set_lines(
        self, name: str, dtr: bool | None = None, rts: bool | None = None, *, who: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Drive DTR and RTS; None leaves a line alone. Answers as `lines` does. Unreachable as there."""
        wanted = {wire: level for wire, level in (("dtr", dtr), ("rts", rts)) if level is not None}
        return await modem.set_lines(self._line(name), wanted, who or {})

    async def lines(self, name: str) -> dict[str, Any]:
        """`{interface, dtr, rts, cts, dsr, dcd, ri}` read now; None: nobody can know. Unreachable without lines."""
        return await modem.lines(self._line(name))

    def status(self) -> list[dict[str, Any]]:
        """Every line, as plain data; may be called from any thread."""
        return [line.status() for line in list(self._lines.values())]

    def check_open(self, name: str) -> None:
        """Raises Unreachable where a send would: the port is down, or there is no such line."""
        transmit.open_port(self._line(name))

    def devices(self) -> dict[str, str]:
        """Every line's device by its name; may be called from any thread."""
        return {line.name: str(line.config["device"]) for line in list(self._lines.values())}

    def position(self, name: str) -> tuple[int, int]:
        """(offset, newlines) of what a line has received; zeros before its first open."""
        line = self._lines.get(name)
        journal = line.journal if line is not None else None
        return (journal.rx_end, journal.rx_line) if journal is not None else (0, 0)

    def tell(self, kind: str, *, only: str | None = None, **fields: Any) -> None:
        """Record an event in the open journals of this target, or in the one of the interface `only`."""
        for line in self._lines.values():
            if only in (None, line.name):
                line.tell(kind, **fields)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _watch_one(self, config: dict[str, Any], failures: dict[str, LabdError]) -> None:
        try:
            await self._open(config)
        except LabdError as error:
            failures[str(config["name"])] = error

    async def _open(self, config: dict[str, Any]) -> None:
        """Make the line if need be and wait for its port."""
        name = str(config["name"])
        line = self._lines.get(name)
        if line is None:
            if self._nursery is None:
                raise RuntimeError("the channel is not running")
            line = self._lines[name] = Line(config, self._around)
            self._nursery.start_soon(self._run_line, line)
        else:
            await line.change(config)
        try:
            await line.wait_open()
        except LabdError:
            if not line.opens:
                await line.finished.wait()  # so that a failed watch leaves no trace of the line
            raise

    async def _run_line(self, line: Line) -> None:
        """The barrier: whatever a line raises ends that line only."""
        try:
            await line.run()
        except Exception as error:
            line.why = f"{type(error).__name__}: {error}"
        finally:
            if self._lines.get(line.name) is line:
                del self._lines[line.name]

    async def _end(self, name: str, why: str) -> None:
        line = self._lines.get(name)
        if line is not None:
            await line.stop(why)

    async def _open_journal(self, name: str) -> LineJournal:
        keep_mb, keep_days = self._settings.get("keep_mb"), self._settings.get("keep_days")
        journal: LineJournal = await self._around.capturer.open_journal(
            os.path.join(self.journal_root, name),
            keep_bytes=int(keep_mb) << 20 if keep_mb else None,
            keep_ns=int(keep_days) * _DAY_NS if keep_days else None,
        )
        return journal

    def _remembered(self) -> dict[str, Any]:
        return {"lab": self.lab_path, "target": self.target, "whole": self.whole, "settings": self._settings,
                "known": dict(self.known)}  # fmt: skip

    def _line(self, name: str) -> Line:
        line = self._lines.get(name)
        if line is not None:
            return line
        if not self._lines:
            raise Unreachable(f"{self.target}.{name} is not being watched", hint=f"labd serial watch {self.target}")
        known = list(self._lines)
        raise NotFound(
            f"{self.target}.{name} is not being watched; {', '.join(known)} {'is' if len(known) == 1 else 'are'}",
            hint=f"labd serial watch {self.target}",
            near=nearest(name, known),
        )

    def _state(self, name: str) -> str:
        line = self._lines.get(name)
        return line.state if line else "closed"

    def _together(self, failures: list[LabdError], opened: list[str]) -> LabdError:
        """One error of the first one's kind that tells of all, and of what is open all the same."""
        first = failures[0]
        text = "; ".join(error.message for error in failures)
        if opened:
            text += f" ({', '.join(opened)} {'is' if len(opened) == 1 else 'are'} open)"
        first.message, first.args = text, (text,)
        return first
