"""Want of descriptors at ``accept``: waited for, and said once."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

import pytest
import trio
from structlog.testing import capture_logs

from aegis.servers.gateway.sockets import LOG_INTERVAL_S, RETRY_S, RetryingListener


class Knocking(trio.abc.Listener[trio.SocketStream]):
    """A listener whose ``accept`` fails as it is told, before a client comes."""

    def __init__(self, codes: Iterator[int], stream: trio.SocketStream) -> None:
        self._codes = codes
        self._stream = stream

    async def accept(self) -> trio.SocketStream:
        for code in self._codes:
            raise OSError(code, os.strerror(code))
        return self._stream

    async def aclose(self) -> None:
        await self._stream.aclose()


@pytest.fixture
async def stream() -> trio.SocketStream:
    ours, theirs = trio.socket.socketpair()
    theirs.close()
    return trio.SocketStream(ours)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
async def test_a_client_is_taken_in_once_there_is_room_and_the_log_tells_of_it_once(
    stream: trio.SocketStream, autojump_clock: object, code: int
) -> None:
    listener = RetryingListener(Knocking(iter([code] * 100), stream))
    async with stream:
        with capture_logs() as entries:
            assert await listener.accept() is stream
    assert trio.current_time() == pytest.approx(100 * RETRY_S)
    assert [(each["log_level"], each["why"]) for each in entries] == [
        ("warning", os.strerror(code))
    ]


async def test_what_lasts_for_long_is_told_now_and_then(
    stream: trio.SocketStream, autojump_clock: object
) -> None:
    times = round(2.5 * LOG_INTERVAL_S / RETRY_S)
    listener = RetryingListener(Knocking(iter([errno.EMFILE] * times), stream))
    async with stream:
        with capture_logs() as entries:
            await listener.accept()
    assert len(entries) == 3


async def test_any_other_error_is_the_servers(stream: trio.SocketStream) -> None:
    listener = RetryingListener(Knocking(iter([errno.EBADF]), stream))
    async with stream:
        with pytest.raises(OSError, match="Bad file descriptor"):
            await listener.accept()
