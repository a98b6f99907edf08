"""Live shared terminals and coordination for coding agents and people."""

__version__ = "0.1.0"
