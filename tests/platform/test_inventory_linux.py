"""What is read of a made-up Linux machine, also of one that has almost nothing."""

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from labd.hookwords import Hook
from labd.platform.inventory_linux import LinuxInventory, group_of, listed_in_group, user_name


def test_a_machine_without_proc_and_sys_has_no_answers_and_no_errors(tmp_path: Path) -> None:
    bare = LinuxInventory(str(tmp_path / "nothing"))
    assert bare.network_interfaces() == [] and bare.all_interfaces() == [] and bare.video_devices() == []
    assert bare.running({"brltty"}) == {} and bare.brltty_claims("0403", "6001") is None
    assert bare.port_facts("/dev/null", None) == {} and not bare.held_by_this_process("/dev/null")


def test_long_program_names_are_found_by_what_the_kernel_keeps_of_them(tmp_path: Path) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/comm").write_text("a-very-long-nam\n")
    assert LinuxInventory(str(tmp_path)).running({"a-very-long-name-indeed"}) == {"a-very-long-name-indeed": 7}


def test_a_port_of_this_process_is_known_as_its_own() -> None:
    master, slave = os.openpty()
    try:
        assert LinuxInventory().held_by_this_process(os.ttyname(slave))
    finally:
        os.close(master)
        os.close(slave)


def test_metadata_nodes_of_a_camera_are_left_out(tmp_path: Path) -> None:
    for number, index in ((0, 0), (1, 1)):
        folder = tmp_path / f"sys/class/video4linux/video{number}"
        folder.mkdir(parents=True)
        (folder / "name").write_text("USB Video\n")
        (folder / "index").write_text(f"{index}\n")
    assert [video["index"] for video in LinuxInventory(str(tmp_path)).video_devices()] == [0]


def test_commented_rules_of_brltty_claim_nothing(tmp_path: Path) -> None:
    rules = tmp_path / "usr/lib/udev/rules.d/90-brltty-usb-generic.rules"
    rules.parent.mkdir(parents=True)
    rules.write_text('# ENV{PRODUCT}=="10c4/ea60/*"\nENV{PRODUCT}=="1a86/7523/*"\n')
    machine = LinuxInventory(str(tmp_path))
    assert machine.brltty_claims("10c4", "ea60") is None and machine.brltty_claims("1a86", "7523") == str(rules)


def test_who_we_are_and_whose_a_node_is() -> None:
    assert user_name() and group_of("/dev/null") and not listed_in_group("no-such-group")


@given(st.text(max_size=60))
def test_any_hook_text_is_understood_or_has_a_problem(text: str) -> None:
    hook = Hook(text)
    assert hook.problem or hook.programs
