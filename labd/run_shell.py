"""Running one command in the shell at the other end of a console: what it printed, and the exit code it ended with.

Drives `labd.run_frame` over a `labd.console_io.Console`, in a handler's thread. It types a command once or not at all:
what kind of shell there is gets asked with a line that runs nothing, unless the console shows the prompt where that was
found out before. A console without a shell (a BMC) gets the bare command, and then there is no exit code to know.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from labd import run_frame
from labd.errors import LabdError, TimedOut
from labd.run_frame import Ended, Frame
from labd.view import plain

if TYPE_CHECKING:
    from labd.console_io import Console

SHELLS = ("auto", "sh", "hush", "none")

#: Nothing must come for this long before a prompt is believed to be one.
PROMPT_QUIET_S = 0.3
#: The same where a marker is missing, or where the prompt is not known.
LOST_QUIET_S = 1.2
#: So often is asked what is there, where not even the echo of the question comes back.
PROBES = 3
#: The same where a command has printed what may be another prompt.
FRESH_QUIET_S = 3.0
#: A broken marker is looked for when nothing came for this long.
LOOK_S = 0.2
#: After this long a note says what is being waited for.
PROGRESS_S = 5.0

_LOGIN = re.compile(r"(?:^|\s)(?:login|user ?name|pass ?word|passphrase)(?: for [^:]*)?: ?$", re.I)
#: What the end of a prompt looks like, and what that of a shell's does, or a login prompt.
_PROMPT = re.compile(r"[#$>%:\])}»❯] ?$")
_FRESH = re.compile(r"[#$] $|(?:^|\s)login: ?$", re.I)
_MORE = re.compile(r"^(?:> |quote> |dquote> |\.\.\. )$")


@dataclass
class Ran:
    """How a run ended. `code` None: it can't be known. `cursor` is the offset behind what belongs to the run."""

    code: int | None
    shell: str
    interleaved: bool = False
    why: str = ""
    size: int = 0
    cursor: int = 0
    binary: bytes | None = None
    foreign: int = 0


@dataclass(frozen=True)
class Known:
    """What was found out about a console: the shell that shows `prompt`, whether there was ever one that tells exit
    codes, and whether a command was left running when its time was over.
    """

    shell: str
    prompt: str
    was_shell: bool = False
    left: bool = False


@dataclass
class How:
    """`shell` one of SHELLS; `known` is what was found out before on this console, `learned` what was now.

    `type_line(line)` types a line with its end; `out(data)` takes output that is certain; `note` a sentence. `typed`
    says whether the command was. `still_ours()` raises Busy once somebody took the console over.
    """

    type_line: Callable[[str], None]
    out: Callable[[bytes], None]
    note: Callable[[str], None]
    timeout_s: float
    shell: str = "auto"
    binary: bool = False
    known: Known | None = None
    learned: list[Known] = field(default_factory=list)
    typed: bool = False
    still_ours: Callable[[], None] = lambda: None


def run(board: Console, command: str, how: How) -> Ran:
    """Run `command`. Raises TimedOut (with what came last), Unreachable (the port went), LabdError (nothing was typed:
    a login prompt, half a line; or the shell gave up on the line), Usage (it can't be typed).
    """
    return _Run(board, command, how).run()


class _Run:
    def __init__(self, board: Console, command: str, how: How) -> None:
        self.board = board
        self.command = command
        self.how = how
        self.deadline = time.monotonic() + how.timeout_s
        self.prompt = ""
        self.idents: list[str] = []
        self.tail = b""
        self.got = bytearray()

    def run(self) -> Ran:
        self.prompt = self._prompt_now()
        shell = self._shell()
        if shell == "none":
            return self._bare()
        ident = self._new_id()
        line = run_frame.line_for(self.command, shell, ident, binary=self.how.binary)
        self.board.skip()
        self.tail = b""
        self.how.typed = True
        self.how.type_line(line)
        return self._framed(Frame(ident), shell)

    # -- what is there -----------------------------------------------------------------------------------------------

    def _prompt_now(self) -> str:
        """The unfinished line, which should be a prompt. Raises LabdError where typing would not reach a shell."""
        pending = self.board.pending()
        name, target = self.board.name, self.board.target
        if _LOGIN.search(pending):
            raise LabdError(f"{name} asks {pending.strip()!r}, so there is no shell; nothing was typed",
                            hint=f"labd serial send {target} USER --expect 'Password:|[#$] '")  # fmt: skip
        known = self.how.known
        prompt = known.prompt if known else ""
        if prompt and pending.startswith(prompt) and len(pending.rstrip()) > len(prompt.rstrip()):
            while self._came(PROMPT_QUIET_S):
                pass
            pending = self.board.pending()  # a kernel may have been in the midst of a line
        if prompt and pending.startswith(prompt) and len(pending.rstrip()) > len(prompt.rstrip()):
            raise LabdError(
                f"{name}: something is typed at the prompt already ({pending[len(prompt) :]!r}); nothing was typed",
                hint=f"labd serial send {target} --key ctrl-c",
            )
        return pending.rstrip()

    def _shell(self) -> str:
        """What kind of shell there is, asked for unless that was found out at this very prompt."""
        if self.how.shell != "auto":
            return self.how.shell
        known = self.how.known or Known("", "")
        if known.shell and self.prompt and known.prompt.rstrip() == self.prompt:
            return known.shell
        for last in [False] * (PROBES - 1) + [True]:
            found = self._probe(last)
            if found is not None:
                break
            self.prompt = self.board.pending().rstrip()
        assert found is not None
        shell, sure = found
        self.prompt = self.board.pending().rstrip()
        if shell != "none":
            self.how.learned.append(Known(shell, self.board.pending(), was_shell=True))
        elif sure and not known.was_shell and not known.left:
            self.how.learned.append(Known(shell, self.board.pending()))
        return shell

    def _probe(self, last: bool) -> tuple[str, bool] | None:
        """Ask what is there: the answer, and whether it is fit to be remembered. None when the question seems to be
        lost, or read by a program, unless it is the last time.
        """
        ident = self._new_id()
        self.board.skip()
        self.how.type_line(run_frame.probe(ident))
        answer, asked = b"", time.monotonic()
        while True:
            data = self._read(PROMPT_QUIET_S)
            answer += data
            shell = run_frame.shell_in(answer, ident)
            if shell is not None and (not data or _PROMPT.search(self.board.pending())):
                return shell, True  # the prompt has come again, or is not going to
            if data or shell is not None or not self._no_shell(answer):
                continue
            pending = self.board.pending()
            if self.prompt and pending.rstrip() == self.prompt and run_frame.echoed(answer, ident):
                return "none", _MORE.match(pending) is None and answer.count(ident.encode()) == 2
            if time.monotonic() - asked > LOST_QUIET_S:
                return ("none", False) if last else None  # it does not echo, was not listening yet, or has ended now

    def _new_id(self) -> str:
        self.idents.append(run_frame.new_id())
        return self.idents[-1]

    def _no_shell(self, answer: bytes) -> bool:
        """Whether the console is back at a prompt, having said something else than a shell would."""
        pending = self._pending().rstrip()
        if not pending or b"\n" not in answer:
            return False
        if pending == self.prompt:
            return True
        if _LOGIN.search(pending):
            raise LabdError(f"{self.board.name} asks {pending!r}, so there is no shell; the command was not typed",
                            hint="log in first")  # fmt: skip
        return not self._came(LOST_QUIET_S)

    def _came(self, seconds: float) -> bool:
        """Whether anything comes within so many seconds."""
        return bool(self._read(seconds))

    def _read(self, seconds: float) -> bytes:
        """What came, b"" if nothing did for so long. Raises TimedOut when the time for all of it is up, Busy when the
        console was taken over: what came last may then be an answer to somebody else.
        """
        now = time.monotonic()
        data = self.board.read(min(self.deadline, now + seconds))
        self.how.still_ours()
        self.tail = (self.tail + data)[-8192:]
        if not data and time.monotonic() >= self.deadline:
            raise self._timed_out()
        return data

    # -- with markers ------------------------------------------------------------------------------------------------

    def _framed(self, frame: Frame, shell: str) -> Ran:
        try:
            ended = self._until_ended(frame)
        except LabdError:
            self._out(frame.quiet())  # all that was received
            raise
        ran = Ran(ended.code, shell, ended.interleaved, ended.why, cursor=self.board.cursor - len(frame.rest))
        if self.how.binary:
            self._decode(ran)
        else:
            ran.foreign = run_frame.foreign_lines(bytes(self.got))
            ran.interleaved = ran.interleaved or ran.foreign > 0
        ran.size = len(self.got if ran.binary is None else ran.binary)
        return ran

    def _until_ended(self, frame: Frame) -> Ended:
        silent = 0.0
        progress = time.monotonic() + PROGRESS_S
        while frame.ended is None:
            data = self._read(LOOK_S)
            silent = 0.0 if data else silent + LOOK_S
            self._out(frame.feed(data) if data else frame.quiet())
            if not data and silent >= LOST_QUIET_S and self._back_at_prompt(silent):
                raise LabdError(
                    f"{self.board.name} shows a prompt without having told the exit code: the shell gave up on the "
                    "line, the command ended it or the board, or it has printed what looks like a prompt and still "
                    f"runs; last lines: {self._last()!r}",
                    hint=f"labd serial log {self.board.target} -i {self.board.line['name']} --tail 20",
                )
            if time.monotonic() > progress:
                progress = float("inf")
                self.how.note(f"{self.command!r} runs; {len(self.got)} bytes of output so far …")
        return frame.ended

    def _back_at_prompt(self, silent: float) -> bool:
        """Whether the prompt is there again, or one that a new shell or a login would show."""
        pending = self._pending()
        known = (self.prompt, self.how.known.prompt.rstrip() if self.how.known else "")
        if pending.rstrip() and pending.rstrip() in known:
            return True
        return silent >= FRESH_QUIET_S and _FRESH.search(pending) is not None

    def _pending(self) -> str:
        """The unfinished line, also where a kernel logged behind it."""
        return self.board.pending() or plain(run_frame.without_stamped(self.tail).rpartition(b"\n")[2])

    def _decode(self, ran: Ran) -> None:
        try:
            ran.binary, code, checked = run_frame.decode_binary(bytes(self.got))
        except ValueError as problem:
            if b"base64" in self.got and b"not found" in self.got:
                raise LabdError(
                    "the board has no base64, which --binary needs", hint="again without --binary"
                ) from None
            raise LabdError(
                f"interleaved: what came is not what the command printed ({problem}); its exit code can't be told",
                hint="run it again when the board logs less",
            ) from None
        if not checked:
            self.how.note("the board has no cksum: the output came whole, unchecked")
        ran.code = code
        self.how.out(ran.binary)

    def _out(self, data: bytes) -> None:
        if data:
            self.got += data
            if not self.how.binary:
                self.how.out(data)

    # -- without -----------------------------------------------------------------------------------------------------

    def _bare(self) -> Ran:
        """Type the command as it is; what comes until the prompt is back is its output."""
        if self.how.binary:
            raise LabdError(f"{self.board.name} has no shell, which --binary needs; the command was not typed",
                            hint="again without --binary")  # fmt: skip
        if not self.prompt:
            self.board.skip()
            self.how.type_line("")
            while self._read(PROMPT_QUIET_S):
                pass
            self.prompt = self.board.pending().rstrip()
        self.board.skip()
        self.how.typed = True
        self.how.type_line(self.command)
        raw = b""
        while True:
            data = self._read(PROMPT_QUIET_S if self.prompt else LOST_QUIET_S)
            raw += data
            if not data and b"\n" in raw and (not self.prompt or self.board.pending().rstrip() == self.prompt):
                break
        out = _without_echo(raw[: raw.rfind(b"\n") + 1], self.command).replace(b"\r\n", b"\n")
        self._out(out)
        return Ran(None, "none", size=len(out), why="this console tells no exit codes", cursor=self.board.cursor)

    # -- what went wrong ---------------------------------------------------------------------------------------------

    def _timed_out(self) -> TimedOut:
        name, target = self.board.name, self.board.target
        interface = self.board.line["name"]
        open_quote = _MORE.match(self.board.pending()) is not None
        if not self.how.typed:
            return TimedOut(
                f"{name}: nothing that came in {self.how.timeout_s:g} s looks like a shell's answer, so a program may "
                f"still run there; {self.command!r} was not typed; last lines: {self._last()!r}",
                hint=f"labd serial send {target} -i {interface} --key ctrl-c  # stops what runs",
            )
        why = "the shell waits for more: a quote or a bracket is open" if open_quote else "it may still run"
        return TimedOut(
            f"{name}: {self.command!r} did not end in {self.how.timeout_s:g} s; {why}, and is not typed again; "
            f"last lines: {self._last()!r}",
            hint=f"labd serial send {target} -i {interface} --key ctrl-c  # stops it",
        )

    def _last(self) -> str:
        lines = [plain(line) for line in (bytes(self.got[-4096:]) or self.tail).split(b"\n")]
        said = [line for line in lines if line.strip() and not any(ident in line for ident in self.idents)]
        return "\n".join(said[-3:])[-400:]


def _without_echo(raw: bytes, command: str) -> bytes:
    """What came, without the first line if it is the echo of the command."""
    first, newline, rest = raw.partition(b"\n")
    echoed = plain(first).strip()
    return rest if newline and command.strip() and echoed.endswith(command.strip()) else raw


def plain_answer(ran: Ran) -> dict[str, Any]:
    """The facts for --json."""
    return {"code": ran.code, "shell": ran.shell, "interleaved": ran.interleaved, "foreign_lines": ran.foreign,
            "why": ran.why or None, "size": ran.size, "cursor": ran.cursor}  # fmt: skip
