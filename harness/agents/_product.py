"""What the adapters of the real products share: asking a version, and finding the logs of a session."""

import tempfile
from pathlib import Path

from harness import execute
from harness.agents._program import located

#: Seconds for `--version`: the first start of a big program reads it from a cold disk.
VERSION_S = 60.0

#: What a scripted model takes for a key. It is blanked like a real one.
SCRIPTED_KEY = "scripted-model-key"

#: How often a product may ask a scripted model again that answers with an error: real ones deserve more patience.
SCRIPTED_RETRIES = 2


def start(program: str) -> tuple[str, ...]:
    """The words that start an installed program; its bare name where there is none, which then can't be started."""
    return tuple(located(program) or [program])


def asked_version(program: str) -> str | None:
    """The first line that the program answers to --version, in a home of its own; None where it isn't installed."""
    words = located(program)
    if words is None:
        return None
    with tempfile.TemporaryDirectory(prefix="version-") as home:
        env = {"HOME": home, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": home, "TERM": "dumb"}
        ended = execute.run([*words, "--version"], env=env, cwd=home, limit_s=VERSION_S)
    lines = ended.stdout.decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in lines if line.strip()), None) if ended.ok else None


def logs(root: Path, pattern: str) -> dict[str, Path]:
    """The plain files below `root` that match, by their names under raw/."""
    return {f"session/{path.relative_to(root)}": path for path in sorted(root.glob(pattern))
            if path.is_file() and not path.is_symlink()}  # fmt: skip
