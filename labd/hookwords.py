"""What program a hook really starts: understands `~`, `VAR=value`, `env`, `sudo`, `sh -c`. Pure but for PATH lookups.

Hooks run without a shell; this is for telling, before one is needed, whether it can work. Runs nothing.
"""

import os
import re
import shlex
from collections.abc import Mapping

from labd.lab import hooks

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SHELLS = {"sh", "bash", "dash", "zsh", "ash"}
#: Options of sudo and env that take a value in the next word.
_VALUED = {"sudo": {"-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U"}, "env": {"-u", "-C", "-S"}}


class Hook:
    """One hook, taken apart. `problem` is why it can't be understood; `programs` are what it would start, in order
    (wrappers such as sudo first); `devices` are the /dev paths among its words; `notes` are doubts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.programs: list[str] = []
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
        words = taken.words
        self._walk(words)

    def _walk(self, words: list[str]) -> None:
        words = self._past_assignments(words)
        if not words:
            self.problem = self.problem or "it names no program"
            return
        program = words[0]
        self.programs.append(program)
        base = os.path.basename(program)
        if base in _VALUED:
            inner = self._past_options(words[1:], _VALUED[base])
            if base == "sudo":
                self.notes.append("whether sudo would ask for a password was not tried")
            if inner:
                self._walk(inner)
        elif base in _SHELLS and "-c" in words[1:-1]:
            self._script(words[words.index("-c") + 1])
        else:
            self.devices += [word for word in words[1:] if word.startswith("/dev/")]

    def _script(self, script: str) -> None:
        """The first command of a shell script; the rest is the shell's own business."""
        self.notes.append("of the shell script, only the first command was looked at")
        first = re.split(r"[;&|\n<>]", script, maxsplit=1)[0]
        try:
            words = shlex.split(first)
        except ValueError:
            return
        if self._past_assignments(words):
            self._walk(words)

    def _past_assignments(self, words: list[str]) -> list[str]:
        at = 0
        while at < len(words) and _ASSIGNMENT.match(words[at]):
            at += 1
        return words[at:]

    def _past_options(self, words: list[str], valued: set[str]) -> list[str]:
        at = 0
        while at < len(words) and words[at].startswith("-"):
            if words[at] == "--":
                return words[at + 1 :]
            at += 2 if words[at] in valued else 1
        return words[at:]


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
        return path, path
    import shutil

    found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found:
        return found, found
    return None, f"{program} is neither a bundled helper nor on PATH"
