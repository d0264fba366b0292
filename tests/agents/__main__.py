"""`python -m tests.agents`: install the four programs into .agents/, and run the lane with nothing but loopback.

    python -m tests.agents                   install what is missing, then run; says why where it can't
    python -m tests.agents --if-installed    run only what is installed already
    python -m tests.agents -- -k claude      the rest goes to pytest

A network namespace (root, or user namespaces) is the cage: whatever a program tries to reach, it reaches nobody.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".agents"
BIN = PLACE / "node_modules" / ".bin"

#: Program → package. Versions are npm's latest: the table says which ones ran.
PACKAGES = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "gemini": "@google/gemini-cli",
            "opencode": "opencode-ai"}  # fmt: skip

INSTALL_S = 600


def missing() -> list[str]:
    """The programs that are not there."""
    return [name for name in PACKAGES if not (BIN / name).exists()]


def install() -> str:
    """Install what is missing with npm; returns why that can't be done, or nothing."""
    if not missing():
        return ""
    if shutil.which("npm") is None:
        return "npm is not installed"
    packages = [PACKAGES[name] for name in missing()]
    say(f"installing {', '.join(packages)} into {PLACE} (about 1 GB)")
    words = ["npm", "install", "--prefix", str(PLACE), "--no-audit", "--no-fund", "--loglevel=error", *packages]
    try:
        done = subprocess.run(words, timeout=INSTALL_S, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        return f"npm install took more than {INSTALL_S} s"
    if done.returncode or missing():
        return f"npm install: {(done.stderr.strip() or done.stdout.strip() or 'nothing was installed')[-300:]}"
    return ""


def cage() -> list[str] | None:
    """The words before a command that run it with loopback alone; None where that can't be done."""
    up = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    for words in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]):
        try:
            if subprocess.run([*words, *up, "true"], capture_output=True, timeout=10).returncode == 0:
                return [*words, *up]
        except (OSError, subprocess.TimeoutExpired):
            return None
    return None


def say(text: str) -> None:
    print(f"test-agents: {text}", flush=True)


def main(words: list[str]) -> int:
    """Install, cage, run."""
    rest = words[words.index("--") + 1 :] if "--" in words else []
    if "--if-installed" in words:
        why = f"{', '.join(missing())} not installed (make test-agents installs them)" if missing() else ""
    else:
        why = install()
    inside = cage()
    if not why and inside is None:
        why = "no network namespace can be made here (it takes root or user namespaces, unshare and ip)"
    if why or inside is None:
        say(f"skipped: {why}")
        return 0
    say("real agent programs against a scripted model: this proves the harness, never a model's skill")
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "LABD_AGENTS_LANE": "1"}
    return subprocess.run([*inside, sys.executable, "-m", "pytest", "-m", "agents", "tests/agents", *rest],
                          cwd=ROOT, env=env).returncode  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
