"""The command line ``aegis-actors``: a module per noun, with its verbs.

``main.main`` is the entry point. ``grammar`` declares and parses verbs, ``printing`` prints, and
``live`` has the interactive verbs. A verb calls the daemon and prints the reply. Rules:

- Everyday verbs import neither click nor Trio (``tests/aegis/cli/test_two_ways.py``). Interactive
  verbs, ``up`` and ``doctor`` import their parts inside the function.
- Everything that comes from a program, a name or a file is escaped before it is printed.
- ``grammar.verb_table.VERBS`` lists the verbs.
"""
