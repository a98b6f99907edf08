"""Messages to agent sessions, and the turns that answer them: used by queues, workflows and groups.

Owns: the calls of the daemon's services, repeated through their restarts (``services``), the
outcome of the turn that one message began (``watch``, pure), and ``AgentSessions``, which delivers
messages and follows transcripts.

Rules: a message has an immutable id, and is delivered once. The transcript of its session is
durable and names the messages of each turn, so a caller that was restarted learns the same outcome.
"""
