"""Keys by name → the bytes that a terminal sends for them. Pure; for whoever types into a console."""

from __future__ import annotations

from labd.errors import Usage, nearest

_NAMED = {
    "enter": b"\r",
    "tab": b"\t",
    "esc": b"\x1b",
    "space": b" ",
    "backspace": b"\x7f",
    "delete": b"\x1b[3~",
    "insert": b"\x1b[2~",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
    "pageup": b"\x1b[5~",
    "pagedown": b"\x1b[6~",
    **{f"f{n}": b"\x1bO" + bytes([0x4F + n]) for n in range(1, 5)},
    **{f"f{n}": b"\x1b[%d~" % code for n, code in zip(range(5, 13), (15, 17, 18, 19, 20, 21, 23, 24), strict=True)},
    **{f"ctrl-{chr(0x60 + n)}": bytes([n]) for n in range(1, 27)},
    "ctrl-space": b"\x00",
    "ctrl-[": b"\x1b",
    "ctrl-\\": b"\x1c",
    "ctrl-]": b"\x1d",
    "ctrl-^": b"\x1e",
    "ctrl-_": b"\x1f",
}
_ALSO = {
    "return": "enter",
    "cr": "enter",
    "escape": "esc",
    "del": "delete",
    "ins": "insert",
    "bs": "backspace",
    "spacebar": "space",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "page-up": "pageup",
    "page-down": "pagedown",
    "ctrl-@": "ctrl-space",
}
_CONTROLS = ("ctrl-", "ctrl+", "control-", "c-", "^")


def names() -> tuple[str, ...]:
    """The keys that have a name."""
    return tuple(_NAMED)


def key(name: str) -> bytes:
    """The bytes of one key: `ctrl-c` (also `C-c`, `^c`), `alt-x`, `esc`, `f1`, `up` … or one plain character.

    Raises Usage with near matches.
    """
    word = name.lower() if len(name) > 1 else name
    if len(word) == 1:
        return name.encode("utf-8", "surrogateescape")
    for prefix in ("alt-", "alt+", "meta-", "m-"):
        if word.startswith(prefix) and len(word) > len(prefix):
            return b"\x1b" + key(name[len(prefix) :])
    for prefix in _CONTROLS:
        if word.startswith(prefix) and len(word) > len(prefix):
            word = "ctrl-" + word[len(prefix) :]
            break
    word = _ALSO.get(word, word)
    if word in _NAMED:
        return _NAMED[word]
    if name.lower() == "break":
        raise Usage("a break is no key but a state of the wire", hint="labd serial break")
    raise Usage(f"no key {name!r}", near=nearest(name, [*_NAMED, *_ALSO]),
                hint="labd serial send --help")  # fmt: skip
