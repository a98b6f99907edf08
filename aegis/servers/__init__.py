"""The servers: every wire by which a client reaches the daemon.

``access``   keys, admission and limits
``gateway``  one listener for all: sockets, the first bytes, HTTP
``streams``  what clients follow: output, screens, the tree, events
``wires``    WebSocket and JSON lines
``mcp``      MCP over HTTP and over lines; the only place that touches the SDK

The modules beside them are shared: the port to the rest (``calls``), one client as an actor
(``connection``), the port's implementation (``dispatcher``), and the actor in whose nursery all
serving happens (``serving``).
"""
