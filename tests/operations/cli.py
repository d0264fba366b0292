"""The installed program, run in an environment of its own: home, state and runtime directory in a folder."""

import os
import subprocess
import sys
from pathlib import Path


def labd(home: Path, *words: str, stdin: bytes = b"", **env: str) -> tuple[int, str, str]:
    """Run `labd WORDS`; returns exit code, stdout and stderr."""
    (home / "run").mkdir(mode=0o700, exist_ok=True)
    own = {"HOME": str(home), "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(home / "run"), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [os.path.join(os.path.dirname(sys.executable), "labd"), *words],
        input=stdin, capture_output=True, env=own | env, cwd=home, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()
