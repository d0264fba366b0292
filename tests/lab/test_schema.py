"""The table of keys and the rules for values agree with each other and with what operations offer."""

import pytest

from labd.lab import schema
from labd.lab.validate import is_name, problems, value_problem

TABLES = [schema.HOST, schema.TARGET, schema.SERIAL, schema.POLICY, schema.JOURNAL, *schema.SINGLE_CHANNELS.values()]
FIELDS = [field for table in TABLES for field in table.values()]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.key)
def test_every_default_is_a_valid_value(field):
    if field.default is not None:
        assert value_problem(field, field.default) == ""


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.key)
def test_a_value_of_another_type_is_refused_for_every_field(field):
    for wrong in ([], {}, None):
        assert value_problem(field, wrong).startswith("must be")


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.key)
def test_every_field_says_what_it_is(field):
    assert field.help and field.flags and all(flag.startswith("-") for flag in field.flags)


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("device", ["/dev/ttyUSB0", "loopback:uboot", "loopback:./dut.toml", "rfc2217://h:4000", "socket://h:1",
                    "board:pi", "./pty", "rfc2217://h:4000?logging=debug"],
         ["", " ", "ttyUSB0", "COM3", "rfc2217:h", "socket://h", "socket://h:0", "loopback:", "http://x:1"]),
        ("baud", [50, 115200, 20_000_000], [49, 0, -1, 20_000_001, 9600.0, "9600", True]),
        ("stopbits", [1, 1.5, 2, 2.0], [0, 3, 1.25, "1", True, float("nan")]),
        ("eol", ["cr", "lf", "crlf", "none", "\r", "\n", "\r\n", ""], ["CR", "x"]),
        ("encoding", ["utf-8", "latin-1", "cp437"], ["utf-9", "", "base64"]),
        ("prompt", ["# $", ""], [1, "a\0"]),
    ],
)  # fmt: skip
def test_values_of_a_serial_interface(key, good, bad):
    field = schema.SERIAL[key]
    assert [value for value in good if value_problem(field, value)] == []
    assert [value for value in bad if not value_problem(field, value)] == []


def test_names_cannot_leave_their_directory():
    assert all(map(is_name, ("pico", "a", "9", "b-1.x_y", "a" * 64)))
    assert not any(map(is_name, ("", ".", "..", "-x", "_x", "a/b", "a b", "a=b", "ü", "a" * 65, "a\n")))


def test_an_empty_lab_and_an_empty_adb_channel_are_valid():
    assert problems({}) == []
    assert problems({"targets": {"tablet": {"adb": {}}}}) == []


def test_every_problem_is_found_not_only_the_first():
    found = problems({"targets": {"a": {"x": 1, "serial": [{"name": ""}]}, "b": 3}, "policy": {"level": "all"}})
    assert len(found) == 5
