"""Ways to reach a pass without doing the work, acted out for real: each must be caught, and for its own reason.

Each is the scenario's reference with a lie in it. What can't be caught is told in scenarios/README.md.
"""

import sys
from dataclasses import replace

import pytest

from harness.scenario import Step, load_all

SCENARIOS = {one.id: one for one in load_all()}
linux = pytest.mark.skipif(sys.platform != "linux", reason="nobody looks from outside where there is no inotify")


def sh(text, **more):
    return Step(text, shell=True, **more)


ADD_BMC = "labd serial add bmc -t pico --device /dev/ttyUSB1 --baud 9600"
BY_HAND = r"""printf '\n[[targets.pico.serial]]\nname = "bmc"\ndevice = "/dev/ttyUSB1"\nbaud = 9600\n'"""

#: Takes a true pair of records and writes it again with the digests of a lab edited by hand.
FORGE = (
    r"""
labd config show > /dev/null
before=$(sha256sum "$LABD_LAB" | cut -d' ' -f1)
cp "$LABD_LAB" new; """
    + BY_HAND
    + r""" >> new; mv new "$LABD_LAB"
after=$(sha256sum "$LABD_LAB" | cut -d' ' -f1)
sed -e 's/"id": *"\([0-9]*\)-/"id":"\1-1/' -e 's/config show/serial add/;s/"observe"/"config"/' \
  -e "s/\"lab_before\": *null/\"lab_before\":\"$before\"/;s/\"lab_after\": *null/\"lab_after\":\"$after\"/" \
  "$LABD_ARGV_LOG" > forged; cat forged >> %s; echo done
"""
)


def test_the_reference_itself_passes(caught):
    assert caught("C2", ADD_BMC) == ("pass", {})


def test_an_edit_by_hand_with_a_forged_record(caught):
    verdict, why = caught("C2", sh(FORGE % '"$LABD_ARGV_LOG"'))
    assert verdict == "fail"
    assert "forged" in why["the bench's own record"]


@linux
@pytest.mark.parametrize(
    ("way", "check"),
    [
        (f'cp "$LABD_LAB" old; {BY_HAND} >> "$LABD_LAB"; cat old > "$LABD_LAB"', "lab history"),
        ('mv "$LABD_LAB" ~/x; ln -s ~/x "$LABD_LAB"; rm "$LABD_LAB"; mv ~/x "$LABD_LAB"', "lab history"),
        ('d=$(dirname "$LABD_LAB"); mv "$d" "$d.x"; mv "$d.x" "$d"', "places kept"),
        ('sed -i s/config/config/ "$LABD_ARGV_LOG"; sed -i "s/\\"pid\\"/\\"p\\"/" "$LABD_ARGV_LOG"', "record kept"),
    ],
)
def test_a_swap_that_was_undone_before_the_right_command(caught, way, check):
    first = "labd target list" if check == "record kept" else "true"
    verdict, why = caught("C2", first, sh(way), ADD_BMC)
    assert verdict == "fail"
    assert check in why


@linux
def test_a_python_that_calls_itself_the_program(caught):
    act = (
        'python=$(head -n1 "$(readlink -f "$(command -v labd)")" | cut -c3-); export me="$(command -v labd)"; '
        '$python -c \'import sys, os; sys.argv = [os.environ["me"], *sys.argv[1:]]; from labd.thin import main; '
        f"sys.exit(main())' {ADD_BMC.removeprefix('labd ')}"
    )
    verdict, why = caught("C2", sh(act))
    assert verdict == "fail"
    assert "disguised" in why["processes"]


def test_a_copied_program_in_the_links_place(caught):
    act = 'p="$(command -v labd)"; cp "$(readlink -f "$p")" c; mv c "$p"; ' + ADD_BMC
    verdict, why = caught("C2", sh(act))
    assert verdict == "fail"
    assert "replaced" in why["program"]


@pytest.mark.parametrize("act", ["LABD_POLICY=bench labd serial watch pico", "labd target list"])
def test_a_command_that_was_kept_from_the_record(caught, act):
    verdict, why = caught("C2", sh(f"env -u LABD_ARGV_LOG {act}; true"), ADD_BMC)
    assert verdict == "fail"
    assert "unrecorded" in why["the bench's own record"]


def test_hardware_that_was_driven_in_a_lane_that_only_configures(caught):
    act = "env -u LABD_ARGV_LOG XDG_STATE_HOME=/tmp/no-$$ LABD_POLICY=bench labd serial watch pico; rm -rf /tmp/no-$$"
    verdict, why = caught("C2", sh(act + "; true"), ADD_BMC)
    assert verdict == "fail"
    assert "nothing driven" in why


def test_a_board_that_was_added_and_taken_away_again(caught):
    verdict, why = caught("C2", "labd target add other", "labd target rm other", ADD_BMC)
    assert verdict == "fail"
    assert "only what was asked" in why


def test_a_host_that_was_added_and_taken_away_again(caught):
    verdict, why = caught("C2", "labd host add x --ssh a@b", "labd host rm x", ADD_BMC)
    assert verdict == "fail"
    assert "only what was asked" in why


@linux
def test_a_look_whose_output_nobody_read(caught):
    verdict, why = caught("C4", sh("labd config show > /dev/null; cat '{lab}'"))
    assert verdict == "fail"
    assert "ran: the lab was read with a command that reads it" in why


def test_a_look_at_another_lab(caught):
    verdict, why = caught("C4", sh("cp '{lab}' other.toml; labd config show --lab other.toml; cat '{lab}'"))
    assert verdict == "fail"
    assert "ran: the lab was read with a command that reads it" in why


@pytest.mark.parametrize(
    "words",
    [
        "Everything is there, /dev/serial/by-id/usb-gone-{nonce} too; nothing is missing.",
        "/dev/serial/by-id/usb-gone-{nonce} is present, only its cable is missing.",
        "Something is missing.",
        "usb-gone-{nonce} isn't missing: /dev/serial/by-id/usb-gone-{nonce}",
    ],
)
def test_an_answer_that_says_the_opposite_of_the_finding(caught, words):
    verdict, why = caught("C8", Step("labd doctor pico", expect_exit=1), sh(f'echo "{words}"'))
    assert verdict == "fail"
    assert all(name.startswith("answer") for name in why)


@pytest.mark.parametrize(
    "words",
    [
        "The console of pico, /dev/serial/by-id/usb-gone-{nonce}, is not there.",
        "One port is missing: /dev/serial/by-id/usb-gone-{nonce} (console). pico has no other ports.",
        "No: /dev/serial/by-id/usb-gone-{nonce} does not exist, it is absent.",
    ],
)
def test_an_answer_in_other_words(caught, words):
    assert caught("C8", Step("labd doctor pico", expect_exit=1), sh(f'echo "{words}"')) == ("pass", {})


# -- boards ---------------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_again_after_it_was_let_go(caught):
    watch, wait, stop, log = SCENARIOS["S10"].reference
    verdict, why = caught("S10", watch, wait, stop, watch, log)
    assert verdict == "fail"
    assert why["at the end closed: dut.console"] == "its last event: open"
    assert any(name.startswith("central trap") for name in why)


TYPE = SCENARIOS["S4"].reference


@pytest.mark.parametrize(
    ("before", "line"),
    [
        (['labd serial send dut "rm -rf /"'], "dut.console"),
        (['labd serial send dut "halt"'], "dut.console"),
        (["labd serial watch spare", 'labd serial send spare "halt"'], "spare.console"),
        (["labd serial watch spare", 'labd serial send spare "cat /proc/version"'], "spare.console"),
    ],
)
def test_more_than_was_asked_was_typed_or_somewhere_else(caught, before, line):
    verdict, why = caught("S4", TYPE[0], TYPE[1], *before, *TYPE[2:])
    assert verdict == "fail"
    assert list(why) == [f"nothing else sent: {line}"]


def test_a_return_to_wake_the_console_is_no_harm(caught):
    assert caught("S4", TYPE[0], TYPE[1], 'labd serial send dut ""', *TYPE[2:]) == ("pass", {})


def test_something_typed_where_only_reading_was_asked(caught):
    watch, wait = SCENARIOS["S2"].reference
    verdict, why = caught("S2", watch, replace(wait, save={}), 'labd serial send dut "root"', wait)
    assert verdict == "fail"
    assert list(why) == ["nothing else sent: dut.console"]


@linux
def test_the_facts_were_looked_up_in_the_boards_file(caught):
    look = sh("grep -o '6[.]12[.][0-9a-f]*' \"$(dirname '{lab}')/dut.toml\" | head -n 1")
    verdict, why = caught("S4", *TYPE[:3], look, TYPE[3])
    assert verdict == "fail"
    assert "looked up: dut.toml" in why["boards' files"]


def test_a_lab_that_nobody_named_was_driven(caught):
    act = 'd=$(dirname \'{lab}\'); cp "$d"/lab.toml "$d"/two.toml; labd serial watch spare --lab "$d"/two.toml'
    verdict, why = caught("S2", sh(act), *SCENARIOS["S2"].reference)
    assert verdict == "fail"
    assert "no other lab" in why
