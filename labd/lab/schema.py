"""Every key that a lab file may hold, in one table: type, range, meaning, the flag that sets it.

Validation, the parameters of every `set` verb and the documentation are made from it. Data only: no rule
here. Light: the verbs of `serial` are made from it.
"""

from __future__ import annotations

from labd.lab.model import EOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Policy levels from the strictest to the most permissive (design section 7).
POLICY_LEVELS = ("help", "observe", "config", "simulated", "bench")


class Field:
    """One key of one table.

    `kind`: `str`, `int`, `float`, `bool`, `choice`; or a string with a rule of its own: `name`, `host` (a declared
    host or `local`), `device` (a serial device), `ip`, `path`, `command` (runs without a shell), `encoding`, `eol`.
    `flags` are the command line's words for it, `--key` if empty; `none` is a word that clears it. `unit` follows
    its help. `minimum` and `maximum` bound numbers, both included.
    """

    __slots__ = ("choices", "default", "flags", "help", "key", "kind", "maximum", "metavar", "minimum", "none",
                 "required", "unit")  # fmt: skip

    def __init__(
        self,
        key: str,
        help: str,  # noqa: A002 - the field's own word
        kind: str = "str",
        *,
        flags: tuple[str, ...] = (),
        choices: tuple[str, ...] = (),
        minimum: float | None = None,
        maximum: float | None = None,
        unit: str = "",
        metavar: str = "",
        required: bool = False,
        default: object = None,
        none: str = "",
    ) -> None:
        self.key = key
        self.help = help
        self.kind = kind
        self.flags = flags or ("--" + key.replace("_", "-"),)
        self.choices = choices
        self.minimum = minimum
        self.maximum = maximum
        self.unit = unit
        self.metavar = metavar
        self.required = required
        self.default = default
        self.none = none


def _fields(*fields: Field) -> Mapping[str, Field]:
    return {field.key: field for field in fields}


_HOST = Field("host", "the machine it is wired to; default: the target's host", "host", metavar="HOST")
_LEVEL = Field("level", "the most that may be done", "choice", choices=POLICY_LEVELS)

HOST = _fields(
    Field("ssh", "how to reach it: user@machine, as ssh takes it", required=True, metavar="DEST"),
    Field("description", "what it is, for people", flags=("--description", "--note"), metavar="TEXT"),
    Field("hostname", "its full name; on a machine of that name, it is this machine", metavar="FQDN"),
    Field("identity", "the private key file for ssh", "path"),
    Field("control_path", "the socket of a shared ssh connection", "path"),
    Field("labd_cmd", "the labd program over there; default: labd", metavar="CMD"),
)

TARGET = _fields(
    Field("host", "the machine it is wired to; default: this one", "host", metavar="HOST"),
    Field("description", "what it is, for people", flags=("--description", "--note"), metavar="TEXT"),
)

NETBOOT = _fields(
    Field("interface", "the Ethernet interface wired to the target", flags=("-i", "--interface"), metavar="IF"),
    Field("host_ip", "our address on that interface; default: 192.168.99.1", "ip", metavar="IP"),
    Field("tftp_root", "the directory that is served", "path", flags=("-r", "--tftp-root"), metavar="DIR"),
    Field("boot_file", "the file that it is told to load; default: the usual names that are there", metavar="FILE"),
    Field("http_port", "the port of the HTTP server; default: 80", "int", minimum=1, maximum=65535, metavar="PORT"),
    Field("content_type", "the Content-Type of what HTTP serves; default: by the file's name", metavar="TYPE"),
    _HOST,
)

SERIAL = _fields(
    Field("name", "the interface's name, unique in the target", "name", required=True),
    Field("device", "a tty (/dev/serial/by-id/…), loopback:DUT, rfc2217://host:port, socket://host:port, board:NAME",
          "device", flags=("-d", "--device"), required=True, metavar="DEVICE"),
    Field("baud", "speed of the line", "int", flags=("-b", "--baud"), minimum=50, maximum=20_000_000, unit="baud",
          default=115200),
    Field("bytesize", "data bits", "int", minimum=5, maximum=8, unit="bits", default=8),
    Field("parity", "parity bit", "choice", choices=("none", "even", "odd", "mark", "space"), default="none"),
    Field("stopbits", "stop bits: 1, 1.5 or 2", "float", choices=("1", "1.5", "2"), default=1),
    Field("flow", "flow control", "choice", choices=("none", "rtscts", "xonxoff"), default="none"),
    Field("eol", "what ends a line that is sent", "eol", choices=tuple(EOLS), default="cr"),
    Field("encoding", "the character encoding of the target's text", "encoding", default="utf-8"),
    Field("prompt", "the regular expression that its prompt matches", metavar="REGEX"),
    Field("power_sense_signal", "the modem line that follows the target's power", "choice", flags=("--sense",),
          choices=("cts", "dsr", "dcd", "ri"), none="none"),
    Field("power_button", "DTR is wired to the power button", "bool", default=False),
    Field("assert_dtr", "assert DTR on opening; default: yes, unless it is a power button", "bool"),
    Field("assert_rts", "assert RTS on opening", "bool", default=True),
    _HOST,
)  # fmt: skip

POWER = _fields(
    Field("cycle_cmd", "hook: the command that switches the target off and on", "command", metavar="CMD"),
    Field("on_cmd", "hook: the command that switches it on", "command", metavar="CMD"),
    Field("off_cmd", "hook: the command that switches it off", "command", metavar="CMD"),
    Field("state_cmd", "hook: the command that prints on or off", "command", metavar="CMD"),
    Field("serial_interface", "the serial interface whose modem lines sense or switch power", "name", metavar="IF"),
    Field("timeout_s", "how long a hook may take", "float", minimum=0.1, maximum=3600, unit="s"),
    _HOST,
)

VIDEO = _fields(
    Field("device", "a capture device: id, unique part of its name, index, path, URL or board:NAME",
          flags=("-d", "--device"), metavar="DEVICE"),
    _HOST,
)  # fmt: skip

HID = _fields(
    Field("cmd", "the command that injects input; what is to be done is appended to it", "command", metavar="CMD"),
    _HOST,
)

ADB = _fields(
    Field("serial", "the device's adb serial number; default: the only device", flags=("-s", "--serial"), metavar="ID"),
    Field("adb", "the adb program", "path", metavar="PATH"),
    _HOST,
)

POLICY = _fields(_LEVEL)

JOURNAL = _fields(
    Field("keep_mb", "how much of each interface's journal is kept", "int", minimum=1, maximum=10**9, unit="MiB",
          default=512),
    Field("keep_days", "how long it is kept", "int", minimum=1, maximum=36500, unit="days", default=90),
)  # fmt: skip

#: The channels of a target that are one table each. `serial` is an array of tables.
SINGLE_CHANNELS: Mapping[str, Mapping[str, Field]] = {
    "netboot": NETBOOT,
    "power": POWER,
    "video": VIDEO,
    "hid": HID,
    "adb": ADB,
}

#: What else a target's table may hold.
TARGET_TABLES = ("netboot", "serial", "power", "video", "hid", "adb", "policy")

#: What the file may hold at its top.
TOP_TABLES = ("hosts", "targets", "policy", "journal")
