"""The few pieces of man(7) that our manual pages are made of. Pure text; whatever comes in is shown as it is."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Characters of a source line.
WIDTH = 78

_SPECIAL = {"\\": "\\(rs", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", '"': "\\(dq"}


def text(plain: str) -> str:
    """Words as roff shows them, on one line: nothing in them is a request, an escape or another kind of dash."""
    line = plain.replace("\n", " ")
    shown = "".join([_SPECIAL.get(c) or (c if " " <= c < "\x7f" else f"\\[u{ord(c):04X}]") for c in line])
    return "\\&" + shown if shown.startswith(".") else shown


def flowing(plain: str) -> list[str]:
    """Prose as source lines of at most `WIDTH` characters, where its words allow."""
    lines: list[str] = []
    for word in plain.split():
        if lines and len(lines[-1]) + 1 + len(text(word)) <= WIDTH:
            lines[-1] += f" {text(word)}".replace(" \\&.", " .")
        else:
            lines.append(text(word))
    return lines


def bold(plain: str) -> str:
    """Words to be typed as they are."""
    return f"\\fB{text(plain)}\\fR"


def head(name: str, date: str, source: str, manual: str) -> str:
    """The beginning of a page of section 1, which is set ragged and unhyphenated; `date` is YYYY-MM-DD."""
    return f'.TH {text(name.upper())} 1 {date} "{text(source)}" "{text(manual)}"\n.ad l\n.nh'


def section(title: str) -> str:
    """A heading."""
    return f".SH {text(title)}"


def subsection(title: str) -> str:
    """A heading below one."""
    return f".SS {text(title)}"


def paragraphs(plain: str) -> list[str]:
    """Text with empty lines between its paragraphs."""
    return [line for part in plain.strip().split("\n\n") for line in (".PP", *flowing(part))]


def listed(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Terms that are typed, each with what it means below."""
    return [line for term, meaning in rows for line in (".TP", bold(term), *flowing(meaning))]


def example(lines: Iterable[str]) -> list[str]:
    """Lines that are shown as they stand."""
    return [".PP", ".RS 4", ".nf", *(text(line) for line in lines), ".fi", ".RE"]


def examples(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Commands, each below what it does."""
    made = []
    for command, what in pairs:
        made += [".PP", *flowing(f"{what[:1].upper()}{what[1:]}:"), *example([command])[1:]]
    return made


def page(lines: Iterable[str]) -> str:
    """The whole page; a paragraph right below a heading or before one says nothing and is left out."""
    kept: list[str] = []
    for line in lines:
        if line == ".PP" and kept and kept[-1].startswith((".SH", ".SS")):
            continue
        kept.append(line)
    return "\n".join(kept) + "\n"
