"""Workspaces: named directories with shells in them, and commands without a terminal."""
