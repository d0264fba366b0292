"""What stands in an answer: structure, never a substring."""

import pytest

from graders.reading import Read, json_in, size, values


@pytest.mark.parametrize(
    ("read", "text", "count"),
    [
        (Read(json=""), "[]", 0),
        (Read(json=""), "{}", 0),
        (Read(json=""), "null", 0),
        (Read(json="count"), '{"count": 0}', 0),
        (Read(json="count"), '{"count": 86}', 86),
        (Read(json="places"), '{"places": [1, 2]}', 2),
        (Read(json="places[].name"), '{"places": [{"name": "a"}, {"name": null}]}', 1),
        (Read(json="gone"), '{"places": [1]}', 0),
        (Read(json="[].seq"), '{"seq": 1}\n{"seq": 2}\n', 2),
        (Read(json=""), "no JSON", None),
        (Read(json=""), "0", 0),
        (Read(json="count"), "7\n", None),  # a bare number has no such place
        (Read(json="count", number=r"^(\d+)$"), "0\n", 0),
        (Read(json="count", number=r"^(\d+)$"), "86\n", 86),
        (Read(json="count", number=r"^(\d+)$"), '{"count": 86}\n', 86),
        (Read(json="rows", rows="table", header=1), "", 0),
        (Read(json="rows", rows="table", header=1), "NAME\na\n", 1),
        (Read(json="rows", rows="table", header=1), '{"rows": []}', 0),
        (Read(json="rows[].name|code"), '{"rows": [{"name": "a", "code": "b"}]}', 2),
        (Read(rows="lines"), "", 0),
        (Read(rows="lines"), "\n \n", 0),
        (Read(rows="lines"), "0 rows\n", 1),
        (Read(rows="table", header=1), "NAME  SIZE\n", 0),
        (Read(rows="table", header=1), "NAME  SIZE\na  1\nb  2\n", 2),
        (Read(rows="csv", header=1), 'name\n"two\nlines"\n', 1),
        (Read(rows="csv"), '"a' + "x" * 200_000, None),
        (Read(rows="lines", pattern="^row (.*)"), "10 rows:\nrow a\n", 1),
        (Read(number=r"^(\d+)$"), "0\n", 0),
        (Read(number=r"^(\d+)$"), "10 rows\n", None),
        (Read(number=r"^(\d+) rows"), "10 rows\n", 10),
        (Read(number=r"^(?:(\d+)|none)$"), "none\n", None),
        (Read(json=""), '{"country": null, "city": null}', 0),
        (Read(json=""), '{"ok": false}', 1),
        (Read(json="name"), '{"name": ""}', 0),
        (Read(json="x"), '{"x": 0.0}', 0),
        (Read(json="x"), '{"x": 0.5}', 1),
        (Read(json="count", number=r"^(\d+)$"), '{"count": "0"}', 0),
        (Read(json="count", number=r"^(\d+)$"), '{"count": "86"}', 86),
        (Read(json="count", number=r"^(\d+)$"), '{"count": 0.0}', 0),
        (Read(json="count", number=r"^(\d+)$"), '{"count": "none"}', None),
        (Read(json="count", number=r"^(\d+)$"), '{"count": true}', None),
        (Read(json="count", number=r"^(\d+)$"), '{"count": ', None),
        (Read(rows="table", header=1), "NAME  SIZE\n----  ----\n", 0),
        (Read(rows="table", header=1), "+------+\n| NAME |\n+------+\n", 1),
        (Read(rows="table", head="^name "), "name  type\n----\na  1\n", 1),
        (Read(rows="table", head="^name "), "tool: in: Norway\nname  type\na  1\n", 1),
        (Read(rows="table", head="^name "), "Traceback (most recent call last):\n  File x\n", None),
    ],
)
def test_how_much_an_answer_holds(read: Read, text: str, count: int | None) -> None:
    assert size(read, text) == count


def test_values_come_through_arrays_and_through_the_names_and_values_of_tables() -> None:
    text = '{"kinds": {"travel": {"types": ["bus", "rail"]}, "food": {"types": []}}}'
    assert values(Read(json="kinds{}"), text) == ["travel", "food"]
    assert values(Read(json="kinds[].types[]"), text) == ["bus", "rail"]
    assert values(Read(json="kinds[].types"), text) == ["bus", "rail"]


def test_values_of_rows_are_what_the_pattern_takes() -> None:
    assert values(Read(rows="lines", header=1, pattern=r"^\s*(\S+)"), "KIND N\n bus  3\nrail 4\n") == ["bus", "rail"]


def test_json_is_found_beside_notes_and_only_where_it_is_whole() -> None:
    assert json_in('tool: in: Norway\n{"rows": [1]}\ntool: note\n') == '{"rows": [1]}'
    assert json_in('{"note": 1}\n{\n "rows": [\n1]\n}') == '{\n "rows": [\n1]\n}'
    assert json_in('{"rows": [1, {"a": 2}') is None and json_in("tool: [1] is no answer") is None
    assert json_in("[" * 100_000) is None


def test_what_is_nested_too_deep_is_unreadable_and_no_error() -> None:
    assert size(Read(json=""), "[" * 100_000) is None
