"""`python -m tests.labvm`: the tests marked `vm`, with the guest kernel in .labvm/. What follows `--` is for pytest."""

import subprocess
import sys

from tests.labvm.kernel import ROOT, cannot_run, prepare


def main() -> int:
    """The lane's exit code. Where the guest can't run, what needs it is skipped, with the reason."""
    why = cannot_run() or prepare()
    if why:
        print(f"the lab VM can't run here: {why}")
    extra = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    return subprocess.call([sys.executable, "-m", "pytest", "-m", "vm", *extra], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
