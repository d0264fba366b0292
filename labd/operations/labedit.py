"""What all verbs that edit the lab share: parameters from the schema, values from the words, the edit, its report.

Called by the configuration operations only. Writes nothing itself: `labd.lab.edit` does. Light at import, since
`serial log` imports its noun's whole module.
"""

from __future__ import annotations

from labd.errors import LabdError, NotFound, Usage, nearest
from labd.operations.model import Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from labd.call import Call
    from labd.lab.change import Change, Path
    from labd.lab.editing import Edited
    from labd.lab.schema import Field
    from labd.operations.model import Args

#: How long an edit may take before the person is told that it goes on, in seconds.
PATIENCE_S = 2.0

#: Of every verb that edits the lab. It makes the call one that only looks (`looking`).
DRY_RUN = Param("dry_run", "tell what would change, and leave the lab as it is", kind="switch", flags=("--dry-run",))

UNSET = Param("unset", "clear this field", flags=("--unset",), metavar="FIELD", repeat=True, complete="field")


def params_of(
    fields: Mapping[str, Field], required: tuple[str, ...] = (), without: tuple[str, ...] = ()
) -> tuple[Param, ...]:
    """One option for each field of a table, in the order of the schema."""
    return tuple(_param(field, field.key in required) for field in fields.values() if field.key not in without)


def _param(field: Field, required: bool) -> Param:
    kind = "str"
    choices = (*field.choices, field.none) if field.none else field.choices
    if choices:
        kind = "choice"
    elif field.kind == "bool":
        kind = "switch"
    elif field.kind in ("int", "float"):
        kind = field.kind
    by_key = {"serial_interface": "interface", "interface": "link"}.get(field.key, "")
    complete = {"host": "host", "path": "file"}.get(field.kind, by_key)
    text = field.help if field.default is None or field.default is False else f"{field.help}; default {field.default}"
    return Param(
        field.key,
        text,
        kind=kind,
        flags=field.flags,
        required=required,
        choices=choices,
        unit=field.unit,
        metavar=field.metavar,
        minimum=field.minimum,
        maximum=field.maximum,
        complete=complete,
    )


class Wish:
    """What a `set` or `add` asks for: values to set by key, keys to clear."""

    __slots__ = ("clear", "values")

    def __init__(self, values: dict[str, Any], clear: list[str]) -> None:
        self.values = values
        self.clear = clear

    def fields(self) -> list[str]:
        """Every key that is named."""
        return [*self.values, *self.clear]


def wish(call: Call, args: Args, fields: Mapping[str, Field]) -> Wish:
    """The values given, each checked, and the fields to clear. Raises Usage naming the flag and the rule."""
    values: dict[str, Any] = {}
    clear: list[str] = []
    for key, value in args.given(*fields).items():
        field = fields[key]
        if field.none and value == field.none:
            clear.append(key)
        else:
            values[key] = _checked(call, field, value)
    for word in vars(args).get("unset") or []:
        key = _field_named(word, fields)
        if key in values:
            raise Usage(f"{fields[key].flags[-1]} sets {key} and --unset {word} clears it; which?")
        if key not in clear:
            clear.append(key)
    return Wish(values, clear)


def _checked(call: Call, field: Field, value: Any) -> Any:
    from labd.lab.validate import value_problem

    flag = _typed(call, field)
    if field.kind == "float" and field.choices:
        value = float(value) if "." in value else int(value)
    if isinstance(value, str):
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise Usage(f"{_typed(call, field)} is not valid UTF-8 text")
        if field.kind == "path":
            value = _whole_path(call, value)
        if field.kind == "command":
            _no_shell(call, flag, value)
    wrong = value_problem(field, value)
    if wrong:
        raise Usage(f"{flag}: {wrong}")
    return value


def _whole_path(call: Call, value: str) -> str:
    """A path as the lab keeps it: a relative one would mean something else from every directory."""
    import os

    if not value.strip() or value.startswith(("/", "~")):
        return value
    return os.path.normpath(os.path.join(call.cwd, value))


def _typed(call: Call, field: Field) -> str:
    """The flag as it was typed, of those that mean this field."""
    given = [word.partition("=")[0] for word in call.argv]
    return next((flag for flag in field.flags if flag in given), field.flags[0])


def _no_shell(call: Call, flag: str, command: str) -> None:
    """Raise Usage for a command that only a shell understands, with the form that works. No secret is told."""
    from labd.lab.hooks import quotable, take_apart

    try:
        found = take_apart(command)
    except ValueError as error:
        raise Usage(f"{flag}: {error}") from None
    if found.shell:
        raise Usage(
            f"{flag}: commands of the lab run without a shell, and this one needs one for {_shell_told(found.shell)}",
            hint=_with_shell(call, flag, command) + _quoted(flag, quotable(command)),
        )


def _quoted(flag: str, command: str) -> str:
    """The other way, where characters may be meant as they are: a command with its words quoted."""
    from labd.lab.redact import redact

    return redact(f'  # or, if it is meant as it is written: {flag} "{command}"') if command else ""


def _shell_told(what: str) -> str:
    from labd.lab.redact import redact

    return redact(what)


def _with_shell(call: Call, flag: str, command: str) -> str:
    """The call that works, if it can be read; else the form of it."""
    import shlex

    from labd.lab.redact import redact

    odd = set(command) & set("'\"\\$`")  # what means something within quotes
    readable = redact(command) == command and command.isprintable() and not ("'" in odd or {'"', "\\"} & odd)
    script = command if readable else "…"
    wrapped = f"'sh -c \"{script}\"'" if readable and odd else f"\"sh -c '{script}'\""
    words = []
    for word in call.argv:
        name, equals, value = word.partition("=")
        if word == command:
            words.append(wrapped)
        elif equals and value == command and name in (flag, flag.lstrip("-")):
            words.append(f"{name}={wrapped}")
        else:
            words.append(shlex.quote(word))
    more = "" if readable else "  # with your command for …; if it has quotes of its own, put it into a script"
    return redact(f"labd {' '.join(words)}") + more if wrapped in " ".join(words) else f"{flag} {wrapped}{more}"


def tell_board(call: Call, device: str | None, host: str | None) -> None:
    """Say so where a simulated or virtual board is named that this machine has not; another host's are its own."""
    import os

    if device is None or host is not None or not device.startswith(("loopback:", "board:")):
        return
    from labd.inventory import unknown_board

    why = unknown_board(device, call.env, os.path.dirname(call.lab_path))
    if why:
        call.note(f"{why}; labd discover lists them")


def _field_named(word: str, fields: Mapping[str, Field]) -> str:
    """The key that a word after --unset means: its key, or one of its flags without the dashes."""
    spellings = {name: field.key for field in fields.values() for name in _spellings(field)}
    key = spellings.get(word.lower().lstrip("-").replace("-", "_"))
    if key is None:
        raise Usage(f"--unset: no field {word!r} here (there is {', '.join(fields)})", near=nearest(word, list(fields)))
    if fields[key].required:
        raise Usage(f"--unset: {key} cannot be cleared, only changed ({fields[key].flags[-1]} VALUE)")
    return key


def _spellings(field: Field) -> list[str]:
    return [field.key, *(flag.lstrip("-").replace("-", "_") for flag in field.flags if flag.startswith("--"))]


def require_any(found: Wish, fields: Mapping[str, Field], without: tuple[str, ...] = ()) -> None:
    """Raise Usage if nothing is to be set and nothing cleared."""
    if not found.fields():
        flags = ", ".join(field.flags[-1] for field in fields.values() if field.key not in without)
        raise Usage(f"nothing to set; there is {flags}, --unset FIELD")


def edit(call: Call, args: Args, change: Callable[[dict[str, Any]], Iterable[Change]], report: Report) -> None:
    """Make the edit on this call's lab, put its digests into the record, tell of a new file. With --dry-run only tell
    `report` what the file would be."""
    import threading

    from labd import lab

    if args.dry_run:
        report.would(call, lab.foresee(call.lab_path, change, call.env))
        return
    told = f"still editing {call.lab_path}: it is large, or somebody else is editing it"
    patience = threading.Timer(PATIENCE_S, call.note, (told,))
    patience.daemon = True
    patience.start()
    try:
        done = lab.edit(call.lab_path, change, call.env)
    finally:
        patience.cancel()
        patience.join()
    call.record["lab_before"], call.record["lab_after"] = done.before, done.after
    call._lab = None  # what was read before is history
    if done.created:
        call.note(f"created new lab {call.lab_path}")


def lab_of(call: Call, data: dict[str, Any]) -> Any:
    """The data under the lock as a Lab, for its lookups and their errors."""
    from labd.lab import Lab

    return Lab(call.lab_path, data, "", call.lab_words())


def check_host(call: Call, data: dict[str, Any], name: str | None) -> None:
    """Raise NotFound unless `name` is None, `local` or a declared host."""
    hosts = [*data.get("hosts", {}), "local"]
    if name is not None and name not in hosts:
        raise NotFound(f"no host {name!r} in {call.lab_path} (there is {', '.join(hosts)})",
                       near=nearest(name, hosts), hint=f"labd host add {name} --ssh DEST")  # fmt: skip


def check_new_name(kind: str, name: str, existing: Iterable[str], change_with: str) -> None:
    """Raise Usage for a name that cannot be one, LabdError for one that is taken."""
    from labd.lab.validate import NAME_RULE, is_name

    if not is_name(name):
        raise Usage(f"{name!r} cannot be a {kind}: {NAME_RULE}")
    for other in existing:
        if other == name:
            raise LabdError(f"there is a {kind} {name!r} already", hint=change_with)
        if other.lower() == name.lower():
            raise LabdError(f"there is a {kind} {other!r} already, which differs from {name!r} only in its capitals",
                            near=[other])  # fmt: skip


def merged(path: Path, now: Mapping[str, Any], found: Wish, report: Report) -> list[Change]:
    """The changes that bring the table at `path`, which holds `now`, to what is wished; told to `report`."""
    from labd.lab.change import Set, Unset

    changes: list[Change] = []
    for key, value in found.values.items():
        if key not in now or now[key] != value or type(now[key]) is not type(value):
            report.change(key, now.get(key), value)
            changes.append(Set((*path, key), value))
    for key in found.clear:
        if key in now:
            report.change(key, now[key], None)
            changes.append(Unset((*path, key)))
        else:
            report.already_clear.append(key)
    return changes


class Report:
    """What an edit did to one thing of the lab, for the person and for --json.

    `did` is `added`, `changed`, `removed` or `unchanged`. Filled inside the edit, which may run more than once, so
    `begin` forgets what was told before.
    """

    def __init__(self, subject: str, **facts: Any) -> None:
        self.subject = subject
        self.facts = facts
        self.diff: list[str] | None = None
        self.begin("unchanged")

    def begin(self, did: str) -> None:
        """Start over."""
        self.did = did
        self.fields: dict[str, dict[str, Any]] = {}
        self.already_clear: list[str] = []
        self.also: list[str] = []

    def change(self, key: str, before: Any, after: Any) -> None:
        """One field got another value (None: it has none)."""
        self.did = "changed" if self.did == "unchanged" else self.did
        self.fields[key] = {"before": before, "after": after}

    def add(self, values: Mapping[str, Any]) -> None:
        """The thing is new, with these values."""
        self.begin("added")
        for key, value in values.items():
            self.fields[key] = {"before": None, "after": value}

    def would(self, call: Call, foreseen: Edited) -> None:
        """Nothing was written: keep the lines of the file that would differ, secrets out."""
        import difflib

        from labd.lab.redact import redact

        before, after = (text.splitlines() for text in foreseen.texts)
        lines = difflib.unified_diff(before, after, call.lab_path, call.lab_path, n=1, lineterm="")
        self.diff = [redact(line) for line in lines]

    def data(self) -> dict[str, Any]:
        """For --json, secrets out. `diff` is there where nothing was written."""
        from labd.lab.redact import redacted

        fields = redacted(self.fields)
        told = {**self.facts, "subject": self.subject, "did": self.did, "fields": fields, "also": self.also,
                "already_clear": self.already_clear}  # fmt: skip
        return told if self.diff is None else {**told, "dry_run": True, "diff": self.diff}


def report_text(data: Any, call: Call) -> str:
    """`pico.serial.bmc: added (device /dev/ttyUSB1, baud 9600)`, from a report's data; of a dry run with the lines that
    would differ."""
    told = _done_text(data)
    return told if "dry_run" not in data else "\n".join([f"dry run, nothing is written: {told}", *data["diff"]])


def _done_text(data: Any) -> str:
    subject, did, fields = data["subject"], data["did"], data["fields"]
    told = [f"{key} was not set" for key in data["already_clear"]]
    if did == "added":
        told = [f"{key} {shown(both['after'])}" for key, both in fields.items()]
    elif did == "removed":
        told = data["also"]
    elif did == "changed":
        told = [_changed(key, both) for key, both in fields.items()] + told
        return f"{subject}: {'; '.join(told)}"
    else:
        told = told or ["it is so already"]
    return f"{subject}: {did}" + (f" ({', '.join(told)})" if told else "")


def _changed(key: str, both: dict[str, Any]) -> str:
    if both["after"] is None:
        return f"{key} cleared (was {shown(both['before'])})"
    if both["before"] is None:
        return f"{key} {shown(both['after'])}"
    return f"{key} {shown(both['before'])} → {shown(both['after'])}"


def shown(value: Any) -> str:
    """A value on one line, secrets out; quoted where it would not read as one word."""
    from labd.lab.redact import redact

    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    text = redact(value)
    if text and text.isprintable() and " " not in text and "," not in text:
        return text
    return '"' + "".join(char if char.isprintable() else repr(char)[1:-1] for char in text) + '"'
