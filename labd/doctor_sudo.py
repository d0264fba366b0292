"""Whether sudo would run a program without asking for a password. Asks sudo (`sudo -n -l`), which runs nothing."""

import re
import shlex
from collections.abc import Sequence
from shlex import quote

from labd.inventory import Machine


def lets(machine: Machine, argv: Sequence[str]) -> bool | None:
    """Whether sudo runs `argv` (its program as a path) for us and asks nothing; None when there is no sudo to ask."""
    if machine.account.root:
        return True
    code, _ = machine.query(["sudo", "-n", "-l", *argv], 5.0)
    if code is None:
        return None
    if code != 0:
        return False
    _, text = machine.query(["sudo", "-n", "-l"], 5.0)
    return free_of_passwords(text.decode("utf-8", "replace"), argv[0])


def free_of_passwords(listing: str, program: str) -> bool:
    """Whether the list of `sudo -l` has the program, or all of them, behind NOPASSWD. The last rule that fits wins."""
    found = False
    for line in listing.splitlines():
        rule = re.match(r"\s+\([^)]*\)\s*(.*)", line)
        free = False
        for entry in rule[1].split(",") if rule else ():
            tags, command = _tags(entry)
            free = "NOPASSWD:" in tags or (free and "PASSWD:" not in tags)
            if command == "ALL" or command.split(" ")[0] == program:
                found = free
    return found


def grant(machine: Machine, programs: Sequence[str]) -> str:
    """The command that lets this user run the programs by sudo without a password."""
    rule = f"{machine.account.name} ALL=(root) NOPASSWD: {', '.join(programs)}"
    return f"echo {quote(rule)} | sudo tee /etc/sudoers.d/labd && sudo visudo -c"


def _tags(entry: str) -> tuple[list[str], str]:
    words = shlex.split(entry, comments=False) if "'" not in entry and '"' not in entry else entry.split()
    tags = [word for word in words if re.fullmatch(r"[A-Z_]+:", word)]
    return tags, " ".join(words[len(tags) :])
