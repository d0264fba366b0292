"""The key table: names as people write them, the US layout, near matches."""

import string

import pytest

from labd.errors import Usage
from labd.helpers.qmp import QCODES
from labd.hid import keys


def test_the_names_are_those_of_the_usage_tables():
    known = {"a": 4, "z": 29, "1": 30, "0": 39, "ENTER": 40, "ESC": 41, "F1": 58, "F12": 69, "PRINT_SCREEN": 70,
             "PAUSE": 72, "PAGE_UP": 75, "UP_ARROW": 82, "KEYPAD_NUMLOCK": 83, "KEYPAD_ONE": 89, "KEYPAD_ZERO": 98,
             "APPLICATION": 101, "F13": 104, "F24": 115, "LEFT_CONTROL": 224, "RIGHT_GUI": 231}  # fmt: skip
    assert {name: keys.key(name) for name in known} == known


@pytest.mark.parametrize(
    "words", ["print_screen PrintScreen print-screen prtsc", "PGUP page-up pageup", "ctrl CONTROL left_ctrl",
              "del Delete", "return ENTER cr", "win gui COMMAND super", "/ slash forward_slash", "A a"],
)  # fmt: skip
def test_case_dashes_and_aliases_do_not_matter(words: str):
    assert len({keys.key(word) for word in words.split()}) == 1


def test_every_printable_ascii_character_has_its_keys_and_no_two_share_them():
    printable = [char for char in string.printable if char not in "\r\x0b\x0c"]
    groups = keys.chords("".join(printable))
    assert len(set(groups)) == len(printable) == 97
    assert keys.chords("aA?|") == ((4,), (0xE1, 4), (0xE1, 0x38), (0xE1, 0x31))


def test_a_character_that_no_key_types_is_named_with_its_place():
    with pytest.raises(Usage, match=r"'ä' \(U\+00E4\), character 3 of 4.*nothing was typed"):
        keys.chords("abäc")


def test_an_unknown_key_has_near_matches_and_no_single_letters_among_them():
    with pytest.raises(Usage) as unknown:
        keys.key("entr")
    assert unknown.value.near[0] == "enter" and all(len(name) > 1 for name in unknown.value.near)
    with pytest.raises(Usage) as two:
        keys.key("?")
    assert "shift" in (two.value.hint or "")


def test_keys_joined_by_dashes_or_plus_are_a_chord():
    assert keys.chord("ctrl-alt-delete") == keys.chord("Ctrl+Alt+Del") == (0xE0, 0xE2, 0x4C)
    assert keys.chord("page-up") == (0x4B,) and keys.chord("-") == (0x2D,)
    with pytest.raises(Usage, match="no key 'ctlr'"):
        keys.chord("ctlr-c")
    for cut in ("ctrl-", "-ctrl", "ctrl+", "alt--"):
        with pytest.raises(Usage, match="no key"):
            keys.chord(cut)


def test_every_usage_has_one_name_that_leads_back_to_it():
    for usage in set(keys.NAMED.values()):
        assert keys.key(keys.name_of(usage)) == usage


def test_qemus_names_of_the_keys():
    told = {"enter": "ret", "space": "spc", "equals": "equal", "keypad_zero": "kp_0", "keypad_nine": "kp_9",
            "print_screen": "print", "page_up": "pgup", "right_alt": "alt_r", "a": "a", "1": "1", "f12": "f12",
            "application": "compose"}  # fmt: skip
    assert {name: QCODES[keys.key(name)] for name in told} == told
    assert len(set(QCODES.values())) == len(QCODES)
