"""Command strings of the lab. They run without a shell, so one that needs a shell has to say so: `sh -c '…'`.

Pure: says whether a string asks for a shell, and how to write it so that it gets one. Runs nothing.
"""

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash", "fish")

_META = {
    "|": "a pipe (|)",
    ";": "a sequence (;)",
    "&": "&& or &",
    "<": "a redirect (<)",
    ">": "a redirect (>)",
    "`": "a backquote",
    "$": "a $ expansion",
    "*": "a glob (*)",
    "?": "a glob (?)",
    "[": "a glob ([)",
    "(": "a parenthesis",
    ")": "a parenthesis",
    "\n": "a line break",
}


class Words:
    """A command string taken apart: `words`, and `shell`: what in it only a shell understands ("" if nothing)."""

    __slots__ = ("shell", "words")

    def __init__(self, words: list[str], shell: str) -> None:
        self.words = words
        self.shell = shell


def take_apart(command: str) -> Words:
    """The words of a command string. Raises ValueError, saying what is wrong, for an empty or unclosed one.

    Quotes and backslashes mean what they mean to sh; nothing is expanded.
    """
    import shlex

    try:
        words = shlex.split(command)
    except ValueError as error:
        said = "a quote is not closed" if "quotation" in str(error) else "it ends in a backslash"
        raise ValueError(said) from None
    if not words or not words[0]:
        raise ValueError("it is empty")
    if "\0" in command:
        raise ValueError("it holds a NUL character")
    name, equals, _ = words[0].partition("=")
    if equals and name.isidentifier():
        return Words(words, f"a leading {name}=")
    return Words(words, _shell_syntax(command, _is_shell(words)))


def with_shell(command: str) -> str:
    """The same command as one that has a shell."""
    import shlex

    return f"sh -c {shlex.quote(command)}"


def quotable(command: str) -> str:
    """The command with its words quoted, where only the ? and & of URLs ask for a shell: they are meant as they are;
    else ""."""
    import shlex

    words = take_apart(command).words
    quoted = shlex.join(words)
    urls = all("://" in word and not set(word) & (set(_META) - {"?", "&"}) and "&&" not in word
               for word in words if set(word) & set(_META))  # fmt: skip
    return quoted if urls and not take_apart(quoted).shell else ""


def _is_shell(words: list[str]) -> bool:
    """Whether this is a shell that is given a script: then what is in quotes is the script's own business."""
    name = words[0].rsplit("/", 1)[-1]
    return name in SHELLS and any(word.startswith("-") and word.endswith("c") for word in words[1:])


def _shell_syntax(command: str, script: bool) -> str:
    quote = ""
    skip = False
    for char in command:
        if skip:
            skip = False
        elif char == "\\" and quote != "'":
            skip = True
        elif quote:
            if char == quote:
                quote = ""
            elif quote == '"' and char in "$`" and not script:
                return _META[char] + " in double quotes"
        elif char in "'\"":
            quote = char
        elif char in _META:
            return _META[char]
    return ""
