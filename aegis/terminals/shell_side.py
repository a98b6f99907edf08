"""What stands around the tracker of a shell: the actor that owns it, and who sees the output."""

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
        """Where the shell is now."""


class OutputObserver(Protocol):
    """Who sees the output as it comes, on the hot path: it must be quick."""

    def output(self, data: bytes, cursor: int) -> None:
        """``data`` was printed; its first byte has the offset ``cursor`` in the raw log.

        The bytes are those that viewers see: marks come without their secret.
        """
