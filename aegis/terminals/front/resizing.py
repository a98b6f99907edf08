"""The size of a terminal's window, and the client that owns it.

A new size is stored durably, then set on the PTY, then answered. While a stream owns the size,
nobody else changes it. The owner is not stored: ownership ends with the stream, the front or the
daemon.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import trio

from actors import Ref, Reply
from aegis.clock import utc_now
from aegis.errors import AegisError, Busy
from aegis.journal.disk import storage_errors
from aegis.journal.flusher import Flusher
from aegis.protocol.control import ResizeTerminal
from aegis.protocol.feeds import ClaimSize, OwnedSize, ReleaseSize
from aegis.protocol.terminals import Done, TerminalInfo
from aegis.terminals.front.terminal_state import TerminalState
from aegis.terminals.messages import SetSize
from aegis.terminals.meta import save_settings, saved_settings
from aegis.terminals.record import writer_tag
from aegis.terminals.settings import TerminalFiles


class Resizing:
    """The resizes, claims and releases of one terminal, one at a time.

    ``info`` returns its description; ``on_change`` is called when the size has changed.
    """

    def __init__(
        self,
        state: TerminalState,
        shell: Ref[SetSize],
        files: TerminalFiles,
        flusher: Flusher,
        info: Callable[[], TerminalInfo],
        on_change: Callable[[], None],
    ) -> None:
        self._on_change = on_change
        self._state = state
        self._shell = shell
        self._files = files
        self._flusher = flusher
        self._info = info
        self._lock: trio.Lock | None = None  # made when needed: few windows are resized
        self._owner: OwnedSize | None = None

    async def read_size(self) -> None:
        """Read the size that an earlier incarnation of the front has set."""
        read = partial(saved_settings, self._flusher.disk, self._files, self._state.settings)
        self._state.settings = await self._flusher.call(read)

    def taken_over(self) -> None:
        """Send size and owner to a shell's actor that has just introduced itself."""
        settings = self._state.settings
        self._shell.tell(SetSize(rows=settings.rows, cols=settings.cols, owner=self._owner))

    async def resize(
        self, request: ResizeTerminal | ClaimSize | ReleaseSize, reply: Reply[Any]
    ) -> None:
        """Carry out a request.

        Fresh shells start with a new size, also after a restart of the daemon.
        """
        if self._lock is None:
            self._lock = trio.Lock()
        async with self._lock:
            try:
                await self._carry_out(request)
            except AegisError as error:
                reply.fail(error)
                return
            settings = self._state.settings
            self._shell.tell(SetSize(rows=settings.rows, cols=settings.cols, owner=self._owner))
            reply.send(self._info() if isinstance(request, ResizeTerminal) else Done())
            self._on_change()

    async def _carry_out(self, request: ResizeTerminal | ClaimSize | ReleaseSize) -> None:
        if isinstance(request, ReleaseSize):
            self._owner = None if self._is_owner(request.token) else self._owner
            return
        claim = request if isinstance(request, ClaimSize) else None
        if claim is None or not (claim.take or self._is_owner(claim.token)):
            check_not_owned(request.name, self._owner)
        await self._save(request.rows, request.cols)
        if claim is not None and not self._is_owner(claim.token):
            writer = writer_tag(claim.from_handle)
            self._owner = OwnedSize(token=claim.token, writer=writer, since=utc_now())

    def _is_owner(self, token: str) -> bool:
        return self._owner is not None and self._owner.token == token

    async def _save(self, rows: int, cols: int) -> None:
        if (rows, cols) == (self._state.settings.rows, self._state.settings.cols):
            return
        settings = attrs.evolve(self._state.settings, rows=rows, cols=cols)
        with storage_errors("write", self._files.meta):
            save = partial(save_settings, self._flusher.disk, self._files, settings)
            await self._flusher.call(save)
        self._state.settings = settings


def check_not_owned(terminal: str, owner: OwnedSize | None) -> None:
    """Raise ``Busy`` if a client owns the size of the terminal."""
    if owner is not None:
        raise Busy(
            f"the size of terminal {terminal!r} belongs to a window of {owner.writer}, since "
            f"{owner.since}; it can be changed there, or by a window that takes it over"
        )
