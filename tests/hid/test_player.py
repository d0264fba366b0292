"""Playing: what is pressed in which order, for how long, and that nothing stays down when it goes wrong."""

import pytest

from labd.errors import Unreachable, Usage
from labd.hid import reports, words
from labd.hid.device import Pace
from labd.hid.player import Player, seconds
from tests.hid.fake_device import FakeDevice


def played(text: str, device: FakeDevice | None = None) -> tuple[FakeDevice, list[float], list[str]]:
    device, slept = device or FakeDevice(), []
    answers = Player(device, Pace(), slept.append).play(words.script(text))
    return device, slept, answers


def test_a_capital_is_one_report_with_shift_and_one_without_anything():
    device, slept, _ = played("type aB")
    assert device.log == [("keys", 4), ("keys",), ("keys", 0xE1, 5), ("keys",)]
    assert slept == [0.01, 0.005, 0.01, 0.005]


def test_a_combo_presses_its_modifiers_first_and_a_lock_is_held_longer():
    device, slept, _ = played("combo delete ctrl alt\nkey caps_lock")
    assert device.log[:2] == [("keys", 0xE0, 0xE2, 0x4C), ("keys",)]
    assert slept == [0.03, 0.03, 0.2, 0.03]


def test_what_is_held_stays_held_under_what_is_typed_until_it_is_let_go():
    device, _, _ = played("down shift\ntype a\nup shift")
    assert device.log == [("keys", 0xE1), ("keys", 0xE1, 4), ("keys", 0xE1), ("keys",)]


def test_a_drag_moves_with_the_button_down():
    device, slept, _ = played("moveabs 1 2\nmdown\nmove 3 4\nmup\nclick right 2\nscroll -2")
    assert device.log == [("point", 1, 2), ("buttons", "left"), ("move", 3, 4, "left"), ("buttons",),
                          ("buttons", "right"), ("buttons",), ("buttons", "right"), ("buttons",),
                          ("scroll", -2)]  # fmt: skip
    assert slept[:2] == [0.06, 0.08]


def test_releaseall_lets_go_of_keys_and_buttons_and_forgets_them():
    device = FakeDevice()
    player = Player(device, Pace(), lambda s: None)
    player.play(words.script("down a\nmdown\nreleaseall"))
    assert device.log[-1] == ("release all",) and not player.held and not player.pressed


def test_a_device_that_goes_away_in_a_press_is_asked_to_let_go_and_the_failure_is_told():
    device = FakeDevice(fails_at=1)
    with pytest.raises(Unreachable, match="gone"):
        played("key a", device)
    assert device.log == [("keys", 4)]
    device = FakeDevice(fails_at=0)
    with pytest.raises(Unreachable):
        played("key a", device)
    assert device.log == [("keys",)]


def test_an_interrupt_while_a_key_is_down_lets_go_of_it():
    device = FakeDevice()

    def interrupted(s: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Player(device, Pace(), interrupted).play(words.script("key a"))
    assert device.log == [("keys", 4), ("keys",)]


@pytest.mark.parametrize(
    ("text", "why"),
    [("key a\nkey pound", "no key 'pound'"), ("combo a b c d e f g", "7 keys at once"),
     ("down a\ndown b\ndown c\ndown d\ndown e\ndown f\nkey g", "7 keys at once")],
)  # fmt: skip
def test_what_the_device_can_not_hold_or_has_not_is_told_before_anything_is_sent(text: str, why: str):
    device = FakeDevice()
    with pytest.raises(Usage, match=why):
        played(text, device)
    assert device.log == []


def test_a_chord_takes_longer_where_each_key_is_an_event_of_its_own():
    slept: list[float] = []
    pace = Pace(char_hold=1, char_gap=2, further=10)
    steps = words.script("type aB")
    Player(FakeDevice(), pace, slept.append).play(steps)
    assert slept == [1, 2, 11, 12] and seconds(steps, pace) == 26


def test_ping_and_version_answer():
    assert played("ping\nversion")[2] == ["OK", "1 fake"]


def test_how_long_it_takes_is_known_before():
    text = "type abcd\nkey a\nsleep 1.5\nclick left 2"
    _, slept, _ = played(text)
    assert sum(slept) <= seconds(words.script(text), Pace()) <= sum(slept) + 0.2


def test_reports_are_those_of_a_boot_keyboard_and_of_the_absolute_mouse():
    assert reports.keyboard([0xE1, 4]).hex() == "0200040000000000"
    assert reports.keyboard([0xE0, 0xE7, 4, 5]).hex() == "8100040500000000"
    assert reports.pointer((), 0x1234, 0x56).hex() == "003412560000"
    assert reports.pointer({"left", "middle"}, 32767, 0, -1).hex() == "05ff7f0000ff"
    assert reports.parts(-300) == [-127, -127, -46] and reports.parts(0) == []


def test_the_pointers_place_outlives_the_process_and_a_damaged_file(tmp_path):
    path = str(tmp_path / "at")
    assert (reports.Place(path).x, reports.Place(path).y) == (16384, 16384)
    reports.Place(path).put(5, 99999)
    assert (reports.Place(path).x, reports.Place(path).y) == (5, 32767)
    (tmp_path / "at").write_text("what")
    assert reports.Place(path).x == 16384
