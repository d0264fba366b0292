"""`labd helper`: the small programs for power and input hooks, and running one of them.

One operation a helper, so that listing them is harmless and running one needs the level of what it does.
"""

from __future__ import annotations

from labd import helpers
from labd.operations.model import Answer, Operation, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from labd.call import Call
    from labd.operations.model import Args

HOOKS = (
    "a helper's name is the program: "
    'labd power set -t TARGET --cycle-cmd "shellyplug -d 192.0.2.41 cycle". Bundled helpers are '
    "found before PATH, also within sh -c and behind sudo."
)


def _list(call: Call, args: Args) -> dict[str, Any]:
    rows = [{"name": name, "summary": line, "help": f"labd helper {name} --help"} for name, line in
            helpers.bundled().items()]  # fmt: skip
    return {"helpers": rows, "run": "labd helper NAME ARGS…", "hooks": HOOKS}


def _list_text(data: Any, call: Call) -> str:
    from labd.render import columns

    rows: list[tuple[str, ...]] = [(entry["name"], entry["summary"]) for entry in data["helpers"]]
    more: list[tuple[str, ...]] = [
        ("run one:", "labd helper NAME ARGS…, after reading labd helper NAME --help"),
        ("in a hook:", data["hooks"]),
    ]
    return "\n".join(["bundled helpers:", columns(rows, call.columns), "", columns(more, call.columns, "")])


def _runner(name: str) -> Any:
    def run(call: Call, args: Args) -> Answer:
        from labd import shim

        call.flush()
        return Answer(None, code=shim.run_attached([*helpers.command(name), *args.words], call), text="")

    return run


def _operation(name: str, summary: str) -> Operation:
    usage, examples = helpers.described(name)
    return Operation(
        ("helper", name),
        summary,
        effect="actuate",
        where="client",
        doc=f"{usage}\n\nAll words behind the name are the helper's own, and so is the exit code. In a hook, {HOOKS}",
        params=(Param("words", "the helper's own words", kind="rest", metavar="ARGS"),),
        handler=_runner(name),
        examples=tuple((f"labd helper {words}", what) for words, what in examples),
        opaque=True,
    )


OPERATIONS = (
    Operation(
        ("helper",),
        "list the bundled helper programs",
        effect="help",
        doc="Helpers are small programs for power and input hooks; each is also usable alone. In a hook, " + HOOKS,
        handler=_list,
        text=_list_text,
        examples=(("labd helper", "what there is, and how hooks call it"),),
        aliases=(("helper", "list"),),
    ),
    *(_operation(name, summary) for name, summary in helpers.bundled().items()),
)
