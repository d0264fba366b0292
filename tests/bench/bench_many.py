"""32 ports paced at 115200 baud, 11,520 bytes/s each, for a minute: no byte lost, and what that costs.

    python -m tests.bench many [--quick] [--ports N] [--seconds S]

Bytes are written by a clock every 16 ms, as a USB adapter with its default latency hands them over. 1 where a byte or
a line is missing; the shares of CPU are told, of the capture process and of the daemon.
"""

from __future__ import annotations

import argparse
import sys

from tests.bench.bench_soak import carry

RATE = 115200 / 10  # a start bit, eight bits, a stop bit


def main() -> int:
    """Run it, print the figures."""
    options = argparse.ArgumentParser(prog="python -m tests.bench many", description=__doc__)
    options.add_argument("--quick", action="store_true", help="for five seconds")
    options.add_argument("--ports", type=int, default=32)
    options.add_argument("--seconds", type=float, default=60.0)
    asked = options.parse_args()
    return carry(asked.ports, RATE, 5.0 if asked.quick else asked.seconds, keep_mb=64)


if __name__ == "__main__":
    sys.exit(main())
