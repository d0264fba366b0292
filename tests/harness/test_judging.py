"""A judge is a command on a pipe: what it says is kept word for word, what it does wrong is its own error."""

import json
import os
import sys
from pathlib import Path

import pytest

from graders import judge_prompt
from harness import judging
from harness.cli import main
from labd.errors import LabdError, NotFound, Usage
from tests.graders.bundles import config
from tests.graders.test_judge_answer import said


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    maker = config()
    maker.scenario |= {"goal": "do it", "traps": [{"text": "mind"}]}
    maker.answer = "I did é and \u2028."
    return maker.write(tmp_path).directory


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "judge.py"
    path.write_text(text)
    return f"{sys.executable} {path}"


def test_a_command_gets_the_question_and_its_answer_is_kept_word_for_word(tmp_path: Path, trial: Path) -> None:
    words = script(tmp_path, "import sys; q = sys.stdin.read(); print('prose {', len(q) > 500, '}', 'é')")
    [kept] = judging.ask(trial, judging.find(words, "m-1"))
    assert (kept["raw"], kept["problem"]) == ("prose { True } é\n", "")
    stored = json.loads((trial / "judge" / "001.json").read_text())
    assert stored == kept
    assert (stored["judge"], stored["model"], stored["rubric"]) == (words, "m-1", judge_prompt.digest())


def test_earlier_answers_are_put_aside(tmp_path: Path, trial: Path) -> None:
    judge = judging.find(script(tmp_path, "print(1)"))
    judging.ask(trial, judge, repeats=2)
    judging.ask(trial, judge)
    assert [path.name for path in sorted((trial / "judge").glob("*.json"))] == ["001.json"]
    assert len(list((trial / "judge" / "superseded" / "1").glob("*.json"))) == 2


@pytest.mark.parametrize(("text", "why"), [
    ("import sys; sys.exit('no key')", "exit 1: no key"),
    ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
])  # fmt: skip
def test_a_judge_that_fails_says_so(tmp_path: Path, trial: Path, text: str, why: str) -> None:
    [kept] = judging.ask(trial, judging.find(script(tmp_path, text)))
    assert why in kept["problem"]


def test_a_judge_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path, trial: Path) -> None:
    words = script(tmp_path, "import time, os; print(os.getpid(), flush=True); time.sleep(60)")
    [kept] = judging.ask(trial, judging.find(words, limit_s=1.0))
    assert "within 1 s" in kept["problem"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(kept["raw"]), 0)


def test_a_program_that_is_not_there_is_named_before_anything_is_asked() -> None:
    with pytest.raises(NotFound, match="no-such-judge"):
        judging.find("no-such-judge --x")


def test_a_script_answers_by_pattern(tmp_path: Path, trial: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text("[[answer]]\nmatch = 'nothing like this'\ntext = 'a'\n[[answer]]\nmatch = 'do it'\ntext = 'b'\n")
    [kept] = judging.ask(trial, judging.find(f"scripted:{path}"))
    assert kept["raw"] == "b"


@pytest.mark.parametrize("words", ["", "  ", "'unclosed"])
def test_words_that_are_no_command_are_refused(words: str) -> None:
    with pytest.raises(Usage):
        judging.find(words)


@pytest.mark.parametrize("text", ["not toml [", "[[answer]]\nmatch = '('\ntext = ''", "[[answer]]\nmatch = 'a'"])
def test_a_script_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(LabdError, match=r"s\.toml"):
        judging.find(f"scripted:{tmp_path / 's.toml'}")


def test_a_run_is_judged_and_graded_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reference of one stated scenario for real, then a judge that fails it, then one that talks prose."""
    out = ["-o", str(tmp_path / "runs"), "-q"]
    assert main(["run", "-s", "R8", *out]) == 0
    traps = [{"trap": n, "respected": True, "evidence": "labd power-state pico"} for n in (1, 2)]
    for raw, code, verdict in ((said(traps_eval=traps, d6=0), 0, "fail"), ("it is good", 1, "judge_error"),
                               (said(traps_eval=traps), 0, "pass")):  # fmt: skip
        words = script(tmp_path, f"print({raw!r})")
        capsys.readouterr()
        assert main(["judge", "latest", "--judge", words, "--json", *out]) == code
        assert json.loads(capsys.readouterr().out)["verdicts"] == {verdict: 1}
    [place] = (tmp_path / "runs").glob("*/trials/*")
    assert json.loads((place / "grades" / "stated.json").read_text())["scores"]["d6"] == 2
    assert main(["grade", "latest", *out]) == 0
    assert "0 verdicts changed" in capsys.readouterr().out
