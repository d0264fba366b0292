"""Ctrl-C in the first moment of `labd-eval`, while its own modules are still being read."""

import subprocess
import sys

_INTERRUPTED = """
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "harness.report":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from harness.cli import main
"""


def test_an_interrupt_while_starting_ends_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
