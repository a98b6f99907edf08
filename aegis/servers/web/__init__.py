"""The web page: its files, and the login of browsers.

Owns: the answers to ``GET`` and to ``POST /login`` (``site``), the page's own files (``static``),
and those of xterm.js, which the build puts into ``vendor``.

Rules: the page is a client of the WebSocket like every other. Everything else about it is here.
"""
