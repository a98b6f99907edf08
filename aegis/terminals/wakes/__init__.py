"""The subscribers of a terminal, and the messages that wake them.

Owns: subscriptions and the progress of each subscriber (``subscriptions``, ``wakes``), the delivery
to one inbox (``delivery``, ``wake_feed``), and the text of a wake (``notification``).

Rules: the ledger is the durable queue of wakes. A subscriber gets each record of other writers
once, in spite of crashes; the inbox drops ids that it knows.

Public: ``Wakes``.
"""
