"""The kind `git`: the agent's directory is a repository that a script of the scenario makes. What the repository is
like before and after is kept as facts (harness/repository.py), and the directory itself at the end. Git keeps no
record of its own: it is recorded."""

import gzip
import io
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import execute, files, receiving, recorder, repository, statemark
from harness.scenario_fill import fill
from harness.subjects._kind import Attendant, Kind

if TYPE_CHECKING:
    from harness.bundle import Bundle
    from harness.sandbox import Sandbox
    from harness.scenario import Scenario

LIMIT_S = 30.0

#: The agent's directory at the end, in the bundle, and how big it may be (bytes).
STATE, STATE_BYTES = "work.after.tar.gz", 64 << 20

IDENTITY = "[user]\n\tname = Operator\n\temail = operator@example.com\n"

#: The words that every seed script may use: a repository with one branch, commits whose dates are a minute apart.
PRELUDE = """
set -eu
clock=1750000000
commit() { # commit MESSAGE [NAME <EMAIL>]
  clock=$((clock + 60))
  GIT_AUTHOR_DATE="$clock +0000" GIT_COMMITTER_DATE="$clock +0000" \\
    git commit -q --allow-empty -m "$1" --author="${2:-Mira Voss <mira@example.com>}"
}
server() { # server NAME: a bare repository beside, known here by that name
  git init -q --bare -b main "{remotes}/$1.git"
  git remote add "$1" "{remotes}/$1.git"
}
git init -q -b main
"""


class Git(Kind):
    """Repositories."""

    def install(self, root: Path, program: str) -> None:
        """Behind a recorder that also notes what the repositories were like before and after each command."""
        recorder.install(str(root / "bin"), self.subject.program, program, str(root / "rec" / "argv.jsonl"),
                         [str(root / "work"), str(root / receiving.REMOTES)])  # fmt: skip

    def furnish(self, root: Path, scenario: "Scenario", values: Mapping[str, str], env: Mapping[str, str],
                program: str) -> bytes | None:  # fmt: skip
        """Run the seed script in the agent's directory. Raises ValueError with what went wrong in it, TimeoutError
        where it takes too long."""
        work = root / "work"
        (root / "home" / ".gitconfig").write_text(IDENTITY)
        script = scenario.seed_text(values)
        if script is None:
            return None
        plain = {**env, "PATH": f"{Path(program).parent}:/usr/bin:/bin"}  # the seed is not the agent's doing
        (root / receiving.REMOTES).mkdir(mode=0o700)
        ran = execute.run(["/bin/sh", "-c", fill(PRELUDE, values) + script], env=plain, cwd=work, limit_s=LIMIT_S)
        if ran.ended_by == "time_limit":
            raise TimeoutError(f"preparing took longer than {LIMIT_S:g} s: {scenario.seed}")
        if not ran.ok:
            said = ran.stderr.decode("utf-8", "replace").strip()[:300]
            raise ValueError(f"{scenario.seed}: {said or ran.error or ran.signal or f'exit {ran.code}'}")
        receiving.install(root)
        (root / "rec" / "repo.before.json").write_bytes(files.canonical(_facts(root, program)))
        return script.encode()

    def attend(self, place: "Sandbox") -> "Attendant | None":
        """Where there are servers, what they receive."""
        return receiving.Receiving(place.root, place.subject) if receiving.servers(place.root) else None

    def state(self, place: "Sandbox") -> dict[str, str]:
        """The repository and each server, by what they hold; not what git remembers of how it came there."""
        settings = files.digest(files.plain_bytes(place.work / ".git" / "config") or b"")
        servers = {f"server {path.stem}": statemark.digest([str(path)]) for path in receiving.servers(place.root)}
        return {"work": statemark.digest([str(place.work)]), "settings": settings, **servers}

    def gather(self, place: "Sandbox", bundle: "Bundle") -> None:
        """The facts at the start, those at the end, and the directory itself."""
        before = place.root / "rec" / "repo.before.json"
        if before.is_file():
            bundle.put("repo.before.json", before.read_bytes())
        bundle.put("repo.after.json", files.canonical(_facts(place.root, place.subject)))
        bundle.put("seed.sh", place.seed)
        packed = _packed(place.work)
        if packed is None:
            bundle.left_out.append(f"{STATE}: too big")
        bundle.put(STATE, packed)

    def restore(self, bundle: Path, root: Path) -> tuple[Path, ...]:
        """The agent's directory, as it was at the end; links that lead out of it are left out."""
        try:
            with tarfile.open(fileobj=io.BytesIO((bundle / STATE).read_bytes()), mode="r:gz") as packed:
                packed.extractall(root / "work", filter=_inside)
        except (tarfile.TarError, EOFError, zlib.error) as error:
            raise ValueError(f"{STATE}: {error}") from error
        name = root / "home" / ".gitconfig"
        name.write_text(IDENTITY)
        return root / "work", name

    def asking(self, root: Path) -> dict[str, str]:
        """No refreshed index, and nothing that the repository's own configuration would have git start."""
        off = {"core.fsmonitor": "false", "core.hooksPath": "/dev/null", "diff.external": "", "core.pager": "cat"}
        told = {"GIT_OPTIONAL_LOCKS": "0", "GIT_CONFIG_COUNT": str(len(off))}
        for number, (name, value) in enumerate(off.items()):
            told |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return told


def _facts(root: Path, program: str) -> dict[str, Any]:
    """All about the agent's repository, and the servers beside it by their names."""
    servers = {path.stem: repository.bare(path, program) | {"around": receiving.digest(path)}
               for path in receiving.servers(root)}  # fmt: skip
    return repository.facts(root / "work", program) | {"remotes": servers}


def _packed(work: Path) -> bytes | None:
    """The directory as a tar, compressed; None if it is bigger than STATE_BYTES. Sockets and the like are left out."""
    paths = sorted(work.rglob("*"))
    if sum(path.lstat().st_size for path in paths) > STATE_BYTES:
        return None
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as packed:
        for path in paths:
            if path.is_symlink() or path.is_file() or path.is_dir():
                packed.add(path, str(path.relative_to(work)), recursive=False)
    return gzip.compress(raw.getvalue(), compresslevel=1, mtime=0)


def _inside(member: tarfile.TarInfo, place: str) -> tarfile.TarInfo | None:
    try:
        return tarfile.data_filter(member, place)
    except tarfile.FilterError:
        return None


KIND = Git
