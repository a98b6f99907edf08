"""``ShellSide``: what a tracker needs of the actor that owns the shell."""

from __future__ import annotations

from typing import Protocol


class ShellSide(Protocol):
    """What a tracker needs of the shell it follows."""

    def write(self, data: bytes) -> None:
        """Send bytes to the PTY, after all that was sent before."""

    def look_again_after(self, seconds: float) -> None:
        """Call ``Tracker.look_again`` then."""

    def hook_answered(self) -> None:
        """The hook has shown its first prompt since the start, or since it was read anew."""

    def working_directory(self) -> str | None:
        """Where the shell is now; None if that directory was removed."""

    def waits_for_keys(self) -> bool:
        """Whether the shell has read every key sent to it, and its line editor waits for more."""

    def is_in_front(self) -> bool:
        """Whether the shell itself would read what is typed, as far as can be known."""
