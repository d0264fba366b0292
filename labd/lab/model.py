"""The lab as its readers see it: targets, their channels, defaults filled in, and who is meant by a left-out name.

Answers from data that validated; never reads or writes a file. Light: `serial log` pays for this module.
"""

import os

from labd.errors import NotFound, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from labd.call import Call

    Table = dict[str, Any]

#: Channels in the order in which they are always shown.
CHANNELS = ("netboot", "serial", "power", "video", "hid", "adb")

#: How the names of line ends in the lab read on the wire. The characters themselves are accepted as well.
EOLS = {"cr": "\r", "lf": "\n", "crlf": "\r\n", "none": ""}

#: What a serial interface is when the lab does not say. `assert_dtr` depends on `power_button`, see `Lab.serial`.
SERIAL_DEFAULTS = {
    "baud": 115200,
    "bytesize": 8,
    "parity": "none",
    "stopbits": 1,
    "flow": "none",
    "eol": "\r",
    "encoding": "utf-8",
    "prompt": None,
    "power_sense_signal": None,
    "power_button": False,
    "assert_rts": True,
}

#: How much of a journal is kept when the lab does not say: mebibytes and days, an interface.
JOURNAL_DEFAULTS = {"keep_mb": 512, "keep_days": 90}


class Lab:
    """One lab file. `data` is what the file says, validated, defaults not filled; `digest` the sha256 of its bytes.

    `words` are what a command needs to mean this lab: "" for the one that is taken anyway, else `--lab PATH `.
    """

    __slots__ = ("data", "digest", "path", "words")

    def __init__(self, path: str, data: "Table", digest: str, words: str = "") -> None:
        self.path = path
        self.words = words
        self.data = data
        self.digest = digest

    @property
    def directory(self) -> str:
        """Where the file is: relative device paths (`loopback:./dut.toml`) start here."""
        return os.path.dirname(os.path.abspath(self.path))

    @property
    def hosts(self) -> "dict[str, Table]":
        """Every declared host by name. `local`, this machine, is always there without being declared."""
        found: dict[str, Table] = self.data.get("hosts", {})
        return found

    @property
    def targets(self) -> "dict[str, Table]":
        """Every target by name, in the order of the file."""
        found: dict[str, Table] = self.data.get("targets", {})
        return found

    @property
    def journal(self) -> "dict[str, int]":
        """How much to keep of each journal: `keep_mb` mebibytes, `keep_days` days."""
        return {**JOURNAL_DEFAULTS, **self.data.get("journal", {})}

    def policy_levels(self, target: "str | None" = None) -> "list[str]":
        """The policy levels that the file states for this target; the strictest of all that apply wins."""
        tables = [self.data, self.targets.get(target, {}) if target else {}]
        return [table["policy"]["level"] for table in tables if "level" in table.get("policy", {})]

    def target(self, name: str) -> "Table":
        """The table of a target. Raises NotFound with near matches."""
        if name not in self.targets:
            raise NotFound(
                f"no target {name!r} in {self.path}",
                near=nearest(name, list(self.targets)),
                hint=f"labd {self.words}target list" if self.targets else f"labd target add {name}",
            )
        return self.targets[name]

    def host(self, name: str) -> "Table":
        """The table of a declared host. Raises NotFound with near matches."""
        if name not in self.hosts:
            raise NotFound(
                f"no host {name!r} in {self.path}",
                near=nearest(name, list(self.hosts)),
                hint=f"labd {self.words}host list",
            )
        return self.hosts[name]

    def channel(self, target: str, kind: str) -> "Table":
        """The table of a channel other than serial. Raises NotFound with the verb that makes one."""
        table = self.target(target)
        if kind not in table:
            has = ", ".join(channel_names(table)) or "no channel yet"
            raise NotFound(
                f"target {target!r} has no {kind} channel (it has {has})",
                hint=f"labd {self.words}{kind} set -t {target} --help",
            )
        found: Table = table[kind]
        return found

    def serial(self, target: str) -> "list[Table]":
        """The serial interfaces of a target in the order of the file, each with every default filled in.

        `eol` is given as the characters themselves. DTR is asserted on opening unless `assert_dtr` says otherwise
        or it is wired to a power button: capturing must not press it.
        """
        table = self.target(target)
        filled = []
        for entry in table.get("serial", []):
            own = {"name": entry["name"], "device": entry["device"]}
            whole = {**own, **SERIAL_DEFAULTS, "assert_dtr": not entry.get("power_button", False), **entry}
            whole["eol"] = EOLS.get(whole["eol"], whole["eol"])
            whole["host"] = self.host_of(target, entry)
            filled.append(whole)
        return filled

    def host_of(self, target: str, channel: "Mapping[str, Any]") -> str:
        """The host that a channel of a target is wired to: its own, else the target's, else `local`."""
        found: str = channel.get("host") or self.targets[target].get("host") or "local"
        return found

    def resolve_target(self, name: "str | None", call: "Call") -> str:
        """`name` if the lab has it; the sole target if no name was given, which is told to the caller.

        Raises NotFound when it is unknown, or when there is none or more than one to choose from.
        """
        if name is not None:
            self.target(name)
            return name
        names = list(self.targets)
        if not names:
            raise NotFound(f"the lab {self.path} has no target yet", hint=f"labd {self.words}target add NAME")
        if len(names) > 1:
            raise NotFound(
                f"which target? the lab has {len(names)}: {', '.join(names)}",
                near=names,
                hint=f"labd {self.words}target list",
            )
        call.note(f"target {names[0]}")
        return names[0]

    def resolve_interface(self, target: str, name: "str | None", call: "Call") -> "Table":
        """The serial interface `name` of a target with defaults filled; the sole one if no name was given.

        Raises NotFound when it is unknown, or when there is none or more than one to choose from.
        """
        entries = self.serial(target)
        names = [entry["name"] for entry in entries]
        if not names:
            raise NotFound(
                f"target {target!r} has no serial interface",
                hint=f"labd {self.words}serial add console -t {target} -d DEVICE",
            )
        if name is None and len(names) > 1:
            raise NotFound(
                f"which serial interface of {target!r}? it has {len(names)}: {', '.join(names)}",
                near=names,
                hint=_with_interface(call, names[0]),
            )
        if name is None:
            call.note(f"interface {names[0]}")
            return entries[0]
        if name not in names:
            raise NotFound(
                f"no serial interface {name!r} on target {target!r} (it has {', '.join(names)})",
                near=nearest(name, names),
                hint=f"labd {self.words}serial list {target}",
            )
        return entries[names.index(name)]


def virtual_board(table: "Mapping[str, Any]") -> "str | None":
    """The virtual board that a target's table names, as `board:NAME`; None when no channel of it is one."""
    devices = [entry.get("device", "") for entry in (*table.get("serial", ()), table.get("video", {}))]
    return next((device for device in devices if device.startswith("board:")), None)


def quoted(word: str) -> str:
    """A word as a shell takes it. As shlex does it, which costs the start of the program more than all else here."""
    plain = word.isascii() and all(char.isalnum() or char in "@%+=:,./-_" for char in word)
    return word if plain and word else "'" + word.replace("'", "'\"'\"'") + "'"


#: What comes behind `labd` where no lab is meant, or where it is named already.
_ANY_LAB = ("--", "-h", "init", "commands", "daemon", "helper", "skill", "discover", "serial devices", "claim list")


def in_lab(text: "str | None", words: str) -> "str | None":
    """A hint or a note, so that the commands of labd in it mean the lab that `words` name."""
    if not text or not words or "labd " not in text:
        return text
    first, *pieces = text.split("labd ")
    for piece in pieces:
        ours = first[-1:] in ("", " ", "(", "`") and piece[:1].islower() and " --lab " not in piece
        first += f"labd {words if ours and not piece.startswith(_ANY_LAB) else ''}{piece}"
    return first


def _with_interface(call: "Call", name: str) -> str:
    """The call as it was, with an interface."""
    import shlex

    from labd.lab.redact import redact

    at = call.argv.index("--") if "--" in call.argv else len(call.argv)
    words = ["labd", *call.argv[:at], "-i", name, *call.argv[at:]]
    shown, start = [], 0
    for number, word in enumerate(words):
        if word == "--key":  # of ours it names a key on a keyboard, which is no secret
            shown += [redact(shlex.join(words[start:number])), shlex.join(words[number : number + 2])]
            start = number + 2
    return " ".join([text for text in (*shown, redact(shlex.join(words[start:]))) if text])


def channel_names(table: "Mapping[str, Any]") -> "list[str]":
    """The channels of a target's table, serial interfaces as `serial:NAME`, in the fixed order."""
    found: list[str] = []
    for kind in CHANNELS:
        if kind == "serial":
            found += [f"serial:{entry['name']}" for entry in table.get("serial", [])]
        elif kind in table:
            found.append(kind)
    return found
