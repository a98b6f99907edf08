"""The interactive verbs, over the asynchronous client.

Public: ``run_attach``, ``watch_tree``, ``follow_agent``.

Imported inside functions only, since Trio and the client take longer to import than an everyday
verb takes to run. ``queries``, ``tree_model`` and ``window`` are pure.
"""
