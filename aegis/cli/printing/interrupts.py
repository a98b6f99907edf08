"""SIGINT and SIGTERM for a loop that polls, instead of an exception at any point."""

from __future__ import annotations

import os
import select
import signal

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType, TracebackType
    from typing import Any


class Interrupts:
    """A context manager that counts SIGINT in ``interrupts`` and sets ``terminated`` on SIGTERM.

    ``fileno()`` is readable after a signal until ``clear()``. ``on_signal`` is called from the
    signal handler, so even during a write that blocks. An ignored signal stays ignored.
    """

    def __init__(self, on_signal: Callable[[], None]) -> None:
        self._on_signal = on_signal
        self._before: dict[int, Any] = {}
        self.interrupts = 0
        self.terminated = False

    def fileno(self) -> int:
        """Return the descriptor to poll for reading."""
        return self._reading

    def clear(self) -> None:
        """Discard the signals seen so far, so that ``fileno()`` is not readable."""
        while select.select([self._reading], [], [], 0)[0]:
            os.read(self._reading, 64)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            self.interrupts += 1
        else:
            self.terminated = True
        self._on_signal()

    def __enter__(self) -> Interrupts:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._wakeup = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._restore(self._before)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._reading)
        os.close(self._writing)

    def _restore(self, handlers: Mapping[int, Any]) -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)
