"""A machine with a board on a cable: two network namespaces and a veth pair, a bench whose daemon is in the first.

Nothing outside of namespaces that are made here is touched. Skipped, with the reason, where that can't be done.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LABD, BenchInAFolder

_numbers = itertools.count()


def cannot() -> str:
    """Why there can be no namespaces here; empty if there can."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [name for name in ("ip", "dnsmasq", "busybox") if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    probe = subprocess.run(["unshare", "-n", "true"], capture_output=True)
    return "" if probe.returncode == 0 else "this machine permits no network namespaces"


needs_namespaces = pytest.mark.skipif(bool(cannot()), reason=cannot() or "-")


class Cable:
    """`here` is the bench's namespace with the interface `va`, `there` the board's with `vb` at the other end."""

    def __init__(self) -> None:
        name = f"lt{os.getpid()}-{next(_numbers)}"
        self.here, self.there = name, f"{name}b"

    def lay(self) -> None:
        for space in (self.here, self.there):
            ip("netns", "add", space)
            ip("-n", space, "link", "set", "lo", "up")
        self.plug()

    def plug(self) -> None:
        """The cable, new each time."""
        ip("-n", self.here, "link", "add", "va", "type", "veth", "peer", "name", "vb", "netns", self.there)
        ip("-n", self.here, "link", "set", "va", "up")
        ip("-n", self.there, "link", "set", "vb", "up")

    def unplug(self) -> None:
        ip("-n", self.here, "link", "del", "va")

    def remove(self) -> None:
        with contextlib.suppress(OSError):  # the locks of interfaces that are no more
            number = os.stat(f"/var/run/netns/{self.here}").st_ino
            for lock in Path("/var/run").glob(f"labd-netboot-{number}-*.lock"):
                lock.unlink()
        for space in (self.here, self.there):
            subprocess.run(["ip", "netns", "del", space], capture_output=True)

    def addresses(self) -> list[str]:
        """Those of va, but for the ones that it always has."""
        rows = json.loads(ip("-n", self.here, "-j", "addr", "show", "va"))
        found = [f"{a['local']}/{a['prefixlen']}" for row in rows for a in row.get("addr_info", ())]
        return sorted(cidr for cidr in found if not cidr.startswith("fe80::") or cidr == "fe80::1/64")

    def board(self, *argv: str, check: bool = True, timeout: float = 30) -> subprocess.CompletedProcess[bytes]:
        """Run a command where the board is."""
        done = subprocess.run(["ip", "netns", "exec", self.there, *argv], capture_output=True, timeout=timeout)
        assert not check or done.returncode == 0, (argv, done.returncode, done.stdout, done.stderr)
        return done

    def ask(self, *questions: dict[str, Any]) -> list[dict[str, Any]]:
        """What DHCP offers to clients of these kinds (see `client.py`)."""
        client = str(Path(__file__).with_name("client.py"))
        answers: list[dict[str, Any]] = json.loads(
            self.board(sys.executable, client, "vb", json.dumps(questions)).stdout
        )
        return answers

    def lease(self) -> str:
        """The address that busybox's udhcpc gets for vb, and sets."""
        said = self.board("busybox", "udhcpc", "-i", "vb", "-q", "-n", "-f", "-t", "5", "-T", "1", "-s", "/bin/true")
        address = said.stderr.decode().partition("lease of ")[2].partition(" ")[0]
        self.board("ip", "addr", "replace", f"{address}/24", "dev", "vb")
        return address


def ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


class NetBench(BenchInAFolder):
    """A bench whose every command, and so its daemon, runs in the cable's first namespace."""

    def __init__(self, root: Path, runtime: Path, cable: Cable) -> None:
        super().__init__(root, runtime)
        self.cable = cable
        self.env["PATH"] += ":/usr/sbin:/sbin"
        self.tftp = root / "tftp"
        self.tftp.mkdir()
        self.write()

    def write(self, **fields: Any) -> None:
        """The lab: `dut` boots over va; `fields` change its netboot channel, None takes one out."""
        channel = {"interface": "va", "host_ip": "10.77.0.1", "tftp_root": str(self.tftp), "http_port": 8077, **fields}
        lines = [f"{key} = {json.dumps(value)}" for key, value in channel.items() if value is not None]
        self.lab.write_text("[targets.dut.netboot]\n" + "\n".join(lines) + "\n")

    def __call__(self, *argv: str, check: int | None = 0, stdin: bytes = b"", timeout: float = 60,
                 env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
        command = ["ip", "netns", "exec", self.cable.here, LABD, *argv]
        done = subprocess.run(command, input=stdin, capture_output=True, env={**self.env, **(env or {})},
                              timeout=timeout, cwd=self.root)  # fmt: skip
        if check is not None:
            assert done.returncode == check, (argv, done.returncode, done.stdout, done.stderr)
        return done

    def fails(self, code: int, *argv: str, **kw: Any) -> dict[str, Any]:
        """The error of a command that must fail with this exit code."""
        done = self(*argv, "--json", check=code, **kw)
        lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith(b"{")]
        error: dict[str, Any] = next(line["error"] for line in lines if "error" in line)
        return error

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The netboot events of one kind so far."""
        found = self("timeline", "dut", "--json", check=None).stdout.splitlines()
        rows = [json.loads(line) for line in found]
        return [row for row in rows if row.get("kind") == kind or row.get("event") == kind]

    def keepers(self) -> list[int]:
        """Those that keep an interface; each has a dnsmasq, which is two processes."""
        return [pid for pid in self.servers() if b"netboot.keeper" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def servers(self) -> list[int]:
        """The keepers and dnsmasqs of this bench that run."""
        mine = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                words = Path("/proc", entry, "cmdline").read_bytes()
                if str(self.runtime).encode() in words and (b"dnsmasq" in words or b"netboot.keeper" in words):
                    mine.append(int(entry))
        return mine


@contextlib.contextmanager
def a_net_bench(root: Path) -> Iterator[NetBench]:
    cable = Cable()
    runtime = Path(tempfile.mkdtemp(prefix="lt-", dir="/tmp"))
    try:
        cable.lay()
        bench = NetBench(root, runtime, cable)
        try:
            yield bench
        finally:
            bench.clean()
    finally:
        cable.remove()
        shutil.rmtree(runtime, ignore_errors=True)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetBench]:
    with a_net_bench(tmp_path_factory.mktemp("net")) as bench:
        yield bench


@pytest.fixture
def net(shared: NetBench) -> Iterator[NetBench]:
    """The module's bench with the lab as at first; what a test leaves served is stopped."""
    shared.write()
    yield shared
    shared.write()
    shared("netif", "mode", "off", "dut", check=None)
