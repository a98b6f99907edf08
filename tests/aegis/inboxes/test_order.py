"""The order of one sender's messages, though the disk refuses one of them."""

from __future__ import annotations

import errno
from pathlib import Path

import attrs
import pytest

from aegis.errors import StorageError, Unavailable
from aegis.protocol.inboxes import ReadInbox
from tests.aegis.inboxes.harness import open_inboxes, router, wake
from tests.fakes.faulty_disk import FaultyDisk


async def test_what_was_sent_behind_a_message_that_the_disk_refused_does_not_come_before_it(
    tmp_path: Path,
) -> None:
    disk = FaultyDisk()
    first, second, third = wake(1), wake(2), attrs.evolve(wake(3), after=wake(2).id)
    async with open_inboxes(tmp_path, disk) as system:
        inbox = router(system)
        await inbox.ask(first)
        disk.fail("fdatasync", errno.EIO)
        with pytest.raises(StorageError):
            await inbox.ask(second)
        with pytest.raises(Unavailable, match="the previous message to"):
            await inbox.ask(third)
        for message in (second, third):
            await inbox.ask(message)
        unread = await inbox.ask(ReadInbox(from_handle="pm"))
    assert [each.id for each in unread.messages] == ["w1", "w2", "w3"]


async def test_what_is_sent_while_the_message_before_it_is_under_way_shares_its_sync(
    tmp_path: Path,
) -> None:
    disk = FaultyDisk()
    messages = [wake(1)] + [attrs.evolve(wake(n), after=wake(n - 1).id) for n in range(2, 9)]
    async with open_inboxes(tmp_path, disk) as system:
        inbox = router(system)
        await inbox.ask(wake(0))
        before = disk.calls["fdatasync"]
        for reply in [inbox.send_request(message) for message in messages]:
            await reply.wait()
        assert disk.calls["fdatasync"] - before < len(messages)
        unread = await inbox.ask(ReadInbox(from_handle="pm"))
    assert [each.id for each in unread.messages] == [f"w{n}" for n in range(9)]
