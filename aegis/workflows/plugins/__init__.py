"""Plugins: the files of a project whose workflows can be run.

Owns: their paths and digests (``found``), the check of arguments (``arguments``, pure), and the
workflows that they define (``catalog``).

Rules: only trusted bytes are imported, each file by a process of its own. A file with a problem
costs only itself.
"""
