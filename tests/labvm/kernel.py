"""The guest's kernel: Debian's full one, downloaded (not installed) into .labvm/, and the first file system it runs.

The lane needs drivers that the host's kernel may not have: vivid, dummy_hcd, usb_f_hid, ftdi_sio, xhci.
"""

import gzip
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".labvm"
TREE = PLACE / "tree"
INITRD = PLACE / "initrd.gz"
INIT = Path(__file__).with_name("init.sh")

META_PACKAGE = "linux-image-amd64"
#: What the guest must load before it has this machine's files.
FIRST_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
#: Drivers that no lane needs, and most of the package.
LEFT_OUT = (
    *("sound", "drivers/gpu", "drivers/net/wireless", "drivers/net/ethernet", "drivers/infiniband", "drivers/scsi"),
    *("drivers/staging", "drivers/isdn", "drivers/iio", "fs/ocfs2", "fs/xfs", "fs/btrfs"),
)
PROGRAMS = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "cpio": "cpio",
            "v4l2-ctl": "v4l-utils", "dpkg-deb": "dpkg", "apt-get": "apt", "tar": "tar"}  # fmt: skip


def cannot_run() -> str:
    """Why this machine can't, in words; empty where it can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "it needs Linux on x86_64, whose own programs the guest runs"
    lacks = [f"{name} ({package})" for name, package in PROGRAMS.items() if shutil.which(name) is None]
    if lacks:
        return f"missing: {', '.join(lacks)}"
    with open(shutil.which("busybox") or "", "rb") as file:
        return "the busybox here needs libraries (busybox-static does not)" if b"/ld-linux" in file.read(4096) else ""


def version() -> str:
    """The kernel that is prepared."""
    return next((TREE / "lib/modules").iterdir()).name


def prepare() -> str:
    """Download and unpack what is not there yet; why that can't be done, or nothing."""
    if not (TREE / "ready").exists():
        try:
            _unpack()
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", b"") or b""
            return f"no kernel: {error} {said.decode(errors='replace').strip()[-300:]}"
    if not INITRD.exists() or INITRD.stat().st_mtime < INIT.stat().st_mtime:
        _make_initrd()
    return ""


def _run(*words: str, cwd: Path = PLACE) -> str:
    return subprocess.run(words, check=True, capture_output=True, cwd=cwd).stdout.decode()


def _unpack() -> None:
    PLACE.mkdir(exist_ok=True)
    shutil.rmtree(TREE, ignore_errors=True)
    if not list(PLACE.glob("linux-image-*.deb")):
        _, *depends = _run("apt-cache", "depends", META_PACKAGE).split()
        _run("apt-get", "download", next(word for word in depends if word.startswith("linux-image-")))
    (package,) = PLACE.glob("linux-image-*.deb")
    TREE.mkdir()
    out = [f"--exclude=*/kernel/{name}/*" for name in LEFT_OUT]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as packed:
        subprocess.run(["tar", "-x", "-C", TREE, *out, "./boot", "./lib"], check=True, stdin=packed.stdout)
    package.unlink()
    _run("busybox", "depmod", "-b", str(TREE), version())
    (TREE / "ready").touch()


def modules(*names: str) -> list[Path]:
    """The files of these modules and of all that they need, in the order in which they are to be loaded."""
    base = TREE / "lib/modules" / version()
    needs = {}
    for line in (base / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        needs[Path(path).name.removesuffix(".ko").replace("-", "_")] = [path, *rest.split()]
    order: list[Path] = []
    for name in names:
        for path in reversed(needs[name]):
            if base / path not in order:
                order.append(base / path)
    return order


def _make_initrd() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in ("bin", "dev", "proc", "sys", "m", "host", "up", "root"):
            (tree / name).mkdir()
        busybox = shutil.which("busybox")
        assert busybox
        shutil.copy(busybox, tree / "bin/busybox")
        (tree / "bin/sh").symlink_to("busybox")
        files = modules(*FIRST_MODULES)
        for number, file in enumerate(files):
            shutil.copy(file, tree / "m" / f"{number:02}-{file.name}")
        shutil.copy(INIT, tree / "init")
        (tree / "init").chmod(0o755)
        names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
        packed = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], check=True, cwd=tree, input=names.encode(),
                                capture_output=True)  # fmt: skip
    scratch = INITRD.with_suffix(".new")
    scratch.write_bytes(gzip.compress(packed.stdout, 6))
    os.replace(scratch, INITRD)
