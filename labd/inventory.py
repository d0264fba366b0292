"""What this machine has that a lab could use: serial ports, network interfaces, capture devices, adb, simulations.

Reads sysfs, /dev and a running adb server; opens no port, starts no process, writes nothing. `discover`,
`doctor` and `configure` are its users. Where something can't be known, the answer holds a note that says so.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from labd.platform.inventory import Account, Query, no_query, this_account

if TYPE_CHECKING:
    from labd.platform.net import Net

#: Where a running adb server answers, and how long it may take, in seconds.
ADB_ADDRESS = ("127.0.0.1", 5037)
ADB_TIMEOUT_S = 1.0

#: How old, in seconds, what is known of who has which device open may be; never older than the asking object.
WALK_S = 1.0

#: What is kept of a port's facts, as `labd.platform` lists them.
PORT_KEYS = (
    "device", "node", "by_id", "by_path", "description", "product", "driver", "vid", "pid", "serial", "interface",
    "topology", "latency_ms",
)  # fmt: skip


def this_machine() -> "Machine":
    """The machine that this process runs on."""
    from labd import platform, shim

    facts: Any
    if sys.platform == "darwin":
        from labd.platform.inventory_macos import MacInventory

        facts = MacInventory(shim.run_captured)
    else:
        from labd.platform.inventory_linux import LinuxInventory

        facts = LinuxInventory(query=shim.run_captured)
    return Machine(facts, platform.current(), query=shim.run_captured)


class Machine:
    """Everything that may be asked of a machine, behind one object, so that a test can give a made-up one.

    `facts` is a LinuxInventory or a MacInventory; `ports` is `labd.platform.current()` or what stands in for it;
    `query` puts a short, harmless question to a program; `account` is who we run as;
    `net` are the interfaces as netboot sees them, None: those that this process sees.
    """

    def __init__(self, facts: Any, ports: Any, adb: tuple[str, int] = ADB_ADDRESS, *, query: Query = no_query,
                 account: Account | None = None, net: "Net | None" = None) -> None:  # fmt: skip
        self.facts = facts
        self.net = net
        self.ports = ports
        self.adb = adb
        self.query = query
        self.account = account or this_account()
        self._made = time.monotonic()

    def serial_ports(self) -> list[dict[str, Any]]:
        """Ports with hardware behind them: device (the most stable name), node, by_id, by_path, what it is, holders.

        `ambiguous` is true when another adapter has the same USB ids and serial number, so that their by-id names
        collide; `device` is then the by-path name. Facts that are not known are None or left out.
        """
        found = []
        for listed in self.ports.serial_ports():
            port = {key: listed.get(key) for key in PORT_KEYS} | {"ambiguous": bool(listed.get("twins"))}
            by_path = port["by_path"] if port["ambiguous"] else None
            port["device"] = by_path or listed.get("path") or listed["node"]
            if port["driver"] in ("port", "ctrl"):  # of the kernel's serial core, which names no hardware
                port["driver"] = None
            port |= self.facts.port_facts(port["node"], port["topology"])
            port["holders"] = self.holders(port["node"])
            found.append(port)
        return found

    def holders(self, node: str) -> list[dict[str, Any]]:
        """Which other processes have a device open: pid and command. Never raises; empty when it can't be known.

        Whoever plays the far end of a pseudo-terminal isn't one: it is the board.
        """
        try:
            age = min(WALK_S, time.monotonic() - self._made)  # one walk through all processes serves many ports
            return [dict(holder) for holder in self.ports.holders(node, age) if not holder.get("master")]
        except OSError:
            return []

    def others(self, node: str) -> list[dict[str, Any]]:
        """The holders of a device that this process did not start: none of the daemon's own workers."""
        mine = os.getpid()
        return [holder for holder in self.holders(node) if not self.facts.descends(holder["pid"], mine)]

    def network(self) -> list[dict[str, Any]]:
        """Wired interfaces with hardware behind them, those that may serve a board first."""
        wired = [nic for nic in self.facts.network_interfaces() if not nic["wireless"]]
        return sorted(wired, key=lambda nic: (bool(nic["default_route"]), not nic["usb"], nic["name"]))

    def adb_devices(self) -> list[dict[str, str]] | None:
        """The devices that a running adb server lists (serial, state, model), or None when none runs.

        Starts no server: asks the one that is there, in its own protocol.
        """
        from labd.adb import server_devices

        return server_devices(self.adb, ADB_TIMEOUT_S)


def simulated() -> dict[str, str]:
    """Built-in simulated boards: name → title, read from their files. Empty when they are not installed."""
    return {name: str(board.get("title", "")) for name, board in _loopback_files("duts")}


def virtual(env: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Virtual boards: name → title, has, program, `missing` (what is not installed of what plays it), fix.

    Empty when they are not installed.
    """
    found = {}
    for name, board in _loopback_files("boards"):
        program, absent, packages = str(board.get("program", "")), [], []
        if on_path(program, env) is None:
            absent, packages = [program], [str(board.get("package", program))]
        for file in board.get("files", {}).values():
            if not any(os.path.exists(path) for path in file["look"]):
                absent.append(os.path.basename(file["look"][0]))
                packages.append(str(file["package"]))
        brew = "brew install qemu" if sys.platform == "darwin" else None
        fix = (brew or f"sudo apt install {' '.join(dict.fromkeys(packages))}") if absent else None
        found[name] = {"title": str(board.get("title", "")), "has": list(board.get("has", [])), "program": program,
                       "missing": ", ".join(absent) or None, "fix": fix}  # fmt: skip
    return found


def unknown_board(device: str, env: Mapping[str, str], folder: str) -> str:
    """Why `loopback:NAME` or `board:NAME` means no board here, with near names; "" where it does, and for all else.

    A name with a slash or ending in .toml is a file, a relative one counting from `folder`, the lab file's directory.
    """
    from labd import paths
    from labd.errors import nearest

    scheme, _, name = device.partition(":")
    kind = {"loopback": "duts", "board": "boards"}.get(scheme)
    if kind is None:
        return ""
    what = "simulated" if kind == "duts" else "virtual"
    if "/" in name or name.endswith(".toml"):
        path = paths.expand(name, env, folder)
        return "" if os.path.isfile(path) else f"no {what} board file {path}"
    known = [known for known, _ in _loopback_files(kind)]
    near = " or ".join(f"{scheme}:{other}" for other in nearest(name, known))
    if name in known:
        return ""
    return f"no {what} board {name!r} here; " + (
        f"did you mean {near}?" if near else f"there is {', '.join(known) or 'none'}"
    )


def _loopback_files(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, contents) of the built-in boards of one kind. Finds the package `loopback` without importing it."""
    import tomllib
    from importlib.util import find_spec

    spec = find_spec("loopback")
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = os.path.join(place, kind)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            stem, extension = os.path.splitext(name)
            if extension != ".toml":
                continue
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    yield stem, tomllib.load(file)
            except (OSError, tomllib.TOMLDecodeError):
                continue


def on_path(program: str, env: Mapping[str, str]) -> str | None:
    """Where the caller's PATH has a program, or None."""
    import shutil

    return shutil.which(program, path=env.get("PATH", os.defpath))


def discover(machine: Machine, env: Mapping[str, str]) -> dict[str, Any]:
    """The whole inventory as plain data: serial, ethernet, video, hid, hubs (USB), adb, boards, simulated, notes.

    `notes` says, for each kind that is empty or unknown, where was looked and what may be the reason.
    """
    from labd.injectors import injectors

    ports, network = machine.serial_ports(), machine.network()
    video, devices = machine.facts.video_devices(), machine.adb_devices()
    return {
        "serial": ports,
        "ethernet": [{"device": nic["name"], "active": nic["carrier"], **nic} for nic in network],
        "video": [{**found, "holders": machine.holders(found["device"])} for found in video or []],
        "hid": injectors(machine, ports),
        "hubs": machine.facts.hub_locations() or [],
        "adb": devices or [],
        "boards": [{"device": f"board:{name}", **board} for name, board in virtual(env).items()],
        "simulated": [{"device": f"loopback:{name}", "title": title} for name, title in simulated().items()],
        "notes": list(_notes(machine, env, ports, network, video, devices)),
    }


def _notes(machine: Machine, env: Mapping[str, str], ports: list[dict[str, Any]], network: list[dict[str, Any]],
           video: list[dict[str, Any]] | None, devices: list[dict[str, str]] | None) -> Iterator[str]:  # fmt: skip
    if not ports:
        yield _no_ports(machine)
    if any(port["ambiguous"] for port in ports):
        yield "serial: adapters without a serial number of their own share a by-id name; use by-path names"
    if not network:
        yield "ethernet: no wired interface with hardware behind it"
    if video is None:
        yield "video: this system did not tell its cameras"
    elif not video:
        yield "video: no capture device under /sys/class/video4linux; a dongle needs the uvcvideo driver"
    if machine.facts.can_be_a_gadget() and not machine.facts.hid_gadgets():
        yield "input: this machine can be a target's USB keyboard and pointer: sudo labd helper hidgadget setup"
    if devices is None:
        yield ("adb: installed, but its server is not running; `adb devices` starts it" if on_path("adb", env)
               else "adb: not installed (package adb, or android-platform-tools with brew)")  # fmt: skip
    elif not devices:
        yield "adb: the server runs and sees no device; is USB debugging on?"


def _no_ports(machine: Machine) -> str:
    meddler = machine.facts.running({"brltty"})
    where = "/dev/cu.*" if machine.facts.name == "macos" else "/sys/class/tty and /dev/serial"
    tip = "brltty runs and takes some USB adapters away" if meddler else "plug one in and look again"
    return f"serial: no port with hardware behind it in {where}; {tip}"
