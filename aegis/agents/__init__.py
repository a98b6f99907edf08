"""Coding agents, driven unmodified by the protocols that they speak.

Owns: the drivers of agent programs (``drivers``), the profiles from which sessions are started
(``profiles``), the sessions (``sessions``) and their directory (``directory``).

Rules: nothing is read from an agent's text; a turn runs at most once, and a loss is reported.
"""
