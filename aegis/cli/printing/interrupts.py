"""Ctrl-C and SIGTERM as something that a loop can poll for, instead of an exception anywhere."""

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
    """A context manager: while it is open, ``interrupts`` counts Ctrl-C, and ``terminated`` tells.

    ``fileno()`` is readable when there is news, until ``clear``. ``on_news`` is called besides,
    wherever the program is: even in the midst of a write that waits for its reader. A signal that
    was ignored before stays so.
    """

    def __init__(self, on_news: Callable[[], None]) -> None:
        self._on_news = on_news
        self._before: dict[int, Any] = {}
        self.interrupts = 0
        self.terminated = False

    def fileno(self) -> int:
        """To be polled for reading."""
        return self._reading

    def clear(self) -> None:
        """What was told until now has been seen."""
        while select.select([self._reading], [], [], 0)[0]:
            os.read(self._reading, 64)

    def _came(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            self.interrupts += 1
        else:
            self.terminated = True
        self._on_news()

    def __enter__(self) -> Interrupts:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._wakeup = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._came)
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
