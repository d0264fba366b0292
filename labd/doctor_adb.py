"""An Android device: the adb program, its server, and what the server says of the device. Starts no server."""

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from labd.doctor import Bench, Row, install, row

#: What adb calls a device that is not ready → (what that means, what helps).
_STATES = {
    "unauthorized": ("the device does not trust this computer yet", "allow this computer on the device's screen"),
    "authorizing": ("the device is asking whether to trust this computer", "allow it on the device's screen"),
    "offline": ("adb has lost it", "unplug it and plug it in again, or: adb reconnect"),
    "recovery": ("it is in recovery", "adb reboot  # back into the system"),
    "sideload": ("it waits for a sideloaded update", "adb reboot  # back into the system"),
    "bootloader": ("it is in its boot loader", "fastboot reboot"),
}


def check(bench: Bench, target: str, config: Mapping[str, Any]) -> Iterator[Row]:
    """One row: the first thing that keeps adb from the device, or that it sees it."""
    program, serial = config.get("adb") or "adb", config.get("serial")
    path = bench.on_path(bench.path(program) if "/" in program or program.startswith("~") else program)
    if path is None:
        where = f"{bench.path(program)} is not there" if "/" in program else f"no program {program!r} on PATH"
        fix = (
            f"labd adb set -t {target} --adb PATH"
            if config.get("adb")
            else install(bench, "adb", "android-platform-tools")
        )
        yield row(target, "adb", "missing", where, device=serial, fix=fix)
        return
    devices = bench.machine.adb_devices()
    if devices is None:
        yield row(
            target,
            "adb",
            "warning",
            f"{path} is there, but no adb server runs to ask for the device",
            device=serial,
            fix=f"{quote(program)} start-server  # then labd doctor again",
        )
        return
    yield _seen(bench, target, serial, devices)


def _seen(bench: Bench, target: str, serial: str | None, devices: list[dict[str, str]]) -> Row:
    listed = ", ".join(f"{d['serial']} ({d['state']})" for d in devices) or "none"
    hits = [d for d in devices if serial in (None, d["serial"])]
    if not hits:
        return row(
            target,
            "adb",
            "missing",
            f"adb sees no device{f' {serial}' if serial else ''}; it sees {listed}",
            device=serial,
            fix="plug it in and allow USB debugging on its screen",
        )
    if len(hits) > 1:
        return row(
            target,
            "adb",
            "incomplete",
            f"no serial is set and adb sees {listed}",
            fix=f"labd adb set -t {target} --serial {quote(hits[0]['serial'])}",
        )
    device, state = hits[0]["serial"], hits[0]["state"]
    if state == "device":
        return row(target, "adb", "ok", "adb sees the device", device=device)
    if state == "no":  # `no permissions (…)`: the words behind it differ from version to version
        who = bench.machine.account
        join = "plugdev" in who.known and "plugdev" not in who.listed
        rules = "sudo apt install android-sdk-platform-tools-common  # udev rules for phones; then plug it in again"
        fix = f"sudo usermod -aG plugdev {who.name}  # then log out and in again" if join else rules
        return row(target, "adb", "denied", "this user may not open the device's USB node", device=device, fix=fix)
    why, fix = _STATES.get(state, (f"adb says {state}", "adb devices -l"))
    return row(target, "adb", "denied", f"{why} (adb says {state})", device=device, fix=fix)
