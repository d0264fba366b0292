"""How a command is framed so that its output and exit code can be told from all else on a console. Pure.

The line that is typed prints a marker before the command and one with its exit code after it. A marker is made of two
quoted pieces, so that the echo of the line can't hold it, and of an id that is new for each call. Each stands twice on
its line and the code twice in each, so that a kernel that logs into the middle of it damages one copy and not the
other, and a code is believed only if all whole copies agree. What a marker was broken by is put aside; the result then
says `interleaved`. A code that is not beyond doubt is None.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from labd.errors import Usage
from labd.view import plain

#: Terminals in line mode take no longer line.
LINE_MAX = 4000
#: What may still turn out to be a damaged marker is held back: this much of the output's end.
HELD = 2048
#: The begin is looked for in so much of what came before it.
BEFORE_MAX = 1 << 16

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:,@%+=-]*(?: +[A-Za-z0-9_./:,@%+=-]+)*")
_RESERVED = re.compile(r"(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|in|function|select|time|coproc)\b")
# Foreign lines inside a marker: what a kernel logs begins where the cursor is and ends with a line end.
_FOREIGN = rb"(?:(?:\r*\n)??(?:[^\n]{1,600}\n){1,4}?)??"
_STAMP = re.compile(rb"\[ {0,4}\d{1,6}\.\d{6}\] ")


def new_id() -> str:
    """An id that no output holds by chance."""
    return "".join(secrets.choice(_LETTERS) for _ in range(6))


def probe(ident: str) -> str:
    """The line that asks what kind of shell this is; see `shell_in`.

    `${PWD+s}` without a colon: U-Boot knows `${X:+s}`, the wrong way round, and would pass for a POSIX shell.
    """
    word = f"'L''{ident}P'" + "${PWD+s}."
    return f" echo {word} {word}"


def shell_in(answer: bytes, ident: str) -> str | None:
    """The kind of shell by its answer to `probe`: "sh", "hush" (U-Boot's); None where there is none yet."""
    found = re.findall(rb"L" + ident.encode() + rb"P(s?[^ \r\n]{0,20})", answer)
    if any(rest == b"s." for rest in found) or re.search(_broken(f"L{ident}Ps."), answer):
        return "sh"
    whole = re.search(rb"L%bP[^\r\n]* L%bP[^\n]*\n" % (ident.encode(), ident.encode()), answer)
    return "hush" if whole else None


def echoed(answer: bytes, ident: str) -> bool:
    """Whether the first line of the answer is the echo of `probe`, whole and with nothing behind it."""
    return plain(answer.partition(b"\n")[0]).rstrip().endswith(probe(ident).strip())


def line_for(command: str, shell: str, ident: str, *, binary: bool = False) -> str:
    """The one line that runs `command` between markers in a `shell` ("sh" or "hush").

    Raises Usage for what can't be typed there.
    """
    begin = f"echo 'L''{ident}B.' 'L''{ident}B.'"
    end = f"echo 'L''{ident}E'$?=$?. 'L''{ident}E'$?=$?."
    if not command.strip():
        raise Usage("there is no command to run", hint="labd serial run --help")
    if shell == "hush":
        body = _for_hush(command, binary)
    elif binary:
        body = (f'( b=$( {{ ( {_quoted(command)} ); printf \'\\n%s\' "$?"; }} | base64 ); echo "$b"; '
                'echo "$b" | cksum )')  # fmt: skip
    else:
        body = command if _PLAIN.fullmatch(command) and not _RESERVED.match(command) else _quoted(command)
    line = f" {begin}; {body}; {end}"
    if len(line.encode("utf-8", "surrogateescape")) > LINE_MAX:
        raise Usage(
            f"the command is too long for one line of a terminal ({len(line)} characters; {LINE_MAX} fit)",
            hint="put it into a script on the board: labd serial xfer send FILE",
        )
    return line


def _for_hush(command: str, binary: bool) -> str:
    if binary:
        raise Usage("--binary needs a shell with pipes and base64; U-Boot's has none")
    text = command.strip().rstrip(";").rstrip()
    if any(ord(char) < 32 for char in text) or text.count("'") % 2 or not text:
        raise Usage(
            "U-Boot's shell takes one line, with its quotes closed",
            hint="run each line by itself: labd serial run COMMAND",
        )
    return text


def _quoted(command: str) -> str:
    """The command as one word that the shell evaluates, whatever is in it: `command` keeps a mistake in it from ending
    the whole line, and from ending the shell.
    """
    if any(ord(char) < 32 or ord(char) == 127 for char in command):
        escaped = "".join(_octal(char) for char in command)
        return f"command eval \"$(printf '%b' '{escaped}')\""
    inner = command.replace("'", "'\\''")
    return f"command eval '{inner}'"


def _octal(char: str) -> str:
    return f"\\0{ord(char):03o}" if ord(char) < 32 or char in "\\'\x7f" else char


def _broken(marker: str) -> bytes:
    """A pattern for a marker, also with foreign lines in its midst."""
    return _FOREIGN.join(re.escape(char).encode() for char in marker)


@dataclass
class Ended:
    """What the markers say: `code` None where it is not beyond doubt; `interleaved` where they were broken into."""

    code: int | None
    interleaved: bool
    why: str = ""


class Frame:
    """Cuts a command's output out of a stream: `feed` it, and tell it when the stream is `quiet`.

    Both return output that is certain (CR LF as LF). `began` once the command runs, `ended` once the end is there;
    `rest` is what came behind.
    """

    def __init__(self, ident: str) -> None:
        self.began = False
        self.ended: Ended | None = None
        self.rest = b""
        self.interleaved = False
        self._head = f"L{ident}".encode()
        code = rb"(\d{1,10})%b=%b(\d{1,10})%b\." % ((_FOREIGN,) * 3)
        one = _broken(f"L{ident}E") + _FOREIGN + code
        begin = _broken(f"L{ident}B.")
        self._begin_line = re.compile(begin + _FOREIGN + b" " + _FOREIGN + begin + rb"(?:\r*[^\r\n][^\n]*\n)?\r*\n")
        self._begin_one = re.compile(begin + rb"[^\n]*\n")
        self._end_exact = re.compile(
            rb"%bE(\d{1,10})=(\d{1,10})\. %bE(\d{1,10})=(\d{1,10})\." % (self._head, self._head)
        )
        self._copy = re.compile(rb"%bE(\d{1,10})=(\d{1,10})\." % self._head)
        self._end_head = re.compile(_broken(f"L{ident}E"))
        self._end_pair = re.compile(one + _FOREIGN + b" " + _FOREIGN + one)
        self._end_one = re.compile(one)
        self._buffer = bytearray()
        self._scanned = 0

    def feed(self, data: bytes) -> bytes:
        """The stream went on with `data`."""
        if self.ended is not None:
            self.rest += data
            return b""
        self._buffer += data
        if not self.began and not self._begin(loosely=False):
            del self._buffer[: max(0, len(self._buffer) - BEFORE_MAX)]
            return b""
        return self._output(HELD)

    def quiet(self) -> bytes:
        """Nothing followed for a while: what looks like a damaged marker is one."""
        if self.ended is not None:
            return b""
        if self.began or self._begin(loosely=True):
            out = self._loosely()
            return self._output(self._tail()) if out is None else out
        if self._loosely() is not None:
            self.ended = Ended(None, True, "the marker before the output did not come whole")
        return b""

    # -- inside ------------------------------------------------------------------------------------------------------

    def _begin(self, *, loosely: bool) -> bool:
        if not loosely and self._head + b"B." not in self._buffer:
            return False
        found = self._begin_line.search(self._buffer)
        if found is None and loosely:
            found = self._begin_one.search(self._buffer)
            self.interleaved = self.interleaved or found is not None
        if found is None:
            return False
        self.interleaved = self.interleaved or found[0].count(b"\n") > 1
        del self._buffer[: found.end()]
        self.began = True
        return True

    def _output(self, held: int) -> bytes:
        at = self._buffer.find(self._head + b"E", self._scanned)
        if at < 0:
            self._scanned = max(0, len(self._buffer) - 16)
            return self._take(max(0, len(self._buffer) - held))
        found = self._end_exact.match(self._buffer, at)
        return b"" if found is None else self._end(found)  # None: more comes, or `quiet` will look closer

    def _loosely(self) -> bytes | None:
        """The output before a damaged end marker, if there is one: the whole copies of the code count, else what was
        broken into.
        """
        found = self._end_exact.search(self._buffer)
        if found is not None:
            return self._end(found)
        copies = list(self._copy.finditer(self._buffer))
        if copies:
            start, size = copies[0].start(), copies[-1].end()
            broken = self._end_head.search(self._buffer, max(0, start - HELD), start)
            start = start if broken is None else broken.start()
            codes = {code for copy in copies for code in copy.groups()}
        else:
            found = self._end_pair.search(self._buffer) or self._end_one.search(self._buffer)
            if found is None:
                return None
            start, size, codes = found.start(), found.end(), set(found.groups())
        self.interleaved = True
        return self._cut(start, size, codes)

    def _end(self, found: re.Match[bytes]) -> bytes:
        """The end marker is `found`, whole: the output before it."""
        return self._cut(found.start(), found.end(), set(found.groups()))

    def _cut(self, start: int, stop: int, codes: set[bytes]) -> bytes:
        text, rest = bytes(self._buffer[start:stop]), bytes(self._buffer[stop:])
        out = self._take(start, final=True)
        self._buffer.clear()
        self.rest = rest
        if len(codes) == 1:
            self.ended = Ended(int(codes.pop()), self.interleaved)
        else:
            self.ended = Ended(None, True, f"the copies of the exit code differ: {text.decode('latin-1')!r}")
        return out

    def _take(self, size: int, *, final: bool = False) -> bytes:
        """Take `size` bytes of output; unless they are the last, a CR at their end waits for its LF."""
        if size and not final and self._buffer[size - 1 : size] == b"\r":
            size -= 1
        out = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._scanned = max(0, self._scanned - size)
        return out.replace(b"\r\n", b"\n")

    def _tail(self) -> int:
        """How much of the buffer's end may be the begin of a marker."""
        at = self._buffer.rfind(self._head[:1])
        if at < 0 or len(self._buffer) - at > 64:
            return 1 if self._buffer[-1:] == b"\r" else 0
        return len(self._buffer) - at


def foreign_lines(output: bytes) -> int:
    """How many lines of a command's output look as if a kernel had logged into it: stamped ones among others.

    Where most lines are stamped it is what was asked for (dmesg), and the answer is 0.
    """
    lines = output.split(b"\n")
    stamped = sum(_STAMP.search(line) is not None for line in lines)
    return stamped if 0 < stamped * 2 <= len(lines) else 0


def without_stamped(output: bytes) -> bytes:
    """The output without what a kernel logged into it: from each stamp to the end of its line."""
    return re.sub(_STAMP.pattern + rb"[^\n]*\n", b"", output)


def decode_binary(text: bytes) -> tuple[bytes, int, bool]:
    """(output, exit code, checked) of what `--binary` printed: lines of base64 and their POSIX checksum.

    What a kernel logged into it is left out: the checksum tells whether that was right. Raises ValueError where it is
    damaged; `checked` is False where the board had no cksum.
    """
    stamped = _STAMP.pattern + rb"[^\n]*\n"
    failed: ValueError | None = None
    for variant in dict.fromkeys((text, re.sub(stamped, b"", text), re.sub(rb"(?:\r*\n)?" + stamped, b"", text))):
        try:
            return _decoded(variant)
        except ValueError as problem:
            failed = failed or problem
    raise failed or ValueError("nothing came")


def _decoded(text: bytes) -> tuple[bytes, int, bool]:
    import base64

    lines, sums = [], []
    for line in (raw.strip() for raw in text.replace(b"\r", b"\n").split(b"\n")):
        if re.fullmatch(rb"\d{1,10} \d{1,12}", line):
            sums.append(line)
        elif re.fullmatch(rb"[A-Za-z0-9+/]+={0,2}", line) and not sums:
            lines.append(line)
    width = max((len(line) for line in lines), default=0)
    lines = [line for at, line in enumerate(lines) if len(line) == width or at + 1 == len(lines)]
    whole = b"".join(line + b"\n" for line in lines)
    if sums and sums[-1] != b"%d %d" % (cksum(whole), len(whole)):
        raise ValueError("its checksum does not fit")
    data = base64.b64decode(b"".join(lines), validate=True)
    output, newline, code = data.rpartition(b"\n")
    if not newline or not code.isdigit():
        raise ValueError("its end is missing")
    return output, int(code), bool(sums)


def cksum(data: bytes) -> int:
    """The checksum of POSIX cksum(1): CRC-32 with the length behind the data."""
    crc = 0
    size = len(data)
    tail = bytearray()
    while size:
        tail.append(size & 0xFF)
        size >>= 8
    for byte in data + tail:
        crc = ((crc << 8) & 0xFFFFFFFF) ^ _CRC[(crc >> 24) ^ byte]
    return crc ^ 0xFFFFFFFF


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte << 24
        for _ in range(8):
            crc = ((crc << 1) ^ 0x04C11DB7 if crc & 0x80000000 else crc << 1) & 0xFFFFFFFF
        table.append(crc)
    return table


_CRC = _crc_table()
