"""Groups: committees of agent sessions that get one order at a time and whose replies are gathered.

Owns: the rows of a group's ledger and their steps (``rows``, pure), groups and replies as clients
see them (``views``, pure), the calls of members' sessions (``members``), and the actor (``desk``).

Rules: a broadcast is synced before it is acknowledged, a reply before it is returned. A reply is
the last message of the turn that its broadcast began, so it counts for that broadcast only. Of
several members either all are started or none. Groups and sessions are named by ids that never
change, so a rename is one line.
"""
