"""The history of a target in one order, and handing a part of it on: real daemon, real board, real files."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from labd import moments, paths
from labd.chronicle import Chronicle
from labd.errors import LabdError, Usage
from labd.export import handed_on
from labd.journal_read import Event, Line
from labd.past_calls import past_calls
from labd.recordings import Recordings
from labd.timeline import Entry
from labd.timeline_text import text_of
from tests.conftest import LAB_OF_ONE, BenchInAFolder, a_bench, until

LAB = LAB_OF_ONE.format(dut="linux-login") + '[targets.dut.power]\ncycle_cmd = "plug cycle --password hunter2"\n'


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchInAFolder]:
    """A session on a board: a login that fails, a claim, a refusal, an edit of the lab, recorded from the start on."""
    with a_bench(tmp_path_factory.mktemp("session")) as labd:
        labd.lab.write_text(LAB)
        labd("serial", "watch")
        labd("record", "start", "--name", "demo", "--why", "a login")
        labd("serial", "expect", "login: $", "--from-offset", "0", "--timeout", "20")
        labd("serial", "send", "alice", "--expect", "Password: ")
        labd("serial", "send", "r3fused", check=3, env={"LABD_POLICY": "observe"})
        labd("serial", "send", "s3same", "--expect", "incorrect")
        labd("claim", "dut", "--for", "5m")
        labd("serial", "send", "x", check=3, env={"LABD_POLICY": "observe"})
        labd("power", "set", "-t", "dut", "--timeout-s", "5")
        told = Chronicle(str(labd.root / "state" / "labd"), lambda text: pytest.fail(text))
        told.tell(str(labd.lab), "dut", "power", "hook", action="cycle", command="plug cycle --password ***", code=0)
        told.tell(str(labd.lab), "dut", "video", "shot", hash="00ff", picture="00ff.png")
        told.keep_picture(str(labd.lab), "dut", "00ff.png", b"\x89PNG picture")
        told.close()
        labd("record", "stop")
        yield labd


def entries(labd: BenchInAFolder, *words: str) -> list[dict[str, Any]]:
    done = labd("timeline", *words, "--json")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_all_channels_stand_in_one_order(session: BenchInAFolder) -> None:
    found = entries(session, "--tail", "0")
    times = [entry["ts_ms"] for entry in found if "seq" not in entry]
    assert times == sorted(times)
    channels = {entry["channel"] for entry in found}
    assert channels == {"serial", "tx", "port", "power", "video", "claim", "refusal", "config"}
    order = [entry["event"] for entry in found if entry["channel"] not in ("serial", "port")]
    assert order == ["tx", "serial send", "tx", "claim", "serial send", "power set", "hook", "shot"]


def test_what_was_sent_stands_behind_the_line_it_answered(session: BenchInAFolder) -> None:
    found = entries(session, "--channels", "serial,tx")
    at = next(number for number, entry in enumerate(found) if entry.get("data") == "s3same\r")
    assert found[at - 1]["text"].startswith("Password:")


def test_a_refusal_says_why(session: BenchInAFolder) -> None:
    found = entries(session, "--channels", "refusal")[-1]
    assert found["command"] == "labd serial send x"
    assert "policy level" in found["why"]


def test_around_a_line_is_what_happened_near_it(session: BenchInAFolder) -> None:
    lines = entries(session, "--channels", "serial", "--tail", "0")
    middle = lines[len(lines) // 2]
    found = entries(session, "--around", str(middle["seq"]), "--window", "0.05")
    assert middle["seq"] in {entry.get("seq") for entry in found}
    assert all(abs(entry["ts_ms"] - middle["ts_ms"]) <= 51 for entry in found)
    assert len(found) < len(lines)


def test_since_a_time_gives_the_same_as_looking_through_all(session: BenchInAFolder) -> None:
    lines = entries(session, "--channels", "serial", "--tail", "0")
    start = lines[40]
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(start["ts_ms"] / 1000)) + f".{start['ts_ms'] % 1000:03d}Z"
    found = entries(session, "--channels", "serial", "--since", stamp)
    assert [entry["seq"] for entry in found] == [e["seq"] for e in lines if e["ts_ms"] >= start["ts_ms"]]


def test_the_default_says_how_much_it_left_out(session: BenchInAFolder) -> None:
    done = session("timeline", "--tail", "3")
    assert len(done.stdout.splitlines()) == 3
    assert b"--tail 0 for all" not in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--channels", "powr"), 2, "power"),
        (("--channels", ","), 2, "names no channel"),
        (("--since", "yesterdayish"), 2, "how long ago"),
        (("--since", "99999"), 4, "no line #99999"),
        (("--since", "10s", "--until", "20s"), 2, "before"),
        (("--around", "3", "--since", "1m"), 2, "--window"),
        (("-i", "bmc"), 4, "bmc"),
    ],
)
def test_bad_words_are_told(session: BenchInAFolder, words: tuple[str, ...], code: int, said: str) -> None:
    assert said in session("timeline", *words, check=code).stderr.decode()


def test_a_huge_tail_is_all(session: BenchInAFolder) -> None:
    assert entries(session, "--tail", "9" * 20) == entries(session, "--tail", "0")


def test_nothing_at_all_says_why(labd: BenchInAFolder) -> None:
    labd.lab.write_text(LAB)
    done = labd("timeline")
    assert done.stdout == b""
    assert b"nothing has happened to dut yet; labd serial watch dut" in done.stderr
    assert b"labd timeline dut" in labd("timeline", "--since", "1m").stderr


# -- handing it on ---------------------------------------------------------------------------------------------------


def test_a_bundle_holds_the_session_and_no_secret(session: BenchInAFolder) -> None:
    session("record", "export", "--name", "demo", "-o", "out.zip")
    with zipfile.ZipFile(session.root / "out.zip") as bundle:
        files = {name: bundle.read(name) for name in bundle.namelist()}
    manifest = json.loads(files["manifest.json"])
    assert manifest["schema"] == "labd-recording/1"
    assert manifest["why"] == "a login"
    assert set(manifest["files"]) == set(files) - {"manifest.json"}
    assert files["pictures/00ff.png"] == b"\x89PNG picture"
    everything = b"".join(files.values())
    assert b"hunter2" not in everything
    assert b"s3same" not in everything and b"r3fused" not in everything
    assert b'"***"' in files["timeline.jsonl"]
    assert b"consoles/console.raw" not in everything


def test_the_exact_bytes_only_when_asked_and_told(session: BenchInAFolder) -> None:
    done = session("record", "export", "--raw", "-o", "raw.zip")
    assert b"whatever secret" in done.stderr
    with zipfile.ZipFile(session.root / "raw.zip") as bundle:
        assert b"Password: " in bundle.read("consoles/console.raw")


def test_a_terminal_recording_is_asciicast_2(session: BenchInAFolder) -> None:
    header, *events = session.out("record", "export", "--format", "asciicast").splitlines()
    assert json.loads(header)["version"] == 2
    rows = [json.loads(row) for row in events]
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert {row[1] for row in rows} >= {"o", "i", "m"}
    assert any(row[1] == "o" and row[2].startswith("Password:") for row in rows)


def test_a_span_needs_no_recording(session: BenchInAFolder) -> None:
    rows = session.out("record", "export", "--since", "1h", "--channels", "claim", "--format", "jsonl").splitlines()
    assert [json.loads(row)["channel"] for row in rows] == ["claim"]


def test_an_export_that_cannot_be_written_leaves_what_was_there(session: BenchInAFolder) -> None:
    folder = session.root / "there.txt"
    folder.mkdir()
    assert b"is a directory" in session("record", "export", "-o", "there.txt", check=1).stderr.lower()
    assert b"no ending" in session("record", "export", "-o", "there.what", check=2).stderr
    assert not list(session.root.glob(".there*"))


def test_recordings_by_name(labd: BenchInAFolder) -> None:
    labd.lab.write_text(LAB)
    assert b"no recording of dut runs" in labd("record", "stop", check=4).stderr
    assert b"has no recording" in labd("record", "export", check=4).stderr
    labd("record", "start", "--name", "one")
    assert labd("record", "start", "--name", "one", check=6).stderr
    labd("record", "start", "--name", "two")
    assert b"several" in labd("record", "stop", check=4).stderr
    labd("record", "stop", "--name", "one")
    labd("record", "stop")
    assert [entry["name"] for entry in labd.json("record", "list")["recordings"]] == ["one", "two"]
    assert b"'on'" in labd("record", "export", "--name", "on", check=4).stderr
    assert labd("record", "start", "--name", "../x", check=2).stderr


def test_recordings_that_are_begun_at_once_are_one(tmp_path: Path) -> None:
    recordings = Recordings({"XDG_STATE_HOME": str(tmp_path)}, "/lab.toml", "dut")
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: _outcome(lambda: recordings.start("race", "", "me")), range(16)))
        assert done.count("done") == 1 and done.count("Busy") == 15
        assert "LabdError" not in list(pool.map(lambda _: _outcome(lambda: recordings.stop("race")), range(8)))
    assert len(list((tmp_path / "labd" / "recordings").rglob("*"))) == 3  # two directories and one file


def _outcome(act: Callable[[], object]) -> str:
    try:
        act()
        return "done"
    except LabdError as error:
        return type(error).__name__


# -- parts -----------------------------------------------------------------------------------------------------------


def test_moments() -> None:
    now = 1_796_032_723 * 10**9
    assert moments.parse("#1840*", "--since", now) == (1840, 0)
    assert moments.parse("90s", "--since", now) == (None, now - 90 * 10**9)
    assert moments.parse("1.5m", "--since", now) == (None, now - 90 * 10**9)
    assert moments.parse("2026-11-30T09:58:43Z", "--since", now) == (None, now)
    _, clock = moments.parse("23:59:59.5", "--since", now)
    assert 0 < now - clock < 86400 * 10**9
    for bad in ("", "25:00", "10x", "-5m", "1e9s", "٣s", "9" * 40, "2026-13-01"):
        with pytest.raises(Usage):
            moments.parse(bad, "--since", now)


def test_what_is_hidden_in_what_is_handed_on() -> None:
    def line(seq: int, text: str) -> Entry:
        raw = text.encode()
        return Entry(seq, "serial", "console", Line(seq, 0, raw, len(raw), seq, seq, False, False))

    def event(channel: str, kind: str, interface: str = "", **fields: object) -> Entry:
        return Entry(0, channel, interface, Event(0, kind, 0, 0, 0, dict(fields)))

    given = [
        line(1, "-----BEGIN EC PRIVATE KEY-----"), line(2, "b3BlbnNzaA"), line(3, "-----END EC PRIVATE KEY-----"),
        line(4, "harmless"), event("hid", "hook", command="qmp type hello"), line(5, "Password: "),
        event("tx", "tx", "console", data="p1", total=2), event("port", "trigger", "console", what="fired", data="p2"),
        event("hid", "hook", command="qmp type p3"), event("refusal", "serial send", command="labd serial send p4"),
    ]  # fmt: skip
    shown = [text_of(entry) for entry in handed_on(given, {"console": "utf-8"})]
    assert not any(secret in text for text in shown for secret in ("b3Blb", "p1", "p2", "p3", "p4", "total"))
    assert "harmless" in shown[3] and "hello" in shown[4] and "fired" in shown[7]


def test_a_torn_record_of_commands_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    lab = tmp_path / "lab.toml"
    good = {"rec": "start", "id": "1", "t": 5.0, "mono_ns": 1, "argv": ["labd", "claim", "dut"], "operation": "claim",
            "decision": "refused", "lab": str(lab), "target": "dut"}  # fmt: skip
    other = {**good, "id": "2", "target": "pico"}
    rows = [json.dumps(good), json.dumps(other), '{"rec": "start", "t": ', "[]", "\x00\xff", json.dumps({"rec": "end"})]
    path = tmp_path / "argv.jsonl"
    path.write_text("\n".join(rows), encoding="latin-1")
    assert [(channel, event.kind) for channel, event in past_calls(str(path), str(lab), "dut", False)] == [
        ("refusal", "claim")
    ]


def test_pictures_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labd.chronicle.PICTURE_BYTES", 25)
    told = Chronicle(str(tmp_path), lambda text: pytest.fail(text))
    for number in range(4):
        told.keep_picture("/lab.toml", "dut", f"{number}.png", b"x" * 10)
        time.sleep(0.01)
    kept = Path(told.directory("/lab.toml", "dut")) / "pictures"
    assert sorted(entry.name for entry in kept.iterdir()) == ["2.png", "3.png"]
    assert told.directory("/lab.toml", "dut").endswith(f"/dut/{paths.BENCH_JOURNAL}")


def test_the_daemon_records_hooks_where_the_timeline_reads(labd: BenchInAFolder) -> None:
    """The journal of a target's other channels is the daemon's: the directory that readers look into."""
    labd.lab.write_text(LAB)
    told = Chronicle(str(labd.root / "state" / "labd"), lambda text: pytest.fail(text))
    told.tell(str(labd.lab), "dut", "hid", "hook", action="type", code=0)
    told.close()
    found = until("the event", lambda: entries(labd))
    assert [(entry["channel"], entry["event"], entry["action"]) for entry in found] == [("hid", "hook", "type")]
