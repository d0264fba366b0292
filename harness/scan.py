"""The scan lane: any program's help and errors, without credentials, without a network, and with nothing to change.

Each question runs behind bubblewrap with no network but its own dead loopback, no files but the system's and its own
(harness/enclosure.py), an empty home and an environment that is written out in full. That nothing else is reached is
tried first, from inside; where it can't be shown, nothing is scanned. A scan never runs an operation, and its record
(`labd-scan/1`) never holds a journey.
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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graders import scan as grader
from harness import data, enclosure, execute, files, helpwalk
from labd.errors import NotFound, Refused, nearest

#: Seconds a question may take; bytes that are kept of a stream; commands whose help is asked for as well.
LIMIT_S, KEPT, SUBCOMMANDS = 10.0, 256 << 10, 12

_LISTED = re.compile(r"^ {2,6}([a-z][\w-]+) {2,}\S", re.MULTILINE)

PREFIX = "scan-"
WAY_OUT = "apt-get install bubblewrap  # and, in a container, let it make user and network namespaces"

#: Run inside: which of these ways out are open. Prints one JSON object.
PROBE = """
import json, os, socket, sys
port, hidden, beside = sys.argv[1:]
def tries(family, kind, address):
    try:
        with socket.socket(family, kind) as one:
            one.settimeout(2)
            one.connect(address)
        return "open"
    except OSError as error:
        return error.strerror or str(error)
def there(directory):
    try:
        os.chdir(directory)  # a socket's own name is short enough to be connected to, wherever it is
        return tries(socket.AF_UNIX, socket.SOCK_STREAM, "socket")
    except OSError as error:
        return error.strerror
    finally:
        os.chdir("/")
def reads(path):
    try:
        open(path, "rb").close()
        return "open"
    except OSError as error:
        return error.strerror
told = {
    "the machine's loopback": tries(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(port))),
    "an address elsewhere": tries(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 9)),
    "a socket of the machine": there(hidden),
    "a socket beside the record": there(beside),
    "an abstract socket": tries(socket.AF_UNIX, socket.SOCK_STREAM, "\\0" + hidden),
    "a file beside the record": reads(beside + "/file"),
    "/etc/shadow": reads("/etc/shadow"),
}
print(json.dumps(told))
"""


def scan(name: str, out: Path) -> Path:
    """Scan a program (a path, or a name on PATH); returns the file of its record. Raises NotFound, Refused, OSError."""
    program = _program(name)
    out.mkdir(parents=True, exist_ok=True)
    began = datetime.now(UTC)
    with _room() as room:
        inside = _Place(room, program, out)
        denied = _deny(inside)
        observed = list(_observe(inside))
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


@dataclass(frozen=True)
class _Place:
    """Where a program is asked: the room that is its own, and `out`, which it must not see."""

    room: Path
    program: str
    out: Path

    def run(self, argv: Sequence[str]) -> execute.Ended:
        """With no network, no files but the system's and those of what is started, and one place to write in."""
        words = ["bwrap", "--die-with-parent", "--unshare-user", "--unshare-net", "--unshare-ipc", "--unshare-pid",
                 "--unshare-uts", *enclosure.words(self.room, enclosure.trees(argv[0]) + _ours(argv[0]), self.out),
                 "--chdir", str(self.room / "work"), "--", *argv]  # fmt: skip
        return execute.run(words, env=environment(self.room), cwd=self.room, limit_s=LIMIT_S, kept=KEPT,
                           halt=lambda _: None)  # fmt: skip


@contextlib.contextmanager
def _room() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="labd-scan-") as place:
        enclosure.furnish(Path(place))
        yield Path(place)


def environment(room: Path) -> dict[str, str]:
    """All that the program is told: no variable of ours or of the user's is among it."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(room / "home"), "TMPDIR": str(room / "work"),
            "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "100"}  # fmt: skip


def _ours(program: str) -> list[str]:
    """Our own packages, for a program of this very installation: they may lie elsewhere (pip install -e)."""
    if os.path.dirname(program) != os.path.dirname(sys.executable):
        return []
    root = Path(__file__).resolve().parent.parent
    return [str(root / name) for name in ("labd", "harness", "graders") if (root / name).is_dir()]


def _deny(place: _Place) -> dict[str, Any]:
    """That nothing gets out, as tried from inside. Raises Refused where that can't be shown."""
    program, room = place.program, place.room
    if shutil.which("bwrap") is None:
        raise Refused(f"{program} is not scanned: its network can't be denied here, bwrap is not installed",
                      hint=WAY_OUT)  # fmt: skip
    with contextlib.ExitStack() as held:
        hidden, beside = (held.enter_context(tempfile.TemporaryDirectory(prefix="labd-scan-", dir=one))
                          for one in (None, os.path.abspath(place.out)))  # fmt: skip
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        _listen(held, f"\0{hidden}")
        for directory in (hidden, beside):
            opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, opened)
            _listen(held, f"/proc/self/fd/{opened}/socket")  # as short as a socket's name must be
        Path(beside, "file").touch()
        asked = place.run([sys.executable, "-IS", "-c", PROBE, str(listener.getsockname()[1]), hidden, beside])
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
            "readable": [*enclosure.SYSTEM, *(f"/etc/{one}" for one in enclosure.ETC), *enclosure.trees(program)],
            "variables": sorted(environment(room))}  # fmt: skip


def _listen(held: contextlib.ExitStack, address: str) -> None:
    one = held.enter_context(socket.socket(socket.AF_UNIX))
    one.bind(address)
    one.listen()


# -- what is asked ----------------------------------------------------------------------------------------------------


def _observe(place: _Place) -> Iterator[dict[str, Any]]:
    """Help and version, help of what help names, and mistakes. Nothing else is ever run."""
    for words in (["--version"], ["--help"], ["-h"]):
        asked = _ask(place, "page", words)
        yield asked
        if words == ["--help"]:
            asked_for_help = str(asked["stdout"] or asked["stderr"])
    named = _named(asked_for_help)[:SUBCOMMANDS]
    for name in named:
        yield _ask(place, "page", [name, "--help"])
    unheard = f"no-such-{secrets.token_hex(4)}"
    if named:
        yield _ask(place, "invalid-command", [unheard])
    yield _ask(place, "invalid-flag", [f"--{unheard}"])
    if named:
        yield _ask(place, "invalid-flag", [named[0], f"--{unheard}"])


def _named(text: str) -> list[str]:
    """The commands that a help page lists, in one of the layouts that are known, else words with a column behind."""
    found = [one.name for one in helpwalk.page(text).commands] or _LISTED.findall(text)
    return [name for name in dict.fromkeys(found) if re.fullmatch(r"[A-Za-z][\w-]*", name)]


def _ask(place: _Place, role: str, words: Sequence[str]) -> dict[str, Any]:
    ended = place.run([place.program, *words])
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
