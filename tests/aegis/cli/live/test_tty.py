"""The terminal in front of which somebody sits, here a PTY."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator

import pytest
import trio

from aegis.cli.live.tty import open_own_terminal

GUARD_S = 60


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """The window's end, and the end of those inside."""
    window, inside = pty.openpty()
    yield window, inside
    os.close(inside)
    os.close(window)


async def test_raw_is_undone_exactly(ends: tuple[int, int]) -> None:
    _, inside = ends
    before = termios.tcgetattr(inside)
    with open_own_terminal(inside, inside) as own:
        own.make_raw()
        own.make_raw()
        assert termios.tcgetattr(inside) != before
        own.restore()
        assert termios.tcgetattr(inside) == before
        own.make_raw()
    assert termios.tcgetattr(inside) == before


async def test_the_given_descriptors_still_block(ends: tuple[int, int]) -> None:
    window, inside = ends
    with open_own_terminal(inside, inside) as own:
        own.make_raw()
        assert os.get_blocking(inside)
        os.write(window, b"key")
        with trio.fail_after(GUARD_S):
            assert await own.read() == b"key"
            await own.write(b"shown")
        assert os.read(window, 100) == b"shown"


async def test_more_than_fits_is_written_as_it_is_read(ends: tuple[int, int]) -> None:
    window, inside = ends
    data, read = os.urandom(500_000), b""
    with open_own_terminal(inside, inside) as own, trio.fail_after(GUARD_S):
        own.make_raw()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(own.write, data)
            while len(read) < len(data):
                await trio.lowlevel.wait_readable(window)
                read += os.read(window, 65_536)
    assert read == data


async def test_what_is_written_at_the_end_waits_no_longer_than_it_must(
    ends: tuple[int, int],
) -> None:
    _, inside = ends
    with open_own_terminal(inside, inside) as own:
        own.make_raw()
        own.write_now(b"x" * 1_000_000)  # nobody reads: it returns all the same


async def test_a_size_that_nobody_knows_is_zero(ends: tuple[int, int]) -> None:
    window, inside = ends
    with open_own_terminal(inside, inside) as own:
        assert own.size() == (0, 0)
        fcntl.ioctl(window, termios.TIOCSWINSZ, struct.pack("4H", 30, 90, 0, 0))
        assert own.size() == (90, 30)


async def test_a_window_that_is_gone_reads_as_nothing() -> None:
    window, inside = pty.openpty()
    with open_own_terminal(inside, inside) as own, trio.fail_after(GUARD_S):
        own.make_raw()
        os.close(window)
        assert await own.read() == b""
        await own.write(b"to nobody")
        own.write_now(b"to nobody")
        assert own.size() in ((0, 0), (80, 24))
    os.close(inside)
