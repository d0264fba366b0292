"""The scripted agents: the reference plays its lines, the controls fail in the ways they are named after."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import agents, sandbox
from harness.agents import wrong_resource
from harness.bench import Bench, GaveUp, TimeIsUp
from harness.scenario import Controls, Scenario, Step
from labd.errors import NotFound
from tests.harness.conftest import ADD_PICO, make_scenario

Stage = Callable[[Scenario], Bench]


@pytest.fixture
def stage(subject: Path) -> Iterator[Stage]:
    places = []

    def make(scenario: Scenario) -> Bench:
        places.append(sandbox.create(scenario, str(subject)))
        return Bench(scenario, places[-1])

    yield make
    for place in places:
        place.stop()
        place.close()


def act(name: str, bench: Bench) -> str:
    return agents.find(name).act(bench)


def ran(bench: Bench) -> list[str]:
    return [call.step for call in bench.calls]


def test_agents_are_found_by_their_files_and_groups_by_name() -> None:
    assert agents.names()[:7] == ["reference", *agents.CONTROLS]
    assert [agent.name for agent in agents.select(["controls"])] == list(agents.CONTROLS)
    assert [agent.name for agent in agents.select(["all", "noop"])] == ["reference", *agents.CONTROLS]
    assert [agent.control for agent in agents.select(["all"])] == [False] + [True] * 6
    with pytest.raises(NotFound) as error:
        agents.select(["no-op"])
    assert "noop" in error.value.near


def test_the_reference_answers_with_the_last_commands_output(stage: Stage) -> None:
    bench = stage(make_scenario(ADD_PICO, "labd config show"))
    assert act("reference", bench) == "[targets.pico]\n"
    assert ran(bench) == [ADD_PICO, "labd config show"]


def test_lines_that_are_only_said_or_explain_are_not_run(stage: Stage) -> None:
    bench = stage(make_scenario(ADD_PICO, Step("labd target add other", stated=True), "an explanation\nof two lines"))
    act("reference", bench)
    assert ran(bench) == [ADD_PICO]


def test_what_a_line_saves_later_lines_may_say(stage: Stage) -> None:
    count = Step("labd count", save={"seq": r"count (\d+)", "all": "c.*"})
    bench = stage(make_scenario(count, "labd target add n{seq}", Step("echo {all}", shell=True)))
    assert act("reference", bench) == "count 1\n"
    assert bench.calls[1].ended.argv == ("labd", "target", "add", "n1")


def test_a_saved_value_cannot_add_words(stage: Stage) -> None:
    bench = stage(make_scenario(Step("printf 'a b; c'", save={"x": ".*"}), "labd target add {x}"))
    act("reference", bench)
    assert bench.calls[-1].ended.argv == ("labd", "target", "add", "a b; c")


@pytest.mark.parametrize(
    "line",
    [
        Step("labd count", save={"x": "nothing like that"}),
        Step("labd count", until="never", within_s=0.1),
        Step("nothere"),
    ],
)
def test_an_agent_that_cannot_go_on_gives_up_and_says_why(stage: Stage, line: Step) -> None:
    bench = stage(make_scenario(line, ADD_PICO))
    with pytest.raises(GaveUp, match=line.run):
        act("reference", bench)
    assert ran(bench) == [line.run]


def test_the_scenarios_time_is_the_agents_time(stage: Stage) -> None:
    bench = stage(make_scenario("labd sleep 0.2", "labd sleep 600", ADD_PICO, timeout_s=0.8))
    with pytest.raises(TimeIsUp, match="sleep 600"):
        act("reference", bench)
    assert ran(bench) == ["labd sleep 0.2", "labd sleep 600"]


def test_a_step_that_waits_for_ever_ends_with_the_scenarios_time(stage: Stage) -> None:
    bench = stage(make_scenario(Step("labd count", until="never", within_s=600), timeout_s=0.7))
    with pytest.raises(TimeIsUp):
        act("reference", bench)


def test_noop_runs_nothing_and_says_nothing(stage: Stage) -> None:
    bench = stage(make_scenario(ADD_PICO))
    assert (act("noop", bench), ran(bench)) == ("", [])


def test_printed_success_cannot_know_the_nonce(stage: Stage) -> None:
    told = Controls(printed_success="pico {home} {nonce} added")
    for scenario in (make_scenario(ADD_PICO, controls=told), make_scenario("labd target add {nonce}")):
        bench = stage(scenario)
        answer = act("printed-success", bench)
        assert "add" in answer
        assert bench.values["nonce"] not in answer
        assert ran(bench) == []


def test_wrong_resource_is_derived_by_changing_the_targets_name() -> None:
    reference = tuple(map(Step, [ADD_PICO, "labd serial add bmc -t pico --device /dev/pico", "labd config show"]))
    assert [step.run for step in wrong_resource.derived(reference)] == [
        "labd target add pico-other",
        "labd serial add bmc -t pico-other --device /dev/pico",
        "labd config show",
    ]
    assert [step.run for step in wrong_resource.derived(reference[1:2])] == [
        "labd target add pico-other",
        "labd serial add bmc -t pico-other --device /dev/pico",
    ]


def test_partial_leaves_out_the_last_line_with_an_effect(stage: Stage) -> None:
    bench = stage(make_scenario(ADD_PICO, "labd target add vim", "labd config show"))
    act("partial", bench)
    assert ran(bench) == [ADD_PICO]


def test_hand_edit_is_derived_by_writing_the_references_lab_without_a_record(stage: Stage) -> None:
    bench = stage(make_scenario(ADD_PICO, "labd target add b{nonce}", "labd config show"))
    answer = act("hand-edit", bench)
    assert bench.sandbox.lab.read_text() == answer == f"[targets.pico]\n[targets.b{bench.values['nonce']}]\n"
    assert ran(bench) == []
    assert bench.sandbox.argv_log.read_bytes() == b""


def test_the_scenarios_own_lines_go_before_derived_ones(stage: Stage) -> None:
    lines = {name: (Step(f"labd target add {name}"),) for name in ("wrong_resource", "partial", "hand_edit")}
    for name in lines:
        bench = stage(make_scenario(ADD_PICO, controls=Controls(**lines)))
        act(name.replace("_", "-"), bench)
        assert ran(bench) == [f"labd target add {name}"]
