"""Keys and signals on their way to a shell; while it reads a submission they wait until it has.

A Ctrl-C among them would cut the submitted text in two, and other keys would join it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio

from aegis.terminals.parse.boundaries import Phase
from aegis.terminals.shell.held import READING_S, HeldBack, reading_s
from aegis.terminals.shell.shell_side import ShellSide


class Incoming:
    """What goes to ``shell``. ``typed`` is told of the keys, ``phase`` says where the shell stands.

    ``is_reading`` says whether the shell has the text of a submission that is not answered.
    """

    def __init__(
        self,
        shell: ShellSide,
        typed: Callable[[str, bytes], None],
        phase: Callable[[], Phase],
        is_reading: Callable[[], bool],
    ) -> None:
        self._shell = shell
        self._typed = typed
        self._phase = phase
        self._is_reading = is_reading
        self._held = HeldBack()
        self._reading_s = READING_S

    @property
    def held_bytes(self) -> int:
        """How many bytes of keys wait for a submission to be read."""
        return self._held.size

    def submitting(self, size: int) -> None:
        """A submission of so many bytes goes to the shell now."""
        self._reading_s = reading_s(size)

    def keys(self, writer: str, data: bytes) -> None:
        """Somebody sends keys."""
        if self._is_reading():
            self._hold(len(data), partial(self._send_keys, writer, data))
        else:
            self._send_keys(writer, data)

    def signal(self, writer: str, send: Callable[[], bool], *, is_interrupt: bool) -> None:
        """Somebody signals who is in front, by calling ``send``, which says whether it did."""
        if self._is_reading():
            self._hold(0, partial(self._signal, writer, send, is_interrupt))
        else:
            self._signal(writer, send, is_interrupt)

    def release(self) -> None:
        """Let everything go if the submission was read, or enough time was given to that."""
        if self._held and (not self._is_reading() or trio.current_time() >= self._held.until):
            self._held.release()

    def _hold(self, size: int, release: Callable[[], None]) -> None:
        if not self._held:
            self._held.until = trio.current_time() + self._reading_s
            self._shell.look_again_after(self._reading_s)
        self._held.add(size, release)

    def _send_keys(self, writer: str, data: bytes) -> None:
        self._typed(writer, data)
        self._shell.write(data)

    def _signal(self, writer: str, send: Callable[[], bool], is_interrupt: bool) -> None:
        if send() and is_interrupt and self._phase() is not Phase.RUNNING:
            self._typed(writer, b"\x03")  # it drops the line, as Ctrl-C does
