"""What groups promise to their clients, over a simulated disk: each promise as a short history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from aegis.groups.desk import MAX_GROUPS, MAX_LIST_BYTES
from aegis.groups.rows import MAX_REPLY_CHARS
from aegis.protocol.agent_states import Blocked
from aegis.protocol.command import MAX_REPLY_BYTES, json_size
from aegis.protocol.derived.wire import to_plain
from aegis.protocol.feeds import FollowGroups
from aegis.protocol.groups import (
    MAX_MEMBERS,
    DissolveGroup,
    GroupOrders,
    ListGroupOrders,
    ListGroups,
    Reducer,
    RenameGroup,
    ShowGroup,
    SpawnMixedGroup,
    WaitForAll,
    WaitForAny,
)
from aegis.protocol.inboxes import MAX_BODY_CHARS
from tests.aegis.groups.office import Office, mixing, ordering, play, spawning
from tests.aegis.simulated_daemon import WRITES

RECORDINGS = Path(__file__).parents[2] / "recordings"

THREE = ("ann", "bob", "cid")
RECORDED = (
    "c2222ddcee424aa2b7e0cb617a15a1b4",
    "d1f646d64b6a40b19a9d4565fcacfb1d",
    "55cd4482da5d494a801d22a99d08aa99",
)
"""Their sessions in the recorded ledger."""
FULL = "No space left"


# Members.


def test_a_group_is_created_with_its_first_member_and_others_join() -> None:
    async def story(office: Office) -> None:
        first = await office.spawn("ann", by="pm")
        assert (first.group, first.owner, first.state) == ("g", "agent:pm", "open")
        assert (first.forming, first.broadcast, first.aliases) == (0, None, [])
        info = await office.spawn(group="G", profile="q", by="pm")
        assert (info.id, info.created) == (first.id, first.created)
        assert [(each.handle, each.profile) for each in info.members] == [
            ("ann", "p"),
            ("q-2", "q"),
        ]
        assert [each.spawned_by for each in office.agents.sessions.values()] == ["pm", "pm"]
        assert office.files() == ["/state/groups/g.jsonl"]
        assert [each.owner for each in [await office.spawn("eve", group="own")]] == ["human"]
        assert [each.group for each in await office.listed()] == ["g", "own"]

    play(story)


@pytest.mark.parametrize("call", ["fdatasync", "write", "open"])
def test_a_disk_that_refuses_starts_nothing(call: str) -> None:
    async def story(office: Office) -> None:
        office.plan.refuses = {call}
        tries = [office.ask_soon(spawning("ann")), office.ask_soon(mixing("a", "b", group="h"))]
        await office.settles()
        assert all(FULL in str(each.error) for each in tries)
        assert office.agents.opened == []
        assert await office.listed() == []
        await office.refusals("there is no group 'g'; there is none", ShowGroup(group="g"))
        office.plan.refuses = ()
        await office.passes(10)
        assert office.agents.opened == []
        await office.form("ann")
        await office.restart(power_fails=True)
        assert [each.handle for each in (await office.show()).members] == ["ann"]
        assert office.open_sessions() == ["ann"]

    play(story)


def test_a_disk_that_refuses_a_further_member_leaves_the_group_as_it_was() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        office.plan.refuses = {"fdatasync"}
        tries = [office.ask_soon(spawning(each)) for each in ("bob", "cid")]
        await office.settles()
        assert all(FULL in str(each.error) for each in tries)
        assert office.open_sessions() == ["ann"]
        info = await office.show()
        assert (info.forming, [each.handle for each in info.members]) == (0, ["ann"])
        office.plan.refuses = ()
        assert await office.broadcast()
        await office.restart(power_fails=True)
        assert office.open_sessions() == ["ann"]

    play(story)


def test_sessions_are_opened_once_their_start_is_durable() -> None:
    async def story(office: Office) -> None:
        office.ask_soon(mixing("a", "b"))
        await office.until(lambda: bool(office.agents.opened))
        await office.restart(power_fails=True)
        info = await office.show()
        assert [each.handle for each in info.members] == office.open_sessions()
        assert len(info.members) == 2

    play(story)


def test_if_one_member_cannot_be_started_all_are_closed_and_the_group_is_gone() -> None:
    async def story(office: Office) -> None:
        office.agents.refuses_spawn["c"] = "no session is left"
        office.agents.closing_fails = True
        refused = office.ask_soon(mixing("a", "b", "c"))
        await office.passes(3)
        assert not refused.has_come
        assert len(office.open_sessions()) == 2
        office.agents.closing_fails = False
        await office.passes(2)
        assert str(refused.error) == "no session is left"
        assert office.open_sessions() == []
        for _ in range(2):
            assert await office.listed() == []
            await office.restart()
        await office.ask(mixing("a", "b"))
        assert len((await office.show()).members) == 2

    play(story)


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_restart_closes_members_that_were_not_all_started(*, power_fails: bool) -> None:
    async def story(office: Office) -> None:
        office.agents.refuses_spawn["c"] = "no session is left"
        office.agents.closing_fails = True
        office.ask_soon(mixing("a", "b", "c"))
        await office.passes(3)
        await office.stop(power_fails=power_fails)
        office.agents.closing_fails = False
        await office.start()
        await office.passes(3)
        assert await office.listed() == []
        assert office.open_sessions() == []

    play(story)


def test_a_member_that_cannot_be_started_leaves_the_group_as_it_was() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        await office.form("taken", group="other")
        await office.refusals("handle 'taken' is or was used", spawning("taken"))
        info = await office.show()
        assert (info.forming, [each.handle for each in info.members]) == (0, ["ann", "bob"])
        assert office.open_sessions() == ["ann", "bob", "taken"]
        assert await office.broadcast()

    play(story)


def test_members_that_are_started_at_the_same_time_join_one_group() -> None:
    async def story(office: Office) -> None:
        answers = [office.ask_soon(spawning(each)) for each in THREE]
        await office.settles()
        assert len({each.value.id for each in answers}) == 1
        assert {each.handle for each in (await office.show()).members} == {*THREE}
        assert len(await office.listed()) == 1

    play(story)


def test_a_member_that_joins_while_the_first_one_fails_keeps_the_group() -> None:
    async def story(office: Office) -> None:
        office.agents.refuses_spawn["bad"] = "no session is left"
        office.agents.closing_fails = True
        first = office.ask_soon(spawning(profile="bad"))
        await office.until(lambda: bool(office.files()))
        second = office.ask_soon(spawning("bob"))
        office.agents.closing_fails = False
        await office.passes(3)
        assert str(first.error) == "no session is left"
        assert [each.handle for each in second.value.members] == ["bob"]
        await office.restart(power_fails=True)
        assert [each.handle for each in (await office.show()).members] == ["bob"]

    play(story)


def test_a_member_may_join_while_it_is_stored_that_the_first_one_failed() -> None:
    async def story(office: Office) -> None:
        office.agents.refuses_spawn["bad"] = "no session is left"
        office.agents.closing_fails = True
        first = office.ask_soon(mixing("a", "bad"))
        await office.settles()
        office.agents.closing_fails = False
        await office.until(lambda: office.agents.opened and not office.open_sessions())
        assert not first.has_come
        second = office.ask_soon(spawning("bob"))
        await office.settles()
        assert str(first.error) == "no session is left"
        assert [each.handle for each in second.value.members] == ["bob"]
        for _ in range(2):
            assert [each.handle for each in (await office.show()).members] == ["bob"]
            await office.restart(power_fails=True)

    play(story)


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_restart_goes_on_with_members_that_are_being_started(*, power_fails: bool) -> None:
    async def story(office: Office) -> None:
        office.agents.holds_spawns = True
        office.ask_soon(mixing("a", "b"))
        await office.settles()
        assert ((await office.show()).forming, (await office.show()).members) == (2, [])
        await office.stop(power_fails=power_fails)
        office.agents.holds_spawns = False
        await office.start()
        await office.settles()
        info = await office.show()
        assert (info.forming, len(info.members)) == (0, 2)
        await office.restart()
        assert [each.handle for each in (await office.show()).members] == office.open_sessions()
        assert len(office.agents.opened) == 2

    play(story)


def test_a_session_whose_opening_was_not_answered_is_asked_for_again() -> None:
    async def story(office: Office) -> None:
        office.agents.holds_spawns = True
        waits = office.ask_soon(spawning("ann"))
        await office.passes(200)
        assert not waits.has_come
        office.agents.holds_spawns = False
        await office.passes(130)
        assert [each.handle for each in waits.value.members] == ["ann"]
        assert len(office.agents.opened) == 1

    play(story)


def test_a_member_that_was_closed_before_the_group_was_formed_is_not_one() -> None:
    async def story(office: Office) -> None:
        office.agents.refuses_spawn["b"] = "not now"
        office.agents.closing_fails = True
        office.ask_soon(mixing("a", "b"))
        await office.settles()
        await office.stop()
        office.agents.close(office.member("a-1"))
        office.agents.refuses_spawn.clear()
        office.agents.closing_fails = False
        await office.start()
        await office.passes(3)
        assert await office.listed() == []
        assert office.open_sessions() == []

    play(story)


def test_several_members_at_once_are_for_a_new_group_only() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        words = "group 'g' has 2 members already: add one with aegis_group_spawn"
        await office.refusals(words, mixing("a", group="G"))
        assert office.open_sessions() == ["ann", "bob"]

    play(story)


def test_the_members_are_those_of_the_profiles_or_of_a_preset() -> None:
    async def story(office: Office) -> None:
        info = await office.ask(SpawnMixedGroup(group="g", preset="pair"))
        assert [each.profile for each in info.members] == ["a", "a"]
        both = SpawnMixedGroup(group="h", preset="pair", profiles=["a"])
        await office.refusals(
            "name either profiles, at least one, or a preset", both, SpawnMixedGroup(group="h")
        )
        words = "there is no preset 'pai' in groups.presets of .aegis.yaml; did you mean 'pair'?"
        await office.refusals(words, SpawnMixedGroup(group="h", preset="pai"))
        await office.refusals("there are: pair, trio", SpawnMixedGroup(group="h", preset="zzzzzz"))
        await office.refusals("profile 'a b' is not a name: use ", mixing("a", "a b"))
        assert office.files() == ["/state/groups/g.jsonl"]

    play(story, presets={"pair": ["a", "a"], "trio": ["a", "b", "c"]})


def test_a_group_without_presets_says_so() -> None:
    async def story(office: Office) -> None:
        await office.refusals("there are: none", SpawnMixedGroup(group="h", preset="pair"))

    play(story)


def test_groups_and_members_are_limited() -> None:
    async def story(office: Office) -> None:
        words = f"a group has at most {MAX_MEMBERS} members, not {MAX_MEMBERS + 1}"
        await office.refusals(words, mixing(*["p"] * (MAX_MEMBERS + 1)))
        await office.ask(mixing(*["p"] * MAX_MEMBERS))
        await office.refusals(words, spawning())
        for number in range(1, MAX_GROUPS):
            await office.spawn(group=f"g{number}")
        await office.refusals(
            f"there are {MAX_GROUPS} groups, which is the limit; dissolve one first",
            spawning(group="one-more"),
        )
        assert "/state/groups/one-more.jsonl" not in office.files()
        assert len((await office.spawn(group="g1")).members) == 2
        assert len((await office.ask(ListGroups())).result) == MAX_GROUPS

    play(story)


def test_a_list_of_many_members_says_that_it_is_cut() -> None:
    async def story(office: Office) -> None:
        number = MAX_LIST_BYTES // (400 * (MAX_MEMBERS + 4)) + 1
        for each in range(number):
            await office.ask(mixing(*["p"] * MAX_MEMBERS, group=f"g{each:02}"))
        listed = await office.ask(ListGroups())
        assert ([each.group for each in listed.result][-1], listed.more) == ("g17", True)
        await office.dissolve("g18")
        assert not (await office.ask(ListGroups())).more

    play(story)


# Rights.


def test_a_group_is_its_creators_and_of_the_sessions_above() -> None:
    async def story(office: Office) -> None:
        office.rights.children["boss"] = {"pm"}
        await office.form("ann", by="pm")
        for verb, request in (
            ("add members to", spawning(by="eve")),
            ("broadcast to", ordering(by="eve")),
            ("cancel members of", WaitForAny(group="g", from_handle="eve")),
            ("dissolve", DissolveGroup(group="g", from_handle="eve")),
            ("rename", RenameGroup(group="g", new_name="h", from_handle="eve")),
        ):
            words = f"you may not {verb} group 'g', which pm has created: only pm, the sessions"
            await office.refusals(words, request)
        assert office.open_sessions() == ["ann"]
        assert (await office.show()).broadcast is None
        id_ = await office.broadcast(by="boss")
        await office.ends("ann", "yes")
        kept = WaitForAny(group="g", from_handle="eve", cancel_losers=False)
        assert (await office.ask(kept)).reduced == "yes"
        assert (await office.replies(id_)).reduced == "yes"
        assert (await office.rename("g", "h", by="pm")).group == "h"
        assert (await office.dissolve("h")).state == "dissolved"
        await office.form("bob")
        await office.refusals("which a person has created: only a person", ordering(by="pm"))

    play(story)


def test_an_agent_gives_no_work_that_it_may_not_give() -> None:
    async def story(office: Office) -> None:
        office.rights.no_work.add("eve")
        await office.refusals("eve may not use p", spawning(by="eve"), mixing("p", by="eve"))
        assert office.files() == []

    play(story)


def test_an_order_counts_as_a_message_to_each_member_but_once_only() -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE, by="pm")
        await office.broadcast(by="pm", key="k")
        assert office.rights.sent == {"pm": 3}
        await office.broadcast(by="pm", key="k")
        await office.refusals("still waits for", ordering("more", by="pm"))
        assert office.rights.sent == {"pm": 3}
        for each in THREE:
            await office.ends(each)
        office.rights.no_messages.add("pm")
        await office.refusals("pm may not send 3 messages", ordering("more", by="pm"))
        assert await office.broadcast(by="pm", key="k")
        assert await office.broadcast("of a person")

    play(story)


# Broadcasts.


def test_each_member_gets_the_order_once_and_the_reply_is_that_of_its_turn() -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE)
        waits = office.waits_for_all()
        await office.settles()
        assert "group 'g' has had no broadcast" in str(waits.error)
        id_ = await office.broadcast(" find it\n", output_format="a word", boundaries="no writes")
        for each in THREE:
            [order] = office.member(each).messages
            assert order.sender == f"group:g/broadcast:{id_}"
            assert order.body.endswith(
                "Objective:\nfind it\n\nOutput format:\na word\n\nBoundaries:\nno writes"
            )
        waits = office.waits_for_all(reducer="join_by_handle")
        for each in ("cid", "ann", "bob"):
            assert not waits.has_come
            await office.ends(each, f"by {each}")
        found = waits.value
        assert (found.broadcast_id, found.order) == (id_, ["cid", "ann", "bob"])
        assert found.by_member == {each: f"by {each}" for each in THREE}
        assert found.reduced == "ann:\nby ann\n\nbob:\nby bob\n\ncid:\nby cid"
        assert (found.metadata.is_over, found.metadata.timed_out) == (True, False)
        assert found.metadata.reducer == "join_by_handle"
        part = found.metadata.members["ann"]
        assert (part.status, part.reason, part.state, part.is_cut) == ("replied", "", None, False)
        assert part.at is not None
        assert {office.member(each).turn for each in THREE} == {1}

    play(story)


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_broadcast_is_acknowledged_and_delivered_once_it_is_durable(*, power_fails: bool) -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        sent = office.ask_soon(ordering())
        await office.until(lambda: sent.has_come)
        await office.stop(power_fails=power_fails)
        await office.start()
        await office.settles()
        assert (await office.statuses(sent.value.broadcast_id)) == {"ann": "pending"}
        assert office.orders("ann") == ["do"]
        office.plan.refuses = {"fdatasync"}
        await office.ends("ann", "yes")
        await office.stop()
        office.plan.refuses = ()
        await office.start()
        await office.settles()
        assert (await office.replies()).by_member == {"ann": "yes"}
        assert office.member("ann").turn == 1

    play(story)


def test_a_refused_broadcast_reaches_nobody() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        office.plan.refuses = {"fdatasync"}
        refused = office.ask_soon(ordering(key="k"))
        await office.yields()
        await office.refusals("still waits for ann in broadcast", ordering("more"))
        await office.settles()
        assert FULL in str(refused.error)
        office.plan.refuses = ()
        await office.passes(10)
        assert office.orders("ann") == []
        assert (await office.show()).broadcast is None
        await office.broadcast("another", key="k")
        assert office.orders("ann") == ["another"]

    play(story)


def test_a_group_has_one_broadcast_at_a_time() -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE)
        id_ = await office.broadcast()
        await office.ends("ann")
        await office.refusals(
            f"group 'g' still waits for bob, cid in broadcast {id_}: wait with aegis_group_wait_",
            ordering("another"),
        )
        for each in ("bob", "cid"):
            await office.ends(each)
        assert await office.broadcast("another") != id_
        await office.form(*"mnopqrs", group="big")
        await office.broadcast(group="big")
        words = "still waits for m, n, o, p, q and 2 others in"
        await office.refusals(words, ordering("more", group="big"))

    play(story)


def test_a_key_sends_nothing_again_also_after_a_restart_and_not_another_text() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        id_ = await office.broadcast(key="k", by=None)
        for _ in range(2):
            assert await office.broadcast(key="k") == id_
            await office.restart(power_fails=True)
        await office.ends("ann", "yes")
        for _ in range(2):
            assert await office.broadcast(key="k") == id_
            words = f"the key 'k' belongs to broadcast {id_}, which has another text"
            await office.refusals(words, ordering("another", key="k"))
            await office.restart()
        assert office.orders("ann") == ["do"]
        assert await office.broadcast("another") != id_
        await office.ends("ann")
        office.rights.children["pm"] = {"pm"}
        await office.form("bob", group="h", by="pm")
        own = await office.broadcast(group="h", by="pm", key="k")
        await office.ends("bob")
        assert await office.broadcast("another", group="h", key="k") != own

    play(story)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"objective": " \n"}, "the objective is empty"),
        ({"objective": "\udc80"}, "not valid Unicode"),
        ({"key": "\ud800"}, "not valid Unicode"),
        ({"boundaries": "\ud800"}, "not valid Unicode"),
        ({"output_format": "\ud800"}, "not valid Unicode"),
        ({"tool_guidance": "\ud800"}, "not valid Unicode"),
        ({"group": "G2"}, "there is no group 'G2'"),
    ],
)
def test_an_order_that_cannot_be_carried_out_is_refused(fields: dict[str, Any], words: str) -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        await office.refusals(words, ordering(**{"objective": "do", **fields}))
        assert (await office.show()).broadcast is None
        assert await office.broadcast()

    play(story)


def test_a_group_whose_members_are_being_started_gets_no_order_and_is_not_dissolved() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        office.agents.holds_spawns = True
        office.ask_soon(spawning("bob"))
        await office.settles()
        assert (await office.show()).forming == 1
        words = "members of group 'g' are still being started; try again in a moment"
        await office.refusals(words, ordering(), DissolveGroup(group="g"))
        await office.refusals("has 2 members already", mixing("p"))

    play(story)


def test_a_group_gets_no_order_before_it_is_stored_that_no_member_could_be_started() -> None:
    async def story(office: Office) -> None:
        office.agents.refuses_spawn["bad"] = "no session is left"
        office.agents.closing_fails = True
        refused = office.ask_soon(mixing("a", "bad"))
        await office.settles()
        office.plan.refuses = {"fdatasync"}
        office.agents.closing_fails = False
        await office.passes(3)
        assert not refused.has_come
        await office.refusals("are still being started", ordering(), DissolveGroup(group="g"))
        office.plan.refuses = ()
        await office.passes(6)
        assert str(refused.error) == "no session is left"
        await office.restart(power_fails=True)
        assert await office.listed() == []

    play(story)


def test_an_unknown_group_is_refused_with_the_nearest_one() -> None:
    async def story(office: Office) -> None:
        words = "there is no group 'reviewers'; there is none; aegis_group_spawn creates one"
        await office.refusals(words, ordering(group="reviewers"))
        await office.form("ann", group="reviewers")
        await office.form("bob", group="jury")
        await office.refusals("did you mean 'reviewers'?", ordering(group="reviewer"))
        await office.refusals("there are: jury, reviewers;", ShowGroup(group="zzzz"))
        words = "group 'jury' has had no broadcast; aegis_group_broadcast first"
        await office.refusals(words, WaitForAll(group="jury"))
        unknown = WaitForAll(group="jury", broadcast_id="0" * 26)
        await office.refusals(f"has no broadcast {'0' * 26}, or keeps it no more", unknown)

    play(story)


# Replies.


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_reply_is_durable_before_it_is_shown(*, power_fails: bool) -> None:
    async def story(office: Office) -> None:
        await office.form("ann", by="pm")
        id_ = await office.broadcast(by="pm")
        waits = [office.waits_for_all(), office.waits_for_any(cancel_losers=False)]
        office.plan.refuses = {"fdatasync"}
        await office.ends("ann", "yes")
        await office.passes(20)
        assert not any(each.has_come for each in waits)
        assert office.notification(id_) is None
        assert await office.statuses() == {"ann": "pending"}
        office.plan.refuses = ()
        await office.until(lambda: all(each.has_come for each in waits))
        assert [each.value.by_member for each in waits] == [{"ann": "yes"}] * 2
        office.agents.purge(office.member("ann"))
        await office.restart(power_fails=power_fails)
        assert (await office.replies(id_)).by_member == {"ann": "yes"}

    play(story)


def test_the_first_end_of_a_member_counts() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        id_ = await office.broadcast()
        await office.ends("ann", "first")
        await office.has_turn_of_its_own("ann", "second")
        office.agents.close(office.member("ann"))
        await office.restart()
        assert (await office.replies(id_)).by_member == {"ann": "first"}

    play(story)


def test_a_reply_is_credited_to_its_broadcast_only() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        first = await office.broadcast("one")
        await office.begins("bob")
        await office.ends("ann", "quick")
        found = (await office.ask(WaitForAny(group="g"))).metadata.members
        assert [each.status for each in found.values()] == ["replied", "cancelled"]
        second = await office.broadcast("two")
        assert await office.statuses(second) == {"ann": "pending", "bob": "pending"}
        for each in ("ann", "bob"):
            await office.ends(each, "fresh")
        for _ in range(2):
            assert {*(await office.replies(second)).by_member.values()} == {"fresh"}
            assert (await office.replies()).broadcast_id == second
            assert (await office.replies(first)).by_member == {"ann": "quick"}
            await office.restart(power_fails=True)

    play(story)


def test_a_reply_that_comes_while_it_is_given_up_is_no_reply_to_the_next_broadcast() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        first = await office.broadcast("one")
        await office.begins("ann", "bob")
        await office.ends("ann", "quick")
        waits = office.waits_for_any()
        await office.yields()
        office.agents.end(office.member("bob"), text="late")  # the loser is being written
        await office.settles()
        assert waits.value.by_member == {"ann": "quick"}
        second = await office.broadcast("two")
        await office.settles()
        for _ in range(2):
            assert await office.statuses(second) == {"ann": "pending", "bob": "pending"}
            assert await office.statuses(first) == {"ann": "replied", "bob": "cancelled"}
            await office.restart()

    play(story)


def test_a_wait_names_the_members_that_have_not_replied() -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE, "dan")
        await office.broadcast()
        await office.ends("cid", "yes")
        await office.ends("ann", "said last", "interrupted")
        await office.begins("bob")
        bob = office.member("bob")
        bob.state = "blocked"
        bob.blocked = Blocked(kind="permission", request_id="r", title="rm -rf /", since="")
        office.member("dan").limited_until = "noon"
        waits = office.waits_for_all(timeout=30, reducer="last_wins")
        await office.passes(29)
        assert not waits.has_come
        await office.passes(1)
        found = waits.value
        assert (found.by_member, found.order, found.reduced) == ({"cid": "yes"}, ["cid"], "yes")
        assert (found.metadata.timed_out, found.metadata.is_over) == (True, False)
        parts = found.metadata.members
        assert [parts[each].status for each in (*THREE, "dan")] == [
            "interrupted",
            "pending",
            "replied",
            "pending",
        ]
        assert parts["ann"].reason == "its turn was interrupted: it said so"
        assert (parts["bob"].state, parts["bob"].reason) == ("blocked", "permission: rm -rf /")
        assert (parts["dan"].state, parts["dan"].reason) == ("idle", "its usage limit ends at noon")
        assert (parts["ann"].state, parts["bob"].at) == (None, None)

    play(story)


def test_the_states_of_sessions_that_do_not_report_are_left_out() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        await office.broadcast()
        office.agents.silent.add(office.member("ann").id)
        shown = office.ask_soon(ShowGroup(group="g"))
        waits = office.waits_for_all(timeout=0)
        await office.passes(2)
        assert not shown.has_come
        await office.passes(2)
        assert [each.state for each in shown.value.members] == [None, "idle"]
        states = {name: each.state for name, each in waits.value.metadata.members.items()}
        assert states == {"ann": None, "bob": "idle"}

    play(story)


@pytest.mark.parametrize(
    ("outcome", "status", "words"),
    [
        ("failed", "failed", "its turn failed: it said so"),
        ("interrupted", "interrupted", "its turn was interrupted: it said so"),
        ("limited", "limited", "its turn was refused by a usage limit: it said so"),
        ("cancelled", "cancelled", "its turn was cancelled: it said so"),
    ],
)
def test_a_turn_without_a_reply_ends_the_part_of_its_member(
    outcome: str, status: str, words: str
) -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob", by="pm")
        id_ = await office.broadcast(by="pm")
        waits = office.waits_for_all()
        await office.ends("ann", "so far", outcome)
        await office.ends("bob", "yes")
        found = waits.value
        assert (found.by_member, found.reduced) == ({"bob": "yes"}, "yes")
        part = found.metadata.members["ann"]
        assert (part.status, part.reason) == (status, words)
        message = office.notification(id_)
        assert message is not None
        assert message.status == "error"
        assert f"ann: {status}, {words}" in message.body
        assert office.cancellations("ann") == []

    play(story)


def test_members_that_are_closed_purged_or_broken_are_lost() -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE, "dan")
        await office.broadcast()
        waits = office.waits_for_all()
        await office.begins("ann")
        office.agents.close(office.member("bob"))
        office.agents.purge(office.member("cid"))
        dan = office.member("dan")
        dan.state, dan.reason = "error", "its program is not installed"
        office.agents.add(dan, "note")
        await office.settles()
        statuses = await office.statuses()
        assert statuses == {"ann": "pending", "bob": "lost", "cid": "lost", "dan": "lost"}
        office.agents.close(office.member("ann"))
        await office.settles()
        parts = waits.value.metadata.members
        assert (waits.value.reduced, waits.value.order) == (None, [])
        assert parts["ann"].status == "cancelled"
        assert parts["bob"].reason == "its session was closed before it read the message"
        assert "there is no agent" in parts["cid"].reason
        assert parts["dan"].reason == "its program is not installed"
        assert [each.handle for each in (await office.show()).members] == [*THREE, "dan"]

    play(story)


def test_waits_can_be_repeated_and_several_callers_get_the_same() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        id_ = await office.broadcast()
        waits = [office.waits_for_all(), office.waits_for_any(cancel_losers=False)]
        async with office.gives_up():
            await office.ask(WaitForAll(group="g"))
        await office.ends("ann", "yes")
        assert [each.value.reduced for each in waits] == ["yes", "yes"]
        for again in (office.waits_for_all, office.waits_for_any, office.waits_for_all):
            found = again(broadcast_id=id_)
            await office.settles()
            assert (found.value.reduced, found.value.metadata.timed_out) == ("yes", False)
            await office.restart()

    play(story)


def test_a_wait_is_for_its_broadcast_only() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        await office.form("bob", group="h")
        await office.broadcast()
        await office.broadcast(group="h")
        waits = office.waits_for_all()
        await office.ends("bob", "of another group")
        assert not waits.has_come
        await office.ends("ann", "yes")
        assert waits.value.by_member == {"ann": "yes"}

    play(story)


def test_replies_become_one_text_in_the_way_that_a_caller_wants() -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE)
        await office.broadcast()
        for handle, text in (("cid", "yes"), ("bob", "No\n"), ("ann", " no")):
            await office.ends(handle, text)
        texts: dict[Reducer, str] = {
            "concat": "yes\n\nNo\n\n\n no",
            "join_by_handle": "ann:\n no\n\nbob:\nNo\n\n\ncid:\nyes",
            "last_wins": " no",
            "majority_vote": "No\n",
        }
        for reducer, text in texts.items():
            found = await office.ask(WaitForAll(group="g", reducer=reducer))
            assert (found.reduced, found.metadata.reducer) == (text, reducer)

    play(story)


def test_a_long_reply_is_cut_and_marked() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        await office.broadcast()
        await office.ends("ann", "x" * (MAX_REPLY_CHARS + 1))
        await office.ends("bob", "x" * MAX_REPLY_CHARS)
        found = await office.replies()
        assert {len(each) for each in found.by_member.values()} == {MAX_REPLY_CHARS}
        assert [each.is_cut for each in found.metadata.members.values()] == [True, False]
        await office.broadcast("another")
        await office.ends("ann", "y", truncated=True)
        assert (await office.replies()).metadata.members["ann"].is_cut

    play(story)


@pytest.mark.parametrize("letter", ["x", '"', "\x01"])
def test_the_longest_replies_of_the_largest_group_fit_into_one_answer(letter: str) -> None:
    async def story(office: Office) -> None:
        info = await office.ask(mixing(*["p" * 58] * MAX_MEMBERS, by="pm"))
        id_ = await office.broadcast(by="pm")
        for number, member in enumerate(info.members):
            text = letter * (50_000 if number else 2_000)
            office.agents.begin(office.member(member.handle))
            office.agents.end(office.member(member.handle), text=text)
        await office.settles()
        found = await office.replies()
        first, *others = [each.is_cut for each in found.metadata.members.values()]
        assert (first, {*others}) == (letter == "\x01", {True})
        size = len(json.dumps(to_plain(found), ensure_ascii=False))
        assert 2 * 150_000 * 0.9 < size < MAX_REPLY_BYTES
        assert len(json.dumps(to_plain(await office.show()))) < MAX_REPLY_BYTES
        message = office.notification(id_)
        assert message is not None
        assert len(message.body) <= MAX_BODY_CHARS
        for member in info.members:
            assert f"{member.handle}:\n{3 * letter}" in message.body

    play(story)


def test_a_long_reason_is_cut() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        await office.broadcast()
        ann, bob = office.member("ann"), office.member("bob")
        ann.state, ann.reason = "error", "x" * 600
        office.agents.add(ann, "note")
        bob.reason = "y" * 600
        await office.settles()
        parts = (await office.replies()).metadata.members
        assert (parts["ann"].reason, parts["bob"].reason) == ("x" * 500, "y" * 500)

    play(story)


# The first reply.


@pytest.mark.parametrize("is_early", [False, True])
def test_the_first_reply_ends_a_wait_for_any_and_the_losers_are_cancelled(
    *, is_early: bool
) -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE, by="pm")
        id_ = await office.broadcast(by="pm")
        await office.begins("ann")
        early = office.waits_for_any() if is_early else None
        await office.ends("bob", "winner")
        answer = early or office.waits_for_any(by="pm")
        await office.settles()
        found = answer.value
        assert (found.reduced, found.order, found.by_member) == (
            "winner",
            ["bob"],
            {"bob": "winner"},
        )
        assert (found.metadata.reducer, found.metadata.is_over) == (None, True)
        for each in ("ann", "cid"):
            part = found.metadata.members[each]
            assert (part.status, part.reason) == ("cancelled", "another member's reply was taken")
            [cancellation] = office.cancellations(each)
            assert cancellation.sender == f"group:g/cancel:{id_}"
            assert cancellation.body.startswith(
                f"another member's reply was taken: your reply to broadcast {id_} is not awaited"
            )
        assert office.cancellations("bob") == []
        assert sorted(each for each, _ in office.agents.withdrawn) == ["ann", "cid"]
        assert (office.member("ann").state, office.member("cid").turn) == ("idle", 0)
        message = office.notification(id_)
        assert message is not None
        assert (message.status, message.handle, message.sender) == ("ok", "pm", "group:g")
        assert await office.broadcast("another", by="pm")

    play(story)


def test_a_loser_is_not_interrupted_before_the_winner_is_durable() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        await office.broadcast()
        await office.begins("ann", "bob")
        waits = office.waits_for_any()
        office.agents.end(office.member("ann"), text="winner")
        await office.until(lambda: bool(office.agents.withdrawn))
        office.agents.purge(office.member("ann"))
        await office.restart(power_fails=True)
        assert not waits.has_come or waits.error is not None or waits.value.order == ["ann"]
        assert (await office.replies()).by_member == {"ann": "winner"}
        assert await office.statuses() == {"ann": "replied", "bob": "cancelled"}

    play(story)


def test_a_member_that_failed_does_not_win() -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE)
        await office.broadcast()
        waits = [office.waits_for_any(cancel_losers=each) for each in (True, False)]
        await office.ends("ann", "", "failed")
        assert not any(each.has_come for each in waits)
        await office.ends("bob", "yes")
        assert [each.value.reduced for each in waits] == ["yes", "yes"]
        assert [each for each, _ in office.agents.withdrawn] == ["cid"]

    play(story)


def test_a_wait_for_any_ends_when_no_reply_is_awaited_any_more() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        await office.broadcast()
        waits = [office.waits_for_any(cancel_losers=each) for each in (True, False)]
        for each in ("ann", "bob"):
            await office.ends(each, "", "failed")
        assert [(each.value.reduced, each.value.metadata.is_over) for each in waits] == [
            (None, True),
            (None, True),
        ]

    play(story)


def test_without_cancel_losers_the_others_continue() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        await office.broadcast()
        waits = office.waits_for_any(cancel_losers=False)
        await office.ends("ann", "first")
        assert (waits.value.reduced, waits.value.metadata.is_over) == ("first", False)
        await office.ends("bob", "second")
        assert office.agents.withdrawn == []
        assert (await office.replies()).reduced == "first\n\nsecond"

    play(story)


def test_if_the_disk_refuses_to_drop_losers_their_replies_count() -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE)
        await office.broadcast()
        await office.begins("bob", "cid")
        await office.ends("ann", "first")
        office.plan.refuses = {"fdatasync"}
        waits = office.waits_for_any()
        await office.yields()
        office.agents.end(office.member("bob"), text="second")
        await office.settles()
        assert FULL in str(waits.error)
        office.plan.refuses = ()
        await office.passes(10)
        assert await office.statuses() == {"ann": "replied", "bob": "replied", "cid": "pending"}
        assert (office.agents.withdrawn, office.cancellations("cid")) == ([], [])
        await office.ends("cid", "third")
        await office.restart(power_fails=True)
        assert (await office.replies()).reduced == "first\n\nsecond\n\nthird"

    play(story)


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_restart_tells_the_losers_that_were_not_told(*, power_fails: bool) -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE)
        await office.broadcast()
        await office.begins(*THREE)
        await office.ends("ann", "winner")
        office.agents.delivering_fails = True
        found = await office.ask(WaitForAny(group="g"))
        assert found.metadata.is_over
        await office.settles()
        assert len(office.agents.withdrawn) == 2
        await office.stop(power_fails=power_fails)
        office.agents.delivering_fails = False
        await office.start()
        await office.settles()
        for each in ("bob", "cid"):
            assert len(office.cancellations(each)) == 1
        office.agents.delivered.clear()
        await office.restart(power_fails=True)
        assert not office.agents.delivered
        assert office.cancellations("ann") == []

    play(story)


def test_a_loser_that_is_closed_gets_no_message() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        await office.broadcast()
        await office.ends("ann", "winner")
        office.agents.silent.add(office.member("bob").id)
        waits = office.waits_for_any()
        await office.settles()
        assert waits.has_come
        office.agents.silent.clear()
        office.agents.close(office.member("bob"))
        await office.passes(20)
        assert (office.cancellations("bob"), office.agents.withdrawn) == ([], [])
        office.agents.delivered.clear()
        await office.restart()
        assert not office.agents.delivered

    play(story)


# The message to the sender.


def test_a_sender_is_notified_once_and_only_if_it_wants() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob", by="pm")
        silent = await office.broadcast(by="pm", callback=False)
        for each in ("ann", "bob"):
            await office.ends(each, "yes")
        assert office.notification(silent) is None
        id_ = await office.broadcast("another", by="pm")
        await office.ends("ann", "one")
        assert office.notification(id_) is None
        await office.ends("bob", "two")
        message = office.notification(id_)
        assert message is not None
        assert (message.handle, message.sender, message.status) == ("pm", "group:g", "ok")
        assert message.body == (
            f"broadcast {id_} is over: 2 of 2 members have replied\n\nann:\none\n\nbob:\ntwo"
        )
        office.agents.delivered.clear()
        await office.restart(power_fails=True)
        await office.restart()
        assert not office.agents.delivered
        own = await office.broadcast("of a person")
        for each in ("ann", "bob"):
            await office.ends(each, "", "failed")
        message = office.notification(own)
        assert message is not None
        assert (message.handle, message.status) == ("human", "error")

    play(story)


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_restart_notifies_the_sender_that_was_not_notified(*, power_fails: bool) -> None:
    async def story(office: Office) -> None:
        await office.form("ann", by="pm")
        id_ = await office.broadcast(by="pm")
        office.agents.delivering_fails = True
        await office.ends("ann", "yes")
        assert office.notification(id_) is None
        await office.stop(power_fails=power_fails)
        office.agents.delivering_fails = False
        await office.start()
        await office.settles()
        assert office.notification(id_) is not None
        assert office.agents.delivered[f"broadcast:{id_}/end"] == 1

    play(story)


def test_a_refused_note_that_the_sender_was_notified_is_written_again() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", by="pm")
        id_ = await office.broadcast(by="pm")
        office.agents.begin(office.member("ann"))
        office.agents.end(office.member("ann"), text="yes")
        await office.until(lambda: office.notification(id_) is not None)
        office.plan.refuses = WRITES
        await office.passes(20)
        office.plan.refuses = ()
        await office.passes(10)
        await office.restart(power_fails=True)
        assert office.agents.delivered[f"broadcast:{id_}/end"] == 1

    play(story)


# Restarts.


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_restart_follows_the_members_that_have_not_replied(*, power_fails: bool) -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE)
        id_ = await office.broadcast()
        await office.begins("ann")
        await office.ends("bob", "yes")
        waits = office.waits_for_all()
        office.agents.delivered.clear()
        await office.stop(power_fails=power_fails)
        assert waits.error is not None
        office.agents.end(office.member("ann"), text="meanwhile")
        await office.start()
        await office.settles()
        statuses = {"ann": "replied", "bob": "replied", "cid": "pending"}
        assert await office.statuses(id_) == statuses
        await office.ends("cid", "later")
        assert (await office.replies()).order == ["bob", "ann", "cid"]
        assert {office.member(each).turn for each in THREE} == {1}
        assert {*office.agents.delivered} <= {
            f"broadcast:{id_}/{office.member('cid').id}",
            f"broadcast:{id_}/end",
        }

    play(story)


def test_an_earlier_reply_of_a_member_is_not_read_again() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        places = []
        follow = office.agents.follow

        def noting(request: Any, reply: Any) -> None:
            places.append(request.place and request.place.seq)
            follow(request, reply)

        await office.broadcast("one")
        await office.ends("ann", "yes")
        office.agents.follow = noting  # type: ignore[method-assign]
        await office.broadcast("two")
        assert 0 not in places
        await office.ends("ann", "again")
        assert (await office.replies()).reduced == "again"

    play(story)


# The group as a whole.


def test_a_rename_keeps_everything_and_the_old_name_stays_an_alias() -> None:
    async def story(office: Office) -> None:
        group = await office.form("ann")
        id_ = await office.broadcast()
        info = await office.rename("g", "reviewers")
        assert (info.group, info.aliases, info.id) == ("reviewers", ["g"], group.id)
        await office.restart(power_fails=True)
        for name in ("g", "G", "reviewers"):
            assert (await office.show(name)).id == group.id
        await office.ends("ann", "yes")
        assert (await office.replies(id_, "g")).reduced == "yes"
        assert (await office.rename("reviewers", "reviewers")).aliases == ["g"]
        assert (await office.rename("reviewers", "g")).aliases == ["reviewers"]
        assert office.files() == ["/state/groups/g.jsonl"]
        await office.broadcast("again", by=None)
        assert office.member("ann").messages[-1].sender.startswith("group:g/")

    play(story)


def test_no_group_gets_the_name_or_an_alias_of_another() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", group="one")
        two = await office.form("bob", group="two")
        await office.rename("one", "three")
        words = "is or was that of another group; choose another one"
        for taken in ("one", "THREE"):
            await office.refusals(words, RenameGroup(group="two", new_name=taken))
        await office.refusals("has 1 members already", mixing("p", group="one"))
        await office.restart()
        await office.refusals(words, RenameGroup(group="two", new_name="one"))
        assert (await office.show("two")).id == two.id
        await office.dissolve("one")
        assert (await office.rename("two", "one")).group == "one"

    play(story)


def test_a_name_that_is_being_stored_is_taken() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", group="one")
        await office.form("bob", group="two")
        office.plan.refuses = {"fdatasync"}
        refused = office.ask_soon(RenameGroup(group="one", new_name="new"))
        await office.yields()
        words = " is or was that of another group"
        await office.refusals(words, RenameGroup(group="two", new_name="NEW"))
        await office.refusals(words, spawning(group="New"))
        await office.settles()
        assert FULL in str(refused.error)
        assert (await office.show("one")).group == "one"
        office.plan.refuses = ()
        await office.passes(6)
        assert (await office.rename("two", "new")).group == "new"
        await office.restart(power_fails=True)
        assert [each.group for each in await office.listed()] == ["new", "one"]

    play(story)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_name_that_was_refused_is_taken_until_the_disk_accepts(*, is_killed: bool) -> None:
    async def story(office: Office) -> None:
        await office.form("ann", group="one")
        await office.form("bob", group="two")
        office.plan.refuse_one("fdatasync", 1)
        await office.refusals(FULL, RenameGroup(group="one", new_name="new"))
        office.plan.refuse_one("fdatasync", 1)
        await office.refusals(FULL, spawning(group="other"))
        for name in ("new", "OTHER"):
            words = "is or was that of another group"
            await office.refusals(words, RenameGroup(group="two", new_name=name))
        if is_killed:  # the line may be in the ledger
            await office.restart()
        else:
            await office.passes(6)
            assert (await office.rename("two", "new")).group == "new"
            assert (await office.rename("two", "other")).group == "other"
        names = [name for each in await office.listed() for name in (each.group, *each.aliases)]
        assert len(names) == len({*names})

    play(story)


def test_each_name_that_is_being_stored_for_a_group_is_taken() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", group="one")
        await office.form("bob", group="two")
        renames = [("one", "other"), ("one", "new"), ("two", "other")]
        answers = [office.ask_soon(RenameGroup(group=old, new_name=new)) for old, new in renames]
        await office.settles()
        names = [name for each in await office.listed() for name in (each.group, *each.aliases)]
        assert sorted(names) == ["new", "one", "other", "two"]
        assert sum(each.error is not None for each in answers) == 1

    play(story)


def test_dissolving_closes_the_members_and_ends_what_is_awaited() -> None:
    async def story(office: Office) -> None:
        group = await office.form("ann", "bob", by="pm")
        id_ = await office.broadcast(by="pm")
        await office.begins("bob")
        waits = office.waits_for_all()
        await office.ends("ann", "yes")
        office.agents.closing_fails = True
        dissolved = [office.ask_soon(DissolveGroup(group=each)) for each in ("g", "G")]
        await office.passes(2)
        found = waits.value
        assert (found.by_member, found.metadata.is_over) == ({"ann": "yes"}, True)
        part = found.metadata.members["bob"]
        assert (part.status, part.reason) == ("cancelled", "the group was dissolved")
        assert (await office.show()).state == "dissolving"
        words = "group 'g' is being dissolved; choose another name, or wait"
        rename = RenameGroup(group="g", new_name="h")
        await office.refusals(words, ordering("more"), spawning(), rename)
        late = office.ask_soon(DissolveGroup(group="g"))
        await office.settles()
        assert not any(each.has_come for each in dissolved)
        office.agents.closing_fails = False
        await office.passes(2)
        assert [each.value.state for each in (*dissolved, late)] == ["dissolved"] * 3
        assert (office.open_sessions(), office.agents.withdrawn) == ([], [])
        assert office.cancellations("bob") == []
        message = office.notification(id_)
        assert message is not None
        assert (message.status, message.body.splitlines()[0]) == (
            "ok",
            f"broadcast {id_} is over: 1 of 2 members have replied",
        )
        await office.refusals("there is no group 'g'", ShowGroup(group="g"), ordering())
        again = await office.form("cid")
        assert again.id != group.id
        await office.restart(power_fails=True)
        assert [each.id for each in await office.listed()] == [again.id]
        assert office.open_sessions() == ["cid"]
        await office.refusals("has had no broadcast", WaitForAll(group="g"))

    play(story)


def test_the_sender_gets_its_message_although_the_group_is_dissolved() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", by="pm")
        id_ = await office.broadcast(by="pm")
        office.agents.delivering_fails = True
        assert (await office.dissolve(by="pm")).state == "dissolved"
        assert office.notification(id_) is None
        again = await office.form("bob")
        await office.stop()
        office.agents.delivering_fails = False
        await office.start()
        await office.passes(2)
        message = office.notification(id_)
        assert message is not None
        assert (
            "0 of 1 members have replied\nann: cancelled, the group was dissolved" in message.body
        )
        assert message.status == "error"
        assert [each.id for each in await office.listed()] == [again.id]

    play(story)


def test_groups_that_are_gone_leave_no_open_files() -> None:
    async def story(office: Office) -> None:
        office.agents.refuses_spawn["bad"] = "no session is left"
        counts = []
        for number in range(3):
            await office.form(f"m{number}", group=f"g{number}")
            await office.broadcast(group=f"g{number}")
            await office.dissolve(f"g{number}")
            await office.refusals("no session is left", spawning(group=f"h{number}", profile="bad"))
            await office.settles()
            counts.append(office.disk.model.open_count)
        assert len({*counts}) == 1
        await office.restart()
        assert office.disk.model.open_count <= counts[0]

    play(story)


def test_groups_whose_start_was_refused_leave_no_open_files() -> None:
    async def story(office: Office) -> None:
        counts = []
        for number in range(3):
            office.plan.refuse_one("fdatasync", 1)
            await office.refusals(FULL, spawning(group=f"g{number}"))
            await office.passes(10)
            counts.append(office.disk.model.open_count)
        assert len({*counts}) == 1

    play(story)


def test_a_purged_member_does_not_keep_a_group() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob")
        office.agents.purge(office.member("ann"))
        assert (await office.dissolve()).state == "dissolved"
        assert office.open_sessions() == []

    play(story)


def test_a_group_whose_end_is_being_stored_gets_nothing_more() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        gone = office.ask_soon(DissolveGroup(group="g"))
        await office.yields()
        rename = RenameGroup(group="g", new_name="h")
        await office.refusals("is being dissolved", spawning(), ordering(), rename)
        await office.settles()
        assert gone.value.state == "dissolved"

    play(story)


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_restart_goes_on_dissolving(*, power_fails: bool) -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob", by="pm")
        id_ = await office.broadcast(by="pm")
        office.agents.closing_fails = True
        office.ask_soon(DissolveGroup(group="g"))
        await office.settles()
        await office.stop(power_fails=power_fails)
        office.agents.closing_fails = False
        await office.start()
        await office.settles()
        assert await office.listed() == []
        assert office.open_sessions() == []
        message = office.notification(id_)
        assert message is not None
        assert "0 of 2 members have replied" in message.body

    play(story)


def test_if_the_disk_refuses_to_dissolve_the_group_stays() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        await office.broadcast()
        office.plan.refuses = {"fdatasync"}
        tries = [office.ask_soon(DissolveGroup(group="g")) for _ in range(2)]
        await office.settles()
        assert all(FULL in str(each.error) for each in tries)
        assert (await office.show()).state == "open"
        office.plan.refuses = ()
        await office.passes(10)
        assert office.open_sessions() == ["ann"]
        await office.ends("ann", "yes")
        assert (await office.replies()).reduced == "yes"
        assert await office.broadcast("more")
        assert (await office.dissolve()).state == "dissolved"

    play(story)


def test_an_end_that_the_disk_refuses_is_written_later() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        office.agents.closing_fails = True
        gone = office.ask_soon(DissolveGroup(group="g"))
        await office.settles()
        office.plan.refuses = {"fdatasync"}
        office.agents.closing_fails = False
        await office.passes(10)
        assert (gone.has_come, office.open_sessions()) == (False, [])
        office.plan.refuses = ()
        await office.passes(6)
        assert gone.value.state == "dissolved"
        await office.restart(power_fails=True)
        assert await office.listed() == []

    play(story)


@pytest.mark.parametrize("power_fails", [False, True])
def test_replies_that_a_dissolved_group_does_not_await_end_although_the_disk_refuses(
    *, power_fails: bool
) -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob", by="pm")
        id_ = await office.broadcast(by="pm")
        waits = office.waits_for_all()
        office.plan.refuse_one("fdatasync", 2)
        gone = office.ask_soon(DissolveGroup(group="g"))
        await office.settles()
        assert (gone.has_come, waits.has_come) == (False, False)
        if power_fails:
            await office.restart(power_fails=True)
        await office.passes(6)
        assert power_fails or (gone.value.state, waits.value.metadata.is_over) == (
            "dissolved",
            True,
        )
        message = office.notification(id_)
        assert message is not None
        assert "0 of 2 members have replied" in message.body
        assert (await office.listed(), office.open_sessions()) == ([], [])

    play(story)


def test_a_crash_of_the_desk_loses_nothing() -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE, by="pm")
        id_ = await office.broadcast(by="pm")
        await office.begins("ann")
        await office.ends("bob", "yes")
        waits = office.waits_for_all()
        await office.crashes()
        assert waits.error is not None
        assert await office.statuses() == {"ann": "pending", "bob": "replied", "cid": "pending"}
        await office.ends("ann", "after the crash")
        await office.ends("cid", "too")
        assert (await office.replies()).order == ["bob", "ann", "cid"]
        assert {office.member(each).turn for each in THREE} == {1}
        assert office.agents.delivered[f"broadcast:{id_}/end"] == 1

    play(story)


def test_a_refused_reply_is_written_before_anything_else() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        await office.broadcast()
        office.plan.refuses = WRITES
        await office.ends("ann", "it took an hour")
        await office.refusals(FULL, RenameGroup(group="g", new_name="h"))
        office.agents.purge(office.member("ann"))
        office.plan.refuses = ()
        assert (await office.rename("g", "h")).group == "h"
        assert (await office.replies()).reduced == "it took an hour"
        await office.restart(power_fails=True)
        assert (await office.replies()).reduced == "it took an hour"

    play(story)


def test_refused_members_are_told_of_once_the_disk_accepts() -> None:
    async def story(office: Office) -> None:
        office.agents.holds_spawns = True
        waits = office.ask_soon(spawning("ann"))
        await office.settles()
        office.plan.refuses = {"fdatasync"}
        office.agents.holds_spawns = False
        await office.passes(130)
        assert (waits.has_come, office.open_sessions()) == (False, ["ann"])
        assert (await office.show()).forming == 1
        office.plan.refuses = ()
        await office.passes(6)
        assert [each.handle for each in waits.value.members] == ["ann"]

    play(story)


# What is shown.


def test_a_group_is_shown_with_the_states_of_its_members() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob", by="pm")
        await office.broadcast("x" * 300, by="pm")
        await office.begins("ann")
        info = await office.show()
        assert [(each.handle, each.state) for each in info.members] == [
            ("ann", "working"),
            ("bob", "idle"),
        ]
        assert info.broadcast is not None
        assert (info.broadcast.objective, info.broadcast.is_over) == ("x" * 200, False)
        assert (info.broadcast.sender, info.broadcast.replies) == (
            "agent:pm",
            {"ann": "pending", "bob": "pending"},
        )
        await office.ends("ann", "yes")
        await office.ends("bob", "", "failed")
        [info] = await office.listed()
        assert [each.state for each in info.members] == [None, None]
        assert info.broadcast is not None
        assert (info.broadcast.is_over, info.broadcast.replies) == (
            True,
            {"ann": "replied", "bob": "failed"},
        )

    play(story)


def test_handles_are_shown_as_they_are_now() -> None:
    async def story(office: Office) -> None:
        await office.form("ann", "bob", by="pm")
        id_ = await office.broadcast(by="pm")
        office.member("ann").name = "anna"
        office.shown["pm"] = "chief"
        await office.ends("anna", "yes")
        waits = office.waits_for_all(timeout=0)
        await office.settles()
        assert waits.value.order == ["anna"]
        assert [*waits.value.metadata.members] == ["anna", "bob"]
        assert waits.value.metadata.members["bob"].state == "idle"
        info = await office.show()
        assert (info.owner, [each.handle for each in info.members]) == (
            "agent:chief",
            ["anna", "bob"],
        )
        await office.refusals("which chief has created: only chief", ordering(by="eve"))
        await office.ends("bob", "no")
        message = office.notification(id_)
        assert message is not None
        assert message.body.endswith("anna:\nyes\n\nbob:\nno")

    play(story)


def test_streams_get_each_change_of_a_group() -> None:
    async def story(office: Office) -> None:
        news = await office.news()
        assert (news.is_all, news.groups) == (True, [])
        follower = office.ask_soon(FollowGroups(place=news.place))
        await office.settles()
        assert not follower.has_come
        info = await office.form("ann")
        assert [each.forming for each in follower.value.groups] == [1]
        news = await office.news(follower.value)
        assert ([each.handle for each in news.groups[0].members], news.is_all) == (["ann"], False)
        await office.form("bob", group="other")
        news = await office.news(news)
        assert [each.group for each in news.groups] == ["other"]
        id_ = await office.broadcast()
        news = await office.news(news)
        [group] = news.groups
        assert group.broadcast is not None
        assert (group.broadcast.broadcast_id, group.broadcast.is_over) == (id_, False)
        await office.ends("ann", "yes")
        news = await office.news(news)
        assert [each.broadcast and each.broadcast.is_over for each in news.groups] == [True]
        await office.rename("g", "h")
        news = await office.news(news)
        assert [each.group for each in news.groups] == ["h"]
        await office.dissolve("h")
        news = await office.news(news)
        assert [(each.id, each.state) for each in news.groups] == [(info.id, "dissolved")]
        assert [each.group for each in (await office.news()).groups] == ["other"]
        await office.restart()
        assert (await office.news(news)).is_all

    play(story)


def test_a_refused_start_is_never_shown() -> None:
    async def story(office: Office) -> None:
        news = await office.news()
        follower = office.ask_soon(FollowGroups(place=news.place))
        office.plan.refuses = {"fdatasync"}
        refused = office.ask_soon(spawning("ann"))
        await office.yields()
        assert await office.listed() == []
        await office.refusals("there is no group 'g'", ShowGroup(group="g"), WaitForAll(group="g"))
        await office.settles()
        assert FULL in str(refused.error)
        office.plan.refuses = ()
        await office.passes(10)
        assert not follower.has_come
        assert (await office.news()).groups == []
        await office.spawn("ann")
        await office.settles()
        assert [each.group for each in follower.value.groups] == ["g"]

    play(story)


# Ledgers.


def test_a_ledger_that_cannot_be_read_keeps_its_name_and_is_read_later() -> None:
    async def story(office: Office) -> None:
        await office.form("ann")
        await office.form("bob", group="other")
        await office.stop()
        office.refuse_to_open("/g.jsonl")
        await office.start()
        await office.settles()
        words = "its ledger cannot be read, which is tried again every 5 seconds: "
        wait, gone = WaitForAll(group="g"), DissolveGroup(group="g")
        rename = RenameGroup(group="other", new_name="g")
        await office.refusals(words, spawning(), mixing("p"), ordering(), wait, gone, rename)
        broken, other = await office.listed()
        assert (broken.group, broken.id, other.group) == ("g", "", "other")
        assert broken.problem.startswith(words)
        news = await office.news()
        assert [each.problem for each in news.groups] == [broken.problem, ""]
        follower = office.ask_soon(FollowGroups(place=news.place))
        await office.settles()
        assert not follower.has_come
        office.refuse_to_open("")
        await office.passes(6)
        assert [each.handle for each in (await office.show()).members] == ["ann"]
        assert follower.value.is_all
        assert [(each.group, each.problem) for each in follower.value.groups] == [
            ("g", ""),
            ("other", ""),
        ]
        assert await office.broadcast()
        assert office.orders("ann") == ["do"]

    play(story)


@pytest.mark.parametrize("power_fails", [False, True])
def test_a_ledger_of_a_version_before_tables_is_read_and_continued(*, power_fails: bool) -> None:
    async def story(office: Office) -> None:
        # Two groups of one name in turn, of which the first is gone. One broadcast is over, one has
        # two losers, of which one was notified, one awaits a reply. A member is being started.
        # Lines of another version, and lines that cannot be understood, are between.
        await office.form(*THREE, group="copy")
        await office.stop()
        recorded = (RECORDINGS / "group_before_tables.jsonl").read_bytes()
        office.disk = office.disk_with({"g": recorded})
        ids = dict(zip(THREE, RECORDED, strict=True))
        for handle, session in ids.items():
            office.agents.sessions[session] = attrs.evolve(office.member(handle), id=session)
            del office.agents.sessions[office.agents.opened.pop(0)]
        await office.start()
        await office.settles()
        [info] = await office.listed()
        assert (info.group, info.aliases, info.owner) == ("jury", ["g"], "agent:pm")
        assert [each.handle for each in info.members] == ["ann", "bob", "cid", "dan"]
        assert office.member("dan").spawned_by == "pm"
        assert info.broadcast is not None
        assert info.broadcast.replies == {"ann": "interrupted", "bob": "replied", "cid": "pending"}
        first = await office.broadcast("the first\norder", key="k", by="pm", output_format="a word")
        found = await office.replies(first)
        assert found.by_member == {"bob": "yes", "ann": "y" * 100}
        assert found.order == ["bob", "ann"]
        assert found.metadata.members["cid"].reason == "its turn failed: it said so"
        assert len(office.orders("cid")) == 1
        await office.ends("cid", "the last one")
        last = info.broadcast.broadcast_id
        assert office.notification(last) is not None
        assert office.notification(first) is None
        assert [len(office.cancellations(each)) for each in THREE] == [0, 1, 0]
        await office.restart(power_fails=power_fails)
        assert (await office.replies(last)).by_member == {"bob": "in time", "cid": "the last one"}
        assert (await office.dissolve("g")).aliases == ["g"]
        assert office.open_sessions() == []

    play(story)


# The orders of before.


async def orders(office: Office, **fields: Any) -> GroupOrders:
    return await office.ask(ListGroupOrders(group="g", **fields))


def test_the_orders_of_a_group_are_listed_newest_first_with_replies_and_missing_members() -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE, by="pm")
        assert (await orders(office)) == GroupOrders(group="g", result=[])
        ids = []
        for number in range(3):
            ids.append(await office.broadcast(f"do {number}", by="pm"))
            await office.ends("bob", f"bob {number}")
            await office.ends("ann", f"ann {number}" * 10_000)
            if number < 2:
                await office.ends("cid", outcome="failed")
        found = await orders(office)
        assert [each.broadcast_id for each in found.result] == ids[::-1]
        newest, one, _ = found.result
        assert (newest.sender, newest.objective) == ("agent:pm", "do 2")
        assert (newest.is_over, newest.ended, newest.missing) == (False, None, ["cid"])
        assert newest.members["cid"].status == "pending"
        assert (one.is_over, one.missing, one.order) == (True, [], ["bob", "ann"])
        assert one.ended is not None
        assert one.at < one.ended
        assert one.by_member["bob"] == "bob 1"
        assert one.by_member["ann"].startswith("ann 1ann 1")
        assert len(json.dumps(one.by_member)) < 17_000
        assert (one.members["ann"].is_cut, one.members["bob"].is_cut) == (True, False)
        assert one.members["cid"].status == "failed"
        assert not found.more
        first = await orders(office, limit=1)
        assert ([each.broadcast_id for each in first.result], first.more) == ([ids[2]], True)
        older = await orders(office, before=ids[2], limit=1)
        assert ([each.broadcast_id for each in older.result], older.more) == ([ids[1]], True)
        assert (await orders(office, before=ids[0])).result == []
        await office.refusals("has no broadcast", ListGroupOrders(group="g", before="0" * 26))
        await office.refusals("no group", ListGroupOrders(group="h"))
        await office.restart(power_fails=True)
        assert await orders(office) == found

    play(story)


def test_a_list_of_orders_fits_into_a_reply_and_continues_behind_its_last_one() -> None:
    async def story(office: Office) -> None:
        await office.form(*THREE)
        for _ in range(30):
            await office.broadcast()
            for each in THREE:
                await office.ends(each, "é" * 20_000)
        known: list[str] = []
        more, before = True, None
        while more:
            page = await orders(office, limit=100, before=before)
            assert json_size(to_plain(page)) < MAX_REPLY_BYTES
            known += [each.broadcast_id for each in page.result]
            more, before = page.more, known[-1]
        assert len(known) == len({*known}) == 30

    play(story)
