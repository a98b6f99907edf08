"""Requests: everything that an agent or a workflow asks a person, in one durable inbox.

Owns: the state and rules (``rules``, pure), the ledger's lines (``ledger``, pure), and the actor
(``desk``).

Rules: an open request is synced before it is shown, an answer before it acts. Exactly one answer
wins; nothing acts after a request was withdrawn.
"""
