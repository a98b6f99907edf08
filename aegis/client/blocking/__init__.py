"""The blocking client: ``connect_sync`` and ``BlockingClient``, and its nouns, without Trio.

One call at a time over the Unix socket of a root. The methods and their documentation are those of
``aegis.client.nouns``, without ``async`` (``tests/aegis/client/test_nouns.py``).
"""
