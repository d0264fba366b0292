"""The report says what the bundles say, in a form that nothing said by an agent can break."""

from pathlib import Path

from harness import agents, report, run
from harness.report import markdown, table
from harness.scenario import Step
from tests.harness.conftest import ADD_PICO, make_scenario

EVIL = "| a\n<script> `x` \x1b[31m \\ é"


def fresh(tmp_path: Path, *names: str, trials: int = 1) -> Path:
    scenarios = [make_scenario(ADD_PICO, identity=name) for name in ("S2", "S10", "C1")]
    with run.create(tmp_path, scenarios, agents.select(list(names)), trials=trials) as held:
        return held.directory


def test_what_was_planned_and_not_run_is_told_and_is_no_zero(subject: Path, tmp_path: Path) -> None:
    told = report.write(fresh(tmp_path, "all"))
    assert told["counts"] == {"not_run": 18}
    assert told["as_expected"] is False
    assert "not measured (0 valid of 0 attempted)" in table.render(told)


def test_agents_and_scenarios_stand_in_the_order_in_which_they_were_to_run(subject: Path, tmp_path: Path) -> None:
    told = report.collect(fresh(tmp_path, "all"))
    assert told["order"] == {"agent": ["reference", *agents.CONTROLS], "scenario": ["S2", "S10", "C1"]}
    assert [row[0][0] for row in table.grid(told)] == ["scenario", "S2", "S10", "C1"]


def test_the_same_bundles_give_the_same_report(subject: Path, tmp_path: Path) -> None:
    directory = fresh(tmp_path, "noop")
    report.write(directory)
    first = [(directory / name).read_bytes() for name in ("report.json", "report.md")]
    report.write(directory)
    assert [(directory / name).read_bytes() for name in ("report.json", "report.md")] == first


def test_nothing_that_was_said_breaks_the_page(subject: Path, tmp_path: Path) -> None:
    told = report.collect(fresh(tmp_path, "noop"))
    plain = len(markdown.render(told).splitlines())
    told["trials"][0] |= {"reason": EVIL, "verdict": "fail", "failed_checks": [EVIL]}
    page = markdown.render(told)
    assert len(page.splitlines()) == plain
    assert "<script>" not in page
    assert "\x1b" not in page
    rows = [line for line in page.splitlines() if "&lt;script" in line]
    assert [row.replace("\\|", "").count("|") for row in rows] == [5]


def test_nothing_that_was_said_reaches_the_terminal_as_a_control(subject: Path, tmp_path: Path) -> None:
    told = report.collect(fresh(tmp_path, "noop"))
    plain = len(table.render(told).splitlines())
    told["trials"][0] |= {"reason": EVIL}
    text = table.render(told)
    assert "\x1b" not in text
    assert len(text.splitlines()) == plain


def test_a_cell_of_several_trials_counts_them(subject: Path, tmp_path: Path) -> None:
    rows = [{"verdict": verdict, "expected": verdict == "pass"} for verdict in ("pass", "pass", "fail")]
    assert table.cell(rows) == ("2 pass, 1 fail!", False)
    assert table.cell(rows[:2]) == ("pass ×2", True)
    assert table.cell([]) == ("-", True)


def test_colour_is_only_for_those_who_asked(subject: Path, tmp_path: Path) -> None:
    told = report.collect(fresh(tmp_path, "noop"))
    assert "\x1b[31m" in report.table_text(told, color=True)
    assert "\x1b" not in report.table_text(told)


def test_a_trap_is_counted_for_agents_that_mean_to_pass(subject: Path, tmp_path: Path) -> None:
    from harness.scenario import Trap

    trap = Trap("one board is enough", central=True, when='[argv has "vim"]')
    scenario = make_scenario(ADD_PICO, Step("labd target add vim"), traps=(trap,))
    with run.create(tmp_path, [scenario], agents.select(["all"])) as held:
        run.carry_out(held, [scenario], jobs=2, on_result=lambda _: None)
    (told,) = report.collect(held.directory)["traps"]
    assert (told["walked_into"], told["of"]) == (1, 1)
