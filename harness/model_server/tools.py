"""Puts a product-neutral call into the tools that a request offers: each product has its own names for the same.

Which one it is, is read from the request and not from who sends it; a tool that isn't offered is the script's mistake
and is answered as such, except for one that the script invents.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.model_server.script import Call, Usage


@dataclass(frozen=True)
class Use:
    """A call as it goes over the wire."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """An answer as all APIs share it. `id` is unique in the server."""

    id: str
    model: str
    text: str
    uses: tuple[Use, ...] = ()
    usage: Usage = field(default_factory=Usage)


class NotOffered(Exception):
    """The product that asks has no tool for this call."""


_ABOUT = "a step of the script"

#: A shell tool's name → its input.
_SHELL: dict[str, Callable[[Call], dict[str, Any]]] = {
    "Bash": lambda call: (
        {"command": call.shell, "description": _ABOUT} | ({"run_in_background": True} if call.background else {})
    ),
    "exec_command": lambda call: {"cmd": call.shell, "yield_time_ms": 250 if call.background else 30_000},
    "run_shell_command": lambda call: (
        {"command": call.shell, "description": _ABOUT} | ({"is_background": True} if call.background else {})
    ),
    "bash": lambda call: {"command": call.shell, "description": _ABOUT},
}

_CLAUDE_AGENT = "general-purpose"

#: A tool that starts a subagent → its input.
_AGENT: dict[str, Callable[[Call], dict[str, Any]]] = {
    "Agent": lambda call: {"description": _ABOUT, "prompt": call.agent, "subagent_type": _CLAUDE_AGENT},
    "Task": lambda call: {"description": _ABOUT, "prompt": call.agent, "subagent_type": _CLAUDE_AGENT},
    "task": lambda call: {"description": _ABOUT, "prompt": call.agent, "subagent_type": "general"},
}

_NO_BACKGROUND = frozenset({"bash"})


def translate(call: Call, offered: frozenset[str], identity: str) -> Use:
    """The call for one of the tools offered. Raises NotOffered."""
    if call.tool:
        return Use(identity, call.tool, dict(call.input))
    served = next((name for name in sorted(offered) if call.by and name.endswith(call.by)), None)
    if served is not None:
        return Use(identity, served, {"command": call.shell})
    known = _SHELL if call.shell else _AGENT
    name = next((name for name in known if name in offered), None)
    if name is None or (call.background and name in _NO_BACKGROUND):
        what = "a background task" if call.background else "a shell command" if call.shell else "a subagent"
        raise NotOffered(f"no tool for {what} among those offered: {', '.join(sorted(offered))}")
    return Use(identity, name, known[name](call))
