"""Queues: durable tasks, each of which a fresh agent session does.

Owns: the state and rules of all tasks (``rules``, pure) with their order (``lineup``, pure), the
ledgers' lines (``ledger``, pure), the verdict on a worker from its transcript (``worker``, pure),
and the actor (``desk``) with the tasks that follow workers (``workers``).

Rules: a task is synced before it is acknowledged, its dispatch before its session is opened, its
end before its sender is notified. The first synced end wins. At most one session per attempt.
"""
