"""Reads the command lines out of an agent's answer: what it says one should type, and what it says one should not.

Commands stand in code fences, indented blocks, `inline code`, behind `$ ` prompts, on lines of their own (numbered,
bulleted or not), in table cells, and in a sentence ("run labd serial watch pico"). A backslash goes on with the next
line; `a && b | c; d` and `$(e)` are several commands. Placeholders (<seq>) are words. Each mention has the words around
it in its sentence, for graders/stated_negation.py. Pure, and linear in the text: an answer may be anything.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from graders.stated_negation import REACH, denied

#: More of an answer than this is not read.
MOST_CHARS = 100_000
#: A line longer than this is no command.
MOST_LINE = 4_000


@dataclass(frozen=True)
class Stated:
    """One simple command as it was stated. `words`: the program first. `denied`: said not to be there or to be used.

    `kind`: `block` (a fence, a prompt), `inline`, `plain` (a line of its own), `said` (in a sentence, where nobody can
    know where the command ends).
    """

    words: tuple[str, ...]
    kind: str
    denied: bool

    @property
    def line(self) -> str:
        """As one line."""
        return " ".join(self.words)


_FENCE = re.compile(r"[ \t>]*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})([^`]*)$")
_PROMPT = re.compile(r"\A\s*(?:[\w.-]+@[\w.-]+:?[^\s$#%>]*\s*)?(?:[$%❯➜]|#(?=\s*(?:labd|sudo)\b)|>)\s+(?=\S)")
_MARKER = re.compile(
    r"\s*(?:>\s*)*(?:[-*+•]\s+|\(?\d{1,3}[.):]\s+|\(?[a-z][.)]\s+|step\s+\d{1,3}\s*[:.)-]\s*)?", re.IGNORECASE
)
_CODE = re.compile(r"(`{1,2})(?!`)([^`\n]{1,4000}?)\1(?!`)")
_HTML = re.compile(r"</?(?:code|kbd|tt)>", re.IGNORECASE)
_HOLE = re.compile(r"<([A-Za-z][\w .:/|-]{0,40})>")
_SENTENCE = re.compile(
    r"(?<=[.!?])[\"')*_]*\s+(?=[A-Z`*\"'(0-9])|\n\s*\n|\n(?=\s*(?:[-*+•]|\d{1,3}[.)])\s)|\n(?=\s*\|)|\|"
)

#: Words that begin or fill sentences and are never words of a command line.
_PROSE = frozenset(
    re.findall(
        r"\S+",
        "is are was were be been has have had does do did can could cannot will would should may might must to of the "
        "a an and or that which this these it its itself you your we i with for from by as at in on if when while but "
        "not no so there then than also only both supports provides offers lets uses needs knows reads runs shows says "
        "tells gives finds sees lists drives works handles doesn't don't can't won't isn't command commands lacks "
        "covers calls",
    )
)


_ASKING = re.compile(
    r"\b(?:run|use|execute|type|invoke|issue|call|try|enter)(?: the command)?:?[ \"'*]*$", re.IGNORECASE
)


def statements(text: str, program: str = "labd", nouns: Iterable[str] = ()) -> list[Stated]:
    """All commands of an answer, in order. `nouns`: the first words of the program's commands, to know a command in a
    sentence by."""
    known = frozenset(nouns)
    found: list[Stated] = []
    prose: list[str] = []
    for kind, part in _parts(_HTML.sub("`", text[:MOST_CHARS].replace("\r\n", "\n"))):
        if kind == "prose":
            prose.append(part)
            found += _from_prose(part, program, known)
        else:
            lead = prose[-1].rstrip() if prose else ""
            found += _from_block(part, _last_sentence(lead) if lead.endswith(":") else "")
            prose.clear()
    return found


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """The text as prose and code blocks, in order. A fence that is never closed goes on to the end."""
    kept: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line) if len(line) < 200 else None
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                yield "block", "\n".join(kept)
                kept, fence = [], ""
            else:
                kept.append(line)
        elif mark:
            yield "prose", "\n".join(kept)
            kept, fence = [], mark[1]
        else:
            kept.append(line)
    yield ("block" if fence else "prose"), "\n".join(kept)


# -- blocks ----------------------------------------------------------------------------------------------------


def _from_block(block: str, lead: str) -> Iterator[Stated]:
    """The lines of a code block; comments and the sentence that leads to it may deny them."""
    said = ""
    for line in _continued(block.split("\n")):
        stripped = line.strip()
        if stripped.startswith("#") and not _PROMPT.match(line):
            said = stripped.lstrip("# ")
            continue
        command = _PROMPT.sub("", line, count=1)
        command = _MARKER.sub("", command, count=1) if _MARKER.match(command) else command
        comment = re.search(r"\s#\s(.*)$", command)
        after = comment[1] if comment else ""
        no = denied(lead + " ", after) or denied(said + " ", "") or bool(after and denied(after + " ", ""))
        yield from _split(command, "block", no)
        said = said if not stripped else ""


def _continued(lines: Iterable[str]) -> Iterator[str]:
    held = ""
    for line in lines:
        if line.rstrip().endswith("\\") and len(held) < MOST_LINE:
            held += line.rstrip()[:-1] + " "
            continue
        yield held + line
        held = ""
    if held:
        yield held


# -- prose -----------------------------------------------------------------------------------------------------


def _from_prose(text: str, program: str, nouns: frozenset[str]) -> Iterator[Stated]:
    lines = list(_continued(text.split("\n")))
    kept: list[str] = []
    for line in lines:
        command = _own_line(line, program, nouns)
        if command is None:
            kept.append(line)
            continue
        yield from _from_sentences("\n".join(kept), program, nouns)
        lead = _last_sentence("\n".join(kept).rstrip())
        yield from _split(command, "plain", lead.endswith(":") and denied(lead[:-1] + " ", ""))
        kept = [lead] if lead.endswith(":") and "`" not in lead else []
    yield from _from_sentences("\n".join(kept), program, nouns)


def _own_line(line: str, program: str, nouns: frozenset[str]) -> str | None:
    """The command that a line is, if it is one: behind a prompt, indented like code, or beginning with the program."""
    if len(line) > MOST_LINE or "`" in line:
        return None
    bare = _MARKER.sub("", line, count=1).strip("*_ ") if "|" not in line[:3] else ""
    prompt = _PROMPT.match(bare) if not line.lstrip().startswith(">") else None
    if prompt:
        return bare[prompt.end() :]
    if not re.match(rf"{re.escape(program)}\s", bare):
        return None
    words = bare.split()
    return bare if not _is_prose(words, nouns) else None


def _is_prose(words: list[str], nouns: frozenset[str]) -> bool:
    """Whether words that begin with the program's name are a sentence about it."""
    second = words[1].strip(".,:;")
    unquoted = re.sub(r"\"[^\"]*\"|'[^']*'", "", " ".join(words[1:]))
    lower = [word.lower().strip(".,:;()") for word in unquoted.split()]
    if second in nouns:
        return unquoted.rstrip().endswith((".", "?", "!")) and bool(_PROSE & set(lower))
    return (
        not re.fullmatch(r"-{0,2}[a-z][a-z0-9-]*", second)
        or bool(_PROSE & set(lower))
        or unquoted.endswith((".", ":", "?", "!", ","))
    )


def _from_sentences(text: str, program: str, nouns: frozenset[str]) -> Iterator[Stated]:
    """Inline code and commands named in sentences, each with the words around it."""
    start = 0
    for end in [*(match.start() for match in _SENTENCE.finditer(text)), len(text)]:
        yield from _from_sentence(text[start:end].lstrip(" |\n"), program, nouns)
        start = end


def _from_sentence(sentence: str, program: str, nouns: frozenset[str]) -> Iterator[Stated]:
    blank = _CODE.sub(lambda match: " " * len(match[0]), sentence)
    for match in _CODE.finditer(sentence):
        code = _PROMPT.sub("", match[2].strip(), count=1)
        first = code.split(" ", 1)[0]
        if first == program or (" " in code and re.match(r"[\w./-]+$", first)):
            no = _denied_there(blank, match)
            yield from _split(code, "inline", no)
    for match in re.finditer(rf"(?<![\w./-]){re.escape(program)}[ ]+([a-z][a-z0-9-]*)", blank):
        if match[1] in _PROSE or not (match[1] in nouns or _asked(blank[max(0, match.start() - 60) : match.start()])):
            continue
        words = _spoken(blank[match.start() : match.start() + 400])
        yield Stated(tuple(words), "said", _denied_there(blank, match))


def _denied_there(sentence: str, match: re.Match[str]) -> bool:
    return denied(sentence[max(0, match.start() - REACH) : match.start()], sentence[match.end() : match.end() + REACH])


def _asked(before: str) -> bool:
    """Whether the words before a command ask for it, so that a word nobody knows is meant as one."""
    return _ASKING.search(before) is not None


def _spoken(text: str) -> list[str]:
    """The words of a command in a sentence: up to its punctuation, or to a word that only sentences have."""
    words: list[str] = []
    for word in text.split():
        bare = word.rstrip(".,;:!?)\"'*")
        if words and bare.lower() in _PROSE:
            break
        words.append(bare)
        if bare != word:
            break
    return [word for word in words if word]


def _last_sentence(text: str) -> str:
    """What stands before a block, from its last sentence on."""
    tail = text[-1000:]
    at = 0
    for match in _SENTENCE.finditer(tail):
        at = match.end() if match.end() < len(tail) else at
    return _CODE.sub(" ", tail[at:]).strip()


def _split(line: str, kind: str, no: bool) -> Iterator[Stated]:
    if len(line) > MOST_LINE:
        return
    for words in _simple_commands(_HOLE.sub(lambda match: "〈" + match[1].replace(" ", "_") + "〉", line)):
        if words:
            yield Stated(tuple(words), kind, no)


# -- a shell's syntax ------------------------------------------------------------------------------------------

_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)")
_BEFORE = frozenset(("sudo", "time", "then", "do", "else", "if", "while", "until", "!", "{", "env", "exec", "nohup"))
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


def _simple_commands(line: str) -> Iterator[list[str]]:
    """The simple commands of a line, those of `$(…)` first, without redirections, assignments and keywords."""
    for match in _SUBSTITUTION.finditer(line):
        yield from _pieces(match[1])
    yield from _pieces(_SUBSTITUTION.sub("$SUBSTITUTED", line))


def _pieces(line: str) -> Iterator[list[str]]:
    words: list[str] = []
    skip = False
    for token in _tokens(line):
        if token.startswith("#"):
            break
        if token and not token.strip("();|&"):
            yield from _bare(words)
            words = []
        elif token and not token.strip("<>&|"):
            words = words[:-1] if words and words[-1] in ("1", "2") else words
            skip = True
        elif skip:
            skip = False
        else:
            words.append(token)
    yield from _bare(words)


def _tokens(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.commenters = ""
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # an open quote: an apostrophe of English, mostly
        return line.split()


def _bare(words: list[str]) -> Iterator[list[str]]:
    while words and (words[0] in _BEFORE or _ASSIGNED.fullmatch(words[0])):
        words = words[1:]
    if words:
        yield words
