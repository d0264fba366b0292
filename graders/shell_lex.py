"""Cuts the text of a shell (sh, bash) into words and operators. Runs nothing, expands nothing.

A word says what of it is known: quotes are taken off; where the shell would put something in (a variable, a glob, a
command's output) the word is open and nobody can know what it becomes. What is not understood raises Unclear: half an
understanding of a shell is none. Pure, and linear in the text.
"""

import re
from dataclasses import dataclass, field

#: More than this is not read (characters).
MOST_CHARS = 100_000


class Unclear(ValueError):
    """The text is no shell text that this module understands."""


@dataclass
class Token:
    """A word, an operator (`&&`, `;`, newline…) or a redirection with its target left out.

    `open`: the shell would replace part of it. `bare`: nothing in it was quoted, so that it may be a keyword.
    `inner`: the texts of commands substituted within. `body`: a here-document's, for the redirection that takes it.
    """

    kind: str
    text: str
    start: int
    end: int
    open: bool = False
    bare: bool = True
    inner: list[str] = field(default_factory=list)
    body: str | None = None


_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|\|&|[;&|()\n]")
_REDIRECTION = re.compile(r"(?:\d+|\{\w+\})?(?:<<<|<<-|<<|<>|<&|>&|>>|>\||<(?!\()|>(?!\())|&>>?")
_PLAIN = re.compile(r"[^\s;&|()<>\\'\"`$#*?\[{}~]+")
_VARIABLE = re.compile(r"\$(?:\w+|[@*#?$!-])")


def tokens(text: str) -> list[Token]:
    """All tokens, in order. Raises Unclear."""
    if len(text) > MOST_CHARS:
        raise Unclear("too long")
    return _Lexer(text).run()


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.found: list[Token] = []
        self.waiting: list[tuple[Token, bool, str, bool]] = []  # redirection, tabs off, delimiter, expanded

    def run(self) -> list[Token]:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\r" or self.text.startswith("\\\n", self.at):
                self.at += 1 if char != "\\" else 2
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text.startswith("((", self.at) and self._commanding():
                self._arithmetic()
            elif redirection := _REDIRECTION.match(self.text, self.at):
                self._redirect(redirection)
            elif operator := _OPERATOR.match(self.text, self.at):
                self.at = operator.end()
                self.found.append(Token("op", operator[0], operator.start(), operator.end()))
                if operator[0] == "\n":
                    self._here_documents()
            else:
                word = self._word()
                self.found.append(word)
                if word.text == "[[" and word.bare:
                    self._condition()
        if self.waiting:
            self._here_documents()
        return self.found

    def _commanding(self) -> bool:
        """Whether a command may begin here."""
        last = self.found[-1] if self.found else None
        return last is None or last.kind == "op" or (last.bare and last.text in ("for", "if", "while", "until", "!"))

    def _arithmetic(self) -> None:
        end = self.text.find("))", self.at)
        if end < 0:
            raise Unclear("an open ((")
        self.found.append(Token("word", "((", self.at, end + 2, bare=False))
        self.at = end + 2

    def _condition(self) -> None:
        """`[[ … ]]` has a grammar of its own: one word, unless commands stand within."""
        end = re.compile(r"\s\]\](?=[\s;&|)]|$)").search(self.text, self.at)
        if end is None:
            raise Unclear("an open [[")
        body = self.text[self.at : end.start()]
        if "$(" in body or "`" in body:
            raise Unclear("a command within [[")
        self.at = end.end()

    def _redirect(self, match: re.Match[str]) -> None:
        token = Token("redirection", match[0].lstrip("0123456789"), match.start(), match.end())
        self.found.append(token)
        self.at = match.end()
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        if self.at >= len(self.text) or _OPERATOR.match(self.text, self.at):
            raise Unclear("a redirection to nothing")
        target = self._word()
        token.end = target.end
        if token.text in ("<<", "<<-"):
            self.waiting.append((token, token.text == "<<-", target.text, target.bare))
        else:
            token.inner = target.inner
            token.body = target.text if token.text == "<<<" and not target.open else None

    def _here_documents(self) -> None:
        """The bodies of the here-documents of the line that ends here. One without its end goes to the text's end."""
        for token, tabs, delimiter, expanded in self.waiting:
            lines: list[str] = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = end + 1
                line = line.lstrip("\t") if tabs else line
                if line == delimiter:
                    break
                lines.append(line)
            token.body = "\n".join(lines)
            if expanded:
                token.inner = _substitutions(token.body)
                token.open = "$" in token.body or "`" in token.body
        self.at = min(self.at, len(self.text))
        self.waiting = []

    # -- words ---------------------------------------------------------------------------------------------------

    def _word(self) -> Token:
        word = Token("word", "", self.at, self.at)
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if plain := _PLAIN.match(self.text, self.at):
                parts.append(plain[0])
                self.at = plain.end()
            elif char == "\\":
                if self.at + 1 < len(self.text) and self.text[self.at + 1] != "\n":
                    parts.append(self.text[self.at + 1])
                    word.bare = False
                self.at += 2
            elif char == "'":
                parts.append(self._until_quote())
                word.bare = False
            elif char == '"':
                self._double(word, parts)
                word.bare = False
            elif char in "$`":
                self._expansion(word, parts, quoted=False)
            elif char in "<>" and self.text.startswith("(", self.at + 1):
                self.at += 1
                word.inner.append(self._parenthesis())
                word.open = True
            elif char in "*?[{}~#":
                self._special(word, parts, char)
            else:
                break
        word.text, word.end = "".join(parts), min(self.at, len(self.text))
        if word.end == word.start:
            raise Unclear(f"{self.text[self.at : self.at + 1]!r} where a word should be")
        return word

    def _special(self, word: Token, parts: list[str], char: str) -> None:
        """A character that is a glob, a brace or a tilde only in some places. Lone braces and brackets are commands."""
        alone = self.at == word.start and re.match(r"[\[{}]{1,2}(?=[\s;&|)]|$)", self.text[self.at : self.at + 3])
        if char in "*?" or (char in "[{" and not alone) or (char == "~" and self.at == word.start):
            word.open = True
        parts.append(char)
        self.at += 1

    def _until_quote(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unclear("an open '")
        inside = self.text[self.at + 1 : end]
        self.at = end + 1
        return inside

    def _double(self, word: Token, parts: list[str]) -> None:
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\" and self.at + 1 < len(self.text):
                following = self.text[self.at + 1]
                parts.append(following if following in '$`"\\' else "" if following == "\n" else char + following)
                self.at += 2
            elif char in "$`":
                self._expansion(word, parts, quoted=True)
            else:
                parts.append(char)
                self.at += 1
        raise Unclear('an open "')

    def _expansion(self, word: Token, parts: list[str], *, quoted: bool) -> None:
        """What begins with $ or `: a variable, a command's output, arithmetic, or a plain dollar."""
        start = self.at
        if self.text[start] == "`":
            end = re.compile(r"(?:[^`\\]|\\.)*`", re.DOTALL).match(self.text, start + 1)
            if end is None:
                raise Unclear("an open `")
            word.inner.append(re.sub(r"\\([`$\\])", r"\1", self.text[start + 1 : end.end() - 1]))
            self.at = end.end()
        elif self.text.startswith("$((", start):
            end_at = self.text.find("))", start)
            if end_at < 0:
                raise Unclear("an open $((")
            self.at = end_at + 2
        elif self.text.startswith("$(", start):
            self.at += 1
            word.inner.append(self._parenthesis())
        elif self.text.startswith("${", start):
            self._parameter(word)
        elif not quoted and self.text.startswith(("$'", '$"'), start):
            self.at += 1
            if self.text[self.at] == '"':
                self._double(word, parts)
                return
            end = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL).match(self.text, self.at)
            if end is None:
                raise Unclear("an open $'")
            self.at = end.end()
            word.bare = False
        elif variable := _VARIABLE.match(self.text, start):
            self.at = variable.end()
        else:
            parts.append("$")
            self.at += 1
            return
        parts.append(self.text[start : self.at])
        word.open = True

    def _parameter(self, word: Token) -> None:
        end = self.text.find("}", self.at)
        inside = self.text[self.at + 2 : end]
        if end < 0 or any(mark in inside for mark in ("$(", "`", "{", "'", '"')):
            raise Unclear("an expansion within ${")
        self.at = end + 1

    def _parenthesis(self) -> str:
        """The text in the parentheses that open here; quotes and nested ones are skipped."""
        start, depth = self.at, 0
        skip = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|[^()'\"\\]+", re.DOTALL)
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "()":
                depth += 1 if char == "(" else -1
                self.at += 1
                if depth == 0:
                    return self.text[start + 1 : self.at - 1]
            elif skipped := skip.match(self.text, self.at):
                self.at = skipped.end()
            else:
                break
        raise Unclear("an open (")


def _substitutions(text: str) -> list[str]:
    """The commands that a here-document's body runs."""
    word = Token("word", "", 0, 0)
    lexer = _Lexer(text)
    for match in re.finditer(r"(?<!\\)(?:\$\((?!\()|`)", text):
        if match.start() >= lexer.at:
            lexer.at = match.start()
            lexer._expansion(word, [], quoted=True)
    return word.inner
