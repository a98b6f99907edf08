"""Pure parsers of a terminal's byte stream: bytes in, events out, the same however they are cut.

Owns: OSC 133 marks (``osc133``), the boundaries of commands (``boundaries``), whose keys are on the
line (``keystrokes``), the questions of programs and their answers (``queries``, ``answers``), plain
text by cursor (``plain``), and two streams made one (``apart``, ``streams``).

Rules: no trio, no os, no clock. Every parser is bounded: input that never ends is given back as
text.
"""
