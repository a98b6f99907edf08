"""Access control: keys, admission rules and limits on what a client may send or leave unread.

Rules: identity comes from the transport, never from a message. Keys are compared by digest or in
constant time and appear in no log. A request is checked before anything is looked up.

Public: ``Keys``, ``admission``.
"""
