"""`labd` as a child of `labd mcp`: the words are the program's, and the end of standard input is Ctrl-C.

Standard input brings the given number of bytes, which the program reads as its own, and then stays open for as long as
somebody waits for the answer. Its end interrupts the whole process group, as a terminal would, so that neither a helper
nor a wait outlives a client that died. Started by labd/shim.py alone.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading


def main() -> int:
    """Run `sys.argv[2:]` with `sys.argv[1]` bytes of input; returns the exit code."""
    from labd import thin

    line = os.dup(0)
    _take_input(line, int(sys.argv[1]))
    threading.Thread(target=_interrupt_at_end, args=(line,), daemon=True).start()
    sys.argv = ["labd", *sys.argv[2:]]
    return thin.main()


def _take_input(line: int, size: int) -> None:
    """Put the bytes that belong to the program where it reads."""
    with tempfile.TemporaryFile() as given:
        while size > 0 and (piece := os.read(line, min(size, 65536))):
            given.write(piece)
            size -= len(piece)
        given.seek(0)
        os.dup2(given.fileno(), 0)


def _interrupt_at_end(line: int) -> None:
    while os.read(line, 65536):
        pass
    os.killpg(os.getpgrp(), signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
