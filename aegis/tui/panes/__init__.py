"""The panes of the tabs: a terminal, a conversation, and the lists of everything else."""
