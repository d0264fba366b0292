"""Synthetic bundles: a right one for a small T1 scenario and for a small loopback one, to be bent by each test."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graders import route
from graders.bundle_view import Bundle

PROGRAM = "/sand/bin/labd"
INSTALLED = "/usr/lib/labd/bin/labd"
LAB = "/sand/lab.toml"

SEED = """\
# keep me
[targets.pico]   # the Pi
description = "a # that is no comment"
[[targets.pico.serial]]
name = "console"
device = "/dev/ttyUSB0"
"""
ADDED = '\n[[targets.pico.serial]]\nname = "bmc"\ndevice = "/dev/ttyUSB1"\nbaud = 9600\n'


@dataclass
class Maker:
    """Collects what a bundle is to hold; `write` puts it on disk. None leaves a file out."""

    trial: dict[str, Any] = field(default_factory=dict)
    scenario: dict[str, Any] = field(default_factory=dict)
    before: bytes | None = None
    after: bytes | None = None
    records: list[dict[str, Any]] | None = field(default_factory=list)
    answer: str | None = ""
    calls: list[dict[str, Any]] | None = None
    journal: dict[str, tuple[bytes, list[dict[str, Any]]]] = field(default_factory=dict)
    dut: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def run(self, line: str, *, code: int | None = 0, **more: Any) -> None:
        """Add one invocation: a start and, unless `ended` is False, an end."""
        assert self.records is not None
        number = len(self.records)
        argv = more.pop("argv", ["labd", *line.split()])
        ended = more.pop("ended", True)
        ends = {name: more.pop(name, None) for name in ("signal", "lab_before", "lab_after", "stdout_head")}
        told = ("stderr_head", "duration_ms", "first_byte_ms", "merged")
        ends |= {name: more.pop(name) for name in told if name in more}
        start = {"rec": "start", "id": f"r{number}", "argv": argv, "program": PROGRAM, "lab": LAB, "face": "cli",
                 "decision": "permitted", "effect": "observe", "operation": " ".join(line.split()[:2])}  # fmt: skip
        self.records.append(start | more)
        if ended:
            self.records.append({"rec": "end", "id": f"r{number}", "code": code, **ends})

    def edit(self, line: str, before: bytes | None, after: bytes | None, **more: Any) -> None:
        """Add an invocation that changed the lab."""
        digests = {"lab_before": route.digest(before), "lab_after": route.digest(after)}
        self.run(line, **{"effect": "config", **digests, **more})

    def write(self, directory: Path) -> Bundle:
        """The bundle, in a new directory under `directory`."""
        place = directory / f"bundle{len(list(directory.iterdir()))}"
        place.mkdir()
        (place / "trial.json").write_text(json.dumps(self.trial))
        (place / "scenario.json").write_text(json.dumps(self.scenario))
        for name, data in (("lab.before.toml", self.before), ("lab.after.toml", self.after)):
            if data is not None:
                (place / name).write_bytes(data)
        if self.answer is not None:
            (place / "answer.txt").write_text(self.answer)
        for name, entries in (("argv.jsonl", self.records), ("calls.jsonl", self.calls)):
            if entries is not None:
                (place / name).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        for line, (raw, events) in self.journal.items():
            target, interface = line.split(".")
            stored = "".join(json.dumps(event) + "\n" for event in events).encode()
            for stream, data in (("rx", raw), ("events", stored)):
                store = place / "journal" / target / interface / stream
                store.mkdir(parents=True)
                (store / f"{0:020d}.raw").write_bytes(data)
        for line, entries in self.dut.items():
            (place / "dut").mkdir(exist_ok=True)
            (place / "dut" / f"{line}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        return Bundle(place)


def config() -> Maker:
    """A trial in which a second line was added, rightly."""
    after = (SEED + ADDED).encode()
    maker = Maker(
        trial={"schema": "labd-trial/1", "ended_by": "completed", "lab": LAB, "subject": "labd",
               "route": {"program": [PROGRAM], "installed": [INSTALLED]}},
        scenario={
            "id": "X1",
            "traps": [],
            "grader": {"type": "t1_config", "assert": [
                {"path": "targets.pico.serial", "count": 2},
                {"path": "targets.pico.serial[name=bmc].device", "equals": "/dev/ttyUSB1"},
                {"path": "targets.pico.serial[name=bmc].baud", "equals": 9600},
            ]},
        },
        before=SEED.encode(),
        after=after,
        answer="done",
    )  # fmt: skip
    maker.edit("serial add bmc -t pico --device /dev/ttyUSB1 --baud 9600", SEED.encode(), after)
    return maker


def loopback() -> Maker:
    """A trial in which a board was recorded, spoken to, and read, rightly."""
    said = b"boot fact-17\r\n# cat x\r\nLinux version fact-99\r\n# "
    maker = Maker(
        trial=config().trial,
        scenario={
            "id": "Y1",
            "traps": [],
            "loopback": {"target": "dut", "interface": "console", "expect": {
                "received": ["cat x\\r"],
                "journal": ["boot fact-17", {"kind": "tx", "matches": "cat x"}, {"kind": "event", "matches": "open"}],
                "printed": ["fact-99"],
            }},
            "grader": {
                "type": "outcome",
                "answer": [{"contains": "fact-99"}],
                "ran": [{"text": "in order", "when": '[operation == "serial watch" and code == 0] then '
                                                     '[operation == "serial log" and code == 0]'}],
            },
        },
        before=SEED.encode(),
        after=SEED.encode(),
        answer="It says: Linux version fact-99",
        journal={"dut.console": (said, [{"kind": "open"}, {"kind": "tx", "data": "cat x\r"}])},
        dut={"dut.console": [{"kind": "start"}, {"kind": "tx", "data": said[:20].decode()},
                             {"kind": "rx", "data": "cat x\r"}, {"kind": "tx", "data": said[20:].decode()}]},
    )  # fmt: skip
    maker.run("serial watch dut", effect="actuate")
    maker.run("serial send dut", effect="actuate", argv=["labd", "serial", "send", "dut", "cat x"])
    maker.run("serial log dut", stdout_head="[…] #3 Linux version fact-99\n")
    return maker
