"""The size of a terminal's window, and the client that owns it.

A new size is stored durably, then set on the PTY, then answered. While a stream owns the size,
nobody else changes it. The owner is not stored: ownership ends with the stream, the front or the
daemon.
"""

from __future__ import annotations

from functools import partial

import attrs
import trio

from aegis.clock import utc_now
from aegis.errors import Busy
from aegis.journal.disk import storage_errors
from aegis.journal.flusher import Flusher
from aegis.protocol.control import ResizeTerminal
from aegis.protocol.feeds import ClaimSize, OwnedSize, ReleaseSize
from aegis.terminals.messages import SetSize
from aegis.terminals.meta import save_settings, saved_settings
from aegis.terminals.record import writer_tag
from aegis.terminals.settings import TerminalFiles, TerminalSettings

SizeRequest = ResizeTerminal | ClaimSize | ReleaseSize


class TerminalSize:
    """The window's size, which is part of ``settings``; requests are carried out one at a time."""

    def __init__(self, settings: TerminalSettings, files: TerminalFiles, flusher: Flusher) -> None:
        self.settings = settings
        self._files = files
        self._flusher = flusher
        self._lock: trio.Lock | None = None  # made when needed: few windows are resized
        self._owner: OwnedSize | None = None

    async def read(self) -> None:
        """Read the size that an earlier incarnation of the front has set."""
        read = partial(saved_settings, self._flusher.disk, self._files, self.settings)
        self.settings = await self._flusher.call(read)

    def message(self) -> SetSize:
        """Return the message to the shell's actor with size and owner."""
        return SetSize(rows=self.settings.rows, cols=self.settings.cols, owner=self._owner)

    async def change(self, request: SizeRequest) -> SetSize:
        """Carry out a request; return the message to the shell's actor.

        Fresh shells start with a new size, also after a restart of the daemon. Raises ``Busy`` if a
        client owns the size, ``StorageError``.
        """
        if self._lock is None:
            self._lock = trio.Lock()
        async with self._lock:
            if isinstance(request, ReleaseSize):
                self._owner = None if self._is_owner(request) else self._owner
                return self.message()
            claim = request if isinstance(request, ClaimSize) else None
            if claim is None or not (claim.take or self._is_owner(claim)):
                self._check_not_owned(request.name)
            await self._save(request.rows, request.cols)
            if claim is not None and not self._is_owner(claim):
                writer = writer_tag(claim.from_handle)
                self._owner = OwnedSize(token=claim.token, writer=writer, since=utc_now())
            return self.message()

    async def _save(self, rows: int, cols: int) -> None:
        if (rows, cols) == (self.settings.rows, self.settings.cols):
            return
        settings = attrs.evolve(self.settings, rows=rows, cols=cols)
        with storage_errors("write", self._files.meta):
            save = partial(save_settings, self._flusher.disk, self._files, settings)
            await self._flusher.call(save)
        self.settings = settings

    def _is_owner(self, request: ClaimSize | ReleaseSize) -> bool:
        return self._owner is not None and self._owner.token == request.token

    def _check_not_owned(self, terminal: str) -> None:
        owner = self._owner
        if owner is not None:
            raise Busy(
                f"the size of terminal {terminal!r} belongs to a window of {owner.writer}, since "
                f"{owner.since}; it can be changed there, or by a window that takes it over"
            )
