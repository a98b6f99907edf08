"""Subscribers of a terminal, and the messages that wake them.

Owns: subscriptions and how far each subscriber has been served (``subscriptions``, ``wakes``), the
delivery to one inbox (``courier``, ``wake_feed``), and the text of a wake (``notification``).

Rules: the ledger is the durable queue of wakes. A subscriber gets each record of other writers
once, whatever crashes between; the inbox drops ids that it knows.

Public: ``Wakes``.
"""
