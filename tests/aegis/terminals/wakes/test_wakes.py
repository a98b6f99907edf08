"""Wakes through the real router into real inboxes, whatever crashes, fails or lags behind.

Only the front is a small one: it puts records into a ledger and says that they are finished.
"""

from __future__ import annotations

import errno
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attrs
import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from actors import Actor, ActorError, AskError, ChildSpec, Request, SupervisorSpec, open_system
from actors.faults import RUNTIME, Crash, Plan, armed
from aegis.errors import AegisError, InvalidRequest, StorageError, Unavailable
from aegis.inboxes.faults import INBOXES
from aegis.inboxes.reading import message_archive
from aegis.inboxes.router import InboxRouter
from aegis.journal.disk import OsDisk
from aegis.journal.faults import JOURNAL
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line, scan
from aegis.journal.note import Note
from aegis.journal.segment_names import segments_of
from aegis.journal.segments import close_segment
from aegis.protocol.inboxes import ReadInbox
from aegis.protocol.terminals import CommandRecord, Subscribe, Unsubscribe
from aegis.terminals.history import History
from aegis.terminals.output.patterns import Pattern
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.wakes import delivery, wake_feed, wakes
from aegis.terminals.wakes.subscriptions import MAX_SUBSCRIBERS, restored
from aegis.terminals.wakes.wakes import WakeSubscribers
from tests.aegis.terminals.samples import RECORD
from tests.fakes.faulty_disk import FaultyDisk

HANG_S = 60.0
"""A guard against hanging, far above what anything here takes."""

NAME, LIFE = "build", "1f2e"
SETTINGS = TerminalSettings(
    name=NAME,
    life=LIFE,
    shell="/bin/bash",
    cwd="/",
    env={},
    cols=80,
    rows=24,
    started_at="2026-05-22T14:03:21.000Z",
    root="/",
)


def record(seq: int, writer: str = "human", stdout: str = "") -> CommandRecord:
    return attrs.evolve(RECORD, seq=seq, cmd=f"echo {seq}", writer=writer, stdout=stdout, cwd="/")


@attrs.frozen
class Finish(Request[None]):
    """One more record, by ``writer``: ``cmd`` (None: as ``record`` has it) ended with ``exit``."""

    writer: str
    cmd: str | None = None
    exit: int | None = 0


def finished(request: Finish, seq: int) -> CommandRecord:
    usual = record(seq, request.writer)
    return attrs.evolve(usual, cmd=request.cmd or usual.cmd, exit=request.exit)


@attrs.frozen
class Settle(Request[None]):
    """Wait until all was told."""


@attrs.frozen
class Who(Request[list[str]]):
    """Say who subscribes."""


class SmallFront(Actor[Subscribe | Unsubscribe | Finish | Settle | Who]):
    """What the front of a terminal does with its wakes, and nothing else."""

    def __init__(self, files: TerminalFiles, flusher: Flusher) -> None:
        self._files = files
        self._flusher = flusher

    async def setup(self) -> None:
        history = History(self._files.ledger)
        inboxes = self.context.system.ref("root/router")
        self._wakes = WakeSubscribers(SETTINGS, self._files, history, self._flusher, inboxes)
        _, given = history.last()
        self._next = await self._wakes.open(given) + 1
        self._wakes.start(
            self.context.start_soon, partial(self.context.system.registry.find, "inbox")
        )

    async def teardown(self) -> None:
        if hasattr(self, "_wakes"):
            await self._wakes.close()

    async def receive(self, message: Subscribe | Unsubscribe | Finish | Settle | Who) -> None:
        match message:
            case Subscribe():
                self._wakes.subscribe(message, self.defer(message))
            case Unsubscribe():
                self._wakes.unsubscribe(message.from_handle or "human", self.defer(message))
            case Finish():
                self._finish(finished(message, self._next))
                self.reply(message, None)
            case Settle():
                self.context.start_soon(self._settle, self.defer(message))
            case Who():
                self.reply(message, self._wakes.subscribers)

    def _finish(self, what: CommandRecord) -> None:
        append(self._files, what)
        self._next = what.seq + 1
        self._wakes.finished(what)

    async def _settle(self, reply: Any) -> None:
        await self._wakes.settle(daemon_stops=False)
        reply.send(None)


def append(files: TerminalFiles, *records: CommandRecord) -> None:
    with files.ledger.open("ab") as ledger:
        for each in records:
            ledger.write(encode_line(attrs.asdict(each, recurse=False)))


@attrs.define
class Place:
    """The files of one terminal and of the inboxes, and whatever is open on them."""

    files: TerminalFiles
    inboxes: Path
    system: Any = None

    @asynccontextmanager
    async def opened(
        self, flusher: Flusher | None = None, inbox_disk: FaultyDisk | None = None
    ) -> AsyncIterator[Place]:
        self.files.directory.mkdir(parents=True, exist_ok=True)
        spec = SupervisorSpec(
            name="root",
            intensity=20,
            children=(
                SupervisorSpec(name="inboxes", dynamic=True, intensity=20),
                ChildSpec.of(
                    "router",
                    InboxRouter,
                    directory=self.inboxes,
                    archive=message_archive(
                        self.inboxes.parent / "archive", Flusher(inbox_disk).disk
                    ),
                    supervisor="root/inboxes",
                    flusher=Flusher(inbox_disk),
                ),
                ChildSpec.of("front", SmallFront, files=self.files, flusher=flusher or Flusher()),
            ),
        )
        with trio.fail_after(HANG_S):
            async with open_system(spec) as self.system:
                yield self

    async def ask(self, request: Any) -> Any:
        return await self.system.ref("root/front").ask(request, timeout=HANG_S)

    async def subscribe(self, handle: str, **wanted: Any) -> list[str]:
        answer = await self.ask(Subscribe(name=NAME, from_handle=handle, **wanted))
        handles: list[str] = answer.subscribers
        return handles

    async def unsubscribe(self, handle: str) -> None:
        await self.ask(Unsubscribe(name=NAME, from_handle=handle))

    async def finish(self, count: int = 1, writer: str = "human") -> None:
        for _ in range(count):
            await self.ask(Finish(writer))

    async def finish_each(self, *cmds: str, code: int | None = 0) -> None:
        for cmd in cmds:
            await self.ask(Finish("human", cmd, code))

    def told(self, handle: str) -> list[int]:
        """The records that the inbox of ``handle`` has a message of, in the order of coming."""
        path = self.inboxes / f"{handle}.jsonl"
        lines = scan(path.read_bytes()).lines if path.is_file() else ()
        ids = [line.fields["id"] for line in lines]
        assert all(each.startswith(f"term:{NAME}/{LIFE}/") for each in ids)
        assert all(each.endswith(f"/{handle}") for each in ids)
        return [int(each.split("/")[2]) for each in ids]

    async def wait_told(self, handle: str, *seqs: int) -> None:
        """Wait until the inbox has confirmed these: they can be read. None is there twice."""
        while not {*seqs} <= {*await self.readable(handle)}:  # noqa: ASYNC110
            await trio.sleep(0.01)
        assert max(Counter(self.told(handle)).values(), default=0) <= 1

    async def readable(self, handle: str) -> list[int]:
        try:
            reply = await self.system.ref("root/router").ask(
                ReadInbox(from_handle=handle, limit=1000), timeout=HANG_S
            )
        except (AskError, AegisError):
            return []
        return [int(each.id.split("/")[2]) for each in reply.messages]

    def on_disk(self) -> dict[str, int]:
        """What ``subscribers.json`` says."""
        note = Note.open(self.files.subscribers, Flusher())
        note.close()
        found, damaged = restored(note.load())
        assert damaged == 0
        return {each.handle: each.confirmed for each in found.by_key.values()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(TerminalFiles(tmp_path / "terminals" / NAME), tmp_path / "inboxes")


@pytest.fixture(autouse=True)
def _retry_soon_and_settle_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "FIRST_RETRY_S", 0.01)
    monkeypatch.setattr(delivery, "LAST_RETRY_S", 0.05)
    # A close waits for a second, which a busy machine takes for a hundred wakes.
    monkeypatch.setattr(wakes, "CLOSE_S", HANG_S)


async def test_everybody_is_told_once_and_in_order_but_never_the_writer(place: Place) -> None:
    async with place.opened():
        await place.finish(3)
        for handle in ("ann", "bob"):
            await place.subscribe(handle)
        await place.finish(5)
        await place.finish(2, writer="agent:Ann")
        await place.finish()
        await place.ask(Settle())
        assert place.told("ann") == [3, 4, 5, 6, 7, 10]
        assert place.told("bob") == [3, 4, 5, 6, 7, 8, 9, 10]
    assert place.on_disk() == {"ann": 10, "bob": 10}


async def test_a_subscription_is_on_the_disk_when_it_is_answered_and_gone_likewise(
    place: Place,
) -> None:
    disk = FaultyDisk()
    async with place.opened(Flusher(disk)):
        await place.finish(2)
        assert await place.subscribe("ann") == ["ann"]
        assert place.on_disk() == {"ann": 1}
        assert disk.calls["fsync"] == 2  # the file before it had its name, and the directory
        assert await place.subscribe("bob") == ["ann", "bob"]
        assert place.on_disk() == {"ann": 1, "bob": 1}
        await place.unsubscribe("ANN")
        assert place.on_disk() == {"bob": 1}
        assert disk.calls["fdatasync"] == 2


async def test_what_changes_nothing_costs_no_write(place: Place) -> None:
    disk = FaultyDisk()
    async with place.opened(Flusher(disk)):
        await place.subscribe("ann")
        before = disk.total
        assert await place.subscribe("Ann") == ["ann"]
        await place.unsubscribe("nobody")
        assert disk.total == before


async def test_subscriptions_outlive_the_tree_and_go_on_where_they_were(place: Place) -> None:
    async with place.opened():
        await place.subscribe("ann")
        await place.finish(3)
        await place.ask(Settle())
    append(place.files, record(3), record(4))  # in the ledger, and nobody was told
    async with place.opened():
        assert await place.ask(Who()) == ["ann"]
        await place.wait_told("ann", 3, 4)
        await place.finish()
        await place.wait_told("ann", 5)
        assert place.told("ann") == [0, 1, 2, 3, 4, 5]


async def test_lost_progress_sends_again_what_the_inbox_knows_and_it_is_there_once(
    place: Place,
) -> None:
    async with place.opened():
        await place.subscribe("ann")
        as_subscribed = place.files.subscribers.read_bytes()
        await place.finish(100)
        await place.ask(Settle())
    assert place.on_disk() == {"ann": 99}
    place.files.subscribers.write_bytes(as_subscribed)
    assert place.on_disk() == {"ann": -1}
    async with place.opened():
        await place.finish()
        await place.wait_told("ann", 100)
        await place.ask(Settle())
        await place.subscribe("bob")  # which writes down how far everybody is
        assert place.on_disk() == {"ann": 100, "bob": 100}
    assert place.told("ann") == list(range(101))


@pytest.mark.parametrize("page_bytes", [1, 2000, 10_000, 1_000_000])
async def test_who_lags_behind_gets_everything_in_order_from_the_ledger(
    place: Place, monkeypatch: pytest.MonkeyPatch, page_bytes: int
) -> None:
    monkeypatch.setattr(wake_feed, "PAGE_BYTES", page_bytes)
    async with place.opened():
        await place.subscribe("ann")
        await place.subscribe("bob")
    writers = ["human", "agent:bob", "agent:ann"]
    append(place.files, *(record(seq, writers[seq % 3]) for seq in range(300)))
    async with place.opened():
        await place.finish(10)
        await place.wait_told("ann", 309)
        await place.wait_told("bob", 309)
        assert place.told("ann") == [seq for seq in range(300) if seq % 3 != 2] + [*range(300, 310)]
        assert place.told("bob") == [seq for seq in range(300) if seq % 3 != 1] + [*range(300, 310)]


@pytest.mark.parametrize("wanted", [{}, {"pattern": "echo 22"}, {"only_failures": True}])
async def test_who_lags_behind_deleted_records_is_told_which_they_were(
    place: Place, wanted: dict[str, Any]
) -> None:
    async with place.opened():
        await place.finish(2)
        await place.subscribe("ann", **wanted)
    append(place.files, *(record(seq) for seq in range(2, 10)))
    close_segment(OsDisk(), place.files.ledger, 9)
    append(place.files, *(record(seq) for seq in range(10, 20)))
    close_segment(OsDisk(), place.files.ledger, 19)
    append(place.files, *(record(seq) for seq in range(20, 23)))
    segments_of(OsDisk(), place.files.ledger)[0].path.unlink()
    async with place.opened():
        router = place.system.ref("root/router")
        others = {"{}": [*range(10, 23)], "pattern": [22], "only_failures": []}
        expected = [9, *others[next(iter(wanted), "{}")]]
        await place.wait_told("ann", *expected)
        assert place.told("ann") == expected
        first, *_ = (await router.ask(ReadInbox(from_handle="ann", limit=100))).messages
        assert "records 2 to 9 were deleted before this message" in first.body


async def test_damaged_lines_and_lines_of_another_shape_hold_up_nobody(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wake_feed, "PAGE_BYTES", 1)
    async with place.opened():
        await place.subscribe("ann")
    append(place.files, record(0))
    with place.files.ledger.open("ab") as ledger:
        ledger.write(encode_line({"seq": 1, "of": "a later version"}) + b"damaged\n")
    append(place.files, record(3))
    with place.files.ledger.open("ab") as ledger:
        ledger.write(b"damaged\n")
    async with place.opened():
        await place.wait_told("ann", 0, 3)
        await place.ask(Settle())
        await place.finish()
        await place.wait_told("ann", 5)
        assert place.told("ann") == [0, 3, 5]


async def test_a_broken_inbox_holds_up_nobody_and_gets_everything_once_it_is_mended(
    place: Place,
) -> None:
    blocked = place.inboxes / "ann.jsonl"
    async with place.opened():
        for handle in ("ann", "bob"):
            await place.subscribe(handle)
        blocked.mkdir(parents=True)
        with capture_logs() as logs:
            await place.finish(100)
            await place.wait_told("bob", 99)
            await place.ask(Settle())  # does not wait for who is in trouble
            assert (place.told("ann"), place.told("bob")) == ([], list(range(100)))
            blocked.rmdir()
            await place.wait_told("ann", 99)
        assert place.told("ann") == list(range(100))
    told = [(each["event"], each["handle"]) for each in logs if each["event"].startswith("wake")]
    assert told == [("wake failed", "ann"), ("wakes go on", "ann")]


STRIKES = [
    *(("inbox.append.before", each) for each in (1, 2, 9)),
    *(("inbox.append.after", each) for each in (1, 2, 9)),
    *(("inbox.confirm.before", each) for each in (1, 2, 9)),
    *(("actor.receive.before[Inbox]", each) for each in (1, 5)),
    *(("actor.receive.after[Inbox]", each) for each in (1, 5)),
    *(("actor.receive.before[InboxRouter]", each) for each in (1, 2, 5)),
    *(("actor.receive.after[InboxRouter]", each) for each in (1, 2, 5)),
    *(("actor.receive.before[SmallFront]", each) for each in (3, 8)),
    *(("actor.receive.after[SmallFront]", each) for each in (3, 8)),
    *(("mailbox.deliver.after", each) for each in (10, 20)),
]


@pytest.mark.parametrize(("point", "number"), STRIKES)
async def test_whoever_crashes_everybody_is_told_everything_once(
    place: Place, point: str, number: int
) -> None:
    plan = Plan({(point, number): Crash()})
    async with place.opened():
        for handle in ("ann", "bob"):
            await place.subscribe(handle)
        with armed(plan, RUNTIME, INBOXES):
            for _ in range(10):
                with trio.move_on_after(HANG_S):
                    await finish_whatever_happens(place)
            last = History(place.files.ledger).last()[1]
            for handle in ("ann", "bob"):
                await place.wait_told(handle, *range(last + 1))
            # On a fast disk the first read finds everything, and the router has had no more.
            while plan.hits[point] < number:
                await place.readable("ann")
        assert last >= 8
        for handle in ("ann", "bob"):
            assert sorted(place.told(handle)) == list(range(last + 1))


async def finish_whatever_happens(place: Place) -> None:
    try:
        await place.finish()
    except ActorError:  # the front, or who delivered to it: the record may be there or not
        await trio.lowlevel.checkpoint()


async def test_what_could_not_be_sent_is_not_taken_for_told(place: Place) -> None:
    """The router is gone, so that no wake gets on its way; a later life has it again."""
    async with place.opened():
        await place.subscribe("ann")
        router = place.system.ref("root/router")
        router.stop()
        while not router.is_stopped:  # noqa: ASYNC110
            await trio.sleep(0.01)
        await place.finish(3)
        await place.ask(Settle())
        assert place.told("ann") == []
    assert place.on_disk() == {"ann": -1}
    async with place.opened():
        await place.wait_told("ann", 0, 1, 2)
    assert place.told("ann") == [0, 1, 2]


async def test_a_run_costs_no_sync_of_an_inbox_that_nobody_reads(place: Place) -> None:
    handles = [f"agent{number}" for number in range(20)]
    disk = FaultyDisk()
    async with place.opened(inbox_disk=disk):
        for handle in handles:
            await place.subscribe(handle)
        await place.finish()
        for handle in handles:
            await place.wait_told(handle, 0)  # its inbox is open
        before = disk.calls["fdatasync"]
        await place.finish(10)
        while any(place.told(handle) != list(range(11)) for handle in handles):  # noqa: ASYNC110
            await trio.sleep(0.01)
        assert disk.calls["fdatasync"] == before
        await place.wait_told("agent7", *range(11))
        assert disk.calls["fdatasync"] == before + 1, "it is read, and no other"


async def test_progress_is_stored_once_the_inbox_has_synced(place: Place) -> None:
    async with place.opened():
        await place.subscribe("ann")
        await place.finish()
        await place.wait_told("ann", 0)
        await place.finish(3)
        while place.told("ann") != [0, 1, 2, 3]:  # noqa: ASYNC110
            await trio.sleep(0.01)
        await place.subscribe("bob")  # which writes down how far everybody is
        assert place.on_disk() == {"ann": 0, "bob": 3}
        await place.wait_told("ann", 3)
        await place.subscribe("eve")
        assert place.on_disk() == {"ann": 3, "bob": 3, "eve": 3}


async def test_wakes_that_a_loss_of_power_took_from_the_inbox_come_again(place: Place) -> None:
    ann = place.inboxes / "ann.jsonl"
    async with place.opened():
        await place.subscribe("ann")
        await place.finish(2)
        await place.wait_told("ann", 0, 1)
        synced = ann.read_bytes()
        await place.finish(3)
        while place.told("ann") != [0, 1, 2, 3, 4]:  # noqa: ASYNC110
            await trio.sleep(0.01)
    ann.write_bytes(synced)
    async with place.opened():
        await place.finish()
        await place.wait_told("ann", *range(6))
        assert place.told("ann") == [0, 1, 2, 3, 4, 5]


async def test_when_a_terminal_has_settled_its_wakes_are_synced(place: Place) -> None:
    disk = FaultyDisk()
    async with place.opened(inbox_disk=disk):
        await place.subscribe("ann")
        await place.finish()
        await place.wait_told("ann", 0)
        before = disk.calls["fdatasync"]
        await place.finish(3)
        await place.ask(Settle())
        assert disk.calls["fdatasync"] > before
        await place.subscribe("bob")
        assert place.on_disk() == {"ann": 3, "bob": 3}


async def test_a_filter_may_be_changed_any_number_of_times_though_nobody_reads(
    place: Place,
) -> None:
    async with place.opened():
        await place.subscribe("ann", only_failures=True)
        await place.finish_each("bad", code=1)
        await place.wait_told("ann", 0)
        for number in range(6):
            await place.subscribe("ann", only_failures=number % 2 == 0)
            await place.finish_each("bad", code=1)
        await place.ask(Settle())
        assert place.told("ann") == list(range(7))


async def test_what_is_deferred_when_the_disk_refuses_its_sync_is_told_again(place: Place) -> None:
    disk = FaultyDisk()
    async with place.opened(inbox_disk=disk):
        await place.subscribe("ann")
        await place.finish()
        await place.wait_told("ann", 0)
        await place.finish(3)
        while place.told("ann") != [0, 1, 2, 3]:  # noqa: ASYNC110
            await trio.sleep(0.01)
        disk.fail("fdatasync", errno.EIO)
        assert await place.readable("ann") == [0], "what was not synced is not shown"
        await place.wait_told("ann", 0, 1, 2, 3)
        assert place.told("ann") == [0, 1, 2, 3]


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_an_inbox_whose_disk_refuses_is_told_again(place: Place, number: int) -> None:
    plan = Plan({("ledger.sync.before[ann.jsonl]", number): Crash()})
    async with place.opened():
        await place.subscribe("ann")
        with armed(plan, JOURNAL):
            for _ in range(5):
                await place.finish()
                await place.wait_told("ann")
            await place.wait_told("ann", *range(5))
        assert sorted(place.told("ann")) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
async def test_a_subscription_that_the_disk_refuses_is_told_and_changes_nothing(
    place: Place, call: str
) -> None:
    disk = FaultyDisk()
    async with place.opened(Flusher(disk)):
        disk.fail(call, errno.ENOSPC)
        with pytest.raises(StorageError, match=r"subscribers\.json: No space left"):
            await place.subscribe("ann")
        assert await place.ask(Who()) == []
        assert place.on_disk() == {}
        assert await place.subscribe("ann") == ["ann"]
        assert place.on_disk() == {"ann": -1}


@pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
async def test_a_later_change_that_the_disk_refuses_changes_nothing_either(
    place: Place, call: str
) -> None:
    disk = FaultyDisk()
    async with place.opened(Flusher(disk)):
        await place.subscribe("ann")
        for change in (place.subscribe("bob"), place.unsubscribe("ann")):
            disk.fail(call, errno.EIO)
            with pytest.raises(StorageError, match=r"subscribers\.json: Input/output error"):
                await change
            disk.heal()
            assert await place.ask(Who()) == ["ann"]
            assert place.on_disk() == {"ann": -1}
            await place.subscribe("eve")  # a new file, where the next change is in place again
            await place.unsubscribe("eve")
        await place.finish()
        await place.wait_told("ann", 0)


async def test_progress_that_cannot_be_written_is_said_once_and_made_good_later(
    place: Place,
) -> None:
    disk = FaultyDisk()
    async with place.opened(Flusher(disk)):
        await place.subscribe("ann")
        disk.fail("pwrite", errno.ENOSPC, times=100)
        disk.fail("open", errno.ENOSPC, times=100)
        with capture_logs() as logs:
            for seq in range(3):
                tries = disk.calls["open"] + disk.calls["pwrite"]
                await place.finish()
                await place.wait_told("ann", seq)
                while disk.calls["open"] + disk.calls["pwrite"] == tries:  # noqa: ASYNC110
                    await trio.sleep(0.01)
        disk.heal()
        await place.finish()
        await place.wait_told("ann", 3)
        await place.subscribe("bob")  # which writes down how far everybody is
        assert place.on_disk() == {"ann": 3, "bob": 3}
    assert [each["event"] for each in logs].count("subscribers not written") == 1


async def test_two_who_subscribe_while_one_is_being_written_are_both_there(place: Place) -> None:
    disk = FaultyDisk()
    async with place.opened(Flusher(disk)):
        disk.hold("fsync")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(place.subscribe, "ann")
            await trio.to_thread.run_sync(disk.wait_held, "fsync")
            for handle in ("ANN", "bob"):
                nursery.start_soon(place.subscribe, handle)
            await trio.testing.wait_all_tasks_blocked()
            await place.finish(2)
            disk.release("fsync")
        assert await place.ask(Who()) == ["ann", "bob"]
        await place.wait_told("ann", 0, 1)
        await place.wait_told("bob", 0, 1)


@pytest.mark.parametrize("wider", [True, False])
async def test_what_finishes_while_a_filter_is_written_is_told_if_one_of_the_two_wants_it(
    place: Place, wider: bool
) -> None:
    # A next life that found the other filter would tell it behind later ones.
    disk = FaultyDisk()
    async with place.opened(Flusher(disk)):
        await place.subscribe("ann", only_failures=wider)
        disk.hold("fdatasync")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(place.subscribe, "ann", only_failures=not wider))
            await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
            await place.finish_each("good 0", "good 1")
            await place.wait_told("ann", 0, 1)
            disk.release("fdatasync")
        await place.finish_each("good 2")
        await place.finish_each("bad 3", code=1)
        await place.wait_told("ann", 3)
        assert place.told("ann") == ([0, 1, 2, 3] if wider else [0, 1, 3])


async def test_one_too_many_is_told_and_a_long_list_is_kept(place: Place) -> None:
    async with place.opened():
        for number in range(MAX_SUBSCRIBERS):
            await place.subscribe(f"a{number}")
        with pytest.raises(Unavailable, match="256 handles"):
            await place.subscribe("one-more")
        await place.finish(2)
        for number in (0, 100, 255):
            await place.wait_told(f"a{number}", 0, 1)
        await place.ask(Settle())
    async with place.opened():
        assert len(await place.ask(Who())) == MAX_SUBSCRIBERS
    assert len(place.on_disk()) == MAX_SUBSCRIBERS


async def test_damaged_subscriptions_are_said_and_are_the_only_loss(place: Place) -> None:
    async with place.opened():
        await place.subscribe("ann")
        await place.finish()
        await place.ask(Settle())
    place.files.subscribers.write_bytes(b"\xff" * 8192)
    with capture_logs() as logs:
        async with place.opened():
            assert await place.ask(Who()) == []
            await place.subscribe("bob")
            await place.finish()
            await place.wait_told("bob", 1)
    assert "subscribers damaged" in [each["event"] for each in logs]
    assert place.told("ann") == [0]


async def test_numbers_go_on_above_what_anybody_was_told_of_though_the_ledger_is_lost(
    place: Place,
) -> None:
    async with place.opened():
        await place.subscribe("ann")
        await place.finish(3)
        await place.ask(Settle())
    place.files.ledger.unlink()
    with capture_logs() as logs:
        async with place.opened():
            await place.finish(2)
            await place.wait_told("ann", 3, 4)
    assert place.told("ann") == [0, 1, 2, 3, 4]
    [lost] = [each for each in logs if each["event"] == "ledger lost records"]
    assert (lost["ends"], lost["told"]) == (-1, 2)


async def test_who_left_and_came_back_is_owed_nothing_of_the_time_between(place: Place) -> None:
    async with place.opened():
        await place.subscribe("ann")
        await place.finish(2)
        await place.ask(Settle())
        await place.unsubscribe("ann")
        await place.finish(2)
        await place.subscribe("ann")
        await place.finish(2)
        await place.wait_told("ann", 4, 5)
        assert place.told("ann") == [0, 1, 4, 5]


async def test_a_filter_chooses_by_command_and_by_failure(place: Place) -> None:
    async with place.opened():
        await place.subscribe("tests", pattern="pytest")
        await place.subscribe("failures", only_failures=True)
        await place.subscribe("both", pattern="pytest", only_failures=True)
        await place.finish_each("pytest -q", "make")
        await place.finish_each("pytest -q", "make", code=1)
        await place.finish_each("pytest -x", "sleep 9", code=None)
        await place.ask(Settle())
        assert place.told("tests") == [0, 2, 4]
        assert place.told("failures") == [2, 3, 4, 5]
        assert place.told("both") == [2, 4]
    assert place.on_disk() == dict.fromkeys(("tests", "failures", "both"), 5)


async def test_a_command_of_unknown_text_passes_each_pattern_and_may_be_a_failure(
    place: Place,
) -> None:
    unknown = attrs.evolve(record(0), cmd=None, exit=None)
    async with place.opened():
        await place.subscribe("anything", pattern="no such command")
        await place.subscribe("failures", only_failures=True)
    append(place.files, unknown, record(1))
    async with place.opened():
        await place.wait_told("anything", 0)
        await place.wait_told("failures", 0)
        await place.ask(Settle())
        assert (place.told("anything"), place.told("failures")) == ([0], [0])


@pytest.mark.parametrize("page_bytes", [1, 2000, 1_000_000])
async def test_who_lags_behind_is_told_what_it_wants_from_the_ledger(
    place: Place, monkeypatch: pytest.MonkeyPatch, page_bytes: int
) -> None:
    monkeypatch.setattr(wake_feed, "PAGE_BYTES", page_bytes)
    async with place.opened():
        await place.subscribe("ann", pattern="7$")
        await place.subscribe("bob", pattern="no such command")
    append(place.files, *map(record, range(100)))
    async with place.opened():
        await place.finish(8)
        await place.ask(Settle())
        assert place.told("ann") == [*range(7, 100, 10), 107]
        assert place.told("bob") == []
    assert place.on_disk() == {"ann": 107, "bob": 107}


async def test_a_new_filter_counts_for_what_comes_after_it_though_the_inbox_lags(
    place: Place,
) -> None:
    blocked = place.inboxes / "ann.jsonl"
    async with place.opened():
        await place.subscribe("ann", pattern="pytest")
        await place.finish_each("pytest 0")
        await place.wait_told("ann", 0)
    kept = blocked.rename(blocked.with_suffix(".kept"))
    blocked.mkdir()
    async with place.opened():
        await place.finish_each("pytest 1", "make 2")
        await place.subscribe("ann", pattern="make")
        await place.finish_each("pytest 3", "make 4")
        await place.subscribe("ann")
        await place.finish_each("anything 5")
        await place.subscribe("bob")
        await place.finish_each("anything 6")
        await place.wait_told("bob", 6)
    blocked.rmdir()
    kept.rename(blocked)
    async with place.opened():
        await place.wait_told("ann", 0, 1, 4, 5, 6)
        await place.ask(Settle())
        assert place.told("ann") == [0, 1, 4, 5, 6]
    assert place.on_disk() == {"ann": 6, "bob": 6}
    assert b"earlier" not in newest_line(place.files.subscribers)


def newest_line(path: Path) -> bytes:
    """What the note at ``path`` says, as it stands there."""
    note = Note.open(path, Flusher())
    note.close()
    return encode_line(note.load() or {})


async def test_a_filter_is_on_the_disk_when_it_is_answered(place: Place) -> None:
    async with place.opened():
        await place.subscribe("ann", pattern="pytest", only_failures=True)
        assert b'"pattern":"pytest","only_failures":true' in newest_line(place.files.subscribers)
        await place.subscribe("Ann")
        assert b"pattern" not in newest_line(place.files.subscribers)


async def test_the_same_filter_again_costs_no_write(place: Place) -> None:
    disk = FaultyDisk()
    async with place.opened(Flusher(disk)):
        await place.subscribe("ann", pattern="pytest")
        before = disk.total
        assert await place.subscribe("Ann", pattern="pytest") == ["ann"]
        assert disk.total == before


@pytest.mark.parametrize("pattern", ["(", "(?=x)", "\\pL{300}"])
async def test_a_bad_pattern_is_refused_and_changes_nothing(place: Place, pattern: str) -> None:
    async with place.opened():
        await place.subscribe("ann", pattern="pytest")
        with pytest.raises(InvalidRequest, match=r"^pattern "):
            await place.subscribe("ann", pattern=pattern)
        await place.finish_each("make", "pytest")
        await place.ask(Settle())
        assert place.told("ann") == [1]


async def test_a_slow_search_holds_up_nobody_else(place: Place) -> None:
    go_on = threading.Event()
    search = Pattern.search

    def slow_search(pattern: Pattern, text: str) -> tuple[int, int] | None:
        assert go_on.wait(HANG_S)
        return search(pattern, text)

    async with place.opened():
        await place.subscribe("slow", pattern="(a?){400}a{400}c?")
        await place.subscribe("ann")
        with patch.object(Pattern, "search", slow_search):
            await place.finish_each(*["a" * 2_000] * 3)
            await place.wait_told("ann", 0, 1, 2)
            assert place.told("slow") == []
            go_on.set()
            await place.wait_told("slow", 0, 1, 2)


async def test_long_commands_are_not_kept_in_memory(place: Place) -> None:
    place.files.directory.mkdir(parents=True)
    feed = wake_feed.WakeFeed(History(place.files.ledger))
    for seq in range(8):
        long = attrs.evolve(record(seq), cmd="x" * 65_536)
        append(place.files, long)
        feed.add(long, is_wanted=True)
    page = await feed.page_after(3)
    assert [wake.seq for wake in page.wakes] == [4, 5, 6, 7]
    assert {len(wake.cmd or "") for wake in page.wakes} == {65_536}
    older = await feed.page_after(-1)
    assert older.wakes[0].seq == 0
    assert older.has_older  # from the ledger


async def test_what_the_feed_did_not_hear_of_is_read_from_the_ledger(place: Place) -> None:
    place.files.directory.mkdir(parents=True)
    feed = wake_feed.WakeFeed(History(place.files.ledger))
    append(place.files, *map(record, range(5)))
    feed.begin(0)
    feed.add(record(2), is_wanted=True)
    page = await feed.page_after(0)
    assert ([wake.seq for wake in page.wakes], page.reached) == ([1, 2], 2)
    feed.add(record(3), is_wanted=True)
    place.files.ledger.unlink()
    page = await feed.page_after(2)
    assert ([wake.seq for wake in page.wakes], page.reached) == ([3], 3)


@pytest.mark.parametrize(("failures", "seconds"), [(1, 0.2), (2, 0.4), (6, 6.4), (7, 10), (99, 10)])
def test_the_pauses_between_tries_grow_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, failures: int, seconds: float
) -> None:
    monkeypatch.undo()
    assert delivery.retry_delay(failures) == pytest.approx(seconds)
