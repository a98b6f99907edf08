"""The desk with real files: owners, answerers, readers, and crashes of each of them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from actors import ActorError, AskError
from actors.faults import RUNTIME, Crash, Fault, Plan, Raise, armed
from aegis.errors import AegisError, Forbidden, StorageError, Unavailable
from aegis.journal.faults import JOURNAL
from aegis.protocol.requests import (
    FollowRequests,
    RenameRequests,
    RequestNews,
    RequestOpened,
    RequestReply,
    WithdrawRequests,
)
from aegis.requests.faults import REQUESTS
from tests.aegis.requests.harness import CrashNow, Office, answer, asked, open_office

POINTS = [
    *(
        f"request.append.{when}[{kind}]"
        for kind in ("opened", "answered", "applied")
        for when in ("before", "after")
    ),
    "request.apply.before[root/owner]",
    "request.apply.after[root/owner]",
    "ledger.append.before[requests.jsonl]",
    "ledger.append.after[requests.jsonl]",
    "ledger.sync.before[requests.jsonl]",
    "ledger.sync.after[requests.jsonl]",
]
"""All that a request passes from its opening to its effect."""


def an_io_error() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


STRIKES: list[tuple[str, Fault]] = [
    *((point, Crash()) for point in POINTS),
    *((point, Raise(an_io_error)) for point in POINTS if point.startswith("ledger")),
]
"""Each place with a crash, and those of the disk with an error of it."""


async def outcome(office: Office, request: Any) -> Any:
    """The reply, or the error in its place."""
    try:
        return await office.desk.ask(request)
    except (AskError, AegisError) as error:
        return error


async def test_a_request_is_opened_listed_answered_and_applied(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        assert not (tmp_path / "requests.jsonl").exists()
        request = await office.open()
        [listed] = await office.listed(state="open")
        assert (listed.id, listed.digest, listed.tool) == (request.id, request.digest, "Bash")
        reply: RequestReply = await office.desk.ask(answer(request))
        assert (reply.outcome, reply.by) == ("applied", "human")
        assert [(each.key, each.by, each.scope) for each in office.acted] == [
            ("k1", "human", "once")
        ]
        assert await office.listed(state="open") == []
        again = await office.desk.ask(answer(request, "deny"))
        assert again.outcome == "already_answered"
    async with open_office(tmp_path, life="life2") as office:
        assert await office.state(request) == "applied"


async def test_an_owner_that_does_not_run_opens_nothing(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        for owner in ("root/nobody", "workflow:w1"):
            with pytest.raises(Unavailable, match=f"the owner '{owner}' of a request"):
                await office.open(asked(owner=owner))
        assert await office.listed() == []


async def test_an_owner_may_be_named_in_the_registry(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        office.system.registry.add("workflow", "w1", office.owner)
        request = await office.open(asked(owner="workflow:w1", session=None, workflow="w1"))
        await office.desk.ask(answer(request))
        assert len(office.acted) == 1


async def test_the_requests_of_an_owner_that_crashes_are_withdrawn(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        request = await office.open()
        workflow = await office.open(asked("k2", session=None, workflow="w1"))
        office.owner.tell(CrashNow())
        await until(office, request, "withdrawn")
        assert await office.state(workflow) == "open"
        late = await office.desk.ask(answer(request))
        assert late.text.endswith("its session crashed or ended")
        assert await office.state(await office.open(asked("k3"))) == "open"


async def test_an_answer_whose_owner_crashes_with_it_is_withdrawn_and_may_have_acted(
    tmp_path: Path,
) -> None:
    async with open_office(tmp_path, is_slow=True) as office:
        request = await office.open()
        waiting = office.desk.send_request(answer(request))
        await until_acted(office)
        office.owner.tell(CrashNow())
        reply = await waiting.wait()
        assert reply.outcome == "withdrawn"
        assert "it may have acted" in reply.text


async def test_an_answer_to_an_owner_that_stopped_does_not_act(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        request = await office.open(asked(session=None, workflow="w1"))
        owner = office.owner
        owner.stop()
        while not owner.is_stopped:
            await trio.testing.wait_all_tasks_blocked()
        reply = await office.desk.ask(answer(request))
        assert reply.outcome == "withdrawn"
        assert office.acted == []


async def test_who_waits_too_long_for_an_owner_is_told_where_to_look(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    async with open_office(tmp_path, is_slow=True) as office:
        request = await office.open()
        waiting = office.desk.send_request(answer(request))
        await until_acted(office)
        mock_clock.jump(21)
        with pytest.raises(Unavailable, match="is not confirmed after 20 s: look with"):
            await waiting.wait()
        assert await office.state(request) == "answered"


async def test_withdrawing_and_renaming_reach_the_desk(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        request = await office.open()
        office.desk.tell(RenameRequests(session="s-ann", handle="eve"))
        [listed] = await office.listed(handle="EVE")
        assert listed.handle == "eve"
        done = await office.desk.ask(WithdrawRequests(session="s-ann", reason="the turn ended"))
        assert done.ids == [request.id]
        office.desk.tell(WithdrawRequests(session="s-ann", reason="again"))
        assert await office.state(request) == "withdrawn"


# Rights, looked up where sessions are known.


async def test_without_sessions_no_handle_may_answer_and_each_sees_its_own(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        request = await office.open()
        assert [each.id for each in await office.listed(from_handle="ann")] == [request.id]
        assert await office.listed(from_handle="bob") == []
        with pytest.raises(Forbidden, match="'bob' may not answer requests"):
            await office.desk.ask(answer(request, from_handle="bob"))


async def test_the_rights_of_a_session_are_looked_up(tmp_path: Path) -> None:
    async with open_office(tmp_path, sessions=True) as office:
        request = await office.open()
        for handle, sees in (("ann", True), ("bob", True), ("kid", False), ("eve", False)):
            assert len(await office.listed(from_handle=handle)) == sees, handle
            if handle != "bob":
                with pytest.raises(Forbidden):
                    await office.desk.ask(answer(request, from_handle=handle))
        reply = await office.desk.ask(answer(request, from_handle="bob"))
        assert (reply.outcome, reply.by) == ("applied", "agent:bob")


# Streams.


async def test_a_stream_gets_the_open_requests_and_then_each_change(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        first = await office.open()
        news: RequestNews = await office.desk.ask(FollowRequests())
        assert news.open == [first.id] == [each.id for each in news.changed]
        waiting = office.desk.send_request(FollowRequests(place=news.place))
        second = await office.open(asked("k2"))
        news = await waiting.wait()
        assert [(each.id, each.state) for each in news.changed] == [(second.id, "open")]
        assert news.open is None
        waiting = office.desk.send_request(FollowRequests(place=news.place))
        await office.desk.ask(answer(first))
        news = await waiting.wait()
        assert [(each.id, each.state) for each in news.changed] == [(first.id, "answered")]


async def test_a_stream_of_an_agent_has_its_own_requests(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        news = await office.desk.ask(FollowRequests(from_handle="bob"))
        assert news.open == []
        waiting = office.desk.send_request(FollowRequests(from_handle="bob", place=news.place))
        await office.open()
        own = await office.open(asked("k2", handle="bob", session="s-bob"))
        assert [each.id for each in (await waiting.wait()).changed] == [own.id]


async def test_a_stream_that_missed_a_crash_of_the_desk_begins_anew(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        request = await office.open()
        news = await office.desk.ask(FollowRequests())
        with armed(Plan({("request.append.before[opened]", 1): Crash()}), REQUESTS):
            assert isinstance(await outcome(office, asked("k2")), ActorError)
        news = await office.desk.ask(FollowRequests(place=news.place))
        assert news.open == [request.id]


# Crashes and disks.


async def until(office: Office, request: RequestOpened, state: str) -> None:
    while await office.state(request) != state:
        await trio.testing.wait_all_tasks_blocked()


async def until_acted(office: Office) -> None:
    while not office.acted:
        await trio.testing.wait_all_tasks_blocked()


@pytest.mark.parametrize(("point", "fault"), STRIKES)
async def test_wherever_a_fault_strikes_an_answer_acts_once_and_its_owner_hears_of_it(
    tmp_path: Path, point: str, fault: Fault
) -> None:
    plan = Plan({(point, 1): fault})
    async with open_office(tmp_path) as office:
        with armed(plan, REQUESTS, JOURNAL):
            failures = 0
            opened: Any = None
            for _ in range(50):
                opened = await outcome(office, asked())
                if isinstance(opened, RequestOpened):
                    break
                failures += 1
            for _ in range(50):
                reply = await outcome(office, answer(opened))
                if isinstance(reply, RequestReply):
                    break
                failures += 1
            assert plan.hits[point] >= 1, "the fault did not strike"
            await until(office, opened, "applied")
        assert len(office.acted) == 1
        assert failures <= 1
        [listed] = await office.listed()
        assert listed.by == "human"
    async with open_office(tmp_path, life="life2") as office:
        [again] = await office.listed()
        assert (again.id, again.state) == (opened.id, "answered")
        assert office.acted == []


async def test_while_the_disk_refuses_nothing_is_opened_and_nothing_acts(tmp_path: Path) -> None:
    fails = 10
    plan = Plan(
        {
            ("ledger.sync.before[requests.jsonl]", number): Raise(an_io_error)
            for number in range(2, fails + 2)
        }
    )
    async with open_office(tmp_path) as office:
        with armed(plan, JOURNAL):
            request = await office.open()
            for _ in range(fails):
                with pytest.raises(StorageError, match=r"requests\.jsonl: Input/output"):
                    await office.desk.ask(answer(request))
            assert office.acted == []
            assert await office.state(request) == "open"
            assert (await office.desk.ask(answer(request))).outcome == "applied"
        assert len(office.acted) == 1


async def test_a_ledger_that_cannot_be_opened_is_tried_anew_by_every_request(
    tmp_path: Path,
) -> None:
    path = tmp_path / "requests.jsonl"
    path.mkdir()
    async with open_office(tmp_path) as office:
        for _ in range(3):
            assert isinstance(await outcome(office, asked()), StorageError)
        path.rmdir()
        assert (await office.open()).state == "open"


async def test_a_damaged_line_costs_only_its_request(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    async with open_office(tmp_path) as office:
        first = await office.open(asked(session=None, workflow="w1"))
        await office.open(asked("k2", session=None, workflow="w1"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1].replace(b"k2", b"kk"), b'{"torn']))
    async with open_office(tmp_path, life="life2") as office:
        assert [each.id for each in await office.listed(state="open")] == [first.id]
        assert (await office.open(asked("k3"))).state == "open"


async def test_a_desk_that_crashes_leaves_open_what_was_open(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        request = await office.open()
        with armed(Plan({("actor.receive.before[RequestDesk]", 1): Crash()}), RUNTIME):
            assert isinstance(await outcome(office, asked("k2")), AskError)
        assert await office.state(request) == "open"
        office.owner.tell(CrashNow())
        await until(office, request, "withdrawn")
