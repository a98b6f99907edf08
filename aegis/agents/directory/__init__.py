"""The sessions of a root: spawned, listed, restored, renamed and closed.

Owns: the roster and its ledger (``roster``, pure), the programs that sessions drive (``programs``),
and the actor (``directory``).

Rules: a spawn is answered once the session and its prompt are durable. A handle is given once.
"""
