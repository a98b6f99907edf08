"""Workflows: programs of the project that coordinate agents, queues, commands and people.

Owns: the state and rules of all workflows (``rules``, pure), the ledgers' lines (``ledger``, pure),
the names and digests of engine calls (``calls``, pure), the plugin files (``plugins``), the actors
(``desk``, and ``process`` for the process of each workflow), the calls that the daemon carries out
(``carrier``), and the program that runs in the process (``child``), with the engine that workflows
use.

Rules: a plugin's code runs only in a process of its own. A workflow's meta is synced before it is
acknowledged, ``begun`` before a call acts, ``ended`` before the workflow sees its result,
``returned`` before its starter is notified. A call that has ended is not done again.
"""
