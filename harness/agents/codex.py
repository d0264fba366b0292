"""Codex CLI, as `codex exec`: one goal, no terminal, its events as JSON lines."""

import json
from pathlib import Path

from harness.agents._product import SCRIPTED_KEY, SCRIPTED_RETRIES, asked_version, logs, start
from harness.agents._program import RATED, Command, Needs, Options, Ways
from harness.agents._servers import CALL_S, START_S, Server
from harness.sandbox import Sandbox


class Codex:
    """Its shell is no login shell: that would look for programs on a PATH of its own."""

    name = "codex"
    product = "codex"
    summary = "Codex CLI (codex exec), with the account that --env CODEX_API_KEY gives it"
    needs = Needs("codex", "npm install -g @openai/codex")
    ways = Ways(skills=".agents/skills", memory="AGENTS.md", mcp=True)
    expected = RATED
    time_s = None

    def version(self) -> str | None:
        """As `codex --version` tells it."""
        return asked_version("codex")

    def prepare(self, place: Sandbox, options: Options) -> list[Path]:
        """Nothing: all is on its command line. It makes its own home."""
        return []

    def command(self, goal: str, place: Sandbox, options: Options) -> Command:
        """The goal is on its stdin, as `-` says. It has no flag for turns or money: they are watched from outside."""
        words = [*start("codex"), "exec", "--json", "--skip-git-repo-check",
                 "--dangerously-bypass-approvals-and-sandbox", "-c", "allow_login_shell=false"]  # fmt: skip
        model = options.model or ("scripted" if options.base_url else None)
        words += ["-m", model] if model else []
        words += ["-c", _setting(options.server)] if options.server is not None else []
        env = {}
        if options.base_url:
            provider = (f'{{name="scripted",base_url={json.dumps(options.base_url + "/v1")},env_key="SCRIPTED_KEY",'
                        'wire_api="responses",'
                        f"request_max_retries={SCRIPTED_RETRIES},stream_max_retries={SCRIPTED_RETRIES}}}")  # fmt: skip
            words += ["-c", 'model_provider="scripted"', "-c", f"model_providers.scripted={provider}"]
            env["SCRIPTED_KEY"] = SCRIPTED_KEY
        return Command((*words, *options.extra, "-"), env, goal.encode())

    def collect(self, place: Sandbox) -> dict[str, Path]:
        """The rollouts of its sessions."""
        return logs(place.home / ".codex" / "sessions", "**/*.jsonl")


def _setting(server: Server) -> str:
    """The server in TOML; it waits for one that is required."""
    env = ",".join(f"{name}={json.dumps(value)}" for name, value in server.env.items())
    words = f"command={json.dumps(server.argv[0])},args={json.dumps(list(server.argv[1:]))},env={{{env}}}"
    times = f"startup_timeout_sec={START_S},tool_timeout_sec={CALL_S}"
    return f"mcp_servers.{server.name}={{{words},required=true,{times}}}"


PROGRAM = Codex()
