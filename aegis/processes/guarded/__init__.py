"""Processes that speak JSON lines, below a guard that ends them with the daemon.

Owns: the guard program (``guard``, standard library only), its start and end (``guarded_process``),
the lines in both directions (``frames``, pure; ``frame_writer``), the file of standard error, and
``line_process``, which puts them together. Agents' drivers and workflows use it.
"""
