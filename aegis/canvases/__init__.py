"""Canvases: markdown files that several write, section by section.

Owns: the sections of a file (``document``, pure) and their differences (``differences``, pure), the
state and rules of one canvas (``state``, ``rules``, pure), its actor (``canvas``) with its ledger
(``canvas_ledger``), its file (``examining``) and the wakes of its subscribers (``wakes``), the desk
of all canvases (``desk``), and the watcher of their files (``watcher``).

Rules: an intent is synced before the file is exchanged, the exchange before it is acknowledged. No
text that anybody wrote is lost: what is not in the file is in the history.
"""
