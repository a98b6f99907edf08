"""The simulated line discipline beside a real one."""

from __future__ import annotations

import os
import signal
from random import Random

import pytest
import trio
import trio.testing

from tests.chaos.machine.simulated_tty import INPUT_ROOM_BYTES, OUTPUT_ROOM_BYTES, SimulatedTty

KEYS = [
    b"abc\r",
    b"abc\n",
    b"two\rlines\r",
    b"half",
    b"a\x7fb\r",
    b"ab\x15c\r",
    b"\x7f\x7f\x15c\r",
    b"a\x01b\x7f\x7fc\r",
    b"\x1b[8133;1~\r",
    b"\x04",
    b"ab\x04c\r",
    b"x" * 5000 + b"\r",
]


def new_tty() -> tuple[SimulatedTty, list[tuple[int, signal.Signals]]]:
    sent: list[tuple[int, signal.Signals]] = []

    def send(group: int, signum: signal.Signals) -> bool:
        sent.append((group, signum))
        return True

    tty = SimulatedTty("/dev/pts/0", send, Random("tty"))
    tty.session = tty.foreground = 7
    tty.hold(7)
    return tty, sent


def printed(tty: SimulatedTty) -> bytes:
    """Return the available output of the master."""
    found = b""
    while data := tty.take(4096):
        found += data
    return found


async def read_simulated(keys: bytes) -> tuple[list[bytes], bytes]:
    tty, _ = new_tty()
    tty.give(keys)
    reads = []
    while tty.has_input:
        reads.append(await tty.read(4096))
    return reads, printed(tty)


def read_real(keys: bytes) -> tuple[list[bytes], bytes]:
    master, slave = os.openpty()
    try:
        os.set_blocking(slave, False)
        os.set_blocking(master, False)
        os.write(master, keys)
        return list(drained(slave)), b"".join(drained(master))
    finally:
        os.close(slave)
        os.close(master)


def drained(descriptor: int) -> list[bytes]:
    """Return every read until one would wait."""
    reads: list[bytes] = []
    while True:
        try:
            reads.append(os.read(descriptor, 4096))
        except BlockingIOError:
            return reads


@pytest.mark.real
@pytest.mark.parametrize("keys", KEYS)
async def test_lines_are_edited_and_echoed_as_a_real_tty_does(keys: bytes) -> None:
    assert await read_simulated(keys) == read_real(keys)


@pytest.mark.parametrize(
    ("key", "signum"),
    [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT), (b"\x1a", signal.SIGTSTP)],
)
async def test_a_key_that_signals_drops_what_was_typed(key: bytes, signum: signal.Signals) -> None:
    tty, sent = new_tty()
    tty.give(b"line\rhalf" + key + b"next\r")
    assert sent == [(7, signum)]
    assert await tty.read(100) == b"next\n"
    assert not tty.has_input


async def test_single_keys_come_as_they_are_typed_and_are_one_line_if_nobody_read_them() -> None:
    tty, _ = new_tty()
    tty.take_keys()
    tty.give(b"ab\rc")
    assert await tty.read(2) == b"ab"
    tty.take_lines()
    assert await tty.read(100) == b"\rc"
    assert printed(tty) == b""


async def test_a_write_beyond_the_buffer_waits_for_the_reader() -> None:
    tty, _ = new_tty()
    done = trio.Event()

    async def flood() -> None:
        await tty.write(b"x" * (OUTPUT_ROOM_BYTES + 10))
        done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood)
        await trio.testing.wait_all_tasks_blocked()
        assert not done.is_set()
        with trio.fail_after(30):
            while printed(tty):
                await trio.testing.wait_all_tasks_blocked()
            await done.wait()


def test_what_nobody_reads_is_typed_up_to_a_bound() -> None:
    tty, _ = new_tty()
    tty.take_keys()
    assert tty.give(b"x" * (INPUT_ROOM_BYTES + 5)) == INPUT_ROOM_BYTES
    assert tty.give(b"y") == 0


async def test_a_hang_up_ends_reads_fails_writes_and_tells_the_session() -> None:
    tty, sent = new_tty()
    tty.give(b"line\r")
    tty.hang_up()
    tty.hang_up()
    assert sent == [(7, signal.SIGHUP), (7, signal.SIGCONT)]
    assert await tty.read(100) == b""
    with pytest.raises(trio.BrokenResourceError):
        await tty.write(b"x")


def test_the_stream_ends_when_nobody_holds_the_slave_and_all_is_read() -> None:
    tty, _ = new_tty()
    tty.hold(8)
    tty.give(b"echo")
    tty.release(7)
    assert printed(tty) == b"echo"
    assert tty.take(100) is None
    tty.release(8)
    assert tty.take(100) == b""
