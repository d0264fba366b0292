"""Which fonts there are on this machine: learned ones, the Linux console's, those of PC firmware.

Looked for once a process. What had to be dug out of firmware is kept in the state directory, since unpacking takes a
while; it is dug out again when the image changes.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import zlib
from collections.abc import Iterable, Mapping

from labd import paths
from labd.errors import LabdError
from labd.ocr import firmware
from labd.ocr.fonts import Font, load, save
from labd.ocr.psf import read_psf

#: Where distributions and Homebrew put console fonts (console-setup, kbd, terminus-font).
PSF_PLACES = (
    "/usr/share/consolefonts",
    "/usr/share/kbd/consolefonts",
    "/usr/lib/kbd/consolefonts",
    "/opt/homebrew/share/kbd/consolefonts",
)

#: Of a folder of hundreds, those that consoles really use: the first names are tried first.
PSF_NAMES = (
    "default8x16*", "Lat15-VGA16.*", "Lat15-Fixed16.*", "Uni2-Fixed16.*", "Lat15-Terminus16.*", "Uni2-Terminus16.*",
    "ter-116n.*", "ter-v16n.*", "Lat15-Terminus32x16.*", "Uni2-Terminus32x16.*", "ter-132n.*", "Lat15-VGA8.*",
    "Lat15-VGA14.*", "lat9w-16.*", "sun12x22.*", "solar24x32.*", "eurlatgr.*", "latarcyrheb-sun16.*",
    "latarcyrheb-sun32.*",
)  # fmt: skip

#: Firmware images with a font: the first that exists of each row.
FIRMWARE = (
    ("/usr/share/seabios/vgabios-stdvga.bin", "/usr/share/qemu/vgabios-stdvga.bin", "/usr/share/vgabios/vgabios.bin",
     "/opt/homebrew/share/qemu/vgabios-stdvga.bin", "/usr/local/share/qemu/vgabios-stdvga.bin"),
    ("/usr/lib/u-boot/qemu-x86/u-boot.rom", "/usr/share/qemu/u-boot.rom"),
    ("/usr/share/qemu/OVMF.fd", "/usr/share/ovmf/OVMF.fd", "/usr/share/OVMF/OVMF_CODE_4M.fd",
     "/usr/share/edk2/ovmf/OVMF_CODE.fd", "/usr/share/edk2/x64/OVMF_CODE.4m.fd",
     "/usr/share/edk2-ovmf/x64/OVMF_CODE.fd",
     "/opt/homebrew/share/qemu/edk2-x86_64-code.fd", "/usr/local/share/qemu/edk2-x86_64-code.fd"),
)  # fmt: skip

#: What to tell where there is no font at all.
NO_FONT = (
    "there is no console font here: labd video learn-font learns one; "
    "or install console-setup-linux, seabios or qemu, whose fonts are found"
)


def directory(env: Mapping[str, str]) -> str:
    """Where learned and dug-out fonts are kept."""
    return os.path.join(paths.state_dir(env), "fonts")


def find_fonts(env: Mapping[str, str]) -> list[Font]:
    """Every font that can be used here, learned ones first, each set of pictures once."""
    found: list[Font] = []
    for font in (*learned(env), *_psf_fonts(), *_firmware_fonts(env)):
        if not any(font.same_pictures(other) for other in found):
            found.append(font)
    return found


def learned(env: Mapping[str, str]) -> list[Font]:
    """The fonts that `labd video learn-font` stored, the newest first."""
    files = glob.glob(os.path.join(glob.escape(directory(env)), "*.npz"))
    return list(_readable(sorted(files, key=_age)))


def keep(font: Font, env: Mapping[str, str]) -> str:
    """Store a learned font under its name; the path. Raises LabdError."""
    path = os.path.join(directory(env), re.sub(r"[^A-Za-z0-9._-]", "-", font.name) + ".npz")
    save(font, path)
    return path


def _age(path: str) -> float:
    try:
        return -os.stat(path).st_mtime
    except OSError:
        return 0.0


def _readable(files: Iterable[str]) -> Iterable[Font]:
    for path in files:
        with contextlib.suppress(ValueError, OSError):
            yield load(path)


def _psf_fonts() -> Iterable[Font]:
    for place in PSF_PLACES:
        for name in PSF_NAMES:
            for path in sorted(glob.glob(os.path.join(place, name))):
                with contextlib.suppress(ValueError, OSError):
                    yield read_psf(path)


def _firmware_fonts(env: Mapping[str, str]) -> Iterable[Font]:
    for row in FIRMWARE:
        path = next(filter(os.path.exists, row), None)
        if path is not None:
            with contextlib.suppress(OSError):
                yield from _dug_out(path, env)


def _dug_out(path: str, env: Mapping[str, str]) -> list[Font]:
    """The fonts of an image, kept under a name that changes with the image. A full disk only costs time."""
    seen = os.stat(path)
    mark = zlib.crc32(f"{os.path.realpath(path)} {seen.st_size} {seen.st_mtime_ns}".encode())
    folder = os.path.join(directory(env), "firmware", f"{mark:08x}")
    kept = list(_readable(sorted(glob.glob(os.path.join(glob.escape(folder), "*.npz")))))
    if kept:
        return kept
    fonts = firmware.read_firmware(path)
    with contextlib.suppress(LabdError):
        for font in fonts:
            save(font, os.path.join(folder, f"{font.name}.npz"))
    return fonts
