"""The torture suite: every failure case of consoles that can exist here, for labd, two bad loggers and some peers."""
