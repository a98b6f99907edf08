"""The scenarios of an inbox: two senders, and a reader that acknowledges.

In one of them a sender defers the sync of its messages, as a terminal does with its wakes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs
import trio

from actors import ChildSpec, Ref, SupervisorSpec
from actors.faults import RUNTIME, FaultTable
from aegis.inboxes.faults import INBOXES
from aegis.inboxes.reading import message_archive
from aegis.inboxes.router import InboxRouter
from aegis.inboxes.rows import InboxMessage, InboxRow, message_in, upgraded
from aegis.inboxes.unread import UnreadMessages
from aegis.journal.faults import JOURNAL
from aegis.journal.folding import lines_of
from aegis.journal.opening import open_ledger
from aegis.journal.table import read_rows
from aegis.protocol.inboxes import Deliver, Message, ReadInbox
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.faults.retrying import PAUSE_S, ask_until_answered, until_done

INBOX = Path("/state/inboxes/pm.jsonl")
SENDERS = ("ann", "bob")
MAX_READS = 20


def delivery(sender: str, number: int, *, defer_sync: bool = False) -> Deliver:
    return Deliver(
        defer_sync=defer_sync,
        handle="pm",
        id=f"{sender}{number}",
        sender=f"agent:{sender}",
        body=f"body {number}",
        timestamp="2026-05-22T14:03:25.000Z",
    )


@attrs.frozen
class Sent:
    """An accepted message with this id."""

    id: str


@attrs.frozen
class Read:
    """An acknowledgement of everything up to this id."""

    up_to: str


@attrs.frozen
class Shown:
    """A message with this id that was shown to the reader."""

    id: str


def ignored(*_: InboxMessage) -> None:
    """Do nothing: the messages are only counted."""


def stored_messages(disk: SimulatedDisk, path: Path) -> list[Message]:
    """Return the messages in a ledger, the oldest first."""
    found = [message_in(each.fields) for each in lines_of(disk, path, None, [])]
    return [each for each in found if each is not None]


@attrs.frozen
class HeldInbox:
    """The inbox after recovery: all messages in their order, and the unread ones."""

    messages: tuple[Message, ...]
    unread: tuple[str, ...]


@attrs.frozen
class HandOver:
    """Messages from two senders into one inbox, through the real router, and their reader."""

    name: str = "inbox hand-over"
    each: int = 2
    deferred: tuple[str, ...] = ()
    image: Image = attrs.field(factory=lambda: {"/": None, "/state": None})
    tables: tuple[FaultTable, ...] = (JOURNAL, INBOXES, RUNTIME)
    subjects: tuple[str, ...] = ("Inbox", "InboxRouter")
    recovers_durably: bool = True
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        spec = SupervisorSpec(
            name="root",
            children=(
                SupervisorSpec(name="inboxes", dynamic=True),
                ChildSpec.of(
                    "router",
                    InboxRouter,
                    directory=INBOX.parent,
                    archive=message_archive(INBOX.parent.parent / "archive", world.flusher.disk),
                    supervisor="root/inboxes",
                    flusher=world.flusher,
                ),
            ),
        )

        async def live() -> None:
            async with world.simulation.open_system(spec) as system:
                router = system.ref("root/router")
                async with trio.open_nursery() as nursery:
                    for sender in SENDERS:
                        nursery.start_soon(self._send, world, router, sender)
                    if self.deferred:
                        await self._read_all_while_they_come(world, router)
                await self._read_all(world, router)

        await until_done(live)

    async def _send(self, world: World, router: Ref[Deliver], sender: str) -> None:
        for number in range(self.each):
            message = delivery(sender, number, defer_sync=sender in self.deferred)
            world.tries(Sent(message.id))
            await ask_until_answered(router, message)
            world.confirm(Sent(message.id))

    async def _read_all(self, world: World, router: Ref[ReadInbox]) -> None:
        up_to: str | None = None
        for _ in range(MAX_READS):
            if up_to is not None:
                world.tries(Read(up_to))
            request = ReadInbox(from_handle="pm", after=up_to, limit=len(SENDERS))
            got = await ask_until_answered(router, request)
            if up_to is not None:
                world.confirm(Read(up_to))
            for message in got.messages:
                world.confirm(Shown(message.id))
            if got.next is None:
                return
            up_to = got.next
        raise AssertionError(f"after {MAX_READS} acknowledgements there is still something to read")

    async def _read_all_while_they_come(self, world: World, router: Ref[ReadInbox]) -> None:
        """Read without acknowledgements: only messages synced for this reader are shown."""
        shown: set[str] = set()
        for _ in range(MAX_READS):
            got = await ask_until_answered(router, ReadInbox(from_handle="pm"))
            for message in got.messages:
                world.confirm(Shown(message.id))
            shown.update(message.id for message in got.messages)
            if len(shown) == self.each * len(SENDERS):
                return
            await trio.sleep(PAUSE_S)
        raise AssertionError(f"after {MAX_READS} reads only {shown} were shown")

    def recover(self, disk: SimulatedDisk) -> HeldInbox:
        opened = open_ledger(disk, INBOX)
        disk.close(opened.fd)
        rows = read_rows(disk, INBOX, opened.length, InboxRow, upgraded)
        state = UnreadMessages(rows.values(), folded=ignored, left=ignored)
        messages = stored_messages(disk, INBOX)
        unread = tuple(each.id for each in state.first(1000))
        return HeldInbox(tuple(messages), unread)

    def check(self, evidence: Evidence, found: HeldInbox, *, killed: bool) -> Iterator[str]:
        ids = [message.id for message in found.messages]
        confirmed = [each.id for each in evidence.confirmed if isinstance(each, Sent)]
        tried = [each.id for each in evidence.tried if isinstance(each, Sent)]
        if lost := [each for each in confirmed if each not in ids]:
            yield f"messages {lost} were confirmed and are lost"
        shown = [each.id for each in evidence.confirmed if isinstance(each, Shown)]
        if gone := [each for each in shown if each not in ids]:
            yield f"messages {gone} were shown and are lost"
        if strange := [each for each in ids if each not in tried]:
            yield f"messages {strange} were never sent"
        if doubled := [each for each, times in Counter(ids).items() if times > 1]:
            yield f"messages {doubled} are there twice"
        for sender in SENDERS:
            of_sender = [each for each in ids if each.startswith(sender)]
            if of_sender != sorted(of_sender):
                yield f"the messages of {sender} are in the order {of_sender}"
        for message in found.messages:
            if message.body != f"body {message.id[-1]}":
                yield f"message {message.id} has the body {message.body!r}"
        yield from self._check_unread(evidence, ids, list(found.unread))

    def _check_unread(self, evidence: Evidence, ids: list[str], unread: list[str]) -> Iterator[str]:
        def reached(reads: list[object]) -> int:
            up_to = [each.up_to for each in reads if isinstance(each, Read)]
            return max((ids.index(each) for each in up_to if each in ids), default=-1)

        confirmed, tried = reached(evidence.confirmed), reached(evidence.tried)
        begin = len(ids) - len(unread)
        if unread != ids[begin:] or not confirmed + 1 <= begin <= tried + 1:
            yield f"of {ids} {unread} are unread; read was {confirmed + 1}, at most {tried + 1}"
