"""The names that exist just now, for completion: of the lab, of its recordings and triggers, of guides, keys, links.

Reads files, asks no daemon, opens no device. What can't be read has no names. Each kind is one function, and imports
what it needs, as a Tab pays for it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from labd.completing import Option
    from labd.lab.model import Lab as LabFile
    from labd.operations.model import Operation


class Lab:
    """Answers `labd.completing.complete` for the lab that the words mean, in this process's environment."""

    def __init__(self, words: list[str]) -> None:
        self.flag = _lab_flag(words)
        self._read: tuple[LabFile | None] | None = None

    def __call__(self, kind: str, op: Operation, given: dict[str, str]) -> list[Option]:
        """The names of a kind (`labd.operations.model.Param.complete`), each with what it is."""
        find = _KINDS.get(kind)
        if find is None or (kind not in _OF_HELP and not self.may_look):
            return []
        return find(self, op, given)

    @property
    def may_look(self) -> bool:
        """Whether the policy permits what looks: a name that `target list` would refuse is offered by no Tab either."""
        from labd import policy

        lab = self.lab()
        said = [os.environ.get("LABD_POLICY"), *(lab.policy_levels() if lab else ())]
        level, _ = policy.in_force([("policy", level) for level in said if level])
        return policy.permits(level, policy.NEEDS["observe"])

    @property
    def path(self) -> str:
        """The lab file in force."""
        from labd import paths

        return paths.lab_path(os.environ, os.getcwd(), self.flag)

    def lab(self) -> LabFile | None:
        """The lab, read once; None where there is none or it is broken."""
        if self._read is None:
            self._read = (_lab_at(self.path),)
        return self._read[0]


def _lab_at(path: str) -> LabFile | None:
    if not os.path.isfile(path):
        return None
    from labd.errors import LabdError
    from labd.lab import load

    try:
        return load(path, os.environ)
    except LabdError:
        return None


def _lab_flag(words: list[str]) -> str | None:
    for number, word in enumerate(words):
        if word == "--":
            return None
        if word == "--lab" and number + 1 < len(words):
            return words[number + 1]
        if word.startswith("--lab="):
            return word[6:]
    return None


def _targets(at: Lab, op: Operation, given: dict[str, str]) -> list[Option]:
    from labd.lab.model import channel_names

    lab = at.lab()
    return [(name, table.get("description") or ", ".join(channel_names(table)))
            for name, table in lab.targets.items()] if lab else []  # fmt: skip


def _interfaces(at: Lab, op: Operation, given: dict[str, str]) -> list[Option]:
    """Those of the target that the line names, where it names one; else those of all."""
    lab = at.lab()
    if lab is None:
        return []
    named = given.get("target")
    tables = [lab.targets[named]] if named in lab.targets else list(lab.targets.values())
    return [(entry["name"], entry["device"]) for table in tables for entry in table.get("serial", [])]


def _hosts(at: Lab, op: Operation, given: dict[str, str]) -> list[Option]:
    lab = at.lab()
    declared = [(name, str(table.get("description") or table.get("ssh", ""))) for name, table in
                (lab.hosts if lab else {}).items()]  # fmt: skip
    return declared if op.path[0] == "host" else [*declared, ("local", "this machine")]


def _recordings(at: Lab, op: Operation, given: dict[str, str]) -> list[Option]:
    from labd.recordings import Recordings

    lab = at.lab()
    targets = list(lab.targets) if lab else []
    named = given.get("target")
    return [
        (entry["name"], str(entry.get("why") or target))
        for target in ([named] if named in targets else targets)
        for entry in Recordings(os.environ, at.path, target).all()
        if op.path[-1] != "stop" or entry["until_ns"] is None
    ]


def _triggers(at: Lab, op: Operation, given: dict[str, str]) -> list[Option]:
    from labd import paths
    from labd.trigger_store import TriggerStore

    _, rows = TriggerStore(paths.runtime_dir(os.environ), lambda _: None).load()
    return [(str(row["id"]), f"{row['key'][1]}: {row['pattern']}") for row in rows if row["key"][0] == at.path]


def _skills(at: Lab, op: Operation, given: dict[str, str]) -> list[Option]:
    from labd.operations import skill

    found = []
    for name, path in skill.skills().items():
        with open(path, encoding="utf-8") as file:
            found.append((name, skill.frontmatter(file.read()).get("description", "")))
    return found


def _keys(at: Lab, op: Operation, given: dict[str, str]) -> list[Option]:
    from labd.keys import names

    return [(name, "") for name in names()]


def _fields(at: Lab, op: Operation, given: dict[str, str]) -> list[Option]:
    """What --unset clears: the fields that this very verb sets."""
    from labd.lab import schema

    tables = {"host": schema.HOST, "target": schema.TARGET, "serial": schema.SERIAL, **schema.SINGLE_CHANNELS}
    settable = {param.name for param in op.params if param.flags}
    return [(field.key, field.help) for field in tables.get(op.path[0], {}).values()
            if field.key in settable and not field.required]  # fmt: skip


def _links(at: Lab, op: Operation, given: dict[str, str]) -> list[Option]:
    import _socket

    return [(name, "") for _, name in _socket.if_nameindex() if name != "lo"]


def _pages(at: Lab, op: Operation, given: dict[str, str]) -> list[Option]:
    from labd.operations import NOUNS

    return [("labd", "all of it"), *((noun, what) for noun, (_, what) in NOUNS.items())]


#: What comes with the program, and says nothing of a lab or a machine.
_OF_HELP = frozenset({"skill", "key", "field", "page"})

_KINDS = {
    "target": _targets, "interface": _interfaces, "host": _hosts, "recording": _recordings, "trigger": _triggers,
    "skill": _skills, "key": _keys, "field": _fields, "link": _links, "page": _pages,
}  # fmt: skip
