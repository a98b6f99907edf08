"""Several clients at once on one terminal, at random: what is whose is never confused."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import LiveTerminal

pytestmark = pytest.mark.real

CLIENTS = 4
STEPS = 12


@attrs.define
class Player:
    """One client: it runs, types and gives up, and keeps what it was told."""

    terminal: LiveTerminal
    handle: str
    chance: random.Random
    records: list[dict[str, Any]] = attrs.field(factory=list)
    refusals: list[CommandFailed] = attrs.field(factory=list)
    words: int = 0

    def play(self) -> None:
        steps: list[Callable[[], None]] = [
            self.run,
            self.run,
            self.run_with_too_little_time,
            self.run_and_leave,
            self.type,
            self.type_in_pieces,
            self.interrupt,
        ]
        for _ in range(STEPS):
            try:
                self.chance.choice(steps)()
            except CommandFailed as refusal:
                self.refusals.append(refusal)

    def command(self) -> str:
        self.words += 1
        pause = self.chance.choice(["", "", "sleep 0.02; "])
        return f"echo a-{self.handle}-{self.words}; {pause}echo z-{self.handle}-{self.words}"

    def run(self) -> None:
        self.records.append(self.terminal.run(self.command(), from_handle=self.handle))

    def run_with_too_little_time(self) -> None:
        record = self.terminal.run(self.command(), timeout=0.015, from_handle=self.handle)
        self.records.append(record)

    def run_and_leave(self) -> None:
        pending = self.terminal.start(self.command(), from_handle=self.handle)
        if self.chance.random() < 0.5:
            pending.has_arrived_or_answered()
        pending.hang_up()

    def type(self) -> None:
        self.terminal.keys(f"{self.command()}\r", from_handle=self.handle)

    def type_in_pieces(self) -> None:
        for piece in re.split("(;)", f"{self.command()}\r"):
            self.terminal.keys(piece, from_handle=self.handle)

    def interrupt(self) -> None:
        self.terminal.keys("\x03", from_handle=self.handle)


def check_record(record: dict[str, Any]) -> None:
    """A command that was submitted has its own output, and nobody else's.

    All of it, unless somebody's Ctrl-C ended it, or discarded the end of it with its exit code.
    What others typed meanwhile is echoed by the tty: there it stands behind the word "echo", or
    behind the "^C" that came into the midst of that word.
    """
    [word] = re.findall(r"^echo a-(\S+);.* echo z-\1$", record["cmd"])
    printed = re.findall(r"(?<!echo )(?<!\^C )([az])-(p\d+-\d+)", record["stdout"])
    own = [("a", word), ("z", word)]
    assert [each for each in printed if each not in own] == [], record["stdout"]
    if record["exit"] == 130 or record["end"] == "lost":
        assert printed == own[: len(printed)], record
    elif record["end"] is not None:
        assert (printed, record["exit"]) == (own, 0), record


@pytest.mark.parametrize("seed", range(6))
def test_whatever_clients_do_at_once_every_record_is_of_one_command(
    terminal: LiveTerminal, seed: int
) -> None:
    players = [
        Player(terminal, f"p{number}", random.Random(f"{seed}/{number}"))
        for number in range(CLIENTS)
    ]
    threads = [threading.Thread(target=player.play) for player in players]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    terminal.keys("\x03")
    last = terminal.run("echo the end")
    assert (last["stdout"], last["exit"]) == ("the end\n", 0)
    ledger = terminal.records()
    assert [record["seq"] for record in ledger] == list(range(last["seq"] + 1))
    told = [record for player in players for record in player.records]
    assert told
    for record in told:
        final = ledger[record["seq"]]
        assert (final["cmd"], final["writer"]) == (record["cmd"], record["writer"])
        assert record["end"] is None or record == final
    submitted = {record["seq"] for record in told}
    for record in ledger[:-1]:
        if record["seq"] in submitted:
            check_record(record)
    codes = {refusal.code for player in players for refusal in player.refusals}
    assert codes <= {"busy", "unavailable"}
