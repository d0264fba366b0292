"""The scanner gives every key and value of a file its place, whatever the file looks like."""

import tomllib

from hypothesis import given, settings

from labd.lab.change import lookup
from labd.lab.scan import Document, locate
from tests.lab.odd_files import odd_labs
from tests.lab.test_rewrite import scalars


@settings(deadline=None, max_examples=150)
@given(odd_labs())
def test_every_scalar_is_found_and_its_span_reads_as_its_value(text):
    data = tomllib.loads(text)
    document = Document(text)
    for path in scalars(data):
        found = document.find(path)
        assert found is not None, path
        assert tomllib.loads(f"v = {text[found[2].start : found[2].end]}")["v"] == lookup(data, path)


@settings(deadline=None, max_examples=150)
@given(odd_labs())
def test_the_statements_are_the_whole_text(text):
    document = Document(text)
    assert "".join(text[s.start : s.end] for s in document.statements) == text


def test_places_are_lines_and_columns_from_1():
    text = '# c\n[a]\n  b = { c = 1, "d.e" = [ { f = 2 } ] }\n[[g]]\nh = 1\n[[g]]\nh = """\nx"""\ni = 3\n'
    assert locate(text, ("a", "b")) == (3, 3)
    assert locate(text, ("a", "b", "d.e", 0, "f")) == (3, 28)
    assert locate(text, ("g", 1)) == (6, 3)
    assert locate(text, ("g", 1, "i")) == (9, 1)
    assert locate(text, ("g", 0, "missing")) == (4, 3)
    assert locate(text, ("nowhere",)) == (1, 1)


def test_strings_that_look_like_structure_are_strings():
    text = (
        "a = '''\n[x]\n# no\n''''\n"  # ends in a quote of its own
        'b = """\n\\"" ]""""\n'  # so does this, after an escaped one
        "c = '#'\n[real]\n"
    )
    data = tomllib.loads(text)
    document = Document(text)
    assert [s.path for s in document.statements] == [("a",), ("b",), ("c",), ("real",)]
    for key in "abc":
        span = document.find((key,))[2]
        assert tomllib.loads(f"v = {text[span.start : span.end]}")["v"] == data[key]
