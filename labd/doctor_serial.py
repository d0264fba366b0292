"""One serial line against the machine: is it there, may we open it, who holds it, what will spoil the capture.

The main row says whether the port could be opened now; warnings follow it. Nothing is opened: an open raises DTR,
which resets many boards.
"""

import os
import stat
from collections.abc import Iterator
from shlex import quote
from typing import Any

from labd.doctor import Bench, Row, access_denied, holders_words, let_go, row
from labd.doctor_boards import board_row, loopback_row

#: Device forms that are reached over the network. Connecting opens the port over there, so it is not tried.
NETWORK = ("rfc2217://", "socket://")


def check_line(bench: Bench, target: str, line: dict[str, Any]) -> list[Row]:
    """Every finding about one serial interface of a target."""
    first, *rest = _of_device(bench, target, line)
    live = bench.live.get((target, line["name"]))
    if live and live["state"] == "open" and "captured" not in first["detail"]:
        first["detail"] += "; captured by labd"
    return [first, *rest, *_of_capture(bench, target, line)]


def _of_capture(bench: Bench, target: str, line: dict[str, Any]) -> Iterator[Row]:
    """What the daemon that captures the line says of it."""
    name, live = line["name"], bench.live.get((target, line["name"]))
    if live is None:
        return
    if live["state"] != "open":
        why = f" ({live['why']})" if live["why"] else ""
        detail = f"labd captures it, has lost it{why} and goes on waiting for it"
        fix = f"labd serial log {target} -i {name} --events --tail 5"
        yield row(target, "serial", "warning", detail, interface=name, device=line["device"], fix=fix)
    if live["failing"]:
        detail = f"what it says is not being kept: {live['failing']}"
        fix = f"df -h {quote(live['journal'])}"
        yield row(target, "serial", "denied", detail, interface=name, device=line["device"], fix=fix)


def _of_device(bench: Bench, target: str, line: dict[str, Any]) -> list[Row]:
    name, device = line["name"], line["device"]
    if device.startswith("loopback:"):
        return [loopback_row(bench, target, name, device)]
    if device.startswith("board:"):
        return [board_row(bench, target, "serial", device, f"labd serial set {name} -t {target}", name)]
    if device.startswith(NETWORK):
        scheme, _, where = device.partition("://")
        where = where.rpartition("@")[2].partition("?")[0]
        how = "RFC 2217" if scheme == "rfc2217" else "plain TCP"
        detail = f"a port at {where} by {how}; not contacted, as that opens it over there"
        return [row(target, "serial", "ok", detail, interface=name, device=device)]
    return _Line(bench, target, line).rows()


class _Line:
    """The checks of one tty. `path` is what the lab names, made absolute; `node` what it leads to."""

    def __init__(self, bench: Bench, target: str, line: dict[str, Any]) -> None:
        self.bench, self.target, self.line = bench, target, line
        self.name, self.device = line["name"], line["device"]
        self.path = bench.path(self.device)
        self.node = os.path.realpath(self.path)
        self.machine = bench.machine
        self.ports = bench.ports
        self.facts: dict[str, Any] = next((port for port in self.ports if port["node"] == _callout(self.node)), {})

    def rows(self) -> list[Row]:
        """The main row, then warnings."""
        if not os.path.exists(self.path):
            return [self._missing()]
        if not stat.S_ISCHR(os.stat(self.path).st_mode):
            return [self._row("missing", f"{self.path} is not a serial device", self._pick())]
        return [self._main(), *self._warnings()]

    def _row(self, status: str, detail: str, fix: str | None = None) -> Row:
        return row(self.target, "serial", status, detail, interface=self.name, device=self.device, fix=fix)

    def _set(self, device: str) -> str:
        return f"labd serial set {self.name} -t {self.target} --device {quote(device)}"

    def _free_ports(self) -> list[dict[str, Any]]:
        """The ports that no interface of the lab uses, and that are not this machine's own console."""
        used = set()
        for config in self.bench.data.get("targets", {}).values():
            for line in config.get("serial", []):
                used.add(os.path.realpath(self.bench.path(line["device"])))
        return [port for port in self.ports if port["node"] not in used and not port.get("system_console")]

    def _pick(self) -> str:
        """The command that takes the one unused USB adapter; to look, when there is none or a choice."""
        free = [port["device"] for port in self._free_ports() if port["vid"]]
        if len(free) == 1:
            return self._set(free[0])
        return f"plug it in, or name another: {self._set('DEVICE')}  # labd discover lists them"

    def _missing(self) -> Row:
        dangling = os.path.islink(self.path)
        detail = (
            f"{self.path} is a link to {os.readlink(self.path)}, which is gone"
            if dangling
            else f"{self.path} is not there"
        )
        free = [port["device"] for port in self._free_ports()]
        detail += f"; unused ports here: {', '.join(free)}" if free else "; no unused port is plugged in"
        if self.machine.facts.running({"brltty"}):
            detail += "; brltty runs, and takes some USB adapters away as Braille displays"
            if not free:
                return self._row("missing", detail, "sudo systemctl stop brltty brltty-udev  # then plug it in again")
        return self._row("missing", detail, self._pick())

    def _main(self) -> Row:
        if not os.access(self.path, os.R_OK | os.W_OK):
            return self._row("denied", *access_denied(self.bench, self.path))
        ours = self.machine.facts.held_by_this_process(self.node)
        holders = self.machine.others(self.node)
        if holders and ours:
            detail = f"captured by labd, and also opened by {holders_words(holders)}: each takes bytes from the other"
            return self._row("busy", detail, let_go(holders[0], self.node))
        if holders:
            return self._row("busy", f"held by {holders_words(holders)}", let_go(holders[0], self.node))
        locked = self.machine.facts.lock_file(self.node)
        if locked and self.machine.facts.alive(locked[1]):
            return self._row(
                "busy", f"pid {locked[1]} has locked it by {locked[0]}", f"ps -fp {locked[1]}  # ask its owner"
            )
        return self._row("ok", self._present(ours))

    def _present(self, ours: bool) -> str:
        """What is said of a port that could be opened now."""
        if ours:
            detail = "captured by labd's own daemon"
        elif self.machine.facts.sees_everybody():
            detail = "present, nobody holds it"
        else:
            detail = "present, nobody is seen to hold it (what other users' programs hold can't be seen)"
        if self.machine.ports.is_pty(self.path):
            return detail + "; a pseudo-terminal: no modem lines, no break, no line rate"
        return f"{detail}; {self.facts['driver']}" if self.facts.get("driver") else detail

    def _warnings(self) -> Iterator[Row]:
        yield from self._shared()
        yield from self._naming()
        yield from self._meddlers()
        yield from self._lines()
        yield from self._stale_lock()
        facts = self.facts
        if facts.get("system_console"):
            yield self._row(
                "warning", "this machine's own kernel prints there: it is no board's console", "labd discover"
            )
        if (facts.get("latency_ms") or 0) > 1 and "latency_file" in facts:
            yield self._row(
                "warning",
                f"latency timer is {facts['latency_ms']} ms: each answer may wait that long",
                f"echo 1 | sudo tee {facts['latency_file']}",
            )
        if "autosuspend_file" in facts:
            yield self._row(
                "warning",
                "the kernel may suspend the adapter while it is idle, and lose what comes then",
                f"echo on | sudo tee {facts['autosuspend_file']}",
            )

    def _shared(self) -> Iterator[Row]:
        """Two interfaces of the lab that lead to one port."""
        for target, config in sorted(self.bench.data.get("targets", {}).items()):
            for line in config.get("serial", []):
                other = os.path.realpath(self.bench.path(line["device"]))
                if other == self.node and (target, line["name"]) != (self.target, self.name):
                    yield self._row(
                        "warning",
                        f"the lab names the same port as {target} {line['name']}",
                        f"labd serial rm {line['name']} -t {target}  # or give one another --device",
                    )

    def _naming(self) -> Iterator[Row]:
        """A name that can come to mean another adapter."""
        port = self.facts
        if not port:
            return
        if port["ambiguous"] and "/by-path/" not in self.path:
            fix = self._set(port["by_path"]) if port["by_path"] else "plug the adapters into different machines"
            yield self._row(
                "warning",
                "another adapter has the same USB ids and serial number, so this name can lead to either",
                fix,
            )
        elif self.path.startswith("/dev/tty.") and port["device"].startswith("/dev/cu."):
            yield self._row(
                "warning",
                f"opening {self.path} waits for a carrier; labd takes {port['device']} instead, other programs do not",
                self._set(port["device"]),
            )
        elif self.path == self.node and port["device"] != self.node:
            yield self._row(
                "warning",
                f"{self.node} is a number that changes when adapters are plugged in again",
                self._set(port["device"]),
            )

    def _meddlers(self) -> Iterator[Row]:
        vid, pid = self.facts.get("vid"), self.facts.get("pid")
        if not vid:
            return
        running = self.machine.facts.running({"ModemManager", "brltty"})
        if "ModemManager" in running and not self.facts.get("mm_ignore"):
            rule = f'ATTRS{{idVendor}}=="{vid}", ATTRS{{idProduct}}=="{pid}", ENV{{ID_MM_DEVICE_IGNORE}}="1"'
            yield self._row(
                "warning",
                f"ModemManager (pid {running['ModemManager']}) may type AT commands into it: "
                "no rule tells it to keep off",
                f"echo '{rule}' | sudo tee /etc/udev/rules.d/77-labd.rules "
                "&& sudo udevadm control --reload && sudo udevadm trigger",
            )
        rules = self.machine.facts.brltty_claims(vid, pid)
        if rules and "brltty" in running:
            yield self._row(
                "warning",
                f"brltty (pid {running['brltty']}) claims adapters {vid}:{pid} ({rules})",
                "sudo systemctl disable --now brltty brltty-udev",
            )

    def _lines(self) -> Iterator[Row]:
        """What opening and closing do to DTR and RTS, by which many boards are reset or switched."""
        if self.machine.facts.drops_lines(self.node):
            yield self._row(
                "warning",
                "HUPCL is set: DTR and RTS drop when the port is closed, which resets many boards",
                f"stty -F {quote(self.node)} -hupcl",
            )
        quiet = self.line.get("power_button") or self.line.get("assert_dtr") is False
        if quiet and self.facts.get("driver") and (self.target, self.name) not in self.bench.live:
            why = "is wired to the power button" if self.line.get("power_button") else "must stay released"
            yield self._row(
                "warning",
                f"the system raises DTR for a moment whenever the port is opened, and DTR {why}",
                f"labd serial watch {self.target} -i {self.name}  # opens it once and keeps it",
            )

    def _stale_lock(self) -> Iterator[Row]:
        """The lock of a program that has died, which minicom and its like still heed."""
        locked = self.machine.facts.lock_file(self.node)
        if locked and not self.machine.facts.alive(locked[1]):
            yield self._row(
                "warning",
                f"{locked[0]} names pid {locked[1]}, which is gone: other programs take the port for busy",
                f"sudo rm {quote(locked[0])}",
            )


def _callout(node: str) -> str:
    """The node under which macOS's ports are listed: `cu.X` for `tty.X`. Elsewhere no name begins like that."""
    return node.replace("/dev/tty.", "/dev/cu.", 1)
