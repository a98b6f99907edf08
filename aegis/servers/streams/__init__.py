"""What clients follow over a connection: output, keys, the tree, inboxes, events.

Rules: a stream sends only what its client has credit for; what does not fit is coalesced or skipped
with a notice.

Public: ``StreamPort``, ``Sources``, ``Outlet``.
"""
