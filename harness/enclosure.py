"""What of the machine a scanned program sees: the system's programs and libraries, a few files of /etc, its own
installation and its interpreter's. Everything else is not hidden but absent: the root is empty to begin with.

Words for bubblewrap; starts nothing. docs/exam.md tells what is readable.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness import isolation

#: What packages own: programs, libraries, their data. On most systems all but the first two are links into /usr.
SYSTEM = ("/usr", "/nix/store", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")

#: What programs look up in /etc that is no secret of anybody. passwd and group are made anew.
ETC = ("alternatives", "ca-certificates", "ca-certificates.conf", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
       "localtime", "mime.types", "nsswitch.conf", "os-release", "pki/tls/certs", "protocols", "services", "shells",
       "ssl/certs", "ssl/openssl.cnf", "terminfo")  # fmt: skip

#: Beside `bin` in a directory that is an installation of its own, not somebody's collection of programs.
_PARTS = ("lib", "lib64", "pyvenv.cfg")


def furnish(room: Path) -> None:
    """Make what `words` binds from the room: a home and a place to work, and a passwd and group with one user."""
    for name in ("home", "work", "etc"):
        (room / name).mkdir(mode=0o700)
    user, group = os.getuid(), os.getgid()
    (room / "etc" / "passwd").write_text(f"operator:x:{user}:{group}::{room / 'home'}:/bin/sh\n")
    (room / "etc" / "group").write_text(f"operator:x:{group}:\n")


def words(room: Path, trees: Sequence[str], hide: Path) -> list[str]:
    """The words of bubblewrap for a root with the system, these `trees` and the `room`; `hide` is in none of it."""
    told = ["--dev", "/dev", "--proc", "/proc"]
    for path in SYSTEM:
        told += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind-try", path, path]
    for name in ETC:
        told += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name in ("passwd", "group"):
        told += ["--ro-bind", str(room / "etc" / name), f"/etc/{name}"]
    hidden = os.path.realpath(hide)
    inside = [tree for tree in trees if _within(tree, hidden)]
    for tree in trees:
        told += ["--ro-bind", tree, tree]
    if any(_within(hidden, tree) for tree in trees):
        told += ["--tmpfs", hidden]
    for tree in inside:
        told += ["--ro-bind", tree, tree]
    for path in _sockets(trees):
        if not _within(path, hidden) or any(_within(path, tree) for tree in inside):
            told += ["--ro-bind", "/dev/null", path]  # a connection needs no more than the name
    for name in ("home", "work"):
        told += ["--bind", str(room / name), str(room / name)]
    return told


def trees(program: str) -> list[str]:
    """What must be readable for a program besides the system: its installation, its interpreter's, and where the
    interpreter is a virtual environment's, that of the Python behind it."""
    found: list[str] = []
    for path in dict.fromkeys((program, os.path.realpath(program), *_interpreters(program))):
        if os.path.exists(path) and not any(_within(path, place) for place in SYSTEM):
            found.append(_installation(path))
    return [tree for tree in dict.fromkeys(found)
            if not any(other != tree and _within(tree, other) for other in found)]  # fmt: skip


def _interpreters(program: str) -> Iterator[str]:
    """What the first line of a script names, what that leads to, and the Python that a virtual environment is of."""
    with open(program, "rb") as file:
        first = file.readline(512)
    named = first[2:].split()[:1] if first.startswith(b"#!") else []
    for path in (program, *map(os.fsdecode, named)):
        yield from (path, os.path.realpath(path))
        try:
            settings = (Path(path).parent.parent / "pyvenv.cfg").read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        for key, _, value in (line.partition("=") for line in settings):
            if key.strip() == "home":
                yield os.path.join(value.strip(), "python3")


def _installation(path: str) -> str:
    """The tree that a program stands in, never so wide that it is a user's home, or one of the root's own places."""
    head, mark, _ = path.partition("/node_modules/")
    own = Path(path).parent
    whole = own.parent
    choices = [head + mark.rstrip("/")] if mark else []
    if own.name == "bin" and whole.name != ".local" and any((whole / part).exists() for part in _PARTS):
        choices.append(str(whole))
    return next((one for one in (*choices, str(own)) if _narrow(one)), path)


def _narrow(tree: str) -> bool:
    real = os.path.realpath(tree)
    return len(Path(real).parts) > 2 and not any(_within(place, real) for place in isolation.hidden())


def _within(path: str, tree: str) -> bool:
    return f"{path}/".startswith(f"{tree.rstrip('/')}/")


def _sockets(own: Iterable[str]) -> list[str]:
    """The sockets in these trees, and those that somebody listens at in the system's."""
    found = []
    for tree in own:
        for place, _, names in os.walk(tree):
            found += [path for name in names if _is_socket(path := os.path.join(place, name))]
    try:
        bound = Path("/proc/net/unix").read_text("utf-8", "replace").splitlines()
    except OSError:
        bound = []
    names = [line.split(maxsplit=7)[7] for line in bound if len(line.split(maxsplit=7)) == 8]
    found += [os.path.realpath(name) for name in names if name.startswith("/") and _is_socket(name)
              and any(_within(os.path.realpath(name), place) for place in SYSTEM)]  # fmt: skip
    return list(dict.fromkeys(found))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False
