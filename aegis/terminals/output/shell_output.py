"""The output of a shell, captured for the record of a command. Pure."""

from __future__ import annotations

from aegis.processes.capture import CapturedOutput, OutputCapture
from aegis.terminals.messages import NO_OUTPUT


class CommandOutput:
    """The captured output of the current command; before the first one, of the shell's start.

    Nothing is captured while a line is edited: the capture of a command that may continue is
    suspended. ``ended_at`` is the cursor of that end, None while output is captured.
    """

    def __init__(self) -> None:
        self.ended_at: int | None = None
        self._capture: OutputCapture | None = OutputCapture()
        self._suspended: OutputCapture | None = None

    def feed(self, text: bytes) -> None:
        if self._capture is not None:
            self._capture.feed(text)

    def feed_errors(self, text: bytes) -> None:
        if self._capture is not None:
            self._capture.feed_errors(text)

    def begin(self) -> None:
        """Start the capture of a new command."""
        self._capture, self._suspended, self.ended_at = OutputCapture(), None, None

    def resume(self) -> None:
        """Continue the suspended capture; without one, start a new one."""
        self._capture, self._suspended = self._suspended or OutputCapture(), None
        self.ended_at = None

    def suspend(self, cursor: int) -> None:
        """Stop capturing at ``cursor``, where prompt and echo begin; a command may be open."""
        self._suspended, self._capture = self._current(), None
        self.ended_at = cursor if self.ended_at is None else self.ended_at

    def discard(self) -> None:
        """Drop the capture: prompt and echo follow, and no command is open."""
        self._capture = self._suspended = self.ended_at = None

    def snapshot(self) -> CapturedOutput:
        """Return the output so far; the capture continues."""
        capture = self._current()
        return NO_OUTPUT if capture is None else capture.snapshot()

    def take(self) -> CapturedOutput:
        """Return the whole output and end the capture."""
        capture = self._current()
        self.discard()
        return NO_OUTPUT if capture is None else capture.result()

    def newest_line(self) -> str:
        """Return the newest line of the output; empty if nothing was printed."""
        capture = self._current()
        return "" if capture is None else capture.newest_line()

    @property
    def ends_within_line(self) -> bool:
        """Whether the output ends within a line, as a prompt does."""
        capture = self._current()
        return capture is not None and capture.ends_within_line

    def _current(self) -> OutputCapture | None:
        return self._suspended if self._capture is None else self._capture
