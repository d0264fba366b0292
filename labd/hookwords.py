"""What program a hook really starts: understands `~`, `env`, `sudo`, `timeout` and their like, and `sh -c`.

Hooks run without a shell; this is for telling, before one is needed, whether it can work. Pure but for PATH lookups;
runs nothing.
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence

from labd.errors import nearest
from labd.lab import hooks
from labd.shebang import unstartable

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")

#: Programs that run another one → their options that take a value in the next word, and how many words of their own
#: come before the other program.
_WRAPPERS: dict[str, tuple[set[str], int]] = {
    "sudo": ({"-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U"}, 0),
    "doas": ({"-u", "-C"}, 0),
    "env": ({"-u", "-C"}, 0),
    "timeout": ({"-s", "--signal", "-k", "--kill-after"}, 1),
    "nice": ({"-n", "--adjustment"}, 0),
    "ionice": ({"-c", "-n"}, 0),
    "stdbuf": ({"-i", "-o", "-e"}, 0),
    "flock": ({"-w", "--timeout", "-E"}, 1),
    "nohup": (set(), 0),
    "setsid": (set(), 0),
}

#: Words of a shell that do something by themselves; the next command of the script is the one to look at.
_PASSING = {"cd", "set", "export", "umask", "true", ":", "test", "[", "unset", "trap", "sleep", "echo"}

#: Words of a shell behind which only the shell knows its way.
_KEYWORDS = {"if", "for", "while", "until", "case", "{", "(", "((", "[[", "!", ".", "source", "eval", "function"}


class Hook:
    """One hook, taken apart. `problem` is why it can't be understood; `programs` are what it would start, in order
    (wrappers such as sudo first); `words` are those of the last one, with it; `by_sudo` is the command that sudo is to
    run, if any; `devices` are the /dev paths among its words; `notes` are doubts. `env` is what `$NAME` in a script
    means."""

    def __init__(self, text: str, env: Mapping[str, str] | None = None) -> None:
        self.text = text
        self.env = env or {}
        self.programs: list[str] = []
        self.words: list[str] = []
        self.by_sudo: list[str] = []
        self.devices: list[str] = []
        self.notes: list[str] = []
        self.problem: str | None = None
        try:
            taken = hooks.take_apart(text)
        except ValueError as error:
            self.problem = str(error)
            return
        if taken.shell:
            self.problem = f"it needs a shell for {taken.shell}; write sh -c '…'"
        self._walk(taken.words)

    def _walk(self, words: list[str]) -> None:
        places = programs(words)
        if not places:
            self.problem = self.problem or "it names no program"
            return
        self.programs += [words[at] for at in places]
        by_sudo = [at for at in places if os.path.basename(words[at]) == "sudo"]
        if by_sudo:
            self.by_sudo = words[next((at for at in places if at > by_sudo[-1]), len(words)) :]
        words = self.words = words[places[-1] :]
        if os.path.basename(words[0]) in hooks.SHELLS and (script := _script_of(words)) is not None:
            self._script(script)
            return
        named = (word.rpartition("=")[2] for word in words[1:])
        self.devices += [word for word in named if word.startswith("/dev/") and word != "/dev/null"]

    def _script(self, script: str) -> None:
        """The first command of a shell script that is a program; the rest is the shell's own business."""
        self.notes.append("of the shell script, only the first command was looked at")
        where = ""
        for words in _commands(script):
            words = words[next(iter(programs(words)), len(words)) :]
            words = words[1:] if words[:1] == ["exec"] else words
            if words[:1] == ["cd"] and len(words) == 2:
                where = os.path.join(where, self._expanded(words[1]))
            if not words or words[0] in _PASSING:
                continue
            words[0] = self._expanded(words[0])
            if "/" in words[0] and words[0][0] not in "~$":
                words[0] = os.path.join(where, words[0])
            if words[0] not in _KEYWORDS and not set(words[0]) & set("$`*?"):
                self._walk(words)
            return

    def _expanded(self, word: str) -> str:
        """`$HOME` and its like, as far as the environment has them."""
        return re.sub(r"\$\{?(\w+)\}?", lambda name: self.env.get(name[1], name[0]), word)


def programs(words: Sequence[str]) -> list[int]:
    """Where among the words of a command the programs stand that it starts: wrappers (sudo, env …) first, the one that
    does the work last. Empty when there is none."""
    found: list[int] = []
    at = 0
    while at < len(words):
        if _ASSIGNMENT.match(words[at]):
            at += 1
            continue
        found.append(at)
        base = os.path.basename(words[at])
        if base not in _WRAPPERS:
            break
        valued, own = _WRAPPERS[base]
        at += 1
        while at < len(words) and words[at].startswith("-") and words[at] != "--":
            at += 2 if words[at] in valued else 1
        at += own + (words[at : at + 1] == ["--"])
    return found


def find(program: str, env: Mapping[str, str], folder: str) -> tuple[str | None, str]:
    """(path or `helper NAME`, what was found or why nothing was), for a program word of a hook.

    A bundled helper wins over PATH, as it does when the hook runs. A relative path with a slash counts from
    `folder`, the lab file's directory.
    """
    from labd import helpers, paths

    if program in helpers.bundled():
        return f"helper {program}", "a bundled helper"
    if "/" in program or program.startswith("~"):
        path = paths.expand(program, env, folder)
        if not os.path.exists(path):
            return None, f"{path} does not exist"
        if os.path.isdir(path):
            return None, f"{path} is a directory"
        if not os.access(path, os.X_OK):
            return None, f"{path} is not executable"
        return _startable(path, env)
    import shutil

    found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found:
        return _startable(found, env)
    near = nearest(program, list(helpers.bundled()))
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return None, f"{program} is neither a bundled helper nor on PATH{meant}"


def _startable(path: str, env: Mapping[str, str]) -> tuple[str | None, str]:
    why = unstartable(path, env)
    return (None, f"{path} {why}") if why else (path, path)


def _script_of(words: list[str]) -> str | None:
    """The script of `sh -c SCRIPT`, also of `bash -lc SCRIPT`."""
    for at, word in enumerate(words[1:-1], start=1):
        if word.startswith("-") and word.endswith("c"):
            return words[at + 1]
    return None


def _commands(script: str) -> list[list[str]]:
    """The words of each command of a script, quotes heeded, as far as it can be read without a shell."""
    lexer = shlex.shlex(script.replace("\n", " ; "), posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    redirected = False
    try:
        for word in lexer:
            if set(word) <= set(";&|"):
                commands.append([])
            elif set(word) <= set("<>"):
                redirected = True
            elif redirected:
                redirected = False
            else:
                commands[-1].append(word)
    except ValueError:
        pass
    return [words for words in commands if words]
