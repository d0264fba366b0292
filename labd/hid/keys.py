"""The keys of a keyboard by name, and the characters of a US layout as keys. Pure.

A key is its usage of the HID keyboard page (HID Usage Tables 1.5, section 10), whatever device sends it. Names are
those of Adafruit's `Keycode` with the aliases that people use; case, `-` and `_` do not matter.
"""

from __future__ import annotations

from labd.errors import Usage, nearest

#: The eight modifiers, in the order of their bits in a report.
MODIFIERS = range(0xE0, 0xE8)
SHIFT = 0xE1

_DIGITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "zero")

#: Name → usage; the first name of a usage is what we call it.
NAMED: dict[str, int] = {
    **{chr(0x61 + n): 0x04 + n for n in range(26)},
    **{str((n + 1) % 10): 0x1E + n for n in range(10)},
    **{name: 0x1E + n for n, name in enumerate(_DIGITS)},
    "enter": 0x28, "return": 0x28, "ret": 0x28, "cr": 0x28,
    "escape": 0x29, "esc": 0x29,
    "backspace": 0x2A, "bs": 0x2A,
    "tab": 0x2B,
    "space": 0x2C, "spacebar": 0x2C, "spc": 0x2C,
    "minus": 0x2D, "equals": 0x2E, "equal": 0x2E, "left_bracket": 0x2F, "right_bracket": 0x30, "backslash": 0x31,
    "pound": 0x32, "semicolon": 0x33, "quote": 0x34, "apostrophe": 0x34, "grave_accent": 0x35, "grave": 0x35,
    "backtick": 0x35, "comma": 0x36, "period": 0x37, "dot": 0x37, "forward_slash": 0x38, "slash": 0x38,
    "caps_lock": 0x39,
    **{f"f{n}": 0x39 + n for n in range(1, 13)},
    "print_screen": 0x46, "print": 0x46, "prtsc": 0x46, "prtscr": 0x46, "sysrq": 0x46,
    "scroll_lock": 0x47,
    "pause": 0x48, "break": 0x48,
    "insert": 0x49, "ins": 0x49,
    "home": 0x4A,
    "page_up": 0x4B, "pgup": 0x4B,
    "delete": 0x4C, "del": 0x4C,
    "end": 0x4D,
    "page_down": 0x4E, "pgdn": 0x4E, "pgdown": 0x4E,
    "right_arrow": 0x4F, "right": 0x4F, "left_arrow": 0x50, "left": 0x50,
    "down_arrow": 0x51, "down": 0x51, "up_arrow": 0x52, "up": 0x52,
    "keypad_numlock": 0x53, "num_lock": 0x53,
    "keypad_forward_slash": 0x54, "keypad_slash": 0x54, "keypad_asterisk": 0x55, "keypad_minus": 0x56,
    "keypad_plus": 0x57, "keypad_enter": 0x58,
    **{f"keypad_{name}": 0x59 + n for n, name in enumerate(_DIGITS)},
    **{f"keypad_{(n + 1) % 10}": 0x59 + n for n in range(10)},
    "keypad_period": 0x63, "keypad_backslash": 0x64,
    "application": 0x65, "menu": 0x65,
    "power": 0x66,
    "keypad_equals": 0x67,
    **{f"f{n}": 0x68 + n - 13 for n in range(13, 25)},
    "left_control": 0xE0, "control": 0xE0, "ctrl": 0xE0, "left_ctrl": 0xE0,
    "left_shift": SHIFT, "shift": SHIFT,
    "left_alt": 0xE2, "alt": 0xE2, "option": 0xE2,
    "left_gui": 0xE3, "gui": 0xE3, "windows": 0xE3, "win": 0xE3, "command": 0xE3, "cmd": 0xE3, "super": 0xE3,
    "meta": 0xE3,
    "right_control": 0xE4, "right_ctrl": 0xE4,
    "right_shift": 0xE5,
    "right_alt": 0xE6, "altgr": 0xE6,
    "right_gui": 0xE7, "right_windows": 0xE7,
}  # fmt: skip

#: The locks: what they toggle needs a longer press with some hosts.
LOCKS = (0x39, 0x47, 0x53)

_PLAIN = "-=[]\\;'`,./"
_PLAIN_KEYS = (0x2D, 0x2E, 0x2F, 0x30, 0x31, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38)

#: Character → the keys to press together for it, on a US layout.
TYPED: dict[str, tuple[int, ...]] = {
    **{chr(0x61 + n): (0x04 + n,) for n in range(26)},
    **{chr(0x41 + n): (SHIFT, 0x04 + n) for n in range(26)},
    **{char: (0x1E + n,) for n, char in enumerate("1234567890")},
    **{char: (SHIFT, 0x1E + n) for n, char in enumerate("!@#$%^&*()")},
    **{char: (key,) for char, key in zip(_PLAIN, _PLAIN_KEYS, strict=True)},
    **{char: (SHIFT, key) for char, key in zip('_+{}|:"~<>?', _PLAIN_KEYS, strict=True)},
    " ": (0x2C,),
    "\n": (0x28,),
    "\t": (0x2B,),
}

_BY_WORD = {name.replace("_", ""): usage for name, usage in NAMED.items()}


def name_of(usage: int) -> str:
    """What we call a key."""
    return next((name for name, value in NAMED.items() if value == usage), f"usage {usage:#x}")


def key(name: str) -> int:
    """The usage of one key. Raises Usage, with near matches, where there is no such key."""
    found = _find(name)
    if found is not None:
        return found
    if name in TYPED:
        keys = " ".join(name_of(usage) for usage in TYPED[name])
        raise Usage(f"{name!r} is no key but two together", hint=f"combo {keys}, or type {name!r}")
    raise Usage(f"no key {name!r}", near=nearest(name.replace("-", "_"), [known for known in NAMED if len(known) > 1]),
                hint="labd hid send --help")  # fmt: skip


def chord(name: str) -> tuple[int, ...]:
    """The keys of `enter`, or of several joined by `-` or `+`: `ctrl-alt-delete`. Raises Usage."""
    if _find(name) is None:
        for joint in "+-":
            parts = name.split(joint)
            if len(parts) > 1 and all(parts):
                return tuple(key(part) for part in parts)
    return (key(name),)


def chords(text: str) -> tuple[tuple[int, ...], ...]:
    """The keys for each character of `text`. Raises Usage, naming the first that a US keyboard can't type."""
    for at, char in enumerate(text, 1):
        if char not in TYPED:
            raise Usage(
                f"can't type {char!r} (U+{ord(char):04X}), character {at} of {len(text)}: a US keyboard has no key for "
                "it; nothing was typed",
                hint="type what it has, and reach the rest as the target's own system lets you",
            )
    return tuple(TYPED[char] for char in text)


def _find(name: str) -> int | None:
    lowered = name.lower()
    if len(name) == 1:
        single = TYPED.get(lowered)
        return single[-1] if single is not None and len(single) == 1 else None
    if not (name[0].isalnum() and name[-1].isalnum()):
        return None  # `ctrl-` is a chord that lacks its key, not Ctrl
    return _BY_WORD.get(lowered.replace("_", "").replace("-", ""))
