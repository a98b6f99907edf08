"""Searches in the transcripts of sessions, on a simulated disk."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from aegis.journal.disk import APPEND, make_directory, write_all
from aegis.journal.ledger import encode_line, seal_new_line
from aegis.journal.rotation import previous_of
from tests.aegis.history.test_search import Library, at, command, play, task, write

AGENTS = Path("/state/agents")

Entry = dict[str, Any]


def entry(seq: int, minute: float, kind: str, **fields: Any) -> Entry:
    begin = datetime.fromisoformat(at(0)).timestamp()
    return {"seq": seq, "at": begin + 60 * minute, "kind": kind, **fields}


def event(seq: int, minute: float, type_: str, **fields: Any) -> Entry:
    return entry(seq, minute, "event", turn=1, event={"type": type_, **fields})


def text(seq: int, minute: float, chunk: str, message: str = "") -> Entry:
    return event(seq, minute, "assistant_text", text=chunk, message=message)


def opened(seq: int, minute: float, asked: str, *senders: str) -> Entry:
    messages = [{"id": f"{each}-{seq}", "sender": each} for each in senders]
    return entry(seq, minute, "turn_opened", turn=1, uuid="u", text=asked, messages=messages)


def add(library: Library, handle: str, entries: list[Entry], *, earlier: bool = False) -> Path:
    """Append entries to the transcript of a session, or to its earlier file."""
    path = AGENTS / handle / "transcript.jsonl"
    library.transcripts[handle] = path
    disk = library.disk
    make_directory(disk, path.parent)
    fd = disk.open(previous_of(path) if earlier else path, APPEND)
    seal = disk.seal(path)
    write_all(disk, fd, b"".join(seal_new_line(encode_line(each), seal) for each in entries))
    disk.close(fd)
    return path


async def texts(library: Library, **wanted: Any) -> list[str]:
    found = await library.found(kind="transcript", **wanted)
    return [f"{each.name} {each.id} {each.outcome} {each.text}" for each in found]


def test_the_texts_of_a_transcript_are_found_the_newest_first() -> None:
    async def story(library: Library) -> None:
        entries = [
            entry(1, 0, "started", rung=1),
            opened(2, 1, "Fix the parser", "human", "bob", "human"),
            event(3, 2, "assistant_thinking", text="the parser …"),
            event(4, 3, "tool_use", id="t", name="Bash", input={"command": "pytest -q"}),
            event(5, 4, "tool_result", id="t", text="1 failed"),
            event(6, 5, "tool_result", id="u", text="no such file", is_error=True),
            text(7, 6, "It is fixed."),
            event(8, 6, "usage"),
            entry(9, 7, "turn_ended", turn=1, outcome="completed", reason="", text="It is fixed."),
            event(10, 8, "terminal_ended", terminal="x", command="make", output="done"),
            entry(11, 9, "turn_ended", turn=2, outcome="failed", reason="the agent ended"),
        ]
        add(library, "ann", entries)
        assert await texts(library) == [
            "ann 11 failed the agent ended",
            "ann 10 result $ make\ndone",
            "ann 7 text It is fixed.",
            "ann 6 failed no such file",
            "ann 5 result 1 failed",
            'ann 4 tool Bash {"command": "pytest -q"}',
            "ann 2 message Fix the parser",
        ]
        found = await library.found(kind="transcript")
        assert [each.by for each in found][-2:] == ["ann", "human, bob"]
        assert found[-1].at == at(1)

    play(story)


def test_the_chunks_of_a_message_are_one_text() -> None:
    async def story(library: Library) -> None:
        words = [f"w{number} " for number in range(500)]  # more than a step reads
        add(
            library,
            "ann",
            [
                *(text(1 + n, n, each) for n, each in enumerate(words)),
                event(501, 501, "usage"),
                *(text(502 + n, 502 + n, each, "m1") for n, each in enumerate(["one ", "two"])),
                event(504, 504, "usage"),
                text(505, 505, " three", "m1"),
                text(506, 506, "of another", "m2"),
            ],
        )
        found = await library.found(kind="transcript")
        assert [each.id for each in found] == ["506", "502", "1"]
        assert [each.at for each in found] == [at(506), at(505), at(499)]
        assert found[1].text == "one two three"
        assert found[2].text == "".join(words)[:1_000]
        assert await library.ids(kind="transcript", word="w199 W200") == ["ann/1"]

    play(story)


def test_a_word_is_found_anywhere_and_shown_with_what_is_around_it() -> None:
    async def story(library: Library) -> None:
        long = "a" * 5_000 + " the Needle in it " + "b" * 5_000
        add(library, "ann", [opened(1, 1, long, "human"), text(2, 2, "nothing")])
        add(library, "eve", [opened(1, 3, "needles", "ann")])
        [eve, ann] = await library.found(kind="transcript", word="needle")
        assert (eve.name, eve.text, eve.by) == ("eve", "needles", "ann")
        assert ann.text.startswith("a" * 190)
        assert "the Needle in it bbb" in ann.text
        assert len(ann.text) == 1_000

    play(story)


def test_transcripts_are_searched_by_name_and_time_beside_all_others() -> None:
    async def story(library: Library) -> None:
        write(library.disk, "one", [command(n, 10 * n, "grep word") for n in range(4)])
        library.tasks["t1"] = task(1, 15)
        add(library, "ann", [text(n, 10 * n + 5, f"word {n}", f"m{n}") for n in range(1, 4)])
        add(library, "eve", [text(n, 10 * n + 6, f"word {n}", f"m{n}") for n in range(1, 4)])
        assert await library.ids(word="word") == [f"one/{n}" for n in (3, 2, 1, 0)]
        assert await library.ids(kind="transcript", word="word") == [
            *("eve/3", "ann/3", "eve/2", "ann/2", "eve/1", "ann/1")
        ]
        assert await library.ids(kind="transcript", exit_code=0) == []
        assert await library.ids() == ["one/3", "one/2", "build/t1", "one/1", "one/0"]
        assert await library.ids(kind="command", word="word") == [f"one/{n}" for n in (3, 2, 1, 0)]
        wanted = {"kind": "transcript", "since": at(16), "until": at(35)}
        assert await library.ids(**wanted) == ["ann/3", "eve/2", "ann/2", "eve/1"]
        assert await library.ids(kind="transcript", name="ann") == ["ann/3", "ann/2", "ann/1"]
        assert await library.ids(kind="transcript", from_handle="eve") == [
            *("eve/3", "eve/2", "eve/1")
        ]

    play(story)


def test_both_files_of_a_transcript_are_read_also_while_a_new_one_begins() -> None:
    async def story(library: Library) -> None:
        add(library, "ann", [text(n, n, f"text {n}", f"m{n}") for n in range(1, 301)], earlier=True)
        head = {"kind": "head", "after": 300, "past": {}}
        add(library, "ann", [head, *(text(n, n, f"text {n}", f"m{n}") for n in range(301, 601))])
        everything = await library.ids(kind="transcript")
        assert everything == [f"ann/{n}" for n in reversed(range(1, 601))]
        page = await library.page(kind="transcript", limit=100)
        ids = [each.id for each in page.result]
        path = library.transcripts["ann"]
        library.disk.rename(path, previous_of(path))
        head = {"kind": "head", "after": 600, "past": {}}
        add(library, "ann", [head, *(text(n, n, f"text {n}", f"m{n}") for n in range(601, 700))])
        while page.more is not None:
            page = await library.page(kind="transcript", limit=100, more=page.more)
            ids += [each.id for each in page.result]
        assert ids == [str(n) for n in reversed(range(301, 601))], "the others are gone"

    play(story)


def test_a_transcript_that_cannot_be_read_and_entries_of_another_form_are_left_out() -> None:
    async def story(library: Library) -> None:
        odd: list[Entry] = [
            {"seq": 1, "kind": "turn_opened", "text": 7, "messages": None},
            {"seq": 2, "kind": "event", "event": None, "at": "never"},
            {"seq": 3, "kind": "event", "event": {"type": "assistant_text"}},
            {"kind": "event", "event": {"type": "assistant_text", "text": "no number"}},
            {**text(5, 0, "far away", "m"), "at": 1e300},
            {**text(6, 0, "no moment", "n"), "at": None},
        ]
        add(library, "ann", odd)
        assert await texts(library) == ["ann 6 text no moment", "ann 5 text far away"]
        add(library, "eve", [text(1, 1, "not read")])
        library.refuse_to_open("eve/transcript.jsonl")
        page = await library.page(kind="transcript")
        assert [each.name for each in page.result] == ["ann", "ann"]
        assert len(page.problems) == 1

    play(story)


def test_a_session_without_a_transcript_has_none() -> None:
    async def story(library: Library) -> None:
        library.transcripts["new"] = AGENTS / "new" / "transcript.jsonl"
        assert await texts(library) == []

    play(story)


def test_what_is_found_last_is_not_waited_for() -> None:
    async def story(library: Library) -> None:
        add(library, "ann", [text(n, n, "other", f"m{n}") for n in range(20_000)])
        add(library, "eve", [text(1, 19_999, "a needle")])
        page = await library.page(kind="transcript", word="needle", limit=1)
        assert [each.name for each in page.result] == ["eve"]
        assert page.more is not None, "the other transcript was not read to its end"
        assert await library.ids(kind="transcript", word="needle") == ["eve/1"]

    play(story)
