"""The listener of all wires: TCP on loopback and one Unix socket.

Owns: the sockets (``sockets``), the accept loop that detects the protocol (``gateway``), the open
connections and their limit (``open_connections``), sends with a deadline (``client_stream``), and
HTTP/1.1 (``http1``, ``http_server``, ``http_app``).

Rules: a request head is parsed strictly (RFC 9112). No client delays a stop.
"""
