"""The small programs that power and input hooks call, found by name: one module a helper, usable alone.

A helper is a module of this package whose name has no leading underscore. The first line of its docstring says
what it is for; the literals USAGE (a paragraph) and EXAMPLES ((words, what they do) pairs), whose parentheses open at
the end of a line and close on a line of their own, are its page in `labd helper NAME --help`; run with `python -m` it
is the program. A new helper is one new file. Helpers talk to devices, never to the lab, the daemon or each other.
"""

from __future__ import annotations

import os
import sys

from labd.errors import NotFound, nearest
from labd.lab.model import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def bundled() -> dict[str, str]:
    """Every bundled helper: name → the line that says what it is for. Reads the files, imports none of them."""
    entries = (os.path.splitext(entry) for entry in sorted(os.listdir(_FOLDER)))
    names = (name for name, extension in entries if extension == ".py" and not name.startswith("_"))
    return {name: _source(name).partition('"""')[2].partition("\n")[0].rstrip('".') for name in names}


def has(name: str) -> bool:
    """Whether a helper of this name is bundled."""
    return name.isidentifier() and name[:1] != "_" and os.path.exists(os.path.join(_FOLDER, f"{name}.py"))


def described(name: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """(USAGE, EXAMPLES) as the helper's module spells them: a paragraph, and (words, what they do) pairs."""
    source = _source(name)
    return _literal(source, "USAGE", ""), _literal(source, "EXAMPLES", ())


def _literal(source: str, name: str, default: Any) -> Any:
    """What the module gives `name`: a literal in parentheses, which end a line of their own.

    Cut out of the text, as the table of operations needs it and parsing whole modules would cost it more than the rest.
    """
    _, found, behind = source.partition(f"\n{name} = (\n")
    return eval(f"({behind.partition(f'{chr(10)})')[0]})", {"__builtins__": {}}) if found else default


def _source(name: str) -> str:
    with open(os.path.join(_FOLDER, f"{name}.py"), encoding="utf-8") as file:
        return file.read()


def check(name: str) -> None:
    """Raise NotFound, with near matches, unless `name` is a bundled helper."""
    names = list(bundled())
    if name not in names:
        raise NotFound(
            f"no bundled helper {name!r}; there is {', '.join(names)}", near=nearest(name, names), hint="labd helper"
        )


def place(folder: str) -> None:
    """Make every helper a program of its own name in `folder`, for hooks whose shell or script calls one by name.

    What is there and right stays untouched; whatever reads it meanwhile sees the old file or the new one. Raises
    OSError.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for name in bundled():
        script = f'#!/bin/sh\nexec {quoted(sys.executable)} -P -m labd.helpers.{name} "$@"\n'
        path = os.path.join(folder, name)
        try:
            with open(path, encoding="utf-8") as file:
                if file.read() == script:
                    continue
        except OSError:
            pass
        fresh = f"{path}.{os.getpid()}"
        try:
            with open(fresh, "w", encoding="utf-8") as file:
                file.write(script)
            os.chmod(fresh, 0o700)
            os.replace(fresh, path)
        except OSError:
            if os.path.exists(fresh):
                os.unlink(fresh)
            raise


def command(name: str) -> list[str]:
    """The argv prefix that runs a bundled helper as a program of its own; a hook's first word becomes this.

    Raises NotFound for a name that is not bundled.
    """
    check(name)
    return [sys.executable, "-P", "-m", f"labd.helpers.{name}"]
