"""One digest of what git repositories are like, for the recorder: taken before and after each command of a trial.

Branches, tags and what is put away, where HEAD is, and the files beside `.git`; not what git keeps for itself (the
index, its logs, what it last heard of servers). Imports nothing that the interpreter has not got built in, since every
recorded command pays for it. Reads only.
"""

import os

try:
    from _sha2 import sha256
except ImportError:
    from hashlib import sha256

#: What of the references counts.
_REFS = ("refs/heads/", "refs/tags/", "refs/stash")

#: A file that is longer counts by its length and time alone (bytes).
MOST = 1 << 20


def digest(places: "list[str]") -> str:
    """The digest of these directories: working trees with their repository, bare repositories, or directories of such.

    What can't be read counts as not there.
    """
    whole = sha256()
    for place in places:
        for line in sorted(_state(place)):
            whole.update(line + b"\n")
    return whole.hexdigest()


def _state(place: str) -> "list[bytes]":
    if os.path.isdir(os.path.join(place, ".git")):
        return _repository(os.path.join(place, ".git")) + _files(place)
    if os.path.isfile(os.path.join(place, "HEAD")):
        return _repository(place)
    try:
        names = os.listdir(place)
    except OSError:
        return []
    return [os.fsencode(name) + b" " + line for name in names for line in _state(os.path.join(place, name))
            if os.path.isdir(os.path.join(place, name))]  # fmt: skip


def _repository(git: str) -> "list[bytes]":
    refs: dict[str, bytes] = {}
    for line in _bytes(os.path.join(git, "packed-refs")).split(b"\n"):
        sha, _, name = line.partition(b" ")
        if name.startswith(b"refs/"):
            refs[os.fsdecode(name)] = sha
    for place, folders, names in os.walk(os.path.join(git, "refs")):
        folders.sort()
        for name in names:
            path = os.path.join(place, name)
            refs[os.path.relpath(path, git)] = _bytes(path).strip()
    kept = [os.fsencode(name) + b"=" + sha for name, sha in refs.items() if name.startswith(_REFS)]
    return [b"HEAD=" + _bytes(os.path.join(git, "HEAD")).strip(), *kept]


def _files(work: str) -> "list[bytes]":
    found = []
    for place, folders, names in os.walk(work):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            path = os.path.join(place, name)
            found.append(os.fsencode(os.path.relpath(path, work)) + b":" + sha256(_bytes(path)).digest().hex().encode())
    return found


def _bytes(path: str) -> bytes:
    try:
        told = os.lstat(path)
        if os.path.islink(path):
            return os.fsencode(os.readlink(path))
        if not os.path.isfile(path):
            return b""
        if told.st_size > MOST:
            return b"%d %d" % (told.st_size, told.st_mtime_ns)
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
