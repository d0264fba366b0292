"""The drift guard: quiet while the exam fits the program, and loud about each way in which it may stop fitting."""

import json
from pathlib import Path

import pytest

from graders import drift
from harness import subject, surface
from harness.scenario import Controls, Scenario, Step, Trap, load_all

LABD = subject.load()


def check(scenarios, run):
    """The whole of the check of labd's exam."""
    return drift.check(scenarios, run, safe=LABD.safe, unsafe=LABD.unsafe)


def op(path, effect="config", flags=(), aliases=()):
    params = [{"name": flag.strip("-"), "flags": [flag]} for flag in flags]
    return {"path": path, "aliases": list(aliases), "effect": effect, "params": params}


class Program:
    """A command line that answers as the live one does, made of a table that a test can bend."""

    def __init__(self):
        self.table = {path: op(path) for path in LABD.safe}
        self.table |= {path: op(path, "actuate") for path in LABD.unsafe}
        self.table["serial add"] = op("serial add", flags=["--baud", "-t"])
        self.asked = []
        self.silent = set()

    def __call__(self, words):
        self.asked.append(words)
        rest = words[1:]
        if rest[:2] == ["commands", "--json"]:
            return 0, json.dumps({"operations": list(self.table.values())}), ""
        if rest[:3] == ["commands", "--check", "--"]:
            return self.check(rest[3:])
        assert rest[-1] == "--help"
        return self.help(" ".join(rest[:-1]))

    def check(self, words):
        entry = self.table.get(" ".join(words[:2])) or self.table.get(words[0])
        if entry is None:
            return 2, "", f"labd: no command {words[0]!r}\n"
        known = {flag for param in entry["params"] for flag in param["flags"]}
        wrong = [word for word in words if word.startswith("-") and word not in known]
        return (2, "", f"labd: no flag {wrong[0]}\n") if wrong else (0, "ok\n", "")

    def help(self, path):
        if path in self.silent:
            return 0, "nothing\n", ""
        if path in self.table:
            flags = [flag for param in self.table[path]["params"] for flag in param["flags"]]
            return 0, f"{path}\n" + "\n".join(flags), ""
        below = [name for name in self.table if not path or name.startswith(path + " ")]
        return (0, "\n".join(below), "") if below else (2, "", "no such group")


def make(*reference, controls=None, traps=(), ran=()):
    return Scenario("X", "t", "t1", "g", tuple(Step(line) if isinstance(line, str) else line for line in reference),
                    {"type": "t1_config", "ran": ran}, Path("x.toml"), traps=traps, controls=controls)  # fmt: skip


@pytest.fixture
def program():
    return Program()


def test_an_exam_that_fits_has_no_problems(program):
    assert check([make("labd serial add x -t pico --baud 9600")], program) == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("labd flash pico", "reference[0]: labd flash pico: no such command (exit 2): labd: no command 'flash'"),
        ("labd serial add x --speed 9600", "no flag --speed"),
    ],
)
def test_a_reference_line_that_is_no_command_any_more_is_told(program, line, told):
    (problem,) = check([make(line)], program)
    assert problem.startswith("x.toml: reference[0]: ")
    assert told in problem


def test_the_lines_of_controls_are_checked_too(program):
    (problem,) = check([make(controls=Controls(wrong_resource=(Step("labd nix"),)))], program)
    assert problem.startswith("x.toml: controls.wrong_resource[0]: labd nix")


def test_a_line_that_is_meant_to_be_wrong_usage_may_be(program):
    assert check([make(Step("labd serial add --speed 1", expect_exit=2))], program) == []


def test_explanations_shell_lines_and_other_programs_are_left_alone(program):
    lines = ["first\nlabd flash it", Step("labd flash > x", shell=True), "cp kernel.img out/"]
    assert check([make(*lines)], program) == []


def test_quoting_is_a_shells_and_placeholders_get_a_sample(program):
    check([make('labd serial add "a b" {nonce}')], program)
    assert ["labd", "commands", "--check", "--", "serial", "add", "a b", "1"] in program.asked


def test_what_stands_behind_a_pass_through_command_is_the_programs_to_judge(program):
    program.check = lambda words: (0, "ok", "")
    assert check([make("labd helper shellyplug -d 192.0.2.41 --anything cycle")], program) == []


@pytest.mark.parametrize("path", ["serial add", "config show", "power on"])
def test_a_listed_command_that_is_gone_is_told(program, path):
    del program.table[path]
    assert any(problem.startswith(f"allowlist: labd {path} does not exist") for problem in check([], program))


def test_a_safe_command_that_began_to_act_is_told(program):
    program.table["doctor"]["effect"] = "actuate"
    assert check([], program) == ["allowlist: labd doctor has effect actuate: it must be within the T1 set"]


def test_an_operational_command_that_became_allowed_is_told(program):
    program.table["netboot start"]["effect"] = "observe"
    assert check([], program) == ["allowlist: labd netboot start has effect observe: it must be outside the T1 set"]


def test_help_that_does_not_name_a_group_a_verb_or_a_flag_is_told(program):
    program.silent = {"", "serial", "serial add"}
    problems = check([make("labd serial add x")], program)
    assert "labd --help does not name serial" in problems
    assert "labd serial --help does not name add" in problems
    assert "labd serial add --help does not name its flag --baud" in problems


def test_a_word_inside_another_word_does_not_name_it(program):
    program.help = lambda path: (0, "serial-add addition", "")
    assert any("serial --help does not name add" in problem for problem in check([], program))


def test_a_program_without_a_table_is_one_problem(program):
    (problem,) = check([], lambda words: (7, "", "labd: it broke\n"))
    assert problem == "labd commands --json gave no table (exit 7): labd: it broke"


@pytest.mark.parametrize(
    ("when", "told"),
    [('[operation == "serial ad"]', "no command 'serial ad'"), ('[operation in ("doctor", "nix")]', "no command 'nix'"),
     ("[operation == 'serial ad']", "no command 'serial ad'"),
     ('[effect == "confg"]', "no effect 'confg'; did you mean config?"),
     ('[decision in ("permited", "refused")]', "no decision 'permited'; did you mean permitted?"),
     ('[line ~ "--buad"]', "no flag --buad"), ('[argv has "--nix"]', "no flag --nix")],
)  # fmt: skip
def test_a_predicate_that_could_never_be_true_is_told(program, when, told):
    assert check([make(traps=(Trap("t", when=when),))], program) == [f"x.toml: traps[0].when: {told}"]
    assert check([make(ran=({"text": "r", "when": when},))], program) == [f"x.toml: grader.ran[0].when: {told}"]


def test_nothing_is_remembered_from_one_check_to_the_next(program):
    scenario = make("labd serial add x --baud 1")
    assert check([scenario], program) == []
    program.table["serial add"] = op("serial add")
    assert len(check([scenario], program)) == 1


def test_the_shipped_scenarios_fit_the_installed_program():
    with surface.live() as ask:
        assert check(load_all(), ask) == []
