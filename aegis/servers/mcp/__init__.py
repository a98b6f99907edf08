"""MCP over HTTP and over lines; the only package that touches the MCP SDK.

Owns: the tools (``tools``), resources and their notifications (``resources``, ``documents``,
``watching``), completion (``completion``), MCP in lines (``pipe``), and the late import of the SDK
(``late``).

Rules: the SDK is imported in the daemon only, and never before the sockets are up.
"""
