"""The messages of an inbox as a search of the history finds them in its ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from aegis.inboxes.history import MessageEntries
from aegis.journal.disk import APPEND, write_all
from aegis.protocol.history import MAX_TEXT_CHARS, HistoryEntry
from tests.aegis.inboxes.office import (
    DIRECTORY,
    TIME,
    Office,
    limited,
    message_line,
    note,
    play,
    read_line,
    sealed,
    wake,
)

PM = DIRECTORY / "pm.jsonl"
RECORDINGS = Path(__file__).parents[2] / "recordings"
MAX_STEPS = 1_000


def entries(office: Office, lines: int = 64, size: int = 1 << 20) -> list[HistoryEntry]:
    """Return the messages of the inbox of ``pm``, in steps of so many lines or bytes."""
    found: list[HistoryEntry] = []
    stored = MessageEntries(office.disk, PM, "pm")
    for _ in range(MAX_STEPS):
        step = stored.step(lines, size)
        if step is None:
            assert stored.step(lines, size) is None
            return found
        found += step
    raise AssertionError("it does not end")


def outcomes(office: Office, lines: int = 64, size: int = 1 << 20) -> list[tuple[str, str]]:
    return [(each.id, each.outcome) for each in entries(office, lines, size)]


@pytest.mark.parametrize("lines", [1, 2, 64])
def test_all_messages_are_found_newest_first_and_whether_they_were_read(lines: int) -> None:
    async def story(office: Office) -> None:
        await office.deliver(*map(note, range(5)))
        await office.read(after="n1")
        await office.read(after="n2")
        await office.deliver(note(5))
        await office.restart()
        unread = [(f"n{each}", "unread") for each in (5, 4, 3)]
        read = [(f"n{each}", "read") for each in (2, 1, 0)]
        assert outcomes(office, lines) == unread + read
        assert outcomes(office, lines, size=1) == unread + read

    play(story)


def test_what_was_read_is_known_wherever_the_ledger_says_it() -> None:
    async def story(office: Office) -> None:
        await office.fill(map(note, range(400)))
        await office.read(after="n99")
        [mark] = [each for each in office.lines() if each["id"] == "mark"]
        others = [each for each in office.lines() if each["id"] != "mark"]
        for place in (0, 50, 150, 400):  # a compaction leaves it where it was first
            await office.restart_with([*others[:place], mark, *others[place:]])
            found = dict(outcomes(office))
            assert [*found] == [f"n{each}" for each in reversed(range(400))]
            assert [each for each in found if found[each] == "read"] == [*found][300:]
        await office.restart_with([*others, mark, {"id": "mark", "set": {}}])
        assert dict(outcomes(office)) == found

    play(story)


def test_an_entry_has_the_inbox_the_sender_the_time_and_the_beginning_of_the_text() -> None:
    async def story(office: Office) -> None:
        await office.deliver(note(1, "b" * (MAX_TEXT_CHARS + 1)))
        assert entries(office) == [
            HistoryEntry(
                kind="message",
                at=TIME,
                name="pm",
                id="n1",
                text="b" * MAX_TEXT_CHARS,
                by="agent:ann",
                outcome="unread",
            )
        ]

    play(story)


def test_each_folded_wake_is_found_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, MAX_WAKES=2)

    async def story(office: Office) -> None:
        await office.deliver(*map(wake, range(6)))
        await office.read(after=wake(3).id)
        assert len(await office.unread()) == 2
        texts = [(each.id, each.text, each.outcome) for each in entries(office)]
        unread = [(wake(each).id, "$ make", "unread") for each in (5, 4)]
        assert texts == unread + [(wake(each).id, "$ make", "read") for each in (3, 2, 1, 0)]

    play(story)


def test_lines_of_version_1_are_found_and_damaged_ones_are_left_out() -> None:
    async def story(office: Office) -> None:
        damaged = sealed(message_line(note(3))).replace(b"body", b"BODY")
        torn = sealed(message_line(note(5)))[:-1]
        older = [message_line(note(each)) for each in (1, 2)]
        await office.restart_with([*older, read_line("n1"), damaged, message_line(note(4))])
        await office.deliver(note(6))
        found = [("n6", "unread"), ("n4", "unread"), ("n2", "unread"), ("n1", "read")]
        assert outcomes(office) == found
        await office.stop()
        fd = office.disk.open(PM, APPEND)
        write_all(office.disk, fd, torn)
        office.disk.close(fd)
        assert outcomes(office) == found

    play(story)


def test_lines_of_a_version_before_the_archive_are_found_and_what_was_read_of_them() -> None:
    async def story(office: Office) -> None:
        recorded = (RECORDINGS / "inbox_before_archive.jsonl").read_bytes()
        await office.restart_with(recorded.splitlines(keepends=True))
        before = outcomes(office)
        assert next(each for each, outcome in before if outcome == "read") == wake(2).id
        await office.read()
        await office.settles()
        assert outcomes(office) == before
        await office.read(after="n5")
        assert {outcome for _, outcome in outcomes(office)} == {"read"}

    play(story)


def test_an_inbox_that_is_deleted_meanwhile_has_no_more_messages() -> None:
    async def story(office: Office) -> None:
        await office.deliver(*map(note, range(9)))
        stored = MessageEntries(office.disk, PM, "pm")
        first = stored.step(2, 1 << 20)
        assert first is not None
        assert [each.id for each in first] == ["n8", "n7"]
        office.disk.unlink(PM)
        assert stored.step(2, 1 << 20) is None
        assert entries(office) == []

    play(story)
