"""`labd helper`: listing is harmless, running needs the level, words and exit codes pass through."""

import json
from pathlib import Path

import pytest

from labd import helpers
from labd.errors import NotFound
from labd.operations import helper
from tests.helpers.fake_shelly import FakeShelly
from tests.operations.cli import labd


def test_bare_helper_lists_each_with_a_line_and_says_how_hooks_call_it(tmp_path: Path) -> None:
    code, out, _ = labd(tmp_path, "helper", LABD_POLICY="help")
    assert code == 0 and "shellyplug" in out and "labd helper NAME" in out and "--cycle-cmd" in out
    assert labd(tmp_path, "helper", "list")[1] == out


def test_the_list_is_machine_readable(tmp_path: Path) -> None:
    code, out, _ = labd(tmp_path, "helper", "--json")
    listed = json.loads(out)["helpers"]
    assert code == 0 and [row["name"] for row in listed] == list(helpers.bundled())
    assert all(row["summary"] for row in listed)


def test_the_help_of_a_helper_is_its_own_and_needs_no_level(tmp_path: Path) -> None:
    code, out, _ = labd(tmp_path, "helper", "shellyplug", "--help", LABD_POLICY="help")
    assert code == 0 and "--delay-ms" in out and "labd helper shellyplug -d 192.0.2.41 cycle" in out


def test_running_one_passes_its_words_its_streams_and_its_exit_code(tmp_path: Path) -> None:
    plug = FakeShelly()
    try:
        assert labd(tmp_path, "helper", "shellyplug", "-d", plug.address, "state") == (0, "on\n", "")
        code, out, err = labd(tmp_path, "helper", "shellyplug", "-d", plug.address, "state", "9")
        assert (code, out) == (4, "") and err.startswith("shellyplug: ")
    finally:
        plug.close()


def test_running_one_is_refused_below_its_level_and_touches_nothing(tmp_path: Path) -> None:
    plug = FakeShelly()
    try:
        code, out, err = labd(tmp_path, "helper", "shellyplug", "-d", plug.address, "off", LABD_POLICY="config")
        assert (code, out) == (3, "") and "bench" in err and plug.calls == []
    finally:
        plug.close()


def test_an_unknown_helper_has_its_near_match(tmp_path: Path) -> None:
    code, out, err = labd(tmp_path, "helper", "shelyplug", "-d", "x", "state")
    assert (code, out) == (2, "") and "shellyplug" in err
    with pytest.raises(NotFound) as unknown:
        helpers.command("shelly")
    assert unknown.value.near == ["shellyplug"]


def test_a_folder_called_labd_in_the_callers_directory_does_not_shadow_the_helper(tmp_path: Path) -> None:
    (tmp_path / "labd").mkdir()
    (tmp_path / "labd" / "__init__.py").write_text("raise SystemExit(99)")
    assert labd(tmp_path, "helper", "shellyplug", "--", "--help")[0] == 0


def test_every_helper_has_a_summary_a_usage_and_examples() -> None:
    for name, summary in helpers.bundled().items():
        usage, examples = helpers.described(name)
        assert summary and usage.startswith(name) and examples
    assert {op.path[-1] for op in helper.OPERATIONS} == {"helper", *helpers.bundled()}
