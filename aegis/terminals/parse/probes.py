"""The unanswered probes of one shell's line, in the order of keys, probes and submissions. Pure.

The line editor answers probes in order, and a report does not name its probe. So a report counts as
the answer to the oldest unanswered probe, and says nothing about keys that were sent after that
one, even if a newer probe has been sent since. A probe that is never answered (a Ctrl-C flushed the
tty, a program read it) makes the next reports count as older than they are, which costs another
probe. The start or the end of a submission proves that every byte before it was read.
"""

from __future__ import annotations

MAX_UNANSWERED = 64
"""Limit of unanswered probes that are remembered. Later reports then count as older."""


class Probes:
    """The probes sent to one shell, and what their reports cover."""

    def __init__(self) -> None:
        self._moment = 0
        self._last_key = 0
        self._last_probe = 0
        self._submission = 0
        self._unanswered: list[int] = []

    def typed(self) -> None:
        """Note keys."""
        self._last_key = self._next()

    def sent(self) -> None:
        """Note that the probe key is sent."""
        self._last_probe = self._next()
        if len(self._unanswered) < MAX_UNANSWERED:
            self._unanswered.append(self._last_probe)

    def submitted(self) -> None:
        """Note that a submission is sent."""
        self._submission = self._next()

    def submission_read(self) -> None:
        """Note that the shell has read the submission, and so everything before it."""
        self._unanswered = [probe for probe in self._unanswered if probe > self._submission]

    def answered(self) -> bool:
        """Take a report; return whether it covers all keys that were sent."""
        probe = self._unanswered.pop(0) if self._unanswered else self._last_probe
        return probe >= self._last_key

    def _next(self) -> int:
        self._moment += 1
        return self._moment
