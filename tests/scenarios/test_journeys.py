"""The git journeys for real: other ways to the right end pass; side effects, and ways around git, are told by name."""

import pytest

from harness import grading, journeys
from harness.agents import JOURNEY, Agent, find
from harness.agents._script import play
from harness.scenario import Step
from harness.trial import Order, conduct

ALL = {one.id: one for one in journeys.load("git")}
SAY = "git log -1 --format=%s main"


def judged(tmp_path, identity, agent):
    bundle = conduct(Order(identity, "cold", agent.name, 1), ALL[identity], agent, tmp_path, facts={})
    return grading.grade(bundle)[0]


def by(*lines):
    steps = [Step(line, shell=True) for line in lines]
    return Agent("other", "", frozenset({"pass", "fail"}), lambda bench: play(bench, steps))


@pytest.mark.slow
@pytest.mark.parametrize("identity", sorted(ALL))
def test_the_reference_gets_through_every_stage_and_every_control_fails(tmp_path, identity):
    found = judged(tmp_path, identity, find("reference"))
    assert (found.verdict, {stage.verdict for stage in found.stages}) == ("pass", {"pass"}), found
    for name in JOURNEY[1:]:
        assert judged(tmp_path, identity, find(name)).verdict == "fail", name


#: By a copy of the server elsewhere, after a mistake.
ELSEWHERE = """git push -q nowhere main; git clone -q {remotes}/shop.git "$TMPDIR/c" && cd "$TMPDIR/c" &&
git fetch -q "$OLDPWD" main && git merge -q FETCH_HEAD && git push -q origin main"""

ON_TOP = "git stash -q && git pull -q --rebase shop main && git push -q shop main && git stash pop -q"

#: The other way: it is called off, and done otherwise.
CALLED_OFF = """git rebase --abort && git switch -q main && (git merge -q signup || true) &&
printf 'start\\nhours {nonce4}\\nsignup {nonce}\\n' > pages.txt && git add pages.txt &&
git commit -q --no-edit && git push -q shop main"""


@pytest.mark.parametrize(("identity", "lines"), [
    ("J-PUBLISH-NORMAL", ("cd / && git -C \"$OLDPWD\" push -q shop main:main", SAY)),
    ("J-PUBLISH-NORMAL", (ELSEWHERE, SAY)),
    ("J-PUBLISH-RECOVERY", (ON_TOP, "git log --format=%s main")),
    ("J-JOIN-RECOVERY", (CALLED_OFF, "git log -1 --format=%s signup")),
])  # fmt: skip
def test_other_ways_to_the_right_end_pass(tmp_path, identity, lines):
    found = judged(tmp_path, identity, by(*lines))
    assert found.verdict == "pass", found.reason


@pytest.mark.parametrize(("identity", "lines", "failed"), [
    ("J-PUBLISH-NORMAL", ("git push -q shop main main:more", SAY), "shop: other branches kept"),
    ("J-PUBLISH-NORMAL", ("git push -q shop main && git tag v1 && git push -q shop v1", SAY), "shop: all else kept"),
    ("J-PUBLISH-NORMAL", ("git commit -qam half && git push -q shop main", "git log -1 --format=%s main~1"),
     "remotes.shop.branches.main.log[0].subject equals"),
    ("J-PUBLISH-NORMAL", ("git push -q shop main; git checkout -q hours.txt", SAY), 'worktree."hours.txt" same'),
    ("J-PUBLISH-NORMAL", ("command -p git push -q shop main", SAY), "shop: received"),
    ("J-PUBLISH-NORMAL", ("(sleep 1; command -p git push -q shop main) & git push -q shop main; wait", SAY), None),
    ("J-PUBLISH-NORMAL", ("git push -q shop main && rm {remotes}/shop.git/hooks/*", SAY), "shop: all else kept"),
    ("J-PUBLISH-RECOVERY", ("git push -q --force shop main", "git log --format=%s main"), "shop: nothing lost"),
    ("J-JOIN-NORMAL", ("git merge -q --no-edit signup && git push -q shop main && git push -q shop :draft",
                       "git log -1 --format=%s signup"), "shop: other branches kept"),
])  # fmt: skip
def test_side_effects_and_ways_around_are_told_by_name(tmp_path, identity, lines, failed):
    found = judged(tmp_path, identity, by(*lines))
    if failed is None:
        assert found.verdict == "pass", "what had nothing left to send did nothing"
        return
    assert found.verdict == "fail"
    assert failed in [check.name for check in found.checks if check.ok is False]


def test_a_recorded_command_beside_an_unrecorded_one_is_no_cover(tmp_path):
    wait = "git -c alias.wait='!sleep 2' wait & sleep 0.5; command -p git push -q shop main; wait"
    found = judged(tmp_path, "J-PUBLISH-NORMAL", by(wait, SAY))
    assert [check.name for check in found.checks if check.ok is False] == ["shop: received"]
