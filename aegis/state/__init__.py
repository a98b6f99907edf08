"""The state directory of a root, and the check that this user's daemons wrote it.

Owns: the paths and the search for a root (``root``), the endpoint file (``endpoint``), the
registry of this user's states (``registry``, ``registration``), the codes in each file
(``sealing``), and opening files without following links (``state_files``).

Rules: one-shot commands import these modules, except ``registration``: they import little of the
standard library. A file is checked (owner, type, link count) before a byte is read or written.
"""
