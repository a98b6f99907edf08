"""Canvases: markdown files that several write, section by section.

Owns: the sections of a file and their differences (``document``, pure), the rows of one canvas and
what follows from them (``revisions``, pure), its actor (``canvas``) with its file (``examining``)
and the wakes of its subscribers (``wakes``), the settings of a canvas and the files that may be one
(``binding``), the desk of all canvases (``desk``), and the watcher of their files (``watcher``).

Rules: an intent is synced before the file is exchanged, the exchange before it is acknowledged. No
text that anybody wrote is lost: what is not in the file is in the history.
"""
