"""Benchmarks: ours beside a bare baseline or a peer, in the same run. Read the ratios; the machine is shared."""
