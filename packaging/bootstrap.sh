#!/bin/sh
# Make the checkout's virtual environment: find or install Python, create .venv, install labd into it.
# Quick when nothing changed. Says exactly what is missing when it may not install it.
set -eu
cd "$(dirname "$0")/.."

stamp=.venv/.stamp
if [ -f "$stamp" ] && [ "$stamp" -nt pyproject.toml ] && [ "$stamp" -nt labd/__init__.py ] &&
    .venv/bin/python -c 'import trio, serial, tomlkit, regex, cv2, dask, mcp, pytest, xdist' 2>/dev/null; then
    exit 0
fi

usable() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
find_python() {
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null 2>&1 && usable "$name"; then echo "$name"; return 0; fi
    done
    return 1
}
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null 2>&1; then sudo -n "$@"; else return 1; fi
}

if ! python=$(find_python); then
    echo "setup: installing Python 3.11 or newer with its venv module" >&2
    if command -v apt-get >/dev/null 2>&1; then
        as_root apt-get update -q >&2 && as_root apt-get install -y -q --no-install-recommends python3 python3-venv >&2 || true
    elif command -v brew >/dev/null 2>&1; then
        brew install python@3.13 >&2 || true
    fi
    if ! python=$(find_python); then
        echo "setup: Python 3.11 or newer with venv and ensurepip is missing, and could not be installed from here." >&2
        echo "setup: Debian or Ubuntu: sudo apt-get install python3 python3-venv · macOS: brew install python@3.13" >&2
        echo "setup: or name one: make PYTHON=/path/to/python3 …" >&2
        exit 1
    fi
fi

# Programs that some tests and one arm of `labd-eval versus` use for real; what needs them is skipped without them.
# A word is program:package, or file:package where a package has no program; brew's names where they differ.
missing=
used="sz:lrzsz busybox:busybox socat:socat uhubctl:uhubctl dnsmasq:dnsmasq-base ip:iproute2
    qemu-system-x86_64:qemu-system-x86 qemu-system-aarch64:qemu-system-arm /usr/share/OVMF/OVMF_CODE_4M.fd:ovmf
    /usr/lib/u-boot/qemu_arm64/u-boot.bin:u-boot-qemu /usr/lib/ipxe/snponly.efi:ipxe
    /usr/lib/ipxe/qemu/pxe-virtio.rom:ipxe-qemu cpio:cpio v4l2-ctl:v4l-utils
    tesseract:tesseract-ocr /usr/share/seabios/vgabios-stdvga.bin:seabios
    zsh:zsh fish:fish man:man-db groff:groff-base mandoc:mandoc"
[ "$(uname)" = Darwin ] && used="sz:lrzsz socat:socat uhubctl:uhubctl dnsmasq:dnsmasq qemu-system-x86_64:qemu
    tesseract:tesseract fish:fish mandoc:mandoc"
for program in $used; do
    [ -e "${program%%:*}" ] || PATH="$PATH:/usr/sbin:/sbin" command -v "${program%%:*}" >/dev/null 2>&1 ||
        missing="$missing ${program##*:}"
done
if [ -n "$missing" ]; then
    echo "setup: installing$missing" >&2
    if command -v apt-get >/dev/null 2>&1; then
        # shellcheck disable=SC2086 # a list of packages
        { as_root apt-get install -y -q --no-install-recommends $missing ||
            { as_root apt-get update -q && as_root apt-get install -y -q --no-install-recommends $missing; }; } \
            >/dev/null 2>&1 || echo "setup: not installed; some tests are skipped. By hand: sudo apt-get install$missing" >&2
    elif command -v brew >/dev/null 2>&1; then
        # shellcheck disable=SC2086
        brew install $missing >/dev/null 2>&1 || echo "setup: not installed; by hand: brew install$missing" >&2
    else
        echo "setup: not installed; some tests are skipped. Install by hand:$missing" >&2
    fi
fi

echo "setup: .venv with $("$python" --version)" >&2
rm -f "$stamp"
usable .venv/bin/python || { rm -rf .venv; "$python" -m venv .venv; }
# A newer pip first: the start scripts that older ones write import `re`, half an interpreter start.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25'
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,cluster,mcp]'
# Python 3.11 puts setuptools into each environment, and with it a start-up hook that nothing here uses.
.venv/bin/python -m pip uninstall --quiet --yes setuptools 2>/dev/null || true
touch "$stamp"
