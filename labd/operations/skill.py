"""`labd skill`: guides for agents that come with the program, read on demand."""

from __future__ import annotations

import os

from labd.errors import NotFound, nearest
from labd.operations.model import Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "skills")


def skills() -> dict[str, str]:
    """Every bundled skill: name → the path of its SKILL.md."""
    paths = ((name, os.path.join(FOLDER, name, "SKILL.md")) for name in sorted(os.listdir(FOLDER)))
    return {name: path for name, path in paths if os.path.isfile(path)}


def frontmatter(text: str) -> dict[str, str]:
    """The `key: value` lines between the two `---` at the start of a SKILL.md; empty when there are none."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---" or "---" not in lines[1:]:
        return {}
    pairs = (line.partition(":") for line in lines[1 : lines.index("---", 1)] if ":" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _skill(call: Call, args: Args) -> Any:
    found = skills()
    if args.name is None:
        if args.path:
            return Answer({"path": FOLDER}, text=FOLDER)
        rows = [{"name": name, "description": frontmatter(_read(path)).get("description", ""), "path": path}
                for name, path in found.items()]  # fmt: skip
        return {"skills": rows}
    if args.name not in found:
        raise NotFound(
            f"no skill {args.name!r}; there is {', '.join(found)}",
            near=nearest(args.name, list(found)),
            hint="labd skill",
        )
    path = found[args.name]
    if args.path:
        return Answer({"name": args.name, "path": path}, text=path)
    text = _read(path)
    return Answer({"name": args.name, "path": path, "text": text}, text=text.rstrip("\n"))


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _text(data: Any, call: Call) -> str:
    from labd.render import columns

    rows: list[tuple[str, ...]] = [(entry["name"], entry["description"]) for entry in data["skills"]]
    return "\n".join(["skills:", columns(rows, call.columns), "", "read one: labd skill NAME"])


OPERATIONS = (
    Operation(
        ("skill",),
        "list the guides for agents, or print one",
        effect="help",
        params=(
            Param("name", "which guide; without it, all are listed", complete="skill"),
            Param("path", "print where its SKILL.md is instead", kind="switch", flags=("--path",), default=False),
        ),
        handler=_skill,
        text=_text,
        examples=(
            ("labd skill", "which guides there are"),
            ("labd skill labd", "how to work with a bench, on one page"),
            ("labd skill labd --path", "its file, to register it with an agent"),
        ),
        aliases=(("skill", "list"),),
    ),
)
