"""`python -m tests.labvm`: prepare the guest's kernel in .labvm/ and run the lane; what follows `--` goes to pytest."""

import subprocess
import sys

from tests.labvm.kernel import ROOT, cannot_run, prepare


def main() -> int:
    """The lane's exit code; 0 with the reason where it can't run here."""
    why = cannot_run() or prepare()
    if why:
        print(f"the lab VM can't run here: {why}")
        return 0
    extra = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    return subprocess.call([sys.executable, "-m", "pytest", "-m", "vm", "tests/labvm", *extra], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
