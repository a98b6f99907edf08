"""What an inbox knows when it is opened again: all that is unread, and the ids of the newest."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from aegis.inboxes import loading
from aegis.inboxes import state as state_module
from aegis.inboxes.loading import Loaded, load_state, newest_messages
from aegis.inboxes.rules import message_line, message_of, read_line
from aegis.inboxes.state import MAX_KNOWN_IDS, Fold, InboxState
from aegis.journal.disk import OsDisk
from aegis.journal.ledger import encode_line
from aegis.protocol.inboxes import Deliver, Message
from aegis.protocol.wakes import wake_id


def delivery(message_id: str) -> Deliver:
    return Deliver(
        handle="pm",
        id=message_id,
        sender=message_id.split("/")[0],
        body=f"body of {message_id}",
        timestamp="2026-05-22T14:03:25.120Z",
    )


class Ledger:
    """A ledger as an inbox writes it, and the state that the inbox has in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = InboxState()
        self.size = 0

    def deliver(self, *message_ids: str) -> None:
        for message_id in message_ids:
            self._append(message_line(message_of(delivery(message_id))))

    def acknowledge(self, up_to: str) -> None:
        assert self.state.check_cursor(up_to)
        self._append(read_line(up_to, needed_from=self.state.needed_from(up_to)))

    def append_raw(self, line: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(line)
        self.size += len(line)

    def _append(self, fields: dict[str, object]) -> None:
        at = self.size
        self.append_raw(encode_line(fields))
        self.state.apply(fields, at, self.size - at)

    def load(self) -> Loaded:
        return load_state(OsDisk(), self.path, self.size)

    def loaded(self) -> InboxState:
        return self.load().state


def listed(state: InboxState, limit: int = 20_000) -> list[tuple[str, int, int, Fold | None]]:
    """What is unread, without the numbers, which count one life of an inbox."""
    return [(each.id, each.at, each.size, each.fold) for each in state.unread(limit)]


def wakes(terminal: str, first: int, last: int) -> list[str]:
    return [wake_id(terminal, "5f3a", seq, "pm") for seq in range(first, last + 1)]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "pm.jsonl")


@pytest.fixture
def few_known_ids(monkeypatch: pytest.MonkeyPatch) -> int:
    for module in (state_module, loading):
        monkeypatch.setattr(module, "MAX_KNOWN_IDS", 5)
    return 5


def test_an_empty_ledger_holds_nothing(ledger: Ledger) -> None:
    ledger.append_raw(b"")
    assert len(ledger.loaded()) == 0


@pytest.mark.usefixtures("few_known_ids")
def test_a_message_that_waits_behind_any_number_of_wakes_is_still_unread(ledger: Ledger) -> None:
    ledger.deliver("first", *wakes("build", 0, 3_000))
    loaded = ledger.loaded()
    assert [message.id for message in loaded.unread(2)] == ["first", *wakes("build", 2_000, 2_000)]
    assert listed(loaded) == listed(ledger.state)


@pytest.mark.usefixtures("few_known_ids")
def test_a_fold_that_began_before_what_was_read_keeps_its_beginning(ledger: Ledger) -> None:
    ledger.deliver(*wakes("build", 0, 0), "between", *wakes("build", 1, 1_500))
    ledger.acknowledge("between")
    ledger.deliver(*wakes("build", 1_501, 1_600))
    loaded = ledger.loaded()
    fold = loaded.unread(1)[0].fold
    assert fold is not None
    assert "since_seq=-1" in fold.body()
    assert listed(loaded) == listed(ledger.state)


def test_what_was_read_long_ago_is_not_read_again(
    ledger: Ledger, few_known_ids: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.deliver(*(f"m{number}" for number in range(50)))
    ledger.acknowledge("m49")
    ledger.deliver("new")
    taken: list[int] = []
    real = InboxState.remember

    def remember(state: InboxState, message_id: str, at: int) -> None:
        taken.append(at)
        real(state, message_id, at)

    monkeypatch.setattr(InboxState, "remember", remember)
    assert [message.id for message in ledger.loaded().unread(10)] == ["new"]
    assert len(taken) == few_known_ids


def test_the_newest_ids_are_known_again_and_no_older_ones(
    ledger: Ledger, few_known_ids: int
) -> None:
    ledger.deliver(*(f"m{number}" for number in range(20)))
    ledger.acknowledge("m19")
    known = [number for number in range(20) if ledger.loaded().knows(f"m{number}")]
    assert known == list(range(20 - few_known_ids, 20))


@pytest.mark.long
@pytest.mark.one_python
def test_a_hundred_thousand_ids_are_known_after_a_restart(ledger: Ledger) -> None:
    lines = [encode_line(message_line(message_of(delivery(f"m{n}")))) for n in range(100_001)]
    ledger.append_raw(b"".join(lines))
    ledger.append_raw(encode_line(read_line("m100000", needed_from=ledger.size - len(lines[-1]))))
    loaded = ledger.loaded()
    assert MAX_KNOWN_IDS == 100_000
    assert len(loaded) == 0
    assert not loaded.knows("m0")
    assert all(loaded.knows(f"m{number}") for number in range(1, 100_001))


def test_an_id_is_known_before_a_restart_and_after_it_alike(
    ledger: Ledger, few_known_ids: int
) -> None:
    for number in range(30):
        ledger.deliver(f"m{number}")
        if number % 3 == 0:
            ledger.acknowledge(f"m{number}")
        loaded = ledger.loaded()
        for each in range(number + 1):
            if ledger.state.knows(f"m{each}"):
                assert loaded.knows(f"m{each}"), "its sender may send it again"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.usefixtures("few_known_ids")
def test_a_loaded_inbox_shows_what_it_showed(
    ledger: Ledger, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "MAX_WAKES", 4)
    chance = random.Random(seed)
    seqs = {"build": 0, "test": 0}
    cursors: list[str] = []
    for number in range(400):
        terminal = chance.choice(["build", "build", "test", ""])
        if terminal:
            seqs[terminal] += 1
            ledger.deliver(*wakes(terminal, seqs[terminal], seqs[terminal]))
        else:
            ledger.deliver(f"m{number}")
        if chance.random() < 0.2:
            cursors += [message.id for message in ledger.state.unread(chance.randint(1, 3))]
        usable = [each for each in cursors if ledger.state.knows(each)][-5:]
        if usable and chance.random() < 0.15:
            cursor = chance.choice(usable)
            if ledger.state.check_cursor(cursor):
                ledger.acknowledge(cursor)
        if number % 10 == 0:
            assert listed(ledger.loaded()) == listed(ledger.state)


@pytest.mark.parametrize("start", [3, -1, 10**9, "0", None])
def test_a_line_that_tells_a_wrong_place_costs_time_and_no_message(
    ledger: Ledger, start: object
) -> None:
    ledger.deliver("a", "b", "c")
    ledger.append_raw(encode_line({"kind": "read", "up_to": "a", "from": start}))
    assert [message.id for message in ledger.loaded().unread(10)] == ["b", "c"]


def test_a_damaged_line_is_passed_over(ledger: Ledger) -> None:
    ledger.deliver("a", "b")
    ledger.append_raw(b'{"kind":"read","up_to":"b","from":0,"crc":"00000000"}\n')
    ledger.append_raw(b'{"kind":"message","id":"x"}\n')
    ledger.deliver("c")
    assert [message.id for message in ledger.loaded().unread(10)] == ["a", "b", "c"]
    assert [message.id for message in newest(ledger, 2)] == ["b", "c"]
    assert (len(ledger.load().damaged), ledger.load().damaged_count) == (2, 2)


def newest(ledger: Ledger, limit: int) -> list[Message]:
    return newest_messages(OsDisk(), ledger.path, ledger.size, limit)


def test_the_newest_messages_are_single_ones_however_many_folded(ledger: Ledger) -> None:
    ledger.deliver(*wakes("build", 0, 2_500))
    ledger.acknowledge(wakes("build", 2_500, 2_500)[0])
    shown = newest(ledger, 1_000)
    assert [message.id for message in shown] == wakes("build", 1_501, 2_500)
    assert shown[0].body == f"body of {shown[0].id}"


def test_the_newest_messages_take_a_bounded_part_of_the_ledger(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.deliver("a", "b", "c")
    monkeypatch.setattr(loading, "MAX_SHOWN_BYTES", ledger.size // 2)
    assert [message.id for message in newest(ledger, 10)] == ["c"]
    monkeypatch.setattr(loading, "MAX_SHOWN_BYTES", 1)
    assert [message.id for message in newest(ledger, 10)] == ["c"], "one is always shown"


def test_a_message_of_an_earlier_ledger_with_its_rendered_text_is_read(ledger: Ledger) -> None:
    message = message_of(delivery("old"))
    ledger.append_raw(encode_line(message_line(message) | {"text": message.text}))
    assert [each.id for each in ledger.loaded().unread(1)] == ["old"]
    assert newest(ledger, 1) == [message]
