"""What a machine still needs to be a bench: labd itself, packages, groups, udev rules. Proposes; does nothing.

Each function is pure in a `Machine` and an environment, so that the same plan can be made of any machine. A step whose
state is `done` needs nothing: doing all steps twice is doing them once.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from labd import __version__, paths
from labd.inventory import Machine, on_path, virtual
from labd.platform.net import find_program
from labd.udev_rules import RULES, RULES_FILE

#: `needed` is done by --yes, `optional` only where it is named by --only, `yours` can only be done by a person.
STATES = ("done", "needed", "optional", "yours")

#: Program that installs packages → its words before the names, and whether it needs root.
MANAGERS = {
    "apt-get": (("apt-get", "install", "-y", "--no-install-recommends"), True),
    "dnf": (("dnf", "install", "-y"), True),
    "pacman": (("pacman", "-S", "--needed", "--noconfirm"), True),
    "brew": (("brew", "install"), False),
}

#: What is looked for → what needs it, and its packages by manager ("" where that system has none or needs none).
PACKAGES = {
    "sz": ("labd serial xfer", ("lrzsz", "lrzsz", "lrzsz", "lrzsz")),
    "tesseract": (
        "reading text on screens",
        ("tesseract-ocr", "tesseract", "tesseract tesseract-data-eng", "tesseract"),
    ),
    "fonts": ("reading consoles on screens exactly", ("console-setup-linux", "kbd-misc", "kbd", "")),
    "dnsmasq": ("network boot", ("dnsmasq-base", "dnsmasq", "dnsmasq", "dnsmasq")),
    "ip": ("network boot", ("iproute2", "iproute", "iproute2", "")),
    "ethtool": ("taking a link down hard", ("ethtool", "ethtool", "ethtool", "")),
    "uhubctl": ("power by USB hubs", ("uhubctl", "uhubctl", "uhubctl", "uhubctl")),
    "adb": ("Android targets", ("adb", "android-tools", "android-tools", "android-platform-tools")),
    "ssh": ("hosts of the lab", ("openssh-client", "openssh-clients", "openssh", "")),
}

#: What plays the virtual boards, by manager.
BOARD_PACKAGES = (
    "qemu-system-x86 qemu-system-arm u-boot-qemu ovmf ipxe-qemu",
    "qemu-system-x86 qemu-system-aarch64 edk2-ovmf ipxe-roms-qemu",
    "qemu-system-x86 qemu-system-aarch64 edk2-ovmf",
    "qemu",
)

#: The groups that own serial ports, cameras and USB devices; of the first two, whichever this system uses.
SERIAL_GROUPS, OTHER_GROUPS = ("dialout", "uucp"), ("video", "plugdev")


class Command:
    """One program to run: its argv, and what it gets on stdin."""

    __slots__ = ("argv", "stdin")

    def __init__(self, argv: Sequence[str], stdin: str | None = None) -> None:
        self.argv = list(argv)
        self.stdin = stdin


class Step:
    """One thing that a bench needs: `name`, `state`, why it is so, the commands that would do it, and `after`, what a
    person has to do then. `root` says that the commands need root."""

    __slots__ = ("after", "commands", "detail", "name", "root", "state")

    def __init__(self, name: str, state: str, detail: str, commands: Sequence[Command] = (), *, root: bool = False,
                 after: str | None = None) -> None:  # fmt: skip
        assert state in STATES, state
        self.name = name
        self.state = state
        self.detail = detail
        self.commands = list(commands)
        self.root = root
        self.after = after


def plan(machine: Machine, env: Mapping[str, str], *, clone: str | None = None, user_only: bool = False) -> list[Step]:
    """Every step, done or not, in the order in which they are done. `clone` is a checkout of labd to install from.

    With `user_only`, none that needs root.
    """
    steps = [*_program(env, clone), *_packages(machine, env), *_boards(machine, env), *_groups(machine),
             *_udev(machine), *_lingering(machine, env)]  # fmt: skip
    return [step for step in steps if not (user_only and step.root)]


def _program(env: Mapping[str, str], clone: str | None) -> Iterator[Step]:
    """labd itself: the clone's, where there is one, and on PATH."""
    package = os.path.dirname(os.path.abspath(__file__))
    if clone is not None and os.path.realpath(os.path.join(clone, "labd")) != os.path.realpath(package):
        yield _from_clone(package, clone)
    found = on_path("labd", env)
    if found:
        yield Step("program", "done", f"labd {__version__} is {found}")
        return
    script = os.path.join(os.path.dirname(sys.executable), "labd")
    folder = paths.expand("~/.local/bin", env, "/")
    link = os.path.join(folder, "labd")
    tell = None if folder in env.get("PATH", "").split(os.pathsep) else f"put {folder} on your PATH"
    if os.path.realpath(link) == os.path.realpath(script):
        yield Step("program", "yours", f"labd is {link}, which is not on PATH", after=tell)
    else:
        commands = [Command(["mkdir", "-p", folder]), Command(["ln", "-sf", script, link])]
        yield Step("program", "needed", f"labd ({script}) is not on PATH", commands, after=tell)


def _from_clone(package: str, clone: str) -> Step:
    from importlib.util import find_spec

    from labd.build import digest

    if digest(os.path.join(clone, "labd")) == digest(package):
        return Step("clone", "done", f"what runs is what {clone} has")
    if find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install", "--upgrade", clone]
    else:
        command = ["uv", "pip", "install", "--python", sys.executable, "--reinstall-package", "labd", clone]
    return Step("clone", "needed", f"{clone} has another labd than the one that runs ({package})", [Command(command)],
                after="labd daemons restart")  # fmt: skip


def _packages(machine: Machine, env: Mapping[str, str]) -> Iterator[Step]:
    """Programs and data that verbs use, each with what is lost without it."""
    manager = next((name for name in MANAGERS if on_path(name, env)), None)
    index = list(MANAGERS).index(manager) if manager else 0
    absent = [(what, use, names[index]) for what, (use, names) in PACKAGES.items()
              if names[index] and not _present(machine, env, what)]  # fmt: skip
    if not absent:
        yield Step("packages", "done", f"there is {', '.join(PACKAGES)}")
        return
    detail = ", ".join(f"{names} ({use})" for _, use, names in absent)
    if manager is None:
        yield Step("packages", "yours", f"missing: {detail}; no package manager that labd knows is here")
        return
    words, root = MANAGERS[manager]
    yield Step(
        "packages", "needed", f"missing: {detail}", list(_install(words, [names for _, _, names in absent])), root=root
    )


def _install(words: Sequence[str], packages: Sequence[str]) -> Iterator[Command]:
    """One command a package, so that one which this system does not have keeps none of the others away."""
    if words[0] == "apt-get":
        yield Command(["apt-get", "update", "-q"])
    for names in packages:
        yield Command([*words, *names.split()])


def _present(machine: Machine, env: Mapping[str, str], what: str) -> bool:
    if what == "fonts":
        return bool(machine.facts.console_fonts())
    return find_program(what, env.get("PATH")) is not None


def _boards(machine: Machine, env: Mapping[str, str]) -> Iterator[Step]:
    """What plays virtual boards: large, and only needed by those who use them."""
    absent = [f"{name} ({board['missing']})" for name, board in virtual(env).items() if board["missing"]]
    manager = next((name for name in MANAGERS if on_path(name, env)), None)
    if not absent or manager is None:
        yield Step("boards", "done" if not absent else "yours", "virtual boards can be played" if not absent else
                   f"not installed: {', '.join(absent)}")  # fmt: skip
        return
    words, root = MANAGERS[manager]
    names = BOARD_PACKAGES[list(MANAGERS).index(manager)]
    commands = [Command([*words, *names.split()])]
    yield Step("boards", "optional", f"virtual boards lack what plays them: {', '.join(absent)}", commands, root=root)


def _groups(machine: Machine) -> Iterator[Step]:
    """The groups whose members may open serial ports, cameras and USB devices. macOS has none."""
    who = machine.account
    if machine.facts.name != "linux":
        return
    if who.root:
        yield Step("groups", "done", "root may open every device")
        return
    serial = [group for group in SERIAL_GROUPS if group in who.known][:1]
    wanted = [group for group in (*serial, *OTHER_GROUPS) if group in who.known]
    absent = [group for group in wanted if group not in who.listed]
    again = "log out and in again; then labd daemons stop, so that the daemon has the groups too"
    if absent:
        commands = [Command(["usermod", "-aG", ",".join(absent), who.name])]
        detail = f"{who.name} is not in {', '.join(absent)}, whose members may open serial ports, cameras, USB devices"
        yield Step("groups", "needed", detail, commands, root=True, after=again)
    elif set(wanted) - who.active:
        yield Step("groups", "yours", f"{who.name} is in {', '.join(wanted)}, but not in this session", after=again)
    else:
        yield Step(
            "groups", "done", f"{who.name} is in {', '.join(wanted) or 'no group of devices: there is none here'}"
        )


def _udev(machine: Machine) -> Iterator[Step]:
    """The rules that keep the system's hands off serial adapters."""
    if machine.facts.name != "linux":
        return
    folder = os.path.join(machine.facts.root, os.path.dirname(RULES_FILE).lstrip("/"))
    if not os.path.isdir(folder):
        yield Step("udev", "done", f"there is no udev here ({folder})")
        return
    group = next((group for group in SERIAL_GROUPS if group in machine.account.known), "root")
    rules, place = RULES.format(group=group), os.path.join(folder, os.path.basename(RULES_FILE))
    if _text(place) == rules:
        yield Step("udev", "done", f"{place} is as it should be")
        return
    detail = (
        f"{place}: ModemManager keeps off USB serial adapters, their latency timer is 1 ms, they are never suspended, "
        f"and {group} may switch the ports of USB hubs"
    )
    commands = [Command(["tee", place], rules)]
    if os.path.exists(os.path.join(machine.facts.run, "udev", "control")):  # it runs: not so in most containers
        again = ["udevadm", "trigger", "--subsystem-match=usb", "--subsystem-match=usb-serial"]
        commands += [Command(["udevadm", "control", "--reload"]), Command(again)]
    yield Step("udev", "needed", detail, commands, root=True)


def _lingering(machine: Machine, env: Mapping[str, str]) -> Iterator[Step]:
    """That the daemon's directory outlives the log-in."""
    who = machine.account.name
    if machine.facts.ends_at_logout(who, paths.runtime_dir(env)):
        detail = f"the system ends what {who} runs, and takes the daemon's directory away, at log-out"
        yield Step("session", "needed", detail, [Command(["loginctl", "enable-linger", who])])
    else:
        yield Step("session", "done", "captures outlive the end of this log-in")


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None
