"""The grammar of the command line: the declaration of verbs, and two parsers of one declaration.

``verb`` has ``TargetDaemon`` and the declarations (``verb``, ``option``, ``argument``, ``flag``,
``VerbGroup``). ``parsing`` parses correct command lines without click; ``click_program`` and
``click_commands`` do the rest with click. Both must print and call the same
(``tests/aegis/cli/test_two_ways.py``). ``keys``, ``numbers`` and ``words`` convert arguments.
"""
