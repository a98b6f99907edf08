"""The frame protocol of a client over WebSocket and over JSON lines.

Owns: the conversation with one client (``conversation``, ``open_streams``), the WebSocket
(``websocket``), and the Unix socket (``unix``).
"""
