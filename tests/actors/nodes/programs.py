"""A root and a node as programs of their own, for what needs two processes, or two hosts.

    python -m tests.actors.nodes.programs root KEY HOST PORT [worker]
    python -m tests.actors.nodes.programs node KEY HOST PORT NAME HELLO EVERY_S LOST_AFTER_S

What happens to them is a line each, which ``processes.Program`` reads.
"""

from __future__ import annotations

import gc
import itertools
import json
import sys
from pathlib import Path

import trio

from actors.nodes import (
    Beat,
    HandshakeRefused,
    Joined,
    JoinFailed,
    Link,
    LinkLost,
    NodeKey,
    NodeRuntime,
    join,
    open_runtime,
    read_key,
)
from actors.nodes.links.wire import OutcomeFrame, OutcomeKind
from tests.actors.nodes.machine import descriptors, resident_kib, running, spec, tasks

STATE = b"what is there?"
"""Answered by a root with what it has open and remembers."""

GOODBYE = b"bye"
"""Lets a node end in order."""

REFUSED = "refuse me"

COUNT = "count for me"
"""Said by a node that wants numbers to send back; others get back what they send."""


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def root(key: NodeKey, host: str, port: int, *, with_worker: bool) -> None:
    async with (
        open_runtime(key=key, host=host, port=port) as runtime,
        trio.open_nursery() as nursery,
    ):
        if with_worker:
            nursery.start_soon(use_worker, runtime)
        say("listening", runtime.address[1])
        while True:
            joined = await runtime.next_join()
            if joined.hello == REFUSED.encode():
                joined.refuse("You asked for it.")
            else:
                joined.accept(b"welcome, " + joined.hello)
                nursery.start_soon(converse, runtime, joined)


async def use_worker(runtime: NodeRuntime) -> None:
    """Say each second that it answers; end all if it does not go on answering."""
    async with running(runtime, spec("echo", argument=b"hello")) as worker:
        await worker.receive()
        say("worker", worker.pid)
        for number in itertools.count(1):
            await worker.send(b"there?")
            assert await worker.receive() == b"there?"
            if number % 20 == 0:
                say("answered")
            await trio.sleep(0.05)


async def converse(runtime: NodeRuntime, joined: Joined) -> None:
    """Send numbers and echo what else comes, and say how it ended."""
    say("joined", joined.name, joined.address)
    async with trio.open_nursery() as nursery:
        if joined.hello == COUNT.encode():
            nursery.start_soon(count, joined)
        else:
            nursery.start_soon(echo, joined.link, runtime)
        try:
            say("ended", joined.name, (await joined.link.run()).kind.name)
        except LinkLost as error:
            say("lost", joined.name, error)
        nursery.cancel_scope.cancel()


async def count(joined: Joined) -> None:
    """Send numbers, and hold that they come back in order; say each tenth."""
    try:
        for number in itertools.count(1):
            await joined.link.send(b"%d" % number)
            assert await joined.link.receive() == b"%d" % number
            if number % 10 == 0:
                say("echoed", joined.name)
            await trio.sleep(0.01)
    except LinkLost:
        return


async def echo(link: Link, runtime: NodeRuntime | None = None) -> None:
    """Send back what comes, until a goodbye or the end."""
    try:
        while (message := await link.receive()) != GOODBYE:
            if message == STATE and runtime is not None:
                message = json.dumps(state(runtime)).encode()
            await link.send(message)
    except LinkLost:
        return


def state(runtime: NodeRuntime) -> dict[str, object]:
    gc.collect()
    return {
        "descriptors": descriptors(),
        "tasks": tasks(),
        "resident_kib": resident_kib(),
        "remembered": runtime.remembered(),
    }


async def node(key: NodeKey, host: str, port: int, name: str, hello: bytes, beat: Beat) -> None:
    """Join, echo what comes, and join again when the link is lost, until it is to end."""
    while True:
        try:
            async with join(host, port, key, name=name, hello=hello, beat=beat) as (answer, link):
                say("joined", answer.decode())
                if await live(link):
                    return
        except (JoinFailed, HandshakeRefused) as error:
            say(type(error).__name__, error)
            await trio.sleep(0.2)


async def live(link: Link) -> bool:
    """Echo until it is to end, or the link is lost; return whether it ended in order."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(finish, link)
        try:
            say("ended", (await link.run()).kind.name)
        except LinkLost as error:
            say("lost", error)
            return False
        finally:
            nursery.cancel_scope.cancel()
    return True


async def finish(link: Link) -> None:
    """End the link when it is asked to stop, or told goodbye."""
    async with trio.open_nursery() as nursery:

        async def until_asked() -> None:
            await link.stop_asked.wait()
            nursery.cancel_scope.cancel()

        nursery.start_soon(until_asked)
        await echo(link)
        nursery.cancel_scope.cancel()
    kind = OutcomeKind.STOPPED if link.stop_asked.is_set() else OutcomeKind.DONE
    await link.finish(OutcomeFrame(kind))


def main(which: str, key: str, host: str, port: str, *more: str) -> None:
    there = (read_key(Path(key)), host, int(port))
    if which == "root":
        with_worker = "worker" in more

        async def run() -> None:
            await root(*there, with_worker=with_worker)
    else:
        name, hello, every_s, lost_after_s = more
        beat = Beat(float(every_s), float(lost_after_s))

        async def run() -> None:
            await node(*there, name, hello.encode(), beat)

    trio.run(run)


if __name__ == "__main__":
    main(*sys.argv[1:])
