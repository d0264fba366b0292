"""An input helper in this process, and as the program that it is."""

import os
import subprocess
from pathlib import Path

from labd import helpers
from labd.helpers import _input


def run(program: _input.Program, home: Path, *words: str, stdin: str = "", **env: str) -> tuple[int, str, str]:
    """The helper in this process: exit code, stdout, stderr."""
    out: list[str] = []
    err: list[str] = []
    own = {"XDG_RUNTIME_DIR": str(home)} | env
    code = _input.main(program, list(words), env=own, stdin=lambda: stdin, out=out.append, err=err.append)
    return code, "".join(out), "".join(err)


def start(program: _input.Program, home: Path, *words: str, **env: str) -> subprocess.Popen[bytes]:
    """The helper as a process of its own, with pipes."""
    pipe = subprocess.PIPE
    return subprocess.Popen([*helpers.command(program.name), *words], stdin=pipe, stdout=pipe, stderr=pipe,
                            env={**os.environ, "XDG_RUNTIME_DIR": str(home)} | env)  # fmt: skip
