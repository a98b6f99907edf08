"""Readers and watchers of what a shell prints.

Owns: long polls by cursor (``readers``, ``reading``), streams (``watchers``), the list of all
observers (``audience``), searching with clients' patterns (``patterns``, ``searching``,
``text_search``), and the wake-up of waiting tasks (``bell``).

Rules: a slow reader loses intermediate output and is told how much, never the end of a command. A
pattern is searched in linear time (RE2) and in slices.
"""
