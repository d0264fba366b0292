"""What is nested too deeply is a mistake like any other, wherever somebody's JSON or TOML is read."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from graders import argv_records, parsed, preserved, signs
from graders.readiness_evidence import NotParsed, Step, records
from harness import experiment, files, ledger, run
from harness.scenario_schema import ScenarioError, toml_of
from labd.errors import LabdError

DEEP = b"[" * 100_000


def test_it_is_told_as_a_mistake() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed.from_json(DEEP)
    with pytest.raises(tomllib.TOMLDecodeError, match="nested too deeply"):
        parsed.from_toml("a = " + DEEP.decode())
    with pytest.raises(tomllib.TOMLDecodeError):
        preserved.parse(b"a = " + DEEP)


def test_no_record_and_no_definition_ends_a_command_by_it(tmp_path: Path) -> None:
    for name, text in (("run.json", DEEP), ("x.json", DEEP), ("x.toml", b"a = " + DEEP)):
        (tmp_path / name).write_bytes(text)
    with pytest.raises(LabdError, match="nested too deeply"):
        run.load(tmp_path)
    with pytest.raises(ValueError, match="nested too deeply"):
        files.read_json(tmp_path / "x.json")
    with pytest.raises(LabdError, match="nested too deeply"):
        files.read_toml(tmp_path / "x.toml")
    for read in (experiment.read, ledger.read):
        with pytest.raises(ScenarioError, match="nested too deeply"):
            read(tmp_path / "x.toml")


def test_a_line_of_the_agents_in_the_record_is_torn_and_no_end_of_grading(tmp_path: Path) -> None:
    assert argv_records.read(DEEP + b"\n").torn == ("line 1 is no record",)


def test_an_object_is_an_object_and_nothing_else_is() -> None:
    assert parsed.object_in('{"a": 1}') == {"a": 1} == parsed.object_in(b'{"a": 1}')
    assert [parsed.object_in(text) for text in ("[1]", "1", '{"a"', "", DEEP.decode())] == [None] * 5


def test_a_file_that_is_nested_too_deeply_is_wrong_by_name(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(f"a = {DEEP.decode()}")
    with pytest.raises(ScenarioError, match=r"deep\.toml: nested too deeply"):
        toml_of(path)
    with pytest.raises(signs.SignsError, match="nested too deeply"):
        signs.load(f"a = {DEEP.decode()}")


def test_json_lines_end_at_newlines_alone() -> None:
    step = Step("read", "x", {"parse": "jsonl", "pick": "n"}, "exit", 0, None, 0, '{"n": "a\u2028b"}\n{"n": "c"}\n', "")
    assert records(step) == ["a\u2028b", "c"]
    with pytest.raises(NotParsed, match="nested too deeply"):
        records(replace(step, stdout=DEEP.decode()))
