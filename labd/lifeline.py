"""A command that lives no longer than whoever waits for it: the end of a pipe that only they hold is Ctrl-C.

`labd mcp` starts the program so where a verb needs a process of its own. The interrupt goes to the whole process group,
as a terminal's would, so that neither a helper nor a wait outlives a client that died.
"""

from __future__ import annotations

import os

#: Environment variable: the descriptor of the pipe.
VARIABLE = "LABD_LIFELINE"


def hold(fd: int) -> None:
    """From now on, the end of what can be read from `fd` interrupts this process and its group."""
    import threading

    threading.Thread(target=_interrupt_at_end, args=(fd,), daemon=True).start()


def _interrupt_at_end(fd: int) -> None:
    import signal

    try:
        while os.read(fd, 4096):
            pass
    except OSError:
        return  # no such descriptor: nobody holds its other end
    os.killpg(os.getpgrp(), signal.SIGINT)
