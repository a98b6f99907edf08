"""What workers run in these tests."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

import trio
import trio.testing

from actors.nodes import Link


async def echo(link: Link, argument: bytes) -> None:
    """Say what it was given, then whatever comes, until that is a goodbye."""
    await link.send(argument)
    while (message := await link.receive()) != b"bye":
        await link.send(message)


async def return_at_once(link: Link, argument: bytes) -> None:
    """Leave one message behind."""
    await link.send(b"last words")


async def crash(link: Link, argument: bytes) -> None:
    raise ValueError(argument.decode())


async def crash_as_group(link: Link, argument: bytes) -> None:
    """Let two tasks fail in a nursery of its own: Trio's groups are strict here, too."""

    async def fail(error: Exception) -> None:
        raise error

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail, ValueError("alone"))
    except* ValueError:
        await link.send(b"a group")
    raise ExceptionGroup("both", [ValueError("one"), KeyError("two")])


async def exit_with_code(link: Link, argument: bytes) -> None:
    """Exit when told to: before, the parent may not have heard yet that the worker is up."""
    await link.receive()
    os._exit(int(argument))


async def block(link: Link, argument: bytes) -> None:
    """Hold the loop, and everything in the process, for ever."""
    with trio.CancelScope(shield=True):
        await link.send(b"blocking")
        await trio.testing.wait_all_tasks_blocked()  # that was written
        time.sleep(3600)  # noqa: ASYNC251


async def never_let_go(link: Link, argument: bytes) -> None:
    """Refuse to be cancelled."""
    await link.send(b"up")
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()


async def clean_up(link: Link, argument: bytes) -> None:
    """Say goodbye when it is stopped."""
    await link.send(b"up")
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await link.send(b"cleaned up")


async def drop_connection(link: Link, argument: bytes) -> None:
    """Close every socket of the process, and go on."""
    await link.send(b"up")
    await trio.testing.wait_all_tasks_blocked()  # that was written
    for descriptor in range(3, 64):
        try:
            socket.socket(fileno=os.dup(descriptor)).shutdown(socket.SHUT_RDWR)
        except OSError:
            continue
    await trio.sleep_forever()


async def send_many(link: Link, argument: bytes) -> None:
    """Send numbered messages without waiting for anything."""
    count, size = map(int, argument.split())
    for number in range(count):
        await link.send(number.to_bytes(4, "big").ljust(size, b"\x00"))


async def take_none(link: Link, argument: bytes) -> None:
    """Receive nothing until it is told that it may by a file."""
    await link.send(b"up")
    while not await trio.Path(argument.decode()).exists():  # noqa: ASYNC110
        await trio.sleep(0.05)
    while True:
        await link.send(await link.receive())


async def describe(link: Link, argument: bytes) -> None:
    """Tell of the process what must and must not be in it."""
    told = {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "trio": str(sys.modules["trio"] is trio and not hasattr(trio, "MultiError")),
        "breakpoint": os.environ.get("PYTHONBREAKPOINT", ""),
        "path": " ".join(x for x in sys.path if x.endswith(("/tractor", "actors/nodes"))),
        "modules": " ".join(each for each in ("pdbpp", "trio_typing") if each in sys.modules),
        "input": os.readlink("/proc/self/fd/0"),
        "secret": str(argument.decode() in _all_that_is_shown()),
        "ignored": str(signal.getsignal(signal.SIGINT) is signal.SIG_IGN),
        "main": sys.modules["__main__"].__spec__.name,  # type: ignore[union-attr]
    }
    await link.send("\n".join(f"{name}={value}" for name, value in told.items()).encode())


def _all_that_is_shown() -> str:
    """The arguments and the environment, which other processes can see."""
    shown = b""
    for name in ("cmdline", "environ"):
        with open(f"/proc/self/{name}", "rb") as file:
            shown += file.read()
    return shown.decode("utf-8", "replace")
