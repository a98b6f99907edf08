"""The Python client of a running daemon. ``import aegis`` loads its public names on first use.

- ``connect`` -> ``Client``: asynchronous, on Trio, over the WebSocket; commands and streams.
- ``connect_sync`` -> ``BlockingClient``: blocking, over the Unix socket; commands and polling.
- Errors: ``ClientError`` and its classes in ``errors``.
- Values of streams: ``Chunk``, ``Gap``, and the classes of ``aegis.protocol``.

Both clients have the same nouns (``client.terminals`` and so on) and methods; each method is a
command of the daemon with its arguments and reply class. Times are in seconds, offsets in bytes. A
call is repeated after a lost connection only if it reads (``calls``).

``line``, ``nonblocking_line`` and ``bridge`` are small clients for the command line. They use the
standard library only and must stay quick to import.
"""
