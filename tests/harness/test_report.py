"""The report says what the bundles say, in a form that nothing said by an agent can break."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from harness import agents, report, run
from harness.report import html as page
from harness.report import junit, markdown, model, table, timeline, words
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
    playing = [name for name in ("reference", *agents.CONTROLS) if name != "invented"]
    assert told["order"] == {"agent": playing, "scenario": ["S2", "S10", "C1"], "condition": ["cold"]}
    assert [row[0][0] for row in words.grid(told)] == ["scenario", "S2", "S10", "C1"]


def test_the_same_bundles_give_the_same_report(subject: Path, tmp_path: Path) -> None:
    directory = fresh(tmp_path, "noop")
    report.write(directory)
    names = ("report.json", "report.md", "junit.xml", "report.html")
    first = [(directory / name).read_bytes() for name in names]
    report.write(directory)
    assert [(directory / name).read_bytes() for name in names] == first


def test_nothing_that_was_said_breaks_the_page(subject: Path, tmp_path: Path) -> None:
    told = report.collect(fresh(tmp_path, "noop"))
    plain = len(markdown.render(told).splitlines())
    told["trials"][0] |= {"reason": EVIL, "verdict": "fail", "failed_checks": [EVIL]}
    text = markdown.render(told)
    assert len(text.splitlines()) == plain
    assert "<script>" not in text
    assert "\x1b" not in text
    rows = [line for line in text.splitlines() if "&lt;script" in line]
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
    assert words.cell(rows) == ("2/3 pass!", False)
    assert words.cell(rows[:2]) == ("pass ×2", True)
    lost = {"verdict": "provider_error", "expected": False}
    assert words.cell([*rows[:2], lost]) == ("2/2 pass, 1 provider_error!", False)
    assert words.cell([]) == ("-", True)


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


# -- numbers ------------------------------------------------------------------------------------------------------

REAL = {"expected": ["fail", "pass", "unknown"]}


def manifest(**agents_: dict[str, list[str]]) -> dict[str, object]:
    return {
        "id": "r1",
        "created": "2026-11-30T00:00:00Z",
        "versions": {"labd": "0.1"},
        "hashes": {"labd": "ab"},
        "agents": agents_,
        "scenarios": {f"S{n}": {"title": f"Scenario {n}", "lane": "config"} for n in range(1, 9)},
    }


def row(scenario: str, verdict: str, *, condition: str = "cold", number: int = 1, **more: object) -> dict[str, object]:
    rated = verdict in ("pass", "fail")
    return {
        "id": f"{scenario}.{condition}.real.{number}",
        "scenario": scenario,
        "condition": condition,
        "agent": "real",
        "number": number,
        "lane": "config",
        "verdict": verdict,
        "expected": rated,
        "reason": "",
        "cause": "completed" if rated else "provider_failed",
        "counted": rated,
        "valid": rated,
        "invented": None,
        "isolation": "home",
        "scripted_model": False,
        "bundle": "trials/x",
        "failed_checks": [],
        "traps": [],
        "duration_s": 1.0,
        "agent_s": 1.0,
        "cost_usd": None,
        "tokens": None,
        "turns": None,
    } | more


def numbers(rows: list[dict[str, object]], condition: str = "cold") -> dict[str, object]:
    told: dict[str, object] = model.project(manifest(real=REAL), rows)["agents"]["real"]["conditions"][condition]
    return told


def test_the_overall_rate_is_over_scenarios_and_lost_trials_are_told_beside_it() -> None:
    rows = [row("S1", "pass", number=n) for n in (1, 2, 3)] + [row("S2", "fail"), row("S2", "provider_error", number=2)]
    told = numbers(rows)
    assert told["overall"] == {"scenarios": 2, "of_scenarios": 2, "mean": 0.5, "interval": [0.0945, 0.9055],
                               "passed": 3, "valid": 4, "attempted": 5}  # fmt: skip
    assert told["not_valid"] == {"provider_failed": 1}
    assert words.overall_text(told["overall"]) == (
        "50 % of 2 scenarios (9–91 %; 3/4 trials), 4 valid of 5 attempted"
    )  # fmt: skip
    assert told["pass_k"]["k"] == [1]


def test_the_invent_rate_is_of_the_trials_in_which_it_was_asked() -> None:
    rows = [row("S1", "fail", invented=True), row("S2", "pass", invented=False), row("S3", "pass"),
            row("S4", "provider_error", invented=True)]  # fmt: skip
    told = numbers(rows)["invented"]
    assert (told["trials"], told["of"]) == (1, 2)
    assert words.invented_text(told) == "1/2 (9–91 %)"
    assert words.invented_text(numbers([row("S1", "pass")])["invented"]) == "not asked"


def test_a_smoke_test_enters_no_number_and_is_labelled() -> None:
    light = row("S1", "pass", isolation="light", counted=False, valid=False, invented=True, tokens=9)
    told = model.project(manifest(real=REAL), [light, row("S2", "fail")])
    assert told["labels"] == [model.SMOKE]
    cold = told["agents"]["real"]["conditions"]["cold"]
    assert (cold["overall"]["passed"], cold["overall"]["valid"], cold["invented"]["of"]) == (0, 1, 0)
    assert cold["spent"]["tokens"]["median"] is None
    assert cold["not_valid"] == {"light": 1}
    for text in (table.render(told), markdown.render(told), junit.render(told)):
        assert model.SMOKE in text


def test_a_scripted_model_is_said_wherever_its_results_show() -> None:
    told = model.project(manifest(real=REAL), [row("S1", "pass", scripted_model=True)])
    for text in (table.render(told), markdown.render(told), junit.render(told), page.render(told, {})):
        assert "it proves the harness, never a model" in text


def test_being_told_more_is_compared_over_the_same_scenarios() -> None:
    rows = [row(f"S{n}", "fail") for n in range(1, 9)]
    rows += [row(f"S{n}", "pass", condition="warm") for n in range(1, 9)]
    rows += [row(f"S{n}", "pass", condition="preloaded") for n in range(1, 4)]
    deltas = model.project(manifest(real=REAL), rows)["deltas"]
    assert [(one["from"], one["to"], one["finding"]) for one in deltas] == [
        ("cold", "warm", "better"),
        ("warm", "preloaded", "cannot show"),
    ]
    assert deltas[1]["left_out"] == 5
    assert "cold → warm: better: +100 points" in table.render(model.project(manifest(real=REAL), rows))


def test_controls_are_in_no_comparison_and_no_trap() -> None:
    rows = [row("S1", "fail"), row("S1", "pass", condition="warm", traps=[{"text": "t", "ok": False}])]
    told = model.project(manifest(real={"expected": ["fail"]}), rows)
    assert (told["deltas"], told["traps"]) == ([], [])
    assert told["agents"]["real"]["conditions"]["cold"]["overall"]["passed"] == 1, "caught"


def test_traps_are_told_for_each_condition() -> None:
    trap = "central trap: not that one"
    rows = [row("S1", "fail", traps=[{"text": trap, "ok": False}]),
            row("S1", "pass", condition="warm", traps=[{"text": trap, "ok": True}]),
            row("S2", "pass", traps=[{"text": "for a judge", "ok": None}])]  # fmt: skip
    (told,) = model.project(manifest(real=REAL), rows)["traps"]
    assert (told["walked_into"], told["of"], told["central"]) == (1, 2, True)
    assert {name: one["walked_into"] for name, one in told["by_condition"].items()} == {"cold": 1, "warm": 0}


def test_costs_are_medians_with_their_range_and_never_a_zero_where_none_was_told() -> None:
    told = numbers([row("S1", "pass", tokens=1000, cost_usd=0.5), row("S2", "fail", tokens=3000), row("S3", "pass")])
    assert words.spent_text(told["spent"]["tokens"], "tokens") == (
        "2 000 tokens (1 000 tokens to 3 000 tokens), told by 2 of 3"
    )  # fmt: skip
    assert words.spent_text(told["spent"]["cost_usd"], "USD") == "$0.50 ($0.50 to $0.50), told by 1 of 3"
    assert words.spent_text(told["spent"]["turns"], "turns") == "not told"


def test_usage_comes_from_the_transcript_and_nonsense_in_it_is_not_told(tmp_path: Path) -> None:
    from harness.report.rows import usage

    nothing = {"cost_usd": None, "tokens": None, "turns": None}
    assert usage(tmp_path) == nothing
    for text in ("{", "[]", '{"usage": 7}', '{"usage": {"total": "1", "turns": true, "cost_usd": -1}}'):
        (tmp_path / "transcript.json").write_text(text)
        assert usage(tmp_path) == nothing
    (tmp_path / "transcript.json").write_text('{"usage": {"total": 12, "turns": 3, "cost_usd": 0.25}}')
    assert usage(tmp_path) == {"cost_usd": 0.25, "tokens": 12, "turns": 3}


# -- junit --------------------------------------------------------------------------------------------------------


def test_ci_sees_what_was_not_expected_and_what_was_nobodys_fault() -> None:
    rows = [row("S1", "pass"), row("S2", "fail", expected=False, reason="why", failed_checks=["a check"]),
            row("S3", "harness_error", expected=False), row("S4", "blocked", expected=False),
            row("S5", "unknown", expected=False)]  # fmt: skip
    root = ET.fromstring(junit.render(model.project(manifest(real=REAL), rows)))
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5", "failures": "2", "errors": "1", "skipped": "1"}  # fmt: skip
    cases = {str(case.get("name")).split()[0]: case for case in root.iter("testcase")}
    assert [child.tag for child in cases["S1"]] == []
    failure = cases["S2"].find("failure")
    assert failure is not None
    assert failure.get("message") == "fail: why"
    assert "a check" in str(failure.text)
    assert cases["S1"].get("classname") == "real.cold.S1"


def test_no_text_makes_the_document_unreadable() -> None:
    rows = [row("S1", "fail", expected=False, reason=EVIL + "\x00\ufffe\ud800", failed_checks=["]]><x>", "\x08"])]
    root = ET.fromstring(junit.render(model.project(manifest(real=REAL), rows)).encode())
    (failure,) = root.iter("failure")
    assert "<script>" in str(failure.get("message"))
    assert "]]><x>" in str(failure.text)


# -- the page -----------------------------------------------------------------------------------------------------

HOSTILE = "</script><script>alert(1)</script><!--<script>{{DATA}} \u2028 \ud800 &lt; \x1b[31m"


def shown(directory: Path) -> tuple[str, dict[str, object]]:
    told = report.collect(directory)
    text = report.text(directory, told, "html")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return text, json.loads(found[1])


def carried_out(tmp_path: Path, *lines: str | Step, agent: str = "reference") -> Path:
    scenario = make_scenario(*lines)
    with run.create(tmp_path, [scenario], agents.select([agent])) as held:
        run.carry_out(held, [scenario], jobs=2, on_result=lambda _: None)
    return held.directory


def test_nothing_that_was_said_gets_out_of_the_pages_data(subject: Path, tmp_path: Path) -> None:
    directory = fresh(tmp_path, "noop")
    told = report.collect(directory)
    told["trials"][0] |= {"reason": HOSTILE}
    told["run"] = HOSTILE
    told["labels"] = [HOSTILE]
    text = page.render(told, {told["trials"][0]["id"]: {"damage": HOSTILE}})
    assert text.count("<script") == 2, "the data and the script, and nobody else's"
    assert text.count("</script>") == 2
    found = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert data["report"]["trials"][0]["reason"] == HOSTILE
    assert next(iter(data["timelines"].values()))["damage"] == HOSTILE
    assert "<title>Run &lt;/script&gt;" in text


def test_the_page_permits_its_own_script_alone_and_asks_nobody_else(subject: Path, tmp_path: Path) -> None:
    from base64 import b64encode
    from hashlib import sha256

    text, _ = shown(fresh(tmp_path, "noop"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    for part in (r"<script>(.*?)</script>", r"<style>(.*?)</style>"):
        inline = re.search(part, text, re.DOTALL)
        assert inline is not None
        assert b64encode(sha256(inline[1].encode()).digest()).decode() in policy[1]
    assert "default-src &#x27;none&#x27;" in policy[1]
    assert not re.search(r"""(?:src|href)\s*=\s*(?!["']?#)|url\(|https?://|innerHTML|@import|\beval\(""", text)


def test_the_page_shows_each_command_with_its_exit_code_and_what_the_grader_saw(subject: Path, tmp_path: Path) -> None:
    directory = carried_out(tmp_path, ADD_PICO, Step("printf '%s' '<script>alert(1)</script>'", shell=True))
    _, data = shown(directory)
    told = data["timelines"]["T1.cold.reference.1"]  # type: ignore[index]
    first, second = told["entries"]
    assert (first["text"], first["code"], first["recorded"], first["kind"]) == (ADD_PICO, 0, 1, "step")
    assert (second["out"], second["recorded"]) == ("<script>alert(1)</script>", 0)
    assert told["answer"] == "<script>alert(1)</script>"
    assert "+[targets.pico]" in told["lab"]
    assert [ok for name, ok, _ in told["checks"] if name.startswith("targets.pico")] == [True]
    assert told["goal"] == "Enter the board pico."


def test_a_damaged_bundle_is_shown_by_its_damage_alone(subject: Path, tmp_path: Path) -> None:
    directory = carried_out(tmp_path, ADD_PICO)
    (directory / "trials/T1.cold.reference.1/answer.txt").write_text("all is well")
    _, data = shown(directory)
    assert data["timelines"] == {"T1.cold.reference.1": {"damage": "answer.txt has changed"}}


def test_a_calls_exit_code_is_the_recorders_and_what_only_it_saw_stands_by_itself(tmp_path: Path) -> None:
    from tests.graders.bundles import config

    maker = config()
    maker.run("serial log pico", code=3)
    assert maker.records is not None
    for number, record in enumerate(maker.records):
        record["t"] = 1000.0 + number
    bundle = maker.write(tmp_path)
    (bundle.directory / "transcript.json").write_text(json.dumps({
        "messages": [{"n": 1, "role": "user", "text": "go", "t": 999.0, "thread": "main"}],
        "calls": [{"n": 2, "tool": "Bash", "t": 1000.0, "exit_code": 0, "output": "ok",
                   "command": "cd /x && labd serial add bmc -t pico --device /dev/ttyUSB1 --baud 9600; echo done"},
                  {"n": 3, "tool": "Bash", "t": 1001.0, "exit_code": 0, "command": "ls"}]}))  # fmt: skip
    entries = timeline._in_order(timeline.Bundle(bundle.directory))
    assert [(one["kind"], one.get("code"), one.get("recorded")) for one in entries] == [
        ("said", None, None), ("call", 0, 1), ("call", 0, 0), ("ran", 3, None)]  # fmt: skip


def test_what_is_too_long_says_how_much_is_missing() -> None:
    assert timeline.cut("x" * 50, 50) == "x" * 50
    assert "[… 60 characters …]" in timeline.cut("x" * 100, 40)
