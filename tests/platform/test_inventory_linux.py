"""What is read of a made-up Linux machine, also of one that has almost nothing."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labd.hookwords import Hook
from labd.platform.inventory import group_of, this_account, user_name
from labd.platform.inventory_linux import FIRMWARE, FONT_FOLDERS, LinuxInventory


def test_a_machine_without_proc_and_sys_has_no_answers_and_no_errors(tmp_path: Path) -> None:
    bare = LinuxInventory(str(tmp_path / "nothing"))
    assert bare.network_interfaces() == [] and bare.all_interfaces() == [] and bare.video_devices() == []
    assert bare.running({"brltty"}) == {} and bare.brltty_claims("0403", "6001") is None
    assert bare.port_facts("/dev/null", None) == {} and not bare.held_by_this_process("/dev/null")
    assert bare.listeners("udp", 67) == [] and bare.networks() == [] and not bare.descends(7, 1)
    assert bare.power_troubles() == [] and bare.usb_hubs() == [] and bare.hid_gadgets() == []
    assert not bare.may_serve() and bare.managed_by("eth0") is None and bare.drops_lines("/dev/null") is None
    assert bare.lock_file("/dev/ttyS0") is None and bare.console_fonts() == [] and not bare.is_metadata_node("/dev/x")


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
    who = this_account()
    assert who.name == user_name() and who.root == (os.geteuid() == 0) and group_of("/dev/null")
    assert who.active & who.known and not {"no-such-group"} & who.listed


@given(st.text(max_size=60))
def test_any_hook_text_is_understood_or_has_a_problem(text: str) -> None:
    hook = Hook(text)
    assert hook.problem or hook.programs


@pytest.mark.parametrize("text", ["", "garbage", "sl\n 0: zz:00 x\n", "\0\0\n\0", "x\n" + "0 " * 12])
def test_damaged_files_of_the_kernel_are_read_as_empty(tmp_path: Path, text: str) -> None:
    names = ("net/udp", "net/udp6", "net/tcp", "net/route", "self/status", "1/stat", "consoles")
    for name in names:
        (tmp_path / "proc" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc" / name).write_text(text)
    for name in ("busnum", "bDeviceClass", "bmAttributes", "bMaxPower"):
        (tmp_path / "sys/bus/usb/devices/1-1" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/bus/usb/devices/1-1" / name).write_text("09" if name == "bDeviceClass" else text)
    (tmp_path / "sys/devices/platform/soc/soc:firmware").mkdir(parents=True)
    (tmp_path / "sys/devices/platform/soc/soc:firmware/get_throttled").write_text(text)
    odd = LinuxInventory(str(tmp_path))
    assert odd.listeners("udp", 67) == [] and odd.listeners("tcp", 80) == [] and odd.networks() == []
    assert not odd.may_serve() and not odd.descends(1, 2) and odd.usb_hubs() == [] and odd.power_troubles() == []


def test_fonts_are_looked_for_where_the_reader_takes_them_from() -> None:
    from labd.ocr.library import FIRMWARE as IMAGES
    from labd.ocr.library import PSF_PLACES

    assert set(FONT_FOLDERS) <= set(PSF_PLACES) and set(FIRMWARE) <= {path for row in IMAGES for path in row}
