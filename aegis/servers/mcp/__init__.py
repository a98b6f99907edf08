"""MCP over HTTP and over lines; the only package that imports the MCP SDK.

Owns: the tools (``tools``), their calls over HTTP (``http_calls``), resources, the completion of
their URIs and their notifications (``resources``, ``documents``), responses over HTTP
(``post_answer``), MCP over lines (``pipe``), and the import of the SDK in the background
(``lazy``).

Rules: only the daemon imports the SDK, and only after its sockets listen.
"""
