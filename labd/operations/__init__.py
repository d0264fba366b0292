"""The table of operations: one module a noun. Only the module that is addressed gets imported.

From this table come the command line, `--help`, `labd commands`, the RPC methods and the allowlist of the exam.
"""

from __future__ import annotations

from labd.errors import Usage, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from labd.operations.model import Operation

#: First word → (module of this package, what the noun is). The order is the order of `labd --help`.
NOUNS = {
    "init": ("config", "make an empty lab file"),
    "config": ("config", "the lab file: show it, its path, edit it"),
    "target": ("target", "the boards of the lab"),
    "host": ("host", "machines that hardware is wired to"),
    "serial": ("serial", "serial consoles: configure, capture, send, read back"),
    "power": ("power", "power hooks of a target"),
    "power-cycle": ("power", "switch a target off and on again"),
    "power-state": ("power", "tell whether a target has power, without changing it"),
    "video": ("video", "screen capture of a target"),
    "hid": ("hid", "emulated keyboard and mouse"),
    "netboot": ("netboot", "boot a target over the network"),
    "netif": ("netif", "the Ethernet link that leads to a target"),
    "adb": ("adb", "Android targets over adb"),
    "timeline": ("timeline", "everything that happened to a target, in one order"),
    "record": ("record", "keep a bench session and hand it to somebody else"),
    "claim": ("claim", "claim a board for yourself, see who has which"),
    "release": ("claim", "give a claimed board back"),
    "discover": ("bench", "list this machine's hardware that a lab could use"),
    "doctor": ("bench", "check the lab against what is really plugged in"),
    "configure": ("bench", "propose a target block for the lab; writes nothing"),
    "setup": ("setup", "install labd and what it needs, here or on a host"),
    "daemon": ("daemons", "run the daemon in the foreground (systemd, launchd)"),
    "daemons": ("daemons", "what runs in the background: list, stop, restart"),
    "helper": ("helper", "small programs for power and input hooks"),
    "skill": ("skill", "guides for agents, to read on demand"),
    "completion": ("completion", "have bash, zsh or fish complete these words"),
    "mcp": ("mcp", "the bench as tools of an agent's program"),
    "man": ("man", "the manual pages"),
    "commands": ("commands", "every command, searchable and machine-readable"),
}


def noun_operations(noun: str) -> list[Operation]:
    """The operations with a spelling whose first word is `noun`, in the order of help: `power cycle` is `power-cycle`.

    Raises Usage for an unknown noun.
    """
    if noun not in NOUNS:
        near = nearest(noun, list(NOUNS))
        raise Usage(f"no command {noun!r}", near=near, hint=f"labd commands --search {noun}" if noun.isalnum() else
                    "labd --help")  # fmt: skip
    module = __import__(f"labd.operations.{NOUNS[noun][0]}", fromlist=["OPERATIONS"])
    found: list[Operation] = [op for op in module.OPERATIONS if noun in {path[0] for path in (op.path, *op.aliases)}]
    return found


def all_operations() -> list[Operation]:
    """The whole table, in the order of help."""
    return [op for noun in NOUNS for op in noun_operations(noun) if op.path[0] == noun]
