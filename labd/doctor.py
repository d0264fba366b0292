"""The lab file against what is really there: one row a fact, each with its evidence and the command that mends it.

Opens no device (opening a serial port can reset the board on it), starts no hook, writes nothing. A row is a dict:
target, channel, interface (or the hook's key), device, status, detail, fix. `Doctor` walks the channels; the serial
line, where most trouble is, has `doctor_serial` to itself.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from functools import cached_property
from shlex import quote
from typing import Any

from labd import hookwords, paths
from labd.errors import nearest
from labd.inventory import Machine, on_path, simulated

#: What a row can say. `ok` and `warning` leave the exit code at 0, the others are problems.
STATUSES = ("ok", "missing", "busy", "denied", "incomplete", "warning")
PROBLEMS = ("missing", "busy", "denied", "incomplete")

Row = dict[str, Any]

HOOK_KEYS = ("cycle_cmd", "on_cmd", "off_cmd", "state_cmd")


class Bench:
    """What every check needs: the machine, the lab's data and folder, the caller's environment."""

    def __init__(self, machine: Machine, data: Mapping[str, Any], folder: str, env: Mapping[str, str]) -> None:
        self.machine = machine
        self.data = data
        self.folder = folder
        self.env = env

    @cached_property
    def ports(self) -> list[dict[str, Any]]:
        """The serial ports of the machine, looked at once."""
        return self.machine.serial_ports()


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
    }


def examine(bench: Bench, target: str, serial: list[dict[str, Any]]) -> list[Row]:
    """Every finding about one target. `serial` are its serial lines with defaults filled in."""
    from labd.doctor_serial import check_line

    config = bench.data["targets"][target]
    rows: list[Row] = []
    for line in serial:
        away = _away(bench, target, "serial", line.get("host") or config.get("host"), line["name"])
        rows += [away] if away else check_line(bench, target, line)
    checks = {"netboot": _netboot, "power": _power, "video": _video, "hid": _hid, "adb": _adb}
    for channel, check in checks.items():
        if channel in config:
            away = _away(bench, target, channel, config[channel].get("host") or config.get("host"))
            rows += [away] if away else list(check(bench, target, config[channel]))
    if not rows:
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


def is_local(data: Mapping[str, Any], host: str | None) -> bool:
    """Whether a host's name in the lab means this machine: none, `local`, ssh `local`, or our own hostname."""
    if host in (None, "local"):
        return True
    entry = data.get("hosts", {}).get(host, {})
    own = {socket.gethostname().lower(), socket.getfqdn().lower()} if entry.get("hostname") else set()
    return entry.get("ssh") == "local" or str(entry.get("hostname", "")).lower() in own


def _away(bench: Bench, target: str, channel: str, host: str | None, interface: str | None = None) -> Row | None:
    if is_local(bench.data, host):
        return None
    ssh = bench.data.get("hosts", {}).get(host, {}).get("ssh", host)
    return row(
        target,
        channel,
        "warning",
        f"wired to host {host!r}; not checked from here",
        interface=interface,
        fix=f"ssh {ssh} labd doctor  # with the lab file of that machine",
    )


def _netboot(bench: Bench, target: str, config: Mapping[str, Any]) -> Iterator[Row]:
    name = config.get("interface")
    if not name:
        yield row(
            target, "netboot", "incomplete", "no interface is set", fix=f"labd netboot set -t {target} --interface IF"
        )
    else:
        yield _interface(bench, target, name)
    root = config.get("tftp_root")
    if not root:
        yield row(
            target, "netboot", "incomplete", "no tftp_root is set", fix=f"labd netboot set -t {target} --tftp-root DIR"
        )
        return
    path = paths.expand(root, bench.env, bench.folder)
    boot_file = config.get("boot_file")
    if not os.path.isdir(path):
        yield row(
            target,
            "netboot",
            "missing",
            f"tftp_root {path} is not a directory",
            device=path,
            fix=f"mkdir -p {quote(path)}",
        )
    elif not os.access(path, os.R_OK | os.X_OK):
        yield row(
            target,
            "netboot",
            "denied",
            f"tftp_root {path} may not be read",
            device=path,
            fix=f"chmod u+rx {quote(path)}",
        )
    elif boot_file and not os.path.exists(os.path.join(path, boot_file)):
        yield row(
            target,
            "netboot",
            "missing",
            f"boot_file {boot_file} is not in {path}",
            device=path,
            fix=f"cp KERNEL {quote(os.path.join(path, boot_file))}",
        )
    else:
        yield row(target, "netboot", "ok", "tftp_root is there", device=path)


def _interface(bench: Bench, target: str, name: str) -> Row:
    known = bench.machine.facts.all_interfaces()
    if name not in known:
        near = nearest(name, known) or [nic["name"] for nic in bench.machine.network() if not nic["default_route"]]
        fix = f"labd netboot set -t {target} --interface {quote(near[0])}" if near else "labd discover"
        return row(
            target,
            "netboot",
            "missing",
            f"no network interface {name!r}; there is {', '.join(known) or 'none'}",
            device=name,
            fix=fix,
        )
    nic = next((nic for nic in bench.machine.facts.network_interfaces() if nic["name"] == name), None)
    if nic and nic["default_route"]:
        return row(
            target,
            "netboot",
            "warning",
            "it carries this machine's default route: DHCP would answer your LAN",
            device=name,
            fix=f"labd netboot set -t {target} --interface OTHER  # labd discover lists them",
        )
    if nic and nic["carrier"] is False:
        return row(
            target,
            "netboot",
            "warning",
            "present, but no cable or no power at the other end",
            device=name,
            fix="check the cable; switch the board on",
        )
    return row(target, "netboot", "ok", "the interface is there", device=name)


def _power(bench: Bench, target: str, config: Mapping[str, Any]) -> Iterator[Row]:
    keys = [key for key in HOOK_KEYS if config.get(key)]
    if not keys:
        yield row(
            target,
            "power",
            "incomplete",
            "no hook is set",
            fix=f'labd power set -t {target} --cycle-cmd "PROGRAM …"  # labd helper lists bundled ones',
        )
    for key in keys:
        yield from hook_rows(bench, target, "power", key, config[key])
    name = config.get("serial_interface")
    names = [line["name"] for line in bench.data["targets"][target].get("serial", [])]
    if name and name not in names:
        fix = (
            f"labd power set -t {target} --serial-interface {names[0]}"
            if names
            else f"labd power set -t {target} --unset serial_interface"
        )
        yield row(
            target,
            "power",
            "missing",
            f"serial_interface {name!r} is no serial interface of {target}",
            interface="serial_interface",
            device=name,
            fix=fix,
        )


def _hid(bench: Bench, target: str, config: Mapping[str, Any]) -> Iterator[Row]:
    if not config.get("cmd"):
        yield row(target, "hid", "incomplete", "no command is set", fix=f'labd hid set -t {target} --cmd "PROGRAM …"')
        return
    yield from hook_rows(bench, target, "hid", "cmd", config["cmd"])


def hook_rows(bench: Bench, target: str, channel: str, key: str, text: str) -> Iterator[Row]:
    """What can be known of a hook without running it: its programs and the device nodes among its words."""
    flag = "--" + key.replace("_", "-")
    again = f'labd {channel} set -t {target} {flag} "PROGRAM …"'
    hook = hookwords.Hook(text)
    if hook.problem:
        yield row(
            target, channel, "incomplete", f"the hook can't run: {hook.problem}", interface=key, device=text, fix=again
        )
        return
    for program in hook.programs:
        path, found = hookwords.find(program, bench.env, bench.folder)
        if path is None:
            denied = "not executable" in found
            fix = f"chmod +x {quote(found.rpartition(' is ')[0] or found)}" if denied else again
            yield row(target, channel, "denied" if denied else "missing", found, interface=key, device=program, fix=fix)
            return
    for device in hook.devices:
        if not os.path.exists(device):
            yield row(
                target,
                channel,
                "missing",
                f"the hook names {device}, which is not there",
                interface=key,
                device=device,
                fix=f"{again}  # or plug it in",
            )
            return
    doubts = "".join(f"; {note}" for note in hook.notes)
    yield row(
        target, channel, "ok", f"found {found}; the hook was not run{doubts}", interface=key, device=hook.programs[-1]
    )


def _video(bench: Bench, target: str, config: Mapping[str, Any]) -> Iterator[Row]:
    device = config.get("device")
    fix = f"labd video set -t {target} --device DEVICE  # labd discover lists them"
    if not device:
        yield row(target, "video", "incomplete", "no device is set", fix=fix)
    elif "://" in device or device.startswith("board:"):
        yield row(target, "video", "warning", "not a device of this machine; not contacted", device=device)
    elif device.startswith(("/", "~")):
        yield _video_path(target, device, paths.expand(device, bench.env, bench.folder), fix)
    else:
        yield _video_name(bench, target, device, fix)


def _video_path(target: str, device: str, path: str, fix: str) -> Row:
    if not os.path.exists(path):
        return row(target, "video", "missing", f"{path} is not there", device=device, fix=fix)
    if not os.access(path, os.R_OK | os.W_OK):
        from labd.doctor_serial import access_denied

        detail, group_fix = access_denied(path)
        return row(target, "video", "denied", detail, device=device, fix=group_fix)
    return row(target, "video", "ok", "the device is there", device=device)


def _video_name(bench: Bench, target: str, wanted: str, fix: str) -> Row:
    known = bench.machine.facts.video_devices()
    if known is None:
        return row(target, "video", "warning", "this system did not tell its cameras", device=wanted)
    hits = [v for v in known if wanted in (v["id"], str(v["index"]))] or [
        v for v in known if wanted == "auto" or wanted.lower() in v["name"].lower()
    ]
    if not hits:
        names = ", ".join(repr(v["name"]) for v in known) or "no capture device"
        return row(target, "video", "missing", f"nothing matches {wanted!r}; there is {names}", device=wanted, fix=fix)
    if len(hits) > 1 and wanted != "auto":
        ids = ", ".join(str(v["id"] or v["device"]) for v in hits)
        return row(
            target,
            "video",
            "incomplete",
            f"{wanted!r} matches {len(hits)} devices: {ids}",
            device=wanted,
            fix=f"labd video set -t {target} --device {quote(str(hits[0]['id'] or hits[0]['device']))}",
        )
    return row(target, "video", "ok", f"matches {hits[0]['name']!r} ({hits[0]['device']})", device=wanted)


def _adb(bench: Bench, target: str, config: Mapping[str, Any]) -> Iterator[Row]:
    program, serial = config.get("adb") or "adb", config.get("serial")
    path = on_path(
        os.path.expanduser(program) if "/" not in program else paths.expand(program, bench.env, bench.folder), bench.env
    )
    if path is None:
        yield row(
            target,
            "adb",
            "missing",
            f"no program {program!r} on PATH",
            device=serial,
            fix="sudo apt install adb  # macOS: brew install android-platform-tools",
        )
        return
    devices = bench.machine.adb_devices()
    if devices is None:
        yield row(
            target,
            "adb",
            "warning",
            f"{path} is there, but no adb server runs to ask for the device",
            device=serial,
            fix="adb devices  # starts the server; then labd doctor again",
        )
        return
    listed = ", ".join(f"{d['serial']} ({d['state']})" for d in devices) or "none"
    hits = [d for d in devices if serial in (None, d["serial"])]
    if not hits:
        yield row(
            target,
            "adb",
            "missing",
            f"adb sees no device {serial or ''}; it sees {listed}",
            device=serial,
            fix="plug it in and allow USB debugging on its screen",
        )
    elif len(hits) > 1:
        yield row(
            target,
            "adb",
            "incomplete",
            f"no serial is set and adb sees {listed}",
            device=None,
            fix=f"labd adb set -t {target} --serial {quote(hits[0]['serial'])}",
        )
    elif hits[0]["state"] != "device":
        yield row(
            target,
            "adb",
            "denied",
            f"adb says {hits[0]['state']}",
            device=hits[0]["serial"],
            fix="allow this computer on the device's screen",
        )
    else:
        yield row(target, "adb", "ok", "adb sees the device", device=hits[0]["serial"])


def loopback_row(bench: Bench, target: str, name: str, device: str) -> Row:
    """Whether a simulated board (`loopback:NAME` or `loopback:FILE`) exists."""
    dut = device.removeprefix("loopback:")
    if "/" in dut or dut.endswith(".toml"):
        path = paths.expand(dut, bench.env, bench.folder)
        if os.path.isfile(path):
            return row(target, "serial", "ok", f"simulated board {path}", interface=name, device=device)
        return row(
            target,
            "serial",
            "missing",
            f"no simulated board file {path}",
            interface=name,
            device=device,
            fix=f"labd serial set {name} -t {target} --device loopback:FILE.toml",
        )
    known = list(simulated())
    if dut in known:
        return row(target, "serial", "ok", "simulated board, built in", interface=name, device=device)
    near = nearest(dut, known) or known
    detail = f"no simulated board {dut!r}; there is {', '.join(known) or 'none (loopback is not installed)'}"
    fix = f"labd serial set {name} -t {target} --device loopback:{near[0]}" if near else "labd discover"
    return row(target, "serial", "missing", detail, interface=name, device=device, fix=fix)
