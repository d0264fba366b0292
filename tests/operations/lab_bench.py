"""Command lines run in this process, as the program without a daemon runs them, and an odd lab to run them on."""

import json
import os
import shlex
import tomllib
from pathlib import Path
from types import SimpleNamespace

from labd.call import Call
from labd.cli import execute

LAB = """\
# my bench   (keep this)

[hosts.bench1]
ssh="op@bench1"   # key is in the vault

[targets.pico]
description   =   "Pi 5"
host = "bench1"

  [[targets.pico.serial]]  # the long cable
  name     = "console"
  device   = "/dev/ttyUSB0"
  baud     = 115_200       # as the boot ROM wants it

[targets.pico.power]
# never use the red button
cycle_cmd = "~/bin/cycle.sh"   # old relay
serial_interface = "console"

[[targets.pico.serial]]	# split from its brother
name = "bmc"
device = "/dev/ttyUSB1"
# tail
"""


class Bench:
    """Runs command lines in this process, as the program without a daemon does."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.lab = home / "lab.toml"
        self.log = home / "argv.jsonl"
        self.env = {"HOME": str(home), "PATH": os.environ["PATH"], "LABD_LAB": str(self.lab),
                    "LABD_ARGV_LOG": str(self.log)}  # fmt: skip

    def __call__(self, line, code=0, **env):
        out, err = bytearray(), bytearray()
        call = Call(
            face="cli",
            argv=shlex.split(line)[1:],
            cwd=str(self.home),
            env=self.env | env,
            out=out.extend,
            err=err.extend,
            caller={"pid": os.getpid(), "uid": os.getuid()},
        )
        found = execute(call)
        assert found == code, (line, found, out.decode(), err.decode())
        return SimpleNamespace(out=out.decode(), err=err.decode())

    def json(self, line, code=0):
        return json.loads(self(line + " --json", code).out)

    def error(self, line, code):
        found = self(line + " --json", code)
        assert found.out == ""
        return json.loads(found.err.splitlines()[-1])["error"]

    def data(self):
        return tomllib.loads(self.lab.read_text())
