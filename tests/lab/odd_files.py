"""Odd lab files for property tests: the same data in every form that TOML allows, with comments and spacing between.

`odd_labs()` draws a text; what it holds is for tomllib to say. Comments are numbered, so that each can be followed.
Hypothesis draws the seed alone: drawing each of the hundreds of choices took most of the tests' time.
"""

import json
import random

from hypothesis import strategies as st

KEYS = ("description", "host", "note x", "cycle_cmd", "tftp_root", "ключ")
CHANNELS = ("power", "netboot", "video", "hid", "adb")
NAMES = ("pico", "b-2", "x.y", "tablet", "serial")
HEADER_SPACING = ("{}", " {} ", "\t{}")
COMMENTS = ("# {}", "#{}", "  # {} = [1]", "# {} \"'''")


class Pen:
    """Writes lines in a drawn style, numbering comments."""

    def __init__(self, dice):
        self.dice = dice
        self.lines = []
        self.count = 0

    def pick(self, *options):
        return self.dice.choice(options)

    def some(self, options, most, least=0):
        return self.dice.sample(options, self.dice.randint(least, min(most, len(options))))

    def comment(self):
        self.count += 1
        return self.pick(*COMMENTS).format(f"c{self.count}")

    def filling(self):
        for _ in range(self.pick(0, 0, 1, 2, 3)):
            self.lines.append(self.pick("", "", "  \t", self.comment()))

    def trailing(self):
        return self.pick("", " ", "   ") + self.comment() if self.pick(True, False, False) else self.pick("", "", " ")

    def key(self, *parts):
        dot = self.pick(".", ".", " . ")
        return dot.join(self.key_part(part) for part in parts)

    def key_part(self, part):
        bare = part.isascii() and part.replace("-", "").replace("_", "").isalnum()
        if bare and self.pick(True, True, False):
            return part
        return json.dumps(part) if self.pick(True, False) or not bare else f"'{part}'"

    def pair(self, keys, value, indent=""):
        equals = self.pick(" = ", "=", "  =\t")
        first, *rest = f"{indent}{self.key(*keys)}{equals}{value}{self.trailing()}".split("\n")
        self.lines += [first, *rest]

    def header(self, keys, element):
        self.filling()
        inner = self.pick(*HEADER_SPACING).format(self.key(*keys))
        whole = f"[[{inner}]]" if element else f"[{inner}]"
        self.lines.append(self.pick("", "", "  ") + whole + self.trailing())

    def scalar(self):
        texts = ("a", "", "it's", 'say "x"', "# no comment", "[x]", "tab\there", "ü=1", "two\nlines", "back\\slash")
        value = self.pick(self.dice.randint(-5, 10**6), True, False, 1.5, 1e20, *texts)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            return self.string(value)
        return repr(value).replace("e", ".0e") if "e" in repr(value) else repr(value)

    def string(self, value):
        plain = "'" not in value and "\n" not in value and "\t" not in value
        forms = [json.dumps(value)]
        if plain:
            forms.append(f"'{value}'")
        if "\\" not in value and '"' not in value:
            forms.append(f'"""{value}"""')
            forms.append(f'"""\n{value}"""')
        if "'" not in value:
            forms.append(f"'''{value}'''")
        return self.pick(*forms)

    def inline(self, table):
        pairs = [f"{self.key_part(key)}{self.pick(' = ', '=')}{text}" for key, text in table]
        space = self.pick("", " ")
        return "{" + space + self.pick(", ", ",", " , ").join(pairs) + space + "}" if pairs else self.pick("{}", "{ }")

    def array(self, tables):
        if self.pick(True, False):
            return "[" + self.pick("", " ") + ", ".join(self.inline(table) for table in tables) + "]"
        parts = ["["]
        for index, table in enumerate(tables):
            if self.pick(True, False):
                parts.append("  " + self.comment().lstrip())
            comma = "," if index + 1 < len(tables) or self.pick(True, False) else ""
            parts.append(f"  {self.inline(table)}{comma}" + (" " + self.comment() if self.pick(True, False) else ""))
        return "\n".join([*parts, "]"])


def _table(pen, size=3):
    keys = pen.some(KEYS, size)
    return [(key, _single_line(pen)) for key in keys]


def _single_line(pen):
    return next(text for text in iter(pen.scalar, None) if "\n" not in text)


def _rich(pen, size=3):
    keys = pen.some(KEYS, size)
    return [(key, pen.scalar()) for key in keys]


def _sections(pen, name):
    """One target: sections (keys, element?, pairs) to be put anywhere, lines for [targets], lines for the top."""
    channels = pen.some(CHANNELS, 3)
    elements = [[("name", f'"if{index}"'), *_rich(pen, 2)] for index in range(pen.pick(0, 0, 1, 2, 3))]
    form = pen.pick("headers", "headers", "implicit", "dotted", "inline", "dotted-above", "top")
    base = ("targets", name)
    if form in ("headers", "implicit"):
        found = [] if form == "implicit" else [(base, False, _rich(pen))]
        found += [((*base, channel), False, _rich(pen)) for channel in channels]
        found += [((*base, "serial"), True, element) for element in elements]
        return [(keys, kind, [((key,), text) for key, text in pairs]) for keys, kind, pairs in found], [], []
    if form == "inline":
        table = [*_table(pen), *((channel, pen.inline(_table(pen))) for channel in channels)]
        if elements:
            inner = [pen.inline([(key, _single_line(pen)) for key, _ in element]) for element in elements]
            table.append(("serial", f"[{', '.join(inner)}]"))
        return [], [((name,), pen.inline(table))], []
    pairs = [((key,), text) for key, text in _rich(pen)]
    for channel in channels:
        if pen.pick(True, False):
            pairs += [((channel, key), text) for key, text in _rich(pen)]
        else:
            pairs.append(((channel,), pen.inline(_table(pen))))
    if elements:
        pairs.append((("serial",), pen.array([[(k, _single_line(pen)) for k, _ in e] for e in elements])))
    if form == "dotted":
        return [(base, False, pairs)], [], []
    if form == "top":
        return [], [], [((*base, *keys), text) for keys, text in pairs]
    return [], [((name, *keys), text) for keys, text in pairs], []


def odd_lab(seed):
    """The text of an odd lab (valid TOML, not always a valid lab), with LF or CRLF, with or without a final newline."""
    pen = Pen(random.Random(seed))
    sections, under_targets, top = [], [], []
    for name in pen.some(NAMES, 3, least=1):
        more, under, above = _sections(pen, name)
        sections += more
        under_targets += under
        top += above
    if under_targets and not top:
        sections.append((("targets",), False, under_targets))
    elif under_targets:
        top += [(("targets", *keys), text) for keys, text in under_targets]
    if pen.pick(True, False):
        sections.append((("policy",), False, [(("level",), '"bench"')]))
    pen.dice.shuffle(sections)
    pen.filling()
    for keys, text in top:
        pen.pair(keys, text)
        pen.filling()
    for keys, element, pairs in sections:
        indent = pen.pick("", "", "  ", "\t")
        pen.header(keys, element)
        for key, text in pairs:
            pen.filling()
            pen.pair(key, text, indent)
    pen.filling()
    text = "\n".join(pen.lines) + pen.pick("\n", "\n", "")
    return text.replace("\n", "\r\n") if pen.pick(True, False, False) else text


def odd_labs():
    """Odd labs for hypothesis."""
    return st.integers(0, 2**40).map(odd_lab)
