"""What all parsers share: gathers messages, calls and results into a Transcript, whatever their order.

A result may come before its call is known, or never: a call without one stays `pending` and nobody says how it ended.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from harness.transcripts import lines
from harness.transcripts.model import MAIN, Call, Ended, Kind, Message, Role, State, Thread, Transcript, Usage

#: More messages and calls than this are not kept, which is said.
MOST_ENTRIES = 100_000

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("bash", "shell", "shell_command", "local_shell", "exec_command", "run_shell_command",
                     "run_command", "command_execution", "unified_exec", "execute_command"), "shell"),
    **dict.fromkeys(("skill", "activate_skill", "load_skill"), "skill"),
    **dict.fromkeys(("read", "read_file", "view_file", "glob", "grep", "ls", "list", "list_dir", "list_directory",
                     "search_file_content", "read_many_files", "notebookread", "grep_search", "view"), "read"),
    **dict.fromkeys(("write", "edit", "multiedit", "notebookedit", "write_file", "replace", "apply_patch", "patch",
                     "file_change", "write_to_file", "replace_file_content", "create_file"), "write"),
    **dict.fromkeys(("task", "agent", "spawn_agent", "collab_tool_call", "delegate", "subagent"), "agent"),
    **dict.fromkeys(("webfetch", "websearch", "web_fetch", "web_search", "google_web_search", "read_url_content",
                     "search_web"), "web"),
}  # fmt: skip


def kind_of(tool: str) -> Kind:
    """What a tool is, by its name."""
    return _KINDS.get(tool.lower(), "other")


class Builder:
    """One transcript while it is read."""

    def __init__(self, product: str, fmt: str, read: lines.Read | None = None) -> None:
        self.made = Transcript(product, fmt, threads=[Thread(MAIN)])
        self._read = read
        self._calls: dict[str, Call] = {}
        self._threads = {MAIN}
        self._n = self._left_out = 0

    def unknown(self, kind: Any) -> None:
        """An event of a type that this parser doesn't know: counted, never fatal."""
        name = lines.text(kind)[:80] or "(no type)"
        seen = self.made.unknown_events
        if name in seen or len(seen) < 200:
            seen[name] = seen.get(name, 0) + 1

    def thread(self, name: str, *, by_call: str | None = None, called: str | None = None) -> str:
        """The thread of that id, made if need be."""
        if name not in self._threads:
            self._threads.add(name)
            self.made.threads.append(Thread(name, None, by_call, called))
        elif called or by_call:
            known = next(one for one in self.made.threads if one.id == name)
            known.name, known.by_call = known.name or called, known.by_call or by_call
        return name

    def _next(self) -> bool:
        if self._n >= MOST_ENTRIES:
            self._left_out += 1
            return False
        self._n += 1
        return True

    def say(self, role: Role, text: str, *, thread: str = MAIN, t: float | None = None, id: str | None = None) -> None:  # noqa: A002
        """Something said; nothing is left out silently but empty text. What no person typed is no user's."""
        role = "system" if role == "user" and not typed(text) else role
        if text and self._next():
            self.made.messages.append(Message(self._n, thread, role, text, t, id))

    @property
    def last_said(self) -> str:
        """What was said last, if no call came after it."""
        last = self.made.messages[-1] if self.made.messages else None
        return last.text if last and last.n == self._n else ""

    def append(self, role: Role, text: str, *, thread: str = MAIN, t: float | None = None) -> None:
        """The next piece of what was being said: it joins the last message where that is the last entry of all."""
        last = self.made.messages[-1] if self.made.messages else None
        if last and last.n == self._n and (last.role, last.thread) == (role, thread):
            if len(last.text) < lines.MOST_TEXT:
                last.text += text
            return
        self.say(role, text, thread=thread, t=t)

    def call(self, id: str, tool: str, told: Any, *, kind: Kind | None = None, **more: Any) -> Call:  # noqa: A002
        """The call of that id: made, or known already. Its shell text and words are read from its input."""
        known = self._calls.get(id)
        if known is not None and (known.tool or not tool):
            return known
        kept = known is None and self._next()
        call = known or Call(self._n, id, MAIN, tool)
        call.tool, call.kind, call.input = tool, kind or kind_of(tool), lines.obj(told)
        for name, value in more.items():
            setattr(call, name, value)
        if call.command is None and call.kind == "shell":
            call.command, call.argv = shell(call.input)
        self._calls[id] = call
        if kept:
            self.made.calls.append(call)
        return call

    def find(self, id: str) -> Call | None:  # noqa: A002
        """The call of that id."""
        return self._calls.get(id)

    def result(
        self, call: Call, output: str | None, *, state: State, is_error: bool | None = None,
        code: int | None = None, t: float | None = None,
    ) -> None:  # fmt: skip
        """How a call ended. The last word counts, but for a code that a later one doesn't tell."""
        call.output, call.state, call.is_error = output, state, is_error
        call.answered_n = self._n if call.answered_n is None else call.answered_n
        call.ended_t = t if t is not None else call.ended_t
        if code is not None:
            call.exit_code, call.exit_source = code, "transcript"

    def finish(self, ended: Ended | None = None) -> Transcript:
        """The transcript. Threads get their parents; the answer is the last that was said, if none was set."""
        made = self.made
        if self._read is not None:  # whose records have all been taken by now
            made.truncated, made.problems = self._read.truncated, [*self._read.problems, *made.problems]
        by_call = {call.id: call for call in made.calls}
        for thread in made.threads[1:]:
            thread.parent = by_call[thread.by_call].thread if thread.by_call in by_call else MAIN
        if not made.answer:
            made.answer = last_words(made.messages)
        if ended is not None:
            made.ended = ended
        if self._left_out:
            made.problems.append(lines.Problem(0, f"{self._left_out} more messages and calls are left out"))
        return made


#: The tags in which products write down what a person typed; what else is in tags alone was written by a program.
_PERSONS = re.compile(r"command-(?:name|message|args)|bash-input|user[_-](?:query|prompt|message|input|request)")
_TAGGED = re.compile(r"\s*<([A-Za-z][\w:-]*)[^<>]*>.*?</\1>\s*", re.DOTALL)


def typed(text: str) -> bool:
    """Whether a person may have written it: a reminder or a notification stands in its tags, and nothing beside."""
    at = 0
    while found := _TAGGED.match(text, at):
        if _PERSONS.fullmatch(found[1]):
            return True
        at = found.end()
    return at < len(text)


def last_words(messages: Iterable[Message]) -> str:
    """What the main agent said last: all text of its last answer."""
    own = [one for one in messages if one.thread == MAIN and one.role == "assistant"]
    if not own:
        return ""
    last = own[-1]
    return "".join(one.text for one in own if one.id == last.id) if last.id else last.text


def shell(told: Mapping[str, Any]) -> tuple[str | None, list[str] | None]:
    """A shell tool's input as (text, words): products call it command, cmd, CommandLine; it may be words already."""
    for key in ("command", "cmd", "CommandLine", "command_line", "script"):
        found = told.get(key)
        if isinstance(found, str):
            return lines.text(found), None
        if isinstance(found, list) and found and all(isinstance(word, str) for word in found):
            return unwrapped(found), found
    return None, None


def unwrapped(argv: list[str]) -> str:
    """The shell text that words stand for: what is behind `sh -lc`, else the words quoted."""
    if len(argv) == 3 and re.fullmatch(r"(?:.*/)?(?:ba|z|da|k)?sh", argv[0]) and re.fullmatch(r"-[a-z]*c", argv[1]):
        return argv[2]
    return shlex.join(argv)


def parts(total: int | None, *known: int | None) -> int | None:
    """`total` without its known parts, never below 0."""
    return None if total is None else max(0, total - sum(part or 0 for part in known))


def totalled(usage: Usage) -> Usage:
    """With the total as the sum of its parts where none was told. Reasoning is a part of the output."""
    if usage.total is None and usage.input is not None and usage.output is not None:
        usage.total = usage.input + usage.output + (usage.cache_read or 0) + (usage.cache_write or 0)
    return usage
