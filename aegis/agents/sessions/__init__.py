"""Agent sessions: one conversation each, with its turns, its transcript and its driver.

Owns: the machine of a session (``rules``, pure), its transcript (``transcript``), its metrics
(``metrics``, pure), its connections to inboxes and requests (``mail``, ``requests_out``), and the
actor of a session (``session``).

Rules: ``turn_opened`` is synced before the frame is written, the outcome before any waiter is
notified. A turn that was opened and has no outcome is interrupted, and is never sent again.
"""
