"""Printing: results on standard output, messages for people on standard error.

``formatting`` escapes and lays out text, ``failures`` prints errors and chooses exit codes, ``run``
prints a command while it runs, ``interrupts`` turns Ctrl-C into a count, ``standard_streams`` makes
closed and blocked streams usable. Standard library only.
"""
