"""Cases about waiting for text, typing, and running commands."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.torture.far import Shell
from tests.torture.stage import Case, Stage
from tests.torture.subject import Wrong, cpu_s, memory_mb, wait

LINE = b"[%08d] systemd[1]: Started line of nothing that you wait for, 0123456789 abcdef\r\n"
NEVER = r"login: $|[#$] $|panic"
MOST_MS = 100.0  # CPU-ms a MB, twice and a half what the best do: CPU time grows too when a machine is full


def own_echo(stage: Stage) -> str | None:
    far = stage.device()
    shell = Shell(far, lambda line: b"STEP_DONE\r\n# ", 0.3)
    try:
        stage.play(far)
        found = stage.subject.ask("apt install && echo STEP_DONE", "STEP_DONE", 8)
        if found is None:
            raise Wrong("never matched the answer")
        if not shell.answered or found.at < shell.answered:
            raise Wrong("matched its own echo, before the device had answered")
    finally:
        shell.stop()
    return None


def live_edge(stage: Stage) -> str | None:
    far = stage.device()
    speaker = threading.Timer(0.3, lambda: (far.say(b"rc=1"), time.sleep(0.2), far.say(b"27\r\n# ")))
    speaker.start()
    try:
        found = stage.subject.expect(r"rc=(\d+)", 8)
    finally:
        speaker.join()
    if found is None or found.groups != ("127",):
        raise Wrong(f"rc is {found.groups[0] if found else None}, and was 127")
    return None


def linear(stage: Stage) -> str | None:
    stage.needs("expect")
    small, large = (1.0, 4.0) if stage.full else (0.25, 1.0)
    costs = [_flood_cost(stage, size) for size in (small, large)]
    each = (costs[1] - costs[0]) / (large - small)
    told = f"{costs[0]:.0f} CPU-ms for {small:g} MB, {costs[1]:.0f} for {large:g} MB: {each:.0f} for each MB more"
    if each > MOST_MS:
        raise Wrong(told)
    return told


def _flood_cost(stage: Stage, megabytes: float) -> float:
    """CPU-ms of all that a subject does while it waits for what never comes, and then does come."""
    far = stage.device()
    stage.play(far)
    data = b"".join(LINE % n for n in range(int(megabytes * 1e6) // len(LINE % 0))) + b"login: "
    pids = stage.subject.pids()
    began = cpu_s(pids)
    patience = 30.0 if stage.full else 12.0
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(stage.subject.expect, NEVER, patience)
        try:
            far.say(data, within_s=patience)
        except TimeoutError as error:
            waiting.result()
            raise Wrong(f"did not get through {megabytes:g} MB in {patience:g} s: {error}") from None
        found = waiting.result()
    if found is None:
        raise Wrong(
            f"did not find the end of {megabytes:g} MB; {(cpu_s(pids) - began) / megabytes * 1000:.0f} CPU-ms/MB"
        )
    cost = (cpu_s(pids) - began) * 1000
    stage.subject.close()
    return cost


def bounded(stage: Stage) -> str | None:
    """No match for megabytes. What the subject holds must not be what came."""
    size = 8 if stage.full else 4
    far = stage.device()
    piece = b"".join(LINE % n for n in range(1_000_000 // len(LINE % 0)))
    stage.play(far, piece)
    pids = stage.subject.pids()
    before = peak = memory_mb(pids)
    waiting = threading.Thread(
        target=_quietly, args=(lambda: stage.subject.expect("never comes ~~", 120),), daemon=True
    )
    if stage.has("expect"):
        waiting.start()
    swallowed = 0
    try:
        for _ in range(size):
            far.say(piece, within_s=10 * stage.subject.haste)
            swallowed += 1
            peak = max(peak, memory_mb(pids))
    except TimeoutError:
        raise Wrong(f"stuck after {swallowed} of {size} MB; grew by {peak - before:.0f} MB") from None
    if peak - before > size / 2:
        raise Wrong(f"grew by {peak - before:.0f} MB over {size} MB")
    return f"grew by {max(0.0, peak - before):.1f} MB over {size} MB"


def _quietly(work: Callable[[], object]) -> None:
    with contextlib.suppress(Exception):
        work()


def coloured(stage: Stage) -> str | None:
    far = stage.device()
    far.say(b"\r\n\x1b[01;32mroot@x\x1b[00m:~# ")
    if stage.subject.expect(r"root@x:~# ", 3) is None:
        raise Wrong("does not match `root@x:~# `")
    return None


def interleaved(stage: Stage) -> str | None:
    """Several commands; the kernel logs in each round somewhere else."""
    board = stage.board("chatty-kernel")
    stage.subject.open(board.path, prompt=r"root@chatty:~# ")
    marked = unknown = 0
    for n in range(6 if stage.full else 4):
        ran = stage.subject.run(f"echo word{n}; (exit {n})", 8)
        if ran.code not in (n, None):
            raise Wrong(f"exit code {ran.code} for {n}")
        unknown += ran.code is None
        said = "interleaved" in ran.note
        if ran.out.strip() != f"word{n}" and not said:
            raise Wrong(f"run {n}: output {ran.out!r}, and nothing said of lines that are not the command's")
        marked += said
    if unknown > 2:
        raise Wrong(f"told no exit code {unknown} times")
    return f"every exit code right ({unknown} not told), {marked} marked as interleaved"


def lossy_input(stage: Stage) -> str | None:
    board = stage.board("lossy")
    stage.subject.open(board.path, prompt="# ", tx_delay_ms=3)
    stage.subject.settle(b"# ")
    text = "0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    stage.subject.type_sure(f"echo {text}")
    answer = re.compile(rb"(?:^|\n)" + text.encode() + rb"\r?\n")
    wait(lambda: answer.search(_heard(stage)), 6, "the board did not get the line that was typed")
    return None


def _heard(stage: Stage) -> bytes:
    """What the board said; a library reads only while it waits for something."""
    stage.subject.look()
    return stage.subject.stored()


def stuck_writer(stage: Stage) -> str | None:
    """200 kB to a device that takes nothing: the send has to end, and reading has to go on meanwhile."""
    far = stage.device()
    stage.play(far)
    result: list[object] = []

    def send() -> None:
        try:
            result.append(stage.subject.send(b"y" * 200_000, 15))
        except Exception as error:
            result.append(error)

    sending = threading.Thread(target=send, daemon=True)
    sending.start()
    time.sleep(0.3)
    far.say(b"still here\r\n")
    try:
        heard = wait(lambda: _heard_by(stage, sending), 5, "reads nothing while a write is stuck")
    finally:
        sending.join()
    outcome = result[0]
    if isinstance(outcome, Exception):
        raise outcome
    if outcome.accepted is None:  # type: ignore[attr-defined]
        raise Wrong("does not tell how much the device took: its sender believes that all is sent")
    if outcome.accepted > 70_000:  # type: ignore[attr-defined]
        raise Wrong(f"says that {outcome.accepted} bytes were taken")  # type: ignore[attr-defined]
    return f"read on after {heard * 1000:.0f} ms; told: {outcome.accepted} bytes taken"  # type: ignore[attr-defined]


def _heard_by(stage: Stage, sending: threading.Thread) -> bool:
    if not sending.is_alive():
        stage.subject.look()
    return b"still here" in stage.subject.stored()


CASES = (
    Case(
        "8",
        "expect matches its own echo",
        "pexpect #372, #723",
        "type `… && echo STEP_DONE`, wait for STEP_DONE; the device echoes, answers 300 ms later",
        "the answer is matched, not the echo",
        own_echo,
        {"naive": "own echo"},
        waits=True,
    ),
    Case(
        "9",
        "a greedy pattern at the live edge",
        "pexpect's own documentation",
        "rc=1, 200 ms, 27 CR LF; rc=(\\d+)",
        "127",
        live_edge,
        {"naive": "rc is 1,"},
    ),
    Case(
        "11",
        "quadratic expect",
        "pexpect #438, #352",
        f"1 and 4 MB (tests: 0.25 and 1 MB) of log lines, then what is waited for ({NEVER})",
        f"at most {MOST_MS:g} CPU-ms for each MB more",
        linear,
        {"naive": "for each MB more|get through|find the end"},
        measures=True,
    ),
    Case(
        "12",
        "an unbounded buffer",
        "pexpect #388",
        "8 MB (tests: 4 MB) while a pattern is waited for that never comes",
        "memory grows by less than half of it",
        bounded,
        {"naive": "grew|stuck"},
        measures=True,
    ),
    Case(
        "14",
        "a coloured prompt",
        "pexpect #824",
        "ESC[01;32mroot@x ESC[00m:~# SPACE; root@x:~# ",
        "matched as it looks",
        coloured,
        {"naive": "does not match"},
        waits=True,
    ),
    Case(
        "15",
        "kernel lines between marker and prompt, in output and in mid-line",
        "labgrid PR 1763, meta-qcom #2250",
        "six (tests: four) commands on the board chatty-kernel",
        "never a wrong exit code, never a foreign line as output unmarked",
        interleaved,
        {"naive": "output|exit code|rc="},
        waits=True,
    ),
    Case(
        "16",
        "dropped input",
        "labgrid #1749, kernelci #366, ser2net #71",
        "a line of 69 bytes typed into the board lossy, which loses each 7th byte above 1 kB/s",
        "the board executes exactly that line",
        lossy_input,
        {"naive": "did not get the line"},
        waits=True,
    ),
    Case(
        "26",
        "a write to a device that stopped reading",
        "pyserial #625, jSerialComm #287",
        "200 kB to a PTY that nobody reads; meanwhile the device says something",
        "reading goes on; the write ends, and tells how much was taken",
        stuck_writer,
        {"naive": "never came back"},
        waits=True,
    ),
)
