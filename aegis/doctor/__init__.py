"""The checks of ``aegis-actors doctor``: the machine, the state of a root, its daemon, the shells.

``examination.examine`` yields the findings of all checks and changes nothing.
``examination.repair`` repairs the state while it holds the root, and deletes nothing. A module is
one subject: its ``examine_…`` function yields ``Finding`` objects, each with a remedy.
``agent_rules``, ``ledger_rules`` and ``machine_rules`` are pure.
"""
