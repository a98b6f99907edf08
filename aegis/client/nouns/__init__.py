"""The nouns of the asynchronous client: ``Terminals``, ``Workspaces``, ``Inboxes`` and others.

Each class has the commands of one noun as methods, which raise ``ClientError``; ``watch`` opens a
stream. ``aegis.client.blocking`` has the same methods (``tests/aegis/client/test_nouns.py``).
"""
