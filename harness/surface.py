"""Asks the installed program about itself, in an environment of its own: for graders, which start nothing.

`live` is for graders/drift.py. `take` is the command reference that stated answers are held against: the table, the
flags that every command has, and the help page of every command and group, as they are at this moment and never from a
cache. The program meets no lab, no daemon and no state of the user's.
"""

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from harness import execute, files
from harness import subject as subjects
from labd.errors import LabdError, NotFound

LIMIT_S = 30.0

#: Questions to the program at once: each is a process that mostly waits for its own start.
AT_ONCE = 4

Ask = Callable[[list[str]], tuple[int | None, str, str]]


@contextmanager
def live(subject: str = subjects.DEFAULT) -> Iterator[Ask]:
    """A function that runs the subject's program (whatever the first word says) and returns code, stdout, stderr.

    Raises NotFound if no program is installed.
    """
    examined = subjects.load(subject)
    program = examined.find()
    if program is None:
        raise NotFound(examined.missing, hint=examined.install)
    with tempfile.TemporaryDirectory(prefix="labd-ask-") as home:
        env = {"PATH": "/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "100",
               **examined.asking, "XDG_RUNTIME_DIR": os.path.join(home, "run")}  # fmt: skip

        def ask(words: list[str]) -> tuple[int | None, str, str]:
            ended = execute.run([program, *words[1:]], env=env, cwd=home, limit_s=LIMIT_S)
            return ended.code, ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace")

        yield ask


def take(ask: Ask, program: str = "labd") -> dict[str, Any]:
    """The command reference: `program version commands globals help sha256`. Raises LabdError if it can't be had."""
    code, out, err = ask([program, "commands", "--json"])
    try:
        table = json.loads(out)["operations"]
    except (ValueError, KeyError, TypeError) as error:
        raise LabdError(f"{program} commands --json gave no table (exit {code}): {err.strip()[:200]}") from error
    code, top, err = ask([program, "--help"])
    if code != 0:  # and so would every other page, each as late
        raise LabdError(f"{program} --help gave nothing (exit {code}): {err.strip()[:200]}")
    paths = list(dict.fromkeys(place for entry in table for place in (entry["path"].split(" ")[0], entry["path"])))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        pages = list(pool.map(lambda path: ask([program, *path.split(), "--help"])[1], paths))
    told = {
        "program": program,
        "version": ask([program, "--version"])[1].strip(),
        "commands": [_command(entry) for entry in table],
        "globals": _globals(top),
        "help": {"": top} | dict(zip(paths, pages, strict=True)),
    }
    return told | {"sha256": files.digest(files.canonical(told))}


def _command(entry: dict[str, Any]) -> dict[str, Any]:
    keys = ("path", "aliases", "summary", "effect", "params")
    return {key: entry[key] for key in keys} | {"passthrough": bool(entry["opaque"])}


def _globals(page: str) -> list[dict[str, Any]]:
    """The flags that every command has, from the part of the top page that says `everywhere:`."""
    part = page.partition("\neverywhere:\n")[2].partition("\n\n")[0]
    found = []
    for match in re.finditer(r"^  (-[^\s,]+)(?:, (-\S+))?( [A-Z]+)?  ", part + "  ", re.MULTILINE):
        found.append({"flags": [flag for flag in match.group(1, 2) if flag], "takes_value": match[3] is not None})
    return found
