"""Which files under a place are whose log: a session's with its subagents', a bundle's, each by itself. Reads them.

A directory of several sessions (`~/.claude/projects/X`) is several logs, never one: what an agent did in one of them
says nothing of another.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from harness import transcripts
from harness.transcripts import lines
from labd.errors import LabdError, NotFound

#: More than this is not read (bytes, all files of a log together), and of a file's beginning to tell whose it is.
MOST_BYTES, HEAD = 256 << 20, 1 << 20
#: What lies in raw/ beside session/.
_OWN = frozenset({"stdout", "stderr", "requests.jsonl", "calls.jsonl", "answer.txt"})
#: Standard input.
STDIN = Path("-")

#: The files of one log by the names that they have under a bundle's raw/.
Files = Mapping[str, Path]


def is_file(place: Path) -> bool:
    """Whether it is to be read as it is: a file, a pipe, or `-` for standard input."""
    return place == STDIN or (place.exists() and not place.is_dir())


def logs(place: Path) -> dict[Path, Files]:
    """The logs at a place: a file's, a bundle's, or those of a directory, each with its files. Raises NotFound."""
    if is_file(place):
        return {place: _named(place, _beside(place))}
    if not place.is_dir():
        raise NotFound(f"no transcript {place}", hint="labd-eval transcript --help")
    raw = place / "raw" if (place / "raw").is_dir() else place
    if raw == place and (place / "trial.json").is_file():
        return {place: {name: place / name for name in ("calls.jsonl", "answer.txt") if (place / name).is_file()}}
    files = {path.relative_to(raw).as_posix(): path for path in sorted(raw.rglob("*"))
             if path.is_file() and not path.is_symlink()}  # fmt: skip
    own = {name: path for name, path in files.items() if name.startswith("session/") or name in _OWN}
    others = {name: path for name, path in files.items() if name not in own and path.suffix in (".json", ".jsonl")}
    if own or raw != place:
        return {place: own | {f"session/{name}": path for name, path in others.items()}}
    return _sessions(place, others.values())


def read(files: Files) -> dict[str, bytes]:
    """The bytes of one log's files. Raises LabdError where they are too many."""
    found, left = {}, MOST_BYTES
    for name, path in files.items():
        if path == STDIN:
            found[name] = _limited(sys.stdin.buffer, left)
        else:
            with path.open("rb") as handle:
                found[name] = _limited(handle, left)
        left -= len(found[name])
    return found


def _limited(handle: BinaryIO, left: int) -> bytes:
    data = handle.read(left + 1)
    if len(data) > left:
        raise LabdError(f"more than {MOST_BYTES >> 20} MiB of transcripts; at most that many are read")
    return data


# -- sessions and their subagents ----------------------------------------------------------------------------------


def _sessions(place: Path, paths: Iterable[Path]) -> dict[Path, Files]:
    """A log for each session, with its subagents'; those of no session here together, a log a directory."""
    agents = [path for path in paths if _is_agents(path)]
    others = [path for path in paths if not _is_agents(path)]
    mains = [path for path in others if transcripts.sniff(_head(path))]
    if not mains and not agents:
        return {place: _named(None, others)}  # nothing that is known: whoever reads it says what is wrong
    ids = {path: _id(path) for path in (*mains, *agents)}
    found = {main: [path for path in agents if _belongs(path, main, ids)] for main in mains}
    lost: dict[Path, list[Path]] = defaultdict(list)
    for path in set(agents) - {one for family in found.values() for one in family}:
        lost[path.parent].append(path)
    return {main: _named(main, family) for main, family in found.items()} | {
        where: _named(None, sorted(family)) for where, family in sorted(lost.items())}  # fmt: skip


def _beside(main: Path) -> list[Path]:
    """The logs of a session's subagents: in a directory of its name, or beside it with its session's id."""
    if main == STDIN or not main.is_file() or _is_agents(main):
        return []
    near = [path for where in (*_own(main), main.parent) for path in sorted(where.glob("agent-*.json*"))]
    ids = {path: _id(path) for path in (main, *near)} if near else {}
    return [path for path in near if _belongs(path, main, ids)]


def _belongs(agent: Path, main: Path, ids: Mapping[Path, str | None]) -> bool:
    """Whether a subagent's file is of that session: by where it lies, else by the session's id in both. What a product
    printed has its subagents within."""
    if ids[main] is None:
        return False
    record = agent.with_name(agent.name.removesuffix(".meta.json").removesuffix(".jsonl") + ".jsonl")
    return agent.parent in _own(main) or (agent.parent == main.parent and ids.get(record) == ids[main])


def _own(main: Path) -> tuple[Path, Path]:
    """The directories where only this session's subagents lie."""
    return main.with_suffix("") / "subagents", main.with_name(f"{main.stem.removesuffix('.session')}.subagents")


def _is_agents(path: Path) -> bool:
    return path.name.startswith("agent-")


def _id(path: Path) -> str | None:
    """A session log's id, from the first record that has one; None for what is no session log of Claude Code."""
    head = _head(path)
    if transcripts.format_of(head) != ("claude", "session"):
        return None
    for _, line in lines.split(head):
        try:
            told = lines.obj(lines.value(line)).get("sessionId")
        except ValueError:
            continue
        if isinstance(told, str):
            return told
    return None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as handle:
            return handle.read(HEAD)
    except OSError:
        return b""


def _named(main: Path | None, family: list[Path]) -> Files:
    if main is not None and not family:
        return {"stdout": main}
    return {f"session/{path.name}": path for path in ([main] if main else []) + family}
