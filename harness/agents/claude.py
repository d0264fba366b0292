"""Claude Code, as `claude -p`: one goal, no terminal, its events as JSON lines."""

import json
from pathlib import Path

from harness.agents._product import SCRIPTED_KEY, SCRIPTED_RETRIES, asked_version, logs, start
from harness.agents._program import RATED, Command, Needs, Options, Ways
from harness.agents._servers import CALL_S, START_S
from harness.sandbox import Sandbox


class Claude:
    """Its settings are those of its working directory alone; the sandbox is its cage, so it may do what it wants."""

    name = "claude"
    product = "claude"
    summary = "Claude Code (claude -p), with the account that --env ANTHROPIC_API_KEY gives it"
    needs = Needs("claude", "npm install -g @anthropic-ai/claude-code")
    ways = Ways(skills=".claude/skills", memory="CLAUDE.md", system="--append-system-prompt", mcp=True)
    expected = RATED
    time_s = None

    def version(self) -> str | None:
        """As `claude --version` tells it."""
        return asked_version("claude")

    def prepare(self, place: Sandbox, options: Options) -> list[Path]:
        """Nothing: all is on its command line."""
        return []

    def command(self, goal: str, place: Sandbox, options: Options) -> Command:
        """The goal is on its stdin: no text of a user's can be taken for a flag."""
        words = [*start("claude"), "-p", "--output-format", "stream-json", "--verbose", "--setting-sources", "project",
                 "--permission-mode", "bypassPermissions"]  # fmt: skip
        model = options.model or ("claude-sonnet-4-5" if options.base_url else None)
        words += ["--model", model] if model else []
        words += ["--max-turns", str(options.turns)] if options.turns is not None else []
        words += ["--max-budget-usd", f"{options.money_usd:g}"] if options.money_usd is not None else []
        if options.server is not None:
            config = json.dumps({"mcpServers": options.server.entry(alwaysLoad=True)})
            words += ["--mcp-config", config, "--strict-mcp-config"]
        env = {
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1", "IS_SANDBOX": "1",  # root may not bypass permissions outside a sandbox
        }  # fmt: skip
        if options.server is not None:  # else it begins before the server is there
            env |= {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": f"{START_S * 1000}",
                    "MCP_TIMEOUT": f"{START_S * 1000}", "MCP_TOOL_TIMEOUT": f"{CALL_S * 1000}"}  # fmt: skip
        if options.base_url:
            env |= {"ANTHROPIC_BASE_URL": options.base_url, "ANTHROPIC_API_KEY": SCRIPTED_KEY,
                    "CLAUDE_CODE_MAX_RETRIES": str(SCRIPTED_RETRIES)}  # fmt: skip
        return Command((*words, *options.extra), env, goal.encode())

    def collect(self, place: Sandbox) -> dict[str, Path]:
        """The logs of its sessions and of its subagents'."""
        return logs(place.home / ".claude" / "projects", "**/*.json*")


PROGRAM = Claude()
