"""Joining: a process on another host becomes a node of the root's tree."""
