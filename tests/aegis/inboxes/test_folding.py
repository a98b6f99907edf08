"""Wakes that nobody reads fold into one message per terminal, and nothing is lost by it.

The last test holds random runs against a model that never folds: a list of all that came, and the
place up to which it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.errors import Unavailable
from aegis.inboxes import state as state_module
from aegis.inboxes.rules import message_line, message_of, read_line
from aegis.inboxes.state import Arriving, InboxState, Unread
from aegis.protocol.inboxes import Deliver, Message
from aegis.protocol.wakes import parse_wake_id, wake_id

FOLDED = re.compile(
    r"older messages of this terminal are folded into this one, up to seq (\d+)\n"
    r'read them: aegis_term_read\(name="([a-z]+)", since_seq=(-?\d+)\)'
)


NONE = Arriving()


def wake(seq: int, terminal: str = "build", life: str = "5f3a", body: str = "$ make") -> Deliver:
    return Deliver(
        handle="pm",
        id=wake_id(terminal, life, seq, "pm"),
        sender=f"term:{terminal}",
        body=body,
        timestamp=f"2026-05-22T14:03:{seq % 60:02}.120Z",
    )


def note(number: int, body: str = "hello") -> Deliver:
    return Deliver(
        handle="pm",
        id=f"handoff:{number}",
        sender="agent:alice",
        body=body,
        timestamp="2026-05-22T14:03:25.120Z",
    )


def filled(*deliveries: Deliver) -> InboxState:
    state = InboxState()
    for at, delivery in enumerate(deliveries):
        add(state, delivery, at)
    return state


def add(state: InboxState, delivery: Deliver, at: int) -> None:
    state.add(delivery.id, len(delivery.body), at=at, size=1)


def shown(state: InboxState) -> list[str]:
    """What a reader sees, short: ``build 3`` for a wake, ``build (0, 3]`` for a fold."""
    return [_shown(message) for message in state.unread(100_000)]


def _shown(unread: Unread) -> str:
    about = parse_wake_id(unread.id)
    if about is None:
        return unread.id
    folded = folded_in(unread)
    if folded is None:
        return f"{about.terminal} {about.seq}"
    assert folded[2] == about.terminal
    return f"{about.terminal} ({folded[3]}, {folded[1]}]"


def folded_in(unread: Unread) -> re.Match[str] | None:
    """What the body says in the place of that of the message itself."""
    if unread.fold is None:
        return None
    folded = FOLDED.fullmatch(unread.fold.body())
    assert folded is not None
    assert unread.chars == len(unread.fold.body())
    return folded


@pytest.fixture
def two_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only two wakes are kept one by one."""
    monkeypatch.setattr(state_module, "MAX_WAKES", 2)


def test_a_thousand_wakes_are_kept_one_by_one_and_older_ones_fold() -> None:
    state = filled(*(wake(seq) for seq in range(1000)))
    assert [message.fold for message in state.unread(1)] == [None]
    for seq in range(1000, 5000):
        add(state, wake(seq), seq)
    assert len(state) == 1001
    assert shown(state)[:2] == ["build (-1, 3999]", "build 4000"]


@pytest.mark.usefixtures("two_wakes")
def test_a_fold_says_which_wakes_it_holds_and_how_to_read_them() -> None:
    state = filled(*(wake(seq) for seq in range(7, 12)))
    (unread,) = state.unread(1)
    assert unread.shown(message_of(wake(9))) == Message(
        id="term:build/5f3a/9/pm",
        sender="term:build",
        body=(
            "older messages of this terminal are folded into this one, up to seq 9\n"
            'read them: aegis_term_read(name="build", since_seq=6)'
        ),
        text=(
            "> from term:build · 2026-05-22T14:03:09Z\n"
            "older messages of this terminal are folded into this one, up to seq 9\n"
            'read them: aegis_term_read(name="build", since_seq=6)'
        ),
        timestamp="2026-05-22T14:03:09.120Z",
    )


@pytest.mark.usefixtures("two_wakes")
def test_each_terminal_and_each_life_of_a_name_has_a_fold_of_its_own() -> None:
    lives = [wake(0, "build", "one"), wake(1, "test", "one"), wake(0, "build", "two")]
    state = filled(*lives, wake(8, "last"), wake(9, "last"))
    assert shown(state) == ["build (-1, 0]", "test (0, 1]", "build (-1, 0]", "last 8", "last 9"]


@pytest.mark.usefixtures("two_wakes")
def test_other_messages_keep_their_place_and_never_fold() -> None:
    state = filled(note(1), wake(1), note(2), wake(2), note(3), wake(3), wake(4), note(4))
    assert shown(state) == [
        "handoff:1", "handoff:2", "build (0, 2]", "handoff:3", "build 3", "build 4", "handoff:4",
    ]  # fmt: skip


@pytest.mark.usefixtures("two_wakes")
def test_to_acknowledge_a_fold_is_to_acknowledge_all_of_it() -> None:
    state = filled(note(1), *(wake(seq) for seq in range(5)))
    state.acknowledge(wake(2).id)
    assert shown(state) == ["build 3", "build 4"]
    assert state.check_cursor(wake(2).id) is False


@pytest.mark.usefixtures("two_wakes")
def test_a_wake_that_folded_after_it_was_shown_is_acknowledged_exactly() -> None:
    state = filled(note(1), wake(1), note(2), wake(2), wake(3), wake(4), wake(5))
    assert shown(state) == ["handoff:1", "handoff:2", "build (0, 3]", "build 4", "build 5"]
    assert state.check_cursor(wake(1).id) is True
    state.acknowledge(wake(1).id)
    assert shown(state) == ["handoff:2", "build (1, 3]", "build 4", "build 5"]
    assert state.check_cursor(wake(1).id) is False
    assert state.check_cursor(wake(2).id) is True


@pytest.mark.usefixtures("two_wakes")
def test_a_message_between_is_acknowledged_without_the_fold_that_goes_on_behind_it() -> None:
    state = filled(wake(1), note(1), wake(2), wake(3), wake(4))
    state.acknowledge(note(1).id)
    assert shown(state) == ["build (0, 2]", "build 3", "build 4"]


@pytest.mark.usefixtures("two_wakes")
def test_a_wake_that_was_sent_again_after_later_ones_is_not_acknowledged_with_them() -> None:
    state = filled(wake(5), wake(6), wake(4), wake(7), wake(8))
    assert shown(state) == ["build (3, 6]", "build 7", "build 8"]
    state.acknowledge(wake(5).id)
    assert shown(state) == ["build (3, 6]", "build 7", "build 8"], "4 came after 5 and is not read"
    state.acknowledge(wake(4).id)
    assert shown(state) == ["build 7", "build 8"]


@pytest.mark.usefixtures("two_wakes")
def test_a_late_wake_that_folds_alone_is_not_acknowledged_by_the_id_of_a_later_record() -> None:
    state = filled(wake(5))
    state.acknowledge(wake(5).id)
    for at, seq in enumerate((4, 6, 7), start=1):
        add(state, wake(seq), at)
    state.acknowledge(wake(5).id)
    assert shown(state) == ["build (3, 4]", "build 6", "build 7"]


@pytest.mark.usefixtures("two_wakes")
def test_a_full_inbox_takes_a_wake_that_makes_others_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "MAX_UNREAD", 4)
    state = filled(wake(1), note(1), note(2), wake(2))
    with pytest.raises(Unavailable):  # the first fold of a terminal takes the place of one wake
        state.check_room("pm", wake(3), NONE)
    state = filled(wake(0), wake(1), note(1), wake(2), wake(3))
    assert shown(state) == ["build (-1, 1]", "handoff:1", "build 2", "build 3"]
    with pytest.raises(Unavailable):
        state.check_room("pm", note(2), NONE)
    state.check_room("pm", wake(4), NONE)
    add(state, wake(4), 5)
    assert len(state) == 4


@pytest.mark.usefixtures("two_wakes")
def test_room_for_text_is_counted_with_what_folding_frees(monkeypatch: pytest.MonkeyPatch) -> None:
    state = filled(*(wake(seq, body="x" * 500) for seq in range(4)))
    monkeypatch.setattr(state_module, "MAX_UNREAD_CHARS", 1000)
    with pytest.raises(Unavailable):
        state.check_room("pm", note(1), NONE)
    for seq in range(4, 40):
        state.check_room("pm", wake(seq), NONE)
        add(state, wake(seq, body="x" * 500), seq)
    assert shown(state) == ["build (-1, 37]", "build 38", "build 39"]
    state.acknowledge(wake(39).id)
    monkeypatch.setattr(state_module, "MAX_UNREAD_CHARS", 1)
    state.check_room("pm", note(1), NONE)


@pytest.mark.usefixtures("two_wakes")
def test_wakes_that_wait_for_their_sync_take_the_room_that_their_folds_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_module, "MAX_UNREAD", 5)
    state = filled(wake(0), wake(1), wake(2), wake(3), note(1))
    assert shown(state) == ["build (-1, 1]", "build 2", "build 3", "handoff:1"]
    arriving = Arriving()
    for seq in (4, 5, 6):
        state.check_room("pm", wake(seq), arriving)
        arriving = Arriving(messages=arriving.messages + 1, wakes=arriving.wakes + 1)
    with pytest.raises(Unavailable):
        state.check_room("pm", note(2), attrs.evolve(arriving, messages=arriving.messages + 1))
    for at, seq in enumerate((4, 5, 6), start=5):
        add(state, wake(seq), at)
    assert len(state) == 4


@pytest.mark.usefixtures("two_wakes")
def test_unread_ids_stay_known_however_many_came_since(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "MAX_KNOWN_IDS", 3)
    state = filled(note(1), wake(0, "test"), *(wake(seq) for seq in range(50)))
    assert shown(state) == ["handoff:1", "test (-1, 0]", "build (-1, 47]", "build 48", "build 49"]
    assert state.knows(note(1).id)
    assert state.knows(wake(0, "test").id)
    assert state.check_cursor(wake(0, "test").id) is True


# Random runs.

TERMINALS = ("build", "test", "lint")


@attrs.define
class Model:
    """All that ever came, with the place up to which it is read; and what the reader was told."""

    came: list[str] = attrs.field(factory=list)
    seqs: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(TERMINALS, -1))
    notes_seen: list[str] = attrs.field(factory=list)
    told: set[tuple[str, int]] = attrs.field(factory=set)

    def unread_notes(self, after: str | None) -> list[str]:
        start = 0 if after is None else self.came.index(after) + 1
        return [each for each in self.came[start:] if each.startswith("handoff")]

    def read(self, message: Unread) -> None:
        """The reader sees a message."""
        about = parse_wake_id(message.id)
        if about is None:
            self.notes_seen.append(message.id)
            return
        folded = folded_in(message)
        since, last = (about.seq - 1, about.seq) if folded is None else (folded[3], folded[1])
        self.told |= {(about.terminal, seq) for seq in range(int(since) + 1, int(last) + 1)}


STEP = st.one_of(
    st.tuples(st.just("wake"), st.sampled_from(TERMINALS), st.integers(1, 3)),
    st.tuples(st.just("again"), st.sampled_from(TERMINALS), st.integers(1, 3)),
    st.tuples(st.just("note"), st.just(""), st.just(1)),
    st.tuples(st.just("read"), st.just(""), st.integers(1, 3)),
    st.tuples(st.just("read one"), st.just(""), st.just(1)),
    st.tuples(st.just("old cursor"), st.just(""), st.integers(1, 5)),
)


class Run:
    """One inbox, its ledger as a list of lines, and its reader."""

    def __init__(self) -> None:
        self.model = Model()
        self.state = InboxState()
        self.lines: list[dict[str, object]] = []
        self.cursor: str | None = None
        self.cursors: list[str] = []
        self.skipped: list[Deliver] = []

    def take(self, step: tuple[str, str, int]) -> None:
        kind, terminal, number = step
        if kind == "wake":
            self.model.seqs[terminal] += number  # those between were the reader's own commands
            self.deliver(wake(self.model.seqs[terminal], terminal))
        elif kind == "again":
            self.deliver_late(terminal, number)
        elif kind == "note":
            self.deliver(note(len(self.lines)))
        elif kind == "old cursor" and self.cursors:
            self.acknowledge(self.cursors[-number:][0])
        elif kind.startswith("read"):
            self.read(number)

    def deliver_late(self, terminal: str, number: int) -> None:
        """A wake that did not arrive when it was sent, but after the one behind it."""
        self.model.seqs[terminal] += number + 1
        seq = self.model.seqs[terminal]
        self.deliver(wake(seq, terminal))
        self.deliver(wake(seq - number, terminal))

    def deliver(self, delivery: Deliver) -> None:
        self.model.came.append(delivery.id)
        before = len(self.state)
        self.apply(message_line(message_of(delivery)))
        assert len(self.state) <= before + 1, "the unread messages became more by folding"

    def read(self, limit: int) -> None:
        """Acknowledge what was read before, and read on."""
        if self.cursor is not None:
            self.acknowledge(self.cursor)
        messages = self.state.unread(limit)
        if self.cursor is not None and limit == 1:
            expected = self.model.unread_notes(self.cursor)
            first = next((m.id for m in messages if m.id.startswith("handoff")), None)
            assert first in (None, *expected[:1]), "a note was left out or came again"
        for message in messages:
            self.model.read(message)
        if messages:
            self.cursor = messages[-1].id
            self.cursors.append(self.cursor)

    def acknowledge(self, up_to: str) -> None:
        if self.state.check_cursor(up_to):
            self.apply(read_line(up_to, needed_from=self.state.needed_from(up_to)))
            assert self.state.check_cursor(up_to) is False, "acknowledged, and yet it is not"

    def apply(self, line: dict[str, object]) -> None:
        self.state.apply(line, len(self.lines), 1)
        self.lines.append(line)

    def read_to_the_end(self) -> None:
        for _ in range(len(self.lines) + 2):
            self.read(1)
        assert len(self.state) == 0


def replayed(lines: list[dict[str, object]], start: int) -> InboxState:
    state = InboxState()
    for at in range(start, len(lines)):
        state.apply(lines[at], at, 1)
    return state


def needed(lines: list[dict[str, object]]) -> int:
    """Where the last line that says what was read tells to begin."""
    reads = [line for line in lines if line["kind"] == "read"]
    start = reads[-1]["from"] if reads else 0
    assert isinstance(start, int)
    return start


def wakes_of(ids: Iterable[str]) -> set[tuple[str, int]]:
    found = [about for each in ids if (about := parse_wake_id(each)) is not None]
    return {(about.terminal, about.seq) for about in found}


@settings(max_examples=300, deadline=None)
@given(steps=st.lists(STEP, max_size=60), most=st.integers(1, 4))
def test_a_reader_sees_each_message_once_in_order_and_is_told_of_every_wake(
    steps: list[tuple[str, str, int]], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_module, "MAX_WAKES", most)
        run = Run()
        for step in steps:
            run.take(step)
            singles = [each for each in shown(run.state) if re.fullmatch(r"[a-z]+ \d+", each)]
            assert len(singles) <= most
            assert shown(replayed(run.lines, 0)) == shown(run.state)
            assert shown(replayed(run.lines, needed(run.lines))) == shown(run.state)
        run.read_to_the_end()
        notes = [each for each in run.model.came if each.startswith("handoff")]
        assert sorted(set(run.model.notes_seen)) == sorted(notes)
        assert wakes_of(run.model.came) <= run.model.told


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(steps=st.lists(STEP, max_size=60), most=st.integers(1, 4))
def test_who_acknowledges_each_message_sees_every_other_message_exactly_once(
    steps: list[tuple[str, str, int]], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_module, "MAX_WAKES", most)
        run = Run()
        for kind, terminal, number in steps:
            if kind == "read one" or not kind.startswith(("read", "old")):
                run.take((kind, terminal, number))
        if run.cursor is not None:
            run.acknowledge(run.cursor)
        seen = len(run.model.notes_seen)
        run.read_to_the_end()
        notes = [each for each in run.model.came if each.startswith("handoff")]
        assert run.model.notes_seen == notes
        assert seen <= len(notes)
        assert wakes_of(run.model.came) <= run.model.told
