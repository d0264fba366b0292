"""The scan lane: any program's help and errors, without credentials, without a network, and with nothing to change.

Each question runs behind bubblewrap with no network but its own dead loopback, no user's files, an empty home and an
environment that is written out in full. That the network is denied is tried first, from inside; where it can't be
shown, nothing is scanned. A scan never runs an operation, and its record (`labd-scan/1`) never holds a journey.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graders import scan as grader
from harness import data, execute, files, helpwalk, isolation
from labd.errors import NotFound, Refused, nearest

#: Seconds a question may take; bytes that are kept of a stream; commands whose help is asked for as well.
LIMIT_S, KEPT, SUBCOMMANDS = 10.0, 256 << 10, 12

_LISTED = re.compile(r"^ {2,6}([a-z][\w-]+) {2,}\S", re.MULTILINE)

PREFIX = "scan-"
WAY_OUT = "apt-get install bubblewrap  # and, in a container, let it make user and network namespaces"

#: Run inside: which of these ways out are open. Prints one JSON object.
PROBE = """
import json, os, socket, sys
def tries(family, kind, address):
    try:
        with socket.socket(family, kind) as one:
            one.settimeout(2)
            one.connect(address)
        return "open"
    except OSError as error:
        return error.strerror or str(error)
told = {
    "the machine's loopback": tries(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(sys.argv[1]))),
    "an address elsewhere": tries(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 9)),
    "a socket of the machine": tries(socket.AF_UNIX, socket.SOCK_STREAM, sys.argv[2]),
    "an abstract socket": tries(socket.AF_UNIX, socket.SOCK_STREAM, "\\0" + sys.argv[2]),
}
print(json.dumps(told))
"""


def scan(name: str, out: Path) -> Path:
    """Scan a program (a path, or a name on PATH); returns the file of its record. Raises NotFound, Refused, OSError."""
    program = _program(name)
    out.mkdir(parents=True, exist_ok=True)
    began = datetime.now(UTC)
    with _room() as room:
        denied = _deny(room, program)
        observed = list(_observe(room, program))
    record: dict[str, Any] = {
        "schema": grader.SCHEMA, "lane": grader.LANE, "isolation": denied, "observations": observed,
        "program": {"name": os.path.basename(program), "sha256": files.file_digest(Path(program).resolve()),
                    "version": _version(observed)},
        "scanned": began.isoformat(timespec="seconds").replace("+00:00", "Z"), "versions": data.versions(),
        "hashes": {name: data.hashes().get(name) for name in ("harness", "graders")},
    }  # fmt: skip
    record["findings"] = grader.findings(record)
    place = out / f"{PREFIX}{os.path.basename(program)}-{began:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}.json"
    files.write_json(place, record)
    return place


def _program(name: str) -> str:
    found = os.path.abspath(name) if "/" in name else shutil.which(name)
    if found is None or not os.path.isfile(found) or not os.access(found, os.X_OK):
        beside = [one.name for one in Path(sys.executable).parent.iterdir()] if "/" not in name else []
        raise NotFound(f"there is no program {name!r}", near=nearest(name, beside), hint="labd-eval scan git")
    return found


# -- where it runs --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _room() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="labd-scan-") as place:
        for name in ("home", "work"):
            (Path(place) / name).mkdir(mode=0o700)
        yield Path(place)


def environment(room: Path) -> dict[str, str]:
    """All that the program is told: no variable of ours or of the user's is among it."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(room / "home"), "TMPDIR": str(room / "work"),
            "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "100"}  # fmt: skip


def _enclosed(room: Path, argv: Sequence[str]) -> list[str]:
    """The words that start `argv` with no network, nobody's files, and one directory that can be written."""
    words = ["bwrap", "--die-with-parent", "--unshare-user", "--unshare-net", "--unshare-ipc", "--unshare-pid",
             "--unshare-uts", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]  # fmt: skip
    hide = isolation.hidden()
    for path in hide:
        words += ["--tmpfs", path]
    for path in isolation.shown(argv[:1], hide):
        words += ["--ro-bind-try", path, path]
    return [*words, "--bind", str(room), str(room), "--chdir", str(room / "work"), "--", *argv]


def _run(room: Path, argv: Sequence[str]) -> execute.Ended:
    return execute.run(_enclosed(room, argv), env=environment(room), cwd=room, limit_s=LIMIT_S, kept=KEPT,
                       halt=lambda _: None)  # fmt: skip


def _deny(room: Path, program: str) -> dict[str, Any]:
    """That nothing gets out, as tried from inside. Raises Refused where that can't be shown."""
    if shutil.which("bwrap") is None:
        raise Refused(f"{program} is not scanned: its network can't be denied here, bwrap is not installed",
                      hint=WAY_OUT)  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="labd-scan-") as outside, contextlib.ExitStack() as held:
        path = os.path.join(outside, "socket")
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in (path, f"\0{path}"):
            one = held.enter_context(socket.socket(socket.AF_UNIX))
            one.bind(address)
            one.listen()
        asked = _run(room, [sys.executable, "-IS", "-c", PROBE, str(listener.getsockname()[1]), path])
    try:
        found = json.loads(asked.stdout) if asked.ok else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        why = asked.stderr.decode("utf-8", "replace").strip()[-200:] or asked.error or f"exit {asked.code}"
        raise Refused(f"{program} is not scanned: its network can't be denied here ({why})", hint=WAY_OUT)
    left = [name for name, told in found.items() if told == "open"]
    if left:
        raise Refused(f"{program} is not scanned: {left[0]} can be reached from inside", hint=WAY_OUT)
    return {"network": "denied", "by": "bwrap --unshare-net", "tried": found, "home": "empty",
            "variables": sorted(environment(room))}  # fmt: skip


# -- what is asked ----------------------------------------------------------------------------------------------------


def _observe(room: Path, program: str) -> Iterator[dict[str, Any]]:
    """Help and version, help of what help names, and mistakes. Nothing else is ever run."""
    for words in (["--version"], ["--help"], ["-h"]):
        asked = _ask(room, program, "page", words)
        yield asked
        if words == ["--help"]:
            asked_for_help = str(asked["stdout"] or asked["stderr"])
    named = _named(asked_for_help)[:SUBCOMMANDS]
    for name in named:
        yield _ask(room, program, "page", [name, "--help"])
    unheard = f"no-such-{secrets.token_hex(4)}"
    if named:
        yield _ask(room, program, "invalid-command", [unheard])
    yield _ask(room, program, "invalid-flag", [f"--{unheard}"])
    if named:
        yield _ask(room, program, "invalid-flag", [named[0], f"--{unheard}"])


def _named(text: str) -> list[str]:
    """The commands that a help page lists, in one of the layouts that are known, else words with a column behind."""
    found = [one.name for one in helpwalk.page(text).commands] or _LISTED.findall(text)
    return [name for name in dict.fromkeys(found) if re.fullmatch(r"[A-Za-z][\w-]*", name)]


def _ask(room: Path, program: str, role: str, words: Sequence[str]) -> dict[str, Any]:
    ended = _run(room, [program, *words])
    return {
        "role": role, "words": list(words), "ended_by": ended.ended_by, "code": ended.code, "signal": ended.signal,
        "cut": ended.cut, "stdout": ended.stdout.decode("utf-8", "replace"),
        "stderr": ended.stderr.decode("utf-8", "replace"), "duration_s": round(ended.duration_s, 3),
    }  # fmt: skip


def _version(observed: Sequence[Mapping[str, Any]]) -> str:
    """The program's own words about its version; empty where it has none."""
    asked = observed[0]
    lines = str(asked["stdout"] or asked["stderr"]).strip().splitlines()
    return lines[0][:200] if asked["code"] == 0 and lines else ""
