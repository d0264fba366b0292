"""The ten ways in which a whole-document edit with tomlkit damages a file: none of them happens to a lab.

Each test has one way's name, makes the edit, and compares the whole text, so that nothing can hide.
"""

import tomllib

from labd.lab.change import Add, Append, Remove, Set, Unset
from labd.lab.rewrite import rewrite

LAB = """\
# my lab
[lab]
name = "x"   # lab name

# board A, do not touch
[target.a]
arch = "arm64"

[[target.a.trigger]]
match = "one"   # first

# second trigger
[[target.a.trigger]]
match = "two"

# board B
[target.b]
arch = "x86"

# tail comment
"""

SPLIT = """\
[[fruit]]
name = "apple"

[settings]
color = true

[[fruit]]
name = "banana"
"""


def test_1_appending_to_an_array_of_tables_leaves_the_next_tables_comment_and_blank_line():
    after = rewrite(LAB, [Append(("target", "a", "trigger"), {"match": "three"})])
    assert after == LAB.replace('match = "two"\n', 'match = "two"\n\n[[target.a.trigger]]\nmatch = "three"\n')


def test_2_removing_the_last_element_takes_its_own_comment_and_no_other():
    after = rewrite(LAB, [Remove(("target", "a", "trigger", 1))])
    assert after == LAB.replace('# second trigger\n[[target.a.trigger]]\nmatch = "two"\n\n', "")


def test_3_removing_the_first_element_leaves_the_seconds_comment():
    after = rewrite(LAB, [Remove(("target", "a", "trigger", 0))])
    assert after == LAB.replace('[[target.a.trigger]]\nmatch = "one"   # first\n\n', "")


def test_4_an_array_split_by_another_table_stays_split():
    after = rewrite(SPLIT, [Set(("fruit", 1, "name"), "cherry")])
    assert after == SPLIT.replace("banana", "cherry")
    after = rewrite(SPLIT, [Append(("fruit",), {"name": "date"})])
    assert after == SPLIT + '\n[[fruit]]\nname = "date"\n'
    after = rewrite(SPLIT, [Remove(("fruit", 0))])
    assert after == '[settings]\ncolor = true\n\n[[fruit]]\nname = "banana"\n'
    after = rewrite(SPLIT, [Remove(("fruit", 1))])
    assert after == '[[fruit]]\nname = "apple"\n\n[settings]\ncolor = true\n'


def test_5_a_table_under_dotted_keys_swallows_no_later_key():
    text = "a.b = 1\nz = 2\n"
    after = rewrite(text, [Add(("a", "new"), {"x": 1})])
    assert tomllib.loads(after) == {"a": {"b": 1, "new": {"x": 1}}, "z": 2}
    assert after.startswith(text.splitlines()[0]) and "\nz = 2\n" in after


def test_6_clearing_the_last_dotted_key_leaves_its_table():
    after = rewrite("x.y.z = 1\nw = 2\n", [Unset(("x", "y", "z"))])
    assert after == "x.y = {}\nw = 2\n"
    assert tomllib.loads(after) == {"x": {"y": {}}, "w": 2}


def test_7_a_new_key_goes_above_the_comment_of_the_sub_table():
    text = "[t]\na = 1\n\n# about s\n[t.s]\nb = 2\n"
    assert rewrite(text, [Set(("t", "c"), 3)]) == text.replace("a = 1\n", "a = 1\nc = 3\n")
    glued = "[t]\na = 1\n# about s\n[t.s]\nb = 2\n"
    assert rewrite(glued, [Set(("t", "c"), 3)]) == glued.replace("a = 1\n", "a = 1\nc = 3\n")


def test_8_a_sub_table_of_an_element_leaves_the_next_elements_comment():
    text = "[[t]]\nx = 1\n\n# second\n[[t]]\nx = 2\n\n# third\n[[t]]\nx = 3\n"
    after = rewrite(text, [Set(("t", 0, "y"), 9)])
    assert after == text.replace("x = 1\n", "x = 1\ny = 9\n")
    element = "[[t]]\nx = 1\n[t.run]\ncmd = 1\n\n# second\n[[t]]\nx = 2\n"
    assert rewrite(element, [Unset(("t", 0, "run", "cmd"))]) == element.replace("cmd = 1\n", "")
    assert rewrite(element, [Remove(("t", 0))]) == "# second\n[[t]]\nx = 2\n"


def test_9_crlf_stays_crlf_in_every_kind_of_edit():
    text = LAB.replace("\n", "\r\n")
    edits = (
        Set(("lab", "name"), "y"),
        Set(("lab", "new"), 1),
        Append(("target", "a", "trigger"), {"match": "three"}),
        Add(("target", "c"), {"arch": "riscv"}),
        Unset(("target", "a", "arch")),
        Remove(("target", "b")),
    )
    for change in edits:
        after = rewrite(text, [change])
        assert after.count("\n") == after.count("\r\n") and after.count("\r") == after.count("\n")
        assert after.replace("\r\n", "\n") == rewrite(LAB, [change])


def test_10_removing_a_table_takes_its_own_comment_and_leaves_the_files_last():
    after = rewrite(LAB, [Remove(("target", "b"))])
    assert after == LAB.replace('# board B\n[target.b]\narch = "x86"\n\n', "")
    after = rewrite(LAB, [Remove(("target", "a"))])
    assert after == (
        '# my lab\n[lab]\nname = "x"   # lab name\n\n# board B\n[target.b]\narch = "x86"\n\n# tail comment\n'
    )


def test_the_comment_that_opens_the_file_is_the_files():
    assert rewrite("# my lab\n[a.b]\nx = 1\n", [Remove(("a", "b"))]).startswith("# my lab\n")


def test_the_last_channel_of_an_implied_target_leaves_the_target():
    text = '# top\n\n[targets.pico.power]\ncycle_cmd = "x"\n\n[targets.b]\n'
    assert rewrite(text, [Remove(("targets", "pico", "power"))]) == "# top\n\n[targets.pico]\n\n[targets.b]\n"
    text = '[[targets.pico.serial]]\nname = "a"\n'
    assert rewrite(text, [Remove(("targets", "pico", "serial", 0))]) == "[targets.pico]\n"


def test_an_implied_table_gets_a_header_for_its_first_key():
    text = '# about power\n[targets.pico.power]\ncycle_cmd = "x"\n'
    after = rewrite(text, [Set(("targets", "pico", "host"), "b1")])
    assert after == f'[targets.pico]\nhost = "b1"\n\n{text}'


def test_inline_tables_and_lists_are_edited_in_place():
    text = 'targets = { pico = { host = "a", serial = [ { name = "c", baud = 1 } ] } }  # all\n'
    assert rewrite(text, [Set(("targets", "pico", "serial", 0, "baud"), 2)]) == text.replace("baud = 1", "baud = 2")
    after = rewrite(text, [Append(("targets", "pico", "serial"), {"name": "d"})])
    assert after.count("\n") == 1 and after.endswith("  # all\n")
    assert tomllib.loads(after)["targets"]["pico"]["serial"] == [{"name": "c", "baud": 1}, {"name": "d"}]
    after = rewrite(text, [Remove(("targets", "pico", "serial", 0))])
    assert tomllib.loads(after) == {"targets": {"pico": {"host": "a"}}}


def test_an_entry_of_a_list_over_several_lines_is_one_line():
    text = 'serial = [\n  { name = "a" },  # first\n  # about b\n  { name = "b" }  # second\n]\n'
    after = rewrite(text, [Remove(("serial", 0))])
    assert after == text.replace('  { name = "a" },  # first\n', "")
    after = rewrite(text, [Append(("serial",), {"name": "c"})])
    assert "# first\n" in after and "# about b\n" in after and "# second\n" in after
    assert tomllib.loads(after)["serial"] == [{"name": "a"}, {"name": "b"}, {"name": "c"}]


def test_a_file_without_a_final_newline_stays_one():
    for change in (Set(("a", "y"), 2), Set(("a", "x"), 2), Add(("b",), {"y": 1})):
        assert not rewrite("[a]\nx = 1", [change]).endswith("\n")
