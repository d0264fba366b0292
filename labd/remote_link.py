"""The connection to one host: ssh's control master, labd's daemon there, and its socket forwarded to here.

A warm connection costs a call nothing but a UNIX socket: no process is started. Made by whoever needs it first, kept
ten minutes after its last use, and shared by all calls of this user. Blocks: it runs in a call's thread or process.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time

from labd import __version__, build, shim
from labd.errors import LabdError, PassedOn, Unreachable
from labd.remote_ssh import CONNECT_S, Host, no_labd, no_way_in, other_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call

#: Seconds that labd there gets to say hello, its daemon's start included.
GREET_S = 45.0


#: Door → a connection through it that nobody uses yet. Only daemons keep any.
_spares: dict[str, socket.socket] = {}


class Link:
    """The connection of `call` to `host`."""

    def __init__(self, host: Host, call: Call) -> None:
        self.host = host
        self.call = call
        self._tried = 0

    def connect(self) -> socket.socket | None:
        """The far daemon's socket as it is reached from here, the first byte of a visit (`S`) already sent; None when
        nothing leads there now.
        """
        spare = _spares.pop(self.host.door, None)
        if spare is not None:
            if not _has_ended(spare):
                return spare
            spare.close()
        self._tried = self._door()
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            found.connect(self.host.door)
            found.sendall(b"S")
        except OSError:
            found.close()
            return None
        return found

    def keep_spare(self) -> None:
        """Connect for the next call, which then saves a way there and back. The far daemon ends it after a while."""
        found = self.connect()
        if found is not None:
            before = _spares.get(self.host.door)
            _spares[self.host.door] = found
            if before is not None:
                before.close()

    def open(self) -> None:
        """Connect, make sure that the daemon runs there, lead its socket here. Raises Unreachable, saying why not."""
        with _Alone(self.host, self.call):
            if self._door() not in (0, self._tried):
                return  # somebody else opened it while we waited
            facts = self.greet(start=True)
            self._tell_build(facts)
            self._forward(facts["socket"])

    def _door(self) -> int:
        """Which socket stands at the door; 0 for none."""
        try:
            return os.stat(self.host.door).st_ino
        except OSError:
            return 0

    def greet(self, *, start: bool) -> dict[str, Any]:
        """What labd there says of itself, of the same version as this; with `start` its daemon runs then."""
        if not os.path.exists(self.host.control):
            self.call.note(f"connecting to {self.host.name} ({self.host.ssh}) …")
        done = self.ssh(self.host.argv(self.host.greeting(start)), GREET_S)
        version = next((line[5:].strip() for line in done.out.decode("utf-8", "replace").splitlines()
                        if line.startswith("labd ")), None)  # fmt: skip
        if done.code in (None, 255) and version is None:
            raise no_way_in(self.host, done.err, done.code)
        if version is None:
            raise no_labd(self.host, done.err or done.out)
        if version != __version__:
            raise other_version(self.host, version, __version__)
        if done.code:
            raise self._refused(done)
        facts: dict[str, Any] = _json_in(done.out) if start else {"version": version}
        if facts["version"] != __version__:
            raise Unreachable(
                f"the daemon on host {self.host.name!r} is labd {facts['version']}, this one is {__version__}",
                hint=f"labd daemons restart --host {self.host.name}",
            )
        return facts

    def ssh(self, argv: list[str], seconds: float) -> shim.Ended:
        """Run one command of ours over the connection. Raises Unreachable where there is no ssh."""
        if not shim.is_program("ssh", self.call.env):
            raise Unreachable("no ssh program here; the package openssh-client (macOS: the system) has it",
                              hint="sudo apt-get install openssh-client")  # fmt: skip
        return shim.run_hook(argv, cwd="/", env=self.call.env, timeout_s=seconds)

    def _refused(self, done: shim.Ended) -> LabdError:
        """labd there is of our version, and said why its daemon does not run."""
        for line in reversed(done.err.decode("utf-8", "replace").splitlines()):
            if line.startswith('{"error"'):
                said = json.loads(line)["error"]
                text = f"labd on host {self.host.name!r}: {said['message']}"
                return PassedOn(text, int(said["exit"]), hint=said["hint"])
        return no_labd(self.host, done.err or done.out)

    def _tell_build(self, facts: dict[str, Any]) -> None:
        if facts.get("build") != build.digest():
            self.call.note(f"labd on {self.host.name} is {__version__} too, but of another build; "
                           f"labd setup --user-only --yes --host {self.host.name} brings this one there")  # fmt: skip

    def _forward(self, far: str) -> None:
        self.ssh(self.host.forward("cancel", far), CONNECT_S)  # one that leads nowhere any more; else it says no
        try:
            os.unlink(self.host.door)
        except FileNotFoundError:
            pass
        done = self.ssh(self.host.forward("forward", far), CONNECT_S)
        if done.code:
            raise no_way_in(self.host, done.err, done.code)


def _has_ended(spare: socket.socket) -> bool:
    """Whether the far side hung up: it never speaks first."""
    looked = select.poll()
    looked.register(spare, select.POLLIN)
    return bool(looked.poll(0))


class _Alone:
    """`with _Alone(host, call)`: the only one of this user that works on a host's connection. Waits for others."""

    def __init__(self, host: Host, call: Call) -> None:
        self.path = host.base + ".lock"
        self.about = f"{host.name}\t{host.ssh}\n".encode("utf-8", "surrogateescape")
        self.call = call
        self.fd = -1

    def __enter__(self) -> None:
        import fcntl

        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        tell_at: float | None = time.monotonic() + 2
        while True:
            try:
                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(self.fd, 0)
                os.pwrite(self.fd, self.about, 0)
                return
            except BlockingIOError:
                self.call.check_cancelled()
            if tell_at is not None and time.monotonic() > tell_at:
                self.call.note("waiting for another call to connect there …")
                tell_at = None
            time.sleep(0.02)

    def __exit__(self, *exc: object) -> None:
        os.close(self.fd)


def _json_in(data: bytes) -> Any:
    """The JSON object in what a program said, behind whatever a login script said before it. Raises ValueError."""
    text = data.decode("utf-8", "replace")
    return json.loads(text[text.index("{") :])


def all_links(runtime: str) -> list[dict[str, str]]:
    """The connections that are kept and ours: `host` and `ssh` as the lab had them, and the control `socket`."""
    directory = os.path.join(runtime, "ssh")
    found = []
    for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
        control = os.path.join(directory, name.removesuffix(".lock"))
        if name.endswith(".lock") and os.path.exists(control):
            with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
                host, _, ssh = file.readline().rstrip("\n").partition("\t")
            found.append({"host": host, "ssh": ssh, "socket": control})
    return found


def close_all(runtime: str, env: dict[str, str]) -> list[str]:
    """End every connection that is ours; what ended. What a lab's own control_path names stays."""
    ended = []
    for link in all_links(runtime):
        words = ["ssh", "-o", "BatchMode=yes", "-o", f"ControlPath={link['socket'].replace('%', '%%')}"]
        code, _ = shim.run_captured([*words, "-O", "exit", "any"], 5, env)
        if code == 0:
            ended.append(f"ssh to {link['host']}")
    return ended
