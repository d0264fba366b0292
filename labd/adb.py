"""Android devices over the program `adb`: which one a target is, running it with a limit, what its troubles mean.

Also asks a running adb server which devices it sees, in its own protocol: that starts nothing, so it is no act.
"""

from __future__ import annotations

import os
import re
import selectors
import socket
import time
from typing import TYPE_CHECKING

from labd import paths, shim
from labd.errors import LabdError, TimedOut, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from labd.call import Call
    from labd.lab import Lab

#: How a missing program is installed.
INSTALL = "sudo apt install adb  # macOS: brew install android-platform-tools"

#: Seconds that a running adb server gets to answer.
SERVER_SECONDS = 2.0

#: Seconds between looks whether the caller still listens.
LOOK_SECONDS = 0.25

#: What adb itself says when it can't reach a device, on stderr.
_TROUBLE = re.compile(
    rb"^(?:adb|error): (?:no devices|more than one device|device|failed to|cannot connect|unable to)[^\n]*", re.M
)


class Device:
    """The device that a target is: the program that reaches it, and its serial number ("" for the only one)."""

    def __init__(self, program: str, serial: str) -> None:
        self.program = program
        self.serial = serial

    def argv(self, *words: str) -> list[str]:
        """adb's words for this device."""
        return [self.program, *(("-s", self.serial) if self.serial else ()), *words]


def environment(call: Call) -> dict[str, str]:
    """What adb runs in: this process's environment, the caller's over it."""
    return {**os.environ, **call.env}


def device_of(call: Call, lab: Lab, target: str) -> Device:
    """The device of a target. Raises NotFound when it has no adb channel, Unreachable when there is no adb."""
    table = lab.channel(target, "adb")
    return Device(program(call.env, lab.directory, table.get("adb", "adb")), table.get("serial", ""))


def program(env: Mapping[str, str], folder: str, name: str = "adb") -> str:
    """The adb to run: a path as the lab has it, or what PATH has. Raises Unreachable when it is not there."""
    import shutil

    wanted = paths.expand(name, env, folder) if "/" in name or name.startswith("~") else name
    found = shutil.which(wanted, path=env.get("PATH") or os.defpath)
    if found is None:
        raise Unreachable(f"there is no program {wanted}", hint=INSTALL if wanted == "adb" else "labd adb list")
    return found


def run(call: Call, argv: list[str], out: Callable[[bytes], None], err: Callable[[bytes], None],
        timeout_s: float | None = None) -> int:  # fmt: skip
    """Run adb to its end, its output handed on as it comes; its exit code. stdin is empty.

    Raises TimedOut, Unreachable when adb can't reach the device, and what `out` and `err` raise; adb is ended then.
    """
    end = None if timeout_s is None else time.monotonic() + timeout_s
    said = b""

    def heard(data: bytes) -> None:
        nonlocal said
        said += data[: 4096 - len(said)]
        err(data)

    process = shim.start_piped(argv, call.cwd or "/", environment(call))
    assert process.stdin and process.stdout and process.stderr
    process.stdin.close()
    try:
        with selectors.DefaultSelector() as waiting:
            waiting.register(process.stdout, selectors.EVENT_READ, out)
            waiting.register(process.stderr, selectors.EVENT_READ, heard)
            while waiting.get_map():
                if end is not None and time.monotonic() >= end:
                    raise TimedOut(f"{os.path.basename(argv[0])} did not end within {timeout_s:g} s")
                for key, _ in waiting.select(LOOK_SECONDS):
                    data = os.read(key.fd, 1 << 16)
                    if not data:
                        waiting.unregister(key.fileobj)
                    else:
                        key.data(data)
                call.wait_data("adb", 0.0)  # raises when the caller has gone
        code = process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()
    if code:
        _reached(said)
    return code if code >= 0 else 128 - code


def _reached(said: bytes) -> None:
    """Raise Unreachable if adb's last words say that it did not reach the device, with what may help."""
    found = _TROUBLE.search(said)
    if found is None:
        return
    words = found[0].decode("utf-8", "replace").strip()
    hint = "labd adb devices"
    if "unauthorized" in words:
        hint = "allow this computer on the device's screen, then labd adb devices"
    elif "more than one" in words:
        hint = "labd adb devices; labd adb set -t TARGET --serial ID"
    raise Unreachable(f"the device can't be reached: {words.partition(': ')[2]}", hint=hint)


def server_address(env: Mapping[str, str]) -> tuple[str, int]:
    """Where adb's server listens, as adb itself would look for it."""
    port = env.get("ANDROID_ADB_SERVER_PORT", "")
    return "127.0.0.1", int(port) if port.isascii() and port.isdigit() and 0 < int(port) < 65536 else 5037


def server_devices(address: tuple[str, int], timeout_s: float = SERVER_SECONDS) -> list[dict[str, str]] | None:
    """The devices that a running adb server lists, or None when none runs. Starts no server."""
    try:
        with socket.create_connection(address, timeout=timeout_s) as server:
            server.settimeout(timeout_s)
            server.sendall(b"000ehost:devices-l")
            if _exactly(server, 4) != b"OKAY":
                return None
            return listed(_exactly(server, int(_exactly(server, 4), 16)).decode("utf-8", "replace"))
    except (OSError, ValueError, EOFError):
        return None


def listed(text: str) -> list[dict[str, str]]:
    """What `adb devices -l` prints, a device a row: serial, state, and the model where it is known."""
    rows = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 2 or line.startswith(("*", "List of devices", "adb ")):
            continue
        more = dict(word.split(":", 1) for word in words[2:] if ":" in word)
        model = {"model": more["model"]} if "model" in more else {}
        rows.append({"serial": words[0], "state": words[1], **model})
    return rows


def picture_of(data: bytes) -> tuple[bytes, int, int]:
    """The PNG in what screencap wrote, its width and height. Raises LabdError, with what was written instead.

    Devices with several displays print a warning before it.
    """
    start = data.find(b"\x89PNG\r\n\x1a\n")
    if start < 0 or b"IEND" not in data[-12:]:
        whole = "no picture" if start < 0 else "half a picture"
        said = data[: start if start >= 0 else 300].decode("utf-8", "replace").strip()
        raise LabdError(f"the device sent {whole} ({len(data)} bytes){f': {said[:200]}' if said else ''}")
    png = data[start:]
    return png, int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def _exactly(server: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = server.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data
