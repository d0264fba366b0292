"""Where files live. Pure functions of an environment mapping, so that the daemon can answer for its client's.

Never creates anything but what `private_dir` is asked for. Light: every start pays for this module.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Env = Mapping[str, str]

#: The bytes of a UNIX socket's path that every system can hold (macOS: 104 with the ending NUL).
SOCKET_BYTES = 100

#: The journal of a target's channels other than serial, beside those of its interfaces; none can be called so.
BENCH_JOURNAL = "@bench"


def _home(env: Env) -> str:
    home = env.get("HOME", "")
    if os.path.isabs(home):
        return home
    import pwd  # not expanduser: that reads the environment of whoever runs this, the daemon's for instance

    return pwd.getpwuid(os.getuid()).pw_dir


def _base(env: Env, name: str) -> str | None:
    """An XDG base directory; a relative one is to be ignored (XDG Base Directory Specification)."""
    value = env.get(name, "")
    return value if os.path.isabs(value) else None


def expand(path: str, env: Env, cwd: str) -> str:
    """`path` with a leading `~/` expanded from `env` and made absolute against `cwd`.

    Raises Usage for a relative path when `cwd` is empty: the caller's directory has been deleted.
    """
    if path == "~" or path.startswith("~/"):
        path = _home(env) + path[1:]
    if not cwd and not os.path.isabs(path):
        from labd.errors import Usage

        raise Usage(f"the current directory is gone, so {path!r} means nothing", hint="cd to a directory that exists")
    return os.path.normpath(os.path.join(cwd, path))


def config_dir(env: Env) -> str:
    """`$XDG_CONFIG_HOME/labd`, else `~/.config/labd`."""
    return os.path.join(_base(env, "XDG_CONFIG_HOME") or os.path.join(_home(env), ".config"), "labd")


def state_dir(env: Env) -> str:
    """`$XDG_STATE_HOME/labd`, else `~/.local/state/labd`: journals, argv records, learned things."""
    return os.path.join(_base(env, "XDG_STATE_HOME") or os.path.join(_home(env), ".local", "state"), "labd")


def runtime_dir(env: Env) -> str:
    """`$XDG_RUNTIME_DIR/labd`, else `/tmp/labd-UID`: the daemon's socket, lock and log. `thin.py` repeats this rule."""
    base = _base(env, "XDG_RUNTIME_DIR")
    return os.path.join(base, "labd") if base else f"/tmp/labd-{os.getuid()}"


def socket_path(env: Env) -> str:
    """The daemon's UNIX socket."""
    return os.path.join(runtime_dir(env), "daemon.sock")


def lab_path(env: Env, cwd: str, flag: str | None = None) -> str:
    """The lab file in force: `--lab`, else `$LABD_LAB`, else `lab.toml` in the config directory. It may not exist."""
    named = flag or env.get("LABD_LAB")
    return expand(named, env, cwd) if named else os.path.join(config_dir(env), "lab.toml")


def lab_id(path: str) -> str:
    """A directory name for all that is kept about one lab: readable, and different for different files.

    Taken from the real path, so that a symlinked lab and its file are one lab.
    """
    real = os.path.realpath(path)
    known = _ids.get(real)
    if known is None:
        import zlib

        if len(_ids) >= _IDS_MAX:
            _ids.clear()
        raw = os.fsencode(real)
        readable = "".join([c if c.isalnum() or c in "._" else "-" for c in real.strip("/")])[-48:].lstrip(".-")
        known = _ids[real] = f"{readable}-{zlib.crc32(raw):08x}{zlib.crc32(raw[::-1]):08x}"
    return known


#: Real path → what `lab_id` makes of it; a daemon is asked for the same few again and again.
_ids: dict[str, str] = {}
_IDS_MAX = 256


def journal_dir(env: Env, lab: str, target: str, interface: str) -> str:
    """The journal of one serial interface of one target of one lab, or of its other channels (`BENCH_JOURNAL`)."""
    return os.path.join(state_dir(env), "journal", lab_id(lab), target, interface)


def private_dir(path: str) -> str:
    """Make `path` a directory that only this user can enter, and return it.

    Raises Refused if it is a link, belongs to somebody else, or is open to others, Unreachable if it can't be made.
    """
    import shlex
    import stat

    from labd.errors import Refused, Unreachable

    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError as error:
        raise Unreachable(
            f"the runtime directory {path} can't be made: {error.strerror}",
            hint="set XDG_RUNTIME_DIR to a private directory",
        ) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise Refused(f"{path} is not a directory of yours", hint="set XDG_RUNTIME_DIR to a private directory")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise Refused(f"{path} is open to other users", hint=f"chmod 700 {shlex.quote(path)}")
    return path


def socket_in(directory: str) -> str:
    """The daemon's socket in this runtime directory. Raises Unreachable where the path is too long for one."""
    from labd.errors import Unreachable

    path = os.path.join(directory, "daemon.sock")
    if len(os.fsencode(path)) > SOCKET_BYTES:
        raise Unreachable(
            f"the path of the daemon's socket is too long for a UNIX socket: {path}",
            hint="set XDG_RUNTIME_DIR to a shorter directory",
        )
    return path


def identity(path: str) -> tuple[int, int, int] | None:
    """What tells a file from what it was before an edit: inode, time, and size last; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
