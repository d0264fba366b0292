"""Asks the installed program about itself, in an environment of its own: for graders/drift.py, which starts nothing.

The program meets no lab, no daemon and no state of the user's.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness import data, execute
from labd.errors import NotFound

LIMIT_S = 30.0

Ask = Callable[[list[str]], tuple[int | None, str, str]]


@contextmanager
def live() -> Iterator[Ask]:
    """A function that runs the program (`labd`, whatever the first word says) and returns code, stdout, stderr.

    Raises NotFound if no program is installed.
    """
    program = data.subject_program()
    if program is None:
        raise NotFound("there is no labd beside this Python or on PATH", hint="make setup")
    with tempfile.TemporaryDirectory(prefix="labd-ask-") as home:
        env = {"PATH": "/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "100",
               "LABD_POLICY": "help", "XDG_RUNTIME_DIR": os.path.join(home, "run")}  # fmt: skip

        def ask(words: list[str]) -> tuple[int | None, str, str]:
            ended = execute.run([program, *words[1:]], env=env, cwd=home, limit_s=LIMIT_S)
            return ended.code, ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace")

        yield ask
