"""`labd skill`: the guides are true; every command in them parses and exists."""

import json
import re
import shlex
from pathlib import Path

import pytest

from labd.argv import parse
from labd.operations import skill
from tests.operations.cli import labd


def test_bare_skill_lists_each_with_its_description(tmp_path: Path) -> None:
    code, out, _ = labd(tmp_path, "skill", LABD_POLICY="help")
    assert code == 0 and "labd" in out and "labd skill NAME" in out
    listed = json.loads(labd(tmp_path, "skill", "--json")[1])["skills"]
    assert [row["name"] for row in listed] == list(skill.skills()) and all(row["description"] for row in listed)


def test_a_name_prints_the_guide_and_path_prints_where_it_is(tmp_path: Path) -> None:
    code, out, _ = labd(tmp_path, "skill", "labd")
    assert code == 0 and out.startswith("---\nname: labd\n")
    code, path, _ = labd(tmp_path, "skill", "labd", "--path")
    assert code == 0 and Path(path.strip()).read_text() == out
    assert json.loads(labd(tmp_path, "skill", "labd", "--json")[1])["text"] == out


def test_an_unknown_guide_is_exit_4_with_what_there_is(tmp_path: Path) -> None:
    code, out, err = labd(tmp_path, "skill", "labdd")
    assert (code, out) == (4, "") and "'labd'" in err


def test_the_guides_names_are_their_folders_and_descriptions_fit() -> None:
    for name, path in skill.skills().items():
        head = skill.frontmatter(Path(path).read_text())
        assert head["name"] == name and 20 < len(head["description"]) <= 1024


def commands_of(text: str) -> list[str]:
    """The command lines in fenced blocks, and the inline ones that are whole (`labd serial log pico`)."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    inline = re.findall(r"`(labd [^`…]+)`", text[text.index("#") :])
    fenced = [line for block in blocks for line in block.splitlines() if line.startswith("labd")]
    return fenced + [words for words in inline if words not in NOT_COMMANDS]


#: What the guide names because it does not exist.
NOT_COMMANDS = ("labd shelly", "labd flash", "labd ssh", "labd exec", "labd helper NAME")


@pytest.mark.parametrize("name", list(skill.skills()))
def test_every_command_in_a_guide_parses_and_works_in_this_version_or_the_guide_says_so(name: str) -> None:
    text = Path(skill.skills()[name]).read_text()
    commands = commands_of(text)
    assert len(commands) > 10
    for line in commands:
        parsed = parse(shlex.split(line)[1:])
        told = "not yet driven" in text
        assert parsed.operation is None or not parsed.operation.missing or told, line


def test_what_the_guide_says_does_not_exist_does_not() -> None:
    from labd.operations import NOUNS

    assert not {words.split()[1] for words in NOT_COMMANDS if words != "labd helper NAME"} & set(NOUNS)
