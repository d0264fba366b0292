"""TOML as new text: keys, values, lines and blocks as labd writes them where nothing was written before.

Pure, and small on purpose: strings, numbers, booleans. (tomlkit edits what is there already, see `kit`.)
"""

from labd.lab.change import Path, Scalar

_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def value_text(value: Scalar) -> str:
    """A value as TOML. Raises ValueError for a string that is no text (a lone surrogate)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if "e" not in repr(value) or "." in repr(value) else repr(value).replace("e", ".0e")
    return f'"{"".join(map(_escaped, value))}"'


def key_text(key: str | int) -> str:
    """One part of a key: bare where that is allowed, else quoted."""
    if not isinstance(key, str):
        raise ValueError("an index cannot be written in a key")
    return key if key and set(key) <= _BARE else value_text(key)


def dotted(path: Path) -> str:
    """A path as a dotted key; indices are left out, as headers leave them out."""
    return ".".join(key_text(key) for key in path if isinstance(key, str))


def pair(key: str | int, rendered: str) -> str:
    """One line: a key and its value."""
    return f"{key_text(key)} = {rendered}"


def block(path: Path, table: dict[str, Scalar], *, element: bool) -> list[str]:
    """The lines of a new table, or of a new element of an array of tables."""
    header = f"[[{dotted(path)}]]" if element else f"[{dotted(path)}]"
    return [header, *(pair(key, value_text(value)) for key, value in table.items())]


def line_end(text: str, place: int) -> str:
    """The line end to write at `place`: that of the line before it, else the text's first, else LF."""
    newline = text.rfind("\n", 0, place)
    if newline < 0:
        newline = text.find("\n")
    return "\r\n" if newline > 0 and text[newline - 1] == "\r" else "\n"


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError("the value is not valid text")
    return f"\\u{code:04x}" if code < 0x20 or code == 0x7F else char
