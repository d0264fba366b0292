"""The kind `labd`: the bench keeps its own record and its own table of commands, a lab file, and journals."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graders import drift
from harness import data, execute, files, helpwalk, surface
from harness.subjects._kind import Kind
from labd import paths

if TYPE_CHECKING:
    from harness.bundle import Bundle
    from harness.sandbox import Sandbox
    from harness.scenario import Scenario

STOP_LIMIT_S = 10.0

#: Journals beyond this are not laid out once more for questions (bytes).
STATE_BYTES = 64 << 20


class Labd(Kind):
    """The bench."""

    evidence = ("own",)

    def install(self, root: Path, program: str) -> None:
        """A link: it records itself."""
        os.symlink(program, root / "bin" / self.subject.program)

    def kept(self, root: Path, program: str) -> bool:
        """Whether the link still leads to the program."""
        return os.readlink(root / "bin" / self.subject.program) == program

    def furnish(self, root: Path, scenario: "Scenario", values: Mapping[str, str], env: Mapping[str, str],
                program: str) -> bytes | None:  # fmt: skip
        """The lab, and the files that describe its boards."""
        lab = Path(values["lab"])
        lab.parent.mkdir(parents=True, exist_ok=True)
        Path(paths.state_dir(env)).mkdir(mode=0o700, parents=True)
        for name, text in scenario.files(values).items():
            (lab.parent / name).write_bytes(text.encode())
        seed = scenario.seed_text(values)
        if seed is not None:
            lab.write_bytes(seed.encode())
        return None if seed is None else seed.encode()

    def state(self, place: "Sandbox") -> dict[str, str]:
        """The lab, and what the boards have got so far, by their own records: bytes, and presses of their button."""
        return {"lab": files.digest(place.lab_bytes() or b""), "boards": files.digest(files.canonical(got(place)))}

    def gather(self, place: "Sandbox", bundle: "Bundle") -> None:
        """The labs, its own record, journals, boards' records, the daemon's log."""
        bundle.put("lab.before.toml", place.seed)
        bundle.put("lab.after.toml", place.lab_bytes())
        bundle.put("own.jsonl", own_record(place))
        bundle.copy_tree(journal(place), "journal")
        bundle.copy_tree(boards(place), "dut")
        bundle.copy(place.root / "run" / "labd" / "daemon.log", "daemon.log")

    def facts(self, place: "Sandbox") -> dict[str, Any]:
        """Which lab it was, how far it was let go, and journals of labs that are not the sandbox's."""
        elsewhere = [path.name for path in journal(place).parent.glob("*") if path.name != journal(place).name]
        return {"lab": str(place.lab), "policy": place.env[self.subject.policy.variable],
                "captured_elsewhere": sorted(elsewhere)}  # fmt: skip

    def at_end(self, place: "Sandbox") -> dict[str, int]:
        """How many bytes of events each journal had when the agent had ended, before we ended the rest.

        Our own stop closes every port: what stands behind these bytes is not the agent's doing.
        """
        found = {}
        for events in sorted(journal(place).glob("*/*/events")):
            with contextlib.suppress(OSError):
                found[f"{events.parent.parent.name}.{events.parent.name}"] = sum(
                    path.stat().st_size for path in events.glob("*.raw")
                )
        return found

    def ask_to_stop(self, place: "Sandbox") -> int:
        """The daemon ends when it is asked."""
        if not os.path.exists(paths.socket_path(place.env)):
            return 0
        env = {**place.env, self.subject.policy.variable: self.subject.policy.outside}
        del env["LABD_ARGV_LOG"]
        asked = execute.run([place.subject, "daemons", "stop"], env=env, cwd="/", limit_s=STOP_LIMIT_S)
        return asked.session

    def build(self, program: str) -> str:
        """The script that starts it, and the package behind it."""
        return files.digest(f"{super().build(program)} {data.hashes()['labd']}".encode())

    def restore(self, bundle: Path, root: Path) -> tuple[Path, ...]:
        """The lab file, and the journals. Boards and daemons are not: what is asked opens no device."""
        env = self.subject.variables(root, self.subject.lane)
        lab, state = Path(env["LABD_LAB"]), Path(paths.state_dir({**env, **_state_variables(root)}))
        lab.parent.mkdir(parents=True, exist_ok=True)
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (bundle / "lab.after.toml").is_file():
            shutil.copyfile(bundle / "lab.after.toml", lab)
        kept = bundle / "journal"
        if sum(path.stat().st_size for path in kept.rglob("*")) > STATE_BYTES:
            raise ValueError(f"its journals are bigger than {STATE_BYTES >> 20} MiB")
        if kept.is_dir():
            shutil.copytree(kept, state / "journal" / paths.lab_id(str(lab)))
        return lab, state / "journal"

    def asking(self, root: Path) -> dict[str, str]:
        """Only what opens no device is permitted."""
        return {self.subject.policy.variable: "observe"}

    def vocabulary(self) -> frozenset[str]:
        """Every word of every command path and alias of the live table of operations."""
        from labd.operations import all_operations

        return frozenset(word for op in all_operations() for path in (op.path, *op.aliases) for word in path)

    def tool_for(self, words: Sequence[str]) -> str:
        """By the effect of the command."""
        from labd.mcp_tools import tool_for

        return tool_for(list(words[1:]))

    def reference(self, ask: helpwalk.Ask) -> dict[str, Any]:
        """Its own table (`commands --json`) says more than its help pages."""
        return surface.take(ask, self.subject.program)

    def problems(self, chosen: Sequence["Scenario"], ask: helpwalk.Ask, *, whole: bool) -> list[str]:
        """Its own parser says whether a line is a command (`commands --check`)."""
        program = self.subject.program
        with ThreadPoolExecutor(surface.AT_ONCE) as pool:
            questions = drift.questions(chosen, program)
            answers = dict(zip(map(tuple, questions), pool.map(ask, questions), strict=True))

            def answer(words: list[str]) -> tuple[int | None, str, str]:
                return answers.get(tuple(words)) or ask(words)

            if not whole:
                return drift.fit(chosen, answer, program)
            return drift.check(chosen, answer, program, safe=self.subject.safe, unsafe=self.subject.unsafe)


def _state_variables(root: Path) -> dict[str, str]:
    return {"HOME": str(root / "home"), "XDG_STATE_HOME": str(root / "home" / ".local" / "state")}


def own_record(place: "Sandbox") -> bytes | None:
    """What the bench itself recorded in its state directory, without our own stop; None if that is gone."""
    path = Path(paths.state_dir(place.env)) / "argv.jsonl"
    parts = [files.plain_bytes(one) for one in (path.with_name("argv.jsonl.1"), path)]
    if parts[1] is None:
        return None
    lines = (parts[0] or b"").splitlines(keepends=True) + parts[1].splitlines(keepends=True)
    mine = b'"id":"%d-' % place.stopper, b'"id": "%d-' % place.stopper
    return b"".join(line for line in lines if not any(mark in line for mark in mine))


def journal(place: "Sandbox") -> Path:
    """The journals of the sandbox's lab."""
    return Path(paths.state_dir(place.env)) / "journal" / paths.lab_id(str(place.lab))


def boards(place: "Sandbox") -> Path:
    """What the simulated boards of the sandbox's lab have recorded."""
    return Path(paths.state_dir(place.env)) / "loopback" / paths.lab_id(str(place.lab))


def got(place: "Sandbox") -> dict[str, dict[str, Any]]:
    """What each board has received and how often its button was pressed; a board that got nothing is left out."""
    from harness.sandbox import desk_record  # it imports the subjects

    found = {}
    for path in (*sorted(boards(place).rglob("*.jsonl")), desk_record(place.root)):
        records = list(_objects(files.plain_bytes(path) or b""))
        sent = "".join(str(record.get("data") or "") for record in records if record.get("kind") == "rx")
        presses = sum(record.get("kind") == "dtr" for record in records)
        if sent or presses:
            found[path.stem] = {"received": sent, "presses": presses}
    return found


def _objects(lines: bytes) -> Iterator[dict[str, Any]]:
    """The records of a file that an agent can reach: what is no record is passed over."""
    for line in lines.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict):
                yield record


KIND = Labd
