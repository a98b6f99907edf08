"""The marks of the simulated shell, as ``bash.sh`` prints them. Pure.

The numbers and the order of the parameters are those of the hook. A C skips a number where the end
before it was owed; the end of a typed command names its place in the history.
"""

from __future__ import annotations

import attrs


@attrs.define
class ShellMarks:
    """The state of the hook. ``secret`` is part of each mark; without one there are no marks."""

    secret: bytes
    number: int = 0
    is_submitted: bool = False
    is_owed: bool = False
    told_history: int = 0
    begun: int = 0
    last_end: int = 0

    def begins(self) -> bytes:
        """Return C: a command begins."""
        self.number += 1 + self.is_owed
        self.is_owed = True
        self.begun += 1
        return self._mark("C", f"{self._submitted};b={self.last_end}")

    def ended(self, status: int, history: int) -> bytes:
        """Return D: the prompt comes. ``history`` is the number that the next entry will have."""
        self.number += 1
        rest = f"{self._submitted};b={self.last_end}{self._typed(history)}"
        mark = self._mark(f"D;{status}", rest)
        self.is_submitted, self.is_owed, self.told_history = False, False, history
        self.begun, self.last_end = 0, self.number
        return mark

    def is_typed(self, history: int) -> bool:
        """Return whether the ending command was typed by the user, and is in the history."""
        return self.is_owed and not self.is_submitted and history != self.told_history

    def prompt(self, text: bytes) -> bytes:
        """Return A and B around the prompt."""
        return self._mark("A") + text + self._mark("B")

    def goes_on(self) -> bytes:
        """Return P;k=s: the shell needs more input."""
        return self._mark("P;k=s", self._submitted)

    def line_report(self, length: int) -> bytes:
        """Return P;k=l: the number of characters on the line."""
        return self._mark("P;k=l", f";l={length}")

    def submitting(self) -> None:
        """Record the submit key: the next accepted line is the daemon's."""
        if self.is_owed:
            self.number, self.is_owed = self.number + 1, False
        self.is_submitted = True

    @property
    def _submitted(self) -> str:
        return f";s={int(self.is_submitted)}"

    def _typed(self, history: int) -> str:
        return f";h={history}" if self.is_typed(history) else ""

    def _mark(self, kind: str, rest: str = "") -> bytes:
        if not self.secret:
            return b""
        head = f"\x1b]133;{kind};n=".encode()
        return head + self.secret + f";q={self.number}{rest}\x07".encode()
