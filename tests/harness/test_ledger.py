"""The ledger: entries that can't claim what was not found, measurements that are the same each time, a page that is
what the data says. The claims about labd and atlas are measured again here, so that they stay true."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness import files, ledger, ledger_measure, ledger_page
from harness.cli import main
from harness.ledger import Evidence, Line
from harness.scenario_schema import ScenarioError

ENTRY = """\
number = 1
property = "It says so"
meaning = "m"
classes = ["C"]
violation = "v"
[[evidence]]
subject = "git"
stands = "violates"
scenario = "G1"
claim = "Nothing comes."
[[evidence.run]]
run = "git log --author=Nobody"
exit = 0
says_nothing = true
[[change]]
lever = "tool"
text = "t"
why = "w"
experiment = "tried"
"""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger of one entry."""
    (tmp_path / "01-one.toml").write_text(ENTRY)
    monkeypatch.setattr(ledger, "directory", lambda: tmp_path)
    return tmp_path


def one() -> ledger.Entry:
    (entry,) = ledger.load_all(ledger.directory())
    return entry


def ran(**more: Any) -> dict[str, Any]:
    return {"run": "git log --author=Nobody", "exit": 0, "stdout": "", "stderr": "", **more}


def measured(kept: Path, *runs: dict[str, Any]) -> None:
    told = [{"key": one().evidence[0].key, "subject": "git", "runs": list(runs)}]
    files.write_json(kept / "01-one.measured.json",
                     {"schema": ledger.MEASURED, "programs": {"git": "git 1"}, "evidence": told})  # fmt: skip


def found(kept: Path, verdict: str, *, scripted: bool) -> None:
    files.write_json(kept / "01-one.tried.json", {"schema": ledger.FOUND, "scripted": scripted, "verdict": verdict})


# -- what an entry may claim ---------------------------------------------------------------------------------------


def test_the_ten_properties_are_there_each_with_evidence_of_every_tier_that_was_had() -> None:
    entries = ledger.load_all()
    assert [entry.number for entry in entries][:10] == list(range(1, 11))
    for entry in entries:
        assert entry.problems() == []
        assert {one.subject for one in entry.evidence} >= {"git", "labd", "atlas"}
        assert entry.tier == 2 or entry.standing == "hypothesis"


def test_an_entry_never_says_how_it_stands(kept: Path) -> None:
    (kept / "01-one.toml").write_text('status = "confirmed"\n' + ENTRY)
    with pytest.raises(ScenarioError, match="an entry never says how it stands"):
        one()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [("number = 1", "number = 2", "does not fit the file's name"), ('"git"', '"gut"', "there is no subject 'gut'"),
     ('why = "w"', "", "change[0].why: missing"), ("exit = 0", "exit = 0\nstdout = '('", "not a regular expression"),
     ("claim =", "clam =", "did you mean claim")],
)  # fmt: skip
def test_a_mistake_is_named_with_its_key(kept: Path, old: str, new: str, told: str) -> None:
    (kept / "01-one.toml").write_text(ENTRY.replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        one()
    assert told in str(caught.value.message)


def test_only_a_real_model_moves_an_entry(kept: Path) -> None:
    assert (one().standing, one().tier) == ("hypothesis", 0)
    measured(kept, ran())
    assert (one().standing, one().tier) == ("hypothesis", 1)
    found(kept, "confirmed", scripted=True)
    assert (one().standing, one().tier) == ("hypothesis", 1)
    found(kept, "inconclusive", scripted=False)
    assert (one().standing, one().tier) == ("hypothesis", 2)
    for verdict in ("confirmed", "refuted"):
        found(kept, verdict, scripted=False)
        assert (one().standing, one().tier) == (verdict, 2)


def test_a_claim_that_is_not_borne_out_is_a_problem(kept: Path) -> None:
    assert "not measured" in one().problems()[0]
    measured(kept, ran())
    assert one().problems() == []
    measured(kept, ran(stderr="why", exit=1))
    assert [problem.rpartition(": ")[2] for problem in one().problems()] == ["exit 1, not 0", "it says something"]
    (kept / "01-one.toml").write_text(ENTRY.replace("=Nobody", "=Somebody"))
    assert "not measured, or measured before it was changed" in one().problems()[0]


@pytest.mark.parametrize(
    ("line", "silent", "good"),
    [(Line("x", 0, silent_s=5), 5, True), (Line("x", 0, silent_s=5), 4, False),
     (Line("x", 0, speaks_within_s=4), 0, True), (Line("x", 0, speaks_within_s=4), 4, False)],
)  # fmt: skip
def test_silence_is_a_claim_like_others(line: Line, silent: int, good: bool) -> None:
    assert (line.problems(ran(silent_s=silent)) == []) is good


# -- measuring -----------------------------------------------------------------------------------------------------


def test_a_measurement_is_the_same_each_time_and_names_what_is_not(kept: Path) -> None:
    lines = ("pwd", "echo $HOME; date -u +%Y-%m-%dT%H:%M:%SZ >&2", "cat notes.txt; exit 3", "git log -1 --format=%an")
    evidence = Evidence("git", "holds", "G1", "c", tuple(Line(line, 0) for line in lines), before=("git tag one",))
    first, second = ledger_measure.runs(evidence), ledger_measure.runs(evidence)
    assert first == second
    assert [one["stdout"] for one in first[:2]] == ["/bench/work\n", "~\n"]
    assert first[1]["stderr"] == "TIME\n"
    assert first[2]["exit"] == 3 and "draft NONCE" in first[2]["stdout"]


def test_what_must_be_so_first_has_to_work(kept: Path) -> None:
    with pytest.raises(Exception, match="exit 1"):
        ledger_measure.runs(Evidence("git", "holds", "G1", "c", (Line("true", 0),), before=("false",)))
    with pytest.raises(Exception, match="no scenario 'G99'"):
        ledger_measure.runs(Evidence("git", "holds", "G99", "c", (Line("true", 0),)))


def test_silence_is_measured_on_both_streams() -> None:
    lines = (Line("sleep 2.4; echo x", 0, silent_s=2), Line("for i in 1 2 3; do sleep 0.8; echo $i >&2; done", 0,
                                                            speaks_within_s=2))  # fmt: skip
    told = ledger_measure.runs(Evidence("git", "holds", "G1", "c", lines))
    assert told[0]["silent_s"] == 2 and "silent_s" not in told[1]


def test_a_planted_defect_is_in_the_measured_copy_alone() -> None:
    line = Line("atlas count places --category bus_stop", 0)
    whole = ledger_measure.runs(Evidence("atlas", "holds", "A1", "c", (line,)))
    broken = ledger_measure.runs(Evidence("atlas", "violates", "A1", "c", (line,), planted="silent_zero"))
    assert (whole[0]["exit"], broken[0]["exit"], broken[0]["stdout"]) == (2, 0, "0\n")


@pytest.mark.slow
@pytest.mark.parametrize("entry", ledger.load_all(), ids=lambda entry: entry.name)
def test_what_is_claimed_of_our_own_programs_is_so_today(entry: ledger.Entry) -> None:
    for evidence in entry.evidence:
        if evidence.subject != "git":  # whose version is the machine's
            told = ledger_measure.runs(evidence)
            assert [problem for line, one in zip(evidence.lines, told, strict=True)
                    for problem in line.problems(one)] == []  # fmt: skip


# -- the page, the command -----------------------------------------------------------------------------------------


def test_the_page_is_what_the_data_says(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    assert main(["ledger", "--check"]) == 0
    assert "no problems" in capsys.readouterr().out


def test_a_page_that_was_edited_by_hand_is_found(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(kept, ran())
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["ledger", "--write", "-q"]) == 0
    assert main(["ledger", "--check"]) == 0
    page = tmp_path / "docs" / "agent-friendly-cli.md"
    page.write_text(page.read_text().replace("hypothesis", "confirmed"))
    capsys.readouterr()
    assert main(["ledger", "--check"]) == 1
    assert "is not what the entries say: labd-eval ledger --write" in capsys.readouterr().out


def test_the_page_shows_what_came_back_and_counts_what_it_leaves_out(kept: Path) -> None:
    measured(kept, ran(stdout="".join(f"line {n}\n" for n in range(20)), stderr="oh\n", exit=2))
    page = ledger_page.render([one()])
    assert "$ git log --author=Nobody\nline 0\n" in page and "… (12 more lines)" in page
    assert "[stderr] oh\n(exit 2)" in page
    assert "line 19" not in page
    measured(kept, ran())
    assert "(nothing on stdout, nothing on stderr, exit 0)" in ledger_page.render([one()])


def test_every_link_of_the_page_leads_to_a_heading() -> None:
    import re

    page = ledger_page.render(ledger.load_all())
    headings = {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
                for line in page.splitlines() if line.startswith("#")}  # fmt: skip
    links = re.findall(r"\]\(#([^)]+)\)", page)
    assert len(links) >= 10 and set(links) <= headings


def test_the_command_lists_shows_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger"]) == 0
    assert "hypothesis" in capsys.readouterr().out
    assert main(["ledger", "3", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["entries"]
    assert told["status"] == "hypothesis" and told["before"][0]["runs"][0]["exit"] == 0
    assert main(["ledger", "7"]) == 0
    assert capsys.readouterr().out.startswith("## 7. ")
    assert main(["ledger", "77"]) == 4
    assert main(["ledger", "--check", "--write"]) == 2
    assert "--check looks at the whole ledger" in capsys.readouterr().err


def test_measuring_is_kept_beside_the_entry(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "--measure"]) == 0
    assert "another measurement than before" in capsys.readouterr().err
    assert one().problems() == [] and one().tier == 1
    assert main(["ledger", "--measure"]) == 0
    assert "another measurement" not in capsys.readouterr().err
    (kept / "01-one.toml").write_text(ENTRY.replace("exit = 0", "exit = 7"))
    assert main(["ledger", "--measure"]) == 1
    assert "not borne out" in capsys.readouterr().err
    assert os.listdir(kept).count("01-one.measured.json") == 1
