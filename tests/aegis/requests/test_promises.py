"""What requests promise to owners and answerers, over a simulated disk: each as a short history."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from actors.faults import Crash, Fault, Plan, Raise, armed
from aegis.errors import Forbidden, InvalidRequest, StorageError, Unavailable
from aegis.journal.archive import Keep
from aegis.journal.faults import JOURNAL
from aegis.journal.ledger import decode_line
from aegis.protocol.agent_events import PermissionAnswer
from aegis.protocol.requests import (
    AnswerRequest,
    FollowRequests,
    HumanAnswer,
    ListRequests,
    OpenedRequest,
    RequestReply,
    WithdrawAsked,
    WithdrawRequests,
)
from aegis.requests.faults import REQUESTS
from tests.aegis.requests.office import (
    LEDGER,
    Office,
    an_io_error,
    answer_to,
    of_flow,
    permission,
    play,
)

RECORDINGS = Path(__file__).parents[2] / "recordings"

MAX_OPEN = 256
MAX_OPEN_OF_ONE = 64
MAX_FOLLOWERS = 256


# Opening.


def test_a_request_is_opened_listed_answered_and_applied() -> None:
    async def story(office: Office) -> None:
        assert await office.listed() == []
        assert office.lines() == []
        request = await office.open()
        [listed] = await office.listed(state="open")
        assert request == OpenedRequest(id=listed.id, digest=listed.digest, state="open")
        assert (listed.handle, listed.session, listed.turn) == ("ann", "s-ann", "t1")
        assert (listed.kind, listed.tool, listed.input) == (
            "permission",
            "Bash",
            {"command": "rm k1"},
        )
        assert (listed.excerpt, listed.input_bytes) == ("", len('{"command": "rm k1"}'))
        assert (listed.answer, listed.scope, listed.by, listed.answered) == (None,) * 4
        reply = await office.answer(request)
        assert (reply.outcome, reply.by) == ("applied", "human")
        assert reply.text == f"request {request.id} of 'ann' was answered: allow once"
        [acted] = office.owners.acted
        assert (acted.key, acted.by, acted.scope) == ("k1", "human", "once")
        assert acted.answer == PermissionAnswer(kind="allow_once")
        assert await office.listed(state="open") == []
        [listed] = await office.listed(state="closed")
        assert (listed.state, listed.by, listed.scope) == ("answered", "human", "once")
        assert listed.answer is not None
        assert listed.answer["kind"] == "allow_once"
        assert listed.answered == reply.at
        assert listed.applied is not None
        await office.restart(power_fails=True)
        assert await office.listed() == [listed]

    play(story)


def test_a_request_is_shown_and_can_be_answered_once_it_is_durable() -> None:
    async def story(office: Office) -> None:
        await office.open()
        before = await office.news()
        news = office.news_soon(before)
        opened = office.ask_soon(permission("k2"))
        await office.yields()
        [listed] = await office.listed()
        assert listed.input == {"command": "rm k1"}
        assert (opened.has_come, news.has_come) == (False, False)
        await office.settles()
        assert [each.id for each in news.value.changed] == [opened.value.id]
        await office.restart(power_fails=True)
        assert opened.value.id in [each.id for each in await office.listed()]

    play(story)


def test_a_request_that_is_not_durable_yet_is_unknown() -> None:
    async def story(office: Office) -> None:
        first = await office.open()
        opened = office.ask_soon(permission("k2"))
        await office.yields()
        # The id is not known to anybody before; here it is read from the file.
        early = attrs.evolve(first, id=office.lines()[-1]["id"])
        reply = await office.answer(early)
        assert (reply.outcome, reply.by) == ("unknown", None)
        assert reply.text == f"there is no request {early.id}; aegis_request_list lists them"
        assert await office.listed(id=early.id) == []
        await office.settles()
        assert await office.state(opened.value) == "open"

    play(story)


def test_opening_the_same_key_again_returns_the_same_request() -> None:
    async def story(office: Office) -> None:
        first, second = office.ask_soon(permission()), office.ask_soon(permission())
        await office.settles()
        third = await office.open()
        assert first.value == second.value == third
        assert len(await office.listed()) == 1
        other = await office.open(permission(session="s-bob", owner="root/bob", handle="bob"))
        flow = await office.open(of_flow())
        assert len({third.id, other.id, flow.id}) == 3
        assert third.digest == flow.digest
        await office.answer(third)
        again = await office.open()
        assert (again.id, again.state) == (third.id, "answered")
        await office.withdraw(session="s-bob")
        anew = await office.open(permission(session="s-bob", owner="root/bob", handle="bob"))
        assert (anew.id != other.id, anew.state) == (True, "open")
        await office.restart()
        assert (await office.open(of_flow())).id == flow.id

    play(story)


def test_an_owner_that_does_not_run_opens_nothing() -> None:
    async def story(office: Office) -> None:
        for owner in ("root/nobody", "workflow:w1"):
            refusal = await office.refused(permission(owner=owner))
            assert isinstance(refusal, Unavailable)
            assert f"the owner '{owner}' of a request does not run: open it anew" in str(refusal)
        assert await office.listed() == []
        await office.stop_owner()
        assert isinstance(await office.refused(permission()), Unavailable)

    play(story)


def test_an_owner_may_be_named_in_the_registry() -> None:
    async def story(office: Office) -> None:
        office.system.registry.add("workflow", "w1", office.owner("flow"))
        request = await office.open(of_flow(owner="workflow:w1"))
        await office.answer(request)
        assert [each.id for each in office.owners.acted] == [request.id]
        office.system.registry.add("session", "s", office.owner("bob"))
        own = await office.open(permission(owner="session:s"))
        await office.crash_owner("bob")
        assert await office.state(own) == "withdrawn"

    play(story)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"session": None}, "belongs to a session or to a workflow"),
        ({"workflow": "w1"}, "belongs to a session or to a workflow"),
        ({"key": "k" * 513}, "has at most 512 characters"),
        ({"key": "\ud800"}, "has at most 512 characters"),
    ],
)
def test_a_request_that_is_not_well_formed_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    async def story(office: Office) -> None:
        refusal = await office.refused(permission(**wrong))
        assert isinstance(refusal, InvalidRequest)
        assert sentence in str(refusal)
        assert await office.listed() == []
        assert (await office.open(permission("k" * 512))).state == "open"

    play(story)


async def opened_many(office: Office, count: int, **fields: Any) -> list[OpenedRequest]:
    """Open so many requests at once."""
    answers = [office.ask_soon(permission(f"k{each}", **fields)) for each in range(count)]
    await office.settles()
    return [each.value for each in answers]


def test_there_is_a_limit_of_open_requests_of_one_session_and_of_all() -> None:
    async def story(office: Office) -> None:
        first, *_, last = await opened_many(office, MAX_OPEN_OF_ONE)
        refusal = await office.refused(permission("more"))
        assert isinstance(refusal, Unavailable)
        assert f"'ann' has {MAX_OPEN_OF_ONE} open requests, which is the limit" in str(refusal)
        for number in range(1, MAX_OPEN // MAX_OPEN_OF_ONE):
            await opened_many(office, MAX_OPEN_OF_ONE, session=f"s{number}")
        refusal = await office.refused(permission("more", session="s-new"))
        assert isinstance(refusal, Unavailable)
        assert f"{MAX_OPEN} requests are open, which is the limit" in str(refusal)
        assert (await office.open(permission("k0"))).id == first.id
        await office.withdraw(keys=["k0"])
        assert (await office.open(permission("more"))).state == "open"
        refusal = await office.refused(permission("more", session="s-new"))
        assert f"{MAX_OPEN} requests are open" in str(refusal)
        await office.answer(last)
        assert (await office.open(permission("more", session="s-new"))).state == "open"

    play(story)


# Answering.


def test_an_answer_acts_once_it_is_durable_and_its_caller_hears_of_it_when_it_acted() -> None:
    async def story(office: Office) -> None:
        request = await office.open(of_flow())
        office.owners.holds = "acts"
        answered = office.answer_soon(request)
        await office.yields()
        assert (office.owners.got, await office.state(request)) == ([], "open")
        await office.settles()
        assert (len(office.owners.got), office.owners.acted) == (1, [])
        assert answered.has_come is False
        listed = await office.find(request)
        assert (listed.state, listed.by, listed.applied) == ("answered", "human", None)
        office.owners.release()
        await office.settles()
        assert (answered.value.outcome, len(office.owners.acted)) == ("applied", 1)
        await office.restart(power_fails=True)
        assert await office.state(request) == "applied"

    play(story)


def test_a_loss_of_power_when_an_answer_acts_does_not_open_its_request_again() -> None:
    async def story(office: Office) -> None:
        request = await office.open(of_flow())
        office.answer_soon(request)
        await office.until(lambda: office.owners.acted)
        await office.restart(power_fails=True)
        assert await office.state(request) == "withdrawn"
        reply = await office.answer(request, "deny")
        assert reply.text.endswith("the daemon was restarted before the answer was applied")
        assert len(office.owners.got) == 1

    play(story)


def test_an_applied_answer_is_reported_once_that_is_durable() -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        answered = office.answer_soon(request)
        await office.until(lambda: answered.has_come)
        assert answered.value.outcome == "applied"
        await office.restart(power_fails=True)
        assert await office.state(request) == "applied"

    play(story)


def test_a_second_answer_hears_who_answered_and_when() -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        office.owners.holds = "acts"
        won = office.answer_soon(request)
        await office.yields()
        while_not_durable = office.answer_soon(request, "deny")
        await office.yields()
        assert not while_not_durable.has_come
        await office.settles()
        while_not_applied = await office.answer(request, "deny", from_handle="bob")
        office.owners.release()
        await office.settles()
        after = await office.answer(request, "deny")
        for reply in (while_not_durable.value, while_not_applied, after):
            assert (reply.outcome, reply.by, reply.at) == (
                "already_answered",
                "human",
                won.value.at,
            )
            assert reply.text.endswith(f"was answered by human at {won.value.at}: allow once")
        assert len(office.owners.got) == 1
        assert won.value.outcome == "applied"
        assert office.owners.acted[0].answer == PermissionAnswer(kind="allow_once")

    play(story)


def test_an_answer_to_something_else_is_refused_and_changes_nothing() -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        lines = office.lines()
        refusal = await office.refused(answer_to(request, digest="0" * 64))
        assert isinstance(refusal, InvalidRequest)
        assert "a permission of 'ann' for tool 'Bash': look at it again" in str(refusal)
        refusal = await office.refused(answer_to(request, values={"a": "b"}))
        assert isinstance(refusal, InvalidRequest)
        await office.settles()
        assert await office.state(request) == "open"
        assert (office.lines(), office.owners.got) == (lines, [])
        unknown = AnswerRequest(id="f" * 12, digest="0" * 64, answer="allow")
        assert (await office.ask(unknown)).outcome == "unknown"

    play(story)


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
    async def story(office: Office) -> None:
        one, other = await office.open(), await office.open(of_flow("k1"))
        changed = await office.open(of_flow("k2", **({"input": {"command": "rm k1"}} | change)))
        assert one.digest == other.digest != changed.digest

    play(story)


def test_the_digest_is_that_of_the_content_not_of_the_order_of_keys_or_the_title() -> None:
    async def story(office: Office) -> None:
        one = await office.open(permission("k1", input={"a": 1, "b": {"c": 2, "d": 3}}))
        other = permission("k2", input={"b": {"d": 3, "c": 2}, "a": 1}, title="T", reason="R")
        assert (await office.open(other)).digest == one.digest

    play(story)


@pytest.mark.parametrize(
    ("what", "more", "words"),
    [
        ("allow", {"scope": "session"}, "allow session"),
        ("deny", {"message": "no"}, "deny"),
        ("cancel", {}, "deny and end the turn"),
    ],
)
def test_an_answer_is_passed_on_as_it_was_given(
    what: str, more: dict[str, Any], words: str
) -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        reply = await office.answer(request, what, **more)
        assert reply.text.endswith(f"was answered: {words}")
        [acted] = office.owners.acted
        assert isinstance(acted.answer, PermissionAnswer)
        assert acted.answer.message == more.get("message", "")
        assert acted.answer.interrupt == (what == "cancel")
        assert acted.scope == more.get("scope", "once")

    play(story)


@pytest.mark.parametrize(
    ("kind", "what", "words"),
    [
        ("question", "allow", "answered"),
        ("question", "deny", "declined"),
        ("elicitation", "allow", "accept"),
        ("elicitation", "deny", "decline"),
        ("elicitation", "cancel", "cancel"),
    ],
)
def test_questions_and_forms_are_answered(kind: Any, what: str, words: str) -> None:
    async def story(office: Office) -> None:
        document = {"questions": [{"question": "Which?", "options": [{"label": "A"}]}]}
        request = await office.open(permission(kind=kind, options=[], input=document))
        values = {"Which?": "A"} if kind == "question" and what == "allow" else {}
        reply = await office.answer(request, what, values=values)
        assert reply.text.endswith(f"was answered: {words}")

    play(story)


def test_a_caller_that_waits_too_long_for_an_owner_is_told_where_to_look() -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        office.owners.holds = "reply"
        answered = office.answer_soon(request)
        await office.passes(19)
        assert not answered.has_come
        await office.passes(1)
        assert isinstance(answered.error, Unavailable)
        assert "is not confirmed after 20 s: look with aegis_request_list" in str(answered.error)
        assert await office.state(request) == "answered"
        office.owners.release()
        await office.settles()
        assert await office.state(request) == "applied"

    play(story)


# Owners.


def test_an_answer_that_its_owner_did_not_apply_is_withdrawn_with_the_reason() -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        office.owners.refuses = "the agent\x1b[2J cancelled it"
        reply = await office.answer(request)
        assert (reply.outcome, reply.by, reply.at) == ("withdrawn", None, None)
        assert reply.text == (
            f"request {request.id} of 'ann' was withdrawn: the agent<U+001B>[2J cancelled it"
        )
        office.owners.refuses = ""
        assert (await office.answer(request)).outcome == "withdrawn"
        assert len(office.owners.got) == 1
        await office.settles()
        await office.restart(power_fails=True)
        found = await office.find(request)
        assert (found.state, found.withdrawn) == (
            "withdrawn",
            "the agent<U+001B>[2J cancelled it",
        )

    play(story)


def test_the_requests_of_an_owner_that_crashes_are_withdrawn_and_those_of_others_are_not() -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        bob = await office.open(permission(owner="root/bob", session="s-bob", handle="bob"))
        flow = await office.open(of_flow(owner="root/ann"))
        asked = office.ask_human(by="ann")
        done = await office.open(permission("done"))
        await office.answer(done)
        await office.settles()
        await office.crash_owner()
        assert await office.states(request, bob, flow, done) == [
            *("withdrawn", "open", "open", "applied")
        ]
        assert not asked.has_come
        assert (await office.answer(request)).text.endswith("its session crashed or ended")
        again = await office.open(permission("k3"))
        assert await office.state(again) == "open"
        await office.crash_owner()
        assert await office.state(again) == "withdrawn"
        await office.restart(power_fails=True)
        assert await office.states(request, flow, again) == ["withdrawn", "open", "withdrawn"]

    play(story)


def test_the_requests_of_an_owner_that_stops_are_withdrawn_and_a_workflows_answer_is() -> None:
    async def story(office: Office) -> None:
        request, flow = await office.open(), await office.open(of_flow())
        await office.stop_owner()
        await office.stop_owner("flow")
        assert await office.states(request, flow) == ["withdrawn", "open"]
        reply = await office.answer(flow)
        assert reply.outcome == "withdrawn"
        assert reply.text.endswith("its session ended before the answer could be applied")
        assert office.owners.got == []

    play(story)


def test_an_answer_whose_owner_crashes_with_it_is_withdrawn_and_may_have_acted() -> None:
    async def story(office: Office) -> None:
        for request in (await office.open(), await office.open(of_flow())):
            owner = "ann" if request.id == (await office.listed())[0].id else "flow"
            office.owners.holds = "reply"
            answered = office.answer_soon(request)
            await office.settles()
            late = await office.answer(request, "deny")
            assert late.outcome == "already_answered"
            await office.crash_owner(owner)
            assert answered.value.outcome == "withdrawn"
            assert answered.value.text.endswith(
                "its session crashed while the answer was applied: it may have acted"
            )
            assert await office.state(request) == "withdrawn"
            assert (await office.answer(request)).outcome == "withdrawn"
        assert len(office.owners.got) == 2
        await office.restart(power_fails=True)
        assert {each.state for each in await office.listed()} == {"withdrawn"}

    play(story)


def test_an_answer_that_is_being_written_while_its_owner_crashes_does_not_act() -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        answered = office.answer_soon(request)
        await office.yields()
        await office.crash_owner()
        assert answered.value.outcome == "withdrawn"
        assert answered.value.text.endswith("its session crashed or ended")
        assert office.owners.got == []

    play(story)


# Withdrawing.


@pytest.mark.parametrize("first", ["answer", "withdrawal"])
def test_nothing_acts_after_it_was_withdrawn(first: str) -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        if first == "answer":
            answered, second = office.answer_soon(request), office.answer_soon(request, "deny")
            await office.yields()
            withdrawn = office.withdraw_soon()
        else:
            withdrawn = office.withdraw_soon()
            await office.yields()
            answered, second = office.answer_soon(request), office.answer_soon(request, "deny")
        await office.settles()
        assert withdrawn.value.ids == [request.id]
        assert office.owners.got == []
        late = await office.answer(request)
        for reply in (answered.value, second.value, late):
            assert reply.outcome == "withdrawn"
            assert reply.text.endswith("was withdrawn: the turn ended")
        assert await office.state(request) == "withdrawn"
        await office.restart(power_fails=True)
        assert await office.state(request) == "withdrawn"
        assert (await office.open()).id != request.id

    play(story)


def test_withdrawing_is_answered_when_it_is_durable() -> None:
    async def story(office: Office) -> None:
        request = await office.open(of_flow())
        news = office.news_soon(await office.news())
        withdrawn = office.withdraw_soon(session=None, workflow="w1")
        await office.yields()
        again = office.withdraw_soon(session=None, workflow="w1")
        await office.yields()
        assert (withdrawn.has_come, again.has_come) == (False, False)
        assert await office.state(request) == "withdrawn"
        await office.until(lambda: withdrawn.has_come)
        assert withdrawn.value.ids == again.value.ids == [request.id]
        assert [each.state for each in news.value.changed] == ["withdrawn"]
        assert await office.withdraw(session=None, workflow="w1") == []
        await office.restart(power_fails=True)
        found = await office.find(request)
        assert (found.state, found.withdrawn) == ("withdrawn", "the turn ended")

    play(story)


@pytest.mark.parametrize(("acts", "outcome"), [(True, "applied"), (False, "withdrawn")])
def test_of_an_answer_on_its_way_only_the_owner_knows_whether_it_acted(
    acts: bool, outcome: str
) -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        office.owners.holds = "acts"
        answered = office.answer_soon(request)
        await office.settles()
        assert await office.withdraw(reason="the process\x07 ended") == []
        assert await office.state(request) == "answered"
        office.owners.refuses = "" if acts else "it was withdrawn"
        office.owners.release()
        await office.settles()
        assert answered.value.outcome == outcome
        assert len(office.owners.acted) == acts
        assert await office.state(request) == outcome
        if not acts:
            assert answered.value.text.endswith("was withdrawn: the process<U+0007> ended")

    play(story)


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
    async def story(office: Office) -> None:
        for key, turn in (("k1", "t1"), ("k2", "t2")):
            await office.open(permission(key, turn=turn))
        await office.withdraw(**narrow)
        found = [each.input for each in await office.listed(state="open")]
        assert found == [{"command": f"rm {key}"} for key in left]

    play(story)


def test_a_withdrawal_by_id_leaves_the_others_open() -> None:
    async def story(office: Office) -> None:
        one, two = await office.open(), await office.open(permission("k2"))
        assert await office.withdraw(ids=[two.id]) == [two.id]
        assert await office.states(one, two) == ["open", "withdrawn"]

    play(story)


def test_a_request_that_is_withdrawn_while_it_is_being_opened_is_never_open() -> None:
    async def story(office: Office) -> None:
        news = office.news_soon(await office.news())
        opened = office.ask_soon(permission())
        await office.until(office.lines)
        await office.withdraw()
        assert opened.value.state == "withdrawn"
        assert (await office.answer(opened.value)).outcome == "withdrawn"
        await office.settles()
        assert not news.has_come or {each.state for each in news.value.changed} == {"withdrawn"}
        await office.restart()
        assert await office.state(opened.value) == "withdrawn"

    play(story)


def test_a_withdrawal_of_nothing_does_not_wait_for_another() -> None:
    async def story(office: Office) -> None:
        await office.open()
        await office.open(of_flow())
        withdrawn = office.withdraw_soon()
        await office.yields()
        others = office.withdraw_soon(session="s-bob")
        none = office.withdraw_soon(ids=[])
        await office.yields()
        assert (others.value.ids, none.value.ids) == ([], [])
        assert not withdrawn.has_come

    play(story)


def test_a_long_reason_is_shortened() -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        await office.withdraw(reason="r" * 2_000)
        found = await office.find(request)
        assert found.withdrawn is not None
        assert len(found.withdrawn) == 1_000

    play(story)


# Renaming.


def test_a_renamed_session_keeps_its_requests() -> None:
    async def story(office: Office) -> None:
        request, other = await office.open(), await office.open(of_flow())
        news = office.news_soon(await office.news())
        await office.rename("s-ann", "eva")
        [listed] = await office.listed(handle="EVA")
        assert (listed.id, listed.handle) == (request.id, "eva")
        assert [each.handle for each in news.value.changed] == ["eva"]
        assert (await office.find(other)).handle == "flow"
        lines = office.lines()
        await office.rename("s-ann", "eva")
        assert office.lines() == lines
        assert await office.withdraw(keys=["k1"]) == [request.id]
        await office.restart(power_fails=True)
        assert (await office.find(request)).handle == "eva"

    play(story)


def test_a_request_that_is_being_opened_is_renamed_too() -> None:
    async def story(office: Office) -> None:
        await office.open(of_flow())
        opened = office.ask_soon(permission())
        await office.yields()
        news = office.news_soon(await office.news())
        await office.rename("s-ann", "eva")
        assert (await office.find(opened.value)).handle == "eva"
        assert [each.handle for each in news.value.changed] == ["eva"]

    play(story)


# Rights, looked up where sessions are known.


def test_without_sessions_no_handle_may_answer_and_each_sees_its_own() -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        assert [each.id for each in await office.listed(from_handle="ann")] == [request.id]
        assert await office.listed(from_handle="bob") == []
        refusal = await office.refused(answer_to(request, from_handle="bob"))
        assert isinstance(refusal, Forbidden)
        assert "'bob' may not answer requests" in str(refusal)
        assert "is your own" in str(await office.refused(answer_to(request, from_handle="ANN")))

    play(story, has_sessions=False)


@pytest.mark.parametrize(
    ("handle", "sees", "sentence"),
    [
        ("ann", True, "is your own, 'ann': a person answers it"),
        ("kid", False, "is of 'ann', which spawned you, 'kid'"),
        ("low", False, "'low' may not answer requests"),
        ("new", False, "'new' may not answer requests"),
        ("bob", True, ""),
    ],
)
def test_no_session_answers_for_itself_or_its_ancestors_or_without_the_right(
    handle: str, sees: bool, sentence: str
) -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        assert len(await office.listed(from_handle=handle)) == sees
        news = await office.news(from_handle=handle)
        assert (news.open is not None and len(news.open)) == sees
        if sentence:
            for what in ("deny", "allow"):
                refusal = await office.refused(answer_to(request, what, from_handle=handle))
                assert isinstance(refusal, Forbidden)
                assert sentence in str(refusal)
            assert await office.state(request) == "open"
        else:
            reply = await office.answer(request, from_handle=handle)
            assert (reply.outcome, reply.by) == ("applied", f"agent:{handle}")
            assert office.owners.acted[0].by == f"agent:{handle}"

    play(story)


def test_a_session_knows_its_own_requests_by_its_id_after_it_was_renamed() -> None:
    async def story(office: Office) -> None:
        request = await office.open(permission(handle="earlier"))
        assert "is your own" in str(await office.refused(answer_to(request, from_handle="ann")))
        kids = await office.open(permission(handle="kid", session="s-kid"))
        assert (await office.answer(kids, from_handle="ann")).outcome == "applied"

    play(story)


def test_what_needs_a_person_is_allowed_by_the_operator_only() -> None:
    async def story(office: Office) -> None:
        one = await office.open(permission(needs_person=True))
        two = await office.open(permission("k2", needs_person=True))
        refusal = await office.refused(answer_to(one, from_handle="bob"))
        assert isinstance(refusal, Forbidden)
        assert "can only be allowed by a person" in str(refusal)
        assert (await office.answer(one)).outcome == "applied"
        assert (await office.answer(two, "deny", from_handle="bob")).outcome == "applied"

    play(story)


def test_a_caller_that_cannot_be_looked_up_is_told_to_call_again() -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        office.mute.add("bob")
        for ask in (answer_to(request, from_handle="bob"), ListRequests(from_handle="bob")):
            refused = office.ask_soon(ask)
            await office.passes(4)
            assert not refused.has_come
            await office.passes(1)
            assert isinstance(refused.error, Unavailable)
            assert "the session of 'bob' could not be looked up; call again" in str(refused.error)
        assert await office.state(request) == "open"

    play(story)


# Lists and streams.


def test_a_list_has_what_was_asked_for_and_says_if_there_is_more() -> None:
    async def story(office: Office) -> None:
        made = [await office.open(permission(f"k{each}")) for each in range(4)]
        ids = [each.id for each in made]
        await office.open(of_flow())
        for each in made[:2]:
            await office.answer(each)
        opened = await office.ask(ListRequests(handle="Ann", limit=1))
        assert ([each.id for each in opened.requests], opened.more) == ([ids[2]], True)
        opened = await office.ask(ListRequests(handle="ann", limit=2))
        assert ([each.id for each in opened.requests], opened.more) == (ids[2:], False)
        closed = await office.ask(ListRequests(state="closed", limit=1))
        assert ([each.id for each in closed.requests], closed.more) == ([ids[1]], True)
        both = await office.ask(ListRequests(state="all", handle="ann"))
        assert ([each.id for each in both.requests], both.more) == (ids, False)
        one = await office.ask(ListRequests(state="open", id=ids[0], handle="bob"))
        assert [each.id for each in one.requests] == [ids[0]]

    play(story)


def test_a_list_is_limited_in_its_size() -> None:
    async def story(office: Office) -> None:
        for each in range(6):
            await office.open(permission(f"k{each}", input={"content": "x" * 60_000}))
        found = await office.ask(ListRequests())
        assert (len(found.requests), found.more) == (4, True)

    play(story)


def test_a_stream_gets_the_open_requests_and_then_each_change() -> None:
    async def story(office: Office) -> None:
        first, done = await office.open(), await office.open(permission("done"))
        await office.answer(done)
        news = await office.news()
        assert news.open == [first.id] == [each.id for each in news.changed]
        waiting = office.news_soon(news)
        second = await office.open(permission("k2"))
        await office.settles()
        news = waiting.value
        assert [(each.id, each.state) for each in news.changed] == [(second.id, "open")]
        assert news.open is None
        waiting = office.news_soon(news)
        office.owners.holds = "acts"
        office.answer_soon(first)
        await office.settles()
        news = waiting.value
        assert [(each.id, each.state) for each in news.changed] == [(first.id, "answered")]
        assert news.changed[0].applied is None
        waiting = office.news_soon(news)
        office.owners.release()
        await office.settles()
        assert [each.id for each in waiting.value.changed] == [first.id]
        assert waiting.value.changed[0].applied is not None

    play(story)


def test_a_stream_that_is_behind_gets_the_changes_since_its_place_in_parts() -> None:
    async def story(office: Office) -> None:
        await office.open(permission("before"))
        news = await office.news()
        made = [await office.open(permission(f"k{each}")) for each in range(20)]
        await office.withdraw(keys=["k0"])
        news = await office.news(news)
        assert [each.id for each in news.changed] == [each.id for each in made[1:17]]
        news = await office.news(news)
        assert [each.id for each in news.changed] == [*(each.id for each in made[17:]), made[0].id]
        waiting = office.news_soon(news)
        await office.settles()
        assert not waiting.has_come

    play(story)


def test_a_stream_of_an_agent_has_its_own_requests() -> None:
    async def story(office: Office) -> None:
        news = await office.news(from_handle="low")
        assert news.open == []
        waiting = office.news_soon(news, "low")
        await office.open()
        await office.settles()
        assert not waiting.has_come
        own = await office.open(permission("k2", handle="low", session="s-low"))
        await office.settles()
        assert [each.id for each in waiting.value.changed] == [own.id]

    play(story)


def test_a_stream_that_missed_a_restart_of_the_desk_begins_anew() -> None:
    async def story(office: Office) -> None:
        request = await office.open(of_flow())
        news = await office.news()
        assert news.open is not None
        await office.crash_desk()
        news = await office.news(news)
        assert news.open == [request.id]
        await office.restart()
        assert (await office.news(news)).open == [request.id]

    play(story)


def test_there_is_a_limit_of_streams_and_those_that_are_gone_do_not_count() -> None:
    async def story(office: Office) -> None:
        news = await office.news()
        streams = [office.news_soon(news) for _ in range(MAX_FOLLOWERS)]
        await office.settles()
        refusal = await office.refused(FollowRequests(place=news.place))
        assert str(refusal) == (
            f"{MAX_FOLLOWERS} streams follow the requests already; close one first"
        )
        streams[0].give_up()
        await office.settles()
        last = office.news_soon(news)
        await office.settles()
        assert not last.has_come
        await office.open()
        await office.settles()
        assert all(each.value is not None for each in (*streams[1:], last))

    play(story)


# Questions of agents to a person.


def test_an_agent_waits_for_the_answer_to_its_question() -> None:
    async def story(office: Office) -> None:
        asked = office.ask_human("Which one?", options=["A", "B"])
        await office.settles()
        [listed] = await office.listed(state="open")
        assert (listed.kind, listed.tool, listed.title) == (
            "question",
            "ask_human",
            "ann asks: Which one?",
        )
        assert (listed.handle, listed.session, listed.needs_person) == ("ann", "s-ann", True)
        assert not asked.has_come
        reply = await office.answer(listed, values={"Which one?": "A"})
        assert reply.outcome == "applied"
        assert asked.value == HumanAnswer(request_id=listed.id, state="answered", answer="A")
        await office.passes(100)
        assert office.inboxes.messages == {}

    play(story)


def test_an_agent_that_no_longer_waits_gets_the_answer_as_a_message() -> None:
    async def story(office: Office) -> None:
        asked = office.ask_human(wait_s=10)
        gone = office.ask_human("Gone?")
        await office.passes(9)
        assert not asked.has_come
        gone.give_up()
        await office.passes(1)
        [one, two] = await office.listed()
        assert asked.value == HumanAnswer(request_id=one.id, state="open", answer=None)
        await office.answer(one, values={"Which?": "this"})
        await office.answer(two, "deny")
        message = office.inboxes.messages[f"request:{one.id}/answer"]
        assert (message.handle, message.sender) == ("ann", "human")
        assert message.body == f"answer to your question 'Which?' (request {one.id}):\nthis"
        message = office.inboxes.messages[f"request:{two.id}/answer"]
        assert message.body.endswith("the person declined to answer")

    play(story)


def test_the_same_question_joins_the_open_one_and_may_be_asked_again_once_it_is_answered() -> None:
    async def story(office: Office) -> None:
        first = office.ask_human()
        await office.settles()
        second, other = office.ask_human(by="ANN"), office.ask_human(by="bob")
        await office.settles()
        third = office.ask_human("Other?")
        await office.settles()
        shown = await office.listed(state="open")
        assert [each.title for each in shown] == [
            *("ann asks: Which?", "bob asks: Which?", "ann asks: Other?")
        ]
        await office.answer(shown[0], "deny")
        for each in (first, second):
            assert each.value == HumanAnswer(request_id=shown[0].id, state="answered", answer=None)
        assert (other.has_come, third.has_come) == (False, False)
        again = office.ask_human()
        await office.settles()
        assert len(await office.listed(state="open")) == 3
        assert not again.has_come

    play(story)


def test_only_an_agent_asks_the_person() -> None:
    async def story(office: Office) -> None:
        asked = office.ask_human(from_handle=None)
        await office.settles()
        assert isinstance(asked.error, InvalidRequest)
        assert "you are the person; say in from_handle" in str(asked.error)
        assert await office.listed() == []

    play(story)


def test_the_open_questions_of_a_closed_session_are_withdrawn() -> None:
    async def story(office: Office) -> None:
        asked, other = office.ask_human(), office.ask_human(by="bob")
        await office.settles()
        done = office.ask_human("Done?")
        await office.settles()
        one, two, three = await office.listed()
        await office.answer(three, "deny")
        await office.close_askers("ANN", "nobody")
        assert asked.value == HumanAnswer(request_id=one.id, state="withdrawn", answer=None)
        assert done.value.state == "answered"
        assert not other.has_come
        assert await office.states(one, two, three) == ["withdrawn", "open", "applied"]
        assert (await office.find(one)).withdrawn == "it was closed"
        assert office.inboxes.messages == {}
        lines = office.lines()
        await office.close_askers("ann")
        assert office.lines() == lines

    play(story)


def test_a_question_that_is_withdrawn_while_it_is_being_opened_is_answered_so() -> None:
    async def story(office: Office) -> None:
        await office.open()
        lines = len(office.lines())
        asked = office.ask_human()
        await office.until(lambda: len(office.lines()) > lines)
        office.desk.tell(WithdrawRequests(asker="ann", reason="it was closed"))
        await office.settles()
        assert asked.value.state == "withdrawn"

    play(story)


def test_a_question_outlives_its_session_and_the_daemon() -> None:
    async def story(office: Office) -> None:
        office.ask_human()
        await office.settles()
        await office.crash_owner()
        await office.restart(power_fails=True)
        [listed] = await office.listed(state="open")
        joined = office.ask_human()
        await office.settles()
        await office.answer(listed, values={"Which?": "this"})
        assert joined.value.answer == "this"
        assert office.inboxes.messages == {}

    play(story)


@pytest.mark.parametrize("restarts", [False, True])
def test_an_answer_is_sent_until_the_inbox_has_it(restarts: bool) -> None:
    async def story(office: Office) -> None:
        asked = office.ask_human(wait_s=0)
        await office.settles()
        assert asked.value.state == "open"
        [listed] = await office.listed()
        office.inboxes.refuses = "the disk is full"
        office.answer_soon(listed, values={"Which?": "this"})
        await office.settles()
        assert await office.state(listed) == "answered"
        assert office.inboxes.messages == {}
        if restarts:
            await office.restart(power_fails=True)
            assert await office.state(listed) == "answered"
        office.inboxes.refuses = ""
        await office.passes(1)
        assert [*office.inboxes.messages] == [f"request:{listed.id}/answer"]
        assert await office.state(listed) == "applied"

    play(story)


@pytest.mark.parametrize("keep", [Keep(), Keep(newest=0, days=0)])
def test_a_question_that_is_withdrawn_before_it_is_durable_is_answered_so(keep: Keep) -> None:
    async def story(office: Office) -> None:
        await office.open(of_flow())
        asked = office.ask_human()
        await office.settles()
        assert not asked.has_come
        gone = office.ask_human("Other?")
        lines = len(office.lines())
        await office.until(lambda: len(office.lines()) > lines)
        office.desk.tell(WithdrawRequests(asker="ann", reason="it was closed"))
        await office.passes(1)
        assert (asked.value.state, gone.value.state) == ("withdrawn", "withdrawn")
        assert gone.value.answer is None

    play(story, keep=keep)


def test_a_refused_question_is_refused_to_its_caller() -> None:
    async def story(office: Office) -> None:
        await office.open()
        office.refuse()
        asked = office.ask_human()
        await office.settles()
        assert isinstance(asked.error, StorageError)
        office.accept()
        asked = office.ask_human()
        await office.settles()
        assert not asked.has_come
        [*_, listed] = await office.listed(state="open")
        await office.answer(listed, "deny")
        assert asked.value.state == "answered"

    play(story)


# A disk that refuses.


def test_a_request_that_the_disk_refused_was_never_there() -> None:
    async def story(office: Office) -> None:
        kept = await office.open(permission("kept"))
        news = office.news_soon(await office.news())
        office.refuse()
        first, second = office.ask_soon(permission()), office.ask_soon(permission())
        await office.settles()
        for each in (first, second):
            assert isinstance(each.error, StorageError)
            assert "requests.jsonl" in str(each.error)
        assert [each.id for each in await office.listed()] == [kept.id]
        assert not news.has_come
        office.accept()
        assert (await office.open()).state == "open"
        await office.restart(power_fails=True)
        assert len(await office.listed()) == 2

    play(story)


def test_an_answer_that_the_disk_refused_does_not_act_and_may_be_given_again() -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        before = await office.find(request)
        office.refuse()
        for _ in range(3):
            first, second = office.answer_soon(request), office.answer_soon(request, "deny")
            await office.settles()
            for each in (first, second):
                assert isinstance(each.error, StorageError)
            assert office.owners.got == []
            assert await office.find(request) == before
        office.accept()
        reply = await office.answer(request, "deny", from_handle="bob")
        assert (reply.outcome, reply.by) == ("applied", "agent:bob")
        [acted] = office.owners.acted
        assert acted.answer == PermissionAnswer(kind="deny")
        await office.restart(power_fails=True)
        assert (await office.find(request)).by == "agent:bob"

    play(story)


def test_an_answer_that_was_withdrawn_is_not_open_again_if_the_disk_refuses_both() -> None:
    async def story(office: Office) -> None:
        request = await office.open(of_flow())
        office.refuse("fdatasync")
        answered = office.answer_soon(request)
        await office.yields()
        withdrawn = office.withdraw_soon(session=None, workflow="w1")
        await office.settles()
        assert isinstance(withdrawn.error, StorageError)
        assert isinstance(answered.error, StorageError)
        assert await office.state(request) == "withdrawn"
        office.accept()
        reply = await office.answer(request)
        assert reply.outcome == "withdrawn"
        assert office.owners.got == []

    play(story)


def test_an_answer_that_acted_is_reported_though_the_disk_refuses_to_store_that() -> None:
    async def story(office: Office) -> None:
        request = await office.open(of_flow())
        office.owners.holds = "reply"
        answered = office.answer_soon(request)
        await office.settles()
        office.refuse()
        office.owners.release()
        await office.settles()
        assert answered.value.outcome == "applied"
        late = await office.answer(request, "deny")
        assert (late.outcome, late.by) == ("already_answered", "human")
        assert await office.state(request) == "applied"
        assert isinstance(await office.refused(permission("k2")), StorageError)
        assert (await office.answer(request, "deny")).outcome == "already_answered"
        office.accept()
        await office.open(permission("k3"))
        await office.restart(power_fails=True)
        assert await office.state(request) == "applied"
        assert len(office.owners.got) == 1

    play(story)


def test_a_withdrawal_that_the_disk_refused_holds_and_is_answered_once_it_is_durable() -> None:
    async def story(office: Office) -> None:
        request = await office.open(of_flow())
        fields = {"session": None, "workflow": "w1"}
        office.refuse()
        first = office.withdraw_soon(**fields)
        await office.settles()
        assert isinstance(first.error, StorageError)
        assert (await office.answer(request)).outcome == "withdrawn"
        assert await office.state(request) == "withdrawn"
        office.accept()
        second, third = office.withdraw_soon(**fields), office.withdraw_soon(**fields)
        await office.yields()
        assert (second.has_come, third.has_come) == (False, False)
        await office.until(lambda: second.has_come)
        assert second.value.ids == third.value.ids == [request.id]
        assert await office.withdraw(**fields) == []
        await office.restart(power_fails=True)
        assert await office.state(request) == "withdrawn"
        assert office.owners.got == []

    play(story)


def test_a_withdrawal_behind_many_facts_that_the_disk_refused_is_written_with_them() -> None:
    async def story(office: Office) -> None:
        await office.open()
        flow = await office.open(of_flow())
        office.refuse()
        for number in range(300):
            await office.rename("s-ann", f"ann{number}")
        withdrawn = office.withdraw_soon(session=None, workflow="w1")
        await office.settles()
        assert isinstance(withdrawn.error, StorageError)
        office.accept()
        assert await office.withdraw(session=None, workflow="w1") == [flow.id]
        await office.restart(power_fails=True)
        assert await office.state(flow) == "withdrawn"
        assert await office.listed(handle="ann299") != []

    play(story)


def test_a_reply_whose_withdrawal_is_not_written_is_withdrawn_and_stays_so() -> None:
    async def story(office: Office) -> None:
        request = await office.open(of_flow())
        office.owners.holds = "acts"
        answered = office.answer_soon(request)
        await office.settles()
        office.owners.refuses = "the turn is over"
        office.refuse()
        office.owners.release()
        await office.settles()
        assert answered.value.outcome == "withdrawn"
        assert answered.value.text.endswith("was withdrawn: the turn is over")
        assert (await office.answer(request)).outcome == "withdrawn"
        office.accept()
        await office.open(permission("k2"))
        await office.restart(power_fails=True)
        found = await office.find(request)
        assert (found.state, found.withdrawn) == ("withdrawn", "the turn is over")
        assert len(office.owners.got) == 1

    play(story)


def test_what_has_happened_is_written_before_what_follows_once_the_disk_accepts() -> None:
    async def story(office: Office) -> None:
        owned, flow = await office.open(), await office.open(of_flow())
        office.refuse("fdatasync")
        await office.crash_owner()
        await office.rename("s-ann", "eva")
        assert isinstance(await office.refused(permission("k2")), StorageError)
        assert (await office.find(owned)).handle == "eva"
        office.accept()
        await office.answer(flow)
        await office.restart(power_fails=True)
        found = await office.find(owned)
        assert (found.state, found.withdrawn, found.handle) == (
            "withdrawn",
            "its session crashed or ended",
            "eva",
        )
        assert await office.state(flow) == "applied"

    play(story)


def test_a_refused_request_is_not_withdrawn_later() -> None:
    async def story(office: Office) -> None:
        kept = await office.open(permission("k0"))
        office.refuse()
        opened = office.ask_soon(permission())
        withdrawn = office.withdraw_soon()
        await office.settles()
        assert isinstance(opened.error, StorageError)
        assert isinstance(withdrawn.error, StorageError)
        office.accept()
        again = await office.open()
        assert await office.states(kept, again) == ["withdrawn", "open"]
        await office.crash_desk()
        assert await office.states(kept, again) == ["withdrawn", "open"]
        assert len(await office.listed()) == 2

    play(story)


def test_while_the_disk_refuses_nothing_is_opened_and_nothing_acts() -> None:
    async def story(office: Office) -> None:
        request = await office.open()
        fails = 10
        plan = Plan(
            {
                ("ledger.sync.before[requests.jsonl]", number): Raise(an_io_error)
                for number in range(1, fails + 1)
            }
        )
        with armed(plan, JOURNAL):
            for _ in range(fails):
                refusal = await office.refused(answer_to(request))
                assert isinstance(refusal, StorageError)
                assert "requests.jsonl: Input/output" in str(refusal)
            assert office.owners.got == []
            assert await office.state(request) == "open"
            assert (await office.answer(request)).outcome == "applied"
        assert len(office.owners.acted) == 1

    play(story)


def test_a_ledger_that_cannot_be_opened_is_tried_anew_by_every_request() -> None:
    async def story(office: Office) -> None:
        office.refuse_to_open(LEDGER.name)
        for _ in range(3):
            assert isinstance(await office.refused(permission()), StorageError)
        office.refuse_to_open("")
        request = await office.open(of_flow())
        await office.stop()
        office.refuse_to_open(LEDGER.name)
        await office.start()
        for _ in range(3):
            assert isinstance(await office.refused(ListRequests()), StorageError)
        office.refuse_to_open("")
        assert await office.state(request) == "open"

    play(story)


def test_news_of_others_crash_no_desk_whose_ledger_cannot_be_opened() -> None:
    async def story(office: Office) -> None:
        request = await office.open(of_flow())
        await office.stop()
        office.refuse_to_open(LEDGER.name)
        await office.start()
        for _ in range(5):
            office.desk.tell(WithdrawAsked(askers=["ann"], reason="its session was closed"))
        await office.settles()
        office.refuse_to_open("")
        assert await office.state(request) == "open"
        assert not office.own_crashes

    play(story)


def test_a_ledger_is_open_once_whatever_happens_to_the_desk() -> None:
    async def story(office: Office) -> None:
        await office.crash_desk()
        await office.open(of_flow())
        for _ in range(2):
            await office.crash_desk()
            assert office.disk.model.open_paths() == [str(LEDGER)]
        office.refuse("pread")
        await office.crash_desk()
        for _ in range(2):
            assert isinstance(await office.refused(ListRequests()), StorageError)
            assert office.disk.model.open_paths() == []
        office.accept()
        assert len(await office.listed()) == 1
        office.desk.stop()
        await office.settles()
        assert office.disk.model.open_paths() == []

    play(story)


# Crashes and restarts.


def test_after_a_restart_requests_of_workflows_are_open_those_of_sessions_are_not() -> None:
    async def story(office: Office) -> None:
        owned, flow = await office.open(), await office.open(of_flow())
        await office.restart(power_fails=True)
        assert await office.states(owned, flow) == ["withdrawn", "open"]
        assert (await office.find(owned)).withdrawn == "the daemon was restarted"
        assert (await office.open(of_flow())).id == flow.id
        assert (await office.answer(flow)).outcome == "applied"
        assert [each.id for each in office.owners.acted] == [flow.id]

    play(story)


def test_after_a_restart_an_answer_that_has_not_acted_is_withdrawn() -> None:
    async def story(office: Office) -> None:
        owned, flow = await office.open(), await office.open(of_flow())
        office.owners.holds = "acts"
        for each in (owned, flow):
            office.answer_soon(each)
        await office.settles()
        await office.restart(power_fails=True)
        for each in (owned, flow):
            reply = await office.answer(each)
            assert reply.outcome == "withdrawn"
            assert reply.text.endswith("the daemon was restarted before the answer was applied")
        await office.restart(power_fails=True)
        assert await office.states(owned, flow) == ["withdrawn", "withdrawn"]
        assert (len(office.owners.got), office.owners.acted) == (2, [])

    play(story)


def test_after_a_crash_of_the_desk_alone_everything_continues() -> None:
    async def story(office: Office) -> None:
        owned, answered = await office.open(), await office.open(permission("k2"))
        office.owners.holds = "reply"
        waiting = office.answer_soon(answered)
        await office.settles()
        await office.crash_desk()
        assert waiting.error is not None
        assert await office.states(owned, answered) == ["open", "answered"]
        assert [each.id for each in office.owners.got] == [answered.id] * 2
        assert len(office.owners.acted) == 1
        office.owners.release()
        await office.settles()
        assert await office.state(answered) == "applied"
        await office.crash_owner()
        assert await office.states(owned, answered) == ["withdrawn", "applied"]
        await office.restart(power_fails=True)
        assert await office.states(owned, answered) == ["withdrawn", "applied"]
        assert len(office.owners.got) == 2

    play(story)


def test_an_owner_that_is_gone_when_the_desk_restarts_has_its_requests_withdrawn() -> None:
    async def story(office: Office) -> None:
        owned, flow = await office.open(), await office.open(of_flow(owner="root/ann"))
        office.refuse()
        await office.stop_owner()
        office.accept()
        await office.crash_desk()
        assert await office.states(owned, flow) == ["withdrawn", "open"]
        assert (await office.find(owned)).withdrawn == "its session crashed or ended"

    play(story)


def test_after_a_crash_of_the_desk_an_answer_to_a_question_of_an_earlier_life_is_sent_again() -> (
    None
):
    async def story(office: Office) -> None:
        flow = await office.open(of_flow())
        await office.restart()
        office.owners.holds = "acts"
        office.answer_soon(flow)
        await office.settles()
        await office.crash_desk()
        assert await office.state(flow) == "answered"
        assert [each.id for each in office.owners.got] == [flow.id] * 2
        office.owners.release()
        await office.settles()
        assert await office.state(flow) == "applied"
        assert len(office.owners.acted) == 1

    play(story)


POINTS = [
    *(
        (f"ledger.{call}.{when}[requests.jsonl]", number)
        for number in (1, 2, 3)
        for call in ("append", "sync")
        for when in ("before", "after")
    ),
    ("request.apply.before[root/ann]", 1),
    ("request.apply.after[root/ann]", 1),
]
"""All that a request passes from its opening to its effect: its three lines, and its owner."""

STRIKES: list[tuple[str, int, Fault]] = [
    *((point, number, Crash()) for point, number in POINTS),
    *((point, number, Raise(an_io_error)) for point, number in POINTS if point.startswith("l")),
]
"""Each place with a crash, and those of the disk with an error of it."""


async def tried(office: Office, ask: Callable[[], Any], wanted: type) -> tuple[Any, int]:
    """Ask until the answer is of this kind; return it with the number of failures."""
    for failures in range(50):
        answer = office.ask_soon(ask())
        await office.settles()
        if isinstance(answer.value, wanted):
            return answer.value, failures
    raise AssertionError("it fails again and again")


@pytest.mark.parametrize(("point", "number", "fault"), STRIKES)
def test_wherever_a_fault_strikes_an_answer_acts_once_and_its_owner_hears_of_it(
    point: str, number: int, fault: Fault
) -> None:
    async def story(office: Office) -> None:
        plan = Plan({(point, number): fault})
        with armed(plan, REQUESTS, JOURNAL):
            opened, failed = await tried(office, permission, OpenedRequest)
            _, failed_again = await tried(office, lambda: answer_to(opened), RequestReply)
            assert plan.hits[point] >= number, "the fault did not strike"
            await office.passes(5)  # what the disk refused is written again
        assert await office.state(opened) == "applied"
        assert len(office.owners.acted) == 1
        assert failed + failed_again <= 1
        [listed] = await office.listed()
        assert listed.by == "human"
        await office.restart(power_fails=True)
        [again] = await office.listed()
        assert (again.id, again.state) == (opened.id, "answered")
        assert len(office.owners.acted) == 1

    play(story)


# Ledgers: damaged ones, and those of other versions.


def test_a_damaged_line_costs_only_its_request() -> None:
    async def story(office: Office) -> None:
        first = await office.open(of_flow())
        await office.open(of_flow("k2"))
        one, _ = office.lines()
        await office.restart_with([one], b'{"kind":"opened","crc":"00000000"}\n{"torn')
        assert [each.id for each in await office.listed(state="open")] == [first.id]
        again = await office.open(of_flow("k3"))
        await office.restart()
        assert await office.states(first, again) == ["open", "open"]

    play(story)


def recorded_lines() -> list[dict[str, Any]]:
    """Return the lines of a ledger of a version before tables, without their codes."""
    recorded = (RECORDINGS / "requests_before_tables.jsonl").read_bytes()
    return [decode_line(each) for each in recorded.splitlines(keepends=True)]


@pytest.mark.parametrize("is_same", [False, True])
def test_an_answer_of_an_earlier_version_counts_as_given_when_its_request_was_opened(
    is_same: bool,
) -> None:
    async def story(office: Office) -> None:
        lines = [{name: each[name] for name in each if name != "life"} for each in recorded_lines()]
        [opened] = [
            each["record"]
            for each in lines
            if each["kind"] == "opened" and each["record"]["key"] == "given"
        ]
        opened["life"] = f"life{office.lives + 1}" if is_same else "life0"
        await office.restart_with(lines)
        assert await office.state(opened["id"]) == ("applied" if is_same else "withdrawn")
        assert [each.id for each in office.owners.got] == [opened["id"]] * is_same

    play(story)


def test_lines_of_a_later_version_are_skipped() -> None:
    async def story(office: Office) -> None:
        request = await office.open(of_flow())
        strange: list[dict[str, Any]] = [
            {"kind": "opened", "record": {"id": 1}},
            {"kind": "answered", "id": request.id, "answer": {"type": "new"}, "scope": "once"},
            {"kind": "withdrawn", "ids": [None, 3, "ffff"], "reason": "x"},
            {"kind": "expired", "id": request.id},
            {"kind": "applied", "id": request.id},
            {"kind": "renamed", "session": 3, "handle": "x"},
            {},
        ]
        later: list[dict[str, Any]] = [
            {"id": "f" * 12, "set": {"phase": "expired"}},
            {"id": "f" * 12},
            {"id": 3, "set": {"phase": "open"}},
            {"ids": [request.id], "set": {"phase": "withdrawn"}},
        ]
        await office.restart_with([*office.lines(), *strange, *later])
        assert [each.id for each in await office.listed()] == [request.id]
        assert await office.state(request) == "open"
        assert (await office.answer(request)).outcome == "applied"

    play(story)


def test_a_ledger_of_a_version_before_tables_is_read_and_continued() -> None:
    async def story(office: Office) -> None:
        recorded = (RECORDINGS / "requests_before_tables.jsonl").read_bytes()
        await office.restart_with([], recorded)
        first, gone, opened, part, owned, given, asked, late = await office.listed()
        assert (first.state, first.by, first.scope) == ("answered", "agent:bob", "once")
        assert first.answer is not None
        assert (first.answer["kind"], first.answer["message"]) == ("deny", "not now")
        assert first.applied == "2026-01-01T00:00:00.011Z"
        assert (gone.state, gone.withdrawn, gone.handle) == ("withdrawn", "the turn ended", "anna")
        assert gone.title == "a<U+001B>[2K"
        assert (opened.state, opened.input, opened.options) == (
            "open",
            {"content": "x<U+202E>"},
            [],
        )
        assert (part.state, part.input, len(part.excerpt)) == ("open", None, 4_000)
        assert (owned.state, owned.turn, owned.withdrawn) == (
            "withdrawn",
            "t2",
            "the daemon was restarted",
        )
        assert given.withdrawn == "the daemon was restarted before the answer was applied"
        assert (asked.state, asked.title) == ("open", "eve asks: Which?")
        assert (await office.state(late), late.by) == ("applied", "human")
        message = office.inboxes.messages[f"request:{late.id}/answer"]
        assert (message.handle, message.body.splitlines()[1]) == ("new", "yes")
        assert (await office.open(of_flow("open", options=[]))).id == opened.id
        joined = office.ask_human(by="eve", options=["A", "B"])
        await office.settles()
        await office.answer(asked, values={"Which?": "A"})
        assert joined.value == HumanAnswer(request_id=asked.id, state="answered", answer="A")
        assert (await office.answer(opened)).outcome == "applied"
        await office.restart(power_fails=True)
        states = [await office.state(each) for each in (first, opened, part, asked, late)]
        assert states == ["applied", "applied", "open", "applied", "applied"]

    play(story)
