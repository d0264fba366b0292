"""docs/python.md tells what works: each of its examples is run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from labd.client import Lab
from tests.client.test_pytest_plugin import run
from tests.conftest import LAB_OF_ONE, BenchInAFolder, until

GUIDE = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


def test_the_examples_of_the_guide_run(labd: BenchInAFolder):
    labd.lab.write_text(LAB_OF_ONE.format(dut="linux-login").replace(".dut", ".pico"))
    programs = [example for example in EXAMPLES if not example.startswith("def ")]
    assert len(programs) == 3
    for program in programs:
        done = subprocess.run([sys.executable, "-c", program], env=labd.env, cwd=labd.root, capture_output=True,
                              text=True, timeout=60)  # fmt: skip
        assert done.returncode == 0, (program, done.stdout, done.stderr)
    with Lab(env=labd.env) as lab:
        until("what pexpect sent", lambda: b"echo hello" in lab["pico"].console.bytes())


def test_the_tests_of_the_guide_pass(labd: BenchInAFolder):
    labd.lab.write_text(LAB_OF_ONE.format(dut="linux-login").replace(".dut", ".pico"))
    (suite,) = [example for example in EXAMPLES if example.startswith("def ")]
    done = run(labd, suite=suite)
    assert "2 passed" in done.stdout, done.stdout
