"""labd: a hardware-in-the-loop lab bench behind one door."""

__version__ = "0.1.0"
