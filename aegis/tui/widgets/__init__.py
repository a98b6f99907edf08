"""Widgets that draw lines: only the lines that are visible, and only those that changed."""
