"""Programs that start another one: what stands behind env, timeout, sudo, xargs, sh -c… in a shell's simple command.

A table, and one pass over words. What isn't in the table starts nothing that we know of. Pure.
"""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from graders.shell_lex import Token

#: Name → its options that take a word of their own, and how many words of its own it has before the command.
_STARTERS: dict[str, tuple[frozenset[str], int]] = {
    name: (frozenset(options.split()), own)
    for name, options, own in (
        ("env", "-u --unset -C --chdir", 0),
        ("timeout", "-s --signal -k --kill-after", 1),
        ("gtimeout", "-s --signal -k --kill-after", 1),
        ("sudo", "-u --user -g --group -h -p -C -D", 0),
        ("doas", "-u -C", 0),
        ("nice", "-n --adjustment", 0),
        ("ionice", "-c -n -p --class --classdata", 0),
        ("stdbuf", "-i -o -e --input --output --error", 0),
        ("nohup", "", 0),
        ("setsid", "", 0),
        ("command", "", 0),
        ("builtin", "", 0),
        ("exec", "-a", 0),
        ("time", "-f --format -o --output", 0),
        ("unbuffer", "", 0),
        ("strace", "-e -o -p -s -u", 0),
        ("xargs", "-I -n -P -L -d -a -s -E --max-args --max-procs --delimiter --arg-file --replace", 0),
        ("watch", "-n --interval", 0),
        ("flock", "-w --timeout -E", 1),
        ("chrt", "-T -P -D", 1),
        ("taskset", "", 1),
    )
}
#: Those that give the command another exit code than its own, or may.
_NOT_EXACT = frozenset({"timeout", "gtimeout", "xargs", "watch", "sudo", "doas", "strace", "flock", "script"})
#: Those that run it any number of times.
_MANY = frozenset({"xargs", "watch"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)


@dataclass(frozen=True)
class Started:
    """What really runs: `words`, or `texts` for other shells (each with the word that it stands in).

    once: exactly one time. exact: with its own exit code as the whole's. more: with more words than are told.
    """

    words: tuple[Token, ...] = ()
    texts: tuple[tuple[Token, str], ...] = field(default=())
    once: bool = True
    exact: bool = True
    more: bool = False


def read(words: Iterable[Token], body: str | None = None) -> Started:
    """Look behind the starters of a simple command. `body`: what its stdin is, where the text says so."""
    left = list(words)
    once = exact = True
    more = False
    while left:
        while left and _ASSIGNED.fullmatch(left[0].text):
            left = left[1:]
        name = posixpath.basename(left[0].text) if left and not left[0].open else ""
        if name in _SHELLS:
            return Started(texts=_shell(left, body), once=once, exact=exact)
        if name in ("eval", "trap", "su", "script", "find"):
            return _special(name, left, once, exact)
        if name not in _STARTERS or (name == "command" and left[1:2] and left[1].text in ("-v", "-V")):
            break
        once, exact, more = once and name not in _MANY, exact and name not in _NOT_EXACT, more or name == "xargs"
        left = _behind(name, left[1:])
    return Started(tuple(left), once=once, exact=exact, more=more)


def _behind(name: str, words: list[Token]) -> list[Token]:
    options, own = _STARTERS[name]
    while words and words[0].text.startswith("-") and words[0].text != "-":
        option = words[0].text
        words = words[2 if option in options else 1 :]
        if option == "--":
            break
    return words[own:]


def _shell(words: list[Token], body: str | None) -> tuple[tuple[Token, str], ...]:
    """The text that a shell is given: by -c, or on stdin. A script's file is not in the text."""
    errexit = False
    for at, token in enumerate(words[1:], 1):
        if not re.fullmatch(r"[-+][A-Za-z]+|--[a-z]+", token.text):
            return ()
        flags = "" if token.text.startswith("--") else token.text[1:]
        errexit = errexit or (token.text.startswith("-") and "e" in flags)
        if "c" in flags and at + 1 < len(words):
            text = words[at + 1]
            return ((text, ("set -e; " if errexit else "") + _known(text)),)
    return ((words[0], body),) if body is not None else ()


def _known(token: Token) -> str:
    """A word's text as a shell reads it. With something put in, nobody knows it: the open quote says so."""
    return f"'{token.text}" if token.open and "'" not in token.text else f'"{token.text}' if token.open else token.text


def _special(name: str, words: list[Token], once: bool, exact: bool) -> Started:
    told = [token.text for token in words]
    if name == "eval" and len(words) > 1:
        joined = " ".join(told[1:])
        text = joined if not any(token.open for token in words) else "'" + joined.replace("'", "")
        return Started(texts=((words[1], text),), once=once, exact=exact)
    if name == "trap" and len(words) > 2:
        return Started(texts=((words[1], _known(words[1])),), once=False, exact=False)
    if name in ("su", "script"):
        at = next((at for at, word in enumerate(told) if re.fullmatch(r"-[a-z]*c|--command", word)), len(told))
        return Started(texts=((words[at + 1], _known(words[at + 1])),), once=once, exact=False) \
            if at + 1 < len(words) else Started()  # fmt: skip
    if name == "find":
        at = next((at for at, word in enumerate(told) if word in ("-exec", "-execdir", "-ok")), len(told))
        until = next((i for i in range(at, len(told)) if told[i] in (";", "+")), len(told))
        behind = [token if token.text != "{}" else Token("word", "{}", token.start, token.end, open=True)
                  for token in words[at + 1 : until]]  # fmt: skip
        return Started(tuple(behind), once=False, exact=False)
    return Started()
