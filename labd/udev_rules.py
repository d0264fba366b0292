"""The udev rules of a bench: what the system must not do to serial adapters, and who may switch hubs. Data alone."""

#: Where they belong.
RULES_FILE = "/etc/udev/rules.d/70-labd.rules"

#: The rules; `{group}` is the group that may open serial ports. The vendors are those of plain serial bridges (FTDI,
#: Silicon Labs, QinHeng, Prolific); the modems that ModemManager is for stay its own.
RULES = """\
# Written by `labd setup`; run it again to renew it, remove the file to undo it.
ACTION=="remove", GOTO="labd_end"

# Plain serial bridges: no AT commands by ModemManager, no suspending while nothing is received.
SUBSYSTEM=="usb", ENV{{DEVTYPE}}=="usb_device", ATTR{{idVendor}}=="0403|10c4|1a86|067b", ENV{{ID_MM_DEVICE_IGNORE}}="1"
SUBSYSTEM=="usb", ENV{{DEVTYPE}}=="usb_device", ATTR{{idVendor}}=="0403|10c4|1a86|067b", TEST=="power/control", \
ATTR{{power/control}}="on"

# FTDI hands over what it has after 1 ms, not 16.
SUBSYSTEM=="usb-serial", DRIVER=="ftdi_sio", TEST=="latency_timer", ATTR{{latency_timer}}="1"

# The ports of USB hubs can be switched without root (uhubctl; the second rule is for Linux 6.0 and newer).
SUBSYSTEM=="usb", ENV{{DEVTYPE}}=="usb_device", ATTR{{bDeviceClass}}=="09", MODE="0664", GROUP="{group}"
SUBSYSTEM=="usb", DRIVER=="hub", RUN+="/bin/sh -c 'chgrp -f {group} $sys$devpath/*-port*/disable; \
chmod -f g+w $sys$devpath/*-port*/disable'"

# This machine as a target's USB keyboard and pointer.
SUBSYSTEM=="hidg", MODE="0660", GROUP="{group}"

LABEL="labd_end"
"""
