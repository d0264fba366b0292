"""Emulated input: the keys that there are, the words that say what to do, and playing them on a device.

Shared by the operations `hid …` and by the bundled input helpers, which are programs of their own. Knows no lab.
"""

#: The bundled helpers that understand the words of `labd.hid.words`, and the verbs that each has beside them.
HELPERS: dict[str, tuple[str, ...]] = {
    "hidrig": ("power",),
    "ch9329": ("info", "baud"),
    "qmp": ("on", "off", "cycle", "state", "shot"),
    "hidgadget": ("setup",),
}
