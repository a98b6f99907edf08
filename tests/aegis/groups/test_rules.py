"""The rules of groups, one event after another."""

from __future__ import annotations

import pytest

from aegis.errors import AlreadyExists
from aegis.groups import events as e
from aegis.groups.checks import MAX_GROUPS
from aegis.groups.group import MAX_BROADCASTS, MAX_KEPT_CHARS, MAX_REPLY_CHARS
from aegis.groups.rules import DECIDED, DISSOLVED
from aegis.protocol.groups import MAX_MEMBERS, BroadcastSent, GroupInfo
from tests.aegis.groups.machine import Machine

# Members.


def test_members_are_opened_once_their_start_is_durable_and_counted_once_all_are() -> None:
    machine = Machine(syncs=False)
    machine.spawn(members=2, mixed=True)
    assert not machine.actions(e.Form)
    [form] = [each for each in machine.sync() if isinstance(each, e.Form)]
    assert (machine.group().members, machine.group().size) == ({}, 2)
    machine.form(form)
    assert machine.actions(e.Return) == []
    [answer] = [each for each in machine.sync() if isinstance(each, e.Return)]
    assert isinstance(answer.value, GroupInfo)
    handles = [each.handle for each in answer.value.members]
    assert handles == ["h-s1-0", "h-s1-1"]
    assert machine.kinds() == ["created", "formed"]


def test_if_one_member_cannot_be_started_all_are_closed_and_the_group_is_gone() -> None:
    machine = Machine()
    machine.spawn(members=3, mixed=True)
    [form] = machine.actions(e.Form)
    machine.fails(form)
    [undo] = machine.actions(e.Unform)
    assert machine.actions(e.Fail) == []
    machine.send(e.Unformed(group=undo.group.id, id=undo.forming.id))
    assert machine.refusal() == "no session is left"
    assert machine.actions(e.Release) == [e.Release(address="g")]
    assert machine.rules.state.find("g") is None
    machine.begin()
    assert machine.rules.state.find("g") is None
    assert machine.grown(members=1).size == 1


def test_a_member_that_cannot_be_started_leaves_the_group_as_it_was() -> None:
    machine = Machine()
    before = machine.grown(members=2)
    machine.spawn()
    [form] = machine.actions(e.Form)
    machine.fails(form, AlreadyExists("handle taken"))
    machine.send(e.Unformed(group=before.id, id=form.forming.id))
    assert machine.refusal() == "handle taken"
    assert machine.group().members == before.members
    assert machine.group().size == 2


def test_two_members_that_are_started_at_the_same_time_join_one_group() -> None:
    machine = Machine(syncs=False)
    machine.spawn()
    machine.spawn()
    forms = [each for _ in range(2) for each in machine.sync() if isinstance(each, e.Form)]
    for form in reversed(forms):
        machine.form(form)
        machine.sync()
    assert [*machine.group().members] == ["s2-0", "s1-0"]


def test_a_member_that_joins_while_the_first_one_fails_keeps_the_group() -> None:
    machine = Machine(syncs=False)
    machine.spawn()
    [form] = [each for each in machine.sync() if isinstance(each, e.Form)]
    machine.fails(form)
    machine.send(e.Unformed(group=form.group.id, id=form.forming.id))
    machine.spawn()
    machine.sync()
    [form] = [each for each in machine.sync() if isinstance(each, e.Form)]
    machine.form(form)
    machine.sync()
    machine.begin()
    assert [*machine.group().members] == ["s2-0"]


def test_a_restart_goes_on_with_members_that_are_being_started() -> None:
    machine = Machine()
    forming = machine.spawn(members=2, mixed=True)
    machine.begin()
    [form] = machine.actions(e.Form)
    assert form.forming.id == forming
    machine.form(form)
    assert machine.group().size == 2
    machine.begin()
    assert machine.actions(e.Form) == []


def test_several_members_at_once_are_for_a_new_group_only() -> None:
    machine = Machine()
    machine.grown(members=2)
    machine.spawn(members=2, mixed=True)
    assert "group 'g' has 2 members already: add one with aegis_group_spawn" in machine.refusal()


def test_groups_and_members_are_limited() -> None:
    machine = Machine()
    machine.spawn("big", MAX_MEMBERS + 1, mixed=True)
    assert f"a group has at most {MAX_MEMBERS} members" in machine.refusal()
    for number in range(MAX_GROUPS):
        machine.grown(f"g{number}", 1)
    machine.spawn("one-more")
    assert f"there are {MAX_GROUPS} groups, which is the limit" in machine.refusal()
    machine.spawn("g0")
    assert machine.actions(e.Fail) == []


def test_a_disk_that_refuses_starts_nothing() -> None:
    machine = Machine(syncs=False)
    machine.spawn()
    machine.spawn()
    machine.refuse("g")
    assert [str(each.error) for each in machine.actions(e.Fail)] == ["the disk is full"] * 2
    assert machine.rules.state.find("g") is None
    machine.spawn()
    assert [each.append.line["kind"] for each in machine.actions(e.Write)] == ["created"]


# Broadcasts.


def test_a_broadcast_is_acknowledged_and_delivered_once_it_is_durable() -> None:
    machine = Machine()
    machine.grown()
    machine.syncs = False
    id_ = machine.broadcast()
    assert not [*machine.actions(e.Return), *machine.actions(e.Follow)]
    done = machine.sync()
    [sent] = [each.value for each in done if isinstance(each, e.Return)]
    assert sent == BroadcastSent(broadcast_id=id_)
    members = [each.member.session for each in done if isinstance(each, e.Follow)]
    assert members == [*machine.group().members]


def test_a_group_has_one_broadcast_at_a_time() -> None:
    machine = Machine()
    machine.grown()
    id_ = machine.broadcast()
    machine.replies(id_, 0, "yes")
    machine.broadcast(objective="another")
    assert "group 'g' still waits for h-s1-1, h-s1-2 in broadcast" in machine.refusal()
    for member in (1, 2):
        machine.replies(id_, member, "no")
    machine.broadcast(objective="another")
    assert machine.actions(e.Fail) == []


def test_a_second_broadcast_is_refused_while_the_first_is_being_stored() -> None:
    machine = Machine()
    machine.grown()
    machine.syncs = False
    machine.broadcast()
    machine.broadcast(objective="another")
    assert "still waits for" in machine.refusal()
    machine.refuse("g")
    assert machine.refusal() == "the disk is full"
    machine.broadcast()
    assert machine.actions(e.Fail) == []


def test_a_key_sends_nothing_again_also_after_a_restart_and_not_another_text() -> None:
    machine = Machine()
    machine.grown(members=1)
    id_ = machine.broadcast(key="k")
    machine.replies(id_, 0, "yes")
    for _ in range(2):
        machine.broadcast(key="k")
        [sent] = machine.actions(e.Return)
        assert sent.value == BroadcastSent(broadcast_id=id_)
        assert machine.actions(e.Follow) == []
        machine.begin()
    machine.broadcast(objective="another", key="k")
    assert "belongs to broadcast" in machine.refusal()
    machine.broadcast(objective="another", key="k", sender="agent:bob")
    assert machine.actions(e.Fail) == []


@pytest.mark.parametrize(
    ("objective", "fields", "refusal"),
    [
        (" \n", {}, "the objective is empty"),
        ("\udc80", {}, "not valid Unicode"),
        ("do", {"key": "\ud800"}, "not valid Unicode"),
        ("do", {"boundaries": "\ud800"}, "not valid Unicode"),
    ],
)
def test_an_order_that_cannot_be_carried_out_is_refused(
    objective: str, fields: dict[str, str], refusal: str
) -> None:
    machine = Machine()
    machine.grown()
    machine.broadcast(objective=objective, **fields)
    assert refusal in machine.refusal()
    assert "broadcast" not in machine.kinds()


def test_a_group_whose_members_are_being_started_gets_no_order() -> None:
    machine = Machine()
    machine.spawn(members=2, mixed=True)
    machine.broadcast()
    assert "are still being started" in machine.refusal()
    machine.dissolve()
    assert "are still being started" in machine.refusal()


def test_an_unknown_group_is_refused_with_the_nearest_one() -> None:
    machine = Machine()
    machine.broadcast("reviewers")
    assert "there is no group 'reviewers'; there is none; aegis_group_spawn" in machine.refusal()
    machine.grown("reviewers")
    machine.broadcast("reviewer")
    assert "did you mean 'reviewers'?" in machine.refusal()
    machine.wait_all("reviewers")
    assert "has had no broadcast" in machine.refusal()


# Replies.


def test_a_reply_is_durable_before_it_is_returned() -> None:
    machine = Machine()
    machine.grown(members=1)
    id_ = machine.broadcast()
    machine.wait_all()
    machine.syncs = False
    machine.replies(id_, 0, "yes")
    assert not [*machine.actions(e.Return), *machine.actions(e.Notify)]
    done = machine.sync()
    assert [type(each) for each in done] == [e.Changed, e.Return, e.Notify]


def test_the_first_end_of_a_member_counts() -> None:
    machine = Machine()
    machine.grown(members=1)
    id_ = machine.broadcast()
    machine.syncs = False
    machine.replies(id_, 0, "first")
    machine.replies(id_, 0, "second")
    machine.sync()
    assert machine.unsynced == []
    machine.replies(id_, 0, "third")
    assert [end.text for end in machine.stored(id_).ends.values()] == ["first"]


def test_a_reply_is_credited_to_its_broadcast_only() -> None:
    machine = Machine()
    machine.grown(members=2)
    first = machine.broadcast()
    machine.replies(first, 0, "quick")
    machine.wait_any()
    second = machine.broadcast(objective="another")
    machine.replies(first, 1, "late")
    assert machine.stored(second).ends == {}
    assert [each.end for each in machine.stored(first).ends.values()] == ["completed", "cancelled"]
    for member in range(2):
        machine.replies(second, member, "fresh")
    machine.wait_all()
    assert {*machine.returned().by_member.values()} == {"fresh"}
    machine.wait_all(broadcast_id=first)
    assert machine.returned().by_member == {"h-s1-0": "quick"}


def test_a_wait_names_the_members_that_have_not_replied() -> None:
    machine = Machine()
    machine.grown(members=3)
    id_ = machine.broadcast()
    machine.replies(id_, 2, "yes")
    machine.replies(id_, 0, "said last", end="interrupted")
    caller = machine.wait_all(reducer="last_wins")
    assert machine.actions(e.Return) == []
    machine.gives_up(caller)
    found = machine.returned()
    assert (found.by_member, found.order) == ({"h-s1-2": "yes"}, ["h-s1-2"])
    assert (found.reduced, found.metadata.timed_out, found.metadata.is_over) == ("yes", True, False)
    statuses = {handle: each.status for handle, each in found.metadata.members.items()}
    assert statuses == {"h-s1-0": "interrupted", "h-s1-1": "pending", "h-s1-2": "replied"}
    assert found.metadata.members["h-s1-0"].reason == "its turn was interrupted"
    [answer] = machine.actions(e.Return)
    assert answer.ask == {"h-s1-1": "s1-1"}
    machine.gives_up(caller)
    assert machine.done == []


def test_a_wait_ends_when_no_reply_is_awaited_any_more() -> None:
    machine = Machine()
    machine.grown(members=2)
    id_ = machine.broadcast()
    machine.wait_all()
    machine.replies(id_, 0, "", end="failed")
    assert machine.actions(e.Return) == []
    machine.replies(id_, 1, "", end="lost")
    found = machine.returned()
    assert (found.reduced, found.order, found.metadata.is_over) == (None, [], True)
    [notify] = machine.actions(e.Notify)
    assert notify.broadcast == id_


def test_waits_can_be_repeated_and_several_callers_get_the_same() -> None:
    machine = Machine()
    machine.grown(members=1)
    id_ = machine.broadcast()
    machine.wait_all()
    machine.wait_any(cancel_losers=False)
    machine.replies(id_, 0, "yes")
    assert len(machine.actions(e.Return)) == 2
    for wait in (machine.wait_all, machine.wait_any, machine.wait_all):
        wait(broadcast_id=id_)
        assert machine.returned().reduced == "yes"


def test_the_first_reply_ends_a_wait_for_any_and_the_losers_are_cancelled() -> None:
    machine = Machine()
    machine.grown(members=3)
    id_ = machine.broadcast()
    machine.wait_any()
    machine.syncs = False
    machine.replies(id_, 1, "winner")
    assert not [each for each in machine.sync() if isinstance(each, e.Return | e.Withdraw)]
    assert machine.kinds()[-1] == "ended"
    machine.done = machine.sync()
    told = [(each.member.session, each.broadcast) for each in machine.actions(e.Withdraw)]
    assert told == [("s1-0", id_), ("s1-2", id_)]
    found = machine.returned()
    assert (found.reduced, found.order, found.metadata.reducer) == ("winner", ["h-s1-1"], None)
    assert found.metadata.members["h-s1-0"].reason == DECIDED
    assert machine.actions(e.Notify)[0].broadcast == id_


def test_a_member_that_failed_does_not_win() -> None:
    machine = Machine()
    machine.grown(members=2)
    id_ = machine.broadcast()
    machine.wait_any()
    machine.replies(id_, 0, "", end="failed")
    assert machine.actions(e.Return) == []
    machine.replies(id_, 1, "yes")
    assert machine.returned().reduced == "yes"
    assert machine.actions(e.Withdraw) == []


def test_without_cancel_losers_the_others_continue() -> None:
    machine = Machine()
    machine.grown(members=2)
    id_ = machine.broadcast()
    machine.replies(id_, 0, "first")
    machine.wait_any(cancel_losers=False)
    assert machine.returned().reduced == "first"
    machine.replies(id_, 1, "second")
    machine.wait_all()
    assert machine.returned().reduced == "first\n\nsecond"


def test_a_winner_that_comes_while_losers_are_dropped_is_one_of_them() -> None:
    machine = Machine()
    machine.grown(members=2)
    id_ = machine.broadcast()
    machine.replies(id_, 0, "first")
    machine.syncs = False
    machine.wait_any()
    machine.replies(id_, 1, "too late")
    machine.done = machine.sync()
    assert machine.returned().by_member == {"h-s1-0": "first"}
    assert machine.unsynced == []


def test_if_the_disk_refuses_to_drop_losers_their_replies_count() -> None:
    machine = Machine()
    machine.grown(members=2)
    id_ = machine.broadcast()
    machine.replies(id_, 0, "first")
    machine.syncs = False
    machine.wait_any()
    machine.replies(id_, 1, "second")
    machine.refuse("g")
    assert machine.refusal() == "the disk is full"
    machine.sync()
    assert [each.text for each in machine.stored(id_).ends.values()] == ["first", "second"]


def test_a_reply_that_the_disk_refuses_is_written_again_before_anything_else() -> None:
    machine = Machine()
    machine.grown(members=1)
    id_ = machine.broadcast()
    machine.syncs = False
    machine.replies(id_, 0, "yes")
    machine.refuse("g")
    assert machine.actions(e.WriteAgain) == [e.WriteAgain()]
    machine.rename("g", "h")
    assert [each.append.line["kind"] for each in machine.unsynced] == ["ended", "renamed"]
    machine.refuse("g")
    assert machine.refusal() == "the disk is full"
    machine.send(e.Again())
    machine.sync()
    assert machine.stored(id_).replied == ["s1-0"]


def test_a_sender_is_notified_once_and_only_if_it_wants() -> None:
    machine = Machine()
    machine.grown(members=1)
    silent = machine.broadcast(callback=False)
    machine.replies(silent, 0, "yes")
    assert machine.actions(e.Notify) == []
    id_ = machine.broadcast(objective="another")
    machine.replies(id_, 0, "yes")
    [notify] = machine.actions(e.Notify)
    machine.begin()
    assert machine.actions(e.Notify)[0].broadcast == id_
    machine.send(e.Notified(group=notify.group.id, broadcast=id_))
    machine.begin()
    assert machine.actions(e.Notify) == []


def test_a_restart_follows_the_members_that_have_not_replied() -> None:
    machine = Machine()
    machine.grown(members=3)
    id_ = machine.broadcast()
    machine.replies(id_, 1, "yes")
    machine.begin()
    followed = [each.member.session for each in machine.actions(e.Follow)]
    assert followed == ["s1-0", "s1-2"]


def test_a_restart_tells_the_losers_that_were_not_told() -> None:
    machine = Machine()
    group = machine.grown(members=3)
    id_ = machine.broadcast()
    machine.replies(id_, 0, "yes")
    machine.wait_any()
    machine.send(e.Withdrawn(group=group.id, broadcast=id_, member="s1-1"))
    machine.begin()
    assert [each.member.session for each in machine.actions(e.Withdraw)] == ["s1-2"]
    assert machine.actions(e.Follow) == []


def test_a_long_reply_is_cut_and_marked() -> None:
    machine = Machine()
    machine.grown(members=1)
    id_ = machine.broadcast()
    machine.replies(id_, 0, "x" * (MAX_REPLY_CHARS + 1))
    machine.wait_all()
    found = machine.returned()
    assert len(found.by_member["h-s1-0"]) == MAX_REPLY_CHARS
    assert found.metadata.members["h-s1-0"].is_cut


def test_the_oldest_broadcasts_are_dropped_from_memory() -> None:
    machine = Machine()
    machine.grown(members=1)
    ids = []
    for _ in range(MAX_BROADCASTS + 2):
        ids.append(machine.broadcast(callback=False))
        machine.replies(ids[-1], 0, "yes")
    assert [*machine.group().broadcasts] == ids[-MAX_BROADCASTS:]
    machine.wait_all(broadcast_id=ids[0])
    assert "has no broadcast" in machine.refusal()
    texts = MAX_KEPT_CHARS // 200_000 + 1
    for _ in range(texts):
        ids.append(machine.broadcast(objective="x" * 200_000, callback=False))
        machine.replies(ids[-1], 0, "yes")
    assert sum(each.size for each in machine.group().broadcasts.values()) < MAX_KEPT_CHARS + 250_000


# The group as a whole.


def test_a_rename_is_one_line_and_the_old_name_stays_an_alias() -> None:
    machine = Machine()
    group = machine.grown()
    id_ = machine.broadcast()
    machine.rename("g", "reviewers")
    [answer] = machine.actions(e.Return)
    assert isinstance(answer.value, GroupInfo)
    assert (answer.value.group, answer.value.aliases) == ("reviewers", ["g"])
    assert machine.kinds()[-1] == "renamed"
    machine.begin()
    for name in ("g", "G", "reviewers"):
        assert machine.group(name).id == group.id
    assert machine.stored(id_).pending == [*group.members]
    machine.rename("reviewers", "g")
    assert machine.group().name == "g"


def test_no_group_gets_the_name_or_an_alias_of_another() -> None:
    machine = Machine()
    machine.grown("one")
    machine.grown("two")
    machine.rename("one", "three")
    for taken in ("one", "THREE"):
        machine.rename("two", taken)
        assert "is or was that of another group" in machine.refusal()
    machine.spawn("one", 2, mixed=True)
    assert "has 3 members already" in machine.refusal()


def test_a_name_that_is_being_stored_is_taken() -> None:
    machine = Machine()
    machine.grown("one")
    machine.grown("two")
    machine.syncs = False
    machine.rename("one", "new")
    machine.rename("two", "new")
    assert "is or was that of another group" in machine.refusal()
    machine.spawn("new")
    assert "is or was that of another group" in machine.refusal()
    machine.refuse("one")
    machine.rename("two", "new")
    assert machine.actions(e.Fail) == []


def test_dissolving_closes_the_members_and_ends_what_is_awaited() -> None:
    machine = Machine()
    group = machine.grown(members=2)
    id_ = machine.broadcast()
    machine.wait_all()
    machine.replies(id_, 0, "yes")
    machine.dissolve()
    assert [each.group.id for each in machine.actions(e.Close)] == [group.id]
    found = machine.returned()
    assert (found.by_member, found.metadata.is_over) == ({"h-s1-0": "yes"}, True)
    assert found.metadata.members["h-s1-1"].reason == DISSOLVED
    machine.dissolve()
    machine.broadcast()
    assert "is being dissolved" in machine.refusal()
    machine.spawn()
    assert "is being dissolved" in machine.refusal()
    machine.send(e.Closed(group=group.id))
    states = [each.value.state for each in machine.actions(e.Return)]  # type: ignore[union-attr]
    assert states == ["dissolved"] * 2
    machine.send(e.Notified(group=group.id, broadcast=id_))
    assert machine.actions(e.Release) == [e.Release(address="g")]
    assert machine.rules.state.groups == {}
    again = machine.grown(members=1)
    assert again.id != group.id
    machine.begin()
    assert [*machine.rules.state.groups] == [again.id]


def test_a_group_whose_end_is_being_stored_gets_nothing_more() -> None:
    machine = Machine()
    machine.grown()
    machine.syncs = False
    machine.dissolve()
    machine.spawn()
    assert "is being dissolved" in machine.refusal()
    machine.broadcast()
    assert "is being dissolved" in machine.refusal()
    machine.rename("g", "h")
    assert "is being dissolved" in machine.refusal()


def test_a_restart_goes_on_dissolving() -> None:
    machine = Machine()
    group = machine.grown(members=2)
    id_ = machine.broadcast()
    machine.syncs = False
    machine.dissolve()
    machine.sync()
    machine.syncs = True
    machine.begin()
    assert [each.group.id for each in machine.actions(e.Close)] == [group.id]
    assert machine.actions(e.Follow) == []
    assert machine.actions(e.Notify)[0].broadcast == id_
    machine.send(e.Closed(group=group.id))
    machine.begin()
    assert machine.actions(e.Close) == []
    assert machine.actions(e.Notify)[0].broadcast == id_


def test_if_the_disk_refuses_to_dissolve_the_group_stays() -> None:
    machine = Machine()
    machine.grown()
    machine.syncs = False
    machine.dissolve()
    machine.dissolve()
    machine.refuse("g")
    assert len(machine.actions(e.Fail)) == 2
    machine.dissolve()
    assert [each.append.line["kind"] for each in machine.unsynced] == ["dissolving"]


def test_a_ledger_that_cannot_be_read_keeps_its_name() -> None:
    machine = Machine()
    machine.send(e.Recovering(ledgers=[e.Loaded(address="g", problem="the disk has failed")]))
    for ask in (machine.spawn, machine.broadcast, machine.wait_all, machine.dissolve):
        ask()
        assert machine.refusal() == "the disk has failed"
    [info] = machine.rules.state.infos()
    assert (info.group, info.problem) == ("g", "the disk has failed")
