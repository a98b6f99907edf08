"""Searches of what has ended, over ledgers and an archive on a simulated disk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest

from actors import Actor, ChildSpec
from actors.simulate import Simulation, simulate
from aegis.clock import moment_of
from aegis.coordination import KINDS
from aegis.errors import InvalidRequest, StorageError
from aegis.history import sources
from aegis.history.desk import KEPT_S, MAX_KEPT, HistoryDesk
from aegis.inboxes.history import MessageEntries, archived_message
from aegis.journal import archive as archive_module
from aegis.journal.archive import Archive
from aegis.journal.disk import APPEND, make_directory, write_all
from aegis.journal.ledger import encode_line, seal_new_line
from aegis.journal.segments import close_segment, pack_segments
from aegis.protocol.history import (
    EndedEntries,
    HistoryEntry,
    HistoryPage,
    ListEnded,
    ListTranscripts,
    SearchHistory,
    TranscriptPlace,
)
from aegis.protocol.inboxes import Deliver
from aegis.protocol.requests import Answerer, FindAnswerer
from tests.aegis.inboxes.harness import line_of
from tests.aegis.simulated_daemon import SimulatedDaemon
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.reproducible import reproducible

TERMINALS = Path("/state/terminals")
INBOXES = Path("/state/inboxes")
ARCHIVE = Path("/state/archive")


def at(minute: int) -> str:
    return f"2026-05-{1 + minute // 1440:02}T{minute // 60 % 24:02}:{minute % 60:02}:00.000Z"


def command(seq: int, minute: int, cmd: str = "make", exit_code: int = 0) -> dict[str, object]:
    return {
        "seq": seq,
        "cmd": cmd,
        "writer": "human",
        "finished_at": at(minute),
        "exit": exit_code,
        "end": "exited",
        "stdout": "x" * 2_000,
    }


def write(disk: SimulatedDisk, terminal: str, records: list[dict[str, object]]) -> None:
    append(disk, TERMINALS / terminal / "ledger.jsonl", records)


def append(disk: SimulatedDisk, path: Path, records: Sequence[Mapping[str, object]]) -> None:
    make_directory(disk, path.parent)
    fd = disk.open(path, APPEND)
    seal = disk.seal(path)
    write_all(disk, fd, b"".join(seal_new_line(encode_line(each), seal) for each in records))
    disk.close(fd)


def task(number: int, minute: int) -> HistoryEntry:
    return HistoryEntry(
        kind="task",
        at=at(minute),
        name="build",
        id=f"t{number}",
        text=f"payload {number}",
        by="human",
        outcome="completed",
    )


def archive(disk: SimulatedDisk, tasks: list[HistoryEntry]) -> None:
    lines = [
        {
            "id": each.id,
            "set": {
                "type": "task",
                "ended": each.at,
                "queue": each.name,
                "payload": each.text,
                "sender": each.by,
                "phase": each.outcome,
            },
        }
        for each in tasks
    ]
    ended = max(moment_of(each.at).timestamp() for each in tasks)
    Archive(ARCHIVE, "tasks", disk, 1 << 30).add(lines, {}, ended)


class PlayedDesk(Actor[ListEnded]):
    """The desk of queues or requests, with this that has ended; mute without any."""

    def __init__(self, *, service: str, ended: dict[str, HistoryEntry] | None) -> None:
        self._service, self._ended = service, ended

    async def setup(self) -> None:
        self.context.register("service", self._service)

    async def receive(self, message: ListEnded) -> None:
        if self._ended is None:
            raise StorageError("its ledger cannot be read")
        if message.ids is None:
            self.reply(message, EndedEntries(ids=[*reversed(self._ended)]))
            return
        found = [self._ended[each] for each in message.ids]
        seen = [each for each in found if message.by is None or message.by.owns(None, each.name)]
        self.reply(message, EndedEntries(entries=seen))


class PlayedSessions(Actor[FindAnswerer | ListTranscripts]):
    """The directory of sessions; ``bob`` may answer requests, ``mute`` is not looked up.

    It has these transcripts, by handle.
    """

    def __init__(self, *, transcripts: dict[str, Path]) -> None:
        self._transcripts = transcripts

    async def setup(self) -> None:
        self.context.register("service", "sessions")

    async def receive(self, message: FindAnswerer | ListTranscripts) -> None:
        if isinstance(message, ListTranscripts):
            named = message.name or message.from_handle
            found = self._transcripts.items()
            self.reply(
                message,
                [
                    TranscriptPlace(handle=handle, path=str(path))
                    for handle, path in found
                    if named is None or handle == named
                ],
            )
            return
        if message.handle == "mute":
            self.defer(message)
            return
        may_answer = message.handle == "bob"
        self.reply(message, Answerer(handle=message.handle, answers_requests=may_answer))


class Renamed:
    """The handles of sessions: ``carl`` is called ``charles`` now."""

    def address_of(self, handle: str) -> str:
        return "carl" if handle == "charles" else handle

    def shown(self, address: str) -> str:
        return "charles" if address == "carl" else address


class Library(SimulatedDaemon):
    """A daemon with a history."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, "root/history")
        self.tasks: dict[str, HistoryEntry] = {}
        self.requests: dict[str, HistoryEntry] | None = {}
        self.transcripts: dict[str, Path] = {}

    def actors(self) -> tuple[ChildSpec, ...]:
        return (
            ChildSpec.of("queues", PlayedDesk, service="queues", ended=self.tasks),
            ChildSpec.of("requests", PlayedDesk, service="requests", ended=self.requests),
            ChildSpec.of("workflows", PlayedDesk, service="workflows", ended={}),
            ChildSpec.of("sessions", PlayedSessions, transcripts=self.transcripts),
            ChildSpec.of(
                "history",
                HistoryDesk,
                terminals=TERMINALS,
                inboxes=INBOXES,
                messages_in=MessageEntries,
                archived_message=archived_message,
                handles=Renamed(),
                archive=ARCHIVE,
                kinds=KINDS,
                flusher=SimulatedFlusher(self.disk),
            ),
        )

    def dies(self) -> None:
        pass

    async def page(self, **wanted: Any) -> HistoryPage:
        return await self.ask(SearchHistory(**wanted))

    async def found(self, **wanted: Any) -> list[HistoryEntry]:
        """Return all that is found, page by page."""
        page = await self.page(**wanted)
        found = [*page.result]
        while page.more is not None:
            page = await self.page(**{**wanted, "more": page.more})
            found += page.result
        return found

    async def ids(self, **wanted: Any) -> list[str]:
        return [f"{each.name}/{each.id}" for each in await self.found(**wanted)]


def play(story: Callable[[Library], Awaitable[None]]) -> None:
    async def run(simulation: Simulation) -> None:
        with reproducible(simulation.chance):
            async with Library(simulation).opened() as library:
                await story(library)

    simulate(run, seed=1)


def test_the_newest_of_all_terminals_and_queues_come_first_each_once() -> None:
    async def story(library: Library) -> None:
        write(library.disk, "one", [command(n, 3 * n) for n in range(300)])
        write(library.disk, "two", [command(n, 3 * n + 1) for n in range(300)])
        tasks = [task(n, 3 * n + 2) for n in range(300)]
        archive(library.disk, tasks[:100])
        archive(library.disk, tasks[100:200])
        library.tasks |= {each.id: each for each in tasks[190:]}  # ten are in both
        found = await library.found(limit=37)
        assert [each.at for each in found] == [at(n) for n in reversed(range(900))]
        assert {each.kind for each in found} == {"command", "task"}

    play(story)


def test_a_search_is_by_kind_name_time_word_and_exit_code() -> None:
    async def story(library: Library) -> None:
        records = [command(0, 10, "make all"), command(1, 20, "pytest -q", 1)]
        write(library.disk, "one", [*records, {"seq": 2, "cmd": None}])
        write(library.disk, "two", [command(0, 30, "Make clean", 2)])
        archive(library.disk, [task(1, 5)])
        library.tasks["t2"] = task(2, 40)
        assert await library.ids() == ["build/t2", "two/0", "one/1", "one/0", "build/t1"]
        assert await library.ids(kind="task") == ["build/t2", "build/t1"]
        assert await library.ids(kind="command", name="ONE") == ["one/1", "one/0"]
        assert await library.ids(name="build") == ["build/t2", "build/t1"]
        assert await library.ids(word="MAKE") == ["two/0", "one/0"]
        assert await library.ids(word="payload 1") == ["build/t1"]
        assert await library.ids(exit_code=1) == ["one/1"]
        assert await library.ids(since="2026-05-01T00:20Z") == ["build/t2", "two/0", "one/1"]
        assert await library.ids(until="2026-05-01T02:20+02:00") == [
            "one/1",
            "one/0",
            "build/t1",
        ]
        why = await library.refusal(SearchHistory(since="yesterday"))
        assert why.startswith("since: ")

    play(story)


def request(number: int, minute: int, handle: str) -> HistoryEntry:
    return HistoryEntry(
        kind="request",
        at=at(minute),
        name=handle,
        id=f"{number:012}",
        text=f'Bash: Run it {{"command": "rm {number}"}}',
        by="human",
        outcome="allow once",
    )


def archive_requests(disk: SimulatedDisk, requests: list[HistoryEntry]) -> None:
    answer = {"type": "permission", "kind": "allow_once"}
    lines = [
        {
            "id": each.id,
            "set": {
                "handle": each.name,
                "tool": "Bash",
                "title": "Run it",
                "input": {"command": f"rm {int(each.id)}"},
                "input_bytes": 20,
                "phase": "applied",
                "answer": answer,
                "by": each.by,
                "applied": each.at,
            },
        }
        for each in requests
    ]
    Archive(ARCHIVE, "requests", disk, 1 << 30).add(lines, {})


def test_requests_are_found_in_the_table_and_in_the_archive() -> None:
    async def story(library: Library) -> None:
        requests = [request(each, 2 * each, "ann") for each in range(6)]
        archive_requests(library.disk, requests[:4])
        assert library.requests is not None
        library.requests |= {each.id: each for each in requests[3:]}
        library.tasks["t1"] = task(1, 5)
        found = await library.found(kind="request")
        assert [attrs.evolve(each, archived=False) for each in found] == [*reversed(requests)]
        assert [found[each].archived for each in (0, 1, 3, 4, 5)] == [False] * 2 + [True] * 3
        assert [each.kind for each in await library.found()].count("task") == 1
        assert await library.ids(kind="request", name="ANN", word="rm 2") == [f"ann/{2:012}"]
        assert await library.ids(kind="request", exit_code=0) == []

    play(story)


def test_an_agent_finds_the_requests_that_it_may_list() -> None:
    async def story(library: Library) -> None:
        archive_requests(library.disk, [request(1, 1, "ann"), request(2, 2, "eve")])
        assert library.requests is not None
        library.requests["live"] = request(3, 3, "ann")
        wanted = {"kind": "request"}
        assert await library.ids(**wanted, from_handle="ann") == [f"ann/{3:012}", f"ann/{1:012}"]
        assert await library.ids(**wanted, from_handle="eve") == [f"eve/{2:012}"]
        assert await library.ids(**wanted, from_handle="new") == []
        assert len(await library.ids(**wanted, from_handle="bob")) == 2, "it may answer them"
        why = await library.refusal(SearchHistory(from_handle="mute", kind="request"))
        assert "the session of 'mute' could not be looked up" in why
        assert await library.ids(kind="task", from_handle="mute") == []

    play(story)


def send(disk: SimulatedDisk, handle: str, *minutes: int, acknowledged: int = -1) -> None:
    """Write the messages of an inbox; those up to the minute ``acknowledged`` were read."""
    messages = [
        Deliver(
            handle=handle, id=f"m{each}", sender="human", body=f"Note {each}", timestamp=at(each)
        )
        for each in minutes
    ]
    lines = [line_of(each, number + 1) for number, each in enumerate(messages)]
    if acknowledged >= 0:
        lines.append({"id": "read/1", "set": {"type": "read", "up_to": f"m{acknowledged}"}})
    append(disk, INBOXES / f"{handle}.jsonl", lines)


def archive_messages(
    disk: SimulatedDisk, handle: str, *minutes: int, is_known: bool = True, day: int = 30
) -> None:
    """Write messages that were read into the archive of all inboxes, at the end of a day in May.

    Their times are not in the file unless it ``is_known`` when they came.
    """
    lines = []
    for each in minutes:
        content = {"sender": "human", "body": f"Note {each}", "timestamp": at(each)}
        row = {"type": "message", "chars": 6, "message": content, "number": each}
        lines.append({"id": f"{handle}/m{each}", "set": row})
    came = moment_of(at(max(minutes))).timestamp() if is_known else 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: moment_of(f"2026-05-{day}T23:59Z").timestamp())
        Archive(ARCHIVE, "messages", disk, 1 << 30).add(lines, {}, came)


def test_messages_are_found_in_ledgers_and_in_the_archive() -> None:
    async def story(library: Library) -> None:
        for first in range(0, 60, 20):
            archive_messages(library.disk, "pm", *range(first, first + 20, 2))
            archive_messages(library.disk, "carl", *range(first + 1, first + 20, 2))
        send(library.disk, "pm", *range(58, 100, 2))
        send(library.disk, "carl", *range(61, 100, 2))
        wanted = {"kind": "message"}
        found = await library.found(**wanted, limit=7)
        assert {each.at for each in found} == {*map(at, range(100))}
        outcomes = {(each.name, each.outcome) for each in found if each.at < at(58)}
        assert outcomes == {("pm", "read"), ("charles", "read")}
        assert await library.ids(**wanted, name="pm") == [
            f"pm/m{each}" for each in reversed(range(0, 100, 2))
        ]
        expected = [f"charles/m{each}" for each in reversed(range(1, 100, 2))]
        for by in ({"name": "carl"}, {"name": "charles"}, {"from_handle": "carl"}):
            assert await library.ids(**wanted, **by) == expected
        assert await library.ids(**wanted, from_handle="eve") == []
        assert await library.ids(**wanted, from_handle="carl", name="pm") == []
        assert await library.ids(**wanted, name="pm", until=at(3), word="note") == [
            "pm/m2",
            "pm/m0",
        ]
        assert "pm" not in str(await library.ids())

    play(story)


@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
def test_archived_messages_of_several_inboxes_are_newest_first(
    small_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_module, "SMALL_BYTES", small_bytes)

    async def story(library: Library) -> None:
        for first in (0, 200):
            archive_messages(library.disk, "ann", *range(first, first + 200, 2))
        archive_messages(library.disk, "pm", *range(1, 400, 2))
        expected = [at(each) for each in reversed(range(400))]
        assert [each.at for each in await library.found(kind="message", limit=60)] == expected
        newest = (await library.page(kind="message", limit=50)).result
        assert [each.at for each in newest] == expected[:50]
        pages = [newest]
        while len(pages[-1]) > 1:
            until = pages[-1][-1].at
            pages.append((await library.page(kind="message", limit=50, until=until)).result)
        assert sorted({each.at for page in pages for each in page}) == sorted(expected)
        found = await library.found(kind="message", since=at(390))
        assert [each.at for each in found] == expected[:10]

    play(story)


def test_rows_that_a_kill_has_left_in_two_files_are_found_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive_module, "SMALL_BYTES", 0)

    async def story(library: Library) -> None:
        archive_messages(library.disk, "pm", *range(150))
        archive_messages(library.disk, "pm", *range(250))
        send(library.disk, "pm", *range(100, 300))
        found = await library.ids(kind="message")
        assert found == [f"pm/m{each}" for each in reversed(range(300))]

    play(story)


@pytest.mark.parametrize("seed", range(40))
def test_a_search_of_any_archive_is_a_sort_of_its_rows(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(seed)
    monkeypatch.setattr(archive_module, "SMALL_BYTES", chance.choice([0, 800, 1 << 20]))
    monkeypatch.setattr(sources, "STEP_FILES", chance.choice([1, 3, 16]))
    monkeypatch.setattr(sources, "STEP_LINES", chance.choice([1, 7, 64]))

    async def story(library: Library) -> None:
        days = sorted(chance.randrange(10, 14) for _ in range(chance.randrange(1, 16)))
        rows: set[tuple[str, int]] = set()
        lost: set[tuple[str, int]] = set()

        def add(day: int) -> set[tuple[str, int]]:
            end = chance.choice([5, 3_000, (day - 1) * 1440])
            handle = chance.choice(["pm", "ann", "eve"])
            minutes = sorted(chance.sample(range(end), min(end, chance.randrange(1, 90))))
            is_known = chance.random() < 0.7
            archive_messages(library.disk, handle, *minutes, is_known=is_known, day=day)
            return {(handle, each) for each in minutes}

        for day in days:
            rows |= add(day)
        since, until = sorted(chance.choices([*range(0, 18_000, 50)], k=2))
        wanted: dict[str, Any] = {"kind": "message", "limit": chance.choice([1, 20, 200])}
        wanted |= chance.choice([{}, {"since": at(since)}, {"until": at(until)}])
        wanted |= chance.choice([{}, {"name": "pm"}])
        page = await library.page(**wanted)
        found = [*page.result]
        changes = chance.choice([0, 0, 3])
        while page.more is not None:
            if changes:
                changes -= 1
                if chance.random() < 0.5:
                    lost |= add(days[-1])  # they may come late, twice, or not at all
                else:
                    lost |= delete_some(library, chance)
            page = await library.page(**{**wanted, "more": page.more})
            found += page.result

        def looked_for(some: set[tuple[str, int]]) -> list[tuple[str, str]]:
            return [
                (at(minute), handle)
                for handle, minute in some
                if wanted.get("since", "") <= at(minute) <= wanted.get("until", "9")
                and wanted.get("name", handle) == handle
            ]

        several = [(each.at, each.name) for each in found]
        certain = [each for each in several if each not in looked_for(lost)]
        assert sorted(certain) == sorted(looked_for(rows - lost)), "all, each once"
        assert [at for at, _ in certain] == sorted((at for at, _ in certain), reverse=True)
        assert {*several} <= {*looked_for(rows | lost)}

    play(story)


def delete_some(library: Library, chance: Random) -> set[tuple[str, int]]:
    """Delete a file of the archive of messages; return what was in it."""
    found = Archive(ARCHIVE, "messages", library.disk, 1 << 30)
    if not found.files():
        return set()
    file = chance.choice(found.files())
    ids = [each["id"].split("/m") for each in found.rows(file)]
    library.disk.unlink(found.directory / file)
    return {(handle, int(minute)) for handle, minute in ids}


def test_what_is_held_of_an_archive_is_bounded_and_all_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive_module, "SMALL_BYTES", 0)
    monkeypatch.setattr(sources, "MAX_HELD", 100)

    async def story(library: Library) -> None:
        for first in range(40):  # each has a new one, so that none can be passed over
            archive_messages(library.disk, "pm", *range(first, 2_000, 40), 3_000 + first)
        found = await library.found(kind="message")
        assert {each.at for each in found} == {*map(at, [*range(2_000), *range(3_000, 3_040)])}
        times = [each.at for each in found]
        assert times[0] == at(3_039)
        assert times != sorted(times, reverse=True), "the newest that were held came before others"

    play(story)


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_search_reads_no_file_before_it_needs_it(
    is_deleted: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(archive_module, "SMALL_BYTES", 0)
    monkeypatch.setattr(sources, "MAX_HELD", 10)
    day = 25 * 1440

    async def story(library: Library) -> None:
        archive_messages(library.disk, "eve", *range(50), day=20)
        archive_messages(library.disk, "pm", *range(day + 50, day + 100))
        archive_messages(library.disk, "ann", *range(day, day + 50))
        found = Archive(ARCHIVE, "messages", library.disk, 1 << 30)
        oldest = found.files()[-1]
        page = await library.page(kind="message", limit=99)
        expected = [at(each) for each in range(day + 99, day, -1)]
        assert [each.at for each in page.result] == expected
        if is_deleted:
            library.disk.unlink(found.directory / oldest)
        else:
            library.refuse_to_open(oldest)
        assert page.more is not None
        page = await library.page(kind="message", limit=99, more=page.more)
        assert [each.at for each in page.result] == [at(day)]
        assert len(page.problems) == (not is_deleted)

    play(story)
    assert ("history incomplete" in capsys.readouterr().out) is not is_deleted


def test_messages_are_found_by_handle_time_and_word_if_they_are_asked_for() -> None:
    async def story(library: Library) -> None:
        send(library.disk, "pm", *range(0, 400, 2), acknowledged=100)
        send(library.disk, "ann", *range(1, 400, 2))
        write(library.disk, "one", [command(0, 200, "make note 6")])
        wanted = {"kind": "message"}
        found = await library.found(**wanted, limit=37)
        assert [each.at for each in found] == [at(each) for each in reversed(range(400))]
        assert await library.ids(**wanted, word="NOTE 39", until=at(391)) == [
            "ann/m391",
            "pm/m390",
            "ann/m39",
        ]
        assert await library.ids(**wanted, name="PM", since=at(396)) == ["pm/m398", "pm/m396"]
        assert await library.ids(**wanted, until=at(1)) == ["ann/m1", "pm/m0"]
        assert await library.ids(**wanted, exit_code=0) == []
        assert await library.ids() == ["one/0"]
        read = await library.found(**wanted, name="pm", until=at(102))
        assert [each.outcome for each in read[:2]] == ["unread", "read"]

    play(story)


def test_a_caller_under_a_handle_finds_the_messages_of_its_inbox_alone() -> None:
    async def story(library: Library) -> None:
        send(library.disk, "pm", 1)
        send(library.disk, "Bob", 2)
        send(library.disk, "human", 3)
        append(library.disk, INBOXES / "notes.txt", [])
        wanted = {"kind": "message"}
        assert await library.ids(**wanted) == ["human/m3", "Bob/m2", "pm/m1"]
        assert await library.ids(**wanted, from_handle="bob") == ["Bob/m2"]
        assert await library.ids(**wanted, from_handle="eve") == []
        assert await library.ids(**wanted, from_handle="bob", name="pm") == []
        assert await library.ids(**wanted, name="bob") == ["Bob/m2"]

    play(story)


def test_the_messages_of_a_renamed_session_are_found_by_all_its_handles() -> None:
    async def story(library: Library) -> None:
        send(library.disk, "carl", 1)
        send(library.disk, "charlotte", 2)
        for by in ({"name": "carl"}, {"name": "charles"}, {"from_handle": "carl"}):
            assert await library.ids(kind="message", **by) == ["charles/m1"]

    play(story)


def test_a_message_that_was_sent_again_hides_no_newer_one() -> None:
    async def story(library: Library) -> None:
        send(library.disk, "pm", *range(100), 500, 3, 501)
        found = await library.ids(kind="message", since=at(99))
        assert found == ["pm/m501", "pm/m500", "pm/m99"]

    play(story)


def test_a_desk_that_cannot_read_its_ledger_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def story(library: Library) -> None:
        await library.stop()
        library.requests = None
        await library.start()
        library.tasks["t1"] = task(1, 5)
        assert await library.ids() == ["build/t1"]

    play(story)
    assert "the service 'requests' does not answer" in capsys.readouterr().out


def test_an_agent_finds_nothing_of_terminals_in_which_a_person_types_secrets() -> None:
    async def story(library: Library) -> None:
        write(library.disk, "LOGIN-codex", [command(0, 0)])
        write(library.disk, "login-claude", [command(0, 1)])
        write(library.disk, "one", [command(0, 2)])
        assert await library.ids() == ["one/0", "login-claude/0", "LOGIN-codex/0"]
        assert await library.ids(from_handle="bob") == ["one/0"]

    play(story)


def test_only_its_caller_continues_a_search_and_only_for_a_while() -> None:
    async def story(library: Library) -> None:
        write(library.disk, "one", [command(n, n) for n in range(50)])
        page = await library.page(from_handle="bob", limit=1)
        assert page.more is not None
        for by in (None, "eve"):
            error = await library.refused(SearchHistory(from_handle=by, more=page.more))
            assert isinstance(error, InvalidRequest)
        second = await library.page(from_handle="bob", more=page.more, limit=1)
        assert [each.id for each in second.result] == ["48"]
        assert second.more is not None
        await library.passes(KEPT_S)
        again = SearchHistory(from_handle="bob", more=second.more)
        assert "search again" in await library.refusal(again)
        pages = [await library.page(limit=1) for _ in range(MAX_KEPT + 1)]
        assert "search again" in await library.refusal(SearchHistory(more=pages[0].more))
        assert (await library.page(more=pages[1].more)).result

    play(story)


def test_what_cannot_be_read_is_left_out_which_the_page_and_the_log_say(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def story(library: Library) -> None:
        write(library.disk, "one", [command(0, 1)])
        write(library.disk, "two", [command(0, 2)])
        library.refuse_to_open("two/ledger.jsonl")
        page = await library.page()
        assert [each.id for each in page.result] == ["0"]
        [problem] = page.problems
        assert "two" in problem

    play(story)
    assert "history incomplete" in capsys.readouterr().out


def test_a_page_ends_after_a_while_also_without_an_entry() -> None:
    async def story(library: Library) -> None:
        write(library.disk, "one", [command(n, n) for n in range(20_000)])
        page = await library.page(word="nothing")
        assert (page.result, page.more is None) == ([], False)
        assert await library.ids(word="nothing") == []

    play(story)


def test_commands_are_found_once_while_their_ledger_is_split_and_compressed() -> None:
    async def story(library: Library) -> None:
        ledger = TERMINALS / "one" / "ledger.jsonl"
        for part in range(5):
            first = 100 * part
            write(library.disk, "one", [command(n, n) for n in range(first, first + 100)])
            if part < 3:
                close_segment(library.disk, ledger, first + 99)
                pack_segments(library.disk, ledger)
        page = await library.page(limit=150)
        found = page.result
        close_segment(library.disk, ledger, 499)
        write(library.disk, "one", [command(n, n) for n in range(500, 520)])
        pack_segments(library.disk, ledger)
        while page.more is not None:
            page = await library.page(limit=150, more=page.more)
            found += page.result
        assert [int(each.id) for each in found] == [*reversed(range(500))]

    play(story)
