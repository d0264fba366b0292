"""Copies of atlas with one planted defect: which there are (fixtures/sabotage/defects.toml), and how one is made.

A copy is a folder of its own: the program, one module more, a file beside that which names the defect, and one line
more in the file that starts it. Nothing of that is in an agent's environment or words. Starts nothing.
"""

import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from graders.contract import CLASSES, SUBTYPES
from graders.shape import Key, Report, Shape, each, is_a, one_of, table
from harness.scenario import fixtures_dir
from labd.errors import LabdError, NotFound, nearest

SUBJECT = "atlas"
TABLE = "sabotage/defects.toml"

#: The line of atlas behind which a defect is put in.
STARTS = "from atlaslib import cli  # noqa: E402"

_text = is_a(str, what="a text")


def _consistent(entry: dict[str, Any], key: str, report: Report) -> None:
    if ("subtype" in entry) != (entry.get("class") == "C"):
        report(f"{key}.subtype", "belongs to class C, which has one", [])


SHAPE: Shape = {
    "defect": Key(each(table({
        "name": Key(_text, required=True), "says": Key(_text, required=True), "scenario": Key(_text, required=True),
        "run": Key(each(_text)), "class": Key(one_of(*CLASSES), required=True), "subtype": Key(one_of(*SUBTYPES)),
        "without": Key(one_of(*CLASSES)), "tool": Key(is_a(bool, what="true or false")),
    }, _consistent)), required=True),
}  # fmt: skip


@dataclass(frozen=True)
class Defect:
    """One mistake.

    `run`: the commands that meet it (none: the reference of `scenario`). `cls` and `subtype` are what it must be
    called, `without` what the same commands are called where nothing is planted (None: nothing). `tool`: whether it is
    the program's; else the commands themselves are the mistake.
    """

    name: str
    says: str
    scenario: str
    cls: str
    subtype: str | None = None
    without: str | None = None
    run: tuple[str, ...] = ()
    tool: bool = True

    @property
    def verdict(self) -> str:
        """In a word: `C c-truncated`."""
        return f"{self.cls} {self.subtype}" if self.subtype else self.cls


@cache
def defects() -> tuple[Defect, ...]:
    """All of them, in the table's order. Raises LabdError naming each key that is wrong."""
    told = tomllib.loads((fixtures_dir() / TABLE).read_text(encoding="utf-8"))
    problems: list[str] = []
    table(SHAPE)(told, "", lambda key, message, near: problems.append(f"{TABLE}: {key}: {message}"))
    if problems:
        raise LabdError("\n".join(problems), hint="labd-eval gate --help")
    return tuple(_defect(entry) for entry in told["defect"])


def _defect(entry: dict[str, Any]) -> Defect:
    plain = {key: value for key, value in entry.items() if key not in ("class", "run")}
    return Defect(cls=entry["class"], run=tuple(entry.get("run", ())), **plain)


def chosen(names: Sequence[str]) -> tuple[Defect, ...]:
    """Those of these names, all if there is none. Raises NotFound with near matches."""
    known = {one.name: one for one in defects()}
    for name in names:
        if name not in known:
            raise NotFound(f"no defect {name!r}", near=nearest(name, list(known)), hint="labd-eval gate --json")
    return tuple(one for one in known.values() if not names or one.name in names)


def plant(name: str, place: Path) -> Path:
    """A copy of atlas with this defect in the new directory `place`; returns its program.

    Raises NotFound for a name that is none, OSError if the copy can't be written.
    """
    chosen([name])
    shutil.copytree(fixtures_dir() / "atlas", place)
    shutil.copyfile(fixtures_dir() / "sabotage" / "defects.py", place / "atlaslib" / "extra.py")
    (place / "atlaslib" / "extra.txt").write_text(f"{name}\n")
    program = place / "atlas"
    start = program.read_text(encoding="utf-8")
    marked = start.replace(STARTS, f"{STARTS}\nfrom atlaslib.extra import plant  # noqa: E402\n\nplant()")
    assert marked != start, "the file that starts atlas imports its main"
    program.write_text(marked, encoding="utf-8")
    return program
