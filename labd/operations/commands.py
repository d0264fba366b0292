"""`labd commands`: the table of operations itself, to list, to search, to check words against."""

from __future__ import annotations

from labd.errors import Usage, nearest
from labd.operations.model import Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

FLAGS = ("--search", "--check", "--json", "--help", "--quiet", "--lab")

#: What a word is worth where it is found.
WEIGHTS = (("path", 8), ("summary", 4), ("examples", 2), ("params", 2), ("doc", 1))

#: Words of a question that say nothing about the command.
FILLERS = frozenset(
    ("a", "an", "the", "to", "of", "in", "on", "for", "with", "and", "or", "my", "me", "i", "it", "is", "do", "how",
     "can", "what", "from", "by", "labd", "board", "s")
)  # fmt: skip

#: What people of the field call things, and the words of the table.
SYNONYMS = {
    "reboot": ("cycle",), "restart": ("cycle",), "reset": ("cycle",), "turn": ("power",),
    "switch": ("power",), "plug": ("helper", "power"), "shelly": ("shellyplug",), "outlet": ("power", "helper"),
    "pdu": ("helper", "power"), "vpro": ("amt",), "hub": ("usbhub",), "powered": ("state",), "tap": ("input",),
    "uart": ("serial",), "console": ("serial",), "terminal": ("serial",), "tty": ("serial",), "port": ("serial",),
    "read": ("log", "show"), "output": ("log",), "print": ("log",), "said": ("log",),
    "capture": ("watch",), "record": ("watch", "log"),
    "type": ("send",), "write": ("send",), "keystroke": ("send",), "keyboard": ("hid",), "mouse": ("hid",),
    "screen": ("video",), "screenshot": ("video", "shot"), "camera": ("video",), "hdmi": ("video",),
    "android": ("adb",), "tablet": ("adb",), "phone": ("adb",), "tftp": ("netboot",), "pxe": ("netboot",),
    "dhcp": ("netboot",), "hardware": ("discover",), "plugged": ("doctor", "discover"), "present": ("doctor",),
    "check": ("doctor",), "consistent": ("doctor",), "verify": ("doctor",), "create": ("add", "init"),
    "new": ("add", "init"), "delete": ("rm",), "remove": ("rm",), "change": ("set",), "edit": ("set", "edit"),
    "device": ("target", "device"), "machine": ("host", "discover"), "guide": ("skill",), "docs": ("skill",),
    "program": ("helper",), "background": ("daemons",), "service": ("daemon",),
}  # fmt: skip


def described(op: Operation) -> dict[str, Any]:
    """One operation as plain data, with everything that any face needs to know about it."""
    return {
        "path": op.name,
        "aliases": [" ".join(path) for path in op.aliases],
        "summary": op.summary,
        "doc": op.doc,
        "effect": op.effect,
        "where": op.where,
        "stream": op.stream,
        "opaque": op.opaque,
        "missing": op.missing or None,
        "params": [_param(param) for param in op.params],
        "examples": [{"command": command, "what": what} for command, what in op.examples],
    }


def _param(param: Param) -> dict[str, Any]:
    return {
        "name": param.name,
        "help": param.help,
        "kind": param.kind,
        "unit": param.unit or None,
        "flags": list(param.flags),
        "positional": param.positional,
        "required": param.required,
        "unless": list(param.unless),
        "default": param.default,
        "choices": list(param.choices),
        "minimum": param.minimum,
        "maximum": param.maximum,
        "repeat": param.repeat,
        "complete": param.complete or None,
    }


def search(table: list[dict[str, Any]], words: list[str]) -> list[dict[str, Any]]:
    """The operations that fit the words, best first; what does not run yet comes after its equals."""
    wanted = [word for word in words if word not in FILLERS] or words
    scored = []
    for place, entry in enumerate(table):
        fields = {
            "path": " ".join([entry["path"], *entry["aliases"]]),
            "summary": entry["summary"],
            "doc": entry["doc"],
            "params": " ".join(" ".join([p["name"], p["help"], *p["flags"]]) for p in entry["params"]),
            "examples": " ".join(e["command"] + " " + e["what"] for e in entry["examples"]),
        }
        tokens = {name: set(_words(text)) for name, text in fields.items()}
        points = [_points(word, tokens) for word in wanted]
        if any(points):
            share = sum(1 for p in points if p) / len(points)
            scored.append((-sum(points) * (0.5 + share / 2), bool(entry["missing"]), place, entry))
    return [entry for *_, entry in sorted(scored, key=lambda row: row[:3])]


def _points(word: str, tokens: dict[str, set[str]]) -> float:
    """What one word of the question is worth: itself or its stem in full, or what else it is called in part."""
    others = sum(_weight(other, tokens) for other in SYNONYMS.get(word, SYNONYMS.get(_stem(word), ())))
    return max(_weight(word, tokens), 0.9 * _weight(_stem(word), tokens), 0.4 * others)


def _weight(word: str, tokens: dict[str, set[str]]) -> int:
    """The weight of the best field that has the word, or a longer one that starts with it."""
    for field, weight in WEIGHTS:
        if any(token == word or (len(word) > 3 and token.startswith(word)) for token in tokens[field]):
            return weight
    return 0


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _words(text: str) -> list[str]:
    import re

    return re.findall(r"[a-z0-9]+", text.lower())


def near(table: list[dict[str, Any]], words: list[str]) -> tuple[bool, list[str]]:
    """(True, operations whose words look like the ones asked for), or (False, all groups) when none does."""
    known = {word for entry in table for word in _words(entry["path"])}
    alike = {hit for word in words for hit in nearest(word, sorted(known))}
    paths = [entry["path"] for entry in table if alike & set(_words(entry["path"]))]
    return (True, paths[:12]) if paths else (False, list(dict.fromkeys(entry["path"].split(" ")[0] for entry in table)))


def _commands(call: Call, args: Args) -> Any:
    if args.check:
        if args.search is not None:
            raise Usage("--check and --search exclude each other")
        return _check(args.words)
    words = list(args.words)
    if "--json" in words:  # behind the first word of a search, the parser takes it for one more
        words.remove("--json")
        call.json = True
    if args.search is None and words:
        flags = any(word.startswith("-") for word in words)
        import shlex  # a failed call may pay for it, the table may not

        hint = f"labd commands {'--check --' if flags else '--search'} {shlex.join(words)}"
        raise Usage(f"labd commands has no place for {words[0]!r}", hint=hint)
    from labd.operations import all_operations

    table = [described(op) for op in all_operations()]
    if args.search is None:
        return {"operations": table}
    flag = next((word for word in (args.search, *words) if word.startswith("-")), None)
    if flag is not None:
        raise Usage(f"labd commands has no flag {flag!r}, and a search is for words", near=nearest(flag, FLAGS),
                    hint="labd commands --help")  # fmt: skip
    wanted = _words(" ".join([args.search, *words]))
    if not wanted:
        raise Usage("--search needs words, like: --search power cycle", hint="labd commands")
    found = search(table, wanted)
    if not found:
        alike, paths = near(table, wanted)
        return {"search": wanted, "operations": [], "alike": alike, "near": paths}
    return {"search": wanted, "operations": found}


def _check(words: list[str]) -> Answer:
    """Whether words are a command, without running it: exit 0, or 2 with the reason (4: no such helper or the like)."""
    from labd.argv import parse

    if words[:1] == ["labd"]:
        words = words[1:]
    if not words:
        raise Usage("--check needs the words of a command behind --", hint="labd commands --check -- target add pico")
    parsed = parse(words)
    op = parsed.operation
    if op is None:
        what = "help" if parsed.words or parsed.wants_help else "version"
        return Answer({"ok": True, "path": " ".join(parsed.words), "help": what == "help"}, text=f"ok: {what}")
    data = {"ok": True, "path": op.name, "effect": op.effect, "help": parsed.wants_help, "missing": op.missing or None}
    missing = f"; not in this version: {op.missing}" if op.missing else ""
    return Answer(data, text=f"ok: labd {op.name} (effect: {op.effect}{missing})")


def _text(data: Any, call: Call) -> str:
    from labd.render import columns

    if not data["operations"]:
        listed = "\n".join(f"  labd {path}" for path in data["near"])
        what = "what looks like it" if data["alike"] else "nothing looks like it; what there is"
        return f"no command is about {' '.join(data['search'])}; {what}:\n{listed}\nall of them: labd commands"
    most = 12 if "search" in data else len(data["operations"])
    rows: list[tuple[str, ...]] = [
        (f"labd {entry['path']}", entry["summary"] + (" (not in this version)" if entry["missing"] else ""))
        for entry in data["operations"][:most]
    ]
    lines = [columns(rows, call.columns, "")]
    if len(data["operations"]) > most:
        lines.append(f"{most} of {len(data['operations'])}, best first; add words to narrow it, or --json for all")
    return "\n".join([*lines, "", "more: labd COMMAND --help · labd commands --search WORDS"])


OPERATIONS = (
    Operation(
        ("commands",),
        "every command: list, search, check",
        effect="help",
        doc="With --json, the whole table: each command's words, parameters with units and defaults, effect and "
        "examples. --check tells whether words are a command that exists, and runs nothing: exit 0, or 2 with the "
        "reason.",
        params=(
            Param("search", "rank the commands by these words", flags=("--search",), metavar="WORDS"),
            Param("check", "only tell whether the words behind -- are a command", kind="switch", flags=("--check",),
                  default=False),
            Param("words", "more words of --search, or the command for --check", kind="rest",
                  complete="command"),
        ),
        handler=_commands,
        text=_text,
        examples=(
            ("labd commands --search power cycle", "which commands are about that"),
            ("labd commands --json", "the whole table for a program"),
            ("labd commands --check -- serial send pico 'uname -a'", "whether these words would be understood"),
        ),
    ),
)  # fmt: skip
