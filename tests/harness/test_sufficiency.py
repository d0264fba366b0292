"""`labd-eval sufficiency` and the report's part of it: over logs, sessions with subagents, trials, runs and arms."""

import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from harness import cli, transcripts
from harness.report import enough, html, markdown, table, timeline, words
from harness.sufficiency_judging import judged_bundle
from harness.sufficiency_made import Turn, Use, written

LIST = "lyon 500000\nparis 2100000\nmarseille 870000\n"
ASKED = (Turn((Use("shell", "labd target list", LIST),)), Turn((Use("shell", "labd target list --json", LIST),)),
         Turn((Use("edit", "a/lab.toml"),)), Turn(("Done.",)))  # fmt: skip


def _log(place: Path, turns=ASKED, form: str = "claude") -> Path:
    for name, data in written(form, turns).items():
        path = place if name in ("stdout", "session/s.jsonl") else place.with_suffix("") / "subagents" / Path(name).name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return place


def _trial(place: Path, turns=ASKED, **more: object) -> Path:
    place.mkdir(parents=True)
    told = transcripts.parse("claude", written("claude", turns))
    (place / "transcript.json").write_bytes(told.dumps())
    trial = {"schema": "labd-trial/1", "subject": "labd", "agent": "claude", "condition": "warm", **more}
    (place / "trial.json").write_text(json.dumps(trial))
    return place


def _ask(capsys: pytest.CaptureFixture[str], *words_: object, command: str = "sufficiency") -> tuple[int, str, str]:
    code = cli.main([command, *map(str, words_)])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_line_a_call_and_what_has_to_be_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _ask(capsys, _log(tmp_path / "a.jsonl"))
    assert code == 0
    assert "1. labd target list [3 lines] → Bash labd target list --json (other words): asked again" in out
    assert "2. labd target list --json [3 lines] → Edit a/lab.toml: went around it" in out
    assert "one call is up to 50 points" in out and "Enough is not correct" in out


def test_json_says_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _ask(capsys, _log(tmp_path / "a.jsonl"), "--json")
    told = json.loads(out)
    assert code == 0 and told["schema"] == "labd-sufficiency/1"
    assert told["arms"]["all"]["counts"] | {"again": 1, "around": 1} == told["arms"]["all"]["counts"]
    assert [call["bucket"] for call in told["logs"][0]["calls"]] == ["again", "around"]


def test_subagents_of_a_session_are_found_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turns = (Turn((Use("ask", "x"),)), Turn((Use("delegate", "y", inner=(Turn((Use("search", "nonce"),)),)),)),
             Turn(("Done.",)))  # fmt: skip
    _, out, _ = _ask(capsys, _log(tmp_path / "s.jsonl", turns, "claude-session"), "--tool", "explore")
    assert "→ Agent → Grep nonce: searched" in out


def test_codex_tells_nothing_of_concurrency_and_that_is_said(tmp_path: Path, capsys) -> None:
    _, out, _ = _ask(capsys, _log(tmp_path / "a.jsonl", form="codex"))
    assert "concurrent calls unknowable" in out


def test_arms_are_compared_by_their_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moved = (ASKED[0], Turn(("Done.",)))
    bad = [_log(tmp_path / f"bad{n}.jsonl", (*ASKED[:2], *ASKED[:1], Turn(("x",)))) for n in range(4)]
    good = [_log(tmp_path / f"good{n}.jsonl", moved) for n in range(4)]
    _, out, _ = _ask(capsys, "--arm", "before", *bad, "--arm", "after", *good)
    assert "before → after: +67 points enough; better (p = 0.029, exact, by passes)" in out
    _, out, _ = _ask(capsys, "--arm", "before", bad[0], "--arm", "after", good[0])
    assert "not compared: an arm needs two passes or more" in out


def test_what_could_be_judged_instead_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _ask(capsys, _log(tmp_path / "a.jsonl", (Turn((Use("ask", "x"), Use("shell", "kubectl get x"))),)))
    assert "no call of it" in out and "--tool mcp__atlas__explore" in out and "--subject kubectl" in out


def test_a_trial_and_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = _trial(tmp_path / "runs" / "r" / "trials" / "C1.warm.claude.1")
    (tmp_path / "runs" / "r" / "trials" / "C1.warm.reference.1").mkdir()
    (tmp_path / "runs" / "r" / "trials" / "C1.warm.reference.1" / "trial.json").write_text(
        json.dumps({"schema": "labd-trial/1", "subject": "labd"})
    )
    (tmp_path / "runs" / "r" / "run.json").write_text("{}")
    _, out, _ = _ask(capsys, one)
    assert "went around it" in out
    _, out, _ = _ask(capsys, "latest", "--out", tmp_path / "runs")
    assert "claude warm: " in out and "left out" in out and "no transcript" in out


def test_a_change_with_other_words_is_other_work(tmp_path: Path) -> None:
    """The effect of a command is in the trial's own command reference."""
    turns = (Turn((Use("shell", "labd target add a"),)), Turn((Use("shell", "labd target add b"),)), Turn(("Done.",)))
    place = _trial(tmp_path / "t", turns)
    (place / "surface.json").write_text(json.dumps({"commands": [{"path": "target add", "effect": "config"}]}))
    made = judged_bundle(place)
    assert made is not None and [one.note for one in made[1].judged] == ["the next change", ""]


# -- which files are whose log -------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["mcp__labd__labd_{}", "mcp_labd_labd_{}", "labd_labd_{}", "labd.labd_{}"])
def test_under_the_condition_mcp_the_tools_of_the_subject_are_its_commands(named: str, tmp_path: Path) -> None:
    place = _trial(tmp_path / "t", condition="mcp")
    told = json.loads((place / "transcript.json").read_text())
    asked = [("read", {"command": "target list"}), ("read", {"command": "labd target list --json"}),
             ("help", {"about": "serial send"}), ("more", {"answer": 1, "from": 2})]  # fmt: skip
    template = told["calls"][0]
    told["calls"] = [
        {**template, "n": n, "answered_n": n, "id": f"c{n}", "message_id": f"m{n}", "tool": named.format(tool),
         "kind": "other", "input": given, "command": None} for n, (tool, given) in enumerate(asked, 1)
    ]  # fmt: skip
    (place / "transcript.json").write_text(json.dumps(told))
    made = judged_bundle(place)
    assert made is not None
    _, found, arm = made
    assert arm == "claude mcp"
    assert [(one.query, one.bucket) for one in found.judged] == [
        ("labd target list", "again"), ("labd target list --json", "help_again"),
        ("labd serial send --help", "moved_on"),
    ]  # fmt: skip
    (place / "trial.json").write_text((place / "trial.json").read_text().replace('"mcp"', '"cold"'))
    assert judged_bundle(place)[1].judged == ()


def _session(place: Path, turns: tuple[Turn, ...], agents: Path | None = None, session: str = "s") -> Path:
    """A session's log, with its subagents' in another directory."""
    for name, data in written("claude-session", turns).items():
        told = place if name == "session/s.jsonl" else (agents or place.parent) / Path(name).name
        told.parent.mkdir(parents=True, exist_ok=True)
        told.write_bytes(data.replace(b'"sessionId": "s"', f'"sessionId": "{session}"'.encode()))
    return place


DELEGATED = (Turn((Use("ask", "x", "none"),)), Turn((Use("delegate", "look", inner=(Turn((Use("search", "q"),)),)),)),
             Turn(("Done.",)))  # fmt: skip


def test_a_directory_of_sessions_is_a_log_a_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As ~/.claude/projects/X: what the agent did in one session says nothing of another."""
    _session(tmp_path / "p" / "a.jsonl", (Turn((Use("ask", "x", "none"),)), Turn(("Done.",))), session="a")
    _session(tmp_path / "p" / "b.jsonl", DELEGATED, tmp_path / "p" / "b" / "subagents", session="b")
    (tmp_path / "p" / "sessions-index.json").write_text("{}")
    told = json.loads(_ask(capsys, tmp_path / "p", "--tool", "explore", "--json")[1])
    assert [(Path(log["log"]).name, [call["bucket"] for call in log["calls"]]) for log in told["logs"]] \
        == [("a.jsonl", ["moved_on"]), ("b.jsonl", ["search"])]  # fmt: skip
    assert told["arms"]["all"]["passes"] == 2
    code, _, err = _ask(capsys, tmp_path / "p", command="transcript")
    assert code == 2 and "2 logs" in err and "try: labd-eval transcript" in err


@pytest.mark.parametrize("where", ["x/subagents", "x.subagents", "."])
def test_a_sessions_subagents_are_found_wherever_they_lie(where: str, tmp_path: Path, capsys) -> None:
    """In a directory of the session's name, of its name and more, or beside it with its id."""
    for name in ("x.jsonl", "x.session.jsonl") if where == "x.subagents" else ("x.jsonl",):
        log = _session(tmp_path / name / name, DELEGATED, tmp_path / name / where)
        _session(tmp_path / name / "y.jsonl", (Turn(("Done.",)),), session="y")
        for place in (log, tmp_path / name):
            told = json.loads(_ask(capsys, place, "--tool", "explore", "--json")[1])
            assert [call["next"] for call in told["logs"][0]["calls"]] == ["Agent → Grep q"]


def test_a_pipe_is_read_and_an_empty_file_says_so(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    data = _log(tmp_path / "a.jsonl", ASKED).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert "asked again" in _ask(capsys, "-")[1]
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,))
    writer.start()
    assert "asked again" in _ask(capsys, tmp_path / "pipe")[1]
    writer.join()
    (tmp_path / "empty").write_bytes(b"")
    for command in ("sufficiency", "transcript"):
        code, _, err = _ask(capsys, tmp_path / "empty", command=command)
        assert code == 2 and "it is empty" in err and f"try: labd-eval {command} --help" in err


def test_a_tool_whose_product_makes_one_name_is_pointed_to(tmp_path: Path, capsys) -> None:
    (_, data), *_ = written("opencode", (Turn((Use("ask", "x"),)),)).items()
    (tmp_path / "o.jsonl").write_bytes(data)
    out = _ask(capsys, tmp_path / "o.jsonl", "--tool", "explore")[1]
    assert "--tool atlas_explore" in out and "--tool '*explore' takes it" in out


@pytest.mark.parametrize(("words_", "told"), [
    (["nosuch"], "no transcript, trial or run nosuch"),
    ([], "no log is named"),
    (["--arm", "with"], "--arm with names no log"),
    (["x", "--tool", "a", "--subject", "b"], "say different things"),
])  # fmt: skip
def test_mistakes(words_: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _ask(capsys, *words_)
    assert code != 0 and not out and told in err and "try:" in err


def test_the_selftest_is_there_for_everybody(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _ask(capsys, "--selftest")
    assert code == 0 and out.endswith("all as known\n") and "FAIL" not in out


# -- reports -------------------------------------------------------------------------------------------------------


def _report(tmp_path: Path, turns: tuple[Turn, ...] = ASKED) -> dict[str, Any]:
    _trial(tmp_path / "trials" / "C1.warm.claude.1", turns)
    row = {"id": "C1.warm.claude.1", "bundle": "trials/C1.warm.claude.1", "counted": True, "agent": "claude",
           "condition": "warm"}  # fmt: skip
    found = enough.read(tmp_path, [row, row | {"id": "x", "bundle": None}])
    return {
        "order": {"condition": ["warm"], "agent": ["claude"]},
        "agents": {"claude": {"conditions": {"warm": {}}}},
        "sufficiency": enough.project([row], found),
    }


def test_reports_show_what_came_next(tmp_path: Path) -> None:
    told = _report(tmp_path)
    head, row = words.enough_rows(told)
    assert dict(zip(head, row, strict=True)) | {"answers": "2", "asked again": "1", "went around it": "1"} \
        == dict(zip(head, row, strict=True))  # fmt: skip
    assert "claude: after 2 answers: asked again 1, went around it 1" in table._enough(told)
    page = "\n".join(markdown._enough(told))
    assert "Edit a/lab.toml | went around it" in page and "Enough is not correct" in page
    for found in judged_bundle(tmp_path / "trials" / "C1.warm.claude.1")[1].judged:
        assert f"| C1.warm.claude.1 | {found.n} | {found.query} | {found.next}" in page


def test_all_reports_tell_what_was_concurrent_and_what_was_enough(tmp_path: Path) -> None:
    """JSON, Markdown and HTML show the same calls, those that were enough too."""
    turns = (Turn((Use("shell", "labd target list", LIST), Use("read", "a.c"))), Turn(("Done.",)))
    told = _report(tmp_path, turns)
    head, row = words.enough_rows(told)
    assert dict(zip(head, row, strict=True))["concurrent"] == "1"
    assert told["sufficiency"]["columns"][0]["calls"][0]["concurrent"] == 1
    page = "\n".join(markdown._enough(told))
    assert "| labd target list | (final answer) | moved on, or answered | 1 |" in page


def test_reports_without_transcripts_say_nothing_of_it(tmp_path: Path) -> None:
    told = {"order": {"condition": [], "agent": []}, "agents": {}, "sufficiency": enough.project([], {})}
    assert told["sufficiency"] is None and enough.row(None) == {"sufficiency": None}
    assert words.enough_rows(told) == [] == table._enough(told) == markdown._enough(told)


def test_a_timeline_says_it_at_the_call(tmp_path: Path) -> None:
    judged = enough.by_number(_trial(tmp_path / "t"))
    entries = [{"kind": "call", "n": n} for n in (*judged, 99)]
    timeline._follow(entries, judged)
    assert [one.get("next") for one in entries] == [
        "then Bash labd target list --json (other words): asked again", "then Edit a/lab.toml: went around it", None,
    ]  # fmt: skip
    assert "n" not in entries[0]
    assert "showEnough" in html._part("page.js")
