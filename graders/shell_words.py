"""Which commands of one program a shell's text runs, and how surely: `cd x && labd target add pico; labd … | head`.

Knows lists, pipes, groups, conditions, loops, functions, here-documents, substitutions, programs that start another
(env, timeout, sudo, xargs…), and shells in shells. A text that it doesn't understand gives mentions of which nothing is
sure: graders may ask about them and never accuse. Pure.
"""

import posixpath
import re
from dataclasses import dataclass, replace

from graders import shell_starts
from graders.shell_found import Found, Reach
from graders.shell_lex import Token, Unclear, tokens

#: Shells in shells beyond this are not read.
MOST_DEPTH = 12


def commands(text: str, program: str) -> list[Found]:
    """The commands of `program` in a shell's text, in order; mentions with nothing sure where it isn't understood."""
    return _read(text, program, 0)


def _read(text: str, program: str, depth: int) -> list[Found]:
    if depth > MOST_DEPTH:
        return _mentions(text, program)
    try:
        return _Parser(text, program, depth).run()
    except Unclear:
        return _mentions(text, program)


def _mentions(text: str, program: str) -> list[Found]:
    """Where the program's name stands, in a text of which nothing is understood."""
    named = re.finditer(rf"(?<![\w.-]){re.escape(program)}(?![\w.-])", text)
    return [Found((program, ""), False, start=m.start(), end=m.end(), repeats=True, holes=frozenset({1}))
            for m in named]  # fmt: skip


@dataclass(frozen=True)
class _Where:
    """What holds where a command stands. `last`: nothing of the text comes after it."""

    reach: Reach = "always"
    last: bool = True
    alone: bool = True
    repeats: bool = False
    negated: bool = False

    def maybe(self, *, repeats: bool = False) -> "_Where":
        return _Where("maybe", False, False, self.repeats or repeats)

    def middle(self) -> "_Where":
        """Something follows, so that the text's success says nothing about what depends on it here."""
        return replace(self, last=False, alone=False)


_CLOSING = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}"})
_END = object()


class _Parser:
    """Recursive descent over tokens; collects what it finds on its way."""

    def __init__(self, text: str, program: str, depth: int) -> None:
        self.text, self.program, self.depth = text, program, depth
        self.tokens = tokens(text)
        self.at = self.nesting = 0
        self.found: list[Found] = []
        self.floor: Reach = "always"  # what has been said so far may have ended the shell
        self.shadowed = self.pipefail = self.trapped = False
        self.looking = False  # ahead: nothing is collected
        self.ends: dict[int, int] = {}

    def run(self) -> list[Found]:
        self._list(_Where())
        if self.at < len(self.tokens):
            raise Unclear(f"unexpected {self.tokens[self.at].text!r}")
        if self.shadowed:
            return [replace(one, certain=False, reach="maybe", decides=False, needed=False, whole=False)
                    for one in self.found]  # fmt: skip
        if self.trapped:  # what a trap does may change the exit code
            self._undecided(0)
        return self.found

    # -- tokens --------------------------------------------------------------------------------------------------

    def _peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _is(self, *texts: str, kind: str = "op", ahead: int = 0) -> bool:
        at = self.at + ahead
        token = self.tokens[at] if at < len(self.tokens) else None
        return token is not None and token.kind == kind and token.bare and token.text in texts

    def _keyword(self, *texts: str) -> bool:
        return self._is(*texts, kind="word")

    def _take(self, *texts: str, kind: str = "word") -> Token:
        token = self._peek()
        if token is None or token.kind != kind or (texts and token.text not in texts):
            raise Unclear(f"no {' or '.join(texts) or kind}")
        self.at += 1
        return token

    def _newlines(self, *more: str) -> None:
        while self._is("\n", *more):
            self.at += 1

    # -- lists ---------------------------------------------------------------------------------------------------

    def _list(self, where: _Where) -> None:
        """Commands up to what closes the list. Where one is the last can be told only by looking ahead."""
        self.nesting += 1
        if self.nesting > 60:
            raise Unclear("nested too deeply")
        self._newlines(";")
        first = True
        while not self._closed():
            end = self._item_end()
            last = self._nothing_after(end)
            own = where if last and first else replace(where, alone=False) if last else where.middle()
            background = end < len(self.tokens) and self.tokens[end].text == "&"
            self._and_or(own.maybe() if background else own)
            first = False
            if self._is(";", "&", "\n"):
                self.at += 1
                self._newlines()
            elif not self._closed():
                raise Unclear("no end of a command")
        self.nesting -= 1

    def _closed(self) -> bool:
        token = self._peek()
        if token is None or (token.kind == "op" and token.text in (")", ";;", ";&", ";;&")):
            return True
        return self._keyword(*_CLOSING)

    def _item_end(self) -> int:
        """Where the list's item that begins here ends: a look ahead that leaves no trace, once for each place."""
        start = self.at
        if start not in self.ends:
            kept, self.looking = (self.floor, self.shadowed, self.nesting, self.looking), True
            self._and_or(_Where().maybe())
            self.ends[start], self.at = self.at, start
            self.floor, self.shadowed, self.nesting, self.looking = kept
        return self.ends[start]

    def _nothing_after(self, at: int) -> bool:
        while at < len(self.tokens) and self.tokens[at].kind == "op" and self.tokens[at].text in (";", "\n"):
            at += 1
        token = self.tokens[at] if at < len(self.tokens) else None
        return token is None or (token.kind == "op" and token.text == ")") or (token.bare and token.text == "}")

    def _and_or(self, where: _Where) -> None:
        start_reach = where.reach
        only_and, depends = True, False
        begun = len(self.found)
        while True:
            start = len(self.found)
            self._pipeline(where, depends)
            if not self._is("&&", "||"):
                return
            self._undecided(start if self._is("&&") else begun, needed=self._is("&&"))
            only_and = only_and and self._is("&&")
            self.at += 1
            self._newlines()
            depends = True
            reach: Reach = "on_success" if only_and and where.last and start_reach != "maybe" else "maybe"
            where = replace(where, reach=reach, alone=False)

    def _pipeline(self, where: _Where, depends: bool) -> None:
        while self._keyword("!", "time"):
            token = self._take()
            where = replace(where, negated=where.negated or token.text == "!", alone=False)
            while token.text == "time" and self._keyword("-p"):
                self.at += 1
        piped = False
        while True:
            start = len(self.found)
            self._command(where, depends)
            if not self._is("|", "|&"):
                if self.pipefail and piped:
                    self._undecided(start)
                return
            piped = True
            self.at += 1
            self._newlines()
            self._undecided(start)
            where = replace(where, alone=False)

    def _undecided(self, start: int, *, needed: bool = False) -> None:
        """What has been found since `start` is not the last word: more of its pipe or list comes."""
        self.found[start:] = [replace(one, decides=False, needed=one.needed and needed, whole=False)
                              for one in self.found[start:]]  # fmt: skip

    # -- commands ------------------------------------------------------------------------------------------------

    def _command(self, where: _Where, depends: bool) -> None:
        if self._is("("):
            self.at += 1
            floor = self.floor  # what ends a subshell ends no more than that
            self._list(where)
            self._take(")", kind="op")
            self.floor = floor
        elif self._keyword("{"):
            self.at += 1
            self._list(where)
            self._take("}")
        elif self._keyword("if", "while", "until", "for", "select", "case", "function"):
            getattr(self, f"_{self.tokens[self.at].text}")(where)
        elif self._is("(", ahead=1) and self._is(")", ahead=2):
            self._function(where)
        else:
            self._simple(where, depends)
            return
        while (token := self._peek()) is not None and token.kind == "redirection":
            self._inner(token, where)
            self.at += 1

    def _if(self, where: _Where) -> None:
        self._take("if")
        self._list(where.middle())
        self._take("then")
        self._list(where.maybe())
        while self._keyword("elif"):
            self.at += 1
            self._list(where.maybe())
            self._take("then")
            self._list(where.maybe())
        if self._keyword("else"):
            self.at += 1
            self._list(where.maybe())
        self._take("fi")

    def _while(self, where: _Where) -> None:
        self._take("while", "until")
        self._list(where.maybe(repeats=True))
        self._body(where)

    _until = _while

    def _for(self, where: _Where) -> None:
        self._take("for", "select")
        self._take()
        self._newlines()
        if self._keyword("in"):
            while (token := self._peek()) is not None and token.kind == "word":
                self._inner(token, where)
                self.at += 1
        self._newlines(";")
        self._body(where)

    _select = _for

    def _body(self, where: _Where) -> None:
        self._take("do")
        self._list(where.maybe(repeats=True))
        self._take("done")

    def _case(self, where: _Where) -> None:
        self._take("case")
        self._inner(self._take(), where)
        self._newlines()
        self._take("in")
        self._newlines()
        while not self._keyword("esac"):
            while not self._is(")"):
                if self._peek() is None:
                    raise Unclear("an open case")
                self.at += 1
            self.at += 1
            self._list(where.maybe())
            if not self._is(";;", ";&", ";;&"):
                break
            self.at += 1
            self._newlines()
        self._take("esac")

    def _function(self, where: _Where) -> None:
        if self._keyword("function"):
            self.at += 1
        name = self._take()
        self.shadowed = self.shadowed or name.text == self.program
        if self._is("("):
            self.at += 1
            self._take(")", kind="op")
        self._newlines()
        floor = self.floor
        self._command(where.maybe(repeats=True), False)
        self.floor = floor

    def _simple(self, where: _Where, depends: bool) -> None:
        words: list[Token] = []
        redirections: list[Token] = []
        while (token := self._peek()) is not None and token.kind != "op":
            (words if token.kind == "word" else redirections).append(token)
            self.at += 1
        if not words and not redirections:
            raise Unclear("no command")
        for token in (*words, *redirections):
            self._inner(token, where)
        body = next((token.body for token in redirections if token.body is not None and not token.open), None)
        self._run(words, replace(where, alone=where.alone and not redirections), body)
        self._ends(words, depends or where.reach != "always")

    def _inner(self, token: Token, where: _Where) -> None:
        """Commands whose output becomes part of the token."""
        if self.looking:
            return
        for text in token.inner:
            self._nested(text, replace(where, alone=False), token, last=False)

    def _nested(self, text: str, where: _Where, token: Token, *, last: bool, exact: bool = True) -> None:
        """The commands of a text within this one, no surer than their place here."""
        ending = where.last and last and exact and not where.negated
        for one in _read(text, self.program, self.depth + 1):
            reach = _least(one.reach, where.reach, self.floor)
            if reach == "on_success" and not (where.last and last):
                reach = "maybe"
            repeats = one.repeats or where.repeats
            self.found.append(replace(
                one, start=token.start, end=token.end, reach=reach, certain=reach == "always" and not repeats,
                repeats=repeats, negated=one.negated or where.negated, decides=one.decides and ending,
                needed=one.needed and ending and reach != "maybe", whole=one.whole and ending and where.alone,
            ))  # fmt: skip

    def _run(self, words: list[Token], where: _Where, body: str | None) -> None:
        """One simple command: ours, one that starts another, or one that is no business of ours."""
        if self.looking:
            return
        started = shell_starts.read(words, body)
        if started.texts:
            for token, text in started.texts:
                inner = where if started.once else where.maybe(repeats=True)
                self._nested(text, inner, token, last=started.exact, exact=started.exact)
            return
        words = list(started.words)
        if words and words[0].text == "alias" and any(w.text.startswith(f"{self.program}=") for w in words[1:]):
            self.shadowed = True
        if not words or posixpath.basename(words[0].text) != self.program or words[0].open:
            return
        reach = _least(where.reach, self.floor) if started.once else "maybe"
        repeats = where.repeats or not started.once
        told = tuple(token.text for token in words) + (("",) if started.more else ())
        holes = {at for at, token in enumerate(words) if token.open} | ({len(words)} if started.more else set())
        decides = where.last and started.exact and not where.negated
        self.found.append(Found(
            told, reach == "always" and not repeats, where.negated, words[0].start, words[-1].end, reach, repeats,
            decides, decides and reach != "maybe", where.alone and started.exact, frozenset(holes),
        ))  # fmt: skip

    def _ends(self, words: list[Token], conditional: bool) -> None:
        """What the command means for those after it: `exit`, `set -e`, `exec`."""
        told = [token.text for token in words]
        if not told:
            return
        self.trapped = self.trapped or told[0] == "trap"
        self.pipefail = self.pipefail or (told[0] == "set" and "pipefail" in told)
        if told[0] == "set" and any(re.fullmatch(r"-[a-df-z]*e[a-z]*|errexit", word) for word in told[1:]):
            self.floor = _least(self.floor, "on_success")
        elif told[0] in ("exit", "return", "logout") or (told[0] == "exec" and len(told) > 1):
            fails = told[0] != "exec" and conditional and told[1:] != ["0"] and not any(w.open for w in words)
            self.floor = _least(self.floor, "on_success" if fails else "maybe")
        elif told[0] in ("break", "continue", "source", ".", "kill", "unalias"):
            self.floor = _least(self.floor, "maybe")


_ORDER: tuple[Reach, ...] = ("always", "on_success", "maybe")


def _least(*reaches: Reach) -> Reach:
    return max(reaches, key=_ORDER.index)
