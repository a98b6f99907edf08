"""Durable inboxes, one per handle.

Owns: the actor of an inbox (``inbox``) with its waiting streams (``followers``) and unsynced lines
(``unsynced``), its state and rules (``state``, ``rules``, ``quoting``, pure), its ledger
(``loading``, ``bodies``), and the router that starts inboxes (``router``).

Rules: a delivery is confirmed, and a message shown, once it is synced. A repeated id is dropped.
"""
