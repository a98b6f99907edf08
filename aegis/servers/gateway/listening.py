"""Taking clients in, also when for a while there is no descriptor left for another one."""

from __future__ import annotations

import errno
import math

import structlog
import trio

RETRY_S = 0.1
"""No event tells that a descriptor is free again: so long the listener waits."""

TELL_S = 60.0
"""It says so once, and again after so long at the earliest: a log must not fill a disk."""

_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}

log = structlog.get_logger("aegis.servers")


class PatientListener(trio.abc.Listener[trio.SocketStream]):
    """``inner``, but ``accept`` waits until the process and the system have room for a client.

    Those who knock meanwhile wait in the queue of the kernel. Trio would wait as well, and log an
    error with its traceback ten times a second.
    """

    def __init__(self, inner: trio.abc.Listener[trio.SocketStream]) -> None:
        self._inner = inner
        self._told_at = -math.inf

    async def accept(self) -> trio.SocketStream:
        """The next client. Raises as ``inner`` does, but not for want of room."""
        while True:
            try:
                return await self._inner.accept()
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                self._tell(error)
            await trio.sleep(RETRY_S)

    async def aclose(self) -> None:
        """Close the socket."""
        await self._inner.aclose()

    def _tell(self, error: OSError) -> None:
        now = trio.current_time()
        if now >= self._told_at + TELL_S:
            self._told_at = now
            log.warning("no client can be taken in now", why=error.strerror)
