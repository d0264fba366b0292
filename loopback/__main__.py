"""`python -m loopback DUT`: see `loopback.commandline`."""

import os
import sys

from .commandline import main

if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: a thread still waits in read(0), and closing a serial port may drain; the kernel closes both.
    os._exit(code)
