"""The interactive verbs, over the asynchronous client: ``run_attach`` and ``watch_tree``.

Imported inside functions only, since Trio and the client take longer to import than an everyday
verb takes to run. ``queries``, ``tree_model`` and ``window`` are pure.
"""
