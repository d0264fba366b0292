"""opencode, as `opencode run`: one goal, no terminal, its events as JSON lines."""

import json
from pathlib import Path
from typing import Any

from harness.agents._product import SCRIPTED_KEY, asked_version, logs, start
from harness.agents._program import RATED, Command, Needs, Options, Ways
from harness.agents._servers import START_S
from harness.sandbox import Sandbox


class Opencode:
    """Its settings lie in its home, so that its working directory is as empty as any other agent's."""

    name = "opencode"
    product = "opencode"
    summary = "opencode (opencode run), with the account that --env gives the provider of its --model"
    needs = Needs("opencode", "npm install -g opencode-ai")
    ways = Ways(skills=".opencode/skills", memory="AGENTS.md", mcp=True)
    expected = RATED
    time_s = None

    def version(self) -> str | None:
        """As `opencode --version` tells it."""
        return asked_version("opencode")

    def prepare(self, place: Sandbox, options: Options) -> list[Path]:
        """Its settings: all is permitted, nothing is shared or updated; the limit of its turns; the scripted model."""
        path = place.home / ".config" / "opencode" / "opencode.json"
        told: dict[str, Any] = {"permission": {"*": "allow"}, "share": "disabled", "autoupdate": False}
        if options.turns is not None:
            told["agent"] = {"build": {"steps": options.turns}}
        if (server := options.server) is not None:
            told["mcp"] = {server.name: {"type": "local", "command": list(server.argv), "enabled": True,
                                         "environment": dict(server.env), "timeout": START_S * 1000}}  # fmt: skip
        if options.base_url:
            reached = {"baseURL": f"{options.base_url}/v1", "apiKey": SCRIPTED_KEY}
            models = {"scripted": {"name": "scripted"}}
            package = "@ai-sdk/openai-compatible"
            told["provider"] = {"scripted": {"npm": package, "name": "scripted", "options": reached, "models": models}}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(told, indent=2))
        return [path]

    def command(self, goal: str, place: Sandbox, options: Options) -> Command:
        """The goal is on its stdin."""
        words = [*start("opencode"), "run", "--format", "json"]
        model = "scripted/scripted" if options.base_url else options.model
        words += ["--model", model] if model else []
        env = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        return Command((*words, *options.extra), env, goal.encode())

    def collect(self, place: Sandbox) -> dict[str, Path]:
        """What it wrote into its log; its sessions are in a database, and all of them on its stdout."""
        return logs(place.home / ".local" / "share" / "opencode" / "log", "*.log")


PROGRAM = Opencode()
