"""The size of a terminal's window: stored durably, then set on the PTY, then answered."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs
import trio

from actors import Ref, Reply
from aegis.errors import AegisError
from aegis.journal.disk import storage_error
from aegis.journal.flusher import Flusher
from aegis.protocol.control import ResizeTerminal
from aegis.protocol.terminals import TerminalInfo
from aegis.terminals.front.standing import Standing
from aegis.terminals.messages import SetSize
from aegis.terminals.meta import save_settings, saved_settings
from aegis.terminals.settings import TerminalFiles


class Resizing:
    """The resize requests of one terminal, one at a time.

    ``info`` returns its description; ``on_change`` is called when the size has changed.
    """

    def __init__(
        self,
        standing: Standing,
        shell: Ref[SetSize],
        files: TerminalFiles,
        flusher: Flusher,
        info: Callable[[], TerminalInfo],
        on_change: Callable[[], None],
    ) -> None:
        self._on_change = on_change
        self._standing = standing
        self._shell = shell
        self._files = files
        self._flusher = flusher
        self._info = info
        self._lock: trio.Lock | None = None  # made when needed: few windows are resized

    async def read_size(self) -> None:
        """Read the size that an earlier incarnation of the front has set."""
        read = partial(saved_settings, self._flusher.disk, self._files, self._standing.settings)
        self._standing.settings = await self._flusher.call(read)

    async def resize(self, request: ResizeTerminal, reply: Reply[TerminalInfo]) -> None:
        """Set the size; fresh shells start with it, also after a restart of the daemon."""
        if self._lock is None:
            self._lock = trio.Lock()
        async with self._lock:
            try:
                await self._save(request.rows, request.cols)
            except AegisError as error:
                reply.fail(error)
                return
            self._shell.tell(SetSize(rows=request.rows, cols=request.cols))
            reply.send(self._info())
            self._on_change()

    async def _save(self, rows: int, cols: int) -> None:
        settings = attrs.evolve(self._standing.settings, rows=rows, cols=cols)
        try:
            save = partial(save_settings, self._flusher.disk, self._files, settings)
            await self._flusher.call(save)
        except OSError as error:
            raise storage_error("write", self._files.meta, error) from error
        self._standing.settings = settings
