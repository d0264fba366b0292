"""Reading the argv record: what must not be lost, and what must not be forged."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.argv_records import read


def lines(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def start(key, argv, **more):
    return {"rec": "start", "id": key, "argv": argv, **more}


def end(key, code=0, **more):
    return {"rec": "end", "id": key, "code": code, **more}


@given(st.lists(st.text(), min_size=1, max_size=5), st.booleans())
def test_every_argument_survives_exactly(argv, as_ascii):
    data = json.dumps(start("a", argv), ensure_ascii=as_ascii).encode("utf-8", "surrogatepass") + b"\n"
    try:
        data.decode()
    except UnicodeDecodeError:
        return  # lone surrogates have no UTF-8 form; writers escape them
    (one,) = read(data).invocations
    assert one.argv == argv


@pytest.mark.parametrize("nasty", ["a\nb", "\t", "", "a\u2028b", "a\x85b", "a\x0bb", '{"rec": "start"}', "\udcff"])
def test_no_argument_forges_a_second_invocation(nasty):
    record = read(lines(start("a", ["labd", nasty]), end("a")))
    assert [one.argv for one in record.invocations] == [["labd", nasty]]
    assert record.torn == ()


def test_a_start_without_an_end_has_no_exit_code():
    (one,) = read(lines(start("a", ["labd"]))).invocations
    assert one.code is None and not one.ended


@pytest.mark.parametrize("code", [None, True, "0", 0.0])
def test_an_exit_code_that_is_no_number_is_none(code):
    (one,) = read(lines(start("a", ["labd"]), end("a", code))).invocations
    assert one.code is None


def test_the_operation_is_what_the_parser_found_and_not_what_the_words_look_like():
    data = lines(start("a", ["labd", "serial", "-t", "dut", "add"], operation="serial add"),
                 start("b", ["labd", "power", "-t", "set", "on"], operation="power on"),
                 start("c", ["labd", "serial", "send", "dut", "--", "-h"], operation="serial send"))  # fmt: skip
    assert [one.operation for one in read(data).invocations] == ["serial add", "power on", "serial send"]


def test_ends_keep_the_order_in_which_they_were_written():
    record = read(lines(start("a", ["1"]), start("b", ["2"]), end("b"), end("a")))
    assert [one.argv for one in record.invocations] == [["1"], ["2"]]
    assert [one.argv for one in record.ends] == [["2"], ["1"]]


@pytest.mark.parametrize(
    "bad",
    [b"{", b"[]", b'{"rec": "start"}', b'{"rec": "middle", "id": "a"}', lines(end("zz")).strip(),
     lines(start("a", [])).strip()],
)  # fmt: skip
def test_what_can_not_be_read_is_reported(bad):
    record = read(lines(start("a", ["labd"]), end("a")) + bad + b"\n")
    assert len(record.torn) == 1
    assert len(record.invocations) == 1
