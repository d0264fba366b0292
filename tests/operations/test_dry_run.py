"""--dry-run of every verb that edits the lab: it tells the change, checks it like the real one, and writes nothing."""

import json
import os

import pytest

from labd.operations import all_operations
from tests.operations.lab_bench import LAB, Bench

EDITS = [op for op in all_operations() if op.effect == "config" and op.path[0] in (
    "target", "host", "serial", "power", "video", "hid", "netboot", "adb") and op.path[-1] in ("add", "set", "rm")
    and op.path[:2] != ("serial", "trigger")]  # fmt: skip


@pytest.fixture
def pico(tmp_path):
    bench = Bench(tmp_path)
    bench.lab.write_text(LAB)
    return bench


@pytest.mark.parametrize("op", EDITS, ids=lambda op: op.name)
def test_every_verb_that_edits_the_lab_has_it_and_only_looks_then(op):
    assert "dry_run" in {param.name for param in op.params}
    assert op.looking == ("dry_run",)


def test_it_shows_the_lines_that_would_differ_and_the_real_edit_makes_them(pico):
    before = pico.lab.read_text()
    said = pico("labd target add fresh --description 'second shelf' --dry-run")
    assert said.out.startswith("dry run, nothing is written: fresh: added")
    added = [line[1:] for line in said.out.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert "[targets.fresh]" in added and pico.lab.read_text() == before
    pico("labd target add fresh --description 'second shelf'")
    assert [line for line in pico.lab.read_text().splitlines() if line not in before.splitlines() and line] == [
        line for line in added if line and line not in before.splitlines()]  # fmt: skip


def test_json_says_that_it_was_one_and_has_the_difference(pico):
    told = json.loads(pico("labd target rm pico --dry-run --json").out)
    assert told["dry_run"] is True and told["did"] == "removed"
    assert any(line == "-[targets.pico]" for line in told["diff"])
    assert "dry_run" not in json.loads(pico("labd target rm pico --json").out)


def test_what_the_real_edit_refuses_it_refuses_too(pico):
    before = pico.lab.read_text()
    assert "already" in pico("labd target add pico --dry-run", 1).err
    assert "no target" in pico("labd serial add console -t nobody --device /dev/ttyUSB0 --dry-run", 4).err
    assert pico.lab.read_text() == before


def test_a_lab_that_does_not_exist_is_not_made_nor_its_lock(tmp_path):
    bench = Bench(tmp_path)
    assert "+[targets.pico]" in bench("labd target add pico --dry-run").out
    assert not bench.lab.exists()
    assert not [name for name in os.listdir(bench.lab.parent) if "lab.toml" in name]


def test_it_is_permitted_where_only_looking_is(pico):
    pico.env["LABD_POLICY"] = "observe"
    pico("labd target add fresh", 3)
    assert "fresh" in pico("labd target add fresh --dry-run").out


def test_no_secret_of_the_lab_is_in_the_difference(pico):
    said = pico("labd power set -t pico --cycle-cmd 'amt --password hunter2secret cycle' --dry-run")
    assert "hunter2secret" not in said.out + said.err
