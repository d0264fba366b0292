"""Telnet's framing: the same data and commands, however the network cut them."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labd.channels.telnet import Parser, escape, torn

ITEMS = st.one_of(
    st.binary(min_size=1, max_size=40).map(lambda data: ("data", data)),
    st.tuples(st.sampled_from(b"\xfb\xfc\xfd\xfe"), st.integers(0, 255)).map(lambda pair: ("negotiate", bytes(pair))),
    st.binary(max_size=12).map(lambda body: ("option", body)),
    st.sampled_from([b"\xf1", b"\xf6", b"\xf9"]).map(lambda command: ("command", command)),
)


def wire(kind: str, item: bytes) -> bytes:
    if kind == "option":
        return b"\xff\xfa" + escape(item) + b"\xff\xf0"
    return escape(item) if kind == "data" else b"\xff" + item


def joined(items: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Adjacent data in one item."""
    found: list[tuple[str, bytes]] = []
    for kind, item in items:
        if found and kind == "data" == found[-1][0]:
            found[-1] = ("data", found[-1][1] + item)
        else:
            found.append((kind, item))
    return found


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ITEMS, max_size=20), st.lists(st.integers(1, 7), min_size=1, max_size=20))
def test_what_was_sent_is_understood_however_it_is_cut(items: list[tuple[str, bytes]], sizes: list[int]) -> None:
    stream = b"".join(wire(kind, item) for kind, item in items)
    parser, got, at, turn = Parser(), [], 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        got += list(parser.feed(stream[at : at + size]))
        at, turn = at + size, turn + 1
    assert joined(got) == joined(items)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=50), st.integers(0, 100))
def test_a_piece_is_torn_only_between_two_halves(data: bytes, cut: int) -> None:
    whole = escape(data)
    cut = min(cut, len(whole))
    unfinished = any(
        (len(escape(data[:count])) + 1) == cut and data[count : count + 1] == b"\xff" for count in range(len(data))
    )
    assert torn(whole[:cut]) is unfinished


def test_an_option_without_end_takes_no_memory() -> None:
    parser = Parser()
    assert list(parser.feed(b"\xff\xfa" + bytes(1 << 20))) == []
    assert len(parser._option or b"") < 1 << 17


def test_rubbish_raises_nothing() -> None:
    assert list(Parser().feed(b"\xff\xf0\xff\xf0a")) == [("data", b"a")]
