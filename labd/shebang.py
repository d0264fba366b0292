"""Why a program that is there can't be started all the same: a script's first line. Reads a few bytes, runs nothing.

The system says `No such file or directory` of a script whose interpreter is missing, which sends people looking for
the script.
"""

from __future__ import annotations

import os
import shutil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: How much of a first line a kernel reads, bytes.
HEAD_BYTES = 255

#: What is said of a script with the line ends of another system.
CRLF = "its lines end in CRLF"


def unstartable(path: str, env: Mapping[str, str]) -> str:
    """What keeps the file at `path` from being started, "" where nothing is known to. `env` has the PATH."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return ""  # it may be run and not read
    if not head or b"\0" in head:
        return ""
    if not head.startswith(b"#!"):
        return "is text without a first line #!, as in #!/bin/sh"
    line = head[2:].partition(b"\n")[0].decode("utf-8", "replace").strip(" \t")
    if line.endswith("\r"):
        return f"can't be started: {CRLF}, so its interpreter {line!r} is not there"
    interpreter, _, argument = line.partition(" ")
    if not os.access(interpreter, os.X_OK):
        there = "may not be run" if os.path.exists(interpreter) else "is not there"
        return f"can't be started: its first line asks for {interpreter!r}, which {there}"
    wanted = argument.strip()
    if os.path.basename(interpreter) != "env" or not wanted or wanted.startswith("-") or "=" in wanted:
        return ""
    if shutil.which(wanted, path=env.get("PATH", os.defpath)):
        return ""
    return f"can't be started: its first line asks env for {wanted!r}, which is not on PATH"
