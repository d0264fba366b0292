"""The two examples of the plan behind `agenteval/2`, as records: probed anew they come out as they are written down."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graders import contract, signs
from graders.contract import Call, Probe, Record
from graders.probe_plan import plan
from graders.probe_read import Answer, conclusion
from graders.taxonomy import classified
from harness.scenario_fill import data_dir
from tests.graders.probing_play import Program

RECORDS = data_dir("fixtures") / "records"
SIGNS = signs.load((RECORDS / "signs.toml").read_text(), "fixtures/records/signs.toml")


def load(name: str) -> Record:
    return contract.load((RECORDS / f"{name}.json").read_bytes())


def bare(call: Call) -> Call:
    """What a call is before anything was asked about it."""
    return replace(call, subtype="c-unknown", evidence="", probes=())


def probed(name: str) -> Record:
    """The record, with the probes played by what the program answered."""
    record = load(name)
    record = replace(record, calls=tuple(map(bare, record.calls)))
    told = json.loads((RECORDS / f"{name}.answers.json").read_text())
    program = Program({line: Answer(code, text) for line, (code, text) in told.items()})
    found: dict[int, tuple[Probe, ...]] = {}
    for one in plan(record, SIGNS).planned:
        if not conclusion(found.get(one.at, ())):
            found[one.at] = (*found.get(one.at, ()), program.play(one))
    return classified(record, SIGNS, found)


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDS.glob("*.json") if "." not in path.stem))
def test_each_is_valid_in_the_source_form_and_comes_out_again(name: str) -> None:
    raw = json.loads((RECORDS / f"{name}.json").read_text())
    assert contract.validate(raw) == [] and "botmap_calls" in raw
    assert probed(name).calls == load(name).calls


def test_bus_stops_is_a_silent_wrong_by_vocabulary_with_the_nearest_name_that_there_is() -> None:
    """Also though something stood on stderr: that a command spoke does not say why it found nothing."""
    (call,) = probed("bus-stops").calls
    assert (call.cls, call.subtype) == ("C", "c-vocabulary")
    assert call.stderr_head and "nearest: bus_station" in call.evidence


def test_recreation_is_in_another_column_and_the_evidence_has_both_counts() -> None:
    (call,) = probed("recreation").calls
    assert (call.cls, call.subtype) == ("C", "c-wrong-column")
    assert "0 vs 86" in call.evidence and "subtype" in call.evidence


@pytest.mark.parametrize("name", ["bus-stops", "recreation"])
def test_without_probes_neither_is_clean(name: str) -> None:
    (call,) = classified(replace(load(name), calls=tuple(map(bare, load(name).calls))), SIGNS).calls
    assert (call.cls, call.subtype) == ("C", "c-unknown")


def test_the_files_are_all_told_of() -> None:
    told = (RECORDS / "README.md").read_text()
    assert all(path.stem.split(".")[0] in told for path in RECORDS.glob("*.json"))
    assert Path(RECORDS / "signs.toml").is_file()
