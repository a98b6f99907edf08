"""Random events against a small model: exactly one answer acts, and none after a withdrawal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from aegis.protocol.requests import RequestOpened
from aegis.requests.events import OwnerDown
from tests.aegis.requests.machine import Machine, permission

KEYS = ("k1", "k2", "k3", "w1")
DECISIONS = st.sampled_from(["allow", "deny", "cancel"])


class Histories(RuleBasedStateMachine):
    """Owners, answerers, a disk and a daemon in any order; ``k*`` are of a session, ``w1`` not."""

    def __init__(self) -> None:
        super().__init__()
        self.life = 1
        self.machine = Machine("life1")
        self.known: dict[str, RequestOpened] = {}
        self.applied: dict[str, list[Any]] = {}
        self.over: set[str] = set()
        """Requests that the desk knows to be withdrawn."""
        self.dead: set[str] = set()
        """Requests that no later daemon may let act."""
        self.in_flight: set[str] = set()
        self.verdicts: dict[str, bool] = {}
        """The owners' replies to answers: an owner that gets an answer again repeats its reply."""

    def look(self) -> None:
        """Take what the rules did since the last look."""
        for each in self.machine.applied:
            assert each.id not in self.over | self.dead, "it acts after it was withdrawn"
            self.applied.setdefault(each.id, []).append((each.answer, each.by))
            self.in_flight.add(each.id)
        self.machine.applied.clear()
        for found in self.machine.returned.values():
            if isinstance(found, RequestOpened) and found.id not in self.known:
                self.known[found.id] = found

    @rule(key=st.sampled_from(KEYS))
    def open(self, key: str) -> None:
        where: dict[str, Any] = {} if key != "w1" else {"session": None, "workflow": "w"}
        self.machine.open(permission(key, **where))
        self.look()

    @precondition(lambda self: self.known)
    @rule(data=st.data(), decision=DECISIONS, is_seen=st.booleans())
    def answer(self, data: st.DataObject, decision: str, is_seen: bool) -> None:
        to = self.known[data.draw(st.sampled_from(sorted(self.known)))]
        record = self.machine.rules.find(to.id)
        fields: Any = {} if is_seen else {"digest": "0" * 64}
        caller = self.machine.answer(to, decision, **fields)
        if not is_seen and record is not None and record.phase == "open":
            assert self.machine.outcome(caller) == "InvalidRequest"
        self.look()

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), acts=st.booleans())
    def deliver(self, data: st.DataObject, acts: bool) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.in_flight)))
        self.in_flight.discard(request_id)
        acts = self.verdicts.setdefault(request_id, acts)
        self.machine.deliver(self.known[request_id], applied=acts)
        self.note_withdrawn()

    @rule(key=st.sampled_from(KEYS))
    def withdraw(self, key: str) -> None:
        where: dict[str, Any] = {} if key != "w1" else {"session": None, "workflow": "w"}
        self.machine.withdraw(keys=[key], **where)
        self.note_withdrawn()

    @rule()
    def owner_down(self) -> None:
        self.machine.handle(OwnerDown(owner="root/sessions/ann"))
        self.note_withdrawn()

    def note_withdrawn(self) -> None:
        self.over |= {each.id for each in self.machine.rules.kept if each.phase == "withdrawn"}
        self.look()

    @rule(count=st.integers(1, 5))
    def sync(self, count: int) -> None:
        self.machine.sync(count)
        self.look()

    @rule()
    def refuse(self) -> None:
        self.machine.refuse()
        self.look()

    @rule(is_daemon=st.booleans())
    def crash(self, is_daemon: bool) -> None:
        if is_daemon:
            self.life += 1
            self.dead |= self.applied.keys()
            self.dead |= {each.id for each in self.machine.rules.kept if each.session}
        # What was sent to an owner is sent again, if its reply is not in the ledger.
        self.in_flight.clear()
        self.machine, before = Machine(f"life{self.life}", self.machine.durable), self.machine
        self.machine.ids = before.ids
        self.over.clear()  # a withdrawal that was not synced is forgotten, but not by its owner
        lost = self.known.keys() - {each.id for each in self.machine.rules.shown()}
        assert not lost, "a request that its owner knows is not in the ledger"
        self.note_withdrawn()

    @invariant()
    def one_answer_wins(self) -> None:
        for sent in self.applied.values():
            assert len({repr(each) for each in sent}) == 1, "two answers act"

    @invariant()
    def what_acted_is_not_open(self) -> None:
        for request_id, acted in self.verdicts.items():
            found = self.machine.rules.find(request_id)
            assert found is not None
            assert not acted or found.phase != "open", "what has acted can be answered again"

    @invariant()
    def every_caller_of_a_settled_request_is_answered(self) -> None:
        if not self.machine.written and not self.in_flight:
            waiting = set(range(1, self.machine.callers + 1)) - self.machine.returned.keys()
            assert not waiting, "a caller waits for nothing"


@pytest.mark.long
def test_one_answer_acts_and_none_after_a_withdrawal() -> None:
    run_state_machine_as_test(
        Histories, settings=settings(max_examples=400, stateful_step_count=40, deadline=None)
    )
