"""The terminals of hosts that joined.

Owns: the links to hosts and requests to them (``hosts``); the stored names of their terminals
(``nodes``).

Rules: a name belongs to one node. It stays reserved while its host cannot be reached.

Public: ``RemoteHosts``, ``NodeFile``.
"""
