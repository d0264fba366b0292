"""Seeing targets' screens: a capture process a screen, what it captures from, what it makes of the pictures.

The daemon's side is `screens` (all screens), `link` (one capture process) and `wire` (how they talk); these import no
camera library. `worker` is the process; `eye`, `sources`, `change`, `signal` and what they use run in it alone.
"""
