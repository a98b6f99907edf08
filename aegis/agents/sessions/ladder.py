"""``Ladder``: the tries to start an agent, from its own conversation to a fresh one. Pure.

The rungs of a session with a conversation: (1) resume it, (2) resume it again after a pause, (3) a
fresh conversation primed with the last texts. Without one: two tries of a fresh conversation, which
is primed if there were turns. Above the last rung the start has failed.
"""

from __future__ import annotations

import attrs

from aegis.agents.messages import DriverEnded, DriverFailed
from aegis.agents.sessions.past import SessionPast
from aegis.agents.sessions.steps import StartDriver

RESUMES = 2
"""Tries with the conversation before a fresh one; and all tries of a session without one."""


@attrs.define
class Ladder:
    """``rung`` is the number of the current try, from 1; 0: none was made."""

    rung: int = 0
    is_over: bool = False

    def climb(self, past: SessionPast) -> StartDriver:
        """Return the next try."""
        self.rung += 1
        conversation = past.conversation
        if conversation is None:
            # It may have had one whose id did not reach the disk: a turn was opened, so there are
            # texts.
            return StartDriver(conversation=None, texts=tuple(past.texts))
        if self.rung <= RESUMES:
            is_cleared = past.cleared_after is not None
            return StartDriver(
                conversation=conversation, plan=tuple(past.plan), is_cleared=is_cleared
            )
        return StartDriver(conversation=None, texts=tuple(past.texts))

    def is_exhausted(self, past: SessionPast) -> bool:
        """Whether no further try is left."""
        return self.is_over or self.rung >= RESUMES + (past.conversation is not None)

    def note(self, failed: DriverFailed) -> None:
        """Take the reason of a start that failed."""
        if failed.kind == "conversation":
            self.rung = max(self.rung, RESUMES)  # the agent does not know it: a fresh one is next
        elif failed.kind in ("login", "held"):
            self.is_over = True  # no try can succeed before a person has acted

    def restart(self) -> None:
        """Begin again at the first rung."""
        self.rung, self.is_over = 0, False


def end_reason(ended: DriverEnded) -> str:
    """Return how a process ended, with the end of its standard error."""
    code, how = ended.exit_code, ended.reason
    if not how and code is not None:
        how = f"the agent ended with exit code {code}"
    how = how or "the agent's process ended"
    last = ended.stderr.strip()[-2000:]
    return f"{how}: {last}" if last else how
