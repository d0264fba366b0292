"""Loading scenario files: what is right becomes values, what is wrong is named by file and key."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import scenario
from harness.scenario import ScenarioError, fill, lint, load

GOOD = """
id = "X1"
title = "A title"
tier = "t1"
goal = "Put the spare one next to the {nonce} one."
traps = ["plain", { text = "central", central = true, when = '[operation == "target rm"]' }]
reference = [
  "labd target add {nonce}",
  { run = "labd config show", save = { seq = '#(\\d+)' }, expect_exit = 1, until = "{home}/x", within_s = 3 },
  { run = "labd configure x", stated = true },
  "an explanation\\nof two lines",
]
[grader]
type = "t1_config"
exits = [0, 1]
[[grader.assert]]
path = "targets.x.serial[name=bmc].baud"
equals = 9600
[controls]
printed_success = "done"
wrong_resource = ["labd target add y"]
partial = ["labd config show"]
hand_edit = [{ run = "echo {nonce} >> '{lab}'", shell = true }]
"""


@pytest.fixture
def write(tmp_path):
    def put(text, name="x1.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return put


def problems(path):
    with pytest.raises(ScenarioError) as caught:
        load(path)
    return "\n".join(caught.value.problems)


def test_a_right_file_becomes_a_scenario(write):
    one = load(write(GOOD))
    assert (one.id, one.tier, one.lane, one.core) == ("X1", "t1", "config", False)
    assert one.conditions == ("cold", "warm", "preloaded", "mcp") and one.knows("mcp")
    assert [trap.central for trap in one.traps] == [False, True]
    assert [step.stated for step in one.reference] == [False, False, True, False]
    assert [step.prose for step in one.reference] == [False, False, False, True]
    assert one.reference[1].save == {"seq": r"#(\d+)"}


def test_words_are_split_before_placeholders_are_filled_so_a_value_adds_none(write):
    one = load(write(GOOD))
    assert one.reference[0].argv({"nonce": "a b; rm"}) == ["labd", "target", "add", "a b; rm"]
    assert one.control("hand-edit")[0].argv({"nonce": "n", "lab": "/l"}) == ["sh", "-c", "echo n >> '/l'"]


def test_the_frozen_form_is_plain_data_with_values_filled_and_escaped_in_patterns(write):
    import json

    frozen = load(write(GOOD)).frozen({"nonce": "n.1", "home": "/h.e"})
    assert json.loads(json.dumps(frozen)) == frozen
    assert frozen["goal"] == "Put the spare one next to the n.1 one."
    assert frozen["reference"][0]["run"] == "labd target add n.1"
    assert frozen["reference"][1]["until"] == "/h\\.e/x"
    assert frozen["lane"] == "config"


def test_a_partial_control_is_derived_from_the_reference(write):
    more = GOOD.replace('partial = ["labd config show"]\n', "").replace(
        '"labd target add {nonce}",', '"labd target add a",\n  "labd target add b",'
    )
    assert [step.run for step in load(write(more)).control("partial")] == ["labd target add a"]


def test_noop_and_printed_success_run_nothing_and_unknown_controls_are_an_error(write):
    one = load(write(GOOD))
    assert one.control("noop") == one.control("printed-success") == ()
    with pytest.raises(KeyError):
        one.control("nop")


def test_an_unknown_key_is_refused_with_the_nearest_one(write):
    path = write(GOOD.replace("title =", "titel ="))
    told = problems(path)
    assert f"{path}: titel: unknown key; did you mean title, tier?" in told
    assert f"{path}: title: missing" in told


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('tier = "t1"', 'tier = "t2"', "tier: expected one of t0, t1, found 't2'"),
        ('title = "A title"', "title = 7", "title: expected a text, found 7"),
        ("central = true", "central = 1", "traps[1].central: expected true or false"),
        ("central = true", "centrl = true", "traps[1].centrl: unknown key; did you mean central?"),
        ("[operation ==", "[operaton ==", "traps[1].when: not a predicate"),
        ("stated = true", "statd = true", "reference[2].statd: unknown key; did you mean stated?"),
        ("expect_exit = 1", "expect_exit = true", "reference[1].expect_exit: expected a whole number"),
        ("'#(\\d+)'", "'#('", "reference[1].save.seq: not a regular expression"),
        ('type = "t1_config"', 'type = "t1_confg"', "grader.type: expected one of"),
        ("exits = [0, 1]", "exits = 0", "grader.exits: expected an array"),
        ("exits = [0, 1]", 'exits = ["0"]', "grader.exits[0]: expected a whole number"),
        ("[name=bmc].baud", "[name=bmc.baud", "grader.assert[0].path: not a path"),
        ("equals = 9600", "", "grader.assert[0]: expected exactly one of equals, contains"),
        ("equals = 9600", "equals = 9600\nexists = true", "found equals, exists"),
        ("equals = 9600", "equal = 9600", "grader.assert[0].equal: unknown key; did you mean equals?"),
        ('"labd target add {nonce}"', '"labd target \'add"', "reference[0]: cannot be split into words"),
        ('"labd target add {nonce}"', '""', "reference[0]: an empty line"),
        ('printed_success = "done"', "", "controls.printed_success: missing, and each control has to fail"),
        ("hand_edit =", "hand_edits =", "controls.hand_edits: unknown key"),
        ('id = "X1"', 'id = "X2"', "id: 'X2' does not fit the file's name 'x1.toml'"),
        ('goal =', 'seed = "labs/none.toml"\ngoal =', "seed: no file 'labs/none.toml'"),
        ("[controls]", '[loopback]\ntarget = "a"\ninterface = "b"\n[loopback.expect]\n[controls]', "grader.type"),
        ("id =", "id = = ", "Invalid value"),
    ],
)  # fmt: skip
def test_each_mistake_is_named_with_its_file_and_key(write, old, new, told):
    assert old in GOOD
    path = write(GOOD.replace(old, new))
    found = problems(path)
    assert told in found
    assert str(path) in found


def test_every_mistake_of_a_file_is_told_at_once(write):
    found = problems(write(GOOD.replace("title =", "titel =").replace('tier = "t1"', 'tier = "t9"')))
    assert len(found.splitlines()) == 3


def test_a_reference_of_one_line_needs_its_partial_control_written_out(write):
    short = GOOD.replace('  "labd target add {nonce}",\n', "").replace('partial = ["labd config show"]\n', "")
    assert "controls.partial: missing" in problems(write(short))


def test_a_missing_file_and_one_that_is_no_utf8_are_named(write, tmp_path):
    assert "none.toml" in problems(tmp_path / "none.toml")
    path = tmp_path / "x1.toml"
    path.write_bytes(b"id = '\xff'")
    assert "x1.toml" in problems(path)


def test_two_files_with_one_id_and_all_broken_files_are_told_together(write, tmp_path, monkeypatch):
    write(GOOD)
    write(GOOD, "X1.toml")
    write("id = 1", "x3.toml")
    monkeypatch.setattr(scenario, "scenarios_dir", lambda subject: tmp_path)
    with pytest.raises(ScenarioError) as caught:
        scenario.load_all()
    told = "\n".join(caught.value.problems)
    assert told.count("is also another file's") == 2
    assert "x3.toml: title: missing" in told


# -- placeholders -------------------------------------------------------------------------------------------------


def test_known_names_are_filled_and_other_braces_stay():
    assert fill("{nonce} {other} {1} {{x}} {n:05d}", {"nonce": "N"}) == "N {other} {1} {{x}} {n:05d}"


def test_more_nonces_are_made_from_the_first_and_differ():
    values = {"nonce": "0123456789"}
    made = {fill("{nonce" + n + "}", values) for n in ("", "2", "3")}
    assert len(made) == 3
    assert {len(nonce) for nonce in made} == {10}
    assert fill("{nonce2}", values) == fill("{nonce2}", values)
    assert fill("{nonce2}", {}) == "{nonce2}"


@given(st.text(), st.dictionaries(st.sampled_from(["nonce", "lab", "home"]), st.text()))
def test_filling_never_fails_and_never_fills_twice(text, values):
    filled = fill(text, values)
    if not any("{" + name in text for name in ("nonce", "lab", "home")):
        assert filled == text
    assert fill("{lab}", {"lab": "{home}", "home": "x"}) == "{home}"


# -- goals --------------------------------------------------------------------------------------------------------

TOOL = {"serial", "watch", "power-cycle", "target"}


def goal(write, text, quoted="[]"):
    path = write(
        GOOD.replace('goal = "Put the spare one next to the {nonce} one."', f"goal = '''{text}'''\nquoted = {quoted}")
    )
    return lint(load(path), TOOL)


@pytest.mark.parametrize(
    "text", ["Watch it.", "the SERIAL port", "please power-cycle it", "(target)", "a --flag", "-x now"]
)
def test_words_and_flags_of_the_tool_in_a_goal_are_found(write, text):
    (found,) = goal(write, text)
    assert found.startswith("x1.toml: goal: ")


@pytest.mark.parametrize(
    "text",
    ["I am watching it", "the wristwatch", "in /dev/serial/by-id", "`watch` there", "USB-serial-ish", "a - dash"],
)
def test_other_words_paths_and_quoted_things_are_not(write, text):
    assert goal(write, text) == []


def test_a_word_that_the_scenario_quotes_is_its_own(write):
    assert goal(write, "the serial port", '["serial"]') == []


def test_the_vocabulary_is_the_live_tables():
    words = scenario.vocabulary()
    assert {"watch", "send", "power-cycle", "doctor"} <= words


def test_the_folders_are_there():
    assert scenario.scenarios_dir().is_dir()
    assert (scenario.fixtures_dir() / "labs").is_dir()
    assert isinstance(scenario.fixtures_dir(), Path)


# -- boards -------------------------------------------------------------------------------------------------------

BOARD = """
[loopback.files]
"spare.toml" = "duts/other.toml"
[loopback]
target = "dut"
interface = "console"
variables = { nonce = "{nonce}" }
banner = "say \\"{nonce2}\\"\\n\\u007f"
mode = "line"
followup = ["later\\n", "much later\\n"]
[[loopback.respond]]
match = 'version (\\d+)'
reply = "v{1} {nonce}\\n"
[loopback.expect]
received = ["version"]
[controls]
"""


def with_board(write, change=lambda text: text):
    graded = GOOD.replace('"t1_config"', '"outcome"').replace("[controls]", BOARD)
    graded = graded.replace("[grader]", 'seed = "labs/two-boards.toml"\n[grader]', 1)
    return load(write(change(graded)))


def test_a_board_that_the_scenario_describes_is_a_dut_file_beside_the_lab(write, tmp_path):
    from loopback.dutfile import load as load_dut

    one = with_board(write)
    assert one.lane == "loopback"
    files = one.files({"nonce": "abc"})
    (tmp_path / "dut.toml").write_text(files["dut.toml"])
    board = load_dut(str(tmp_path / "dut.toml"))
    assert board.title == "A title"
    assert board.variables["nonce"] == "abc"
    assert "{nonce" not in files["dut.toml"]
    assert len(board.states["main"].respond) == 1
    assert [after.ms for after in board.states["main"].after] == [1000, 2000]


def test_a_built_in_board_gets_the_trials_facts_as_variables(write, tmp_path):
    from loopback.dutfile import load as load_dut

    start = BOARD.index("banner")
    plain = BOARD[:start] + 'dut = "linux-login"\n' + BOARD[BOARD.index("[loopback.expect]") :]
    one = with_board(write, lambda text: text.replace(BOARD, plain))
    (tmp_path / "dut.toml").write_text(one.files({"nonce": "abc"})["dut.toml"])
    board = load_dut(str(tmp_path / "dut.toml"))
    assert board.variables["nonce"] == "abc"
    assert len(board.states) > 1


def test_two_boards_of_one_name_are_refused(write):
    taken = '"spare.toml" = "duts/other.toml"\n"dut.toml" = "duts/shell.toml"'
    with pytest.raises(ScenarioError, match=r"loopback\.files: dut\.toml is the name of the board"):
        with_board(write, lambda text: text.replace('"spare.toml" = "duts/other.toml"', taken))


def test_a_board_of_an_unknown_mode_is_refused(write):
    with pytest.raises(ScenarioError, match=r"loopback\.mode: expected one of"):
        with_board(write, lambda text: text.replace('mode = "line"', 'mode = "lines"'))


# -- mistakes that would otherwise show, if at all, in a verdict -----------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("the {nonce} one", "the {nonse} one", "goal: unknown placeholder {nonse}; did you mean nonce"),
        ("labd target add {nonce}", "labd target add {nonse}", "reference[0]: unknown placeholder {nonse}"),
        ("labd target add y", "labd target add {seq}", "controls.wrong_resource[0]: unknown placeholder {seq}"),
        ("echo {nonce} >>", "echo {nonse} >>", "controls.hand_edit[0]: unknown placeholder {nonse}"),
        ("equals = 9600", "equals = '{nonse}'", "grader.assert[0].equals: unknown placeholder {nonse}"),
        ('until = "{home}/x"', 'until = "("', "reference[1].until: not a regular expression"),
        ("within_s = 3", "within_s = -3", "reference[1].within_s: expected seconds from 0.1 to 86400, found -3"),
        ("within_s = 3", "within_s = nan", "reference[1].within_s: expected seconds"),
        ("within_s = 3", "within_s = 301", "reference[1].within_s: 301 s is longer than the trial's 300 s"),
        ('tier = "t1"', 'tier = "t1"\ntimeout_s = 0', "timeout_s: expected seconds"),
        ('tier = "t1"', 'tier = "t1"\ntimeout_s = inf', "timeout_s: expected seconds"),
        ("expect_exit = 1", "expect_exit = 256", "reference[1].expect_exit: expected a whole number from 0 to 255"),
        ("exits = [0, 1]", "exits = [-1]", "grader.exits[0]: expected a whole number from 0 to 255"),
        ("equals = 9600", "count = -1", "grader.assert[0].count: expected a whole number"),
        ('tier = "t1"', 'tier = "t1"\nseed = "../../etc/passwd"', "seed: '../../etc/passwd' is not in"),
        ('tier = "t1"', 'tier = "t1"\nseed = "/etc/passwd"', "seed: '/etc/passwd' is not in"),
        ("[controls]", "[[grader.answer]]\nmatches = '('\n[controls]", "grader.answer[0].matches: not a regular"),
        ('"t1_config"', '"outcome"', "grader.type: outcome is for scenarios with [loopback]"),
    ],
)
def test_a_mistake_that_nothing_else_would_show_is_told_when_it_is_loaded(write, old, new, told):
    assert old in GOOD
    assert told in problems(write(GOOD.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('target = "dut"', 'target = "dub"', "loopback.target: no 'dub' in labs/two-boards.toml; did you mean dut?"),
        ('interface = "console"', 'interface = "consol"', "loopback.interface: dut has no 'consol'"),
        ('"version"]', '{ target = "spar", matches = "x" }]', "loopback.expect.received[0].target: no 'spar'"),
        ('"version"]', '"("]', "loopback.expect.received[0]: not a regular expression"),
        ('"version"]', '"x"]\njournal = ["["]', "loopback.expect.journal[0]: not a regular expression"),
        ('"version"]', '"x"]\nprinted = ["["]', "loopback.expect.printed[0]: not a regular expression"),
        ('"version"]', '"x"]\nmay_receive = ["["]', "loopback.expect.may_receive[0]: not a regular expression"),
        ('"version"]', '"x"]\nat_end = "close"', "loopback.expect.at_end: expected one of open, closed"),
        ('"version"]', '"x {nonse}"]', "loopback.expect.received[0]: unknown placeholder {nonse}"),
        ("{nonce2}", "{nonse2}", "loopback: unknown placeholder {nonse2}; did you mean nonce2"),
        ('"spare.toml" = "duts/other.toml"', "", "labs/two-boards.toml has 'loopback:spare.toml', and there is"),
        ('"duts/other.toml"', '"../../../etc/passwd"', "loopback.files: '../../../etc/passwd' is not in"),
        ('"spare.toml"', '"../spare.toml"', "loopback.files: '../spare.toml' is no name for a file beside the lab"),
        ('"spare.toml"', '"lab.toml"', "loopback.files: 'lab.toml' is no name"),
    ],
)
def test_a_board_that_does_not_fit_its_lab_is_told_when_it_is_loaded(write, old, new, told):
    assert old in BOARD
    with pytest.raises(ScenarioError) as caught:
        with_board(write, lambda text: text.replace(BOARD, BOARD.replace(old, new)))
    assert told in "\n".join(caught.value.problems)


def test_what_a_line_waits_for_has_its_placeholders_filled_when_it_is_run(write):
    step = load(write(GOOD)).reference[1]
    assert step.wanted({"home": "/h.e"}).search("at /h.e/x")
    assert not step.wanted({"home": "/h.e"}).search("at /hie/x")


# -- what stands outside ------------------------------------------------------------------------------------------

S8 = (scenario.scenarios_dir() / "s8.toml").read_text()
S9 = (scenario.scenarios_dir() / "s9.toml").read_text()
T_PRE = (scenario.scenarios_dir() / "t-pre.toml").read_text()


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "told"),
    [
        ("s9", S9, "duts/hung.toml", "duts/hang.toml", "loopback.outside.file: no file"),
        ("s9", S9, "duts/hung.toml", "../README.md", "is not in"),
        ("s9", S9, 'serve = "rfc2217"', 'serve = "rfc2271"', "did you mean rfc2217"),
        ("s9", S9, 'serve = "rfc2217"', 'serve = "rfc2217"\nheld = true', "only a tty can be held"),
        ("s9", S9, "[[20, 520], [2950, 20000]]", "[[520, 20]]", "pulses[0]: expected [shortest, longest]"),
        ("s9", S9, "[[20, 520], [2950, 20000]]", "[[20]]", "pulses[0]: expected [shortest, longest]"),
        ("s9", S9, "[[20, 520], [2950, 20000]]", "[[-1, 20]]", "pulses[0][0]"),
        ("s9", S9, "labs/button.toml", "labs/two-boards.toml", 'device = "{device}"'),
        ("s9", S9, "{device}", "{devise}", "did you mean device"),
        ("s8", S8, 'holder = "let go"', 'holder = "gone"', "loopback.expect.holder"),
        ("t-pre", T_PRE, 'power = "cycle"', 'power = "cycle", say = "x"', "before[1]: one act at a time"),
        ("t-pre", T_PRE, 'power = "cycle"', 'power = "cycel"', "did you mean cycle"),
        ("t-pre", T_PRE, 'serve = "tty"', 'serve = "rfc2217"', "task: a task for everybody"),
        ("t-pre", T_PRE, "patience_s = 5", "patience_s = 0", "task.patience_s"),
    ],
)
def test_a_mistake_about_what_stands_outside_is_told_when_it_is_loaded(write, name, text, old, new, told):
    assert old in text
    assert told in problems(write(text.replace(old, new), f"{name}.toml"))


def test_measures_need_a_board_that_is_outside(write):
    text = (scenario.scenarios_dir() / "s4.toml").read_text()
    changed = text.replace("[loopback.expect]", "[loopback.expect]\npulses = []")
    assert "there is none" in problems(write(changed, "s4.toml"))
