"""`labd setup --host`: the labd that runs here, put on another machine of the lab; its own `setup` does the rest there.

Needs nothing there but sshd, a shell and Python with venv: the source goes there as it is, into an environment of its
own under the user's data directory, and `labd` into `~/.local/bin`. Doing it twice does it once.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import tarfile

from labd import __version__, build, shim
from labd.errors import LabdError, PassedOn, Unreachable
from labd.remote_link import Link
from labd.remote_ssh import Host, no_way_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

#: What the bench is made of.
PACKAGES = ("labd", "loopback")

#: Seconds for a look at the machine.
LOOK_S = 30.0

#: Says which build is there, and whether Python can make an environment.
LOOK = """d="${XDG_DATA_HOME:-$HOME/.local/share}/labd"; cat "$d/build" 2>/dev/null || echo none
python3 -c 'import sys, venv, ensurepip; print(sys.version_info >= (3, 11))' 2>/dev/null || echo False"""

#: Puts the source on stdin in place of the one that is there, with what it needs.
BRING = """set -eu
d="${XDG_DATA_HOME:-$HOME/.local/share}/labd"; b="$HOME/.local/bin"
mkdir -p "$d" "$b"; rm -rf "$d/source.new" "$d/build"; mkdir "$d/source.new"; tar -xzf - -C "$d/source.new"
[ -x "$d/venv/bin/python" ] || python3 -m venv "$d/venv"
"$d/venv/bin/python" -m pip install --quiet --disable-pip-version-check DEPENDENCIES
rm -rf "$d/source"; mv "$d/source.new" "$d/source"
p=$("$d/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); echo "$d/source" > "$p/labd.pth"
printf '#!%s\\nimport sys\\nfrom labd.thin import main\\nsys.exit(main())\\n' "$d/venv/bin/python" > "$d/venv/bin/labd"
chmod 755 "$d/venv/bin/labd"; ln -sf "$d/venv/bin/labd" "$b/labd"; echo BUILD > "$d/build"
"""


def setup(call: Call, args: Args) -> tuple[dict[str, Any], int]:
    """Bring labd to `args.host` where it is not this very build, with --yes; then the setup of that machine.

    What `labd setup` answers, and the exit code. Raises Unreachable, or PassedOn with what failed there.
    """
    lab = call.lab()
    link = Link(Host(args.host, lab.host(args.host), call.env, lab.directory), call)
    there, python = _look(link)
    ours = build.digest()
    name = link.host.name
    if there != ours and not python:
        raise Unreachable(
            f"host {name!r} has no Python 3.11 with venv and ensurepip, which labd needs",
            hint=f"ssh -t {shlex.quote(link.host.ssh)} sudo apt-get install python3 python3-venv",
        )
    if there != ours and not args.yes:
        detail = f"labd {__version__} of this build ({ours}) is not on {name}; it tells the rest once it is"
        return {"steps": [_row("needed", detail)], "done": False, "after": []}, 0
    if there != ours:
        _bring(call, link, ours)
    step = _row("done", f"labd {__version__} of this build ({ours}) is on {name}")
    code = _on_terminal(call, link, args) if args.yes else 0
    its_own = _asked(link, args)
    after = [*its_own["after"], *_known_by(call, link)]
    return {"steps": [step, *its_own["steps"]], "done": args.yes, "after": after}, code


def _row(state: str, detail: str) -> dict[str, Any]:
    return {"name": "labd", "state": state, "detail": detail, "root": False, "commands": [], "after": None}


def _look(link: Link) -> tuple[str, bool]:
    """(build of labd that was brought there, whether there is a Python for it)."""
    done = link.ssh(link.host.argv(LOOK), LOOK_S)
    if done.code in (None, 255):
        raise no_way_in(link.host, done.err, done.code)
    lines = done.out.decode("utf-8", "replace").split()
    return (lines[-2], lines[-1] == "True") if len(lines) > 1 else ("none", False)


def _bring(call: Call, link: Link, ours: str) -> None:
    call.note(f"bringing labd {__version__} ({ours}) to {link.host.name}; what it needs is installed there by pip …")
    script = BRING.replace("DEPENDENCIES", shlex.join(_needs())).replace("BUILD", ours)
    code = shim.run_attached(link.host.argv(f"sh -c {shlex.quote(script)}"), call, stdin=_source(), stdout=2)
    if code:
        raise PassedOn(f"labd could not be put on host {link.host.name!r}: what ran there ended with exit code {code}",
                       code)  # fmt: skip


def _words(args: Args, *more: str) -> str:
    """The command line that sets that machine up, by the labd that was brought."""
    words = ["setup", *more, *(["--user-only"] if args.user_only else [])]
    return f"$HOME/.local/bin/labd {shlex.join([*words, *(w for name in args.only or () for w in ('--only', name))])}"


def _on_terminal(call: Call, link: Link, args: Args) -> int:
    """Do what that machine needs, on the caller's terminal, so that sudo can ask there; its exit code."""
    terminal = ("-t",) if call.stdin_tty else ("-T",)
    return shim.run_attached(link.host.argv(_words(args, "--yes"), options=terminal), call, stdout=2)


def _asked(link: Link, args: Args) -> dict[str, Any]:
    """What that machine says of itself now."""
    done = link.ssh(link.host.argv(_words(args, "--json")), LOOK_S)
    try:
        found: dict[str, Any] = json.loads(done.out)
        return found
    except ValueError:
        said = done.err.decode("utf-8", "replace").strip().splitlines()
        raise Unreachable(f"labd on host {link.host.name!r} does not say what that machine needs: {said[-1:]}",
                          hint=link.host.by_hand()) from None  # fmt: skip


def _known_by(call: Call, link: Link) -> list[str]:
    """What is left to do, so that the lab's word for that labd means the one that was brought."""
    name = link.host.name
    try:
        link.greet(start=False)
    except LabdError:
        return [f"labd {call.lab_words()}host set {name} --labd-cmd '~/.local/bin/labd'"]
    return [f"labd {call.lab_words()}daemons restart --host {name}"]


def _needs() -> list[str]:
    """The packages that labd needs, as pip takes them. Raises LabdError where this labd was brought here itself."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        return [need for need in requires("labd") or () if "extra ==" not in need]
    except PackageNotFoundError:
        raise LabdError("this labd was brought here from another machine, and does not say what it needs itself",
                        hint="bring it from there, or install it here with pip") from None  # fmt: skip


def _source() -> bytes:
    """The packages as they are here, packed."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as tar:
        for path in _files(root):
            tar.add(path, os.path.relpath(path, root), recursive=False)
    return packed.getvalue()


def _files(root: str) -> Iterator[str]:
    for package in PACKAGES:
        for folder, folders, names in os.walk(os.path.join(root, package)):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            yield from (os.path.join(folder, name) for name in sorted(names))
