"""Nodes: the processes other than the daemon that run terminals, workers and joined hosts.

Owns: the plan of the daemon's tree for nodes (``plan``), worker processes (``worker``), the
daemon's side of hosts (``keeper``, ``host_link``), the host's side (``joining``, ``node_link``,
``identity``), their handshake (``hello``) and the message types between nodes (``vocabulary``).

Rules: imported only when workers or hosts are configured, as it needs the extra ``nodes``.
"""
