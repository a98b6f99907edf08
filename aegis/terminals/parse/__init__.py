"""Pure parsers of a terminal's bytes: bytes in, events out, independent of the chunks.

Owns: OSC 133 marks (``osc133``), one or two streams of a shell as events (``stderr_split``), the
boundaries of commands (``boundaries``), the keys on the line and their writers (``keystrokes``,
``line_keys``), the control sequences in output (``control_sequences``), the terminal's answers to
queries (``answers``), programs' statements (``statements``), reported directories
(``reported_directory``), and plain text by cursor (``plain``).

Rules: no trio, no os, no clock. Every parser is bounded: a sequence that does not end is text.

Public: ``ShellStreams``, ``Boundaries``, ``SequenceScanner``, ``Answers``, ``take_plain``.
"""
