"""The markers around a command: never found in their own echo, found through what a kernel prints into them."""

from __future__ import annotations

import subprocess
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labd.errors import Usage
from labd.run_frame import Frame, cksum, decode_binary, foreign_lines, line_for, new_id, probe, shell_in

ID = "abcdef"
KERNEL = b"[   37.361234] usb 1-1: new high-speed USB device\r\n"


def through(stream: bytes, *cuts: int) -> tuple[bytes, Frame]:
    """The output that a frame finds in `stream`, given in pieces."""
    frame = Frame(ID)
    out = b""
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    for start, stop in pairwise(places):
        out += frame.feed(stream[start:stop])
    return out + frame.quiet(), frame


def console(output: bytes, code: int) -> bytes:
    """What a shell on a terminal prints for a framed command."""
    marker = b"LabcdefE%d=%d." % (code, code)
    shown = output.replace(b"\n", b"\r\n")
    return b"LabcdefB. LabcdefB.\r\n" + shown + marker + b" " + marker + b"\r\n# "


@given(st.text(alphabet=st.characters(codec="utf-8")), st.sampled_from(["sh", "hush"]), st.booleans())
def test_a_typed_line_never_holds_its_own_markers(command: str, shell: str, binary: bool):
    ident = new_id()
    try:
        line = line_for(command, shell, ident, binary=binary)
    except Usage:
        return
    assert f"L{ident}" not in line and "\n" not in line and "\r" not in line
    assert f"L{ident}" not in probe(ident)


@given(st.binary(max_size=300), st.integers(0, 255), st.lists(st.integers(0, 1000), max_size=6))
@example(b"\r\r\n", 0, [22, 23, 24])
@example(b"", 127, [])
def test_output_and_code_are_found_however_the_stream_was_cut(output: bytes, code: int, cuts: list[int]):
    out, frame = through(console(output, code), *cuts)
    assert out == output.replace(b"\n", b"\r\n").replace(b"\r\n", b"\n")
    assert frame.ended is not None and (frame.ended.code, frame.ended.interleaved) == (code, False)
    assert frame.rest == b"\r\n# "


@given(st.integers(0, 255), st.integers(0, 10_000), st.lists(st.integers(0, 1000), max_size=4))
def test_a_kernel_line_anywhere_never_makes_a_wrong_code(code: int, place: int, cuts: list[int]):
    clean = console(b"one\ntwo\n", code)
    at = place % (len(clean) - 2)
    out, frame = through(clean[:at] + KERNEL + clean[at:], *cuts)
    assert frame.ended is not None and frame.ended.code in (code, None)
    if frame.ended.code is None:
        assert frame.ended.interleaved
    if frame.ended.interleaved and frame.ended.code is not None:
        assert out.replace(KERNEL.replace(b"\r\n", b"\n"), b"").startswith(b"one\ntwo\n")


@given(st.integers(0, 255), st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_byte_never_makes_a_wrong_code(code: int, place: int, byte: int):
    clean = bytearray(console(b"one\n", code))
    clean[place % len(clean)] = byte
    _, frame = through(bytes(clean))
    assert frame.ended is None or frame.ended.code in (code, None)


@given(st.integers(0, 255), st.integers(0, 10_000))
def test_a_lost_byte_never_makes_a_wrong_code(code: int, place: int):
    clean = console(b"one\n", code)
    at = place % len(clean)
    _, frame = through(clean[:at] + clean[at + 1 :])
    assert frame.ended is None or frame.ended.code in (code, None)


def test_copies_of_the_code_that_differ_are_no_code():
    _, frame = through(b"LabcdefB. LabcdefB.\r\nx\r\nLabcdefE3=3. LabcdefE4=4.\r\n")
    assert frame.ended is not None and frame.ended.code is None
    assert "differ" in frame.ended.why


def test_a_stamped_line_among_others_is_foreign_and_a_kernel_log_is_what_was_asked_for():
    assert foreign_lines(b"one\n" + KERNEL + b"two\n") == 1
    assert foreign_lines(KERNEL * 5) == 0
    assert foreign_lines(b"plain\n") == 0


@pytest.mark.parametrize(
    ("answer", "shell"),
    [
        (b" echo 'L''abcdefP'${PWD+s}. ...\r\nLabcdefPs. LabcdefPs.\r\n# ", "sh"),
        (b"echo ...\r\nLabcdefP. LabcdefP.\r\n=> ", "hush"),  # a real U-Boot 2023.01
        (b"echo ...\r\nLabcdefP${PWD+s}. LabcdefP${PWD+s}.\r\n=> ", "hush"),
        (b"echo ...\r\nLabc" + KERNEL + b"defPs. LabcdefP" + KERNEL + b"s.\r\n# ", "sh"),
        (b" echo 'L''abcdefP'...\r\necho: unknown command\r\nbmc> ", None),
        (b" echo 'L''abcdefP'...\r\nLabcdefP", None),
    ],
)
def test_a_shell_is_known_by_its_answer(answer: bytes, shell: str | None):
    assert shell_in(answer, ID) == shell


@pytest.mark.parametrize(
    "command",
    ["true; exit 3", "echo 'a  b'", "echo \"it's\" # and\n", "a=1\nif test $a = 1\nthen echo yes\nfi", "fi", "(exit 9)",
     "printf '\\\\x41\\tb'", "false &", "echo ends with \\", "sleep 0 && echo ünïcode"],
)  # fmt: skip
@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_real_shells_do_with_the_framed_line_what_they_do_with_the_command(command: str, shell: str):
    argv = ["busybox", "sh"] if shell == "busybox" else [shell]
    try:
        alone = subprocess.run([*argv, "-c", command], capture_output=True, timeout=20)
    except FileNotFoundError:
        pytest.skip(f"no {shell} here")
    safe = f"( {command}\n)" if "exit" in command else command
    framed = subprocess.run([*argv, "-c", line_for(safe, "sh", ID)], capture_output=True, timeout=20)
    frame = Frame(ID)
    out = frame.feed(framed.stdout) + frame.quiet()
    assert out == alone.stdout
    assert frame.ended is not None and frame.ended.code == alone.returncode


def test_the_checksum_is_that_of_cksum():
    for data in (b"", b"a", b"123456789", bytes(range(256)) * 40):
        said = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout.split()
        assert said == [b"%d" % cksum(data), b"%d" % len(data)]


@given(st.binary(max_size=400), st.integers(0, 255), st.integers(0, 4000), st.booleans())
def test_binary_output_comes_back_exact_or_not_at_all(data: bytes, code: int, place: int, foreign: bool):
    import base64
    import textwrap

    lines = textwrap.wrap(base64.b64encode(data + b"\n%d" % code).decode(), 76)
    whole = ("\n".join(lines) + "\n").encode()
    text = whole + b"%d %d\n" % (cksum(whole), len(whole))
    if foreign:
        at = place % len(text)
        text = text[:at] + KERNEL.replace(b"\r\n", b"\n") + text[at:]
    else:
        at = place % (len(text) - 1)
        text = text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]
    try:
        got, status, checked = decode_binary(text)
    except ValueError:
        return
    assert not checked or (got, status) == (data, code)


@pytest.mark.parametrize("command", ["", "   ", "x" * 5000])
def test_what_cannot_be_typed_is_said_before_anything_is(command: str):
    with pytest.raises(Usage):
        line_for(command, "sh", ID)


@pytest.mark.parametrize("command", ["a\tb", "echo 'open", "one\ntwo"])
def test_a_boot_loader_gets_one_line_with_its_quotes_closed(command: str):
    with pytest.raises(Usage):
        line_for(command, "hush", ID)
