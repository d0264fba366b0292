"""One request for an operation: who asked, from where, on what terminal, and where the answer goes.

Faces make Calls; the shim lends them the bench once it has permitted them; handlers use them. Light.
"""

from __future__ import annotations

import os

from labd import paths

TYPE_CHECKING = False  # not from typing, whose import costs more than the rest of the start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from labd.errors import LabdError
    from labd.lab import Lab


class Call:
    """One request. `out` and `err` take bytes and may block (that is the back-pressure of a slow reader).

    `env` is the caller's environment (of a CLI call through the daemon: the client's), `caller` has at least
    `pid` and `uid` where they are known. `bench` is the daemon's live side: None without a daemon, and until the
    shim has permitted the operation. `record` collects what the handler adds to the argv record's end (`lab_before`,
    `lab_after`). `wait_data(directory, seconds)` sleeps until that journal may have grown and says whether the caller
    still listens. `level` is the policy level in force, once the shim has decided. `flush` hands on what was answered
    so far. `on_error`, where a face sets it, takes errors instead of stderr. `hop(function, *args, **kw)` runs an async
    function of the bench on the daemon's loop. `check_cancelled()` raises when the caller has hung up. `slice`, for a
    call that another machine sends, is the lab that it brought: its file here, and what a command must carry to mean
    it where it comes from.
    """

    def __init__(
        self,
        *,
        face: str,
        argv: list[str],
        cwd: str,
        env: dict[str, str],
        out: Callable[[bytes], None],
        err: Callable[[bytes], None],
        read_stdin: Callable[[], bytes] | None = None,
        wait_data: Callable[[str, float], bool] | None = None,
        columns: int = 80,
        stdin_tty: bool = False,
        stdout_tty: bool = False,
        stderr_tty: bool = False,
        caller: dict[str, Any] | None = None,
        program: str = "labd",
    ) -> None:
        self.face = face
        self.argv = argv
        self.cwd = cwd
        self.env = env
        self.out = out
        self.err = err
        self.read_stdin = read_stdin or (lambda: b"")
        self.wait_data = wait_data or _poll
        self.columns = columns
        self.stdin_tty = stdin_tty
        self.stdout_tty = stdout_tty
        self.stderr_tty = stderr_tty
        self.caller = caller or {}
        self.program = program
        self.json = False
        self.quiet = False
        self.lab_flag: str | None = None
        self.level = ""
        self.bench: Any = None
        self.record: dict[str, Any] = {}
        self.flush: Callable[[], None] = lambda: None
        self.on_error: Callable[[LabdError], None] | None = None
        self.hop: Callable[..., Any] = _no_loop
        self.check_cancelled: Callable[[], None] = lambda: None
        self.slice: tuple[str, str] | None = None
        self._lab: Lab | None = None
        self._lab_path: tuple[str | None, str] | None = None

    @property
    def lab_path(self) -> str:
        """The absolute path of the lab file in force for this call; it may not exist."""
        if self.slice is not None:
            return self.slice[0]
        if self._lab_path is None or self._lab_path[0] != self.lab_flag:
            self._lab_path = (self.lab_flag, paths.lab_path(self.env, self.cwd, self.lab_flag))
        return self._lab_path[1]

    def lab(self) -> Lab:
        """The lab in force, read once a call. Raises NotFound when there is none, LabdError when it is broken."""
        if self._lab is None:
            from labd.lab import load

            self._lab = load(self.lab_path, self.env)
        return self._lab

    @property
    def color(self) -> bool:
        """Whether the answer on stdout may be coloured: a terminal, and NO_COLOR unset (no-color.org)."""
        if self.env.get("NO_COLOR"):
            return False
        return bool(self.env.get("CLICOLOR_FORCE")) or (self.stdout_tty and self.env.get("TERM") != "dumb")

    def note(self, text: str) -> None:
        """Tell something beside the answer, on stderr: a line, or under --json an object. Silent under --quiet."""
        if not self.quiet:
            self.reason(text)

    def reason(self, text: str) -> None:
        """Tell why an answer is empty, as a note that --quiet leaves: without it, nothing would be told at all."""
        if "labd " in text and (self.slice is not None or self.lab_flag is not None):
            from labd.lab.model import in_lab

            text = in_lab(text, self.lab_words()) or ""
        if self.json and self.face != "rpc":
            from labd.jsonlight import dumps

            self.err(encode(dumps({"note": text}) + "\n"))
        else:
            self.err(encode(f"labd: {text}\n"))

    def lab_words(self) -> str:
        """What a command must carry to mean this call's lab: "" or `--lab PATH ` with the path quoted for a shell."""
        if self.slice is not None:
            return self.slice[1]
        if self.lab_flag is None or self.lab_path == paths.lab_path(self.env, self.cwd, None):
            return ""
        import shlex

        return f"--lab {shlex.quote(self.lab_flag)} "

    def journal_dir(self, target: str, interface: str) -> str:
        """Where the journal of an interface of this call's lab is kept."""
        return paths.journal_dir(self.env, self.lab_path, target, interface)


#: Environment variable by which `labd mcp` says that a call is not typed: the face and the client's name.
FACE_VARIABLE = "LABD_FACE"


def face_of(env: dict[str, str]) -> tuple[str, dict[str, str]]:
    """The face that a command line came through, and what the record tells of the client behind it.

    Takes the variable out of `env`: hooks are not asked through that face.
    """
    face, _, client = env.pop(FACE_VARIABLE, "").partition(" ")
    return ("mcp", {"client": client}) if face == "mcp" else ("cli", {})


def encode(text: str) -> bytes:
    """Text as the bytes of the caller's terminal: UTF-8, with undecodable argv bytes given back as they came."""
    return text.encode("utf-8", "surrogateescape")


def _no_loop(function: Any, *args: Any, **named: Any) -> Any:
    raise AssertionError("no daemon's loop here: the operation must say where='daemon'")


def _poll(directory: str, seconds: float) -> bool:
    """Without a daemon nobody tells us of new bytes: look again soon."""
    import time

    time.sleep(min(seconds, 0.05))
    return os.path.isdir(directory)
