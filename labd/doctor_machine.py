"""What concerns the machine as a whole: room for the journals, the daemon, the supply, programs that verbs need.

Rows have the target `-` and the channel `machine`. Reads only.
"""

import os
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from labd import __version__, paths
from labd.doctor import Bench, Row, install, row

#: Free bytes below which a capture will soon lose what comes.
LITTLE = 64 << 20

#: Program → (its package, its name with brew, what is lost without it, for labs that have this channel or host).
TOOLS = {
    "sz": ("lrzsz", "lrzsz", "labd serial xfer can't send or receive files", "serial"),
    "ssh": ("openssh-client", "openssh", "hosts of the lab can't be reached", "hosts"),
}


def check(bench: Bench, lab: Any, daemon: Mapping[str, Any] | None, capture: Mapping[str, Any] | None) -> list[Row]:
    """Every finding. `lab` tells how much is kept, `daemon` and `capture` are what `labd daemons` says of them."""
    return [*_room(bench, lab), *_daemon(daemon, capture), *_session(bench), *_power(bench), *_tools(bench)]


def _row(what: str, status: str, detail: str, fix: str | None = None, device: str | None = None) -> Row:
    return row("-", "machine", status, detail, interface=what, device=device, fix=fix)


def _room(bench: Bench, lab: Any) -> Iterator[Row]:
    """Whether the journals may grow as far as the lab lets them."""
    place = paths.state_dir(bench.env)
    there = place
    while not os.path.exists(there):
        there = os.path.dirname(there)
    if not os.access(there, os.W_OK | os.X_OK):
        fix = f"ls -ld {quote(there)}  # then give it to {bench.machine.account.name}"
        yield _row("room", "denied", f"nothing can be written in {there}, so nothing is kept of a capture", fix, place)
        return
    disk = os.statvfs(there)
    free = disk.f_bavail * disk.f_frsize
    lines = sum(len(config.get("serial", [])) for config in bench.data.get("targets", {}).values())
    wanted = lines * (lab.journal["keep_mb"] << 20)
    if free < LITTLE or (not disk.f_favail and disk.f_files):
        left = f"{_size(free)}" if disk.f_favail or not disk.f_files else "no inode"
        fix = f"df -h {quote(there)}  # make room, or keep journals elsewhere: XDG_STATE_HOME"
        yield _row("room", "missing", f"{left} free for the journals in {place}: captures will lose text", fix, there)
    elif free < wanted:
        kept = f"{lines} interfaces of {lab.journal['keep_mb']} MiB each"
        fix = "labd config edit  # [journal] keep_mb"
        yield _row(
            "room", "warning", f"{_size(free)} free, and the journals may grow to {_size(wanted)} ({kept})", fix, there
        )
    else:
        yield _row("room", "ok", f"{_size(free)} free for the journals", None, there)


def _daemon(daemon: Mapping[str, Any] | None, capture: Mapping[str, Any] | None) -> Iterator[Row]:
    """The daemon and its capture process: alive, and of this version."""
    if daemon is None:
        left = (
            f"; a capture process (pid {capture['pid']}) keeps {capture['ports']} ports for the next one"
            if capture
            else ""
        )
        yield _row("daemon", "ok", f"none runs; the first runtime verb starts it{left}")
    elif daemon["version"] != __version__:
        detail = f"it is of version {daemon['version']}, and labd of {__version__} (pid {daemon['pid']})"
        yield _row("daemon", "warning", detail, "labd daemons restart  # captures go on meanwhile")
    else:
        yield _row("daemon", "ok", f"runs (pid {daemon['pid']}), policy level {daemon['level']}")
    if daemon is not None and capture is None:
        yield _row(
            "capture", "missing", "the daemon has no capture process: nothing is being kept", "labd daemons restart"
        )
    elif capture is not None and capture["version"] != __version__:
        detail = f"the capture process is of version {capture['version']}, and labd of {__version__}"
        yield _row(
            "capture", "warning", detail, "labd daemons stop  # ends captures; labd serial watch starts them again"
        )


def _session(bench: Bench) -> Iterator[Row]:
    """Whether the daemon's directory survives the end of this log-in."""
    runtime, who = paths.runtime_dir(bench.env), bench.machine.account.name
    if bench.machine.facts.ends_at_logout(who, runtime):
        detail = f"the system takes {runtime} away when {who} logs out: the daemon can't be reached any more"
        yield _row("session", "warning", detail, f"loginctl enable-linger {who}")


def _power(bench: Bench) -> Iterator[Row]:
    for what, detail in bench.machine.facts.power_troubles():
        fix = (
            "give the machine a stronger supply" if what == "supply" else "give the adapters a hub with its own supply"
        )
        yield _row("power", "warning", detail, fix, what)


def _tools(bench: Bench) -> Iterator[Row]:
    """Programs that verbs on what this lab has would ask for in vain."""
    used = {channel for config in bench.data.get("targets", {}).values() for channel in config}
    used |= {"hosts"} if bench.data.get("hosts") else set()
    for program, (package, brew, lost, needed_by) in TOOLS.items():
        if needed_by in used and bench.on_path(program) is None:
            yield _row("tools", "warning", f"{program} is not on PATH: {lost}", install(bench, package, brew), program)


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count >> 20} MiB"
