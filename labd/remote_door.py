"""The daemon's side of a call from another machine: the slice of a lab that it brings, its files, and its directory.

A visitor comes through ssh as this very user, so it may do what this user may; names that it sends become parts of
paths and are checked. Frame: `S<len>\\n` and a JSON object (see `Visit`), then the bytes of its files; back comes
`s<len>\\n` with where they are, `v<version>\\n`, or `n<len>\\n` with an error. Then the thin client's request follows,
and before its exit code `w<len>\\n` with name and size, and the bytes, of each file that the call wrote.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import trio

from labd import __version__, thin
from labd.errors import LabdError, Usage
from labd.platform.processes import lives

if TYPE_CHECKING:
    from labd.call import Call
    from labd.rpc_peer import Peer

#: Bytes of what a visitor may bring beside its files: a lab's slice is a few hundred.
ABOUT_BYTES = 1 << 20

#: Seconds that a visitor who has connected may take to say what he wants: connections are made before they are needed.
SPARE_S = 60.0

#: Bytes of a file that are on the wire at once.
PIECE = 1 << 18

_count = 0


async def welcome(peer: Peer, state: str) -> Visit | None:
    """Take a visitor's lab and files; None when it was turned away, and told why."""
    header = b""
    with trio.move_on_after(SPARE_S):
        header = await peer.line(64)
    size = int(header[1:]) if header[1:].isdigit() else ABOUT_BYTES + 1
    if size > ABOUT_BYTES:
        return None
    about = json.loads(await peer.exactly(size))
    if about.get("version") != __version__:
        await peer.send(b"v%s\n" % __version__.encode())
        return None
    visit = Visit(peer, about, state)
    try:
        if not visit.has_lab():
            await trio.to_thread.run_sync(visit.take_lab)
        await visit.take_files()
    except (LabdError, OSError) as error:
        await visit.close()
        await peer.send(_frame(b"n", _error(error)))
        return None
    except BaseException:
        await visit.close()
        raise
    await peer.send(_frame(b"s", {"lab": visit.lab, "work": visit.work}))
    return visit


class Visit:
    """One call of a visitor. `about` has `origin`, `name` and `lab` (the slice), `words` (what a command must carry to
    mean that lab there), `from` (the machine), `face` (through which it was asked for), `files` (name and size of each)
    and `work` (whether files are about).
    """

    def __init__(self, peer: Peer, about: dict[str, Any], state: str) -> None:
        self.peer = peer
        self.about = about
        self.root = os.path.join(state, "remote")
        self.lab = os.path.join(self.root, _part(about["origin"]), _part(about["name"]))
        self.text = str(about["lab"]).encode()
        self.work = ""
        self.given: set[str] = set()

    async def close(self) -> None:
        """Remove the call's directory, whatever became of the call."""
        if self.work:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(shutil.rmtree, self.work, True)

    def has_lab(self) -> bool:
        """Whether the slice that was brought is there already, as it nearly always is."""
        try:
            with open(self.lab, "rb") as file:
                return file.read() == self.text
        except FileNotFoundError:
            return False

    def take_lab(self) -> None:
        """Write the slice where it always is, whole and for this user alone."""
        os.makedirs(os.path.dirname(self.lab), mode=0o700, exist_ok=True)
        fresh = f"{self.lab}.{os.getpid()}.{_next()}"
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(fd, "wb") as out:
                out.write(self.text)
            os.replace(fresh, self.lab)
        except BaseException:
            os.unlink(fresh)
            raise

    async def take_files(self) -> None:
        """Make the call's directory, and put the files that were sent into it."""
        if not self.about["work"]:
            return
        base = os.path.join(self.root, "calls")
        os.makedirs(base, mode=0o700, exist_ok=True)
        await trio.to_thread.run_sync(_sweep, base)
        self.work = os.path.join(base, f"{os.getpid()}-{_next()}")
        os.mkdir(self.work, 0o700)
        for file in self.about["files"]:
            name = _part(file["name"], hidden=True)
            self.given.add(name)
            with open(os.path.join(self.work, name), "xb") as out:
                await self.peer.pour(int(file["size"]), out.write)

    def dress(self, call: Call) -> None:
        """Make a call of the visitor's one of this machine: its own programs and homes, the lab that was brought."""
        here = {name.decode(): os.environ[name.decode()] for name in thin.ENV_NAMES if name.decode() in os.environ}
        call.env = {**here, **call.env, "LABD_LAB": self.lab}
        call.slice = (self.lab, str(self.about["words"]))
        call.cwd = self.work or os.path.expanduser("~")
        call.face = str(self.about["face"])
        call.program = f"{self.about['from']}:{call.program}"

    async def bring_back(self) -> None:
        """Send what the call wrote into its directory, but for what was sent along."""
        for name in await trio.to_thread.run_sync(self._written) if self.work else ():
            path = os.path.join(self.work, name)
            with open(path, "rb") as file:
                left = os.fstat(file.fileno()).st_size
                await self.peer.send(_frame(b"w", {"name": name, "size": left}))
                while left:
                    piece = file.read(min(PIECE, left)) or b"\0" * min(PIECE, left)  # cut short meanwhile
                    left -= len(piece)
                    await self.peer.send(piece)

    def _written(self) -> list[str]:
        found = []
        for folder, _, names in os.walk(self.work):
            for name in sorted(names):
                path = os.path.join(folder, name)
                inside = os.path.relpath(path, self.work)
                if inside not in self.given and os.path.isfile(path) and not os.path.islink(path):
                    found.append(inside)
        return found


def _part(name: Any, *, hidden: bool = False) -> str:
    """One part of a path, as a visitor may name it. Raises Usage."""
    text = str(name)
    if not text or "/" in text or "\0" in text or text in (".", "..") or (text[0] == "." and not hidden):
        raise Usage(f"{text!r} can't be a file's name")
    return text


def _sweep(base: str) -> None:
    """Remove the directories of calls whose daemon was killed."""
    for name in os.listdir(base):
        pid = name.partition("-")[0]
        if pid.isdigit() and int(pid) != os.getpid() and not lives(int(pid)):
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)


def _next() -> int:
    global _count
    _count += 1
    return _count


def _frame(kind: bytes, said: dict[str, Any]) -> bytes:
    body = json.dumps(said).encode()
    return b"%s%d\n%s" % (kind, len(body), body)


def _error(error: LabdError | OSError) -> dict[str, Any]:
    if isinstance(error, LabdError):
        return {"message": error.message, "exit": error.exit_code, "hint": error.hint}
    return {"message": f"{error.strerror} {error.filename or ''}".strip(), "exit": 1, "hint": None}
