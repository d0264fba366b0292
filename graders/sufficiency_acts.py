"""What one call of an agent is, seen from the thing that is judged: asks it again, reads, searches, delegates… Pure.

The thing is a tool by its name (also as an MCP server's), or a program in the shell. A shell's text is what its first
command is that asks the thing or touches a file; other commands (a build, a script) matter only where there is none.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from graders import shell_words
from graders.shell_found import Found
from graders.shell_lex import Unclear
from graders.sufficiency_returned import same
from graders.sufficiency_shell import Access, accesses

#: `aside` says nothing about an answer (bookkeeping, a tool that does not exist); `unclear`: a text nobody understood.
Kind = Literal["again", "help", "around", "read", "search", "write", "other", "delegate", "aside", "unclear"]

_BOOKKEEPING = frozenset((
    "toolsearch", "todowrite", "todoread", "todo_write", "todo_read", "write_todos", "taskcreate", "taskupdate",
    "tasklist", "taskget", "update_plan", "todo_list", "update_topic", "enterplanmode", "exitplanmode",
    "bashoutput", "taskoutput", "killshell", "killbash", "taskstop", "wait", "close_agent", "send_input",
    "wait_agent", "write_stdin",
))  # fmt: skip
_READ = frozenset((
    "read", "read_file", "view_file", "view", "notebookread", "read_many_files", "read_text_file", "open_file", "cat",
    "view_image", "read_multiple_files",
))  # fmt: skip
_SEARCH = frozenset((
    "grep", "glob", "ls", "list", "list_dir", "list_directory", "search_file_content", "grep_search", "file_search",
    "find_by_name", "codebase_search", "search_files", "directory_tree", "lsp", "webfetch", "websearch", "web_fetch",
    "web_search", "google_web_search", "read_url_content", "search_web",
))  # fmt: skip
_PATH_KEYS = ("file_path", "filePath", "path", "absolute_path", "AbsolutePath", "notebook_path", "target_file", "paths",
              "files", "relative_path", "uri")  # fmt: skip
_QUERY_KEYS = ("query", "question", "q", "task", "prompt", "pattern", "symbol", "text", "name", "command")
#: Commands that say nothing by themselves.
_SILENT = frozenset({"cd", "pushd", "popd", "pwd", "sleep", "true", ":", "export", "set", "wait", ""})
_PAGES = frozenset({"man", "info", "tldr", "whatis", "apropos"})
_INTERPRETERS = re.compile(r"(?:python|pypy|perl|ruby|node|deno|bun|php|lua|tclsh)[\d.]*")
_SCRIPT_WORDS = re.compile(r"[\w.@~+\-/]+")
#: Options that take no value, by custom.
_FLAGS = frozenset(("-q", "-v", "-vv", "-vvv", "-y", "-h", "-V", "--quiet", "--verbose", "--debug", "--json", "--yes",
                    "--help", "--version", "--dry-run"))  # fmt: skip
_RUNNERS = frozenset({"npx", "bunx", "uvx", "pipx", "python", "python3", "bun", "pnpm", "yarn", "uv"})


@dataclass(frozen=True)
class Thing:
    """What is judged. Exactly one of `tool` (a name, * allowed) and `program` is set.

    servers: the MCP servers of the tool, whose other tools ask the same thing. commands: the program's command paths,
    where they are known. writes: those of them that change something: with other words they are other work. first:
    words that are known to begin a command. programs, files: what goes around it. skills: its guides, by name.
    """

    tool: str = ""
    program: str = ""
    commands: frozenset[tuple[str, ...]] = frozenset()
    writes: frozenset[tuple[str, ...]] = frozenset()
    first: frozenset[str] = frozenset()
    programs: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()
    skills: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"the tool {self.tool}" if self.tool else f"the program {self.program}"

    def verbs(self, words: Sequence[str]) -> frozenset[tuple[str, ...]]:
        """What may be the command among the program's words: the longest path that is known, else what `leading` says,
        and of that a word that is known to begin a command. The empty path where there is none."""
        plain = [word for word in words[1:] if not word.startswith("-")]
        for start in range(len(plain)):
            for end in range(min(len(plain), start + 4), start, -1):
                if tuple(plain[start:end]) in self.commands:
                    return frozenset({tuple(plain[start:end])})
        told = leading(words[1:])
        sure = [word for word in told if word in self.first]
        return frozenset((word,) for word in sure[:1] or told) or frozenset({()})


@dataclass(frozen=True)
class Act:
    """One call. `shown`: for a person. paths: of a read; known: all of them are told. words: what the program is given
    where it is asked again."""

    kind: Kind
    shown: str
    paths: tuple[str, ...] = ()
    known: bool = True
    words: tuple[str, ...] = ()


def asks(call: Mapping[str, Any], thing: Thing) -> list[Found] | None:
    """The commands (for a tool: none) by which the call asks the thing; None if it doesn't."""
    if thing.tool:
        return [] if _is_tool(_text(call.get("tool")), thing.tool) else None
    text = _command(call)
    if thing.program not in text:
        return None
    found = [one for one in shell_words.commands(text, thing.program) if one.words[1:] != ("",)]
    return found or None


def query(call: Mapping[str, Any], commands: Sequence[tuple[str, ...]]) -> str:
    """What was asked, for a person."""
    if commands:
        return "; ".join(shlex.join(word for word in words if word) for words in commands)
    told = _input(call) if call.get("kind") != "shell" else {"command": _command(call)}
    asked = next((told[key] for key in _QUERY_KEYS if isinstance(told.get(key), str) and told[key]), None)
    return f'"{asked}"' if asked is not None else json.dumps(told, sort_keys=True, ensure_ascii=False)


def act(call: Mapping[str, Any], thing: Thing) -> Act:
    """What the call is. Never raises, whatever the call is."""
    tool = _text(call.get("tool"))
    bare = tool.rpartition("__")[2].rpartition(".")[2].casefold()
    if thing.tool and (_is_tool(tool, thing.tool) or server(tool) in thing.servers):
        return Act("again", tool)
    if bare in _BOOKKEEPING:
        return Act("aside", tool)
    if call.get("kind") == "shell":
        return _shell(call, thing)
    if call.get("kind") == "agent":
        return Act("delegate", tool)
    if call.get("kind") == "skill":
        named = {_text(value) for value in _input(call).values() if isinstance(value, str)}
        return Act(
            "help" if named & (thing.skills | {thing.program}) - {""} else "other", f"{tool} {min(named, default='')}"
        )
    paths = _paths(call)
    if _around(bare, paths, thing):
        return Act("around", _named(tool, paths), paths)
    if bare in _READ:
        return Act("read", _named(tool, paths, _window(call)), paths, bool(paths))
    if bare in _SEARCH:
        told = _input(call)
        what = next((told[key] for key in (*_QUERY_KEYS, "url") if isinstance(told.get(key), str)), "")
        return Act("search", f"{tool} {what}".strip(), paths)
    if call.get("kind") == "invented":
        return Act("aside", f"{tool} (no such tool)")
    return Act("write" if call.get("kind") == "write" else "other", _named(tool, paths), paths)


def routes(call: Mapping[str, Any], thing: Thing) -> bool:
    """Whether the call reaches the thing by another way than the one that is judged: its program beside its tool, its
    tool beside its program, or either behind a runner of packages."""
    name = thing.program or (server(thing.tool) or thing.tool)
    if call.get("kind") != "shell":
        tool = _text(call.get("tool"))
        return bool(thing.program) and (server(tool) == name or tool.rpartition("__")[2] == name)
    text = _command(call)
    if name not in text:
        return False
    try:
        found = accesses(text)
    except Unclear:
        return False
    return any(_runs(one.words, name, direct=bool(thing.tool)) for one in found)


def _runs(words: Sequence[str], name: str, *, direct: bool) -> bool:
    if direct and words and posixpath.basename(words[0]) == name:
        return True
    behind = [word for word in words[1:4] if not word.startswith("-")]
    return bool(words) and posixpath.basename(words[0]) in _RUNNERS and any(
        word.partition("@")[0].rpartition("/")[2] == name or word.startswith(f"{name}@") for word in behind
    )  # fmt: skip


# -- tools ---------------------------------------------------------------------------------------------------------


def _is_tool(tool: str, wanted: str) -> bool:
    """By the whole name, or what stands behind its server's: `mcp__server__name`, `server.name`; in any case."""
    told, asked = tool.casefold(), wanted.casefold()
    return any(fnmatchcase(one, asked) for one in (told, told.rpartition("__")[2], told.rpartition(".")[2]) if one)


def server(tool: str) -> str:
    """The MCP server in a tool's name; empty where it tells none."""
    if tool.startswith("mcp__") and tool.count("__") >= 2:
        return tool.split("__")[1]
    return tool.partition(".")[0] if "." in tool else ""


def _paths(call: Mapping[str, Any]) -> tuple[str, ...]:
    told = _input(call)
    found: list[str] = []
    for key in _PATH_KEYS:
        value = told.get(key)
        found += [value] if isinstance(value, str) else [one for one in value if isinstance(one, str)] \
            if isinstance(value, list) else []  # fmt: skip
    changes = told.get("changes")
    if isinstance(changes, list):
        found += [_text(one.get("path")) for one in changes if isinstance(one, dict)]
    return tuple(one for one in dict.fromkeys(found) if one)


def _window(call: Mapping[str, Any]) -> str:
    told = _input(call)
    return next((f" from line {told[key]}" for key in ("offset", "start_line", "StartLine", "startLine")
                 if isinstance(told.get(key), int) and not isinstance(told[key], bool)), "")  # fmt: skip


def _named(tool: str, paths: Sequence[str], more: str = "") -> str:
    return " ".join([tool, *map(short, paths[:3]), *(["…"] if len(paths) > 3 else [])]) + more


def short(path: str) -> str:
    """The last parts of a path."""
    parts = path.replace("\\", "/").rstrip("/").split("/")
    return path if len(parts) <= 3 else "…/" + "/".join(parts[-2:])


# -- the shell -----------------------------------------------------------------------------------------------------


def _shell(call: Mapping[str, Any], thing: Thing) -> Act:
    tool, text = _text(call.get("tool")), _command(call)
    try:
        found = accesses(text)
    except Unclear:
        return Act("unclear", f"{tool} {text[:80]}")
    written: list[str] = []
    for one in found:
        kind = _of(one, thing, written)
        if kind is not None:
            return Act(kind, f"{tool} {_shown(kind, one)}".strip(), one.paths, one.known, one.words)
        written += one.paths if one.kind == "write" else ()
    loud = [one for one in found if one.program not in _SILENT or one.kind != "other"]
    if not loud:
        return Act("aside", f"{tool} {text[:80]}")
    return Act("write" if written else "other", f"{tool} {loud[0].program or '>'}", tuple(written))


def _shown(kind: Kind, one: Access) -> str:
    """The command for a person: `Bash read lib/x.js`, `Bash search pattern`."""
    if kind in ("again", "help"):
        return shlex.join(one.words)
    what = one.program if kind == "around" else kind
    files = map(short, one.paths[:3])
    pattern = next((word for word in one.words[1:] if not word.startswith("-")), "")
    return " ".join([what, *([pattern] if kind == "search" else files)])


def _of(one: Access, thing: Thing, written: Sequence[str]) -> Kind | None:
    """What a command is, if it is something at all. What this very text wrote before is no file of the thing's."""
    if thing.program and one.program == thing.program:
        return "help" if is_help(one.words) else "again"
    if thing.program and one.program in _PAGES and any(w.partition("-")[0] == thing.program for w in one.words[1:]):
        return "help"
    if _around(one.program, one.paths, thing) or (_INTERPRETERS.fullmatch(one.program) and _scripted(one, thing)):
        return "around"
    if one.kind in ("read", "search"):
        mine = one.paths and all(any(same(path, out) for out in written) for path in one.paths)
        return None if mine else "read" if one.kind == "read" else "search"
    return None


def _scripted(one: Access, thing: Thing) -> bool:
    """Whether a script that stands in the text itself has the name of one of the thing's files."""
    script = " ".join((one.script, *one.words[1:])) if thing.files else ""
    return any(same(word, file) for word in _SCRIPT_WORDS.findall(script) for file in thing.files)


def is_help(words: Sequence[str]) -> bool:
    """Whether the program is asked for its help."""
    own = list(words[1 : words.index("--")] if "--" in words else words[1:])
    return any(word in ("--help", "-h", "--man") for word in own) or leading(own)[:1] == ["help"]


def leading(words: Sequence[str]) -> list[str]:
    """The words that may be a program's command, with nothing known of its options: the first, unless it may be the
    value of the option before it. That of one letter takes it, by custom, where more words follow; of a long one
    nobody knows, so that the word behind it may be the command, too."""
    found: list[str] = []
    option = ""
    for at, word in enumerate(words):
        if word.startswith("-"):
            option = "" if "=" in word or word in _FLAGS or word.startswith("--no-") else word
            continue
        last = all(one.startswith("-") for one in words[at + 1 :])
        if may_be_verb(word) and (not option or last or option.startswith("--")):
            found.append(word)
        if not option:
            break
        option = ""
    return found


def may_be_verb(word: str) -> bool:
    """Whether a word looks like a command's name: no option, number, file or address."""
    return re.fullmatch(r"[A-Za-z][\w:-]*", word) is not None


def _around(name: str, paths: Sequence[str], thing: Thing) -> bool:
    """Whether the call goes around the program: by another that is declared to, or straight to its files."""
    return name in thing.programs or any(same(path, one) for path in paths for one in thing.files)


def _command(call: Mapping[str, Any]) -> str:
    command, argv = call.get("command"), call.get("argv")
    if isinstance(command, str):
        return command
    return shlex.join(map(str, argv)) if isinstance(argv, list) and call.get("kind") == "shell" else ""


def _input(call: Mapping[str, Any]) -> Mapping[str, Any]:
    told = call.get("input")
    return told if isinstance(told, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
