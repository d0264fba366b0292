"""Whether this Linux machine and its USB hubs get the power they need, from sysfs: no kernel log, no root.

A supply that sags makes adapters drop off the bus, and a capture then has gaps that look like a bad cable. Reads only;
what is not there makes an answer shorter, never an error.
"""

import glob
import os
from collections.abc import Iterator

#: What a hub without a supply of its own may hand on in all, in mA: 500 from its port, less what it takes itself.
BUS_POWERED_MA = 400

#: The bits of the Raspberry Pi firmware's word: too little voltage now, and at some time since the start.
_LOW_NOW, _LOW_EVER = 1, 1 << 16

_SELF_POWERED = 0x40
_HUB = "09"


def undervoltage(sys: str, word: int | None = None) -> str | None:
    """Why the machine's own supply is too weak, in words; None when it is not, or when nothing here tells.

    `word` is what `vcgencmd get_throttled` said, where somebody asked it.
    """
    for folder in sorted(glob.glob(os.path.join(glob.escape(sys), "class/hwmon/hwmon*"))):
        if _read(f"{folder}/name").startswith("rpi_volt") and _read(f"{folder}/in0_lcrit_alarm") == "1":
            return f"the supply voltage is or was too low ({folder}/in0_lcrit_alarm)"
    place = os.path.join(sys, "devices/platform/soc/soc:firmware/get_throttled")
    text = _read(place)
    if word is None:
        word = _hex(text)
    if word is not None and word & (_LOW_NOW | _LOW_EVER):
        when = "is too low now" if word & _LOW_NOW else "has been too low since the machine was started"
        return f"the supply voltage {when} (throttled={word:#x})"
    return None


def hub_troubles(sys: str) -> Iterator[tuple[str, str]]:
    """(USB port or hub, what is wrong with its power) for each that is short of it."""
    base = os.path.join(sys, "bus/usb/devices")
    for place in sorted(glob.glob(os.path.join(glob.escape(base), "*", "*-port*", "over_current_count"))):
        count = _read(place)
        if count.isdigit() and int(count):
            port = os.path.basename(os.path.dirname(place))
            yield port, f"USB port {port} cut the power {count} times as too much was drawn"
    try:
        names = sorted(os.listdir(base))
    except OSError:
        return
    for hub in names:
        if ":" in hub or hub.startswith("usb") or _read(f"{base}/{hub}/bDeviceClass") != _HUB:
            continue
        attributes = _hex(_read(f"{base}/{hub}/bmAttributes"))
        if attributes is None or attributes & _SELF_POWERED:
            continue
        below = [name for name in names if name.startswith(hub + ".") and ":" not in name and "." not in
                 name[len(hub) + 1 :]]  # fmt: skip
        drawn = sum(_milliamperes(_read(f"{base}/{name}/bMaxPower")) for name in below)
        if drawn > BUS_POWERED_MA:
            what = f"USB hub {hub} ({_read(f'{base}/{hub}/product') or 'no name'}) has no supply of its own"
            yield hub, f"{what}, and its {len(below)} devices may draw {drawn} mA where {BUS_POWERED_MA} are to be had"


def _milliamperes(text: str) -> int:
    number = text.removesuffix("mA").strip()
    return int(number) if number.isdigit() else 0


def _hex(text: str) -> int | None:
    try:
        return int(text, 16)
    except ValueError:
        return None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip()
    except OSError:
        return ""
