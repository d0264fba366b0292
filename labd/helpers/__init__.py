"""The small programs that power and input hooks call, found by name: one module a helper, usable alone.

A helper is a module of this package whose name has no leading underscore. The first line of its docstring says
what it is for; the literals USAGE (a paragraph) and EXAMPLES ((words, what they do) pairs) are its page in
`labd helper NAME --help`; run with `python -m` it is the program. A new helper is one new file. Helpers talk to
devices, never to the lab, the daemon or each other.
"""

import ast
import os
import sys
from typing import Any

from labd.errors import NotFound, nearest

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def bundled() -> dict[str, str]:
    """Every bundled helper: name → the line that says what it is for. Reads the files, imports none of them."""
    entries = (os.path.splitext(entry) for entry in sorted(os.listdir(_FOLDER)))
    names = (name for name, extension in entries if extension == ".py" and not name.startswith("_"))
    return {
        name: (ast.get_docstring(_tree(name), clean=False) or "").strip().split("\n", 1)[0].rstrip(".")
        for name in names
    }


def described(name: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """(USAGE, EXAMPLES) as the helper's module spells them: a paragraph, and (words, what they do) pairs."""
    found: dict[str, Any] = {"USAGE": "", "EXAMPLES": ()}
    for node in _tree(name).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in found:
            found[node.targets[0].id] = ast.literal_eval(node.value)
    return found["USAGE"], found["EXAMPLES"]


def _tree(name: str) -> ast.Module:
    with open(os.path.join(_FOLDER, f"{name}.py"), encoding="utf-8") as file:
        return ast.parse(file.read())


def check(name: str) -> None:
    """Raise NotFound, with near matches, unless `name` is a bundled helper."""
    names = list(bundled())
    if name not in names:
        raise NotFound(
            f"no bundled helper {name!r}; there is {', '.join(names)}", near=nearest(name, names), hint="labd helper"
        )


def command(name: str) -> list[str]:
    """The argv prefix that runs a bundled helper as a program of its own; a hook's first word becomes this.

    Raises NotFound for a name that is not bundled.
    """
    check(name)
    return [sys.executable, "-P", "-m", f"labd.helpers.{name}"]
