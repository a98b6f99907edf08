"""``Typist``: the writer whose keys a terminal got last, while they follow each other. Pure."""

from __future__ import annotations

from aegis.protocol.terminals import Typing

TYPING_S = 3.0
"""Seconds without keys after which a writer no longer counts as typing."""


class Typist:
    """The writer that types now; times are monotonic seconds."""

    def __init__(self) -> None:
        self.typing: Typing | None = None
        self._last_at = 0.0

    def typed(self, writer: str, moment_s: float, now: str) -> None:
        """Note keys of ``writer``; ``now`` is the time for clients."""
        is_another = self.typing is None or self.typing.writer != writer
        if is_another or moment_s - self._last_at >= TYPING_S:
            self.typing = Typing(writer=writer, since=now)
        self._last_at = moment_s

    def check(self, moment_s: float) -> float | None:
        """Forget a writer who paused; return the seconds until the next check, None: none."""
        if self.typing is None:
            return None
        left = self._last_at + TYPING_S - moment_s
        if left > 0:
            return left
        self.typing = None
        return None
