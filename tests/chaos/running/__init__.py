"""Histories by the thousand: processes that play seeds, their progress and their figures."""
