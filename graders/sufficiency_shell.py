"""What a shell's text does with files: its simple commands, and which files each reads, searches and writes. Pure.

Decided for each simple command by itself, wherever it stands: in lists, pipes, substitutions, loops, behind sudo and
xargs, in shells in shells. A here-document or a redirected output is writing. A filter that gets its text from a pipe
accesses no file. What another program does with files (a script, an editor's macro) is not in the text, and not told.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from graders import shell_starts
from graders.shell_lex import Token, Unclear, tokens

Kind = Literal["read", "search", "write", "other"]

#: Shells in shells beyond this are not read.
MOST_DEPTH = 12


@dataclass(frozen=True)
class Access:
    """One simple command. paths: the files that it reads, searches or writes, globs included; known: all are told.

    words: the program and what it is given; a word of which part is put in by the shell is in `paths` never. script:
    what it is given on its standard input, where the text itself has that.
    """

    kind: Kind
    words: tuple[str, ...]
    paths: tuple[str, ...] = ()
    known: bool = True
    script: str = ""

    @property
    def program(self) -> str:
        """The program's name without its directory; empty where there is none."""
        return posixpath.basename(self.words[0]) if self.words else ""


@lru_cache(maxsize=256)
def accesses(text: str) -> tuple[Access, ...]:
    """All simple commands, in the order in which they begin. Raises Unclear for a text that is not understood."""
    return tuple(_read(text, "", 0))


# -- the text into simple commands ---------------------------------------------------------------------------------


@dataclass
class _Command:
    words: list[Token] = field(default_factory=list)
    redirections: list[Token] = field(default_factory=list)
    piped: bool = False


_BEFORE = frozenset({"then", "do", "if", "while", "until", "else", "elif", "{", "!", "time", "fi", "done", "esac", "}"})
_HEADERS = frozenset({"for", "select", "case", "function"})


def _commands(text: str) -> Iterator[_Command]:
    """The simple commands of this level. Headers of loops give what is substituted in them, and no words."""
    now, open_ = _Command(), 0
    for token in tokens(text):
        if token.kind == "redirection":
            now.redirections.append(token)
        elif token.kind == "word":
            if now.words or not (token.bare and token.text in _BEFORE):
                now.words.append(token)
        else:
            pattern = token.text == ")" and open_ == 0
            open_ += {"(": 1, ")": -1 if open_ else 0}.get(token.text, 0)
            named = token.text == "(" and bool(now.words)  # the name of a function
            if now.words or now.redirections:
                yield _emptied(now) if pattern or named or _header(now) else now
            now = _Command(piped=token.text in ("|", "|&"))
    if now.words or now.redirections:
        yield _emptied(now) if _header(now) else now


def _header(command: _Command) -> bool:
    first = command.words[0] if command.words else None
    return first is not None and first.bare and first.text in _HEADERS


def _emptied(command: _Command) -> _Command:
    """Only what is substituted within."""
    return _Command([], [replace(one, text="") for one in command.words])


def _read(text: str, place: str, depth: int) -> Iterator[Access]:
    """The accesses of a text that runs in the directory `place` (empty: where the agent is)."""
    if depth > MOST_DEPTH:
        raise Unclear("too many shells in shells")
    for command in _commands(text):
        for token in (*command.words, *command.redirections):
            for inner in token.inner:
                yield from _read(inner, place, depth + 1)
        if searching := _finds(command.words):
            yield searching
        started = shell_starts.read(command.words, _body(command))
        for _, inner in started.texts:
            yield from _read(inner, place, depth + 1)
        if not started.texts and not (searching and not started.words):
            found = _access(list(started.words), command, text, more=started.more)
            if found is not None:
                told = next((one.body for one in command.redirections if one.body is not None), "")
                yield replace(found, paths=tuple(posixpath.join(place, path) for path in found.paths), script=told)
        words = [token.text for token in command.words]
        if len(words) == 2 and words[0] in ("cd", "pushd") and not command.words[1].open:
            place = posixpath.normpath(posixpath.join(place, words[1]))


def _body(command: _Command) -> str | None:
    return next((one.body for one in command.redirections if one.body is not None and not one.open), None)


def _finds(words: Sequence[Token]) -> Access | None:
    """`find` as a search, whatever stands before it and whatever it starts."""
    for at, word in enumerate(words):
        if posixpath.basename(word.text) == "find" and not word.open:
            probe = replace(word, text="find-itself")
            if probe in shell_starts.read([*words[:at], probe]).words[:1]:
                rest = words[at + 1 :]
                places = [one.text for one in rest[: next((i for i, w in enumerate(rest) if w.text[:1] in "-("), 99)]]
                return Access("search", ("find", *(one.text for one in rest)), tuple(places))
            return None
    return None


# -- one simple command --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Program:
    """options: those that take a word of their own. script: the first operand is a script or a pattern, unless one of
    `instead` gave it. needless: it looks into files even where none is named and its input is a pipe."""

    kind: Kind
    options: frozenset[str] = frozenset()
    script: bool = False
    instead: frozenset[str] = frozenset()
    needless: bool = False


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _rows(kind: Kind, *rows: tuple[str, str] | tuple[str, str, str]) -> dict[str, _Program]:
    """Name → program, from rows of names, options with a word and, where the first operand is a script, the options
    that stand for it."""
    found = {}
    for names, options, *scripts in rows:
        instead = _set(" ".join(scripts))
        made = _Program(kind, _set(options) | instead, bool(scripts), instead)
        found.update(dict.fromkeys(names.split(), made))
    return found


_PROGRAMS: dict[str, _Program] = {
    **_rows(
        "read",
        ("cat tac zcat view", ""),
        ("less", "-b -D -h -j -k -o -O -p -P -t -T -x -y -z --pattern --tag --prompt --tabs --buffers --LOG-FILE"),
        ("more", "-n --lines"),
        ("bat batcat", ("-r --line-range -l --language -H --highlight-line -m --map-syntax --theme --style --color "
         "--paging --pager --wrap --tabs --decorations --italic-text --terminal-width --file-name --diff-context")),
        ("strings", "-n --bytes -t --radix -e --encoding -T --target -s --output-separator -U --unicode"),
        ("head tail", "-n -c -s --lines --bytes --pid --sleep-interval --max-unchanged-stats"),
        ("nl", "-b -d -f -h -i -l -n -s -v -w"),
        ("od", "-A -j -N -S -t --address-radix --skip-bytes --read-bytes --format"),
        ("xxd", "-c -cols -g -groupsize -l -len -n -name -o -s -seek -R"),
        ("hexdump hd", "-e -f -n -s --length --skip --format --format-file"),
        ("sed gsed", "-l --line-length", "-e -f --expression --file"),
        ("awk gawk mawk nawk", "-v -F -i -l --assign --field-separator --include --load", "-f -e --file --source"),
        ("jq", "--indent --tab-size -L", "-f --from-file"),
        ("yq", "-o -p -I --output-format --input-format --indent", "--from-file"),
    ),
    **_rows(
        "search",
        ("grep egrep fgrep zgrep", ("-m -A -B -C -d -D --include --exclude --exclude-dir --exclude-from --max-count "
         "--after-context --before-context --context --label --directories --devices --binary-files"),
         "-e -f --regexp --file"),
        ("ack ag", "-m -A -B -C -G -g --ignore --ignore-dir --depth --pager --type --max-count", "--match"),
        ("rg", ("-g -t -T -A -B -C -m -M -j -r -E -d --glob --iglob --type --type-not --max-count --context "
         "--after-context --before-context --max-columns --max-depth --max-filesize --threads --replace --encoding "
         "--sort --sortr --pre --color --colors --ignore-file --type-add"), "-e -f --regexp --file"),
    ),
    **{name: _Program("search", _set("-I -L -w --hide -e -E -t -d -x -X"), needless=True)
       for name in ("ls", "tree", "exa", "eza", "lsd", "locate", "fd", "fdfind")},
    **_rows(
        "write",
        ("tee rm ed ex nano chmod", ""),
        ("cp mv ln", "-t --target-directory -S --suffix"),
        ("install", "-m -o -g -t -S --mode --owner --group --target-directory"),
        ("touch", "-t -d -r --date --reference"),
        ("truncate", "-s -r --size --reference"),
        ("mkdir", "-m --mode"),
        ("patch", "-i -d -o -p -F -r -B -D --input --directory --output --strip --fuzz"),
        ("vi vim", "-c -S -T -u -i -w -W"),
    ),
}  # fmt: skip
#: Options of jq that take two words, and name no file to read from.
_PAIRS = frozenset({"--arg", "--argjson", "--slurpfile", "--rawfile"})
_RECURSIVE = re.compile(r"-[A-Za-z]*[rR][A-Za-z]*|--recursive|--files")


def _access(words: list[Token], command: _Command, text: str, *, more: bool) -> Access | None:
    """What a simple command does. None: it runs nothing and redirects nothing."""
    out, read = _redirected(command.redirections, text)
    if not words:
        return Access("write", (), tuple(out)) if out else None
    told = tuple(word.text for word in words)
    plain = Access("write" if out else "other", told, tuple(out))
    if words[0].open:
        return plain
    name = posixpath.basename(told[0])
    if name == "git":
        return _git(told) or plain
    program = _PROGRAMS.get(name)
    if program is None:
        return plain
    files = [*_operands(words[1:], program), *read]
    paths = tuple(one.text for one in files if not _hole(one))
    known = not more and len(paths) == len(files)
    if name in ("sed", "gsed") and any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in told[1:]):
        return Access("write", told, paths, known)
    if program.kind == "write":
        return Access("write", told, (*paths, *out), known)
    if program.kind == "search":
        everywhere = program.needless or any(_RECURSIVE.fullmatch(word) for word in told[1:])
        given = command.piped or any(one.text.startswith("<<") for one in command.redirections)
        fed = given and not files and not more and not everywhere
        return plain if fed else Access("search", told, paths, known)
    return plain if out or not (files or more) else Access("read", told, paths, known)


def _hole(token: Token) -> bool:
    """Whether the shell puts something into the word that nobody can know; a glob can be compared."""
    return token.open and re.search(r"[$`]|^\{\}$|<\(", token.text) is not None


def _operands(words: Sequence[Token], program: _Program) -> list[Token]:
    """The words that are files: neither options nor theirs, nor a script or pattern."""
    files: list[Token] = []
    scripted, skip, options = not program.script, 0, True
    for word in words:
        if skip:
            skip -= 1
        elif options and word.text == "--":
            options = False
        elif options and word.text.startswith("-") and word.text != "-":
            scripted = scripted or word.text.partition("=")[0] in program.instead
            skip = 2 if word.text in _PAIRS else int(word.text in program.options)
        elif not scripted:
            scripted = True
        elif word.text != "-":
            files.append(word)
    return files


_REDIRECTION = re.compile(r"(\d*|\{\w+\})(<<<|<<-|<<|<>|<&|>&|>>|>\||<|>|&>>?)\s*(.*)", re.DOTALL)


def _redirected(found: Sequence[Token], text: str) -> tuple[list[str], list[Token]]:
    """(files that standard output goes to, files that standard input comes from)."""
    out, read = [], []
    for token in found:
        match = _REDIRECTION.match(text[token.start : token.end])
        if match is None or not token.text:
            continue
        number, operator, target = match[1], match[2], match[3].strip("'\"")
        if operator in (">", ">>", ">|", "&>", "&>>") and number in ("", "1") and not target.startswith("/dev/"):
            out.append(target)
        elif operator == "<" and number in ("", "0") and not target.startswith("/dev/"):
            read.append(Token("word", target, token.start, token.end, open="$" in target))
    return out, read


def _git(told: tuple[str, ...]) -> Access | None:
    """git as a reader of files, in the working tree or in a commit; None where it is none."""
    words = list(told[1:])
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in ("-C", "-c") else 1 :]
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if verb in ("grep", "ls-files", "ls-tree"):
        return Access("search", told)
    if verb == "show" and any(":" in word for word in rest):
        return Access("read", told, tuple(word.partition(":")[2] for word in rest if ":" in word))
    if verb == "blame":
        return Access("read", told, tuple(word for word in rest[-1:] if not word.startswith("-")))
    return None
