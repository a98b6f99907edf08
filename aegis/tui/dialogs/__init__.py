"""Dialogs above the panes: a name, a choice, the open requests, help."""
