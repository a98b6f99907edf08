"""The sessions of a root: spawned, listed, restored, renamed and closed.

Owns: the roster (``roster``, pure) and its rows (``roster_table``), the programs of sessions
(``programs``) and their rights (``session_rights``, pure), handles (``handles``, pure), and the
actor (``directory``).

Rules: a spawn is answered once the session and its prompt are durable. A handle is given once.
"""
