"""Booting targets over the network: DHCP and TFTP by dnsmasq, boot files by HTTP, on the one link that leads there.

`plan` says what is to be served, `link` what may be done to which interface. The daemon's side is `serving`: for each
interface it keeps one `keeper`, a process of its own that has root (through sudo where the daemon has not), sets the
address, runs dnsmasq and the HTTP server, reports each event on its stdout, and puts everything back when its stdin
ends, so also when the daemon is killed.
"""
