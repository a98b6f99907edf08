"""Requests as a state machine: one answer wins, and nothing acts after it was withdrawn."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.errors import Forbidden, InvalidRequest, StorageError, Unavailable
from aegis.protocol.agent_events import PermissionAnswer
from aegis.protocol.requests import Answerer, RequestOpened, RequestReply, WithdrawnRequests
from aegis.requests.events import OwnerDown, Renaming
from aegis.requests.kept import MAX_CLOSED
from aegis.requests.rules import MAX_OPEN, MAX_OPEN_OF_ONE
from tests.aegis.requests.machine import Machine, permission

BOB = Answerer(handle="bob", session="s-bob", answers_requests=True)


def test_a_request_is_shown_once_it_is_synced() -> None:
    machine = Machine()
    caller = machine.open(permission())
    assert (machine.returned, machine.changed, list(machine.rules.shown())) == ({}, [], [])
    machine.sync()
    found = machine.returned[caller]
    assert machine.changed == [found.id]
    assert found == RequestOpened(id=found.id, digest=found.digest, state="open")
    assert machine.rules.kept[found.id].info().input == {"command": "rm k1"}


def test_an_answer_acts_once_it_is_synced_and_its_caller_hears_of_it_when_it_acted() -> None:
    machine = Machine()
    request = machine.opened()
    caller = machine.answer(request)
    assert machine.applied == []
    machine.sync()
    assert [each.answer for each in machine.applied] == [PermissionAnswer(kind="allow_once")]
    assert (machine.applied[0].key, machine.applied[0].by) == ("k1", "human")
    assert machine.outcome(caller) is None
    machine.deliver(request)
    assert machine.outcome(caller) is None
    machine.sync()
    assert machine.outcome(caller) == "applied"
    assert [each["kind"] for each in machine.durable] == ["opened", "answered", "applied"]


def test_a_second_answer_hears_who_answered_and_when() -> None:
    machine = Machine()
    request = machine.opened()
    machine.answer(request)
    while_unsynced = machine.answer(request, "deny")
    machine.sync()
    while_unapplied = machine.answer(request, "deny", by=BOB)
    machine.deliver(request)
    machine.sync()
    after = machine.answer(request, "deny")
    for each in (while_unsynced, while_unapplied, after):
        reply = machine.returned[each]
        assert (reply.outcome, reply.by) == ("already_answered", "human")
        assert reply.at == "2026-05-22T14:03:25.000Z"
        assert reply.text.endswith("answered by human at 2026-05-22T14:03:25.000Z: allow once")
    assert len(machine.applied) == 1


def test_an_unknown_request_is_said_to_be_unknown() -> None:
    machine = Machine()
    unknown = RequestOpened(id="f" * 12, digest="0" * 64, state="open")
    assert machine.outcome(machine.answer(unknown)) == "unknown"


def test_a_request_that_is_not_synced_yet_is_unknown() -> None:
    machine = Machine()
    machine.open(permission())
    (record,) = machine.rules.kept
    early = RequestOpened(id=record.id, digest=record.digest, state="open")
    assert machine.outcome(machine.answer(early)) == "unknown"
    machine.sync()
    assert machine.state(early) == "open"


def test_an_answer_to_something_else_is_refused_and_changes_nothing() -> None:
    machine = Machine()
    request = machine.opened()
    caller = machine.answer(request, digest="0" * 64)
    error = machine.returned[caller]
    assert isinstance(error, InvalidRequest)
    assert "a permission of 'ann' for tool 'Bash': look at it again" in str(error)
    assert machine.state(request) == "open"
    assert machine.written == []


@pytest.mark.parametrize(
    "change",
    [
        {"input": {"command": "rm  k1"}},
        {"input": {"command": "rm k1", "timeout": None}},
        {"tool": "bash"},
        {"tool_kind": "other"},
        {"kind": "elicitation"},
        {"options": []},
    ],
)
def test_the_digest_covers_input_tool_kind_and_options(change: dict[str, Any]) -> None:
    assert Machine().opened().digest != Machine().opened(permission(**change)).digest


def test_the_digest_is_that_of_the_content_not_of_the_order_of_keys_or_the_title() -> None:
    one = permission(input={"a": 1, "b": {"c": 2, "d": 3}})
    two = permission(input={"b": {"d": 3, "c": 2}, "a": 1}, title="Other", reason="Other")
    assert Machine().opened(one).digest == Machine().opened(two).digest


# Withdrawing.


def test_nothing_acts_after_it_was_withdrawn() -> None:
    machine = Machine()
    request = machine.opened()
    caller = machine.answer(request)
    machine.withdraw()
    machine.sync()
    late = machine.answer(request)
    assert machine.applied == []
    for each in (caller, late):
        assert machine.returned[each].outcome == "withdrawn"
        assert machine.returned[each].text.endswith("was withdrawn: the turn ended")


def test_withdrawing_is_answered_when_it_is_durable() -> None:
    machine = Machine()
    request = machine.opened()
    caller = machine.withdraw()
    assert machine.state(request) == "withdrawn"
    assert caller not in machine.returned
    machine.sync()
    assert machine.returned[caller] == WithdrawnRequests(ids=[request.id])


def test_of_an_answer_on_its_way_only_the_owner_knows_whether_it_acted() -> None:
    for applied, outcome in ((True, "applied"), (False, "withdrawn")):
        machine = Machine()
        request = machine.opened()
        caller = machine.answer(request)
        machine.sync()
        withdrawing = machine.withdraw(reason="the process ended")
        assert machine.returned[withdrawing].ids == []
        machine.deliver(request, applied=applied, reason="it was withdrawn")
        machine.sync()
        assert machine.outcome(caller) == outcome
    assert machine.returned[caller].text.endswith("the process ended")


@pytest.mark.parametrize(
    ("narrow", "left"),
    [
        ({}, []),
        ({"turn": "t1"}, ["k2"]),
        ({"keys": ["k2"]}, ["k1"]),
        ({"keys": ["k1", "k2"], "turn": "t2"}, ["k1"]),
        ({"ids": []}, ["k1", "k2"]),
        ({"session": "s-bob"}, ["k1", "k2"]),
        ({"session": None, "workflow": "w1"}, ["k1", "k2"]),
        ({"session": None}, ["k1", "k2"]),
    ],
)
def test_only_the_requests_that_fit_are_withdrawn(narrow: dict[str, Any], left: list[str]) -> None:
    machine = Machine()
    for key, turn in (("k1", "t1"), ("k2", "t2")):
        machine.opened(permission(key, turn=turn))
    machine.withdraw(**narrow)
    assert [each.key for each in machine.rules.shown() if each.phase == "open"] == left


def test_a_request_that_is_withdrawn_while_it_is_being_opened_is_never_open() -> None:
    machine = Machine()
    caller = machine.open(permission())
    machine.withdraw()
    machine.sync()
    assert machine.returned[caller].state == "withdrawn"
    assert machine.outcome(machine.answer(machine.returned[caller])) == "withdrawn"


def test_the_requests_of_a_session_end_with_its_actor_and_those_of_others_do_not() -> None:
    machine = Machine()
    request = machine.opened()
    other = machine.opened(permission(owner="root/sessions/bob", session="s-bob"))
    workflow = machine.opened(permission(session=None, workflow="w1"))
    machine.handle(OwnerDown(owner="root/sessions/ann"))
    states = [machine.state(each) for each in (request, other, workflow)]
    assert states == ["withdrawn", "open", "open"]


def test_an_answer_that_its_owner_did_not_apply_is_withdrawn_with_the_reason() -> None:
    machine = Machine()
    request = machine.opened()
    caller = machine.answer(request)
    machine.sync()
    machine.deliver(request, applied=False, reason="the agent\x1b[2J cancelled it")
    assert machine.returned[caller].text.endswith("the agent<U+001B>[2J cancelled it")
    machine.deliver(request, applied=True)
    assert machine.state(request) == "withdrawn"


def test_a_withdrawal_that_the_disk_refused_is_answered_once_it_is_durable() -> None:
    machine = Machine()
    request = machine.opened()
    first = machine.withdraw()
    machine.refuse()
    assert machine.outcome(first) == "StorageError"
    second, third = machine.withdraw(), machine.withdraw()
    assert second not in machine.returned
    machine.sync()
    assert machine.returned[second].ids == machine.returned[third].ids == [request.id]
    fourth = machine.withdraw()
    assert machine.returned[fourth].ids == []


# Rights.


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        (Answerer(handle="ann", session="s-ann", answers_requests=True), "is your own"),
        (Answerer(handle="ANN", answers_requests=True), "is your own"),
        (
            Answerer(handle="kid", session="s1", ancestors=["s-ann"], answers_requests=True),
            "which spawned you, 'kid'",
        ),
        (Answerer(handle="bob", session="s-bob"), "'bob' may not answer requests"),
        (Answerer(handle="bob"), "'bob' may not answer requests"),
    ],
)
def test_no_session_answers_for_itself_or_its_ancestors_or_without_the_right(
    by: Answerer, sentence: str
) -> None:
    machine = Machine()
    request = machine.opened()
    error = machine.returned[machine.answer(request, "deny", by=by)]
    assert isinstance(error, Forbidden)
    assert sentence in str(error)
    assert machine.state(request) == "open"


def test_a_session_with_the_right_answers_for_a_child_and_for_others() -> None:
    machine = Machine()
    request = machine.opened()
    machine.answer(request, by=BOB)
    machine.sync()
    assert machine.applied[0].by == "agent:bob"


def test_what_needs_a_person_is_allowed_by_the_operator_only() -> None:
    machine = Machine()
    request = machine.opened(permission(needs_person=True))
    error = machine.returned[machine.answer(request, "allow", by=BOB)]
    assert isinstance(error, Forbidden)
    assert "only be allowed by a person" in str(error)
    machine.answer(request)
    machine.sync()
    assert len(machine.applied) == 1


# Opening.


def test_opening_the_same_key_again_returns_the_same_request() -> None:
    machine = Machine()
    first = machine.open(permission())
    second = machine.open(permission())
    machine.sync()
    third = machine.open(permission())
    assert machine.returned[first] == machine.returned[second] == machine.returned[third]
    assert len(machine.durable) == 1
    machine.withdraw()
    machine.sync()
    assert machine.opened().id != machine.returned[first].id


def test_there_is_a_limit_of_open_requests_of_one_session_and_of_all() -> None:
    machine = Machine()
    for number in range(MAX_OPEN_OF_ONE):
        machine.opened(permission(f"k{number}"))
    error = machine.returned[machine.open(permission("more"))]
    assert isinstance(error, Unavailable)
    assert f"'ann' has {MAX_OPEN_OF_ONE} open requests" in str(error)
    for number in range(MAX_OPEN - MAX_OPEN_OF_ONE):
        machine.opened(permission(f"k{number}", session=f"s{number}"))
    error = machine.returned[machine.open(permission("more", session="s-new"))]
    assert isinstance(error, Unavailable)
    assert f"{MAX_OPEN} requests are open" in str(error)
    machine.withdraw(keys=["k0"])
    machine.sync()
    machine.opened(permission("more"))


def test_the_oldest_closed_requests_are_dropped_and_no_open_one() -> None:
    machine = Machine()
    kept = machine.opened(permission("kept"))
    first = machine.opened(permission("first"))
    machine.withdraw(keys=["first"])
    for number in range(MAX_CLOSED):
        machine.opened(permission(f"k{number}"))
        machine.withdraw(keys=[f"k{number}"])
    machine.sync()
    assert machine.state(first) is None
    assert machine.state(kept) == "open"
    assert len(machine.rules.kept) == MAX_CLOSED + 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"session": None},
        {"workflow": "w1"},
        {"key": "k" * 513},
        {"key": "\ud800"},
    ],
)
def test_a_request_that_is_not_well_formed_is_refused(wrong: dict[str, Any]) -> None:
    machine = Machine()
    caller = machine.open(permission(**({"key": "k"} | wrong)))
    assert isinstance(machine.returned[caller], InvalidRequest)


def test_a_renamed_session_keeps_its_requests() -> None:
    machine = Machine()
    request = machine.opened()
    machine.handle(Renaming(session="s-ann", handle="eve"))
    machine.sync()
    assert machine.rules.kept[request.id].handle == "eve"
    again = Machine("life1", machine.durable)
    assert again.rules.kept[request.id].handle == "eve"
    machine.handle(Renaming(session="s-ann", handle="eve"))
    assert machine.written == []


# The disk.


def test_a_request_that_the_disk_refused_was_never_there() -> None:
    machine = Machine()
    caller = machine.open(permission())
    machine.refuse()
    assert isinstance(machine.returned[caller], StorageError)
    assert list(machine.rules.kept) == []
    assert machine.opened().state == "open"


def test_an_answer_that_the_disk_refused_does_not_act_and_may_be_given_again() -> None:
    machine = Machine()
    request = machine.opened()
    first, second = machine.answer(request), machine.answer(request, "deny")
    machine.refuse()
    assert machine.outcome(first) == machine.outcome(second) == "StorageError"
    assert (machine.applied, machine.state(request)) == ([], "open")
    assert machine.rules.kept[request.id].info().by is None
    machine.answer(request, "deny")
    machine.sync()
    assert machine.applied[0].answer == PermissionAnswer(kind="deny")


def test_what_has_happened_is_written_again_when_the_disk_refused_it() -> None:
    machine = Machine()
    request = machine.opened()
    caller = machine.answer(request)
    machine.sync()
    machine.deliver(request)
    machine.refuse()
    assert machine.outcome(caller) == "applied", "it acted"
    other = machine.opened(permission("k2"))
    assert [each["kind"] for each in machine.durable] == [
        *("opened", "answered", "applied", "opened")
    ]
    machine.withdraw()
    machine.refuse()
    assert machine.outcome(machine.answer(other)) == "withdrawn"
    machine.opened(permission("k3"))
    assert [each["kind"] for each in machine.durable][-2:] == ["withdrawn", "opened"]


def test_a_refused_request_is_not_withdrawn_in_the_ledger() -> None:
    machine = Machine()
    kept = machine.opened(permission("k0"))
    machine.open(permission())
    machine.withdraw()
    machine.refuse()
    machine.opened(permission("k3"))
    assert machine.durable[-2]["ids"] == [kept.id]


# Recovery.


def crash(machine: Machine, life: str) -> Machine:
    """The rules of the next incarnation, which read the durable lines."""
    return Machine(life, machine.durable)


def test_after_a_restart_of_the_daemon_an_answer_without_effect_is_withdrawn() -> None:
    machine = Machine()
    request, workflow = machine.opened(), machine.opened(permission(session=None, workflow="w1"))
    machine.answer(request)
    machine.answer(workflow)
    machine.sync()
    after = crash(machine, "life2")
    assert after.applied == []
    for each in (request, workflow):
        reply = after.returned[after.answer(each)]
        assert isinstance(reply, RequestReply)
        assert reply.text.endswith("the daemon was restarted before the answer was applied")


def test_after_a_restart_of_the_daemon_requests_of_workflows_are_open_those_of_sessions_not() -> (
    None
):
    machine = Machine()
    request, workflow = machine.opened(), machine.opened(permission(session=None, workflow="w1"))
    after = crash(machine, "life2")
    assert (after.state(request), after.state(workflow)) == ("withdrawn", "open")
    after.answer(workflow)
    after.sync()
    assert [each.id for each in after.applied] == [workflow.id]


def test_after_a_crash_of_the_desk_alone_everything_continues() -> None:
    machine = Machine()
    request, answered = machine.opened(), machine.opened(permission("k2"))
    machine.answer(answered)
    machine.sync()
    after = crash(machine, "life1")
    assert (after.state(request), after.state(answered)) == ("open", "answered")
    assert [each.id for each in after.applied] == [answered.id], "its owner gets it again"
    after.deliver(answered)
    after.sync()
    assert crash(after, "life2").applied == []
    assert crash(after, "life2").state(answered) == "answered"


def test_after_a_crash_of_the_desk_an_answer_to_a_question_of_an_earlier_life_is_sent_again() -> (
    None
):
    machine = Machine()
    workflow = machine.opened(permission(session=None, workflow="w1"))
    later = crash(machine, "life2")
    later.answer(workflow)
    later.sync()
    after = crash(later, "life2")
    assert after.state(workflow) == "answered"
    assert [each.id for each in after.applied] == [workflow.id], "its workflow waits for it"


def test_an_answer_of_an_earlier_version_counts_as_given_when_its_request_was_opened() -> None:
    machine = Machine()
    request = machine.opened()
    machine.answer(request)
    machine.sync()
    lines = [{name: each[name] for name in each if name != "life"} for each in machine.durable]
    assert [each.id for each in Machine("life1", lines).applied] == [request.id]
    assert Machine("life2", lines).state(request) == "withdrawn"


def test_lines_of_a_later_version_are_skipped() -> None:
    machine = Machine()
    request = machine.opened()
    strange: list[dict[str, Any]] = [
        {"kind": "opened", "record": {"id": 1}},
        {"kind": "answered", "id": request.id, "answer": {"type": "new"}, "scope": "once"},
        {"kind": "withdrawn", "ids": [None, 3, "ffff"], "reason": "x"},
        {"kind": "expired", "id": request.id},
        {"kind": "applied", "id": request.id},
        {},
    ]
    after = Machine("life1", [*machine.durable, *strange])
    assert [each.id for each in after.rules.shown()] == [request.id]
    assert after.state(request) == "open"
