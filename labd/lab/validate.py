"""Whether data are a lab: types, ranges, names, references, unknown keys with the nearest known one.

Pure functions of plain data. Where a thing stands in the file is found by whoever reports it.
"""

import codecs
from collections.abc import Iterable, Mapping
from typing import Any

from labd.errors import nearest
from labd.lab import schema
from labd.lab.model import EOLS
from labd.lab.schema import Field

Path = tuple[str | int, ...]

NAME_RULE = "a name is 1 to 64 letters, digits, dots, - or _, and starts with a letter or digit"
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")

#: The schemes of serial devices that are not files → what must follow the colon.
DEVICE_SCHEMES = {
    "rfc2217": "//host:port",
    "socket": "//host:port",
    "loopback": "DUT",
    "board": "NAME",
}


class Problem:
    """One thing that the schema does not allow: where in the data, one line about it, what was likely meant."""

    __slots__ = ("hint", "message", "near", "path")

    def __init__(self, path: Path, message: str, near: Iterable[str] = (), hint: str = "") -> None:
        self.path = path
        self.message = message
        self.near = list(near)
        self.hint = hint


def is_name(text: str) -> bool:
    """Whether `text` may name a target, an interface or a host (they become parts of paths)."""
    return 0 < len(text) <= 64 and set(text) <= _NAME and text[0] not in "._-"


def problems(data: Mapping[str, Any]) -> list[Problem]:
    """Everything that is wrong with `data` as a lab, in the order of the file."""
    found: list[Problem] = []
    for key, value in data.items():
        if key not in schema.TOP_TABLES:
            found.append(_unknown((key,), key, "the lab", schema.TOP_TABLES))
        elif not isinstance(value, dict):
            found.append(_not_a_table((key,), value))
        elif key == "hosts":
            found += _named(("hosts",), value, _host)
        elif key == "targets":
            found += _named(("targets",), value, _target)
        else:
            found += _table((key,), value, schema.POLICY if key == "policy" else schema.JOURNAL)
    return found + _references(data)


def value_problem(field: Field, value: Any) -> str:
    """What is wrong with `value` for `field`, as the end of a sentence ("must be …"); empty if nothing is."""
    if field.kind == "bool":
        return "" if isinstance(value, bool) else f"must be true or false, not {_show(value)}"
    if field.kind in ("int", "float"):
        return _number_problem(field, value)
    if not isinstance(value, str):
        return f"must be a string in quotes, not {_show(value)}"
    if field.kind == "choice" and value not in field.choices:
        return f"must be one of {', '.join(field.choices)}, not {_show(value)}"
    if field.required and not value.strip():
        return "must not be empty"
    if "\0" in value:
        return "must not hold a NUL character"
    rule = _STRING_RULES.get(field.kind)
    return rule(value) if rule else ""


def _number_problem(field: Field, value: Any) -> str:
    wanted = "a whole number" if field.kind == "int" else "a number"
    kinds = (int,) if field.kind == "int" else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        quotes = ", without quotes" if isinstance(value, str) and value.strip().isdigit() else ""
        return f"must be {wanted}{quotes}, not {_show(value)}"
    if field.choices:
        allowed = [float(choice) for choice in field.choices]
        return "" if float(value) in allowed else f"must be one of {', '.join(field.choices)}, not {_show(value)}"
    low, high = field.minimum, field.maximum
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        return f"must be from {low:g} to {high:.10g}{' ' + field.unit if field.unit else ''}, not {_show(value)}"
    return ""


def _name_rule(value: str) -> str:
    return "" if is_name(value) else f"{_show(value)} cannot be a name: {NAME_RULE}"


def _device_rule(value: str) -> str:
    scheme, colon, rest = value.partition(":")
    if colon and scheme in DEVICE_SCHEMES:
        wanted = DEVICE_SCHEMES[scheme]
        if wanted.startswith("//"):
            host, _, port = rest.removeprefix("//").split("/")[0].split("?")[0].rpartition(":")
            good = rest.startswith("//") and host and port.isdecimal() and 0 < int(port) < 65536
        else:
            good = bool(rest.strip())
        return "" if good else f"{_show(value)} must be {scheme}:{wanted}"
    if "/" not in value or (colon and rest.startswith("//")):
        near = nearest(scheme, list(DEVICE_SCHEMES)) if colon else []
        asked = f"; did you mean {near[0]}:?" if near else ""
        known = ", ".join(f"{name}:{wanted}" for name, wanted in DEVICE_SCHEMES.items())
        return f"{_show(value)} must be a whole path (/dev/…) or one of {known}{asked}"
    return ""


def _ip_rule(value: str) -> str:
    import ipaddress

    try:
        ipaddress.ip_address(value)
    except ValueError:
        return f"must be an IP address, not {_show(value)}"
    return ""


def _encoding_rule(value: str) -> str:
    try:
        "".encode(value)
        codecs.lookup(value)
    except (LookupError, UnicodeError, ValueError):
        return f"must be a text encoding that Python knows (utf-8, latin-1, cp437 …), not {_show(value)}"
    return ""


def _eol_rule(value: str) -> str:
    good = value in EOLS or value in EOLS.values()
    return "" if good else f"must be one of {', '.join(EOLS)}, not {_show(value)}"


def _filled_rule(value: str) -> str:
    return "" if value.strip() else "must not be empty"


_STRING_RULES = {
    "name": _name_rule,
    "device": _device_rule,
    "ip": _ip_rule,
    "path": _filled_rule,
    "command": _filled_rule,
    "encoding": _encoding_rule,
    "eol": _eol_rule,
}


def _table(
    path: Path, table: Mapping[str, Any], fields: Mapping[str, Field], also: Iterable[str] = ()
) -> list[Problem]:
    """Unknown keys, wrong values and missing required keys of one table. Keys in `also` are somebody else's."""
    found = []
    known = [*fields, *also]
    for key, value in table.items():
        here = (*path, key)
        wrong = value_problem(fields[key], value) if key in fields else ""
        if wrong:
            found.append(Problem(here, f"{_dotted(here)}: {wrong}", _near_value(fields[key], value)))
        elif key not in known:
            found.append(_unknown(here, key, _dotted(path), known))
    for field in fields.values():
        if field.required and field.key not in table:
            found.append(Problem(path, f"{_dotted(path)}: {field.key} is missing ({field.help})"))
    return found


def _named(path: Path, tables: Mapping[str, Any], one: Any) -> list[Problem]:
    found: list[Problem] = []
    for name, table in tables.items():
        if not is_name(name):
            found.append(Problem((*path, name), f"{_show(name)} cannot be a name in [{path[0]}]: {NAME_RULE}"))
        elif not isinstance(table, dict):
            found.append(_not_a_table((*path, name), table))
        else:
            found += one((*path, name), table)
    return found


def _host(path: Path, table: Mapping[str, Any]) -> list[Problem]:
    if path[-1] == "local":
        return [Problem(path, "hosts.local: the name local always means this machine; use another name")]
    return _table(path, table, schema.HOST)


def _target(path: Path, table: Mapping[str, Any]) -> list[Problem]:
    found = _table(path, table, schema.TARGET, schema.TARGET_TABLES)
    for kind, value in table.items():
        here = (*path, kind)
        if kind == "serial":
            found += _serial(here, value)
        elif kind in schema.SINGLE_CHANNELS or kind == "policy":
            fields = schema.POLICY if kind == "policy" else schema.SINGLE_CHANNELS[kind]
            found += _table(here, value, fields) if isinstance(value, dict) else [_not_a_table(here, value)]
    return found


def _serial(path: Path, entries: Any) -> list[Problem]:
    if not isinstance(entries, list):
        return [Problem(path, f"{_dotted(path)}: each serial interface is a [[{_dotted(path)}]] of its own")]
    found = []
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        here = (*path, index)
        if not isinstance(entry, dict):
            found.append(_not_a_table(here, entry))
            continue
        found += _table(here, entry, schema.SERIAL)
        name = entry.get("name")
        if isinstance(name, str) and name in seen:
            found.append(Problem((*here, "name"), f"{_dotted(path)}: there are two interfaces named {name!r}"))
        seen.add(str(name))
    return found


def _references(data: Mapping[str, Any]) -> list[Problem]:
    """Hosts that are named somewhere but not declared. (A dangling `serial_interface` is the doctor's to tell.)"""
    hosts = data.get("hosts", {})
    targets = data.get("targets", {})
    if not isinstance(hosts, dict) or not isinstance(targets, dict):
        return []
    declared = ["local", *hosts]
    return [
        Problem(path, f"{_dotted(path)}: no host {name!r} is declared (there is {', '.join(declared)})",
                nearest(name, declared), f"labd host add {name} --ssh DEST" if is_name(name) else "")
        for path, name in host_references(targets) if name not in declared
    ]  # fmt: skip


def host_references(targets: Mapping[str, Any]) -> list[tuple[Path, str]]:
    """(path, host name) of every place in `targets` that names a host."""
    found: list[tuple[Path, str]] = []
    for target, table in targets.items():
        if not isinstance(table, dict):
            continue
        tables: list[tuple[Path, Any]] = [(("targets", target), table)]
        for kind, value in table.items():
            if kind == "serial" and isinstance(value, list):
                tables += [(("targets", target, kind, index), entry) for index, entry in enumerate(value)]
            elif kind in schema.SINGLE_CHANNELS:
                tables.append((("targets", target, kind), value))
        for path, entry in tables:
            if isinstance(entry, dict) and isinstance(entry.get("host"), str):
                found.append(((*path, "host"), entry["host"]))
    return found


def _unknown(path: Path, key: str, where: str, known: Iterable[str]) -> Problem:
    near = nearest(key, list(known))
    asked = f"; did you mean {near[0]}?" if near else f" (known: {', '.join(known)})"
    return Problem(path, f"unknown key {key!r} in {where}{asked}", near)


def _not_a_table(path: Path, value: Any) -> Problem:
    return Problem(path, f"{_dotted(path)} must be a table, not {_show(value)}")


def _near_value(field: Field, value: Any) -> list[str]:
    return nearest(value, list(field.choices)) if field.choices and isinstance(value, str) else []


def _dotted(path: Path) -> str:
    words = ""
    for part in path:
        words += f"[{part}]" if isinstance(part, int) else f".{part}" if words else str(part)
    return words


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    text = repr(value) if isinstance(value, (str, int, float)) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"
