"""Who may come in: keys, admission rules and limits.

Rules: identity is a fact of the transport, never of a message. Keys are compared by digest or in
constant time and appear in no log. Everything is checked before anything is looked up.

Public: ``Keys``, ``admission``.
"""
