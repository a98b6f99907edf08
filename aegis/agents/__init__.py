"""Coding agents, driven unmodified by the protocols that they speak.

Owns: the drivers of agent programs (``drivers``) and the sessions that they serve (``sessions``).

Rules: nothing is read from an agent's text; a turn runs at most once, and a loss is reported.
"""
