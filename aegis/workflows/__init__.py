"""Workflows: programs of the project that coordinate agents, queues, commands and people.

Owns: the rows of runs and of their engine calls, with the decisions about them (``runs``, pure),
the names and digests of engine calls (``calls``, pure), the frames of processes (``frames``, pure),
the plugin files (``plugins``), the actors (``desk``, and ``process`` for the process of each run),
the calls that the daemon carries out (``carrier``), and the program that runs in the process
(``child``), with the engine that workflows use. ``upgrade`` reads the files of older versions.

Rules: a plugin's code runs only in a process of its own. A run is durable before it is
acknowledged, the begin of a call before it acts, its outcome before the workflow sees it, the end
of a run before its starter is notified. A call that has ended is not done again.
"""
