"""WebSocket and JSON lines: two wires, one conversation.

Owns: the conversation of one client (``conversation``, ``answering``, ``open_streams``), the frames
on a WebSocket (``websocket``) and on the Unix socket (``unix``, ``lines``, ``framing``).
"""
