"""How a host of the lab is reached with OpenSSH: the words of its commands, and what ssh means when it fails.

Pure, but for the directory of the sockets. Nothing is started here.
"""

from __future__ import annotations

import os
import shlex

from labd import paths
from labd.errors import Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: What a UNIX socket's path can hold, less what ssh appends to a control path while it makes it.
CONTROL_BYTES = 104 - 20

#: Seconds: to connect, between signs of life, how many of those may be missing, how long an idle connection is kept.
CONNECT_S, ALIVE_S, ALIVE_MOST, PERSIST_S = 10, 5, 3, 600


class Host:
    """A machine of the lab: `name`, its table's values, and where this user keeps the sockets of its connection."""

    def __init__(self, name: str, table: Mapping[str, Any], env: Mapping[str, str], folder: str) -> None:
        self.name = name
        self.ssh: str = table["ssh"]
        self.command: str = table.get("labd_cmd") or "labd"
        self.identity = paths.expand(table["identity"], env, folder) if "identity" in table else ""
        self.directory = os.path.join(paths.private_dir(paths.runtime_dir(env)), "ssh")
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        self.base = os.path.join(self.directory, self._key(table))
        self.ours = "control_path" not in table
        self.control = self.base if self.ours else paths.expand(table["control_path"], env, folder)
        self.door = self.base + ".sock"
        """The local end of the far daemon's socket."""
        if len(os.fsencode(self.base)) > CONTROL_BYTES:
            raise Unreachable(f"the path of ssh's control socket is too long for a UNIX socket: {self.base}",
                              hint="set XDG_RUNTIME_DIR to a shorter directory")  # fmt: skip

    def _key(self, table: Mapping[str, Any]) -> str:
        """A short name for this way of reaching it: another key or another labd there is another connection."""
        import hashlib

        way = [str(table.get(key, "")) for key in ("ssh", "identity", "control_path", "labd_cmd")]
        return hashlib.sha256("\0".join(way).encode("utf-8", "surrogateescape")).hexdigest()[:12]

    def argv(self, *more: str, options: tuple[str, ...] = ()) -> list[str]:
        """`ssh … HOST more`, over the shared connection, which is made if there is none; asks no questions."""
        settings = {
            "BatchMode": "yes", "ConnectTimeout": CONNECT_S, "ServerAliveInterval": ALIVE_S,
            "ServerAliveCountMax": ALIVE_MOST, "ControlMaster": "auto", "ControlPersist": PERSIST_S,
            "ControlPath": self.control.replace("%", "%%") if self.ours else self.control,
            "StreamLocalBindUnlink": "yes", "ForwardAgent": "no", "ForwardX11": "no", "RemoteCommand": "none",
            "LogLevel": "ERROR",
        }  # fmt: skip
        words = ["ssh"]
        for name, value in settings.items():
            words += ["-o", f"{name}={value}"]
        return [*words, *self._key_words(), *options, "--", self.ssh, *more]

    def forward(self, verb: str, far: str) -> list[str]:
        """`ssh -O forward` (or cancel): this machine's `door` leads to the socket `far` there."""
        return self.argv(options=("-O", verb, "-L", f"{_field(self.door)}:{_field(far)}"))

    def _key_words(self) -> list[str]:
        return ["-i", self.identity, "-o", "IdentitiesOnly=yes"] if self.identity else []

    def by_hand(self) -> str:
        """The command with which a person finds out why ssh does not get there, and answers its questions."""
        return shlex.join(["ssh", *self._key_words(), self.ssh, "true"])

    def run(self, words: list[str], env: Mapping[str, str]) -> str:
        """The far shell's command line that runs labd there with these words and variables."""
        return f"env {shlex.join([f'{k}={v}' for k, v in env.items()])} {self.command} {shlex.join(words)}"

    def greeting(self, start: bool) -> str:
        """The far shell's command line that says which labd there is, and makes sure that its daemon runs."""
        more = f" && {self.command} daemons start --json" if start else ""
        return f"{self.command} --version{more}"


def _field(path: str) -> str:
    """A path in a forwarding of ssh's, where a colon ends it."""
    return path.replace("\\", "\\\\").replace(":", "\\:")


#: What ssh says when it gets nowhere → what is the matter, in our words.
_TROUBLES = (
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key is another one than before"),
    ("Host key verification failed", "its host key is not known here"),
    ("Permission denied", "it did not let us in"),
    ("Too many authentication failures", "it did not let us in"),
    ("Could not resolve hostname", "there is no machine of that name"),
    ("Connection refused", "nothing listens for ssh there"),
    ("timed out", "it does not answer"),
    ("No route to host", "there is no way to it"),
)


def no_way_in(host: Host, said: bytes, code: int | None) -> Unreachable:
    """ssh did not get there: what it said, and the command that shows the same to a person."""
    text = said.decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    why = next((ours for theirs, ours in _TROUBLES if theirs in text), "ssh could not connect")
    if code is None:
        why = f"ssh did not end within its time ({CONNECT_S} s to connect)"
    last = f" ({lines[-1][:200]})" if lines else ""
    return Unreachable(f"host {host.name!r}, {host.ssh}: {why}{last}; nothing was done there", hint=host.by_hand())


def no_labd(host: Host, said: bytes) -> Unreachable:
    """ssh works, and what it ran is no labd."""
    lines = said.decode("utf-8", "replace").strip().splitlines()
    last = f" ({lines[-1].strip()[:200]})" if lines else ""
    return Unreachable(
        f"host {host.name!r}, {host.ssh}: no labd runs there as {host.command!r}{last}",
        hint=f"labd setup --yes --host {host.name}  # or: labd host set {host.name} --labd-cmd PATH",
    )


def other_version(host: Host, theirs: str, ours: str) -> Unreachable:
    """The two ends speak by the same version only: which is the older one, and what to run."""
    if _order(theirs) > _order(ours):
        hint = f"ssh {shlex.quote(host.ssh)} {host.command} --version  # bring labd {theirs} to this machine"
        return Unreachable(f"labd on host {host.name!r} is {theirs}, newer than this one, {ours}; nothing was done"
                           " there", hint=hint)  # fmt: skip
    return Unreachable(f"labd on host {host.name!r} is {theirs}, this one is {ours}; nothing was done there",
                       hint=f"labd setup --user-only --yes --host {host.name}")  # fmt: skip


def _order(version: str) -> list[tuple[int, str]]:
    """A version for comparing: numbers as numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in version.replace("-", ".").split(".")]
