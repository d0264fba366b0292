"""Reads the help pages of a command-line program into a command reference (the form of surface.json).

`page` is pure: one page's text → its commands, options and positional words. It knows the layouts of argparse, click,
clap and cobra (with the variants of docker and kubectl) and that of git's own parser, and tells them apart by what is
on the page, not by being told. `walk` and `walk_git` ask for page after page through a function that is given in;
they start nothing themselves. What a page does not say is not guessed: the reference knows what the help knows.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from labd.errors import LabdError

#: Runs words (the program's name first); returns exit code (None: it never ended), stdout, stderr.
Ask = Callable[[list[str]], tuple[int | None, str, str]]

#: Commands below commands, and pages in all: a program that answers every word with a page of more words ends here.
DEEPEST, MOST = 4, 2000

#: Questions to the program at once: each is a process that mostly waits for its own start.
AT_ONCE = 4

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|.\x08")
_OPTION = re.compile(r"^ {1,8}(-{1,2}(?:\[no-\])?[A-Za-z0-9?#].*)$")
_COMMAND = re.compile(r"^ {1,6}([a-z0-9][\w.:-]*)\*?((?:, ?[\w-]+)*|(?: \([\w, -]+\)))?(?:  +(\S.*))?$")
_FLAG = re.compile(r"(?<![\w<\[{|-])--?(?:\[no-\])?[A-Za-z0-9?#][\w.-]*")
_PLACE = re.compile(r"<[^<>]+>|[A-Za-z][\w-]*(?::[\w-]+)*")
_NUMBERS = {"int": "int", "integer": "int", "uint": "int", "float": "float"}
_MANY = frozenset({"strings", "stringarray", "stringslice", "list", "ints"})


@dataclass(frozen=True)
class Listed:
    """A command as its parent's page lists it."""

    name: str
    aliases: tuple[str, ...]
    summary: str


@dataclass
class Page:
    """What one help page says. `params` are in the form of surface.json; `globals` those that it calls global."""

    usage: str = ""
    commands: list[Listed] = field(default_factory=list)
    params: list[dict[str, Any]] = field(default_factory=list)
    globals: list[dict[str, Any]] = field(default_factory=list)


def page(text: str) -> Page:
    """The page as data. A text that is no help page gives an empty one."""
    lines = _ANSI.sub("", text).expandtabs().split("\n")
    found = Page(usage=_usage(lines))
    places: list[str] = []
    for title, body in _sections(lines):
        kind = title.lower().rstrip(":")
        told = [_option(spec, more) for spec, more in _options(body)]
        (found.globals if "global" in kind else found.params).extend(one for one in told if one)
        if re.search(r"commands?\b", kind):
            found.commands += _commands(body)
        elif kind.startswith(("positional argument", "arguments")) or _choices(body):
            below = _commands(body, indent=4) if "..." in found.usage else []
            found.commands += below
            if not below:
                places += [match[1] for line in body if (match := re.match(r" {1,4}([<\[{]?[\w-][^ ]*)", line))]
    found.params += _places(found, places)
    return found


def _usage(lines: list[str]) -> str:
    """The text behind `usage:`, its first form only, on one line."""
    for number, line in enumerate(lines):
        if re.match(r"\s*usage:", line, re.IGNORECASE):
            parts = [line.partition(":")[2].strip()]
            for more in lines[number + 1 :]:
                if not more.startswith(" ") or re.match(r"\s+(or:|--?[\w-].*  )", more):
                    break
                parts.append(more.strip())
                if not parts[0] and len(parts) == 2 and "[" not in parts[1]:
                    continue
                if not parts[0]:  # cobra: each line behind `Usage:` is a form of its own
                    break
            return " ".join(part for part in parts if part)
    return ""


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """(title, lines below it) of the page; what stands before the first title has none."""
    title, body = "", []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        headed = line[:1].strip() and not re.match(r"usage:.*\S", line, re.IGNORECASE)
        if headed and (line.rstrip().endswith(":") or following.startswith(" ")):
            yield title, body
            title, body = line.strip(), []
        elif headed:
            yield title, body
            title, body = "", []
        else:
            body.append(line)
    yield title, body


def _options(body: list[str]) -> Iterator[tuple[str, str]]:
    """(spec, the text that tells about it) of each option."""
    for number, line in enumerate(body):
        match = _OPTION.match(line)
        if match is None:
            continue
        spec, _, told = match[1].strip().partition("  ")
        more = [told.strip()]
        for following in body[number + 1 :]:
            if _OPTION.match(following) or (following.strip() and not following.startswith(" " * 8)):
                break
            more.append(following.strip())
        yield spec.strip(), " ".join(part for part in more if part)


def _option(spec: str, told: str) -> dict[str, Any] | None:
    """One option: `-o, --output <FILE>`, `--shout / --no-shout`, `--name string`, `--color[=WHEN]`, `--all=false:`."""
    flags = [flag for found in _FLAG.findall(spec) for flag in _both(found)]
    if not flags:
        return None
    value = _FLAG.sub("", spec).strip(" ,/|")
    literal = re.fullmatch(r"=(.*):", value)  # kubectl tells a default in the place of a value
    optional = value.startswith("[") and (value.startswith("[=") or "<" in value)
    takes = bool(value.strip("=[]")) and not optional and not (literal and literal[1] in ("true", "false"))
    choices = _choice_words(value, told)
    word = value.strip("=<>[]. ").lower()
    kind = "choice" if choices and takes else _NUMBERS.get(word.rstrip("."), "str") if takes else "switch"
    name = max(flags, key=len).lstrip("-")
    return {"name": name, "flags": flags, "kind": kind, "required": "[required]" in told, "choices": choices,
            "repeat": word in _MANY or value.endswith("...") or kind == "switch", "help": told}  # fmt: skip


def _both(flag: str) -> list[str]:
    """`--[no-]status` is two flags."""
    return [flag.replace("[no-]", ""), flag.replace("[no-]", "no-")] if "[no-]" in flag else [flag]


def _choice_words(value: str, told: str) -> list[str]:
    """The closed set of values: argparse's {a,b}, click's [a|b], clap's [possible values: a, b]."""
    match = re.search(r"\{([\w.-]+(?:,[\w.-]+)+)\}|\[([\w.-]+(?:\|[\w.-]+)+)\]", value) or re.search(
        r"\[possible values: ([^\]]+)\]", told
    )
    return re.split(r"[,|]\s*", next(group for group in match.groups() if group)) if match else []


def _commands(body: list[str], indent: int = 0) -> list[Listed]:
    """The commands of a section: those at its least indentation (or at `indent`)."""
    found = [(len(line) - len(line.lstrip()), match) for line in body if (match := _COMMAND.match(line))]
    least = indent or min((depth for depth, _ in found), default=0)
    listed = []
    for depth, match in found:
        if depth == least:
            others = tuple(re.findall(r"[\w-]+", match[2] or ""))
            listed.append(Listed(match[1], others, (match[3] or "").strip()))
    return listed


def _choices(body: list[str]) -> bool:
    """Whether a section is argparse's list of subcommands under a title of its author's."""
    return any(re.match(r"  \{[\w,.-]+\}(\s|$)|  [A-Z]+$", line) for line in body)


def _places(found: Page, told: Iterable[str]) -> list[dict[str, Any]]:
    """The words that a command takes by their place: those of its section, else those of its usage."""
    usage = re.sub(r"\[-[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]", " ", found.usage)
    names = [name.strip("<>[]{}.") for name in told]
    if not names:
        words = usage.split(" ")
        while words and re.fullmatch(r"[a-z][\w.-]*", words[0]):
            words.pop(0)
        shape = " ".join(words)
        shape = re.sub(r"\[(OPTIONS|options|flags|<options>)\]|\(?-[^\s\])]*(?:[ =]<?[A-Z]+>?)?\)?", " ", shape)
        names = [name.strip("<>") for name in _PLACE.findall(shape)]
    skipped = {"command", "subcommand", "options", "flags", "cmd", "args"} if found.commands else {"options", "flags"}
    made = []
    for name in dict.fromkeys(names):
        if name.lower() in skipped or "," in name:
            continue
        here = re.escape(name)
        many = re.search(rf"{here}[\]>)]*\s?(\.\.\.|…)|{here} \[{here}", usage) is not None
        optional = re.search(rf"\[<?{here}", usage) is not None and re.search(rf"(^| )<?{here}>? ", usage) is None
        made.append({"name": name.lower(), "flags": [], "kind": "str", "required": not optional and name in usage,
                     "choices": [], "repeat": many, "help": ""})  # fmt: skip
    return made


# -- walking --------------------------------------------------------------------------------------------------------


def walk(ask: Ask, program: str, *, effects: Mapping[str, str] | None = None, leave_out: Iterable[str] = ("help",),
         opaque: Iterable[str] = ()) -> dict[str, Any]:  # fmt: skip
    """The command reference of a program whose every command answers `--help`.

    `effects` says what a command does (its path → a word; a help page never says), `opaque` names those whose page
    tells not all that they take. Raises LabdError if the program gives no help.
    """
    top = _text(ask, [program, "--help"])
    first = page(top)
    if not first.commands and not first.params:
        raise LabdError(f"{program} --help gave no page that tells of a command or an option")
    pages, leaves = {"": top}, {}
    level = [((), one) for one in first.commands]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(DEEPEST):
            level = [(above, one) for above, one in level if one.name not in leave_out][: MOST - len(pages)]
            texts = list(pool.map(lambda entry: _text(ask, [program, *entry[0], entry[1].name, "--help"]), level))
            below: list[Any] = []
            for (above, one), text in zip(level, texts, strict=True):
                path, found = (*above, one.name), page(text)
                if text == pages.get(" ".join(above)) or " ".join(path) in pages:
                    continue
                pages[" ".join(path)] = text
                if found.commands:
                    below += [(path, other) for other in found.commands]
                else:
                    leaves[" ".join(path)] = (one, found)
            level = below
    globals_ = first.params + [one for _, found in leaves.values() for one in found.globals]
    commands = [_entry(path, one, found.params, effects or {}, path in set(opaque))
                for path, (one, found) in leaves.items()]  # fmt: skip
    return _reference(ask, program, commands, [one for one in globals_ if one["flags"]], pages)


def _entry(path: str, one: Listed, params: list[dict[str, Any]], effects: Mapping[str, str],
           opaque: bool) -> dict[str, Any]:  # fmt: skip
    above = path.rpartition(" ")[0]
    return {"path": path, "aliases": [f"{above} {name}".strip() for name in one.aliases], "summary": one.summary,
            "effect": effects.get(path), "params": [*params, REST] if opaque else params,
            "passthrough": opaque}  # fmt: skip


#: What stands for all that a page does not tell.
REST = {"name": "rest", "flags": [], "kind": "rest", "required": False, "choices": [], "repeat": True, "help": ""}


def _reference(ask: Ask, program: str, commands: list[dict[str, Any]], options: Iterable[Mapping[str, Any]],
               pages: dict[str, str]) -> dict[str, Any]:  # fmt: skip
    told: dict[tuple[str, ...], bool] = {}
    for one in options:
        told.setdefault(tuple(one["flags"]), one["kind"] != "switch")
    return {
        "program": program,
        "version": ask([program, "--version"])[1].strip().split("\n")[0],
        "commands": commands,
        "globals": [{"flags": list(flags), "takes_value": takes} for flags, takes in told.items()],
        "help": pages,
    }


def _text(ask: Ask, words: list[str]) -> str:
    """The page that the words print, on whichever stream; git's `-h` ends with 129."""
    _, out, err = ask(words)
    return out if out.strip() else err


# -- git --------------------------------------------------------------------------------------------------------

#: Parts of `git help -a` that list no commands of git's own.
_NO_COMMANDS = ("external commands", "command aliases", "user-facing", "developer-facing")


def walk_git(ask: Ask, program: str = "git", *, effects: Mapping[str, str] | None = None,
             opaque: Iterable[str] = ()) -> dict[str, Any]:  # fmt: skip
    """The command reference of git: its commands from `git help -a`, each one's options from `git NAME -h`.

    A verb below a command (`stash push`) is a command of its own, with the options of the page that tells of it.
    Raises LabdError if the program gives no list.
    """
    everything = _text(ask, [program, "help", "-a"])
    listed = [one for title, body in _sections(everything.split("\n"))
              if not title.lower().startswith(_NO_COMMANDS) for one in _commands(body)]  # fmt: skip
    if not listed:
        raise LabdError(f"{program} help -a gave no list of commands")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        texts = list(pool.map(lambda one: _text(ask, [program, one.name, "-h"]), listed))
    pages = {"": everything} | {one.name: text for one, text in zip(listed, texts, strict=True)}
    commands = []
    for one in listed:
        params = git_params(pages[one.name]) + ([] if one.name in set(opaque) else [_ANY])
        for path in (one.name, *git_verbs(one.name, pages[one.name])):
            entry = _entry(path, one, params, effects or {}, one.name in set(opaque))
            commands.append(entry | {"effect": (effects or {}).get(path) or (effects or {}).get(one.name)})
    return _reference(ask, program, commands, git_globals(_text(ask, [program, "--help"])), pages)


_ANY = {"name": "words", "flags": [], "kind": "str", "required": False, "choices": [], "repeat": True, "help": ""}


def git_params(text: str) -> list[dict[str, Any]]:
    """The options of a page of git's: those that it lists, and those that only its usage names.

    Git takes `--no-X` for every `--X` that it lists, without saying so.
    """
    found = [one for one in page(text).params if one["flags"]]
    for one in found:
        longs = [flag for flag in one["flags"] if flag.startswith("--")]
        others = [f"--{flag[5:]}" if flag.startswith("--no-") else f"--no-{flag[2:]}" for flag in longs]
        one["repeat"] = True
        known = set(one["flags"])
        if one["kind"] == "switch":
            one["flags"] += [flag for flag in others if flag not in known]
    known = {flag for one in found for flag in one["flags"]}
    for match in re.finditer(r"(?<![\w-])(--?(?:\[no-\])?[A-Za-z][\w-]*)([ =]<[^>]+>)?", _git_usage(text)):
        flags = [flag for flag in _both(match[1]) if flag not in known]
        known |= set(flags)
        if flags:
            found.append({"name": flags[0].lstrip("-"), "flags": flags, "kind": "str" if match[2] else "switch",
                          "required": False, "choices": [], "repeat": True, "help": ""})  # fmt: skip
    return found


def _git_usage(text: str) -> str:
    """The page up to its list of options."""
    return re.split(r"^ {4}-|^[A-Z].*options?$", text, maxsplit=1, flags=re.MULTILINE)[0]


def git_verbs(name: str, text: str) -> list[str]:
    """The verbs below a command, from the forms of its usage: `git stash push …`, `git bisect (bad|new) …`."""
    start = rf"^\s*(?:usage:|or:)?\s*git {re.escape(name)}(?: \[[^\]]*\])*"
    verb = r" (?:(\(?[a-z][a-z|-]*\)?)(?![\w=>-])|\[([a-z][a-z-]*) \[-)"
    listed = re.search(rf"usage: git {re.escape(name)} \[([a-z][a-z-]*\|[a-z|-]+)\]$", text, re.MULTILINE)
    forms = re.findall(start + verb, _git_usage(text), re.MULTILINE)
    words = [word for plain, bracketed in forms for word in (plain or bracketed).strip("()").split("|")]
    words += listed[1].split("|") if listed else []
    return [f"{name} {word}" for word in dict.fromkeys(words) if word]


def git_globals(text: str) -> list[dict[str, Any]]:
    """The options before the command, which git tells in its usage alone."""
    usage = text.split("\n\n")[0]
    found = []
    for match in re.finditer(r"\[(-[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*)\]", usage):
        for form in match[1].split(" | "):
            flag = re.match(r"--?[\w-]+", form)
            if flag:
                takes = re.search(r"(?<!\[)[ =]<", form[len(flag[0]) :]) is not None
                found.append({"flags": [flag[0]], "kind": "str" if takes else "switch"})
    return found
