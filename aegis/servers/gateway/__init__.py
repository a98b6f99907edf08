"""One listener for all wires: TCP on loopback and one Unix socket.

Owns: the sockets (``sockets``, ``listening``), the accept loop that looks at the first bytes
(``gateway``), the list of connections and their limit (``crowd``), bounded sends (``connections``),
and HTTP/1.1 (``http1``, ``http_server``, ``http``).

Rules: a head is read strictly (RFC 9112) before a library sees it. No client holds up a stop.
"""
