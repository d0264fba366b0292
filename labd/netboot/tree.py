"""What a directory that is served must not hold or be called: files beyond it, by links or by name. Looks, no more.

dnsmasq follows a symbolic link wherever it leads, so one that leads out of the directory gives any board any file that
the user may read. The HTTP server refuses such a file by itself.
"""

from __future__ import annotations

import os
import shlex
import time

from labd.errors import Refused, Usage

#: How many entries, and for how many seconds, a directory is looked through.
ENTRIES, SECONDS = 20_000, 1.0

#: What parts the words of dnsmasq's options: it can be quoted in its configuration file only.
PARTING = ","


def leading_out(root: str) -> tuple[str | None, bool]:
    """(the first symbolic link below `root` that leads out of it, whether the whole of it was looked through)."""
    real = os.path.realpath(root)
    deadline, seen = time.monotonic() + SECONDS, 0
    for folder, folders, files in os.walk(real) if real != "/" else ():
        for name in (*folders, *files):
            seen += 1
            if seen > ENTRIES or time.monotonic() > deadline:
                return None, False
            path = os.path.join(folder, name)
            if os.path.islink(path) and _leaves(path, real):
                return os.path.join(root, os.path.relpath(path, real)), False
    return None, True


def _leaves(link: str, root: str) -> bool:
    try:
        return not inside(os.path.realpath(link), root)
    except OSError:
        return False  # one that may not be followed, which dnsmasq, being the same user, may not either


def inside(path: str, root: str) -> bool:
    """Whether a path without links and dots is below `root`."""
    return path.startswith(root.rstrip("/") + "/") or path == root


def sealed(root: str) -> str | None:
    """Raises Refused when a link leads out of `root`; what to tell when not all of it could be looked through."""
    link, whole = leading_out(root)
    if link is not None:
        raise Refused(
            f"{link} is a link that leads out of tftp_root, to {os.path.realpath(link)}, and TFTP would give that to "
            "any board; nothing is served",
            hint=mend_link(link),
        )
    return None if whole else f"{root} holds too much to look through: a link in it may lead out, and TFTP follows it"


def mend_link(link: str) -> str:
    """The command against a link that leads out. It publishes nothing: whether boards may have a copy is not known."""
    return f"rm {shlex.quote(link)}  # and put a copy in its place, if boards may have it"


def check_names(target: str, root: str, boot_file: str, words: str = "") -> None:
    """Raises Usage for a directory or a file that can't be served by its name. An empty one is not checked.

    Both are as the lab has them, but for `~`: the directory need not be there yet.
    """
    command = f"labd {words}netboot set -t {target}"
    for field, text, flag in (("tftp_root", root, "--tftp-root DIR"), ("boot_file", boot_file, "--boot-file FILE")):
        bad = next((char for char in text if char == PARTING or ord(char) < 32), None)
        if bad is not None:
            what = "a comma" if bad == PARTING else "a control character"
            raise Usage(f"{target}.netboot: {field} {text!r} holds {what}, which dnsmasq can't be told",
                        hint=f"{command} {flag}")  # fmt: skip
    if boot_file and strays(boot_file, root):
        raise Usage(f"{target}.netboot: boot_file {boot_file} is not in tftp_root, and nothing else is served",
                    hint=f"{command} --boot-file FILE  # relative to tftp_root")  # fmt: skip


def strays(boot_file: str, root: str) -> bool:
    """Whether the name of a boot file leads out of the directory, going by the words alone."""
    if os.path.isabs(boot_file):
        return not inside(os.path.normpath(boot_file), os.path.normpath(root or "/-"))
    return os.path.normpath(boot_file).split("/")[0] == ".."
