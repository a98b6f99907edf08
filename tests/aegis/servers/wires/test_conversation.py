"""A client that asks and never reads: what waits for it is bounded, and then it is not read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from aegis.protocol.derived.wire import to_plain
from aegis.protocol.entry import Entry
from aegis.protocol.output import OutputChunk
from aegis.protocol.terminals import TerminalList
from aegis.protocol.tool_sets import Offer
from aegis.servers.access.auth import open_keys
from aegis.servers.calls import OPERATOR, Caller, Identity
from aegis.servers.requests import CommandRequest, reply_frame
from aegis.servers.wires.conversation import (
    MAX_ANSWERS,
    MAX_IN_FLIGHT,
    MAX_LOOKUPS,
    MAX_UNREAD_CHARS,
    EndReason,
    ServerContext,
    converse,
    is_lookup,
)
from aegis.servers.wires.port import WireClosed
from tests.fakes.streams import ScriptedStreams


class CountingPort:
    """PendingRequests at once, and counts the calls."""

    def __init__(self, answer: object = None) -> None:
        self.calls = 0
        self._answer = TerminalList(result=[]) if answer is None else answer

    async def call(self, caller: Caller, entry: Entry, arguments: Mapping[str, object]) -> object:
        self.calls += 1
        return self._answer

    def opened(self, caller: Caller) -> None:
        pass

    def offer(self, identity: Identity) -> Offer:
        return Offer()

    def listed(self, caller: Caller) -> None:
        pass

    async def report_progress(self, *given: object) -> None:
        raise AssertionError("nobody asked for progress")

    def closed(self, caller: Caller) -> None:
        pass


class DeafWire:
    """A client that sends ``requests``, one after the other, and takes answers once ``reads``."""

    def __init__(self, requests: int, command: str = "term_unsubscribe") -> None:
        self.left = requests
        self._command = command
        self.reads = trio.Event()
        self.codes: list[str] = []

    async def receive(self) -> str:
        # Everything that was asked for is answered, as far as it can be, before the next request.
        await trio.testing.wait_all_tasks_blocked()
        if self.left == 0:
            await trio.testing.wait_all_tasks_blocked(0.01)
            raise WireClosed
        self.left -= 1
        return json.dumps({"type": "request", "id": self.left, "command": self._command})

    async def send(self, message: str | bytes) -> None:
        await self.reads.wait()
        frame = json.loads(message)
        self.codes.append(frame.get("code", "reply"))

    def trust(self, identity: Identity | None) -> None:
        assert identity is None, "it has shown no key"

    def holding(self, size: int) -> AbstractContextManager[None]:
        return nullcontext()


async def test_a_client_that_never_reads_has_only_so_many_answers_waiting(tmp_path: Path) -> None:
    port, wire = CountingPort(), DeafWire(3 * MAX_ANSWERS)
    context = ServerContext(
        port=port, streams=ScriptedStreams(), keys=open_keys(tmp_path), server="test"
    )
    ends: list[EndReason] = []

    async def serve() -> None:
        ends.append(await converse(wire, context, "line", OPERATOR, trio.Event()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        while wire.left > 2 * MAX_ANSWERS - 1:
            await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
        assert port.calls == MAX_ANSWERS
        assert wire.left == 2 * MAX_ANSWERS - 1
        wire.reads.set()
    assert ends == [EndReason.CLIENT_GONE]
    assert port.calls == 3 * MAX_ANSWERS - 1
    assert sorted(set(wire.codes)) == ["busy", "reply"]
    assert wire.codes.count("busy") == 1


async def test_of_large_answers_fewer_may_wait(tmp_path: Path) -> None:
    empty = OutputChunk(text="", cursor=0, next_cursor=0, dropped=0, running=False)
    most = 8  # reach the limit exactly, with ids of two digits
    size = MAX_UNREAD_CHARS // most - len(reply_frame(10, to_plain(empty)))
    large = attrs.evolve(empty, text="x" * size)
    port, wire = CountingPort(large), DeafWire(20)
    context = ServerContext(
        port=port, streams=ScriptedStreams(), keys=open_keys(tmp_path), server="test"
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(converse, wire, context, "line", OPERATOR, trio.Event())
        while wire.left > 20 - most - 1:
            await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
        assert port.calls == most
        assert wire.left == 20 - most - 1, "nothing more is read before an answer is"
        wire.reads.set()
    assert wire.codes.count("busy") == 1
    assert port.calls == 19


async def test_what_is_only_looked_up_waits_until_earlier_answers_were_taken(
    tmp_path: Path,
) -> None:
    port, wire = CountingPort(), DeafWire(MAX_IN_FLIGHT, "term_list")
    context = ServerContext(
        port=port, streams=ScriptedStreams(), keys=open_keys(tmp_path), server="test"
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(converse, wire, context, "line", OPERATOR, trio.Event())
        while wire.left:
            await trio.testing.wait_all_tasks_blocked()
        assert port.calls == MAX_LOOKUPS
        wire.reads.set()
    assert port.calls == MAX_IN_FLIGHT
    assert wire.codes == ["reply"] * MAX_IN_FLIGHT


@pytest.mark.parametrize(
    ("command", "arguments", "at_once"),
    [
        ("term_read", {}, True),
        ("term_output", {}, True),
        ("term_output", {"wait_s": 0}, True),
        ("inbox_read", {}, True),
        ("status", {}, True),
        ("term_output", {"wait_s": 50}, False),
        ("term_wait", {}, False),
        ("inbox_wait", {}, False),
        ("term_run", {}, False),
        ("term_spawn", {}, False),
        ("no such command", {}, False),
    ],
)
def test_what_waits_or_changes_something_takes_no_turn_of_a_lookup(
    command: str, arguments: dict[str, object], at_once: bool
) -> None:
    assert is_lookup(CommandRequest(1, command, arguments)) == at_once
