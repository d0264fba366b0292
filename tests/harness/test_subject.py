"""A subject is told by its subject.toml: what is wrong in one is named with its key, and the kinds do the rest."""

import pytest

from harness import subject
from harness.scenario_schema import ScenarioError
from labd.errors import NotFound

PLAIN = """
name = "tool"
title = "a tool"
program = "tool"
kind = "git"
lane = "local"
[help]
layout = "pages"
[allowlist]
safe = ["look"]
unsafe = ["destroy all"]
"""


def written(tmp_path, text):
    folder = tmp_path / "tool"
    folder.mkdir()
    (folder / "subject.toml").write_text(text)
    return folder / "subject.toml"


def test_those_that_ship_load_and_labd_is_the_default():
    assert subject.names() == ["labd", "atlas", "git"]
    assert [one.lane for one in subject.all_of_them()] == ["config", "local", "local"]
    assert subject.load().find() is not None


def test_a_plain_one_loads(tmp_path):
    one = subject.read(written(tmp_path, PLAIN))
    assert (one.safe, one.unsafe, one.layout) == (("look",), ("destroy all",), "pages")
    assert one.kind.vocabulary() == {"look", "destroy", "all"}
    assert one.kind.effects() == {"destroy all": "admin"}
    assert one.missing == "there is no tool on PATH"


@pytest.mark.parametrize(("old", "new", "told"), [
    ('lane = "local"', 'lane = "locl"', "lane: expected one of config, local, found 'locl'; did you mean local?"),
    ('title = "a tool"', 'titel = "a tool"', "titel: unknown key; did you mean title, state?"),
    ('kind = "git"', 'kind = "gti"', "kind: there is no kind 'gti'; did you mean git?"),
    ('name = "tool"', 'name = "tools"', "name: 'tools' does not fit the folder 'tool'"),
    ('safe = ["look"]', "", "allowlist.safe: missing"),
])  # fmt: skip
def test_a_mistake_is_named_with_its_key(tmp_path, old, new, told):
    path = written(tmp_path, PLAIN.replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        subject.read(path)
    assert f"{path}: {told}" in caught.value.problems


def test_one_that_is_not_there_is_told_with_near_matches():
    with pytest.raises(NotFound) as caught:
        subject.load("gti")
    assert caught.value.near == ["git"]


def test_a_variable_replaces_the_installed_program(tmp_path, monkeypatch):
    program = tmp_path / "labd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("LABD_EVAL_SUBJECT", str(program))
    assert subject.load().find() == str(program)
    monkeypatch.setenv("LABD_EVAL_SUBJECT", str(tmp_path / "nowhere"))
    assert subject.load().find() is None


def test_variables_are_filled_with_the_places_of_the_sandbox(tmp_path):
    env = subject.load().variables(tmp_path, "loopback")
    assert env["LABD_LAB"] == f"{tmp_path}/home/.config/labd/lab.toml"
    assert env["LABD_POLICY"] == "simulated"
    assert "LABD_POLICY" not in subject.load("git").variables(tmp_path, "local")
