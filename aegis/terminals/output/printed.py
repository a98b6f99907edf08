"""What the open command of a shell has printed, as far as it is not prompt or echo. Pure."""

from __future__ import annotations

from aegis.processes.capture import CapturedOutput, OutputCapture
from aegis.terminals.messages import NO_OUTPUT


class Printed:
    """The capture of one command after the other; before the first, of the shell's start.

    While a line is edited or goes on nothing is captured, and what was is set aside. ``ended_at``
    is the cursor where that ended; None: what is printed is output.
    """

    def __init__(self) -> None:
        self.ended_at: int | None = None
        self._capture: OutputCapture | None = OutputCapture()
        self._set_aside: OutputCapture | None = None

    def feed(self, text: bytes) -> None:
        """This was printed."""
        if self._capture is not None:
            self._capture.feed(text)

    def feed_errors(self, text: bytes) -> None:
        """This was printed to standard error."""
        if self._capture is not None:
            self._capture.feed_errors(text)

    def begin(self) -> None:
        """What follows is the output of a new command."""
        self._capture, self._set_aside, self.ended_at = OutputCapture(), None, None

    def go_on(self) -> None:
        """What follows is output again, of the command whose output was set aside if one was."""
        self._capture, self._set_aside = self._set_aside or OutputCapture(), None
        self.ended_at = None

    def set_aside(self, cursor: int) -> None:
        """What follows, from this cursor on, is prompt and echo, but a command may be open."""
        self._set_aside, self._capture = self._all(), None
        self.ended_at = cursor if self.ended_at is None else self.ended_at

    def drop(self) -> None:
        """What follows is prompt and echo, and no command is open."""
        self._capture = self._set_aside = self.ended_at = None

    def so_far(self) -> CapturedOutput:
        """What there is; it goes on."""
        printed = self._all()
        return NO_OUTPUT if printed is None else printed.snapshot()

    def take(self) -> CapturedOutput:
        """What there is, for good."""
        printed = self._all()
        self.drop()
        return NO_OUTPUT if printed is None else printed.result()

    def newest_line(self) -> str:
        """What was printed last; empty if nothing was."""
        printed = self._all()
        return "" if printed is None else printed.newest_line()

    def _all(self) -> OutputCapture | None:
        return self._set_aside if self._capture is None else self._capture
