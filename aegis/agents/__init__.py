"""Coding agents, driven unmodified by the protocols that they speak.

Owns: the drivers of agent programs (``drivers``), the profiles from which sessions are started
(``profiles``), the sessions (``sessions``), their directory (``directory``), and the agents that
are their terminal (``interactive``), whose life cycle is ``aegis.lifecycle``.

Rules: nothing is read from the text of a driven agent; a turn runs at most once, and a loss is
reported.
"""
