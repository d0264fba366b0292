"""The lab file against what is really there: one row a fact, each with its evidence and the command that mends it.

Opens no device (opening a serial port can reset the board on it), starts no hook, writes nothing. A row is a dict:
target, channel, interface (or the hook's key, or what was looked at), device, status, detail, fix, and host, the
machine that it was found on, None for this one. What is checked of a channel is in its own module, `doctor_serial` and
its like; what concerns the machine as a whole in `doctor_machine`.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from labd import paths
from labd.inventory import Machine
from labd.lab.hosts import is_here

#: What a row can say. `ok` and `warning` leave the exit code at 0, the others are problems.
STATUSES = ("ok", "missing", "busy", "denied", "incomplete", "unreachable", "warning")
PROBLEMS = ("missing", "busy", "denied", "incomplete", "unreachable")

Row = dict[str, Any]


class Bench:
    """What every check needs: the machine, the lab's data and folder, the caller's environment.

    `live` are the consoles that the daemon captures of this lab, `screens` those that it watches, as it tells them;
    empty without a daemon.
    """

    def __init__(
        self,
        machine: Machine,
        data: Mapping[str, Any],
        folder: str,
        env: Mapping[str, str],
        live: Iterable[Mapping[str, Any]] = (),
        screens: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        self.machine = machine
        self.data = data
        self.folder = folder
        self.env = env
        self.live = {(line["target"], line["name"]): line for line in live}
        self.screens = {screen["target"]: screen for screen in screens}

    @cached_property
    def ports(self) -> list[dict[str, Any]]:
        """The serial ports of the machine, looked at once."""
        return self.machine.serial_ports()

    def path(self, text: str) -> str:
        """A path of the lab, made absolute as the bench does it."""
        return paths.expand(text, self.env, self.folder)

    def on_path(self, program: str) -> str | None:
        """Where the caller's PATH has a program."""
        from labd.inventory import on_path

        return on_path(program, self.env)


def row(
    target: str,
    channel: str,
    status: str,
    detail: str,
    *,
    interface: str | None = None,
    device: str | None = None,
    fix: str | None = None,
) -> Row:
    """One finding. A fix is a command, or an act when no command does it."""
    assert status in STATUSES, status
    return {
        "target": target,
        "channel": channel,
        "interface": interface,
        "device": device,
        "status": status,
        "detail": detail,
        "fix": fix,
        "host": None,
    }


def examine(bench: Bench, target: str, serial: list[dict[str, Any]]) -> list[Row]:
    """Every finding about those channels of a target that are wired to this machine.

    `serial` are its serial lines with defaults filled in.
    """
    from labd.doctor_serial import check_line

    config = bench.data["targets"][target]
    rows: list[Row] = []
    for line in serial:
        rows += check_line(bench, target, line) if _here(bench, config, line) else []
    for channel, check in _checks().items():
        if channel in config and _here(bench, config, config[channel]):
            rows += check(bench, target, config[channel])
    if not serial and not any(channel in config for channel in _checks()):
        rows.append(
            row(
                target,
                "-",
                "incomplete",
                "no channel is configured, so there is nothing to check",
                fix=f"labd serial add console -t {target} --device DEVICE  # labd discover lists devices",
            )
        )
    return rows


def _checks() -> dict[str, Callable[[Bench, str, Mapping[str, Any]], Iterator[Row]]]:
    """Channel → its check, in the order in which channels are always shown."""
    from labd import doctor_adb, doctor_hooks, doctor_netboot, doctor_video

    return {"netboot": doctor_netboot.check, "power": doctor_hooks.check_power, "video": doctor_video.check,
            "hid": doctor_hooks.check_hid, "adb": doctor_adb.check}  # fmt: skip


def _here(bench: Bench, target: Mapping[str, Any], channel: Mapping[str, Any]) -> bool:
    """Whether a channel is wired to this machine."""
    host = channel.get("host") or target.get("host")
    return is_here(host, bench.data.get("hosts", {}).get(host, {}))


def access_denied(bench: Bench, path: str) -> tuple[str, str]:
    """(why this user may not open a node, the command that changes it)."""
    import stat
    from shlex import quote

    from labd.platform.inventory import group_of

    who, group = bench.machine.account, group_of(path)
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if not mode & stat.S_IWGRP:
        return f"only its owner may open it (mode {mode:04o})", f"sudo chmod 660 {quote(path)}"
    if group in who.listed:
        return (
            f"group {group!r} may open it; {who.name} is in it, but this process started before that",
            "labd daemons stop  # after logging out and in again",
        )
    return f"only group {group!r} may open it, and {who.name} is not in it", (
        f"sudo usermod -aG {group} {who.name}  # then log out and in again"
    )


def holders_words(holders: Iterable[Mapping[str, Any]]) -> str:
    """Who has a device open, for a person."""
    return ", ".join(f"{holder['command']} (pid {holder['pid']})" for holder in holders)


def let_go(holder: Mapping[str, Any], node: str) -> str:
    """The command that makes a holder of a device let go."""
    command = os.path.basename((holder.get("command") or "").split(" ", 1)[0])
    tty = os.path.basename(node)
    known = {
        "ModemManager": "sudo systemctl stop ModemManager",
        "brltty": "sudo systemctl stop brltty brltty-udev",
        "agetty": f"sudo systemctl stop serial-getty@{tty}",
        "getty": f"sudo systemctl stop serial-getty@{tty}",
    }
    return known.get(command, f"ask its owner, or if it is yours: kill {holder['pid']}")


def install(bench: Bench, package: str, brew: str = "") -> str:
    """The command that installs a system package here; `brew` is its name on macOS where it differs."""
    if bench.machine.facts.name == "macos":
        return f"brew install {brew or package}"
    return f"sudo apt install {package}  # or the package manager of this system"
