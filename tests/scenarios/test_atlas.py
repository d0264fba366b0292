"""atlas answers as a program for agents should: it guides where it refuses, says what it took, tells what it cut."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ATLAS = Path(__file__).parents[2] / "fixtures" / "atlas"


def ask(line: str, program: Path = ATLAS / "atlas") -> tuple[int, str, str]:
    """Exit code, stdout, stderr of one line, which begins with the program's name."""
    ran = subprocess.run([sys.executable, "-IS", str(program), *shlex.split(line)[1:]], capture_output=True, text=True,
                         timeout=30)  # fmt: skip
    return ran.returncode, ran.stdout, ran.stderr


def hint(stderr: str) -> str:
    """The command that a refusal advises."""
    return next(line.removeprefix("  try: ") for line in stderr.split("\n") if line.startswith("  try: "))


def test_the_tables_are_as_big_and_as_whole_as_told():
    tables = {path.stem: [line.split("\t") for line in path.read_text("utf-8").splitlines()]
              for path in (ATLAS / "data").glob("*.tsv")}  # fmt: skip
    assert {name: len(rows) - 1 for name, rows in tables.items()} == {
        "countries": 242, "cities": 678, "places": 331, "land": 194, "landuse": 138}  # fmt: skip
    codes = {row[0] for row in tables["countries"][1:]}
    for name, rows in tables.items():
        assert {len(row) for row in rows} == {len(rows[0])}, name
        if name != "countries":
            at = rows[0].index("country")
            assert {row[at] for row in rows[1:]} <= codes, name
    known = {(row[0], row[1], row[2]) for row in tables["cities"][1:]}
    for name in ("places", "land", "landuse"):
        in_cities = {tuple(row[-3:]) for row in tables[name][1:] if row[-3]}
        assert in_cities <= known, name


@pytest.mark.parametrize("command", ["", "countries", "cities", "places", "land", "landuse", "count", "country", "city",
                                     "where", "values", "near", "distance"])  # fmt: skip
def test_every_example_in_help_works(command):
    _, page, _ = ask(f"atlas {command} --help")
    examples = [line.strip().split("   ")[0] for line in page.partition("examples:")[2].split("\n") if "atlas " in line]
    assert len(examples) >= 2
    for line in examples:
        assert ask(line)[0] == 0, line
        told = ask(f"{line} --json".replace("--json --json", "--json"))
        assert isinstance(json.loads(told[1]), dict), line


@pytest.mark.parametrize(("line", "code", "says", "mended"), [
    ('atlas count places --category bus_stop --in "Cambridge, Massachusetts"', 2, "did you mean: bus_station",
     "atlas count places --category bus_station --in 'Cambridge, Massachusetts'"),
    ('atlas count landuse --class recreation --in "United Kingdom"', 2, "recreation is a subtype of landuse (91 rows)",
     "atlas count landuse --subtype recreation --in 'United Kingdom'"),
    ("atlas landuse --class=beach --in country:Malta", 2, "beach is a class of land (26 rows)",
     "atlas land --class beach --in country:Malta"),
    ("atlas count land --category art_museum", 2, "land has no --category; it has --subtype, --class",
     "atlas count places --category art_museum"),
    ("atlas count places --category museum --class library", 2, "museum is a class of places", None),
    ("atlas cities --in Malta", 2, "--in 'Malta, Montana, US'", "atlas where Malta"),
    ("atlas city Cambridge", 2, "'Cambridge, England, GB'", "atlas where Cambridge"),
    ("atlas where Cambrige", 4, "did you mean: Cambridge", "atlas where Cambridge"),
    ("atlas country Norge", 4, "no country 'Norge' is known", None),
    ("atlas citys", 2, "did you mean: city", "atlas --help"),
    ("atlas cities --limt 3", 2, "did you mean: --limit", "atlas cities --help"),
    ("atlas cities --limit 3 --limit 4", 2, "--limit is given twice", "atlas cities --help"),
    ("atlas cities --limit few", 2, "expected a whole number, found 'few'", "atlas cities --help"),
    ("atlas values --search zzzzz", 2, "no value is like 'zzzzz'", "atlas values --limit 0"),
])  # fmt: skip
def test_a_refusal_says_what_is_there_and_its_hint_works(line, code, says, mended):
    ended, out, err = ask(line)
    assert (ended, out) == (code, "")
    assert says in err
    assert mended in (None, hint(err))
    assert ask(hint(err))[0] == 0
    error = json.loads(ask(f"{line} --json")[2])["error"]
    assert error["hint"].removesuffix(" --json") == hint(err)
    assert "Traceback" not in err


def test_a_repeated_flag_means_either():
    art, history = "--category art_museum", "--category history_museum"
    counts = [int(ask(f"atlas count places --in 'London, England' {flags}")[1]) for flags in
              (art, history, f"{art} {history}")]  # fmt: skip
    assert counts[0] + counts[1] == counts[2] == 4


def test_a_limit_is_told_and_all_can_be_had():
    code, out, err = ask("atlas countries --currency EUR")
    assert (code, len(out.splitlines())) == (0, 21)
    assert "showing 20 of 36; --limit 0 for all" in err
    _, out, err = ask("atlas countries --currency EUR --limit 0 --json")
    told = json.loads(out)
    assert (told["total"], told["shown"], len(told["rows"]), err) == (36, 36, 36, "")


def test_what_was_understood_is_named_and_codes_are_those_of_countries():
    _, out, err = ask("atlas cities --in 'Malta, MT' --json")
    assert "in: Malta, Europe (country)" in err
    assert json.loads(out)["in"][0]["country"] == "MT"
    _, out, err = ask("atlas places --in 'Malta, Montana'")
    assert "in: Malta, Montana, United States (city)" in err
    assert "Great Plains Dinosaur Museum" in out


def test_a_zero_says_why_and_what_there_is_instead():
    code, out, err = ask("atlas count places --category mosque --in country:Malta --json")
    told = json.loads(out)
    assert (code, told["count"], told["why"]) == (0, 0, "none in Malta, Europe (country); 9 elsewhere")
    assert ask(told["hint"])[0] == 0
    assert told["why"] in err


def test_long_work_tells_how_far_it_is():
    _, _, err = ask("atlas near Oslo --within 500")
    assert "compared 250 of 678 cities" in err


def test_a_reader_that_goes_away_is_no_error():
    line = f"{shlex.quote(sys.executable)} -IS {ATLAS / 'atlas'} cities --limit 0 | head -n 1"
    ran = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=30)
    assert ran.stdout.startswith("name ")
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(("where", "says"), [("> /dev/full", "can't be written: No space left"), (">&-", "is closed")])
def test_an_answer_that_cannot_be_written_is_an_error_in_a_sentence(where, says):
    line = f"{shlex.quote(sys.executable)} -IS {ATLAS / 'atlas'} cities --limit 0 {where}"
    ran = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=30)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (1, 1)
    assert says in ran.stderr


@pytest.mark.parametrize("name", ["Zürich", "zurich", "ZURICH"])
def test_names_are_found_without_their_marks(name):
    assert "Zürich" in ask(f"atlas city {name}")[1]
