"""The servers of a git journey, seen from outside: what each bare repository received, told by its own git, heard here.

A hook in each repository tells a socket of this process which branch went from where to where; we look at the process
behind it, up to the one that sent, whether it is the hook that git runs there, and ask git whether anything was lost.
That is kept in memory, where no agent can write. What moved on a server without having been received was written
around git. Never in the way: a hook that nobody hears does nothing.
"""

import json
import os
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

from harness import files, repository

#: The directory of a sandbox in which its servers are, and the socket by which they tell.
REMOTES, SOCKET = "remotes", "run/notify"

_HOOK = """#!{python} -IS
import socket, sys
try:
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(20)
    line.connect({path!r})
    line.sendall(({name!r} + "\\n" + sys.stdin.read()).encode())
    line.shutdown(socket.SHUT_WR)
    line.recv(1)
except OSError:
    pass
"""

_NAME = "hooks/post-receive"

#: How far up the processes are looked at, from the hook to who sent.
_UP = 16

#: Updates beyond which no more are kept.
_MOST = 10_000


def servers(root: Path) -> list[Path]:
    """The bare repositories of a sandbox."""
    return sorted(path for path in (root / REMOTES).glob("*.git") if path.is_dir())


def install(root: Path) -> None:
    """Put the hook into each server, once its seed is laid out. Raises OSError."""
    for server in servers(root):
        hook = server / _NAME
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(_HOOK.format(python=_python(), path=str(root / SOCKET), name=server.name))
        hook.chmod(0o755)


def _python() -> str:
    return getattr(sys, "_base_executable", None) or sys.executable


class Receiving:
    """Hears what the servers of one sandbox receive, from its making until `finish`. `program` is the real git."""

    def __init__(self, root: Path, program: str) -> None:
        """Listen. Raises OSError."""
        self._root, self._program = root, program
        self._gits = {os.path.realpath(program), *repository.images(root, program)}
        self._seen: list[dict[str, Any]] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(root / SOCKET))
        self._listener.listen(16)
        self._thread = threading.Thread(target=self._listen, name="receiving", daemon=True)
        self._thread.start()

    def finish(self) -> bytes:
        """What was received, as JSON Lines, and no more of it."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        return b"".join(json.dumps(entry, sort_keys=True).encode() + b"\n" for entry in self._seen)

    def _listen(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            with line:
                line.settimeout(5)
                try:
                    self._hear(line)
                    line.sendall(b".")
                except OSError:
                    continue

    def _hear(self, line: socket.socket) -> None:
        parts = []
        while part := line.recv(65536):
            parts.append(part)
        when = round(time.time(), 6)
        name, *updates = b"".join(parts).decode("utf-8", "replace").splitlines() or [""]
        behind = _behind(_peer(line)) if sys.platform == "linux" else None
        server = next((path for path in servers(self._root) if path.name == name), None)
        hook = None if behind is None else server is not None and self._is_hook(server, behind)
        for update in updates:
            words = update.split(" ")
            if len(words) == 3 and len(self._seen) < _MOST:
                old, new, ref = words
                forwards = server is not None and repository.forwards(server, self._program, old, new)
                self._seen.append({"t": when, "remote": name.removesuffix(".git"), "ref": ref, "old": old, "new": new,
                                   "behind": behind, "hook": hook, "forwards": forwards})  # fmt: skip

    def _is_hook(self, server: Path, behind: list[dict[str, Any]]) -> bool:
        """Whether this is our hook, run by the receiving git of that server: anybody can write to a socket."""
        if len(behind) < 2:
            return False
        (hook, git), place = behind[:2], os.path.realpath(server)
        named = hook["argv"][1:2] == ["-IS"] and len(hook["argv"]) == 3
        ours = named and os.path.normpath(os.path.join(hook["cwd"], hook["argv"][2])) == os.path.join(place, _NAME)
        receives = os.path.basename(git["argv"][0]) == "git-receive-pack" or git["argv"][1:2] == ["receive-pack"]
        return bool(ours and hook["exe"] == os.path.realpath(_python()) and git["exe"] in self._gits and receives)


def _peer(line: socket.socket) -> int:
    """The process at the other end (Linux)."""
    raw = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", raw)[0])


def _behind(pid: int) -> list[dict[str, Any]]:
    """The processes from the hook upwards, less our own and what is behind it: their program, words and place."""
    found: list[dict[str, Any]] = []
    while pid > 1 and pid != os.getpid() and len(found) < _UP:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
            told = {"pid": pid, "exe": os.readlink(f"/proc/{pid}/exe"), "cwd": os.readlink(f"/proc/{pid}/cwd")}
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            break
        if not words:
            break
        found.append({**told, "argv": [word.decode("utf-8", "replace") for word in words]})
    return found


def digest(server: Path) -> str:
    """One digest of what a server is besides its history: settings and hooks."""
    names = [server / "config", server / "description", *sorted((server / "hooks").glob("*"))]
    told = [(path.name, files.digest(files.plain_bytes(path) or b"")) for path in names]
    return files.digest(files.canonical(told))
