"""The terminals of the Agent Client Protocol: commands that an agent has its client run.

Owns: the parameters of ``terminal/create`` (``run``), the rules of one terminal and its bounded
output (``rules``), all pure; the actor of one terminal (``terminal``), which runs a command below a
guard of its own, with the followers of its output; and the terminals of one agent process by id
(``service``).

The machine of the protocol asks a person before a command is run; nothing here does.
"""
