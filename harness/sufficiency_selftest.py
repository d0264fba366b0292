"""Known answers for every bucket and rule of sufficiency, in every format that can tell: `--selftest`, and the tests.

A case is what an agent did and what must be found. `forms`: where it can be told; Codex names no messages, so that it
knows nothing of concurrency, and no product but Claude Code tells what its subagents did.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graders.sufficiency import Found, measure
from graders.sufficiency_acts import Thing
from harness import transcripts
from harness.sufficiency_made import FORMATS, Turn, Use, written

#: The thing under test: a tool of an MCP server, whatever a product makes of its name; and a program of the shell.
TOOL = Thing(tool="*explore")
PROGRAM = Thing(program="atlas", commands=frozenset({("city", "list"), ("city", "show"), ("place", "add")}),
                writes=frozenset({("place", "add")}), programs=frozenset({"sqlite3"}), files=("atlas.db",))  # fmt: skip
#: Those that tell which calls belong to one answer of the model; those that tell what subagents did.
TOLD_TOGETHER = ("claude", "claude-session", "gemini", "opencode")
THREADS = ("claude", "claude-session")

SHIPPED = (
    "**`src/response.js`** — send\n```js\n10\tfunction send(body) {\n```\nSee also src/utils.js and src/canvas.ts.\n"
)


@dataclass(frozen=True)
class Case:
    """expected: (bucket or None, what the next action or its note says) of each judged call, in order. silent: what
    none of them may say."""

    rule: str
    turns: Sequence[Turn]
    expected: Sequence[tuple[str | None, str]]
    thing: Thing = TOOL
    forms: Sequence[str] = FORMATS
    end: str = "final"
    failed: int = 0
    unanswered: int = 0
    concurrent: int = 0
    routes: tuple[int, int] = (0, 0)
    silent: str = ""


def _ask(about: str = "how does send work", output: str | None = SHIPPED, *, error: bool = False) -> Use:
    return Use("ask", about, output, error)


def _turns(*parts: Use | str | tuple[Use | str, ...]) -> tuple[Turn, ...]:
    return tuple(Turn(part if isinstance(part, tuple) else (part,)) for part in parts)


def _then(*parts: Use | str | tuple[Use | str, ...]) -> tuple[Turn, ...]:
    """The thing is asked, answers, and this is what follows."""
    return _turns(_ask(), *parts, "Done.")


def _sh(command: str, output: str = "done", *, error: bool = False) -> Use:
    return Use("shell", command, output, error)


MOVED = ("moved_on", "")
LIST = "lyon 500000\nparis 2100000\nmarseille 870000\n"

BUCKETS = (
    Case("asked again", _turns(_ask(), _ask("the body of send"), "Done."),
         [("again", "explore"), ("moved_on", "final answer")]),
    Case("asked again in the same words", _turns(_ask(), _ask(), "Done."), [("again", "the same words"), MOVED]),
    Case("read what was returned", _then(Use("read", "/tmp/t/src/response.js")), [("read_returned", "response.js")]),
    Case("read what was not", _then(Use("read", "/tmp/t/src/other.js")), [("read_not_returned", "other.js")]),
    Case("searched", _then(Use("search", "nonce")), [("search", "nonce")]),
    Case("edited", _then(Use("edit", "src/response.js")), [MOVED]),
    Case("built", _then(_sh("make -j4")), [MOVED]),
    Case("answered", _then(), [("moved_on", "final answer")]),
)  # fmt: skip

RULES = (
    Case("a read of the same message is concurrent", _turns((_ask(), Use("read", "src/other.js")), "Done."),
         [("moved_on", "final answer")], forms=TOLD_TOGETHER, concurrent=1),
    Case("…and what comes later is the verdict",
         _turns((_ask(), Use("read", "src/other.js"), Use("search", "x")), Use("search", "nonce"), "Done."),
         [("search", "nonce")], forms=TOLD_TOGETHER, concurrent=2),
    Case("bookkeeping is stepped over", _then(Use("todo", "x"), Use("search", "nonce")), [("search", "nonce")]),
    Case("…tools for tools too", _then(Use("ToolSearch", "x"), Use("TaskUpdate", "x"), Use("read", "src/other.js")),
         [("read_not_returned", "")], forms=THREADS),
    Case("a shell that only waits says nothing", _then(_sh("cd src && sleep 1"), _sh("rg nonce")),
         [("search", "nonce")]),
    Case("another file of that name is not named", _then(Use("read", "/w/lib/utils.js")),
         [("read_not_returned", "Read")], forms=("claude", "claude-session"), silent="named"),
    Case("named is not returned", _then(Use("read", "src/canvas.ts")), [("read_not_returned", "named, not returned")]),
    Case("an earlier answer shipped it",
         _turns(_ask(), _ask("utils", "nothing"), Use("read", "src/response.js"), "Done."),
         [("again", ""), ("read_returned", "returned by an earlier call")]),
    Case("errors are counted apart", _turns(_ask(output="boom", error=True), Use("search", "x"), "Done."), [],
         failed=1),
    Case("what never came back is counted apart", _turns(_ask(output=None), "Done."), [], unanswered=1,
         forms=("claude", "claude-session", "codex", "gemini")),
    Case("a cut log has no final answer", _turns(_ask()), [(None, "cut off")], end="cut"),
    Case("…nor one without an end", _turns(_ask()), [(None, "")], end="nothing"),
    Case("…nor one that was stopped", _turns(_ask()), [(None, "max turns")], end="turns", forms=("claude",)),
    Case("the user's next question is no verdict",
         (Turn((_ask(),)), Turn(("So it is.",)), Turn(user="And now?"), Turn((Use("search", "x"),)), Turn(("Done.",))),
         [("moved_on", "the user went on")], forms=("claude", "claude-session", "gemini")),
    *(Case(f"…but words of the harness are none: {what}",
           (Turn((_ask(),)), Turn(("Noting.", Use("todo", "x"))), Turn(user=words),
            Turn((Use("read", "src/other.js"),)), Turn(("Done.",))),
           [("read_not_returned", "other.js")], forms=("claude", "claude-session", "gemini"))
      for what, words in (("a reminder", "<system-reminder>The date changed.</system-reminder>"),
                          ("a notification", "<task-notification>\n<id>b1</id> ended\n</task-notification>"))),
    Case("…words with a call beside them are no answer",
         (Turn((_ask(),)), Turn(("Noting.", Use("todo", "x"))), Turn(user="Faster."), Turn((Use("search", "x"),)),
          Turn(("Done.",))), [("search", "")], forms=("claude", "claude-session", "gemini")),
    Case("…what a person typed as a command is a person's",
         (Turn((_ask(),)), Turn(("So it is.",)), Turn(user="<command-name>/review</command-name>"),
          Turn((Use("search", "x"),)), Turn(("Done.",))), [("moved_on", "the user went on")],
         forms=("claude", "claude-session", "gemini")),
    Case("a subagent's calls judge nobody else's",
         _turns(_ask(), (Use("edit", "a.js"), Use("delegate", "look", inner=_turns(Use("search", "x")))), "Done."),
         [MOVED], forms=THREADS),
    Case("a delegation is what the subagent did first",
         _then(Use("delegate", "look", inner=_turns(Use("todo", "x"), _sh("grep -rn nonce ."), Use("edit", "y")))),
         [("search", "Agent → Bash search nonce")], forms=THREADS),
    Case("…judged by what the parent was told",
         _then(Use("delegate", "look", inner=_turns(_sh("sed -n 1,9p src/response.js")))),
         [("read_returned", "Agent → Bash read")], forms=THREADS),
    Case("…its own delegations are not followed",
         _then(Use("delegate", "look", inner=_turns(Use("delegate", "z", inner=_turns(Use("search", "x"))),
                                                    Use("read", "src/other.js")))),
         [("read_not_returned", "Agent → Read")], forms=THREADS),
    Case("…one that ran no tool moved on", _then(Use("delegate", "think")), [("moved_on", "ran no tool")],
         forms=("claude",)),
    Case("…one whose log is not here is not judged", _then(Use("delegate", "think")), [(None, "not in this log")],
         forms=("claude-session", "codex", "opencode")),
    Case("the subagent's own question is judged in its thread",
         _turns(Use("delegate", "look", inner=_turns(_ask(), Use("search", "x"))), Use("edit", "y"), "Done."),
         [("search", "")], forms=THREADS),
)  # fmt: skip

SHELL = (
    *(Case(f"shell: {line}", _then(_sh(line)), [expected]) for line, expected in (
        ("sed -n '100,200p' src/response.js", ("read_returned", "response.js")),
        ("cat src/other.js", ("read_not_returned", "other.js")),
        ("cd src && head -50 utils.js", ("read_not_returned", "named, not returned")),
        ("bash -c 'cat src/other.js'", ("read_not_returned", "")),
        ("echo $(cat src/other.js)", ("read_not_returned", "")),
        ("echo `cat src/other.js`", ("read_not_returned", "")),
        ("sudo cat src/other.js | head", ("read_not_returned", "")),
        ("make; rg nonce", ("search", "nonce")),
        ("find . -name '*.js' | head", ("search", "")),
        ("ls src", ("search", "")),
        ("grep nonce src/a.js > hits.txt", ("search", "")),
        ("cat > src/new.js <<'EOF'\ncat src/other.js\nEOF", MOVED),
        ("cat src/other.js > copy.js", MOVED),
        ("sed -i s/a/b/ src/response.js", MOVED),
        ("make 2>&1 | grep error | tail -3", MOVED),
        ("make > log.txt; tail log.txt", MOVED),
        ("less -r src/other.js", ("read_not_returned", "other.js")),
        ("od -c src/other.js", ("read_not_returned", "other.js")),
        ("strings -n 8 src/other.js", ("read_not_returned", "read src/other.js")),
        ("make; grep x <<< \"$y\"", MOVED),
        ("for f in a b; do cat $f; done", (None, "which files")),
        ("cat 'open", (None, "understood")),
    )),
)  # fmt: skip


def _cli(*commands: Use | str, thing: Thing = PROGRAM) -> tuple[Turn, ...]:
    return _turns(_sh("atlas city list", LIST), *commands, "Done.")


OF_A_PROGRAM = (
    Case("program: the same command again", _cli(_sh("atlas city list --all", LIST)), [("again", "other words"), MOVED],
         PROGRAM),
    Case("program: the same words again", _cli(_sh("atlas city list", LIST)), [("again", "the same words"), MOVED],
         PROGRAM),
    Case("program: another command of it is a next step", _cli(_sh("atlas city show lyon", "x")), [MOVED, MOVED],
         PROGRAM),
    Case("program: the next change",
         _turns(_sh("atlas place add a"), _sh("atlas place add b"), _sh("atlas place add b"), "Done."),
         [("moved_on", "the next change"), ("again", "the same words"), MOVED], PROGRAM),
    Case("program: its help", _cli(_sh("atlas city --help", "usage")), [("help_again", "--help"), MOVED], PROGRAM),
    Case("program: the command after its help",
         _turns(_sh("atlas city list --help", "usage"), _sh("atlas city list", LIST), "Done."),
         [("moved_on", "what its help was for"), MOVED], PROGRAM),
    Case("program: the same help again",
         _turns(_sh("atlas city --help", "usage"), _sh("atlas city --help", "usage"), "Done."),
         [("help_again", "--help"), MOVED], PROGRAM),
    Case("program: its help, then a command's",
         _turns(_sh("atlas -q help", "x"), _sh("atlas city --help", "x"), "Done."),
         [("help_again", "city"), MOVED], PROGRAM),
    *(Case(f"program, nothing known of it: {first} → {second}", _turns(_sh(first, "x"), _sh(second, "x"), "Done."),
           [(bucket, note), MOVED], Thing(program="kubectl"))
      for first, second, bucket, note in (
        ("kubectl -n a get pods", "kubectl get pods -n b", "again", "other words"),
        ("kubectl -n a get pods", "kubectl -n b get pods", "again", "other words"),
        ("kubectl -n a get pods", "kubectl -n a delete pod x", "moved_on", "another command"),
        ("kubectl --context a get pods", "kubectl get pods", "again", "other words"),
        ("kubectl --context=a get pods", "kubectl -v get nodes", "again", "other words"),
        ("kubectl get --help", "kubectl get pods", "moved_on", "what its help was for"),
        ("kubectl a.yaml", "kubectl b.yaml", "again", "other words"),
    )),
    Case("program, nothing known of it: a word that begins a command elsewhere is one",
         _turns(_sh("kubectl get x", "x"), _sh("kubectl --context a get y", "x"),
                _sh("kubectl --context a logs z", "x"), _sh("kubectl logs z", "x"), "Done."),
         [("again", ""), ("moved_on", "another command"), ("again", ""), MOVED], Thing(program="kubectl")),
    Case("program: its manual", _cli(_sh("man atlas", "page")), [("help_again", "man atlas")], PROGRAM),
    Case("program: another one around it", _cli(_sh("sqlite3 atlas.db .dump", "x")), [("around", "sqlite3")], PROGRAM),
    Case("program: its files by hand", _cli(Use("edit", "/home/u/atlas.db")), [("around", "atlas.db")], PROGRAM),
    *(Case(f"program: its files in a script: {line}", _cli(_sh(line)), [(bucket, "python3")], PROGRAM)
      for line, bucket in (
        ("python3 - <<'E'\nopen('atlas.db','w').write('x')\nE", "around"),
        ("python3 -c 'import sqlite3; sqlite3.connect(\"/home/u/atlas.db\")'", "around"),
        ("python3 - <<'E'\nprint('my-atlas.db.txt')\nE", "moved_on"),
    )),
    Case("program: its files read", _cli(Use("read", "/home/u/atlas.db")), [("around", "atlas.db")], PROGRAM),
    Case("program: what its output showed is returned", _cli(Use("read", "cities.txt", LIST)),
         [("read_returned", "cities.txt")], PROGRAM),
    Case("program: what it did not show is not", _cli(Use("read", "cities.txt", "bordeaux 260000\n")),
         [("read_not_returned", "cities.txt")], PROGRAM),
    Case("program: searching for what it had shown is told",
         _cli(_sh("grep paris cities.txt", "paris 2100000\n")), [("search", "had been returned")], PROGRAM),
    Case("program: a code that a pipe hides is not its own",
         _turns(_sh("atlas city list | grep -c x", "0\n", error=True), Use("edit", "a.txt"), "Done."), [MOVED],
         PROGRAM),
    Case("program: its own code is", _turns(_sh("atlas city list", "error: no", error=True), "Done."), [], PROGRAM,
         failed=1, forms=("claude", "claude-session", "codex", "opencode")),
    Case("reached by another route",
         _turns(_sh("atlas explore x", "found"), _sh("npx atlas y", "boom", error=True), "Done."), [],
          Thing(tool="mcp__atlas__explore"), routes=(2, 1), forms=("claude", "claude-session", "codex", "opencode")),
    Case("…and a program by its tool", _turns(_ask(), "Done."), [], PROGRAM, routes=(1, 1),
         forms=("claude", "claude-session", "codex")),
)  # fmt: skip

CASES = (*BUCKETS, *RULES, *SHELL, *OF_A_PROGRAM)


def found(case: Case, form: str) -> Found:
    """What is found of a case in a format."""
    product = form.partition("-")[0]
    told = transcripts.parse(product, written(form, case.turns, end=case.end))
    return measure(told.as_dict(), case.thing)


def wrong(case: Case, form: str) -> list[str]:
    """What of a case in a format is not as it must be; empty if all is."""
    seen = found(case, form)
    told = [(one.bucket, f"{one.next} {one.note}") for one in seen.judged]
    problems = []
    if len(told) != len(case.expected) or any(
        bucket != wanted or part not in shown
        for (bucket, shown), (wanted, part) in zip(told, case.expected, strict=False)
    ):
        problems.append(f"found {told}, expected {list(case.expected)}")
    if case.silent and any(case.silent in shown for _, shown in told):
        problems.append(f"found {told}, which must not say {case.silent!r}")
    counted = {"failed": len(seen.failed), "unanswered": len(seen.unanswered), "concurrent": seen.concurrent}
    problems += [f"{name}: {count}, expected {getattr(case, name)}" for name, count in counted.items()
                 if count != getattr(case, name)]  # fmt: skip
    if (seen.other_route, seen.other_route_answered) != case.routes:
        problems.append(f"other routes: {seen.other_route, seen.other_route_answered}, expected {case.routes}")
    known = {"codex": "unknowable", "gemini": "order"}.get(form, "messages")
    if seen.judged and seen.concurrency != known:
        problems.append(f"concurrency: {seen.concurrency}, expected {known}")
    return problems


def run() -> Iterator[tuple[Case, str, list[str]]]:
    """Every case in every format that can tell it, with what is wrong."""
    for case in CASES:
        for form in case.forms:
            yield case, form, wrong(case, form)
