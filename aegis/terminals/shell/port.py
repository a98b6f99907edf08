"""``ShellPort``: the interface of the shell's actor to its tracker."""

from __future__ import annotations

from typing import Protocol


class ShellPort(Protocol):
    """The operations on a shell that its tracker needs."""

    def write(self, data: bytes) -> None:
        """Send bytes to the PTY, after all bytes that were sent before."""

    def look_again_after(self, seconds: float) -> None:
        """Call ``Tracker.look_again`` after ``seconds``."""

    def hook_answered(self) -> None:
        """Note the first prompt of the hook since it was read."""

    def working_directory(self) -> str | None:
        """Return the shell's directory; None if that directory was removed."""

    def waits_for_keys(self) -> bool:
        """Whether the shell has read every key sent to it, and its line editor waits for more."""

    def is_in_front(self) -> bool:
        """Whether the shell itself would read typed keys, as far as can be known."""
