"""Canvases under ``kill -9``, with clients and an editor that write the same file (G19)."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import attrs
import pytest

from aegis.client.line import ClientError
from tests.e2e.canvas_tools import Canvases, rename_over, sed, truncate_and_write
from tests.e2e.harness import KILL_SEEDS, DaemonProcess
from tests.resources.waiting import until
from tests.test_fault_points import ONLY_REAL

pytestmark = [pytest.mark.real, pytest.mark.long]

KILLS = 25
"""Of each seed."""

POINTS = (
    *sorted(each for each in ONLY_REAL if each.startswith(("canvas.", "exchange."))),
    *("ledger.sync.before", "ledger.sync.after", "inbox.append.after"),
)
WRITERS = ("ada", "bob")
READERS = ("pm", "dev")
SECTIONS = ("One", "Two", "Three")
EDITED = "Editor"
"""The section that only the editor writes, so that it never replaces the text of an agent."""


@attrs.define
class Written:
    """A write that was acknowledged."""

    rev: int
    section: str
    text: str
    writer: str


class Ordeal:
    """A daemon with a canvas, clients and an editor that write, and kills at the same time."""

    def __init__(self, daemon: DaemonProcess, seed: int) -> None:
        self.daemon = daemon
        self.canvases = Canvases(daemon, "".join(f"## {each}\n\n" for each in (EDITED, *SECTIONS)))
        self.chance = random.Random(seed)
        self.written: list[Written] = []
        self.edited: list[str] = []
        self.is_over = False
        for reader in READERS:
            self.canvases.call("subscribe", from_handle=reader)

    # The load.

    def work(self, writer: str, seed: int) -> None:
        chance, number = random.Random(seed), 0
        while not self.is_over:
            number += 1
            section, text = chance.choice(SECTIONS), f"{writer} {number}"
            with suppress(ClientError, OSError, ValueError):
                self.write(section, text, writer, is_append=chance.random() < 0.6)
            time.sleep(chance.uniform(0, 0.05))

    def write(self, section: str, text: str, writer: str, *, is_append: bool) -> None:
        call = self.daemon.call
        if is_append:
            reply = call(
                "canvas_append_to_section",
                name="plan",
                section=section,
                text=text,
                from_handle=writer,
            )
        else:
            [read] = call("canvas_read", name="plan", section=section)["sections"]
            reply = call(
                "canvas_write_section",
                name="plan",
                section=section,
                content=text,
                if_rev=read["rev"],
                from_handle=writer,
            )
        self.written.append(Written(reply["rev"], section, text, writer))

    def edit(self, seed: int) -> None:
        """Edit the file in the ways of editors; each edit adds a line to the editor's section."""
        chance, number = random.Random(seed), 0
        file = self.canvases.file
        while not self.is_over:
            number += 1
            line = f"editor-{number}"
            way = chance.choice([rename_over, truncate_and_write, sed])
            if way is sed:
                sed(file, f"s/^## {EDITED}$/## {EDITED}\\n\\n{line}/")
            else:
                text = file.read_text()
                head = f"## {EDITED}\n"
                way(file, text.replace(head, f"{head}\n{line}\n", 1))
            self.edited.append(line)
            time.sleep(chance.uniform(0.05, 0.4))

    @contextmanager
    def load(self, seed: int) -> Iterator[None]:
        threads = [
            threading.Thread(target=self.work, args=[writer, seed * 10 + number])
            for number, writer in enumerate(WRITERS)
        ]
        threads.append(threading.Thread(target=self.edit, args=[seed * 10 + 9]))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.is_over = True
            for thread in threads:
                thread.join()

    # Kills.

    def kill_one(self) -> None:
        time.sleep(self.chance.uniform(0.02, 0.6))
        self.daemon.kill()
        if self.chance.random() < 0.6:
            faults = f"{self.chance.choice(POINTS)}@{self.chance.randint(1, 6)}=kill"
            self.daemon.launch("--port", "0", faults=faults)
            if self.daemon.wait_ready():
                self.daemon.wait_dead(2.0)
            self.daemon.kill()
        self.daemon.start()

    # What must hold afterwards.

    def check(self) -> None:
        canvases = self.canvases
        canvases.call("read")
        assert canvases.beside() == []
        history = everything_recorded(self.daemon)
        self.check_writes(history)
        self.check_edits(history)
        self.check_wakes(history)

    def check_writes(self, history: list[dict[str, Any]]) -> None:
        """Each acknowledged write is recorded once, with its revision, text and writer."""
        recorded = {each["rev"]: each for each in history}
        assert len(recorded) == len(history)
        for each in self.written:
            found = recorded[each.rev]
            assert found["text"] == each.text
            assert (found["section"], found["writer"]) == (each.section, f"agent:{each.writer}")
        texts = Counter(each["text"] for each in history if each["op"] in ("written", "appended"))
        assert {each.text: texts[each.text] for each in self.written} == {
            each.text: 1 for each in self.written
        }

    def check_edits(self, history: list[dict[str, Any]]) -> None:
        """Each line of the editor, and each text of an agent, is in the file or in the history."""
        kept = set(self.canvases.file.read_text().split("\n"))
        for each in history:
            kept |= set((each["text"] or "").split("\n"))
        assert set(self.edited) <= kept

    def check_wakes(self, history: list[dict[str, Any]]) -> None:
        """Each subscriber was woken by each write and each save once."""
        wanted = {each for each in revisions_of_wakes(history) if each > len(SECTIONS) + 1}
        for reader in READERS:
            until(partial(self.is_told, reader, wanted), "all are told")
            found = Counter(woken(self.canvases, reader))
            assert set(found.values()) == {1}
            assert found.keys() == wanted

    def is_told(self, reader: str, wanted: set[int]) -> bool:
        return wanted <= set(woken(self.canvases, reader))


def woken(canvases: Canvases, reader: str) -> list[int]:
    """The revisions that a reader was woken by."""
    return [int(each["id"].split("/")[2]) for each in canvases.inbox(reader)]


def revisions_of_wakes(history: list[dict[str, Any]]) -> set[int]:
    """The revisions that messages are about: of a save, the last of its changes."""
    last: dict[object, int] = {}
    for each in sorted(history, key=lambda each: int(each["rev"])):
        is_saved = each["writer"] == "outside" and not each.get("displaced")
        last[each["timestamp"] if is_saved else each["rev"]] = each["rev"]
    return set(last.values())


def everything_recorded(daemon: DaemonProcess) -> list[dict[str, Any]]:
    """All changes that the ledger has, oldest first."""
    found: list[dict[str, Any]] = daemon.call("canvas_history", name="plan", limit=1000)["result"]
    return found[::-1]


@pytest.mark.parametrize("seed", KILL_SEEDS)
def test_kills_lose_no_write_and_no_edit(own_daemon: DaemonProcess, seed: int) -> None:
    ordeal = Ordeal(own_daemon, seed)
    with ordeal.load(seed):
        for _ in range(KILLS):
            ordeal.kill_one()
    assert len(ordeal.written) > KILLS // 5, "or nothing was shown"  # a busy machine starts slowly
    assert len(ordeal.edited) > KILLS
    ordeal.check()


def test_an_editor_and_agents_at_the_same_time_lose_nothing(own_daemon: DaemonProcess) -> None:
    ordeal = Ordeal(own_daemon, 7)
    with ordeal.load(7):
        until(lambda: len(ordeal.edited) >= 20 and len(ordeal.written) >= 40, "all have written")
    ordeal.check()


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("point", [each for each in POINTS if not each.startswith("inbox")])
def test_kills_at_each_point_lose_nothing(
    own_daemon: DaemonProcess, point: str, number: int
) -> None:
    canvases = Canvases(own_daemon)
    canvases.call("subscribe", from_handle="pm")
    first = canvases.append("Log", "first", from_handle="ada")
    canvases.gets("pm", 1)
    own_daemon.kill()
    own_daemon.launch("--port", "0", faults=f"{point}@{number}=kill")
    if own_daemon.wait_ready():
        for text in ("second", "third"):
            with suppress(ClientError, OSError, ValueError):
                own_daemon.call(
                    "canvas_append_to_section",
                    name="plan",
                    section="Log",
                    text=text,
                    from_handle="ada",
                )
        with suppress(ClientError, OSError, ValueError):
            own_daemon.call("canvas_open", name="other", file="other.md")
    own_daemon.kill()
    own_daemon.start()
    canvases.append("Log", "last", from_handle="ada")
    lines = canvases.text("Log").split("\n")
    assert lines[:2] == ["begun", "first"]
    assert lines[-1] == "last"
    assert Counter(lines).most_common(1)[0][1] == 1
    assert canvases.beside() == []
    history = [each for each in canvases.history(section="Log") if each["op"] == "appended"]
    assert [each["text"] for each in reversed(history)] == lines[1:]
    wanted = {each["rev"] for each in history}
    until(lambda: set(woken(canvases, "pm")) >= wanted, "all are told")
    assert Counter(woken(canvases, "pm")) == Counter(wanted)
    assert first["rev"] in wanted
    own_daemon.call("canvas_open", name="other", file="other.md")
