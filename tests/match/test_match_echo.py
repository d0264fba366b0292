"""Which bytes are echo: what terminals, shells and line editors make of what was typed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labd.match import Matcher
from labd.match_echo import REACH, Echo


def echoes(sent: bytes, *chunks: bytes, offset: int = 0) -> list[tuple[bytes, bool]]:
    """(bytes, whether beyond doubt) of each echo in the stream, for what was sent at `offset`."""
    echo = Echo()
    echo.sent(offset, sent)
    at = 0
    for chunk in chunks:
        echo.feed(at, chunk)
        at += len(chunk)
    echo.quiet()
    data = b"".join(chunks)
    assert echo.decided == len(data)
    return [(data[span.start : span.stop], span.sure) for span in echo.spans]


@pytest.mark.parametrize(
    ("sent", "stream", "expected"),
    [
        (b"uname -a\r", b"uname -a\r\nLinux\r\n# ", [(b"uname -a\r\n", True)]),
        (b"uname -a\n", b"uname -a\r\r\nLinux\r\n# ", [(b"uname -a\r\r\n", True)]),
        (b"uname -a\r\n", b"uname -a\nLinux\n# ", [(b"uname -a\n", True)]),
        (b"ls\r", b"ls\r\na b\r\n# ", [(b"ls\r\n", True)]),
        (b"uname -a\r", b"[  1.0] usb: x\r\nuname -a\r\nLinux", [(b"uname -a\r\n", True)]),
        (b"uname -a\r", b"\x1b[?2004huname -a\r\n\x1b[?2004l\rLinux", [(b"uname -a\r\n", True)]),
        (b"uname -a\r", b"\x1b[1muname\x1b[0m -a\x1b[K\r\nLinux", [(b"\x1b[1muname\x1b[0m -a\x1b[K\r\n"[4:], True)]),
        (b"echo abcdefgh\r", b"echo abc \rdefgh\r\nabcdefgh", [(b"echo abc \rdefgh\r\n", True)]),
        (b"echo abcdefgh\r", b"echo abc\r\ndefgh\r\nabcdefgh", [(b"echo abc\r\ndefgh\r\n", True)]),
        (b"sleep\x03", b"sleep^C\r\n# ", [(b"sleep^C", True)]),
        (b"secret\r", b"\r\nWelcome\r\n# ", []),
        (b"uname -a\r", b"unme -a\r\nLinux", [(b"unme -a\r\n", True)]),
        (b"uname -a\r", b"unam", [(b"unam", False)]),
        (b"uname -a\r", b"unam[  1.0] usb: x\r\ne -a\r\nLinux\r\n",
         [(b"unam", False), (b"e -a\r\n", True)]),
        (b"a\r", b"apple\r\n", []),
        (b" ", b"=> ", [(b" ", False)]),
        (b"ls\r", b"# ls", [(b"ls", False)]),
        (b"1\r", b"Option 1\r\n> ", []),
        (b"root\rpw\rid\r", b"root\r\nPassword: \r\n# id\r\nuid=0\r\n# ", [(b"root\r\n", True), (b"id\r\n", True)]),
        (b"cat\rhello\r", b"cat\r\nhello\r\nhello\r\n", [(b"cat\r\n", True), (b"hello\r\n", True)]),
        (b"\r", b"\r\n# ", []),
    ],
)  # fmt: skip
def test_what_was_typed_is_told_from_what_the_target_says(sent, stream, expected):
    assert echoes(sent, stream) == expected
    assert echoes(sent, *[stream[n : n + 1] for n in range(len(stream))]) == expected


def test_an_echo_is_looked_for_only_behind_the_send_and_not_for_ever():
    assert echoes(b"uname -a\r", b"uname -a\r\n", offset=1) == []
    assert echoes(b"uname -a\r", b"x" * (REACH + 10) + b"\nuname -a\r\n") == []


def test_a_line_sent_in_parts_is_one_line():
    echo = Echo()
    echo.sent(0, b"una")
    echo.feed(0, b"un")
    echo.sent(2, b"me -a\r")
    echo.feed(2, b"ame -a\r\nLinux\r\n")
    assert [(span.start, span.stop) for span in echo.spans] == [(0, 10)]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=120), st.binary(max_size=20), st.lists(st.integers(0, 200), max_size=6))
def test_any_bytes_in_any_pieces_give_the_same_echo_and_all_is_decided(data, sent, places):
    at = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    pieces = [data[a:b] for a, b in pairwise(at)]
    assert echoes(sent, *pieces) == echoes(sent, data)


def test_a_flood_of_what_was_sent_costs_no_more_than_a_bounded_search():
    echo = Echo()
    echo.sent(0, b"a" * 4000 + b"b\r")
    echo.feed(0, b"x" + b"a" * 200_000)
    echo.quiet()
    assert echo.decided == 200_001


# -- in a wait -------------------------------------------------------------------------------------------------------


def run(pattern: str, stream: bytes, sent: bytes, at: int = 0, **options: object):
    matcher = Matcher([pattern], echo_of=[(at, sent)], **options)  # type: ignore[arg-type]
    for n in range(len(stream)):
        result = matcher.feed(n, stream[n : n + 1], n * 0.01)
        if result is not None:
            return result
    return matcher.finish()


COMMAND = b"apt install x && echo STEP_DONE\r"
ECHOED = b"# " + COMMAND + b"\n"


def test_a_wait_never_matches_the_echo_of_what_was_sent_and_says_which_bytes_were():
    stream = ECHOED + b"Reading\r\nSTEP_DONE\r\n# "
    result = run("STEP_DONE", stream, COMMAND, 2)
    assert (result.start, result.echo) == (stream.index(b"\nSTEP") + 1, ((2, len(ECHOED)),))


def test_an_echo_alone_is_no_match():
    assert run("STEP_DONE", ECHOED + b"E: failed\r\n# ", COMMAND, 2) is None
    assert run("(?s)STEP_DONE.*# ", ECHOED + b"E: failed\r\n# ", COMMAND, 2) is None
    assert run("STEP_DONE", ECHOED + b"E: failed\r\n# ", COMMAND, 2, raw=True) is None


def test_without_an_echo_the_very_words_that_were_sent_match():
    assert run("STEP_DONE", b"Reading\r\nSTEP_DONE\r\n", COMMAND).start == 9


def test_a_prompt_that_ends_in_the_key_that_was_sent_matches():
    assert run("=> ", b"\r\n=> ", b" ").start == 2


def test_a_part_of_an_echo_that_broke_off_is_no_match():
    assert run("echo STEP", b"# apt install x && echo STEP", COMMAND, 2) is None


def test_the_line_behind_an_echo_begins_a_line():
    assert run("^ok$", b"# frobnicate\r\nok\r\n", b"frobnicate\r", 2).start == 14
