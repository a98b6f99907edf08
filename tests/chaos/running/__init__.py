"""Histories by the thousand: processes that play seeds, their progress, and what they add up to."""
