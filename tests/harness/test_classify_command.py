"""`labd-eval classify` over a real run of a real program: records beside the evidence, distribution, reasons."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from graders import contract, signs
from harness import agents, classifying, cli, grading, run, scenario
from harness.report import classes
from harness.scenario import Step

BUS = "--in 'Cambridge, Massachusetts'"
#: A refusal with a hint, an unrelated call, and the hint taken.
WORDS = (f"atlas count places --category bus_stop {BUS}", "atlas --version",
         f"atlas count places --category bus_station {BUS}")  # fmt: skip
TRIAL = "A1.cold.reference.1"

Classify = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def conducted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run of two trials of atlas: one by the words above, and one that never calls it."""
    (whole,) = (one for one in scenario.load_all("atlas") if one.id == "A1")
    steps = tuple(Step(line, expect_exit=2 if "bus_stop" in line else 0) for line in WORDS)
    bent = replace(whole, reference=steps)
    with run.create(tmp_path_factory.mktemp("out"), [bent], agents.select(["reference", "noop"])) as held:
        run.carry_out(held, [bent], jobs=2, on_result=lambda _: None)
    return held.directory


@pytest.fixture
def classify(conducted: Path, capfd: pytest.CaptureFixture[str]) -> Classify:
    """Calls the command on the run; exit code, stdout, stderr."""

    def call(*words: str) -> tuple[int, str, str]:
        code = cli.main(["classify", str(conducted), *words])
        out, err = capfd.readouterr()
        return code, out, err

    return call


def test_a_trial_gets_a_record_that_is_no_part_of_its_evidence(conducted: Path, classify: Classify) -> None:
    assert classify("-q")[0] == 0
    path = classes.path_of(conducted, TRIAL)
    assert contract.validate(json.loads(path.read_bytes())) == []
    record = contract.load(path.read_bytes())
    assert [call.cls for call in record.calls] == ["B", None, None]
    assert record.calls[0].argv[:2] == ("count", "places")
    assert (record.program_calls, record.question_id, record.trial) == (3, "A1", TRIAL)
    assert record.subject["name"] == "atlas"
    assert record.agent_side[0].used_at == 2
    assert path.with_suffix(".probes.jsonl").is_file()
    assert grading.damage(conducted / "trials" / TRIAL) == ""
    before = path.read_bytes()
    classify("-q")
    assert path.read_bytes() == before


def test_the_distribution_shows_each_bar_with_the_calls_behind_it(classify: Classify) -> None:
    code, out, err = classify()
    assert code == 0
    assert "reference, cold: 3 calls in 1 trial" in out
    assert "  ok 2/3  ████████████████████\n" in out
    assert "  B  1/3  ██████████  1/1 trials (21–100 %)\n       A1.cold.reference.1 call 1: atlas count places" in out
    assert "noop, cold: 0 calls in 1 trial\n\n" in out
    assert "  A1              2     .     1     .     .     .     .\n" in out
    assert f"{TRIAL}  3 calls" in err


def test_the_data_and_the_pages_say_the_same(conducted: Path, classify: Classify) -> None:
    told = json.loads(classify("-q", "--json")[1])
    (one,) = told["runs"]
    assert (told["schema"], one["run"]) == ("labd-classes/1", conducted.name)
    assert one["columns"][0]["counts"]["B"] == 1
    assert one["columns"][0]["behind"]["B"][0]["trial"] == TRIAL
    assert "the agent ran: atlas count places" in one["explained"][TRIAL]
    assert "noop" in one["columns"][1]["agent"]
    text = classify("-q", "--format", "markdown")[1]
    assert text.startswith(f"# Run {conducted.name}\n\n## What went wrong")
    assert text.partition("\n\n")[2].rstrip() in (conducted / "report.md").read_text()
    assert classify("-q", "--format", "html")[1] == (conducted / "report.html").read_text()


def test_each_failure_is_told_whole(classify: Classify) -> None:
    out = classify("-q", "--explain")[1]
    assert f"{TRIAL}\nCLASS B" in out
    assert "The tool had the information, and said it." in out
    assert "Call 1: hint offered bus_station, " in out
    assert "; call 2 did not use it; call 3 did." in out


def test_without_probes_nothing_is_asked_and_no_old_log_stays(conducted: Path, classify: Classify) -> None:
    classify("-q")
    unseen = "the program was not asked again, or not all, after 2 trials"
    assert unseen not in classify("-q")[1]
    for words in ((), ("--explain",), ("--format", "html")):
        assert unseen in classify("-q", "--no-probes", *words)[1]
    assert unseen.capitalize() in classify("-q", "--no-probes", "--format", "markdown")[1]
    assert not list((conducted / classes.DIRECTORY).glob("*.probes.jsonl"))
    assert len(list((conducted / classes.DIRECTORY).glob("*.json"))) == 2


def test_a_damaged_bundle_is_named_and_keeps_no_record(conducted: Path, classify: Classify) -> None:
    classify("-q")
    answer = conducted / "trials" / TRIAL / "answer.txt"
    before = answer.read_bytes()
    try:
        answer.write_bytes(b"forged")
        code, out, err = classify()
        assert code == 0
        assert f"{TRIAL}  answer.txt has changed" in err
        assert not classes.path_of(conducted, TRIAL).exists()
        assert "reference, cold" not in out
        assert f"no record: {TRIAL}\n" in out
    finally:
        answer.write_bytes(before)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--json", "--format", "html"), 2, "--json and --format html say different things"),
        (("--explain", "--format", "markdown"), 2, "--explain has no form markdown"),
        (("other", "--format", "html"), 2, "--format html is the report of one run"),
        (("nowhere",), 4, "no run 'nowhere'"),
        (("-s", "A2"), 4, "no scenario 'A2'"),
    ],
)
def test_what_can_not_be_meant_is_refused(words: tuple[str, ...], code: int, said: str, classify: Classify) -> None:
    told = classify(*words)
    assert (told[0], told[1]) == (code, "")
    assert said in told[2]


def test_a_subject_of_which_nothing_is_said_is_refused(
    classify: Classify, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(signs, "FILE", "nothing.toml")
    code, _, err = classify("-q")
    assert code == 1
    assert "nothing says how answers of atlas look" in err


def test_every_subject_has_signs_that_load() -> None:
    from harness import subject

    for name in subject.names():
        assert classifying.signs_of(name).empty
