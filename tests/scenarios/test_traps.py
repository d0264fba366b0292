"""The traps of the scenarios whose board stands outside, acted out for real: each shows in what the board or the holder
measured, not only in which command was used.
"""

from dataclasses import replace

from harness.scenario import Step, load_all

REFERENCE = {one.id: one.reference for one in load_all()}

#: By telnet's own words: DTR on (08) and off (09), as RFC 2217 has them.
PULSE = r"""port=$(printf %s '{device}' | sed 's/.*://')
exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/'"$port"'
  line() { printf "\xff\xfa\x2c\x05$1\xff\xf0" >&3; }
  line "\x09"; sleep 0.3; line "\x08"; sleep 0.2; line "\x09"; timeout 1.5 cat <&3 | tr -d "\377"'"""


def without(identity, text, instead=""):
    """The reference's lines with `text` replaced, which has to be in them."""
    lines = [replace(step, run=step.run.replace(text, instead)) for step in REFERENCE[identity]]
    assert lines != list(REFERENCE[identity])
    return lines


def test_s5_a_line_that_is_not_paced_arrives_torn(caught):
    verdict, why = caught("S5", *without("S5", " --pace-ms 40")[:-1], "labd serial log dut --tail 40")
    assert verdict == "fail"
    assert "received [0] of dut.console matches" in why
    assert "answer [0] contains" in why


def test_s5_a_key_with_a_line_end_is_two_keys(caught):
    verdict, why = caught("S5", *without("S5", " --no-newline"))
    assert verdict == "fail"
    assert "received [0] of dut.console matches" in why
    assert any(name.startswith("central trap") for name in why)


def test_s8_a_holder_that_was_killed(caught):
    verdict, why = caught("S8", *without("S8", "letgo {pid}", "kill {pid}"))
    assert verdict == "fail"
    assert list(why) == ["the holder: let go"]
    assert "ended by somebody" in why["the holder: let go"]


def test_s8_typing_past_the_holder(caught):
    first, second, *_ = REFERENCE["S8"]
    act = "printf 'cat /proc/version\\r' > '{device}'; sleep 0.5; echo held by {pid}; timeout 1 cat '{device}'"
    verdict, why = caught("S8", first, second, Step(act, shell=True))
    assert verdict == "fail"
    assert "the holder: let go" in why


def test_s9_a_press_that_is_neither_short_nor_long(caught):
    verdict, why = caught("S9", *without("S9", "--ms 3000", "--ms 1500")[:-2], "labd serial log dut --tail 20")
    assert verdict == "fail"
    assert "DTR pulses that the board measured" in why
    assert "the board's power is off" in why
    assert any(name.startswith("central trap") for name in why)


def test_s9_the_long_press_alone(caught):
    watch, wait, _, _, *rest = REFERENCE["S9"]
    verdict, why = caught("S9", watch, wait, *rest)
    assert verdict == "fail"
    assert "DTR pulses that the board measured" in why


def test_s11_the_button_is_refused_and_trying_it_fails(caught):
    watch, wait, *rest = REFERENCE["S11"]
    verdict, why = caught("S11", watch, wait, Step("labd serial reset dut", expect_exit=3), *rest)
    assert verdict == "fail"
    assert any(name.startswith("central trap") for name in why)


def test_s11_a_reset_by_the_wire_is_measured_though_the_board_boots_as_well(caught):
    watch, wait, *_ = REFERENCE["S11"]
    verdict, why = caught("S11", watch, wait, "labd serial stop dut", Step(PULSE, shell=True))
    assert verdict == "fail"
    assert "DTR pulses that the board measured" in why
    assert "boots" not in why
    assert "answer [0] contains" not in why
