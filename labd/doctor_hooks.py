"""Power and input hooks: would they start, and could what they start do its work? Nothing of the lab is run.

A hook's programs are found as the bench would find them, through `~`, `sudo`, `env`, `timeout`, `sh -c`. Of bundled
helpers it is known what they need in their turn. sudo is asked whether it would want a password (`sudo -n -l`), which
runs nothing.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from labd import doctor_helpers, doctor_sudo, helpers, hookwords
from labd.doctor import PROBLEMS, Bench, Row, access_denied, holders_words, let_go, row
from labd.lab.redact import redact
from labd.shebang import CRLF

HOOK_KEYS = ("cycle_cmd", "on_cmd", "off_cmd", "state_cmd")


def check_power(bench: Bench, target: str, config: Mapping[str, Any]) -> Iterator[Row]:
    """The hooks of a power channel, and the serial line that senses or switches."""
    keys = [key for key in HOOK_KEYS if config.get(key)]
    lines = {line["name"]: line for line in bench.data["targets"][target].get("serial", [])}
    name = config.get("serial_interface")
    if not keys and not name:
        yield row(
            target,
            "power",
            "incomplete",
            "no hook is set",
            fix=f'labd power set -t {target} --cycle-cmd "PROGRAM …"  # labd helper lists bundled ones',
        )
    for key in keys:
        yield from hook_rows(bench, target, "power", key, config[key])
    if name and name not in lines:
        first = next(iter(lines), None)
        fix = f"--serial-interface {first}" if first else "--unset serial_interface"
        yield row(
            target,
            "power",
            "missing",
            f"serial_interface {name!r} is no serial interface of {target}",
            interface="serial_interface",
            device=name,
            fix=f"labd power set -t {target} {fix}",
        )
    elif name and not lines[name].get("power_sense_signal") and not lines[name].get("power_button"):
        yield row(
            target,
            "power",
            "incomplete",
            f"serial interface {name} neither senses power nor presses a button",
            interface="serial_interface",
            device=name,
            fix=f"labd serial set {name} -t {target} --sense cts  # or --power-button true",
        )
    elif name:
        does = "senses the power" if lines[name].get("power_sense_signal") else "presses the power button"
        said = f"serial interface {name} {does}"
        yield row(target, "power", "ok", said, interface="serial_interface", device=name)


def check_hid(bench: Bench, target: str, config: Mapping[str, Any]) -> Iterator[Row]:
    """The command that types and clicks."""
    if not config.get("cmd"):
        fix = f'labd hid set -t {target} --cmd "PROGRAM …"  # labd helper lists bundled ones'
        yield row(target, "hid", "incomplete", "no command is set", fix=fix)
        return
    yield from hook_rows(bench, target, "hid", "cmd", config["cmd"])


def hook_rows(bench: Bench, target: str, channel: str, key: str, text: str) -> Iterator[Row]:
    """What can be known of a hook without running it: the first problem, or an `ok` that says what was found and what
    was not looked at; then every warning."""
    rows = list(_Hook(bench, target, channel, key, text).findings())
    yield next((found for found in rows if found["status"] in PROBLEMS), rows[-1])
    yield from (found for found in rows if found["status"] == "warning")


class _Hook:
    """The checks of one hook, in the order in which running it would meet them."""

    def __init__(self, bench: Bench, target: str, channel: str, key: str, text: str) -> None:
        self.bench, self.target, self.channel, self.key = bench, target, channel, key
        self.hook = hookwords.Hook(text, bench.env)
        self.text = redact(text)
        self.again = f'labd {channel} set -t {target} --{key.replace("_", "-")} "PROGRAM …"'
        self.found = ""

    def findings(self) -> Iterator[Row]:
        """What is wrong, the first first; `ok` at the end, unless nothing else can be said."""
        if self.hook.problem:
            yield self._row("incomplete", f"the hook can't run: {self.hook.problem}", self.text, self.again)
            return
        yield from self._programs()
        yield from self._helper()
        yield from self._sudo()
        yield from self._devices()
        doubts = "".join(f"; {note}" for note in self.hook.notes)
        yield self._row("ok", f"found {self.found}; the hook was not run{doubts}", self.hook.programs[-1], None)

    def _row(self, status: str, detail: str, device: str | None, fix: str | None) -> Row:
        return row(self.target, self.channel, status, detail, interface=self.key, device=device, fix=fix)

    def _programs(self) -> Iterator[Row]:
        for program in self.hook.programs:
            path, self.found = hookwords.find(program, self.bench.env, self.bench.folder)
            if path is None:
                denied = "not executable" in self.found
                place = self.found.rpartition(" is ")[0] or self.found
                fix = f"chmod +x {quote(place)}" if denied else self.again
                if CRLF in self.found:
                    fix = f"perl -pi -e 's/\\r$//' {quote(self.found.partition(' can')[0])}"
                yield self._row("denied" if denied else "missing", self.found, program, fix)

    def _helper(self) -> Iterator[Row]:
        """What the bundled helper that does the work needs in its turn."""
        words = self.hook.words
        if words and helpers.has(words[0]):
            for status, detail, fix in doctor_helpers.findings(
                self.bench, self.target, self.key, words, bool(self.hook.by_sudo)
            ):
                yield self._row(status, detail, words[0], fix or self.again)

    def _sudo(self) -> Iterator[Row]:
        """Whether sudo would stop the hook to ask for a password that nobody can type."""
        if not self.hook.by_sudo:
            return
        first, *rest = self.hook.by_sudo
        found = hookwords.find(first, self.bench.env, self.bench.folder)[0] or first
        argv = [*(helpers.command(first) if helpers.has(first) else [found]), *rest]
        program = argv[0]
        if doctor_sudo.lets(self.bench.machine, argv):
            return
        why = "sudo does not let this user run it without a password, and nobody can type one into a hook"
        yield self._row("denied", why, program, doctor_sudo.grant(self.bench.machine, [program]))

    def _devices(self) -> Iterator[Row]:
        for device in self.hook.devices:
            yield from self._device(device, os.path.realpath(device))

    def _device(self, device: str, node: str) -> Iterator[Row]:
        if not os.path.exists(device):
            fix = f"{self.again}  # or plug it in"
            yield self._row("missing", f"the hook names {device}, which is not there", device, fix)
            return
        if not stat.S_ISCHR(os.stat(device).st_mode):
            return
        if "sudo" not in self.hook.programs and not os.access(device, os.R_OK | os.W_OK):
            why, fix = access_denied(self.bench, device)
            yield self._row("denied", f"the hook opens {device}: {why}", device, fix)
        for target, config in self.bench.data.get("targets", {}).items():
            for line in config.get("serial", []):
                if os.path.realpath(self.bench.path(line["device"])) == node and node != "/dev/null":
                    yield self._row(
                        "warning",
                        f"the hook opens {device}, which is also the console {target} {line['name']}: a capture of it "
                        "keeps the hook out",
                        device,
                        self.again,
                    )
        holders = self.bench.machine.others(node) if device.startswith("/dev/tty") else []
        if holders:
            yield self._row("busy", f"the hook opens {device}, held by {holders_words(holders)}", device,
                            let_go(holders[0], node))  # fmt: skip
