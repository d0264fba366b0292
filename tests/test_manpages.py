"""The manual pages: whole, reproducible, and read by the real man and mandoc without a complaint."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import cli, manpage
from labd import manpages, roff
from labd.operations import NOUNS, all_operations
from tests.conftest import BenchInAFolder

PAGES = [*manpages.names(), "labd-eval"]


def source(name: str, date: str = "2026-01-02") -> str:
    """The source of any page."""
    if name != "labd-eval":
        return manpages.source(name, date)
    return manpage.source(*cli.build(), cli.EXAMPLES, date)


def shown(text: str) -> str:
    """A page as a terminal of 400 columns shows it, without bold."""
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MANWIDTH": "400"}
    formatted = subprocess.run(["man", "-E", "UTF-8", "-l", "-"], input=text.encode(), capture_output=True, env=env)
    assert formatted.returncode == 0, formatted.stderr
    return formatted.stdout.decode()


@pytest.mark.parametrize("name", PAGES)
def test_man_and_mandoc_find_nothing_wrong(name: str, tmp_path: Path):
    if not (shutil.which("man") or shutil.which("mandoc")):
        pytest.skip("neither man nor mandoc here")
    page = tmp_path / f"{name}.1"
    page.write_text(source(name))
    if shutil.which("mandoc"):
        done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", str(page)], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "")
    if shutil.which("man") and shutil.which("groff"):
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "80"}
        words = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)]
        done = subprocess.run(words, capture_output=True, text=True, env=env)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("groff"), reason="no groff here")
def test_a_reader_sees_every_verb_flag_and_example_as_it_is_typed():
    pages = {noun: shown(source(f"labd-{noun}")) for noun in NOUNS}
    for op in all_operations():
        page = pages[op.path[0]]
        for word in [f"labd {op.name}", *(flag for param in op.params for flag in param.flags)]:
            assert word in page, (op.name, word)
        for command, _ in op.examples:
            assert command in page, command
    assert all(f"labd-{noun}(1)" in shown(source("labd")) for noun in NOUNS)


@pytest.mark.skipif(not shutil.which("groff"), reason="no groff here")
def test_the_exams_page_has_every_command_and_option():
    page = shown(source("labd-eval"))
    for name, parser in cli.build()[1].items():
        assert f"labd-eval {name}" in page
        assert all(flag in page for action in parser._actions for flag in action.option_strings)


def test_what_roff_would_act_on_is_shown_as_it_is():
    hostile = ".so /etc/passwd"
    assert not any(line.startswith((".so", "'")) for line in roff.flowing(f"{hostile} 'br \\fB .so x"))
    assert roff.text("a-b \\n ~'`^\"é") == "a\\-b \\(rsn \\(ti\\(aq\\(ga\\(ha\\(dq\\[u00E9]"
    long = roff.flowing("word " * 40 + ".so x")
    assert all(len(line) <= roff.WIDTH and not line.startswith(".") for line in long)


def test_the_same_bytes_come_out_whenever_they_are_made(labd: BenchInAFolder):
    env = {"SOURCE_DATE_EPOCH": "1000000000"}
    first = labd("man", "serial", env=env).stdout
    assert b" 2001-09-09 " in first and first == labd("man", "labd-serial", env=env).stdout
    assert f" {manpages.DATE} ".encode() in labd("man", "serial", env={"SOURCE_DATE_EPOCH": "soon"}).stdout


def test_pages_are_listed_printed_and_installed(labd: BenchInAFolder):
    assert [page["name"] for page in labd.json("man")["pages"]] == list(manpages.names())
    assert labd.json("man", "power")["source"] == manpages.source("labd-power", manpages.DATE)
    assert b"did you mean 'labd-serial'" in labd("man", "serail", check=4).stderr
    assert "1 page in" in labd.out("man", "labd", "--dir", "own")
    written = labd.json("man", "--dir", "share/man")["written"]
    place = labd.root / "share" / "man" / "man1"
    assert sorted(written) == sorted(str(path) for path in place.iterdir()) and len(written) == len(NOUNS) + 1
    (labd.root / "taken").write_text("")
    assert b"can't be made" in labd("man", "--dir", "taken", check=1).stderr
    done = subprocess.run([shutil.which("labd-eval", path=labd.env["PATH"]) or "", "man", "--dir", str(place.parent)],
                          capture_output=True, env=labd.env)  # fmt: skip
    assert done.returncode == 0 and (place / "labd-eval.1").read_text().startswith(".TH LABD\\-EVAL 1 ")
    if shutil.which("man"):
        env = {**labd.env, "MANPATH": str(place.parent)}
        assert b"serial consoles" in subprocess.run(["man", "labd-serial"], capture_output=True, env=env).stdout


def test_the_list_of_exit_codes_is_whole():
    assert [line for line in manpages.exit_status() if line.startswith("\\fB")] == [f"\\fB{n}\\fR" for n in range(9)]
