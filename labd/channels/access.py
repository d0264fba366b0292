"""Why a port could not be opened, as one of our errors: what is wrong, who is in the way, what command helps.

Pure but for looking at the node's owner and the names of groups.
"""

import errno
import os
import stat
from collections.abc import Sequence
from typing import Any

from labd.errors import Busy, LabdError, Unreachable
from labd.lab.model import quoted

_GONE = (errno.ENOENT, errno.ENXIO, errno.ENODEV, errno.ENOTDIR)


class Forbidden(Unreachable):
    """It is there, and this user may not open it."""


def explain(error: Exception, device: str, node: str, label: str, holders: Sequence[dict[str, Any]]) -> LabdError:
    """The error to raise for `error`, which the system or pyserial raised on `device` (really `node`)."""
    if isinstance(error, LabdError):
        return error
    number = _number(error)
    if number in (errno.EBUSY, errno.EWOULDBLOCK):
        return busy(device, label, [holder for holder in holders if not holder["master"]])
    if number in (errno.EACCES, errno.EPERM):
        return forbidden(device, node, label)
    if number in _GONE:
        return missing(device, label)
    if number in (errno.ENOTTY, errno.EINVAL) or "configure port" in str(error):
        return Unreachable(f"{label}: {device} is not a serial port that can be set ({_say(error, number)})")
    return Unreachable(f"{label}: {device} could not be opened: {_say(error, number)}")


def missing(device: str, label: str) -> LabdError:
    """It isn't there; a link without its end is said to be one."""
    if os.path.islink(device):
        return Unreachable(
            f"{label}: {device} is a link to {os.readlink(device)}, which is not there", hint="labd serial devices"
        )
    return Unreachable(f"{label}: {device} is not there", hint="labd serial devices")


def busy(device: str, label: str, holders: Sequence[dict[str, Any]]) -> Busy:
    """Somebody has it open; names them all."""
    if not holders:
        return Busy(f"{label}: {device} is in use by another program", hint=f"sudo fuser -v {quoted(device)}")
    who = ", ".join(f"{holder['command']} (pid {holder['pid']})" for holder in holders)
    if all(" -m labd." in holder["command"] for holder in holders):
        return Busy(f"{label}: {device} is in use by {who}", hint="labd daemons  # labd of elsewhere, and what ends it")
    pids = " ".join(str(holder["pid"]) for holder in holders)
    return Busy(f"{label}: {device} is in use by {who}", hint=f"ask its owner, or if it is yours: kill {pids}")


def forbidden(device: str, node: str, label: str) -> Forbidden:
    """The group to join, from the node itself."""
    try:
        found = os.stat(node)
    except OSError:
        return Forbidden(f"{label}: {device} may not be opened by this user")
    group = _group(found.st_gid)
    mode = stat.S_IMODE(found.st_mode)
    owner = f"{_user(found.st_uid)}:{group}"
    text = f"{label}: {device} may not be opened by this user: it belongs to {owner}, mode {mode:04o}"
    if mode & 0o060 == 0o060 and found.st_gid != 0:
        return Forbidden(text, hint=f"sudo usermod -aG {group} {_user(os.getuid())}, then log in again")
    return Forbidden(text, hint=f"sudo chmod a+rw {quoted(node)}  # or a udev rule that gives it to a group of yours")


def fresh(node: str, seconds: float, now: float) -> bool:
    """Whether the node appeared so lately that udev may not have set its owner yet."""
    try:
        return now - os.stat(node).st_ctime < seconds
    except OSError:
        return False


def _number(error: BaseException) -> int | None:
    """The system's number of an error: its own, or of the one that pyserial put into words."""
    number = getattr(error, "errno", None)
    if number is None and error.args and isinstance(error.args[0], int):
        number = error.args[0]  # termios.error
    if number is None and "configure port" in str(error) and error.__context__ is not None:
        return _number(error.__context__)
    return number


def _say(error: Exception, number: int | None) -> str:
    return os.strerror(number) if isinstance(number, int) and number else str(error)


def _group(gid: int) -> str:
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _user(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
