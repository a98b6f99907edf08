"""The web page: its files, and the login of browsers.

Owns: the answers to ``GET`` and to ``POST /login`` (``site``), the files that are served as they
are (``static``), and the page's sources (``page``), which the build bundles with their libraries
into ``built``.

Rules: the page is a client of the WebSocket like every other. Everything else about it is here.
"""
