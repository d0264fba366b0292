"""What an agent's program knows of the subject before its goal: nothing (cold), that guides exist (warm), or one whole.
The condition `mcp` is about the way instead, and in harness/mcp_condition.py.

The texts are those that the installed program prints at the time of the run. They are placed where the product looks
(`Ways`), marked with words that nobody can know otherwise, and looked for again at the end: a trial in which an agent
knew more or less than its condition says is none (cause `condition_broken`). In every condition the agent can ask the
program for its guides by itself.
"""

import functools
import json
import re
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness import mcp_condition, surface
from harness import subject as subjects
from harness.agents._program import Condition, Options, Ways
from harness.agents._servers import Server
from harness.isolation import INSTRUCTIONS
from harness.sandbox import Sandbox, SandboxError
from harness.scenario_fill import fill
from harness.transcripts import Transcript
from labd.errors import LabdError

#: Conditions in which an agent is given no guide.
UNTOLD = ("cold", mcp_condition.NAME)

#: So much of a text tells it from others.
_TELLING = 60


@dataclass(frozen=True)
class Guide:
    """One of the subject's skills: its whole SKILL.md, what its head says of it, and the command that prints it."""

    name: str
    description: str
    text: str
    command: str = ""

    @property
    def body(self) -> str:
        """The text without its head."""
        return self.text.split("\n---\n", 1)[-1].strip()


@dataclass(frozen=True)
class Realised:
    """What was placed where, and how the agent's start differs for it: `before` goes before its goal, `extra` are
    arguments, `server` is the MCP server that its product is told of. `canaries`: the words that the description, and
    the guide itself, were marked with."""

    condition: Condition
    placed: tuple[dict[str, str], ...] = ()
    before: str = ""
    extra: tuple[str, ...] = ()
    canaries: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    server: Server | None = None


def guides_for(condition: Condition, subject: str) -> tuple[Guide, ...]:
    """The guides that an agent gets in a condition, and must not get when cold; the first is the one that is given
    whole. Raises SandboxError if the condition needs guides and the subject has none."""
    try:
        guides = live_guides(subject)
    except LabdError as error:
        if condition in UNTOLD:
            return ()
        raise SandboxError(f"{condition}: {error.message}") from error
    if not guides and condition not in UNTOLD:
        raise SandboxError(f"{condition}: {subject} has no guides for agents; it can be examined cold")
    return guides


@functools.cache
def live_guides(subject: str = subjects.DEFAULT) -> tuple[Guide, ...]:
    """A subject's guides, asked from the installed program once a run. Raises LabdError if it doesn't print them."""
    examined = subjects.load(subject)
    if not examined.skills:
        return ()
    with surface.live(subject) as ask:
        return tuple(_asked(ask, examined, name) for name in examined.skills)


def _asked(ask: surface.Ask, examined: subjects.Subject, name: str) -> Guide:
    words = [examined.program, *(fill(word, {"name": name}) for word in examined.skill_command)]
    code, text, err = ask(words)
    if code != 0 or not text.strip():
        raise LabdError(f"{shlex.join(words)} gave no guide (exit {code}): {err.strip()[:200]}")
    head = re.search(r"^description:\s*(.+)$", text.split("\n---\n", 1)[0], re.MULTILINE)
    return Guide(name, head[1] if head else text.strip().splitlines()[0], text, shlex.join(words))


def realise(ways: Ways, place: Sandbox, condition: Condition, guides: tuple[Guide, ...]) -> Realised:
    """Place what the condition says in the sandbox's work directory. Raises OSError."""
    if condition == "cold":
        return Realised(condition)
    if condition == mcp_condition.NAME:
        server = mcp_condition.serve(ways, place)
        placed = ({"what": "an MCP server", "where": "where the product looks for servers"},)
        return Realised(condition, placed=placed, server=server)
    canaries = {"description": f"r{secrets.token_hex(6)}", "guide": f"r{secrets.token_hex(6)}"}
    marked = [_marked(guide, canaries) for guide in guides]
    if condition == "warm" and ways.skills is not None:
        files = {f"{ways.skills}/{guide.name}/SKILL.md": guide.text for guide in marked}
        return _put(place, Realised(condition, canaries=canaries), files)
    text = _whole(marked) if condition == "preloaded" else _listed(marked)
    made = Realised(condition, canaries=canaries)
    if condition == "preloaded" and ways.system is not None:
        placed = {"what": "the guide", "where": ways.system}
        return replace(made, extra=(ways.system, text), placed=(placed,))
    if ways.memory is not None:
        return _put(place, made, {ways.memory: text})
    return replace(made, before=text, placed=({"what": "guides", "where": "before the goal"},))


def _put(place: Sandbox, made: Realised, files: Mapping[str, str]) -> Realised:
    for name, text in files.items():
        path = place.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    placed = tuple({"what": "a guide", "where": name} for name in files)
    return replace(made, placed=placed, files={name: text.encode() for name, text in files.items()})


def _marked(guide: Guide, canaries: Mapping[str, str]) -> Guide:
    """The guide with a revision in its description, and another one at its end."""
    told = f"{guide.description} (revision {canaries['description']})"
    head = re.sub(r"^description:.*$", lambda _: f"description: {told}", guide.text, count=1, flags=re.MULTILINE)
    return replace(guide, description=told, text=f"{head.rstrip()}\n\nRevision of this guide: {canaries['guide']}\n")


def _listed(guides: list[Guide]) -> str:
    lines = "\n".join(f"- {guide.name}: {guide.description} Read it: `{guide.command}`" for guide in guides)
    return f"Guides on this machine. Read one before you do what it is about.\n\n{lines}\n"


def _whole(guides: list[Guide]) -> str:
    return f"{_listed(guides)}\n{guides[0].body}\n"


def told(options: Options, goal: str, made: Realised) -> tuple[Options, str]:
    """The options and the goal with what the condition, and the run's own instructions, add to them."""
    extra = (*made.extra, *options.extra)
    return replace(options, extra=extra), "\n---\n\n".join(filter(None, [made.before, options.told, goal]))


def record(made: Realised, ways: Ways, told: Transcript | None, requests: bytes | None, goal: str,
           guides: tuple[Guide, ...], place: Sandbox | None = None) -> dict[str, Any]:  # fmt: skip
    """What condition.json holds: what was placed, and the checks. A check that nothing can be said of has `ok` null."""
    checks = [_first_record(made, ways, told, guides), *_reached(made, requests, goal, guides)]
    if place is not None and place.examined.server:
        checks += _served(made, told, requests, goal, place)
    return {"condition": made.condition, "realised": list(made.placed), "canaries": dict(made.canaries),
            "checks": [{"name": name, "ok": ok, "detail": detail} for name, ok, detail in checks]}  # fmt: skip


def broken(told: Mapping[str, Any]) -> str:
    """The checks of a condition.json that failed, in words; empty if none did."""
    return "; ".join(f"{one['name']}: {one['detail']}" for one in told["checks"] if one["ok"] is False)


def before_start(made: Realised, place: Sandbox, ours: list[Path]) -> None:
    """Raises SandboxError if anything stands in the work directory or the home that instructs agents, besides what was
    placed and the product's own settings (`ours`)."""
    roots = (place.work, place.home)
    allowed = {place.work / Path(name).parts[0] for name in made.files}
    allowed |= {root / path.relative_to(root).parts[0] for path in ours for root in roots if root in path.parents}
    found = [str(root / name) for root in roots for name in INSTRUCTIONS
             if root / name not in allowed and (root / name).exists()]  # fmt: skip
    if found:
        raise SandboxError(f"{', '.join(found)}: nobody put that there, and agents would heed it")


_Check = tuple[str, bool | None, str]


def _first_record(made: Realised, ways: Ways, told: Transcript | None, guides: tuple[Guide, ...]) -> _Check:
    """What the product's own first record says of skills."""
    name = "first record"
    if told is None or told.first.skills is None:
        return name, None, "the product lists no skills"
    listed = sorted({guide.name for guide in guides} & set(told.first.skills))
    wanted = sorted(guide.name for guide in guides) if made.condition == "warm" and ways.skills else []
    return name, listed == wanted, f"lists {', '.join(listed) or 'none'} of the guides"


def _reached(made: Realised, requests: bytes | None, goal: str, guides: tuple[Guide, ...]) -> list[_Check]:
    """What reached the model at its first request about the goal, where its log is there (a scripted model)."""
    asked = _about(requests, goal)
    if not asked:
        return [("reached the model", None, "no log of what reached it")]
    if made.condition in UNTOLD:
        tell = [json.dumps(text)[1 : 1 + _TELLING].rstrip("\\").encode()
                for guide in guides for text in (guide.description, guide.body)]  # fmt: skip
        seen = any(text in asked[0] for text in tell)
        return [("reached the model", not seen, "a guide was in its first request" if seen else "no guide")]
    marks = {name: canary.encode() for name, canary in made.canaries.items()}
    described = next((line for line in asked if marks["description"] in line), None)
    whole = described is not None and marks["guide"] in described
    wanted = made.condition == "preloaded"
    return [
        ("description reached the model", described is not None, "yes" if described else "it was in no request"),
        ("guide reached the model", described is not None and whole == wanted, "whole" if whole else "not the guide"),
    ]


def _about(requests: bytes | None, goal: str) -> list[bytes]:
    """The requests about the goal, where their log is there."""
    start = json.dumps(goal)[1 : 1 + _TELLING].rstrip("\\").encode()
    return [line for line in (requests or b"").split(b"\n") if start in line]


def _served(made: Realised, told: Transcript | None, requests: bytes | None, goal: str, place: Sandbox) -> list[_Check]:
    """Whether the subject's MCP server was there where the condition says so, and nowhere else."""
    wanted, name = made.condition == mcp_condition.NAME, place.examined.name
    listed = None if told is None else told.first.mcp_servers
    checks: list[_Check] = []
    if listed is not None:
        checks.append(("servers in the first record", (name in listed) == wanted, ", ".join(listed) or "none"))
    if asked := _about(requests, goal):
        checks.append(mcp_condition.offered(place.examined.program, asked, wanted))
    return [*checks, mcp_condition.started(place)] if wanted else checks
