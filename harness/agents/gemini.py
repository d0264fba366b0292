"""Gemini CLI, as `gemini -p`: one goal, no terminal, its events as JSON lines."""

import json
from pathlib import Path
from typing import Any

from harness.agents._product import SCRIPTED_KEY, SCRIPTED_RETRIES, asked_version, logs, start
from harness.agents._program import RATED, Command, Needs, Options, Ways
from harness.agents._servers import CALL_S
from harness.sandbox import Sandbox


class Gemini:
    """It signs in with a key: the settings in its home say so."""

    name = "gemini"
    product = "gemini"
    summary = "Gemini CLI (gemini -p), with the account that --env GEMINI_API_KEY gives it"
    needs = Needs("gemini", "npm install -g @google/gemini-cli")
    ways = Ways(skills=".gemini/skills", memory="GEMINI.md", mcp=True)
    expected = RATED
    time_s = None

    def version(self) -> str | None:
        """As `gemini --version` tells it."""
        return asked_version("gemini")

    def prepare(self, place: Sandbox, options: Options) -> list[Path]:
        """Its settings: how it signs in, no statistics, no updates, and the limit of its turns."""
        path = place.home / ".gemini" / "settings.json"
        told: dict[str, dict[str, Any]] = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "model": {"maxSessionTurns": options.turns if options.turns is not None else -1},
        }
        if options.server is not None:
            told["mcpServers"] = options.server.entry(trust=True, timeout=CALL_S * 1000)
        if options.base_url:
            told["general"]["maxAttempts"] = 1 + SCRIPTED_RETRIES
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(told, indent=2))
        return [path]

    def command(self, goal: str, place: Sandbox, options: Options) -> Command:
        """The goal is the value of --prompt, in one word with it: it may begin with a dash."""
        words = [*start("gemini"), "--yolo", "--skip-trust", "--output-format", "stream-json"]
        model = options.model or ("gemini-2.5-pro" if options.base_url else None)
        words += ["--model", model] if model else []
        env = {"GEMINI_CLI_NO_RELAUNCH": "true"}
        if options.base_url:
            env |= {"GOOGLE_GEMINI_BASE_URL": options.base_url, "GEMINI_API_KEY": SCRIPTED_KEY}
        return Command((*words, *options.extra, f"--prompt={goal}"), env)

    def collect(self, place: Sandbox) -> dict[str, Path]:
        """The logs of its sessions, which alone tell exit codes."""
        return logs(place.home / ".gemini" / "tmp", "**/chats/*.json*")


PROGRAM = Gemini()
