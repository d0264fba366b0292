"""Another machine on this one: a real sshd on loopback with keys of its own, and a second HOME with its own daemon."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LABD, BenchInAFolder, a_bench, until

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class Far:
    """The other machine. `near` is the bench here, whose ssh knows its host key and has a key that it takes."""

    def __init__(self, root: Path, near: BenchInAFolder, bench: BenchInAFolder) -> None:
        self.root = root
        self.near = near
        self.bench = bench
        """The bench there, as somebody would use it who is logged in there."""
        self.port = _free_port()
        self.sshd: subprocess.Popen[bytes] | None = None
        self.command = root / "far-labd"
        self._make_keys()
        self.install(LABD)
        self._configure()

    @property
    def ssh(self) -> str:
        """The destination, as the lab says it."""
        return f"ssh://{os.environ.get('USER') or _user()}@127.0.0.1:{self.port}"

    def install(self, program: str) -> None:
        """Make `program` the labd of the other machine."""
        own = {name: value for name, value in self.bench.env.items() if name.startswith(("HOME", "XDG"))}
        env = " ".join(f"{name}='{value}'" for name, value in own.items())
        self.command.write_text(f'#!/bin/sh\nexport {env}\nexec {program} "$@"\n')
        self.command.chmod(0o755)

    def _make_keys(self) -> None:
        for name in ("host", "user", "stranger"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.root / name)]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        shutil.copy(self.root / "user.pub", self.root / "authorized")
        self.know(self.root / "host.pub")

    def know(self, key: Path, port: int | None = None) -> None:
        """Make `key` the one that the machine's host key has to be (reached by another port than its own)."""
        kind, data, *_ = key.read_text().split()
        (self.root / "known").write_text(f"[127.0.0.1]:{port or self.port} {kind} {data}\n")

    def _configure(self) -> None:
        own = {name: value for name, value in self.bench.env.items() if name.startswith(("HOME", "XDG"))}
        env = " ".join(f"{name}={value}" for name, value in own.items())
        (self.root / "sshd.conf").write_text(
            textwrap.dedent(f"""\
            ListenAddress 127.0.0.1:{self.port}
            HostKey {self.root}/host
            AuthorizedKeysFile {self.root}/authorized
            PidFile none
            UsePAM no
            StrictModes no
            PasswordAuthentication no
            KbdInteractiveAuthentication no
            PermitRootLogin yes
            MaxSessions 50
            SetEnv {env} SHLVL=1
            """)
        )
        (self.root / "ssh.conf").write_text(
            textwrap.dedent(f"""\
            UserKnownHostsFile {self.root}/known
            GlobalKnownHostsFile /dev/null
            IdentityFile {self.root}/user
            IdentitiesOnly yes
            """)
        )
        programs = self.root / "bin"
        programs.mkdir()
        (programs / "ssh").write_text(f'#!/bin/sh\necho x >> {self.root}/runs\nexec {shutil.which("ssh")}'
                                      f' -F {self.root}/ssh.conf "$@"\n')  # fmt: skip
        (programs / "ssh").chmod(0o755)
        self.near.env["PATH"] = f"{programs}:{self.near.env['PATH']}"
        self.near.env.pop("SSH_AUTH_SOCK", None)

    def ssh_runs(self) -> int:
        """How often an ssh was started from here."""
        runs = self.root / "runs"
        return len(runs.read_text().splitlines()) if runs.exists() else 0

    def start(self) -> None:
        """Let the machine be reachable."""
        assert SSHD is not None
        log = (self.root / "sshd.log").open("ab")
        self.sshd = subprocess.Popen([SSHD, "-D", "-e", "-f", str(self.root / "sshd.conf")], stderr=log,
                                     start_new_session=True)  # fmt: skip
        until("sshd listens", self._listens)

    def _listens(self) -> bool:
        assert self.sshd is not None
        if self.sshd.poll() is not None:
            pytest.skip("sshd does not start here: " + (self.root / "sshd.log").read_text()[-300:])
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def cut(self) -> None:
        """Take the machine off the network: its sshd and every connection of it die."""
        if self.sshd is None:
            return
        for pid in [self.sshd.pid, *self._sessions(self.sshd.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.sshd.wait()
        self.sshd = None

    def _sessions(self, listener: int) -> list[int]:
        """The processes of sshd that serve connections; what they started is not touched."""
        rows = subprocess.run(["ps", "-axo", "pid=,ppid=,comm="], capture_output=True, text=True).stdout.splitlines()
        table = [(int(pid), int(parent), name) for pid, parent, name in (row.split(None, 2) for row in rows)]
        found, mine = [], {listener}
        for _ in range(3):
            mine = {pid for pid, parent, name in table if parent in mine and "sshd" in name}
            found += sorted(mine)
        return found

    def lab(self, *targets: str, extra: str = "", **fields: str) -> None:
        """Write the lab here: host `far`, and each target with a simulated Linux board on its console there."""
        table = {"ssh": self.ssh, "labd_cmd": str(self.command), **fields}
        lines = ["[hosts.far]", *(f'{key} = "{value}"' for key, value in table.items())]
        for name in targets or ("dut",):
            lines += [f"[targets.{name}]", 'host = "far"', f"[[targets.{name}.serial]]", 'name = "console"',
                      'device = "loopback:linux-login"']  # fmt: skip
        self.near.lab.write_text("\n".join(lines) + "\n" + extra)


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def a_far_machine() -> Iterator[Far]:
    """Another machine that can be reached, and a bench here; nothing of either is left."""
    if SSHD is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("no OpenSSH server here: sudo apt-get install openssh-server")
    if os.getuid() == 0 and not os.path.isdir("/run/sshd") and os.uname().sysname == "Linux":
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lt-far-", dir="/tmp")))
        for name in ("near-home", "far-home", "machine"):
            (root / name).mkdir()
        near = stack.enter_context(a_bench(root / "near-home"))
        there = stack.enter_context(a_bench(root / "far-home"))
        far = Far(root / "machine", near, there)
        stack.callback(far.cut)
        far.start()
        yield far
