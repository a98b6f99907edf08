"""``InputQueue``: keys and signals for a shell, queued while it reads a submission.

A Ctrl-C in the middle would cut the submitted text in two, and other keys would become part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs
import trio

from aegis.terminals.shell.port import ShellPort

READING_S = 1.0
READING_BYTES_PER_S = 50_000
"""The time a shell gets to read a submission: ``READING_S`` and its bytes at this rate.

Readline on a slow machine takes a fifth of that.
"""


def reading_s(size: int) -> float:
    """Return how long keys are queued for a submission of ``size`` bytes, in seconds."""
    return READING_S + size / READING_BYTES_PER_S


@attrs.frozen
class _Queued:
    """Keys of ``size`` bytes, or a signal (0); ``send`` sends it."""

    size: int
    send: Callable[[], None]


class InputQueue:
    """Input for ``shell``. ``typed`` is called with keys as they are sent.

    ``is_reading`` returns whether the shell has the text of a submission that it has not answered.
    """

    def __init__(
        self,
        shell: ShellPort,
        typed: Callable[[str, bytes], None],
        is_reading: Callable[[], bool],
    ) -> None:
        self._shell = shell
        self._typed = typed
        self._is_reading = is_reading
        self._queue: list[_Queued] = []
        self._until = 0.0
        self._reading_s = READING_S

    @property
    def queued_bytes(self) -> int:
        """How many bytes of keys are queued."""
        return sum(queued.size for queued in self._queue)

    def submitting(self, size: int) -> None:
        """Note that a submission of ``size`` bytes is being sent."""
        self._reading_s = reading_s(size)

    def keys(self, writer: str, data: bytes) -> None:
        """Send keys, or queue them."""
        if self._is_reading():
            self._add(len(data), partial(self._send_keys, writer, data))
        else:
            self._send_keys(writer, data)

    def signal(self, writer: str, send: Callable[[], bool], *, is_interrupt: bool) -> None:
        """Signal the foreground, or queue that. ``send`` does it and returns whether it did."""
        if self._is_reading():
            self._add(0, partial(self._signal, writer, send, is_interrupt))
        else:
            self._signal(writer, send, is_interrupt)

    def release(self) -> None:
        """Send the queued input, if the submission was read or its time is up."""
        if self._queue and (not self._is_reading() or trio.current_time() >= self._until):
            queue, self._queue = self._queue, []
            for queued in queue:
                queued.send()

    def _add(self, size: int, send: Callable[[], None]) -> None:
        if not self._queue:
            self._until = trio.current_time() + self._reading_s
            self._shell.look_again_after(self._reading_s)
        self._queue.append(_Queued(size, send))

    def _send_keys(self, writer: str, data: bytes) -> None:
        self._typed(writer, data)
        self._shell.write(data)

    def _signal(self, writer: str, send: Callable[[], bool], is_interrupt: bool) -> None:
        # It drops the line, as Ctrl-C does. Also while a command runs by the marks: the shell may
        # be at its prompt already, and would end a line of its own.
        if send() and is_interrupt:
            self._typed(writer, b"\x03")
