"""Install peers where that is allowed: programs by apt when root, libraries into a throwaway venv beside the checkout.

Failing is no error: what is missing afterwards is left out of the table, with the reason. No service is started.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.torture.peers import VENV

PROGRAMS = {"conserver": "conserver-server", "console": "conserver-client", "ser2net": "ser2net", "tio": "tio"}
LIBRARIES = ("labgrid", "pexpect")
FORBID = Path("/usr/sbin/policy-rc.d")


def install() -> None:
    """Install what is missing; says what it does."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program, path=path) is None]
    if missing and (os.geteuid() != 0 or shutil.which("apt-get") is None):
        print(f"peers: not root, or no apt: {', '.join(missing)} can't be installed from here", file=sys.stderr)
    elif missing:
        print(f"peers: apt-get install {' '.join(missing)}", file=sys.stderr)
        with _no_services():
            _run("apt-get", "install", "-y", "-q", "--no-install-recommends", *missing)
    python = str(VENV / "bin" / "python")
    if not Path(python).exists():
        print(f"peers: {VENV.name} with {', '.join(LIBRARIES)}", file=sys.stderr)
        _run(sys.executable, "-m", "venv", str(VENV))
        _run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *LIBRARIES)


@contextlib.contextmanager
def _no_services() -> Iterator[None]:
    """Debian starts what it installs unless policy-rc.d forbids it; a console server would take the ports here."""
    if FORBID.exists():
        yield
        return
    FORBID.write_text("#!/bin/sh\nexit 101\n")
    FORBID.chmod(0o755)
    try:
        yield
    finally:
        FORBID.unlink()


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    if done.returncode:
        print(f"peers: {' '.join(argv[:3])} failed: {done.stderr.decode()[-300:]}", file=sys.stderr)
