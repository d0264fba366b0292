"""`labd commands`: the whole table, a search that never shrugs, and a check that runs nothing."""

import json
import shlex
from pathlib import Path

import pytest

from labd.argv import parse
from labd.operations import all_operations, commands
from tests.operations.cli import labd


@pytest.fixture(scope="module")
def table() -> list[dict[str, object]]:
    return [commands.described(op) for op in all_operations()]


def test_json_is_the_whole_table_with_units_defaults_and_examples(tmp_path: Path) -> None:
    code, out, _ = labd(tmp_path, "commands", "--json", LABD_POLICY="help")
    listed = {entry["path"]: entry for entry in json.loads(out)["operations"]}
    assert code == 0 and set(listed) == {op.name for op in all_operations()}
    for entry in listed.values():
        assert set(entry) >= {"path", "summary", "doc", "effect", "where", "params", "examples", "missing"}
        for param in entry["params"]:
            assert set(param) >= {"name", "kind", "unit", "flags", "default", "choices", "required"}


def test_every_example_in_the_table_parses_to_its_own_operation() -> None:
    for op in all_operations():
        for line, what in op.examples:
            words = shlex.split(line)
            assert words[0] == "labd" and what, line
            parsed = parse(words[1:])
            assert parsed.operation is not None and parsed.operation.path[0] == op.path[0], line


@pytest.mark.parametrize(
    ("words", "best"),
    [
        ("power cycle", "power-cycle"),
        ("reboot", "power-cycle"),
        ("shelly plug", "helper shellyplug"),
        ("uart", "serial"),
        ("read the console", "serial"),
        ("is it plugged in", "doctor"),
        ("type into console", "serial send"),
        ("list hardware", "discover"),
        ("screenshot", "video shot"),
        ("what did the board print", "serial log"),
        ("remove bmc", "serial rm"),
        ("check devices are present", "doctor"),
        ("turn power off", "power off"),
        ("add a target", "target add"),
    ],
)
def test_search_finds_what_a_user_means(table: list[dict[str, object]], words: str, best: str) -> None:
    found = [str(entry["path"]) for entry in commands.search(table, commands._words(words))]
    assert any(path == best or path.startswith(best + " ") for path in found[:3]), found[:6]


def test_search_takes_unquoted_words_and_json_behind_them(tmp_path: Path) -> None:
    code, out, _ = labd(tmp_path, "commands", "--search", "power", "cycle", "--json")
    assert code == 0 and json.loads(out)["search"] == ["power", "cycle"]


def test_a_search_that_finds_nothing_shows_the_nearest(tmp_path: Path) -> None:
    code, out, _ = labd(tmp_path, "commands", "--search", "seriall")
    assert code == 0 and "labd serial send" in out
    code, out, _ = labd(tmp_path, "commands", "--search", "zzzzqqqq")
    assert code == 0 and "nothing looks like it" in out and "labd serial" in out


def test_check_runs_nothing_and_exits_0_for_a_real_command(tmp_path: Path) -> None:
    lab = tmp_path / "lab.toml"
    code, out, _ = labd(tmp_path, "commands", "--check", "--", "target", "add", "pico", LABD_LAB=str(lab))
    assert code == 0 and out.startswith("ok: labd target add") and not lab.exists()
    assert labd(tmp_path, "commands", "--check", "--", "labd", "serial", "send", "pico", "uname -a")[0] == 0
    assert labd(tmp_path, "commands", "--check", "--", "serial", "--help")[0] == 0


@pytest.mark.parametrize("words", [("shelly",), ("flash", "x"), ("target", "ad", "x"), ("target", "add"), ()])
def test_check_exits_2_with_the_reason_for_what_is_no_command(tmp_path: Path, words: tuple[str, ...]) -> None:
    code, out, err = labd(tmp_path, "commands", "--check", "--", *words)
    assert (code, out) == (2, "") and err.startswith("labd: ")


def test_check_says_what_is_not_in_this_version(tmp_path: Path) -> None:
    code, out, _ = labd(tmp_path, "commands", "--check", "--json", "--", "power-cycle", "pico")
    assert code == 0 and json.loads(out)["path"] == "power-cycle"


def test_words_without_search_are_an_error_that_names_it(tmp_path: Path) -> None:
    code, _, err = labd(tmp_path, "commands", "power")
    assert code == 2 and "--search power" in err


def test_a_flag_is_no_word_to_search_for(tmp_path):
    from tests.operations.lab_bench import Bench

    bench = Bench(tmp_path)
    for line in ("labd commands --search --bogus", "labd commands --search power --bogus"):
        assert "no flag '--bogus'" in bench.error(line, 2)["message"]
    assert bench.error("labd commands nope", 2)["hint"] == "labd commands --search nope"
    assert bench.error("labd commands 'no pe'", 2)["hint"] == "labd commands --search 'no pe'"
