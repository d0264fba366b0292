"""The matcher as a specification: what matches, when it is certain, and where it came from."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labd import view
from labd.errors import TimedOut, Usage
from labd.match import Matcher, Result
from labd.match_text import Kind, Window, play

QUIET = 0.3


def run(patterns: list[str], *chunks: bytes, **options: object) -> Result | None:
    """Feed the chunks at one moment, and end; the result, None if nothing matched."""
    matcher = Matcher(patterns, **options)  # type: ignore[arg-type]
    at = matcher.start
    for chunk in chunks:
        result = matcher.feed(at, chunk, 0.0)
        if result is not None:
            return result
        at += len(chunk)
    return matcher.finish()


def found(result: Result | None) -> tuple[str | None, int | None, int | None] | None:
    return None if result is None else (result.text, result.start, result.stop)


# -- the live edge ---------------------------------------------------------------------------------------------------


def test_a_prompt_without_a_newline_matches_as_soon_as_its_last_byte_is_there():
    matcher = Matcher(["login: "])
    assert matcher.feed(0, b"\r\nlogin:", 1.0) is None
    result = matcher.feed(8, b" ", 1.5)
    assert result is not None and (result.text, result.start, result.stop) == ("login: ", 2, 9)


def test_a_greedy_pattern_at_the_live_edge_waits_for_what_it_could_still_take():
    matcher = Matcher([r"rc=(\d+)"])
    assert matcher.feed(0, b"rc=1", 1.0) is None
    assert matcher.poll(1.1) is None
    result = matcher.feed(4, b"27\r\n# ", 1.2)
    assert result is not None and result.groups == ("127",)
    assert result.why == "its line ended"


def test_a_greedy_pattern_at_the_live_edge_is_taken_after_quiet_time_and_the_deadline_says_when():
    matcher = Matcher([r"rc=(\d+)"], quiet_ms=200)
    matcher.feed(0, b"rc=1", 1.0)
    matcher.poll(1.1)
    assert matcher.deadline == pytest.approx(1.2)
    assert matcher.poll(1.19) is None
    result = matcher.poll(1.2)
    assert result is not None and result.groups == ("1",) and "200 ms" in result.why


def test_a_prompt_anchored_to_the_end_matches_after_quiet_and_not_in_the_midst_of_a_line():
    matcher = Matcher([r"[#$] $"])
    assert matcher.feed(0, b"a # b\r\nroot@x:~# ", 1.0) is None
    assert matcher.poll(1.1) is None
    result = matcher.poll(1.0 + QUIET)
    assert result is not None and (result.start, result.stop) == (15, 17)


def test_a_set_of_prompts_of_one_width_needs_no_quiet_time():
    matcher = Matcher([r"[#$>] "])
    result = matcher.feed(0, b"root@x:~# ", 1.0)
    assert result is not None and result.text == "# "


def test_bytes_that_were_old_when_they_were_read_have_been_quiet_already():
    matcher = Matcher([r"\d+$"])
    matcher.feed(0, b"12", 100.0, arrived=50.0)
    assert matcher.poll(100.0) is not None


def test_nothing_is_due_while_nothing_came():
    assert Matcher(["x"]).deadline is None


def test_what_is_at_the_end_counts_when_there_will_be_no_more():
    assert found(run([r"\d+"], b"12")) == ("12", 0, 2)


# -- which one -------------------------------------------------------------------------------------------------------


def test_of_several_patterns_the_one_that_is_certain_first_wins_and_says_which():
    result = run(["never", "login: ", r"welcome.*"], b"welcome to login: \r\n")
    assert result is not None and (result.index, result.pattern) == (1, "login: ")


def test_of_two_patterns_at_the_same_byte_the_one_given_first_wins():
    result = run(["gin: ", "login: "], b"login: ")
    assert result is not None and result.index == 0


def test_groups_are_told_by_number_and_by_name():
    result = run([r"v(\d+)\.(?P<minor>\d+)(x)?\b"], b"U-Boot v2024.07 \r\n")
    assert result is not None
    assert result.groups == ("2024", "07", None) and result.named == {"minor": "07"}


def test_a_literal_is_taken_as_it_is_written():
    assert found(run(["a.c*"], b"abc a.c*", literal=True)) == ("a.c*", 4, 8)
    assert found(run(["LOGIN"], b"login", literal=True, ignore_case=True)) == ("login", 0, 5)


def test_a_pattern_may_reach_over_lines_and_over_reads():
    for cut in range(12):
        text = b"foo\r\n  bar\r\n"
        assert found(run([r"foo\s+bar"], text[:cut], text[cut:])) == ("foo\n  bar", 0, 10)
        assert found(run(["foo\r\n  bar"], text[:cut], text[cut:], literal=True)) == ("foo\n  bar", 0, 10)


# -- text as a person sees it ----------------------------------------------------------------------------------------


def test_a_coloured_prompt_matches_without_its_colours_and_maps_back_to_the_exact_bytes():
    raw = b"\x1b[01;32mroot@x\x1b[00m:~# "
    assert found(run(["root@x:~# "], raw)) == ("root@x:~# ", 8, len(raw))


def test_raw_matches_colours_and_carriage_returns():
    raw = b"\x1b[01;32mok\x1b[0m\r\n"
    assert found(run(["\x1b[01;32mok"], raw, raw=True, literal=True)) == ("\x1b[01;32mok", 0, 10)
    assert found(run([r"m\r\n"], raw, raw=True)) == ("m\r\n", 13, 16)
    assert found(run([r"\x00\xff"], b"a\x00\xff", raw=True)) == ("\x00\xff", 1, 3)


def test_a_character_split_over_reads_is_one_character():
    assert found(run(["5 €"], b"5 \xe2\x82", b"\xac", b"\n")) == ("5 €", 0, 5)


def test_nul_and_broken_bytes_hide_nothing_that_follows():
    raw = bytes(range(256)).replace(b"\n", b"") + b"login: "
    assert found(run(["login: "], raw)) == ("login: ", 255, 262)
    assert found(run(["login: "], b"\xff\xb7\x00 login: ")) == ("login: ", 4, 11)


def test_the_last_state_of_a_progress_bar_is_its_text_and_a_passing_state_is_not_missed():
    raw = b"".join(b"%5.1f%% downloading\r" % (n / 10) for n in range(1000)) + b"done\r\n"
    assert found(run(["^done$"], raw)) == ("done", len(raw) - 6, len(raw) - 2)
    at = raw.index(b"42.0%")
    assert found(run(["42.0%"], raw)) == ("42.0%", at, at + 5)
    assert run([r"^ *42\.0% \w+\n"], raw) is None, "a line that has ended shows its last state alone"


def test_a_countdown_redrawn_by_backspaces_matches_at_each_of_its_states():
    raw = b"stop autoboot:  3 \x08\x08\x08 2 \x08\x08\x08 1 "
    assert found(run(["autoboot:  2"], raw)) is not None
    assert found(run(["autoboot:  1"], raw)) is not None


def test_a_blank_that_the_cursor_left_behind_is_there_once_something_stands_behind_it():
    for cut in range(11):
        raw = b"foo\x1b[2Cfoo"
        assert found(run(["(?i)FOO.", "foo"], raw[:cut], raw[cut:])) == ("foo", 0, 3)
        assert found(run(["o  f"], raw[:cut], raw[cut:])) == ("o  f", 2, 8)


def test_a_line_without_an_end_is_looked_at_in_pieces_and_held_in_bounded_memory():
    matcher = Matcher([r"zz\d+", "END"])
    at = 0
    for _ in range(64):
        assert matcher.feed(at, b"x" * 40_000, float(at)) is None
        at += 40_000
    assert len(matcher._buffer) <= 1 << 15
    result = matcher.feed(at, b"END", float(at))
    assert result is not None and result.start == at


# -- death -----------------------------------------------------------------------------------------------------------


def test_a_kernel_panic_ends_the_wait_as_died():
    result = run(["login: "], b"[    3.1] Kernel panic - not syncing: VFS\r\n")
    assert result is not None and (result.ended, result.pattern, result.start) == ("died", "Kernel panic", 10)


def test_a_death_that_is_awaited_is_no_death():
    result = run(["Kernel panic - not syncing"], b"Kernel panic - not syncing: x\r\n")
    assert result is not None and result.matched


def test_own_death_patterns_are_regexes_and_defaults_can_be_off():
    result = run(["login: "], b"FAIL rc=3\r\n", death_patterns=["FAIL rc=[1-9]"])
    assert result is not None and (result.ended, result.index) == ("died", 9)
    assert run(["login: "], b"Kernel panic\r\n", deaths=()) is None


# -- bad patterns ----------------------------------------------------------------------------------------------------


def test_a_bad_regex_is_refused_with_its_position():
    with pytest.raises(Usage, match=r"position 6") as caught:
        Matcher(["lo(gin"])
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("pattern", ["", "x*", "^", "a?", "(foo)?"])
def test_a_pattern_that_matches_nothing_at_all_is_refused(pattern: str):
    with pytest.raises(Usage, match="empty"):
        Matcher([pattern])


def test_a_dollar_that_can_never_match_is_refused_with_its_place():
    with pytest.raises(Usage, match="position 9"):
        Matcher(["root@x:~ $ "])
    Matcher([r"a\$ ", "[$] ", r"ok$\n"])


def test_a_pattern_that_explodes_is_given_up_in_time():
    with pytest.raises(TimedOut, match="takes more than"):
        run([r"(a|aa)+(?<!b)!$"], b"a" * 5000 + b"\n")


# -- any chunking gives the same -------------------------------------------------------------------------------------

PARTS = st.sampled_from(
    [b"foo", b"bar", b"rc=", b"12", b"7", b" ", b"\r", b"\n", b"\r\n", b"\x08", b"\x1b[31m", b"\x1b[0m", b"\x1b[K",
     b"\x1b[2C", b"\x1b[3D", b"\x1b[H", b"\x1b]0;t\x07", b"\xe2\x82\xac", b"\xe2", b"\xff", b"\x00", b"\t", b"echo x",
     b"login: ", b"# ", b"\xc2\x85", b"\xe2\x80\xa8", b"\x1b", b"\x1b[", b"foo bar", b" \r", b"\x07"],
)  # fmt: skip
STREAM = st.lists(PARTS, max_size=30).map(b"".join)
PATTERNS = st.lists(
    st.sampled_from(["foo", "login: ", r"rc=(\d+)", r"[#$] ", r"foo\s+bar", r"(?s)foo.*bar", "bar\n", r"\w+€", r"^bar",
                     r"7$", r"o\n?b", "echo x", r"(?i)FOO.", r"[^f]oo", r"2(?!7)"]),
    min_size=1, max_size=4, unique=True,
)  # fmt: skip


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(at)]


@settings(max_examples=400, deadline=None)
@given(STREAM, PATTERNS, st.lists(st.integers(0, 1000), max_size=12), st.booleans(), st.booleans())
def test_any_chunking_gives_the_same_result(data, patterns, places, raw, sent):
    options = {"raw": raw, "echo_of": [(2, b"echo x\rfoo bar\r")] if sent else []}

    def once(chunks: list[bytes]) -> object:
        matcher = Matcher(patterns, **options)
        at, now = 0, 0.0
        for chunk in chunks:
            now += 0.01  # late enough for each to be looked at
            if (result := matcher.feed(at, chunk, now)) is not None:
                return result.index, result.text, result.start, result.stop, result.groups
            at += len(chunk)
        result = matcher.finish()
        return result and (result.index, result.text, result.start, result.stop, result.groups)

    whole = once([data])
    assert once(cut(data, places)) == whole
    assert once([data[n : n + 1] for n in range(len(data))]) == whole


@settings(max_examples=400, deadline=None)
@given(STREAM)
def test_the_text_is_what_serial_log_shows_and_every_character_maps_back_to_its_bytes(data):
    head, newline, tail = data.rpartition(b"\n")
    kind = Kind()
    pieces = kind.pieces(head + newline, 0, []) if newline else []
    pieces.append(kind.open(tail, len(head) + len(newline), []))
    shown = [view.plain(line) for line in head.split(b"\n")] if newline else []
    window = Window(pieces)
    assert window.text == "\n".join([*shown, view.plain(tail, partial=True)])
    for index, char in enumerate(window.text):
        start, stop = window.span(index, index + 1)
        assert 0 <= start <= stop <= len(data)
        if char in "ohringl€:=#":  # never a part of how an odd byte is shown
            assert data[start:stop].decode() == char


@settings(max_examples=200, deadline=None)
@given(STREAM, st.sampled_from(["utf-8", "latin-1", "cp437", "shift_jis", "no-such"]), st.booleans())
def test_a_played_line_is_what_view_shows_in_any_encoding(data, encoding, partial):
    line = data.replace(b"\n", b"")
    assert "".join(play(line, encoding, partial)[-1]) == view.plain(line, encoding, partial=partial)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.text(min_size=1, max_size=4), st.lists(st.integers(0, 1000), max_size=5))
def test_any_bytes_and_any_literal_never_raise(data, literal, places):
    for raw in (False, True):
        matcher = Matcher([literal], literal=True, raw=raw)
        at = 0
        for chunk in cut(data, places):
            if matcher.feed(at, chunk, float(at)) is not None:
                break
            at += len(chunk)
        else:
            matcher.finish()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.binary(min_size=1, max_size=5))
def test_raw_finds_exactly_the_first_place_of_the_bytes(data, needle):
    wanted = needle.decode("latin-1").encode("utf-8").decode("utf-8")
    result = run([wanted], data, raw=True, literal=True, deaths=())
    at = data.find(wanted.encode("utf-8"))
    assert found(result) == (None if at < 0 else (wanted.encode().decode("latin-1"), at, at + len(wanted.encode())))
