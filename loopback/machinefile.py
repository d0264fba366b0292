"""What a virtual board is: one TOML file, `boards/NAME.toml`, that says how QEMU has to be started.

    title = "U-Boot on a PC: …"
    program = "qemu-system-x86_64"       looked for on PATH; `package` is what to install where it is missing
    package = "qemu-system-x86"
    has = ["serial", "video", "keyboard", "tablet", "nic"]      as far as it has them
    args = ["-M", "pc", "-bios", "{rom}", "-netdev", "{nic}", …]

    [files.rom]                          {rom} in args: the first of `look` that exists
    look = ["/usr/lib/u-boot/qemu-x86/u-boot.rom"]
    package = "u-boot-qemu"
    own_copy = true                      a copy that the board may write to, kept with its sockets

{nic} is what the board's Ethernet hangs on (netdev `net0`): a tap of this host, or a network of its own that leads
nowhere. {mac} is its address, the same at each start. Pure but for looking which files are there.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from .strict import DutFileError, Table, near

BOARDS = Path(__file__).parent / "boards"

PARTS = ("serial", "video", "keyboard", "tablet", "nic")


class NoSuchBoardError(Exception):
    """Neither a built-in virtual board nor a file."""


@dataclass(frozen=True)
class File:
    """A file that the board needs."""

    name: str
    look: list[str]
    package: str
    own_copy: bool

    def found(self) -> str | None:
        """The first place where it is."""
        return next((place for place in self.look if os.path.isfile(place)), None)


@dataclass(frozen=True)
class Machine:
    """One virtual board, as its file says."""

    name: str
    title: str
    program: str
    package: str
    has: list[str]
    args: list[str]
    files: list[File] = field(default_factory=list)

    def missing(self) -> list[dict[str, str]]:
        """What this host lacks to play it: `what` in words, and the `package` that has it."""
        lacks = []
        if shutil.which(self.program) is None:
            lacks.append({"what": f"{self.program} is not on PATH", "package": self.package})
        for file in self.files:
            if file.found() is None:
                lacks.append({"what": f"there is no {file.look[0]}", "package": file.package})
        return lacks

    def argv(self, directory: str, nic: str, mac: str) -> list[str]:
        """Program and arguments of the board itself, its own copies made in `directory`. Raises OSError."""
        values = {"nic": nic, "mac": mac, "dir": directory}
        for file in self.files:
            place = file.found() or file.look[0]
            if file.own_copy:
                place = _own(place, os.path.join(directory, file.name))
            values[file.name] = place.replace(",", ",,")  # as QEMU reads them
        return [self.program, *(_filled(arg, values) for arg in self.args)]


def names() -> list[str]:
    """The built-in virtual boards."""
    return sorted(path.stem for path in BOARDS.glob("*.toml"))


def find(name: str) -> Machine:
    """The board called `name`, or in the file `name`. Raises NoSuchBoardError, DutFileError, OSError."""
    if "/" in name or name.endswith(".toml"):
        if not os.path.isfile(name):
            raise NoSuchBoardError(f"no board file {name!r}")
        return load(Path(name))
    if name not in names():
        close = near(name, names())
        meant = f"; did you mean {' or '.join(close)}?" if close else f"; there are: {', '.join(names())}"
        raise NoSuchBoardError(f"no virtual board is named {name!r}{meant}")
    return load(BOARDS / f"{name}.toml")


def load(path: Path) -> Machine:
    """The board in a file. Raises DutFileError, naming the key, for what is wrong in it."""
    try:
        top = Table(tomllib.loads(path.read_text("utf-8")), str(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DutFileError(str(path), "", f"is not TOML: {error}") from None
    has = top.strings("has")
    for part in has:
        if part not in PARTS:
            raise top.fail("has", f"{part!r} is not one of {', '.join(PARTS)}", near(part, PARTS))
    program = top.text("program")
    if not program:
        raise top.fail("program", "is missing")
    board = Machine(path.stem, top.text("title") or "", program, top.text("package") or program, has,
                    top.strings("args"), _files(top))  # fmt: skip
    top.done()
    _check_placeholders(board, top)
    return board


def _files(top: Table) -> list[File]:
    table = top.table("files")
    found = []
    for name in table.data if table else ():
        entry = table.table(name) if table else None
        assert entry is not None
        look = entry.strings("look")
        if not look:
            raise entry.fail("look", "is missing: the places where the file may be")
        found.append(File(name, look, entry.text("package") or look[0], entry.flag("own_copy", False)))
        entry.done()
    return found


def _check_placeholders(board: Machine, top: Table) -> None:
    values = {name: name for name in ("nic", "mac", "dir", *(file.name for file in board.files))}
    for arg in board.args:
        try:
            _filled(arg, values)
        except (KeyError, IndexError, ValueError) as error:
            raise top.fail("args", f"{arg!r}: {error} is nothing that can be filled in; there are "
                                   f"{', '.join('{' + name + '}' for name in values)}") from None  # fmt: skip


def _filled(arg: str, values: dict[str, str]) -> str:
    return arg.format_map(values)


def _own(source: str, copy: str) -> str:
    """A copy that may be written to. One that is there is kept: it holds what the board wrote."""
    if not os.path.exists(copy):
        shutil.copyfile(source, copy + ".new")
        os.replace(copy + ".new", copy)
    return copy
