"""Conditions: what an agent's program is told beforehand, by its product's own ways; and whether that held."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import agents, conditions, files, grading, sandbox
from harness.agents._program import Options, Ways
from harness.conditions import Guide
from harness.sandbox import Sandbox, SandboxError
from harness.transcripts import Transcript
from harness.trial import Order, conduct
from tests.harness.conftest import ADD_PICO, make_scenario

LABD = "---\nname: labd\ndescription: Work with boards.\n---\n\n# Boards\n\nAsk first.\n"
KVM = "---\nname: kvm\ndescription: Screens.\n---\n\n# Screens\n\nLook.\n"
GUIDES = (
    Guide("labd", "Work with boards.", LABD, "labd skill labd"),
    Guide("kvm", "Screens.", KVM, "labd skill kvm"),
)
GOAL = 'Enter the board "pico" and say so.'
FOLDER = Ways(skills=".claude/skills", memory="CLAUDE.md", system="--append-system-prompt")


@pytest.fixture
def place(subject: Path) -> Iterator[Sandbox]:
    made = sandbox.create(make_scenario(ADD_PICO), str(subject))
    yield made
    made.close()


def checks(made: conditions.Realised, ways: Ways = FOLDER, told: Transcript | None = None,
           requests: bytes | None = None) -> dict[str, bool | None]:  # fmt: skip
    found = conditions.record(made, ways, told, requests, GOAL, GUIDES)
    return {one["name"]: one["ok"] for one in found["checks"]}


def request(*texts: str) -> bytes:
    return json.dumps({"body": {"system": list(texts), "messages": [GOAL]}}).encode() + b"\n"


def test_cold_places_nothing(place: Sandbox) -> None:
    made = conditions.realise(FOLDER, place, "cold", GUIDES)
    assert list(place.work.iterdir()) == []
    assert (made.placed, made.before, made.extra) == ((), "", ())


def test_warm_gives_a_skill_folder_whole_guides_of_which_a_product_lists_the_descriptions(place: Sandbox) -> None:
    made = conditions.realise(FOLDER, place, "warm", GUIDES)
    text = (place.work / ".claude/skills/labd/SKILL.md").read_text()
    assert text.startswith(
        f"---\nname: labd\ndescription: Work with boards. (revision {made.canaries['description']})\n---"
    )
    assert text.endswith(f"# Boards\n\nAsk first.\n\nRevision of this guide: {made.canaries['guide']}\n")
    assert (place.work / ".claude/skills/kvm/SKILL.md").is_file()
    assert not (place.work / "CLAUDE.md").exists()


@pytest.mark.parametrize("ways", [Ways(memory="AGENTS.md"), Ways()])
def test_warm_without_a_skill_folder_says_what_guides_there_are_and_not_what_they_say(
    place: Sandbox, ways: Ways
) -> None:
    made = conditions.realise(ways, place, "warm", GUIDES)
    text = (place.work / "AGENTS.md").read_text() if ways.memory else made.before
    assert "labd: Work with boards." in text
    assert "`labd skill labd`" in text
    assert made.canaries["description"] in text
    assert made.canaries["guide"] not in text
    assert "Ask first." not in text


@pytest.mark.parametrize("ways", [FOLDER, Ways(memory="GEMINI.md"), Ways()])
def test_preloaded_gives_the_guide_whole_by_the_strongest_way_there_is(place: Sandbox, ways: Ways) -> None:
    made = conditions.realise(ways, place, "preloaded", GUIDES)
    options, said = conditions.told(Options(extra=("-x",)), GOAL, made)
    if ways.system:
        assert options.extra[0] == "--append-system-prompt"
        text, said_before = options.extra[1], ""
    else:
        text = (place.work / "GEMINI.md").read_text() if ways.memory else said
        said_before = made.before
    assert options.extra[-1] == "-x"
    assert "Ask first." in text
    assert made.canaries["guide"] in text
    assert (said == GOAL) is not bool(said_before)
    assert said.endswith(GOAL)


def test_every_trial_has_marks_of_its_own(place: Sandbox) -> None:
    one, two = (conditions.realise(Ways(), place, "warm", GUIDES).canaries for _ in range(2))
    assert set(one.values()).isdisjoint(two.values())


def test_a_first_request_tells_whether_the_condition_held(place: Sandbox) -> None:
    cold = conditions.realise(FOLDER, place, "cold", GUIDES)
    assert checks(cold, requests=request("You are an agent."))["reached the model"] is True
    assert checks(cold, requests=request("# Boards\n\nAsk first."))["reached the model"] is False
    assert checks(cold, requests=request("x") + request("# Boards\n\nAsk first."))["reached the model"] is True
    assert checks(cold)["reached the model"] is None
    warm = conditions.realise(FOLDER, place, "warm", GUIDES)
    described, guide = warm.canaries["description"], warm.canaries["guide"]
    kept = {"description reached the model": True, "guide reached the model": True}
    assert checks(warm, requests=request("a title, please") + request(described)).items() >= kept.items()
    assert checks(warm, requests=request(described, guide))["guide reached the model"] is False
    assert checks(warm, requests=request("nothing"))["description reached the model"] is False
    full = conditions.realise(FOLDER, place, "preloaded", GUIDES)
    both = request(full.canaries["description"], full.canaries["guide"])
    assert checks(full, requests=both).items() >= kept.items()
    assert checks(full, requests=request(full.canaries["description"]))["guide reached the model"] is False


def test_what_the_product_lists_first_must_be_what_the_condition_says(place: Sandbox) -> None:
    cold, warm = (conditions.realise(FOLDER, place, name, GUIDES) for name in ("cold", "warm"))
    for listed, at_cold, at_warm in ((["labd", "kvm"], False, True), (["other"], True, False), (None, None, None)):
        told = Transcript("claude", "stream")
        told.first.skills = listed
        assert checks(cold, told=told)["first record"] is at_cold
        assert checks(warm, told=told)["first record"] is at_warm


def test_instructions_that_nobody_placed_stop_the_trial(place: Sandbox) -> None:
    made = conditions.realise(Ways(memory="AGENTS.md"), place, "warm", GUIDES)
    settings = place.home / ".gemini" / "settings.json"
    (place.home / ".gemini").mkdir()
    settings.write_text("{}")
    conditions.before_start(made, place, [settings])
    (place.home / "CLAUDE.md").write_text("use the bench")
    with pytest.raises(SandboxError, match=r"CLAUDE\.md"):
        conditions.before_start(made, place, [settings])


def test_the_texts_are_those_of_the_installed_program() -> None:
    conditions.live_guides.cache_clear()
    found = {guide.name: guide for guide in conditions.live_guides()}
    assert "# Driving a hardware bench" in found["labd"].body
    assert found["labd"].description in found["labd"].text.split("---")[1]


def test_a_subject_without_guides_is_examined_cold() -> None:
    assert conditions.guides_for("cold", "git") == ()
    with pytest.raises(SandboxError, match="git has no guides"):
        conditions.guides_for("preloaded", "git")


def test_a_trial_in_which_the_condition_did_not_hold_is_none(
    subject: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions, "live_guides", lambda _: GUIDES)
    agent = agents.find("command:" + shlex.join(["/bin/sh", "-c", "cat; labd target add pico >&2"]))

    def played(number: int) -> tuple[str, Path]:
        bundle = conduct(Order("T1", "warm", agent.name, number), make_scenario(ADD_PICO), agent, tmp_path, facts={},
                         options=Options(condition="warm"))  # fmt: skip
        assert bundle is not None
        return grading.grade(bundle)[0].verdict, bundle

    verdict, bundle = played(1)
    assert verdict == "pass"
    told = files.read_json(bundle / "condition.json")
    assert told["condition"] == "warm"
    assert told["canaries"]["description"] in (bundle / "answer.txt").read_text()
    monkeypatch.setattr(conditions, "_reached", lambda *_: [("reached the model", False, "it was in no request")])
    verdict, bundle = played(2)
    assert verdict == "harness_error"
    assert files.read_json(bundle / "trial.json")["ended_by"] == "condition_broken"
    assert "no request" in grading.grade(bundle)[0].reason
