"""Groups: committees of agent sessions that get one order at a time and whose replies are gathered.

Owns: the groups as they are stored (``group``, pure), the ledgers' lines (``ledger``, pure), the
state and rules of all groups (``state``, ``rules``, pure), the waits for replies and their
reduction (``waits``, ``reducers``, pure), and the actor (``desk``) with the tasks that open, follow
and close members (``members``).

Rules: a broadcast is synced before it is acknowledged, a reply before it is returned. A reply is
the last message of the turn that its broadcast began, so it counts for that broadcast only. Of
several members either all are started or none. Groups and sessions are named by ids that never
change, so a rename is one line.
"""
