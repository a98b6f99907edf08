"""The streams that a client can open on a connection: output and keys, the tree, inboxes, events.

Rules: a stream sends only as much as its client gave credit for; the rest is coalesced, or skipped
with a notice (``gap``).

Public: ``StreamPort``, ``Sources``, ``Outlet``.
"""
