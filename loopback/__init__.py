"""Simulated boards on simulated serial cables: what a bench is tried on when no hardware is there.

One process is one board on one cable:

    python -m loopback linux-login --link /tmp/console

prints one JSON line as soon as the near end can be opened, then plays the board until its standard input ends.
In a second terminal any serial program opens the near end as it would a USB adapter:

    tio /tmp/console           (or picocom, screen, pyserial, labd)

Type `unplug`, `replug`, `power cycle`, `stats`, `quit` in the first terminal, or write the same as JSON lines
(`loopback.control` lists them). `python -m loopback --list` names the boards; `loopback.dutfile` documents the
format for writing one. Some are real programs, bash, dash, busybox and Python, shut in (`loopback.program`).

    python -m loopback uboot --rfc2217 7000          serves it at rfc2217://127.0.0.1:7000, modem lines and all
    python -m loopback --from-journal DIR > my.toml  makes a board of what a bench captured

This package stands alone: it imports none of the others, so that what is tested and what it is tested on share
no code. The board speaks through pyserial-asyncio, a second serial stack, for the same reason.
"""
