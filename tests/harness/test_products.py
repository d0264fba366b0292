"""The adapters of the four products, told without them: how each is started, what it is given, where its logs are."""

import json
from pathlib import Path

import pytest

from harness import agents
from harness.agents._product import SCRIPTED_KEY, asked_version
from harness.agents._program import Options, Program
from harness.sandbox import Sandbox

NAMES = ("claude", "codex", "gemini", "opencode")
URL = "http://127.0.0.1:9"

each = pytest.mark.parametrize("name", NAMES)


def program(name: str) -> Program:
    found = agents.find(name).program
    assert found is not None
    return found


@each
def test_a_goal_is_never_taken_for_a_flag(name: str, place: Sandbox) -> None:
    goal = "--help me with a board"
    told = program(name).command(goal, place, Options())
    alone = [word for word in told.argv if word == goal]
    assert not alone and (told.stdin == goal.encode() or f"--prompt={goal}" in told.argv)


@each
def test_without_a_scripted_model_nothing_points_at_one_and_no_key_is_given(name: str, place: Sandbox) -> None:
    adapter = program(name)
    written = "".join(path.read_text() for path in adapter.prepare(place, Options()))
    told = adapter.command("go", place, Options())
    everything = " ".join([*told.argv, *told.env, *told.env.values(), written])
    assert "127.0.0.1" not in everything and "scripted" not in everything and "_KEY" not in "".join(told.env)


@each
def test_a_scripted_model_is_reached_with_a_key_of_no_worth(name: str, place: Sandbox) -> None:
    adapter = program(name)
    written = "".join(path.read_text() for path in adapter.prepare(place, Options(base_url=URL)))
    told = adapter.command("go", place, Options(base_url=URL))
    assert any(URL in text for text in (*told.argv, *told.env.values(), written))
    assert SCRIPTED_KEY in (*told.env.values(),) or SCRIPTED_KEY in written
    assert not any(SCRIPTED_KEY in word for word in told.argv)


@each
def test_the_users_model_and_arguments_are_passed_on(name: str, place: Sandbox) -> None:
    argv = program(name).command("go", place, Options(model="m-1", extra=("--odd", "x"))).argv
    assert "m-1" in argv and argv[argv.index("--odd") + 1] == "x"


def test_limits_are_said_in_each_products_words(place: Sandbox) -> None:
    limited = Options(turns=3, money_usd=0.5)
    argv = program("claude").command("go", place, limited).argv
    assert argv[argv.index("--max-turns") + 1] == "3" and argv[argv.index("--max-budget-usd") + 1] == "0.5"
    (settings,) = program("gemini").prepare(place, limited)
    assert json.loads(settings.read_text())["model"]["maxSessionTurns"] == 3
    (settings,) = program("opencode").prepare(place, limited)
    assert json.loads(settings.read_text())["agent"]["build"]["steps"] == 3


@pytest.mark.parametrize(("name", "log"), [
    ("claude", ".claude/projects/-w/s/subagents/agent-1.jsonl"),
    ("codex", ".codex/sessions/2026/11/30/rollout-1.jsonl"),
    ("gemini", ".gemini/tmp/w/chats/session-1.jsonl"),
    ("opencode", ".local/share/opencode/log/1.log"),
])  # fmt: skip
def test_logs_of_a_session_are_found_and_links_are_not_followed(name: str, log: str, place: Sandbox) -> None:
    path = place.home / log
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    (path.parent / f"other{path.suffix}").symlink_to("/etc/passwd")
    assert list(program(name).collect(place).values()) == [path]
    assert all(key.startswith("session/") for key in program(name).collect(place))


def test_a_program_that_is_not_there_has_no_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [program(name).version() for name in NAMES] == [None] * 4


def test_a_version_is_asked_in_a_home_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text('#!/bin/sh\ntouch "$HOME/mark"\necho; echo "tool 1.2 $HOME"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    told = asked_version("tool")
    assert told is not None and told.startswith("tool 1.2 ") and not (tmp_path / "mark").exists()
