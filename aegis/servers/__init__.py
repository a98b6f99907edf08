"""The servers: each wire by which a client reaches the daemon.

``access``   keys, admission rules and limits
``gateway``  the listener of all wires: sockets, protocol detection, HTTP
``streams``  the streams that a client can open: output, screens, the tree, events
``wires``    WebSocket and JSON lines
``mcp``      MCP over HTTP and over lines; the only package that imports the MCP SDK

Shared modules: ``calls`` (the port to the other actors), ``connection`` (the actor of one client),
``dispatcher`` (the port's implementation) and ``serving`` (the actor that runs all servers in its
nursery).
"""
