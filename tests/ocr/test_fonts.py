"""Where fonts come from: PSF files, firmware images, learned ones; and what is broken is no font."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labd.errors import LabdError
from labd.ocr import firmware, learn, library, psf, reader
from labd.ocr.fonts import CP437, Array, Font, load, save
from labd.video.seek import CHART
from tests.ocr.rig import captured, draw, error_rate, screen, truth, vga


def _packed(font: Font, chars: str) -> list[bytes]:
    """The glyphs of those characters, the first eight columns, as a PSF file has them; blanks where there are none."""
    glyphs = dict(zip(font.chars, font.glyphs, strict=True))
    blank = np.zeros((16, 8))
    rows: list[Array] = [np.asarray(glyphs[char])[:, :8] if char in glyphs else blank for char in chars]
    return [np.packbits(np.asarray(row).astype(bool), axis=1).tobytes() for row in rows]


def _psf2(glyphs: list[bytes], chars: str) -> bytes:
    table = b"".join(f"{char}".encode() + b"\xfe" + b"e\xcc\x81\xff" for char in chars)
    return b"\x72\xb5\x4a\x86" + struct.pack("<IIIIIII", 0, 32, 1, len(glyphs), 16, 16, 8) + b"".join(glyphs) + table


def _psf1(glyphs: list[bytes], chars: str) -> bytes:
    table = b"".join(struct.pack("<HHHH", 0xE000 + i, ord(char), 0xFFFE, 0x65) + b"\xff\xff"
                     for i, char in enumerate(chars))  # fmt: skip
    return b"\x36\x04" + bytes([3, 16]) + b"".join(glyphs) + table


def _eight_wide() -> Font:
    font = vga()
    return Font("eight", font.glyphs[:, :, :8], font.chars, "")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_a_psf_font_reads_what_was_drawn_with_it(tmp_path: Path, version: int, packed: bool) -> None:
    chars = "".join(vga().chars)
    if version == 1:
        chars = chars.ljust(512, "\xa0")
    data = (_psf1 if version == 1 else _psf2)(_packed(vga(), chars), chars)
    path = tmp_path / ("font.psf.gz" if packed else "font.psf")
    path.write_bytes(gzip.compress(data) if packed else data)
    font = psf.read_psf(str(path))
    assert (font.name, font.width, font.height) == ("font", 8, 16)
    picture = draw(_eight_wide(), truth("p0").split("\n"), (640, 400))
    assert reader.read(picture, fonts=[font]).text == truth("p0")


@given(
    st.binary(max_size=300), st.sampled_from([b"", b"\x36\x04", b"\x72\xb5\x4a\x86", b"\x72\xb5\x4a\x86" + bytes(28)])
)
def test_what_is_no_psf_font_is_refused(data: bytes, head: bytes) -> None:
    with contextlib.suppress(ValueError):
        psf.parse(head + data, "x", "x")


def _vga_table() -> bytes:
    return b"".join(_packed(vga(), "".join(CP437)))


def test_the_font_in_a_vga_bios_is_that_of_the_text_mode(tmp_path: Path) -> None:
    image = tmp_path / "vgabios.bin"
    image.write_bytes(b"\x55\xaa" + bytes(70) + _vga_table() + bytes(900))
    fonts = {font.name: font for font in firmware.read_firmware(str(image))}
    assert set(fonts) == {"vga-8x16", "vga-9x16"}
    assert reader.read(screen("linux_p0"), fonts=[fonts["vga-9x16"]]).text == truth("p0")


def test_the_font_in_a_boot_loader_is_that_of_framebuffer_consoles(tmp_path: Path) -> None:
    image = tmp_path / "u-boot.rom"
    image.write_bytes(bytes(5000) + _vga_table())
    (font,) = firmware.read_firmware(str(image))
    assert (font.name, font.width) == ("kernel-8x16", 8)


def test_the_font_of_uefi_is_found_in_its_packed_volume(tmp_path: Path) -> None:
    def records(chars: str, rows: bytes) -> bytes:
        return b"".join(struct.pack("<HB", ord(char), 0) + rows for char in chars)

    volume = bytes(500) + records("".join(map(chr, range(0x21, 0x7F))), b"\x18" * 19) + bytes(22)
    volume += bytes(99) + records("↑↓", b"\x3c" * 19) + bytes(22)
    packed = lzma.compress(volume, lzma.FORMAT_ALONE)
    head = bytes.fromhex("98584eee143959429d6edc7bd79403cf") + struct.pack("<HH", 24, 1)
    image = tmp_path / "OVMF.fd"
    elsewhere = bytes.fromhex("98584eee143959429d6edc7bd79403cf") + b"\xff" * 40  # in a list of GUIDs
    image.write_bytes(b"junk" * 20 + elsewhere + bytes(4) + head + packed)
    (font,) = firmware.read_firmware(str(image))
    assert (font.name, font.height, len(font.chars)) == ("efi-8x19", 19, 96)
    assert {"A", "↑"} <= set(font.chars)


@given(st.binary(max_size=2000))
def test_an_image_without_a_font_has_none(data: bytes) -> None:
    assert firmware._pc_fonts(data + firmware._LETTER_A, "x") == []
    assert firmware._efi_fonts(firmware._LZMA_SECTION + data, "x") == []


@pytest.mark.parametrize(
    ("name", "needs", "says"),
    [("seabios_ipxe", "vga-9x16", "No bootable device."), ("ovmf_menu", "efi-8x19", "Boot Maintenance Manager")],
)
def test_this_machines_own_firmware_reads_its_own_screens(tmp_path: Path, name: str, needs: str, says: str) -> None:
    fonts = library.find_fonts({"HOME": str(tmp_path)})
    if needs not in [font.name for font in fonts]:
        pytest.skip(f"no firmware image with the font {needs} is installed")
    page = reader.read(screen(name), fonts=fonts)
    assert (page.font, page.score) == (needs, 1.0)
    assert says in page.text
    box = (240, 0, 1680, 1080)
    through = reader.read(captured(screen(name), (1920, 1080), box), fonts=fonts)
    assert error_rate(page.text, through.text) < 0.005


def test_what_was_dug_out_is_kept_until_the_image_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "u-boot.rom"
    image.write_bytes(bytes(50) + _vga_table())
    monkeypatch.setattr(library, "FIRMWARE", ((str(tmp_path / "missing"), str(image)),))
    monkeypatch.setattr(library, "PSF_PLACES", ())
    env = {"HOME": str(tmp_path)}
    (first,) = library.find_fonts(env)
    asked: list[str] = []
    monkeypatch.setattr(firmware, "read_firmware", lambda path: asked.append(path) or [])
    (again,) = library.find_fonts(env)
    assert again.same_pictures(first)
    assert not asked
    os.utime(image, (1, 1))
    assert library.find_fonts(env) == []
    assert asked == [str(image)]


def test_a_learned_font_is_kept_and_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "FIRMWARE", ())
    monkeypatch.setattr(library, "PSF_PLACES", ())
    env = {"XDG_STATE_HOME": str(tmp_path)}
    path = library.keep(vga(), env)
    (Path(path).parent / "torn.npz").write_bytes(Path(path).read_bytes()[:200])
    (Path(path).parent / "other.npz").write_bytes(b"no font")
    (found,) = library.find_fonts(env)
    assert found.same_pictures(vga())
    assert os.listdir(Path(path).parent) and not [name for name in os.listdir(Path(path).parent) if ".new" in name]


def test_a_font_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "in-the-way.npz").mkdir()
    with pytest.raises(LabdError, match="can't be stored"):
        save(vga(), str(tmp_path / "in-the-way.npz"))
    assert os.listdir(tmp_path) == ["in-the-way.npz"]
    with pytest.raises(OSError, match="No such file"):
        load(str(tmp_path / "none.npz"))


def _chart_screen() -> Array:
    return draw(vga(), ["boot> help", *(_drawable(line) for line in CHART), "boot>"], (720, 400))


def _drawable(line: str) -> str:
    """The chart with blanks for the few characters that the test's font does not have."""
    return "".join(char if char in vga().chars else " " for char in line)


def test_a_font_is_learned_from_the_chart_in_native_pixels() -> None:
    font, facts = learn.learn(_chart_screen(), [_drawable(line) for line in CHART], "new", [])
    assert (font.width, font.height, font.exact, facts["lines"]) == (9, 16, True, 6)
    assert reader.read(screen("linux_p0"), fonts=[font]).text == truth("p0")


def test_a_font_is_learned_through_a_capture_device_from_lines_that_a_serial_console_said() -> None:
    said = ["U-Boot 2023.01", "Loading kernel", *truth("p0").split("\n"), "not on the screen yet"]
    font, facts = learn.learn(captured(screen("linux_p0"), (1280, 720)), said, "soft", [])
    assert not font.exact
    assert facts["right"] > 0.99
    page = reader.read(captured(screen("linux_p1"), (1280, 720)), fonts=[font])
    assert page.font == "soft"
    assert error_rate(truth("p1"), page.text) < 0.005


@pytest.mark.parametrize("lines", [truth("p1").split("\n"), ["something else entirely"] * 3, ["x"]])
def test_a_text_that_is_not_on_the_screen_teaches_nothing(lines: list[str]) -> None:
    with pytest.raises(LabdError, match="does not show that text"):
        learn.learn(screen("linux_p0"), lines, "new", [])
