"""Terminals of hosts that joined.

Owns: the directory's view of other hosts (``elsewhere``), the map of their terminals (``node_map``)
and its file (``node_file``), and the sentences about places (``places``).

Rules: a name is in one place, and is kept for a host that is cut off.
"""
