"""Inboxes that crash, or whose file is broken: through the real router, on real files.

Whoever sends hears that it failed and sends again; the message is there once; nobody else notices.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from actors import AskError, Node, Ref, Request, System
from actors.faults import RUNTIME, Crash, Fault, Plan, Raise, armed
from aegis.errors import AegisError, StorageError, Unavailable
from aegis.inboxes.faults import INBOXES
from aegis.journal.faults import JOURNAL
from aegis.protocol.inboxes import Deliver, MessageList, ReadInbox, Receipt, WaitInbox
from tests.aegis.inboxes.harness import open_inboxes, router, wake

POINTS = [
    "inbox.append.before[pm]",
    "inbox.append.after[pm]",
    "inbox.confirm.before[pm]",
    "ledger.append.before[pm.jsonl]",
    "ledger.append.after[pm.jsonl]",
    "ledger.sync.before[pm.jsonl]",
    "ledger.sync.after[pm.jsonl]",
]
"""All that a message passes on its way into the inbox of pm."""

TRIES = 50
MESSAGES = 5
SENDERS = 6


def an_io_error() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


async def outcome(system: System, request: Request[Any]) -> object:
    """The reply, or the error in its place."""
    try:
        return await router(system).ask(request)
    except (AskError, AegisError) as error:
        return error


async def send_until_confirmed(system: System, delivery: Deliver) -> list[str]:
    """What its sender was told before it was told that the message is there."""
    failures: list[str] = []
    for _ in range(TRIES):
        got = await outcome(system, delivery)
        if isinstance(got, Receipt):
            return failures
        failures.append(str(got))
    raise AssertionError(f"not delivered in {TRIES} tries: {failures[-1]}")


async def ids_in(system: System, handle: str) -> list[str]:
    got: MessageList = await router(system).ask(ReadInbox(from_handle=handle, limit=1000))
    return [message.id for message in got.messages]


def restarts(system: System) -> dict[str, int]:
    """How often those above the inboxes had to start again."""

    def below(node: Node) -> Iterator[Node]:
        yield node
        for child in node.children:
            yield from below(child)

    found = {node.path: node.restarts for node in below(system.tree())}
    return {path: found[path] for path in ("root", "root/inboxes", "root/router")}


def inbox(system: System, handle: str) -> Ref[Any]:
    """The inbox that is there now: the same one until its restarts were used up."""
    ref = system.registry.find("inbox", handle)
    assert ref is not None
    return ref


NONE = {"root": 0, "root/inboxes": 0, "root/router": 0}


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("fault", [Crash(), Raise(an_io_error)], ids=["crash", "eio"])
@pytest.mark.parametrize("point", POINTS)
async def test_whatever_strikes_a_message_sent_again_is_there_once(
    tmp_path: Path, point: str, fault: Fault, number: int
) -> None:
    plan = Plan({(point, number): fault})
    failures: list[str] = []
    async with open_inboxes(tmp_path) as system:

        async def send(sender: int) -> None:
            for each in range(MESSAGES):
                failures.extend(await send_until_confirmed(system, wake(10 * sender + each)))

        await router(system).ask(wake(1, "bob"))
        bob = inbox(system, "bob")
        with armed(plan, INBOXES, JOURNAL):
            async with trio.open_nursery() as nursery:
                for sender in range(SENDERS):
                    nursery.start_soon(send, sender)
            await router(system).ask(wake(2, "bob"))
        assert plan.hits[point] >= number, "the fault did not strike"
        assert failures, "nobody heard of the fault"
        sent = {f"w{10 * sender + each}" for sender in range(SENDERS) for each in range(MESSAGES)}
        there = await ids_in(system, "pm")
        assert sorted(there) == sorted(sent)
        assert await ids_in(system, "bob") == ["w1", "w2"]
        assert inbox(system, "bob") is bob
        assert restarts(system) == NONE
    async with open_inboxes(tmp_path) as system:
        assert await ids_in(system, "pm") == there


async def test_from_one_sender_that_waits_for_each_the_order_is_kept_over_crashes(
    tmp_path: Path,
) -> None:
    plan = Plan({(point, number): Crash() for point in POINTS for number in (3, 8, 15)})
    async with open_inboxes(tmp_path) as system:
        with armed(plan, INBOXES, JOURNAL):
            for number in range(30):
                await send_until_confirmed(system, wake(number))
        assert await ids_in(system, "pm") == [f"w{number}" for number in range(30)]


@pytest.mark.parametrize(
    "point", ["ledger.append.before[pm.jsonl]", "ledger.sync.before[pm.jsonl]"]
)
async def test_an_acknowledgement_that_failed_is_made_by_asking_again(
    tmp_path: Path, point: str
) -> None:
    async with open_inboxes(tmp_path) as system:
        for number in range(3):
            await router(system).ask(wake(number))
        read = ReadInbox(from_handle="pm", after="w1")
        with armed(Plan({(point, 1): Crash()}), INBOXES, JOURNAL):
            assert isinstance(await outcome(system, read), (AskError, Unavailable))
        again = await router(system).ask(read)
        assert [message.id for message in again.messages] == ["w2"]
        assert await ids_in(system, "pm") == ["w2"]


async def test_who_waits_is_told_to_call_again_and_loses_nothing(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        await ids_in(system, "pm")
        waiting = router(system).send_request(WaitInbox(from_handle="pm", timeout=30))
        with armed(Plan({("inbox.append.after[pm]", 1): Crash()}), INBOXES):
            failures = await send_until_confirmed(system, wake(1))
        assert len(failures) == 1
        with pytest.raises(Unavailable, match=r"the inbox of 'pm' ended .* call again: nothing"):
            await waiting.wait()
        got = await router(system).ask(WaitInbox(from_handle="pm", timeout=30))
        assert [message.id for message in got.messages] == ["w1"]


async def test_an_inbox_that_crashes_again_and_again_costs_only_its_own_calls(
    tmp_path: Path,
) -> None:
    crashes = 30
    points = {("inbox.append.before[pm]", number): Crash() for number in range(1, crashes + 1)}
    async with open_inboxes(tmp_path) as system:
        for handle in ("pm", "bob"):
            await router(system).ask(wake(0, handle))
        bob = inbox(system, "bob")
        with armed(Plan(points), INBOXES) as plan:
            for number in range(1, crashes + 1):
                assert isinstance(await outcome(system, wake(number)), AskError)
                await router(system).ask(wake(number, "bob"))
            await send_until_confirmed(system, wake(1))
            assert plan.hits["inbox.append.before[pm]"] > crashes
        assert await ids_in(system, "pm") == ["w0", "w1"]
        assert len(await ids_in(system, "bob")) == crashes + 1
        assert inbox(system, "bob") is bob
        assert restarts(system) == NONE


async def test_an_inbox_that_does_not_come_up_is_tried_anew_by_every_call(tmp_path: Path) -> None:
    fails = 20
    points = {("actor.setup.after[Inbox]", number): Crash() for number in range(1, fails + 1)}
    async with open_inboxes(tmp_path) as system:
        await router(system).ask(wake(1, "bob"))
        with armed(Plan(points), RUNTIME):
            for _ in range(fails):
                got = await outcome(system, wake(1))
                assert isinstance(got, Unavailable)
                assert str(got).startswith("the inbox of 'pm' had an internal error")
            await router(system).ask(wake(1))
        assert await ids_in(system, "bob") == ["w1"]
        assert restarts(system) == NONE


async def test_a_directory_in_the_place_of_the_file_costs_only_that_inbox_and_only_meanwhile(
    tmp_path: Path,
) -> None:
    (tmp_path / "pm.jsonl").mkdir()
    async with open_inboxes(tmp_path) as system:
        for number in range(20):
            with pytest.raises(StorageError, match=r"a directory is in the file's place"):
                await router(system).ask(wake(number))
            await router(system).ask(wake(number, "bob"))
        assert restarts(system) == NONE
        (tmp_path / "pm.jsonl").rmdir()
        await router(system).ask(wake(1))
        assert await ids_in(system, "pm") == ["w1"]


@pytest.mark.parametrize("crash", [False, True], ids=["open", "crashed"])
async def test_a_file_that_is_taken_away_and_put_back_goes_on(tmp_path: Path, crash: bool) -> None:
    path, aside = tmp_path / "pm.jsonl", tmp_path / "aside"
    async with open_inboxes(tmp_path) as system:
        await router(system).ask(wake(0))
        before = inbox(system, "pm")
        path.rename(aside)
        path.mkdir()
        if crash:
            with armed(Plan({("inbox.append.before[pm]", 1): Crash()}), INBOXES):
                assert isinstance(await outcome(system, wake(1)), AskError)
            for _ in range(20):
                with pytest.raises(StorageError, match="a directory is in the file's place"):
                    await router(system).ask(wake(1))
            assert inbox(system, "pm") is before, "a broken file is no crash"
        else:
            await router(system).ask(wake(1))  # the open file is still the same one
        path.rmdir()
        aside.rename(path)
        await router(system).ask(wake(1))
        assert await ids_in(system, "pm") == ["w0", "w1"]
        assert restarts(system) == NONE


async def test_a_disk_that_does_not_sync_is_told_and_when_it_does_again_the_inbox_works(
    tmp_path: Path,
) -> None:
    fails = 15
    points = {
        ("ledger.sync.before[pm.jsonl]", number): Raise(an_io_error)
        for number in range(1, fails + 1)
    }
    async with open_inboxes(tmp_path) as system:
        await router(system).ask(wake(0))
        before = inbox(system, "pm")
        with armed(Plan(points), JOURNAL):
            for _ in range(fails):
                with pytest.raises(StorageError, match=r"cannot sync .*pm\.jsonl: Input/output"):
                    await router(system).ask(wake(1))
                await router(system).ask(wake(0, "bob"))
            assert await ids_in(system, "pm") == ["w0"], "what was refused is not shown"
            await router(system).ask(wake(1))
        assert await ids_in(system, "pm") == ["w0", "w1"]
        assert inbox(system, "pm") is before, "a refusing disk is no crash"


async def test_a_router_that_crashes_is_back_and_the_inboxes_did_not_notice(
    tmp_path: Path,
) -> None:
    async with open_inboxes(tmp_path) as system:
        await router(system).ask(wake(0))
        before = inbox(system, "pm")
        with armed(Plan({("actor.receive.before[InboxRouter]", 2): Crash()}), RUNTIME):
            assert await send_until_confirmed(system, wake(1)) == []
            assert len(await send_until_confirmed(system, wake(2))) == 1
        assert await ids_in(system, "pm") == ["w0", "w1", "w2"]
        assert restarts(system) == NONE | {"root/router": 1}
        assert inbox(system, "pm") is before
