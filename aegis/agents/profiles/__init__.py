"""Profiles: the configuration of sessions and their rights.

Owns: profiles with the defaults of their provider (``profile``), the start of their agents
(``families``), the rights of a session's calls (``rights``), the limits of all sessions
(``limits``), and the answers that a profile gives to requests (``policy``). All pure.
"""
