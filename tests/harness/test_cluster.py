"""Trials on a cluster: the verdicts of a local run, evidence that is whole or not there, and going on after any end.

Everything here is real: a scheduler and its workers are processes on loopback, and are killed when they have to die.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

from harness import agents, cli, cluster, cluster_worker, data, files, grading, parcel, pool, report, run, scenario
from harness.agents._program import Options
from harness.scenario import Loopback, Scenario, Step
from labd.errors import LabdError, NotFound, Unreachable, Usage
from tests.harness.cluster_preload import HASHES
from tests.harness.cluster_rig import ROOT, Rig, a_rig
from tests.harness.conftest import ADD_PICO, make_scenario, stand_in, wait_until
from tests.harness.tap import Tap

GOOD = make_scenario(ADD_PICO, "labd config show", identity="T1")
WORKERS, CALLERS = "of-the-worker", "of-the-caller-4711"
SLOW = make_scenario(ADD_PICO, "labd sleep 600", identity="T9", timeout_s=600)


@pytest.fixture(autouse=True)
def _code_that_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "hashes", lambda: HASHES)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stand_in(tmp_path_factory.mktemp("installed") / "bin")


@pytest.fixture
def here(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in, taken for the installed labd in this process."""
    monkeypatch.setenv("LABD_EVAL_SUBJECT", str(installed))
    return installed


@pytest.fixture(scope="module")
def shared(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A worker with two threads, one board and a key, which the tests that kill nobody share."""
    with a_rig(tmp_path_factory.mktemp("rig")) as rig:
        rig.workers("alpha", threads=2, boards="target:pico=1", LABD_EVAL_SUBJECT=str(installed), THE_KEY=WORKERS)
        yield rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A scheduler of the test's own, without workers."""
    with a_rig(tmp_path / "rig") as made:
        yield made


def connected(address: str) -> Any:
    return cluster.connected(address, lambda _: None)


def carry(held: run.Run, scenarios: list[Scenario], place: pool.Pool, stop: threading.Event | None = None,
          then: Callable[[run.Result], None] = lambda _: None) -> dict[str, str]:  # fmt: skip
    """Carry it out; the verdict, or the problem, of each trial that ended."""
    found: dict[str, str] = {}
    if not any(one.lane == "stated" for one in scenarios):
        (held.directory / "surface.json").touch()  # nobody is asked about it, and taking it from the program takes long

    def on_result(result: run.Result) -> None:
        found[result.order.identity] = result.verdict.verdict if result.verdict else result.problem
        then(result)

    run.carry_out(held, scenarios, jobs=place.jobs, stop=stop, on_result=on_result, pool=place)
    return found


def run_all(out: Path, scenarios: list[Scenario], names: list[str], place: pool.Pool, trials: int = 1) -> Path:
    with run.create(out, scenarios, agents.select(names), trials=trials) as held:
        place.prepare(scenarios, agents.select(names), Options())
        carry(held, scenarios, place)
    return held.directory


def cells(directory: Path) -> dict[tuple[str, str], list[str]]:
    """Scenario and agent → the verdicts of the trials that count."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in report.collect(directory)["trials"]:
        if row["replaced_by"] is None:
            found.setdefault((row["scenario"], row["agent"]), []).append(row["verdict"])
    return found


# -- verdicts ---------------------------------------------------------------------------------------------------------


def test_three_workers_one_killed_give_the_verdicts_of_a_local_run(rig: Rig, tmp_path: Path) -> None:
    """The installed labd, real scenarios, controls and all; one worker dies in the middle of a trial."""
    known = {one.id: one for one in scenario.load_all()}
    chosen = [known[name] for name in ("C2", "S4", "R1")]
    names = ["reference", "noop", "printed-success", "wrong-resource"]
    rig.workers("alpha", "beta", "gamma")
    killed: list[str] = []

    def kill_one(_: run.Result) -> None:
        busy = [] if killed else [name for name in ("alpha", "beta", "gamma") if rig.children(name)]
        if busy:
            killed.append(busy[0])
            rig.kill(busy[0])

    with connected(rig.address) as place, run.create(tmp_path, chosen, agents.select(names), seed=5) as held:
        assert place.jobs == 3
        place.prepare(chosen, agents.select(names), Options())
        carry(held, chosen, place, then=kill_one)
    there = report.write(held.directory)
    local = run_all(tmp_path, chosen, names, pool.Here())
    assert killed
    assert cells(held.directory) == cells(local)
    lost = [row for row in there["trials"] if row["cause"] == "worker_lost"]
    assert len(lost) == 1, there["causes"]
    assert (lost[0]["verdict"], lost[0]["valid"], lost[0]["expected"]) == ("harness_error", False, True)
    assert lost[0]["replaced_by"] == lost[0]["id"][:-1] + "2"
    assert there["as_expected"] is True
    told = [files.read_json(path) for path in held.trials.glob("*/trial.json")]
    assert {one["worker"]["name"] for one in told if "name" in one["worker"]} >= {"alpha", "beta", "gamma"} - set(
        killed
    )
    assert not list(held.trials.glob(".partial-*"))


def test_a_bundle_from_a_worker_is_the_one_that_a_local_trial_leaves(here: Path, shared: Rig, tmp_path: Path) -> None:
    with connected(shared.address) as place:
        there = run_all(tmp_path, [GOOD], ["all"], place)
    local = run_all(tmp_path, [GOOD], ["all"], pool.Here())
    assert cells(there) == cells(local)
    name = "trials/T1.cold.reference.1"
    first, second = (files.read_json(one / name / "trial.json") for one in (there, local))
    assert set(first) - set(second) == {"worker"}
    assert sorted(first["files"]) == sorted(second["files"])
    assert first["worker"]["name"] == "alpha"
    assert grading.damage(there / name) == ""
    log = [json.loads(line) for line in (there / "log.jsonl").read_text().splitlines()]
    assert log[0]["pool"] == f"cluster {shared.address}"
    assert sum(line["event"] == "sealed" for line in log) == 6
    assert report.collect(there)["as_expected"] is True


# -- ends -------------------------------------------------------------------------------------------------------------


def test_a_trial_whose_worker_died_is_kept_as_lost_and_never_run_again_under_its_number(
    here: Path, rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else is there: the run ends, says so, and is gone on with on this machine."""
    monkeypatch.setattr(cluster, "PATIENCE_S", 1.0)
    rig.workers("alpha", LABD_EVAL_SUBJECT=str(here))
    killer = threading.Thread(target=lambda: (wait_until("a trial", lambda: rig.children("alpha")), rig.kill("alpha")))
    slow = make_scenario(ADD_PICO, "labd sleep 2", identity="T8")
    with connected(rig.address) as place, run.create(tmp_path, [slow], agents.select(["reference"])) as held:
        killer.start()
        with pytest.raises(pool.PoolLost, match="no worker is left") as told:
            carry(held, [slow], place)
        killer.join()
    assert told.value.exit_code == 7
    assert f"--resume {held.directory}" in str(told.value.hint)
    first = files.read_json(held.trials / "T8.cold.reference.1" / "trial.json")
    assert (first["ended_by"], "tcp://127.0.0.1:" in first["detail"]) == ("worker_lost", True)
    with run.resume(held.directory, [slow]) as again:
        assert carry(again, [slow], pool.Here()) == {"T8.cold.reference.2": "pass"}
    assert report.collect(held.directory)["as_expected"] is True


def test_a_worker_in_place_of_a_dead_one_takes_the_next_number(here: Path, rig: Rig, tmp_path: Path) -> None:
    """Whoever comes is given the task of the dead one by the scheduler, and does not begin it."""
    rig.workers("alpha", LABD_EVAL_SUBJECT=str(here))
    slow = make_scenario(ADD_PICO, "labd sleep 1", identity="T8")

    def replace() -> None:
        wait_until("a trial", lambda: rig.children("alpha"))
        rig.kill("alpha")
        rig.workers("beta", LABD_EVAL_SUBJECT=str(here))

    replacing = threading.Thread(target=replace)
    with connected(rig.address) as place, run.create(tmp_path, [slow], agents.select(["reference"])) as held:
        replacing.start()
        found = carry(held, [slow], place)
        replacing.join()
    assert found == {"T8.cold.reference.1": "harness_error", "T8.cold.reference.2": "pass"}
    assert b"Traceback" not in rig.log("scheduler")


def test_a_scheduler_that_dies_ends_the_run_and_the_next_one_goes_on(here: Path, rig: Rig, tmp_path: Path) -> None:
    rig.workers("alpha", "beta", LABD_EVAL_SUBJECT=str(here))
    slow = make_scenario("labd sleep 3", ADD_PICO, identity="T8")
    gone = pytest.raises(pool.PoolLost, match=r"scheduler at .* is gone; what is finished is kept")
    made = run.create(tmp_path, [GOOD, slow], agents.select(["reference"]))
    with connected(rig.address) as place, made as held, gone:
        carry(held, [GOOD, slow], place, then=lambda _: rig.kill("scheduler"))
    assert [path.name for path in held.trials.iterdir()] == ["T1.cold.reference.1"]
    before = (held.trials / "T1.cold.reference.1" / "trial.json").read_bytes()
    with a_rig(tmp_path / "another") as other:
        other.workers("gamma", LABD_EVAL_SUBJECT=str(here))
        with connected(other.address) as place, run.resume(held.directory, [GOOD, slow]) as again:
            assert carry(again, [GOOD, slow], place) == {"T8.cold.reference.1": "pass"}
    assert (held.trials / "T1.cold.reference.1" / "trial.json").read_bytes() == before
    wait_until("the workers' end", lambda: all(rig.processes[name].poll() is not None for name in ("alpha", "beta")))


def test_a_run_that_is_told_to_stop_keeps_what_is_finished_and_frees_the_workers(
    here: Path, shared: Rig, tmp_path: Path
) -> None:
    stop = threading.Event()
    with connected(shared.address) as place, run.create(tmp_path, [GOOD, SLOW], agents.select(["reference"])) as held:
        found = carry(held, [GOOD, SLOW], place, stop=stop, then=lambda _: stop.set())
        assert [path.name for path in held.trials.iterdir()] == ["T1.cold.reference.1"]
        assert found["T9.cold.reference.1"] == "interrupted"
        wait_until("the end of the trial on the worker", lambda: not shared.children("alpha"))


def test_when_the_program_that_asked_is_killed_the_worker_ends_its_trial(
    here: Path, shared: Rig, tmp_path: Path
) -> None:
    script = (
        "from tests.harness.test_cluster import *\nimport sys\ndata.hashes = lambda: HASHES\n"
        "held = run.create(Path(sys.argv[2]), [SLOW], agents.select(['reference']))\n"
        "with connected(sys.argv[1]) as place:\n    carry(held, [SLOW], place)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, shared.address, str(tmp_path)], cwd=ROOT)
    wait_until("the trial on the worker", lambda: shared.children("alpha"))
    child.send_signal(signal.SIGKILL)
    child.wait()
    wait_until("its end", lambda: not shared.children("alpha"))


# -- real boards ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["cluster", "here"])
def test_a_real_board_is_never_used_by_two_trials_at_once(here: Path, shared: Rig, tmp_path: Path, where: str) -> None:
    lines = ("labd sleep 0.5", ADD_PICO)
    some = [make_scenario(*lines, identity=f"T{n}", boards=("pico",)) for n in (1, 2, 3)]
    free = make_scenario("labd sleep 1", ADD_PICO, identity="T4")
    with connected(shared.address) as place:
        directory = run_all(tmp_path, [*some, free], ["reference"], place if where == "cluster" else pool.Here())
    told = {path.parent.name[:2]: files.read_json(path) for path in directory.glob("trials/*/trial.json")}
    spans = sorted((told[one.id]["started"], told[one.id]["ended"]) for one in some)
    assert all(first[1] <= second[0] for first, second in pairwise(spans)), spans
    assert told["T4"]["started"] < spans[-1][0], "a trial without a board waited behind those with one"
    assert set(cells(directory)["T4", "reference"]) == {"pass"}


def test_a_board_of_the_real_world_is_driven_by_one_trial_after_another(rig: Rig, tmp_path: Path) -> None:
    """The installed labd, and a tty that is there before the trials and after them; two threads could have it."""
    link, seed = tmp_path / "ttyUSB0", tmp_path / "lab.toml"
    seed.write_text(f'[targets.dut]\n[[targets.dut.serial]]\nname = "console"\ndevice = "{link}"\n')
    dut = ROOT / "loopback" / "duts" / "loop.toml"
    words = [sys.executable, "-m", "loopback", str(dut), "--record", str(tmp_path / "dut.jsonl"), "--link", str(link)]
    player = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    heard = Step("labd serial log dut", until="marco {nonce}")
    real = make_scenario(
        "labd serial watch dut", "labd serial send dut 'marco {nonce}'", heard, tier="t0", seed=str(seed),
        boards=("pico",), timeout_s=60, grader={"type": "outcome", "answer": [{"contains": "marco {nonce}"}]},
        loopback=Loopback("dut", "console", {}, {"journal": ["marco {nonce}"], "free_sends": True}, virtual=True),
    )  # fmt: skip
    try:
        wait_until("the board", link.exists)
        first = os.open(link, os.O_RDWR | os.O_NOCTTY)  # it has power from its port's first opening, a moment later
        wait_until("its power", lambda: '"on": true' in (tmp_path / "dut.jsonl").read_text())
        os.close(first)
        rig.workers("alpha", threads=2, boards="target:pico=1")
        with connected(rig.address) as place:
            assert (place.jobs, place.boards("pico")) == (2, 1)
            directory = run_all(tmp_path, [real], ["reference"], place, trials=3)
    finally:
        assert player.stdin is not None
        player.stdin.close()
        player.wait(20)
    assert cells(directory) == {("T1", "reference"): ["pass"] * 3}, report.collect(directory)["trials"]
    told = [files.read_json(path) for path in directory.glob("trials/*/trial.json")]
    spans = sorted((one["started"], one["ended"]) for one in told)
    assert all(first[1] <= second[0] for first, second in pairwise(spans)), spans


def test_a_board_that_no_worker_has_is_named_and_not_waited_for(here: Path, shared: Rig, tmp_path: Path) -> None:
    wants = make_scenario(ADD_PICO, boards=("piko",))
    with connected(shared.address) as place, pytest.raises(NotFound, match="has the board piko") as told:
        place.prepare([wants], agents.select(["reference"]), Options())
    assert told.value.near == ["pico"]
    assert "alpha: target:pico" in told.value.message
    assert '--resources "target:piko=1"' in str(told.value.hint)


# -- secrets ----------------------------------------------------------------------------------------------------------


def test_values_of_variables_are_never_sent_and_workers_have_their_own(
    here: Path, shared: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", CALLERS)
    word = "command:sh -c 'labd target add pico; printf %s \"$THE_KEY\" | tr a-z A-Z'"
    options = Options(env=("THE_KEY",))
    made = run.create(tmp_path, [GOOD], agents.select([word]), options=options)
    with Tap(shared.address) as tap, connected(tap.address) as place, made as held:
        place.prepare([GOOD], agents.select([word]), options)
        carry(held, [GOOD], place)
    answer = next(held.trials.glob("*/answer.txt")).read_text()
    assert WORKERS.upper() in answer, answer
    assert b"T1.cold" in tap.seen, "the tap saw nothing"
    assert CALLERS.encode() not in tap.seen


def test_a_variable_that_a_worker_lacks_is_named_before_anything_runs(
    here: Path, shared: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_SUCH_KEY", "of-the-caller")
    with connected(shared.address) as place, pytest.raises(LabdError, match=r"alpha .* has no variable NO_SUCH_KEY"):
        place.prepare([GOOD], agents.select(["command:true"]), Options(env=("NO_SUCH_KEY",)))


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_without_the_extra_it_is_told_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(LabdError, match="not installed") as told, connected("127.0.0.1:8786"):
        pass
    assert told.value.hint == "pip install 'labd[cluster]'"


@pytest.mark.parametrize("address", ["", "here", "127.0.0.1", "http://127.0.0.1:1", "127.0.0.1:x", "a b:1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(Usage, match="no address"), connected(address):
        pass


def test_a_scheduler_that_is_not_there_is_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 1.0)
    with pytest.raises(Unreachable, match="no scheduler answers at") as told, connected("127.0.0.1:9"):
        pass
    assert told.value.hint == "dask scheduler --host 127.0.0.1 --port 9"


def test_a_scheduler_without_workers_is_told(rig: Rig) -> None:
    with pytest.raises(Unreachable, match="has no workers") as told, connected(rig.address):
        pass
    assert told.value.hint == f"dask worker {rig.address}"
    rig.workers("old", OTHER_DASK="1")
    differs = pytest.raises(LabdError, match=r"worker old .* has distributed 2020\.1\.0, this machine")
    with differs, connected(rig.address):
        pass


def test_a_worker_that_hangs_is_named_and_not_waited_for(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ASK_S", 6.0)
    rig.workers("alpha", "stuck")
    rig.processes["stuck"].send_signal(signal.SIGSTOP)
    with (
        pytest.raises(Unreachable, match=r"no answer within 6 s from the worker stuck \(tcp:\S+\)$"),
        connected(rig.address),
    ):
        pass


def test_a_worker_with_other_code_is_named_and_no_run_is_begun(
    here: Path, rig: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rig.workers("other", LABD_EVAL_SUBJECT=str(here), OTHER_CODE="1")
    words = ["run", "-q", "--scenario", "C2", "--cluster", rig.address, "--out", str(tmp_path / "runs")]
    assert cli.main(words) == 1
    told = capsys.readouterr().err
    assert "worker other" in told
    assert "the code of labd (ffffffffffff, 000000000000)" in told
    assert not (tmp_path / "runs").exists()


MINE = {"labd": "0.1.0", "git": "a" * 64, "claude": "2.1", "the script s.toml": "b" * 64}


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (
            cluster_worker.Told(MINE | {"git": "c" * 64}),
            "the worker x and this machine differ in git (cccccccccccc, aaaa",
        ),
        (cluster_worker.Told(MINE | {"claude": "2.2"}), "differ in claude (2.2, 2.1)"),
        (cluster_worker.Told(MINE | {"claude": None}), "the worker x has no claude"),
        (cluster_worker.Told(MINE | {"the script s.toml": None}), "the worker x has not the script s.toml"),
        (cluster_worker.Told({}), "the worker x has no labd"),
        (cluster_worker.Told(MINE, ("KEY",)), "the worker x has no variable KEY; its value is not sent"),
        (ModuleNotFoundError("No module named 'harness'"), "the worker x has no labd-eval"),
        (OSError("disk"), "the worker x does not say what it is: OSError: disk"),
    ],
)
def test_what_a_worker_has_otherwise_is_named(told: Any, says: str) -> None:
    with pytest.raises(LabdError) as raised:
        cluster.must_fit("the worker x", cluster_worker.Told(MINE), told)
    assert says in raised.value.message
    assert raised.value.hint


def test_a_worker_without_labd_eval_is_named(here: Path, rig: Rig, tmp_path: Path) -> None:
    bare = tmp_path / "bare.py"
    bare.write_text('import sys\n\nsys.modules["harness"] = None\n')
    rig.workers("bare", preload=str(bare))
    with connected(rig.address) as place, pytest.raises(LabdError, match=r"worker bare \(tcp:.* has no labd-eval"):
        place.prepare([GOOD], agents.select(["reference"]), Options())


def test_a_worker_with_the_same_fits_and_one_that_lacks_what_is_not_here_either() -> None:
    cluster.must_fit("the worker x", cluster_worker.Told(MINE), cluster_worker.Told(dict(MINE)))
    nowhere = cluster_worker.Told(MINE | {"claude": None})
    cluster.must_fit("the worker x", nowhere, nowhere)


def test_a_worker_that_comes_later_with_other_code_runs_nothing(here: Path, rig: Rig, tmp_path: Path) -> None:
    rig.workers("alpha", LABD_EVAL_SUBJECT=str(here))
    with connected(rig.address) as place:
        place.prepare([GOOD], agents.select(["reference"]), Options())
        rig.workers("late", LABD_EVAL_SUBJECT=str(here), OTHER_CODE="1")
        rig.kill("alpha")
        unfit = pytest.raises(pool.PoolLost, match=r"late .*the code of labd is not what this run measures")
        with run.create(tmp_path, [GOOD], agents.select(["reference"])) as held, unfit:
            carry(held, [GOOD], place)
    assert list(held.trials.iterdir()) == []


# -- parcels ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def sent(here: Path, tmp_path: Path) -> parcel.Parcel:
    return parcel.pack(run_all(tmp_path / "from", [GOOD], ["noop"], pool.Here()) / "trials" / "T1.cold.noop.1")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda found: found.update({"answer.txt": b"done"}), "answer.txt"),
        (lambda found: found.pop("answer.txt"), "answer.txt"),
        (lambda found: found.update({"more.txt": b""}), "more.txt"),
        (lambda found: found.update({"../../evil": b""}), "no name in a bundle"),
        (lambda found: found.update({"/tmp/evil": b""}), "no name in a bundle"),
        (lambda found: found.update({"trial.json": found["trial.json"] + b" "}), "trial.json"),
        (lambda found: found.pop("trial.json"), "trial.json"),
    ],
)
def test_a_parcel_that_was_changed_on_its_way_leaves_nothing(
    sent: parcel.Parcel, tmp_path: Path, change: Callable[[dict[str, bytes]], Any], says: str
) -> None:
    (tmp_path / "to").mkdir()
    found = {name: raw for name, raw in sent.files.items() if not name.startswith("grades/")}
    change(found)
    sealed: list[str] = []
    with pytest.raises(parcel.Damaged, match=says):
        parcel.land(
            parcel.Parcel(found, sent.sha256), tmp_path / "to", "T1.cold.noop.1", lambda *one: sealed.extend(one)
        )
    assert (os.listdir(tmp_path / "to"), sealed) == ([], [])


def test_a_parcel_of_another_trial_is_not_taken(sent: parcel.Parcel, tmp_path: Path) -> None:
    found = {name: raw for name, raw in sent.files.items() if not name.startswith("grades/")}
    with pytest.raises(parcel.Damaged, match="another trial"):
        parcel.land(parcel.Parcel(found, sent.sha256), tmp_path, "T1.cold.noop.2", lambda *_: None)
