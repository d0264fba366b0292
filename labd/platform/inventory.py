"""What both inventories share: how to ask a program a short question, and who this process runs as.

Starts nothing itself: the question is put by whoever gave the `Query` (the shim's `run_captured`).
"""

import grp
import os
import pwd
from collections.abc import Callable, Iterable

#: argv and a limit in seconds → exit code (None: no such program, or too slow) and stdout.
Query = Callable[[list[str], float], tuple[int | None, bytes]]


def no_query(argv: list[str], seconds: float) -> tuple[int | None, bytes]:
    """Nobody to ask: as if no program were there."""
    return None, b""


class Account:
    """Who this process runs as: `name`, `root`, the groups that the user database has it in (`listed`), those that this
    process really has (`active`), and those that the system knows at all (`known`)."""

    def __init__(self, name: str, *, root: bool, listed: Iterable[str], active: Iterable[str],
                 known: Iterable[str]) -> None:  # fmt: skip
        self.name = name
        self.root = root
        self.listed = set(listed)
        self.active = set(active)
        self.known = set(known)


def this_account() -> Account:
    """The account that this process runs under."""
    name = user_name()
    groups = grp.getgrall()
    names = {entry.gr_gid: entry.gr_name for entry in groups}
    listed = {entry.gr_name for entry in groups if name in entry.gr_mem}
    try:
        listed.add(names.get(pwd.getpwnam(name).pw_gid, ""))
    except KeyError:
        pass
    active = {names[gid] for gid in {*os.getgroups(), os.getegid()} if gid in names}
    return Account(name, root=os.geteuid() == 0, listed=listed - {""}, active=active, known=set(names.values()))


def group_of(path: str) -> str:
    """The name of the group that a node belongs to (its number, where it has no name)."""
    gid = os.stat(path).st_gid
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def user_name() -> str:
    """Who this process runs as."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
