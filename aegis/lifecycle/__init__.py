"""The life cycle of agents that are their terminal: any interactive program on a PTY.

Owns: the machine with its claims (``machine``), its inputs and outputs (``events``) and its verdict
(``states``), and one classifier for each source of evidence: status reports (``reports``), hooks
(``hooks``), window titles, notifications and progress (``notices``), the tty
(``tty_facts``), the text of the screen (``screen_text``), and keys (``keys``).

Rules: everything here is pure, and every moment is passed in. The verdict names its source, and a
weaker source never overrides the claim of a stronger one that is in force. Every text of the
program is escaped and bounded. No program can make these objects grow without limit.
"""
