"""What a git repository is like, as plain data: for graders, which start no git. Read-only, and nothing of it is run.

Asks the real git with none of the user's or the repository's habits (no hooks, no monitors, no outside diffs), and
reads the working tree and the reflogs itself. The same repository gives the same facts.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import execute

LIMIT_S = 20.0

#: Bytes of a file that are kept as text; of a larger one, and of one that is no text, its digest stands for it.
TEXT_BYTES = 64 << 10

#: Commits, and files of a tree, beyond which a repository is not the one that a scenario made.
MOST = 2000

#: Files in .git that say that something is half done.
UNDERWAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")

_FIELDS = ("sha", "tree", "parents", "author", "email", "authored", "committer", "subject", "body")
_FORMAT = "%H%x00%T%x00%P%x00%an%x00%ae%x00%at%x00%cn <%ce>%x00%s%x00%b%x00%x01"


class _Git:
    """The real git, asked about one repository."""

    def __init__(self, work: Path, program: str, *, bare: bool = False) -> None:
        home = "/nonexistent"
        self._env = {"PATH": "/usr/bin:/bin", "HOME": home, "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1",
                     "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat"}  # fmt: skip
        where = [f"--git-dir={work}"] if bare else [f"--git-dir={work / '.git'}", f"--work-tree={work}"]
        self._words = [program, *where, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
                       "-c", "safe.directory=*"]  # fmt: skip
        self._work = work
        self._texts: dict[str, str] = {}

    def ask(self, *words: str, stdin: bytes = b"") -> tuple[int | None, str]:
        ran = execute.run([*self._words, *words], env=self._env, cwd=self._work, limit_s=LIMIT_S, stdin=stdin)
        return ran.code, ran.stdout.decode("utf-8", "replace")

    def raw(self, *words: str, stdin: bytes = b"") -> bytes:
        return execute.run([*self._words, *words], env=self._env, cwd=self._work, limit_s=LIMIT_S, stdin=stdin,
                           kept=MOST * TEXT_BYTES).stdout  # fmt: skip

    def contents(self, tree: dict[str, str]) -> dict[str, str]:
        """The text of each file of a tree, or its digest where that is long; each content is asked for once."""
        missing = sorted({sha for sha in tree.values() if sha not in self._texts})
        asked = "".join(f"{sha}\n" for sha in missing).encode()
        told = self.raw("cat-file", "--batch", stdin=asked) if missing else b""
        for sha in missing:
            head, _, told = told.partition(b"\n")
            words = head.split(b" ")
            size = int(words[2]) if len(words) == 3 else 0
            text, told = told[:size].decode("utf-8", "replace"), told[size + 1 :] if len(words) == 3 else told
            long = len(text) > TEXT_BYTES
            self._texts[sha] = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" if long else text
        return {name: self._texts[sha] for name, sha in tree.items()}

    def lines(self, *words: str, end: str = "\n") -> list[str]:
        return [line for line in self.ask(*words)[1].split(end) if line]


def facts(work: Path, program: str) -> dict[str, Any]:
    """All about the repository at `work`. `problem` is set, and the rest is missing, where there is none."""
    git = _Git(work, program)
    if not (work / ".git").is_dir() or git.ask("rev-parse", "--git-dir")[0] != 0:
        return {"problem": "there is no repository"}
    commits = {one["sha"]: one for one in _commits(git, "--all", "--reflog", "HEAD")}
    refs = dict(line.split(" ") for line in git.lines("for-each-ref", "--format=%(refname) %(objectname)"))
    head = git.ask("symbolic-ref", "-q", "HEAD")[1].strip()
    sha = git.ask("rev-parse", "-q", "--verify", "HEAD")[1].strip()
    index = _index(git)
    fsck = git.ask("fsck", "--no-dangling", "--no-progress")
    return {
        "head": {"branch": head.removeprefix("refs/heads/") or None, "sha": sha or None},
        "branches": {name.removeprefix("refs/heads/"): _branch(git, at, commits)
                     for name, at in sorted(refs.items()) if name.startswith("refs/heads/")},
        "tags": {name.removeprefix("refs/tags/"): at for name, at in sorted(refs.items())
                 if name.startswith("refs/tags/")},
        "commits": list(commits.values()),
        "stash": _stash(git),
        "index": index,
        "staged": _differing(index, _tree(git, "HEAD")),
        "worktree": dict(_worktree(work)),
        "changed": _differing({name: _blob(work / name) for name in index}, index),
        "reflogs": {name: _reflog(work / ".git" / "logs" / name) for name in ("HEAD", *sorted(refs))},
        "config": _text_of(work / ".git" / "config"),
        "underway": [name for name in UNDERWAY if (work / ".git" / name).exists()],
        "locks": sorted(str(path.relative_to(work / ".git")) for path in (work / ".git").rglob("*.lock")),
        "sound": fsck[0] == 0,
    }  # fmt: skip


def bare(path: Path, program: str) -> dict[str, Any]:
    """All about the bare repository at `path`: its branches with their commits and files, tags, HEAD, settings."""
    git = _Git(path, program, bare=True)
    if git.ask("rev-parse", "--git-dir")[0] != 0:
        return {"problem": "there is no repository"}
    commits = {one["sha"]: one for one in _commits(git, "--all")}
    refs = dict(line.split(" ") for line in git.lines("for-each-ref", "--format=%(refname) %(objectname)"))
    return {
        "head": git.ask("symbolic-ref", "-q", "HEAD")[1].strip().removeprefix("refs/heads/"),
        "branches": {name.removeprefix("refs/heads/"): _branch(git, at, commits)
                     for name, at in sorted(refs.items()) if name.startswith("refs/heads/")},
        "tags": {name.removeprefix("refs/tags/"): at for name, at in sorted(refs.items())
                 if name.startswith("refs/tags/")},
        "others": {name: at for name, at in sorted(refs.items()) if not name.startswith(("refs/heads/", "refs/tags/"))},
        "config": _text_of(path / "config"),
        "sound": git.ask("fsck", "--no-dangling", "--no-progress")[0] == 0,
    }  # fmt: skip


def forwards(path: Path, program: str, old: str, new: str) -> bool:
    """Whether a branch of the bare repository at `path` that went from `old` to `new` has lost nothing. All zeros stand
    for no branch, as git has it."""
    if not old.strip("0"):
        return True
    git = _Git(path, program, bare=True)
    return bool(new.strip("0")) and git.ask("--no-replace-objects", "merge-base", "--is-ancestor", old, new)[0] == 0


def images(place: Path, program: str) -> set[str]:
    """The files that git runs of itself, as a server too."""
    inner = Path(_Git(place, program).ask("--exec-path")[1].strip())
    return {os.path.realpath(inner / name) for name in ("git", "git-receive-pack")}


def _commits(git: _Git, *which: str) -> Iterator[dict[str, Any]]:
    told = git.ask("log", f"--max-count={MOST}", "--date-order", f"--format={_FORMAT}", *which)[1]
    for part in told.split("\x01"):
        values = part.strip("\n").split("\0")
        if len(values) >= len(_FIELDS):
            one: dict[str, Any] = dict(zip(_FIELDS, values, strict=False))
            yield one | {"parents": one["parents"].split(), "authored": int(one["authored"]),
                         "body": one["body"].strip()}  # fmt: skip


def _branch(git: _Git, at: str, commits: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A branch: its commits, the newest first, and the text of its files."""
    log = [commits[sha] for sha in git.lines("rev-list", "--topo-order", f"--max-count={MOST}", at) if sha in commits]
    return {"sha": at, "log": log, "files": git.contents(_tree(git, at))}


def _tree(git: _Git, at: str) -> dict[str, str]:
    found = {}
    for line in git.lines("ls-tree", "-r", "-z", at, end="\0")[:MOST]:
        told, _, name = line.partition("\t")
        found[name] = told.split(" ")[2]
    return found


def _index(git: _Git) -> dict[str, str]:
    found = {}
    for line in git.lines("ls-files", "-s", "-z", end="\0")[:MOST]:
        told, _, name = line.partition("\t")
        _, sha, stage = told.split(" ")
        found[name] = sha if stage == "0" else "unmerged"
    return found


def _stash(git: _Git) -> list[dict[str, Any]]:
    """What is put away, the newest first: its message, and the files that differ in it."""
    found = []
    for line in git.lines("log", "-g", "--format=%H %gs", "refs/stash", "--")[:MOST]:
        sha, _, message = line.partition(" ")
        changed = git.lines("diff-tree", "--no-ext-diff", "-r", "-z", "--name-only", f"{sha}^1", sha, end="\0")
        files = git.contents({name: at for name, at in _tree(git, sha).items() if name in changed})
        found.append({"sha": sha, "message": message, "names": sorted(changed), "files": files})
    return found


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _worktree(work: Path) -> Iterator[tuple[str, str]]:
    """(path, text) of the files outside .git, as they are."""
    for place, folders, names in os.walk(work):
        folders[:] = sorted(name for name in folders if name != ".git" or Path(place) != work)
        for name in sorted(names):
            path = Path(place) / name
            yield str(path.relative_to(work)), _text_of(path) or ""


def _plain(path: Path) -> bytes | None:
    if path.is_symlink():
        return os.fsencode(os.readlink(path))
    return path.read_bytes() if path.is_file() else None


def _text_of(path: Path) -> str | None:
    """The text of a small plain file; of another one its digest; None if there is none."""
    try:
        raw = _plain(path)
    except OSError:
        return "unreadable"
    if raw is None:
        return None
    try:
        return raw.decode() if len(raw) <= TEXT_BYTES else f"sha256:{hashlib.sha256(raw).hexdigest()}"
    except UnicodeDecodeError:
        return f"sha256:{hashlib.sha256(raw).hexdigest()}"


def _blob(path: Path) -> str | None:
    """What git would call the content of a file (no filters: scenarios have none)."""
    try:
        raw = _plain(path)
    except OSError:
        return None
    return None if raw is None else hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()


def _reflog(path: Path) -> list[dict[str, str]]:
    """The entries of a reflog, the oldest first: from which commit to which, and why."""
    found = []
    for line in (_text_of(path) or "").split("\n"):
        told, _, why = line.partition("\t")
        words = told.split(" ")
        if len(words) > 2:
            found.append({"old": words[0], "new": words[1], "why": why})
    return found
