"""The program in the process of a workflow: it loads a plugin and runs its function.

Owns: the streams (``link``), the loading of trusted files (``loading``), their description
(``describing``), the journal of earlier processes (``journal``), the engine (``engine``), and
commands (``shell``).

Rules: what the plugin prints goes to the log, and what it raises becomes a frame. Nothing here is
imported by the daemon.
"""
