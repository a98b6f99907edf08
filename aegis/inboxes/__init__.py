"""Durable inboxes, one per handle.

Owns: the actor of an inbox with its readers (``inbox``), whose messages are rows of a table
(``rows``); which of them are unread (``unread``, ``quoting``, pure); their archive (``reading``,
``history``); and the router that starts inboxes and takes handoffs (``router``, ``handoffs``).

Rules: a delivery is confirmed, and a message shown, once it is synced. A repeated id is dropped.
"""
