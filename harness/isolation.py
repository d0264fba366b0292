"""How much of the machine an agent's program can see: `home`, `bwrap` where bubblewrap is installed, or `light`.

`home`: homes and directories of its own, and nothing above its working directory or in the system that tells agents
what to do. `bwrap`: the same behind bubblewrap, with a read-only system, no user's files and no network but loopback.
`light`: with the user's own home, for a first try; it proves nothing and is never counted.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from harness import doorway
from harness.agents._program import Isolation
from harness.sandbox import Sandbox, SandboxError

#: What agents look for above their working directory.
INSTRUCTIONS = ("CLAUDE.md", "CLAUDE.local.md", ".claude", "AGENTS.md", "AGENTS.override.md", ".codex", "GEMINI.md",
                ".gemini", "opencode.json", "opencode.jsonc", ".opencode", ".agents", ".mcp.json")  # fmt: skip

#: Where they look in the system.
SYSTEM = ("/etc/claude-code", "/etc/codex", "/etc/gemini-cli", "/etc/opencode")

#: Our own files, which the subject may be installed from, and what in them would tell an agent the answers.
_OURS = Path(__file__).resolve().parent.parent
_ANSWERS = ("scenarios", "graders", "tests", ".git", "harness/data", "fixtures/sabotage")

#: What a user's own tools read, that `light` leaves as it is.
_USERS = ("HOME", "PATH", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")


def check(place: Sandbox, isolation: Isolation) -> None:
    """Make sure that the sandbox is as isolated as that. Raises SandboxError."""
    if isolation == "light":
        lighten(place)
        return
    found = above(place.work) + [path for path in SYSTEM if os.path.exists(path)]
    if found:
        raise SandboxError(f"agents would read {', '.join(found)}: move it away, or take --isolation light")
    if isolation == "bwrap" and shutil.which("bwrap") is None:
        raise SandboxError("bwrap is not installed; install it: apt install bubblewrap")


def above(work: Path) -> list[str]:
    """What stands in the directories above `work` that agents take for instructions."""
    return [str(directory / name) for directory in work.resolve().parents for name in INSTRUCTIONS
            if os.path.lexists(directory / name)]  # fmt: skip


def lighten(place: Sandbox) -> None:
    """Give the sandbox's commands the user's own home; lab, state and runtime directory stay the sandbox's."""
    for name in _USERS:
        if name in os.environ:
            place.env[name] = os.environ[name]
        elif name != "PATH":
            place.env.pop(name, None)
    place.env["PATH"] = f"{place.bin}:{place.env['PATH']}"


def enclosed(argv: Sequence[str], place: Sandbox, isolation: Isolation, base_url: str | None = None
             ) -> tuple[str, ...]:  # fmt: skip
    """The words that start `argv` so isolated. `base_url`: the only server that it can reach then, by `door`."""
    if isolation != "bwrap":
        return tuple(argv)
    words = ["bwrap", "--die-with-parent", "--unshare-net", "--unshare-ipc", "--ro-bind", "/", "/", "--dev", "/dev"]
    hide = hidden()
    for path in hide:
        words += ["--tmpfs", path]
    for path in shown([*argv[:2], place.subject], hide):
        words += ["--ro-bind-try", path, path]
    for answers in (_OURS / name for name in _ANSWERS):
        words += ["--tmpfs", str(answers)] if answers.is_dir() else []
    if Path(place.subject).is_relative_to(
        _OURS / "harness/data"
    ):  # a program of ours, among an installed copy's fixtures
        words += ["--ro-bind", os.path.dirname(place.subject), os.path.dirname(place.subject)]
    root = str(place.root)
    if base_url is not None:
        script = str(Path(doorway.__file__).resolve())
        argv = [sys.executable, "-IS", script, str(urlsplit(base_url).port), _door(place), *argv]
    return (*words, "--bind", root, root, "--chdir", str(place.work), "--", *argv)


@contextlib.contextmanager
def door(place: Sandbox, isolation: Isolation, base_url: str | None) -> Iterator[None]:
    """Have the server at `base_url` be reached from inside. Raises OSError."""
    port = urlsplit(base_url).port if base_url is not None else None
    with doorway.open_to(port, _door(place)) if port and isolation == "bwrap" else contextlib.nullcontext():
        yield


def _door(place: Sandbox) -> str:
    return str(place.root / "run" / "net.sock")


def hidden() -> list[str]:
    """Where users have their files, and where sockets of theirs are."""
    places = ["/tmp", "/var/tmp", "/run", "/home", "/root", "/mnt", "/media", "/srv", str(Path.home())]
    found = dict.fromkeys(os.path.realpath(path) for path in places if os.path.isdir(path))
    return [path for path in found if path != "/"]


def shown(programs: Iterable[str], hide: Sequence[str]) -> list[str]:
    """What must be readable for our own program and for the agent's, wherever the user has installed them: of a hidden
    place itself, and of what it stands in, never more than the program's file."""
    trees = [sys.prefix, sys.base_prefix, str(_OURS)]
    for program in programs:
        if os.path.isabs(program) and os.path.exists(program):
            for path in (program, os.path.realpath(program)):
                tree = _installation(path)
                trees.append(path if any(f"{place}/".startswith(f"{tree}/") for place in hide) else tree)
    return [tree for tree in dict.fromkeys(trees) if any(tree.startswith(f"{place}/") for place in hide)]


def _installation(program: str) -> str:
    """The tree that a program needs: all node modules beside it, else its own directory."""
    head, mark, _ = program.partition("/node_modules/")
    return head + mark.rstrip("/") if mark else os.path.dirname(program)
