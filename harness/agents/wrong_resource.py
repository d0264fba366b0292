"""Does the right thing to the wrong resource: another target, another interface. What passes doesn't look where."""

from dataclasses import replace

from harness.agents._script import act_out, targets_named
from harness.bench import Bench
from harness.scenario import Step

SUMMARY = "does the right thing to the wrong resource; must fail"
EXPECTED = ("fail",)


def act(bench: Bench) -> str:
    """The scenario's own lines; without any, the reference with every target's name changed."""
    return act_out(bench, bench.scenario.control("wrong-resource") or derived(bench.scenario.reference))


def derived(reference: tuple[Step, ...]) -> tuple[Step, ...]:
    """The reference's lines on targets that are not meant, which are added first where nothing else adds them."""
    meant = targets_named(reference)
    swap = {name: f"{name}-other" for name in meant}
    lines = [replace(step, run=_renamed(step.run, swap)) for step in reference]
    added = {swap[name] for name in meant if not any(f"target add {swap[name]}" in step.run for step in lines)}
    return (*(Step(f"labd target add {name}") for name in sorted(added)), *lines)


def _renamed(line: str, swap: dict[str, str]) -> str:
    return " ".join(swap.get(word, word) for word in line.split(" "))
