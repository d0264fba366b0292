"""The kind `git`: the agent's directory is a repository that a script of the scenario makes, and what the repository
is like before and after is kept as facts (harness/repository.py). Git keeps no record of its own: it is recorded."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness import execute, files, repository
from harness.subjects._kind import Kind

if TYPE_CHECKING:
    from harness.bundle import Bundle
    from harness.sandbox import Sandbox
    from harness.scenario import Scenario

LIMIT_S = 30.0

#: The words that every seed script may use: a repository with one branch, commits whose dates are a minute apart.
PRELUDE = """
set -eu
clock=1750000000
commit() { # commit MESSAGE [NAME <EMAIL>]
  clock=$((clock + 60))
  GIT_AUTHOR_DATE="$clock +0000" GIT_COMMITTER_DATE="$clock +0000" \\
    git commit -q --allow-empty -m "$1" --author="${2:-Mira Voss <mira@example.com>}"
}
git init -q -b main
"""


class Git(Kind):
    """Repositories."""

    def furnish(self, root: Path, scenario: "Scenario", values: Mapping[str, str], env: Mapping[str, str],
                program: str) -> bytes | None:  # fmt: skip
        """Run the seed script in the agent's directory. Raises ValueError with what went wrong in it."""
        work = root / "work"
        (root / "home" / ".gitconfig").write_text("[user]\n\tname = Operator\n\temail = operator@example.com\n")
        script = scenario.seed_text(values)
        if script is None:
            return None
        plain = {**env, "PATH": f"{Path(program).parent}:/usr/bin:/bin"}  # the seed is not the agent's doing
        ran = execute.run(["/bin/sh", "-c", PRELUDE + script], env=plain, cwd=work, limit_s=LIMIT_S)
        if not ran.ok:
            raise ValueError(f"{scenario.seed}: {ran.stderr.decode('utf-8', 'replace').strip()[:300]}")
        (root / "rec" / "repo.before.json").write_bytes(files.canonical(repository.facts(work, program)))
        return script.encode()

    def gather(self, place: "Sandbox", bundle: "Bundle") -> None:
        """The facts at the start, and those at the end."""
        before = place.root / "rec" / "repo.before.json"
        if before.is_file():
            bundle.put("repo.before.json", before.read_bytes())
        bundle.put("repo.after.json", files.canonical(repository.facts(place.work, place.subject)))
        bundle.put("seed.sh", place.seed)


KIND = Git
