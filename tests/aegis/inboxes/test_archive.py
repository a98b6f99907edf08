"""Messages that are not unread any more move to the archive; their ids stay known there."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
import trio

from aegis.clock import moment_of, utc_now
from aegis.errors import InvalidRequest
from aegis.inboxes.reading import message_archive
from aegis.journal.archive import Keep
from aegis.journal.disk import OsDisk
from aegis.journal.ledger import decode_line
from aegis.protocol.inboxes import Deliver, ReadInbox, Receipt
from tests.aegis.inboxes.harness import line_of
from tests.aegis.inboxes.office import (
    ARCHIVE,
    DIRECTORY,
    Office,
    handoff,
    ids,
    limited,
    note,
    play,
    wake,
)
from tests.chaos.machine.disk_model import cached_image
from tests.chaos.machine.simulated_disk import SimulatedDisk

NONE = Keep(newest=0, days=0)
FEW = Keep(newest=3, days=0)
DAYS = 24 * 3600


async def lives(office: Office) -> AsyncIterator[None]:
    """Yield in this life of the daemon, in one after a kill, and in one after a loss of power."""
    yield
    for power_fails in (False, True):
        await office.restart(power_fails=power_fails)
        yield


def archived(office: Office) -> list[str]:
    """Return the ids in the archive, in their order."""
    image = cached_image(office.disk.model)
    found: list[str] = []
    for path, data in sorted(image.items()):
        if path.startswith(f"{ARCHIVE}/") and path.endswith(".gz"):
            lines = gzip.decompress(data or b"").splitlines(keepends=True)
            found += [decode_line(each)["id"] for each in lines]
    return found


def live(office: Office, handle: str = "pm") -> list[str]:
    """Return the ids of the messages that the ledger has."""
    ids: dict[str, None] = {}
    for line in office.lines(handle):
        if "drop" in line:
            ids.pop(line["id"], None)
        elif line["id"] != "mark":
            ids[line["id"]] = None
    return [*ids]


def named(*numbers: int) -> list[str]:
    return [f"n{each}" for each in numbers]


async def read_all(office: Office, handle: str = "pm") -> None:
    """Acknowledge all messages, and let them move."""
    while (found := await office.read(handle)).next is not None:
        await office.read(handle, after=found.next)
    await office.settles()


def test_only_the_newest_messages_stay_and_all_are_listed() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(10)))
        await office.unread(after="n7")
        await office.settles()
        assert archived(office) == [f"pm/n{each}" for each in range(5)]
        assert live(office) == named(5, 6, 7, 8, 9)
        async for _ in lives(office):
            assert await office.unread() == named(8, 9)
            for limit in range(1, 12):
                assert await office.all(limit=limit) == named(*range(10))[-limit:]
            found = await office.read(unread=False)
            assert [each.body for each in found.messages] == [f"body {each}" for each in range(10)]

    play(story, keep=FEW)


def test_many_messages_that_are_due_move_together() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(1500)))
        await office.unread(after="n1499")
        await office.settles()
        assert len(archived(office)) == 1500
        # Each file costs the look at all others: of many, messages would come faster than leave.
        assert len(message_archive(ARCHIVE.parent, office.disk).files()) == 1

    play(story, keep=NONE)


def test_the_file_of_messages_says_when_the_newest_came() -> None:
    async def story(office: Office) -> None:
        archive = message_archive(ARCHIVE.parent, office.disk)
        for number in range(20):
            sent = utc_now()
            await office.fill([note(number, timestamp=sent)])
            await read_all(office)
            (file,) = archive.files()
            known = archive.ended_before(file)
            assert known is not None
            assert known > sent
            assert (moment_of(known) - moment_of(sent)).total_seconds() <= 2
            await office.passes(1.37)

    play(story, keep=NONE)


def test_it_does_not_if_one_is_of_a_ledger_that_did_not_say_it() -> None:
    async def story(office: Office) -> None:
        await office.restart_with([line_of(note(0), 1)])
        await office.deliver(note(1))
        await read_all(office)
        assert archived(office) == ["pm/n0", "pm/n1"]
        archive = message_archive(ARCHIVE.parent, office.disk)
        (file,) = archive.files()
        assert archive.ended_before(file) == f"{utc_now()[:10]}T24"

    play(story, keep=NONE)


def test_what_is_unread_never_moves() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(100)))
        await office.passes(100 * DAYS)
        assert archived(office) == []
        await office.restart()
        assert await office.unread() == named(*range(100))
        assert archived(office) == []

    play(story, keep=NONE)


def test_young_messages_stay_for_their_days_but_not_more_than_the_limit() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(20)))
        await read_all(office)
        assert archived(office) == [], "all are young"
        await office.passes(20 * DAYS)
        await office.fill(map(note, range(20, 30)))
        await read_all(office)
        assert archived(office) == []
        await office.passes(11 * DAYS)
        await office.restart()
        await office.unread()
        await office.settles()
        assert archived(office) == [f"pm/n{each}" for each in range(20)]
        await office.fill(map(note, range(30, 61)))
        await read_all(office)
        assert len(archived(office)) == 22, "a batch is one message here"

    play(story, keep=Keep(newest=10, days=30, most=40))


def test_long_messages_move_before_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, MAX_READ_CHARS=10_000)

    async def story(office: Office) -> None:
        await office.deliver(*(note(each, "x" * 1_000) for each in range(12)))
        await read_all(office)
        assert 2 <= len(archived(office)) <= 4
        assert await office.all() == named(*range(12))

    play(story)


def test_every_id_is_known_once_its_row_is_archived() -> None:
    async def story(office: Office) -> None:
        sent: list[Deliver] = []
        for number in range(30):
            sent += [note(number), wake(number), wake(number, "test"), wake(number, life="9")]
        await office.fill(sent)
        await read_all(office)
        assert len(archived(office)) == len(sent)
        async for _ in lives(office):
            for each in sent:
                expected = Receipt(id=each.id, status="queued", position=0)
                assert await office.deliver(each) == [expected]
                assert await office.deliver(attrs.evolve(each, defer_sync=True)) == [expected]
            assert await office.unread() == []
            assert await office.all() == [each.id for each in sent]
        await office.deliver(note(0, handle="bob"))
        assert await office.unread("bob") == ["n0"], "an id belongs to its inbox"

    play(story, keep=NONE)


def test_every_key_answers_with_the_same_id_once_its_message_is_archived() -> None:
    async def story(office: Office) -> None:
        await office.see("builder", "pm", "eve")
        office.running = {}
        await office.restart()
        asked = [
            handoff("run", target, by, key=f"k{number}")
            for target in ("builder", "pm")
            for by in ("pm", "eve", None)
            for number in range(5)
        ]
        first = [await office.ask(each) for each in asked]
        for handle in ("builder", "pm"):
            await read_all(office, handle)
        assert len(archived(office)) == len(asked)
        async for _ in lives(office):
            for request, receipt in zip(asked, first, strict=True):
                again = await office.ask(request)
                assert again == Receipt(id=receipt.id, status="queued", position=0)
            assert await office.unread("builder") == []

    play(story, keep=NONE)


def test_messages_behind_one_that_is_looked_for_keep_their_order() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(5)))
        await read_all(office)
        answers = [
            office.ask_soon(attrs.evolve(each, defer_sync=True))
            for number in range(5, 20)
            for each in (note(number), wake(number), note(number - 5))
        ]
        reading = office.ask_soon(ReadInbox(from_handle="pm", limit=1000))
        await office.settles()
        assert all(each.value is not None for each in answers)
        expected = [id_ for each in range(5, 20) for id_ in (f"n{each}", wake(each).id)]
        assert await office.unread() == expected
        assert ids(reading.value) == expected, "it is answered behind what was sent before"

    play(story, keep=NONE)


def test_a_wake_that_came_late_is_known_though_the_later_ones_are_archived() -> None:
    async def story(office: Office) -> None:
        await office.deliver(wake(9))
        late = [office.ask_soon(wake(10)), office.ask_soon(wake(3))]
        await office.settles()
        assert all(each.value is not None for each in late)
        await office.unread(after=wake(10).id)
        await office.settles()
        assert archived(office) == [f"pm/{wake(each).id}" for each in (9, 10)]
        async for _ in lives(office):
            await office.deliver(wake(10), wake(9), wake(3))
            assert await office.unread() == [wake(3).id]

    play(story, keep=NONE)


def test_a_wake_that_comes_after_all_of_its_terminal_are_archived_hides_none() -> None:
    async def story(office: Office) -> None:
        await office.fill(wake(each) for each in (1, 2, 4, 5, 6))
        await read_all(office)
        await office.restart()
        assert (await office.deliver(wake(3)))[0].id == wake(3).id
        assert await office.unread() == [wake(3).id]
        async for _ in lives(office):
            await office.deliver(*(wake(each) for each in range(1, 7)))
            assert await office.unread() == [wake(3).id]

    play(story, keep=NONE)


def test_cursors_and_places_of_archived_messages_are_known() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(10)))
        await office.unread(after="n5")
        await office.settles()
        async for _ in lives(office):
            assert await office.unread(after="n2") == named(6, 7, 8, 9)
            with pytest.raises(InvalidRequest, match="is not the 'next' of an earlier reply"):
                await office.read(after="n77")
            news = await office.follow(after="n1")
            assert ids(await office.follow(news)) == named(6, 7, 8, 9)
            with pytest.raises(InvalidRequest, match="no message 'n77' was ever in this inbox"):
                await office.follow(after="n77")
            await office.deliver(note(9, after="n3"))

    play(story, keep=NONE)


def test_folded_wakes_move_and_their_fold_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, MAX_WAKES=2, FOLDED_TOGETHER=2)

    async def story(office: Office) -> None:
        await office.fill(map(wake, range(1, 11)))
        await office.deliver(note(1))  # its sync makes the last fold durable
        await office.settles()
        assert archived(office) == [f"pm/{wake(each).id}" for each in range(1, 7)]
        async for _ in lives(office):
            found = await office.read()
            assert ids(found) == [*(wake(each).id for each in (8, 9, 10)), "n1"]
            assert found.messages[0].body.endswith('aegis_term_read(name="build", since_seq=0)')
            assert await office.all() == [*(wake(each).id for each in range(1, 11)), "n1"]
        found = await office.read(after=wake(4).id)
        assert found.messages[0].body.endswith('aegis_term_read(name="build", since_seq=4)')
        async for _ in lives(office):
            found = await office.read()
            assert found.messages[0].body.endswith('aegis_term_read(name="build", since_seq=4)')
            await office.deliver(*map(wake, range(1, 11)))
            assert len(await office.unread()) == 4

    play(story, keep=NONE)


def test_a_ledger_stays_small_however_many_messages_were_read() -> None:
    async def story(office: Office) -> None:
        for batch in range(30):
            start = 100 * batch
            await office.fill(note(each, "b" * 100) for each in range(start, start + 100))
            await office.unread(after=f"n{start + 99}")
            await office.settles()
            assert len(office.data()) < 150_000
        assert await office.all(limit=2) == named(2998, 2999)
        assert len(archived(office)) > 2_800

    play(story, keep=Keep(newest=100, days=0))


def test_an_id_is_known_for_400_days() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(5)))
        await read_all(office)
        await office.passes(399 * DAYS)
        await office.fill(map(note, range(10)))
        await read_all(office)
        assert len({*archived(office)}) == len(archived(office)) == 10

    play(story, keep=NONE)


def test_two_inboxes_move_their_messages_at_the_same_moment() -> None:
    async def story(office: Office) -> None:
        handles = ["pm", "bob", "eve", "ann"]
        for each in handles:
            await office.fill(note(number, handle=each) for number in range(20))
        reads = [office.ask_soon(ReadInbox(from_handle=each, after="n19")) for each in handles]
        await office.settles()
        assert all(each.value is not None for each in reads)
        assert {*archived(office)} == {f"{h}/n{each}" for h in handles for each in range(20)}
        for each in handles:
            await office.fill(note(number, handle=each) for number in range(20))
            assert await office.unread(each) == []
            assert await office.all(each) == named(*range(20))

    play(story, keep=NONE)


async def test_threads_add_to_one_archive_at_the_same_time(tmp_path: Path) -> None:
    archive = message_archive(tmp_path, OsDisk())

    def add(number: int) -> None:
        row = {"id": f"pm/n{number}", "set": {"number": number}}
        archive.add([row], {row["id"]: {"number": number}})  # type: ignore[dict-item]

    async with trio.open_nursery() as nursery:
        for each in range(60):
            nursery.start_soon(trio.to_thread.run_sync, add, each)
    for each in range(60):
        entry = archive.entry(f"pm/n{each}")
        assert entry is not None
        assert archive.row(entry["in"], f"pm/n{each}") == {"number": each}


def test_a_ledger_of_a_deleted_archive_lists_what_it_has() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(10)))
        await read_all(office)
        await office.fill(map(note, range(10, 12)))
        for path in [each for each in cached_image(office.disk.model) if each.endswith(".gz")]:
            office.disk.unlink(Path(path))
        assert await office.all() == named(10, 11)
        await office.fill(map(note, range(12)))
        assert await office.unread() == named(10, 11), "the index knows the others"

    play(story, keep=NONE)


async def lose_ledger(office: Office, left: bytes | None = None) -> None:
    """Restart with ``left`` in place of the ledger; None: without it."""
    await office.stop()
    image = {**cached_image(office.disk.model)}
    del image[f"{DIRECTORY}/pm.jsonl"]
    if left is not None:
        image[f"{DIRECTORY}/pm.jsonl"] = left
    office.disk = SimulatedDisk(image, office.plan)
    await office.start()
    await office.settles()


@pytest.mark.parametrize("left", [None, b"a damaged line\n"])
def test_an_inbox_whose_ledger_was_lost_gives_no_number_again(left: bytes | None) -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(20)))
        before = await office.follow()
        await read_all(office)
        assert archived(office) == [f"pm/n{each}" for each in range(20)]
        await lose_ledger(office, left)
        await office.deliver(note(20))
        assert await office.unread(after="n19") == ["n20"]
        await office.deliver(note(21))
        for _ in range(3):
            assert await office.unread(after="n20") == ["n21"]
            await office.restart(power_fails=True)
        assert await office.all(limit=30) == named(*range(22))
        assert ids(await office.follow(before)) == ["n21"]

    play(story, keep=NONE)


def test_a_place_of_a_ledger_that_was_lost_acknowledges_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As in an archive of a version that does not store the highest number.
    monkeypatch.setattr("aegis.inboxes.inbox.archived_newest", lambda handle: f"{handle}/other")

    async def story(office: Office) -> None:
        await office.fill(map(note, range(20)))
        await read_all(office)
        monkeypatch.undo()
        await lose_ledger(office)
        await office.deliver(note(20), note(21))
        assert await office.unread(after="n19") == ["n20", "n21"]
        await office.restart()
        assert await office.unread() == ["n20", "n21"]

    play(story, keep=NONE)
