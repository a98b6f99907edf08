"""Replies as one text and as clients see them, and the messages of groups."""

from __future__ import annotations

import json

import attrs
import pytest

from aegis.groups.briefs import BEGINNING, brief, cancellation, order, result
from aegis.groups.group import Broadcast, End, Group, Member
from aegis.groups.reducers import Reply, reduced
from aegis.groups.views import REPLIES_BYTES, fitted, group_info, replies
from aegis.protocol.command import MAX_REPLY_BYTES
from aegis.protocol.derived.wire import to_plain
from aegis.protocol.groups import MAX_MEMBERS, BroadcastToGroup, Reducer
from aegis.protocol.inboxes import MAX_BODY_CHARS

NOW = "2026-11-24T12:00:00.000Z"


def said(*texts: str) -> list[Reply]:
    return [Reply(handle, text) for handle, text in zip("cab", texts, strict=False)]


@pytest.mark.parametrize(
    ("reducer", "texts", "text"),
    [
        ("concat", ("x", "y"), "x\n\ny"),
        ("join_by_handle", ("x", "y", "z"), "a:\ny\n\nb:\nz\n\nc:\nx"),
        ("last_wins", ("x", "y"), "y"),
        ("majority_vote", ("yes", "no", "no"), "no"),
        ("majority_vote", ("yes", "no"), "yes"),
        ("majority_vote", ("no", "Yes\n", " yes"), "Yes\n"),
        ("majority_vote", ("yes",), "yes"),
        ("concat", (), None),
        ("majority_vote", (), None),
    ],
)
def test_replies_become_one_text(
    reducer: Reducer, texts: tuple[str, ...], text: str | None
) -> None:
    assert reduced(reducer, said(*texts)) == text


def test_texts_that_fit_stay_whole_and_only_the_longest_are_cut() -> None:
    texts = {"a": "x" * 10, "b": "y" * 500, "c": "z" * 500}
    assert fitted(texts, 2_000) == texts
    cut = fitted(texts, 600)
    assert cut["a"] == texts["a"]
    assert len(cut["b"]) == len(cut["c"]) > 250
    assert sum(len(json.dumps(each)) for each in cut.values()) <= 600


@pytest.mark.parametrize("letter", ["x", '"', "\x00", "é", "\U0001f600", "\n"])
def test_cut_texts_are_measured_as_they_are_sent(letter: str) -> None:
    cut = fitted({"a": letter * 1_000, "b": letter}, 300)
    sizes = [len(json.dumps(each, ensure_ascii=False).encode()) for each in cut.values()]
    assert 280 < sum(sizes) <= 300
    assert cut["b"] == letter


def group_of(number: int, text: str) -> tuple[Group, Broadcast]:
    members = {
        f"s{each}": Member(session=f"s{each}", handle=f"{'h' * 58}{each}", profile="p" * 64)
        for each in range(number)
    }
    broadcast = Broadcast(
        id="0" * 26,
        sender="agent:pm",
        callback=True,
        key=None,
        objective="o",
        text="brief",
        at=NOW,
        members=tuple(members),
        ends={each: End(end="completed", at=NOW, text=text) for each in members},
    )
    group = Group(
        id="1" * 26,
        address="g",
        name="g",
        owner="agent:pm",
        created=NOW,
        members=members,
        broadcasts={broadcast.id: broadcast},
    )
    return group, broadcast


@pytest.mark.parametrize("letter", ["x", '"', "\x01"])
def test_the_longest_replies_of_the_largest_group_fit_into_a_reply(letter: str) -> None:
    group, broadcast = group_of(MAX_MEMBERS, letter * 50_000)
    found = replies(group, broadcast, str, "concat", timed_out=False)
    assert all(each.is_cut for each in found.metadata.members.values())
    text = json.dumps(to_plain(found), ensure_ascii=False)
    assert 2 * REPLIES_BYTES * 0.9 < len(text) < MAX_REPLY_BYTES
    assert len(json.dumps(to_plain(group_info(group, str)))) < MAX_REPLY_BYTES


def test_handles_are_shown_as_they_are_now() -> None:
    group, broadcast = group_of(2, "yes")
    found = replies(group, broadcast, lambda address: address[-1] + "x", "concat", timed_out=False)
    assert found.order == [*found.by_member] == [*found.metadata.members] == ["0x", "1x"]
    info = group_info(group, lambda address: address.upper())
    assert info.owner == "agent:PM"


def test_a_brief_has_the_parts_that_were_given() -> None:
    request = BroadcastToGroup(group="g", objective=" find it\n", boundaries="no writes")
    assert brief(request) == (f"{BEGINNING}\n\nObjective:\nfind it\n\nBoundaries:\nno writes")


def test_messages_have_the_tags_of_their_group_and_ids_that_never_change() -> None:
    group, broadcast = group_of(2, "yes")
    group = attrs.evolve(group, name="renamed", aliases=("g",))
    member = group.members["s1"]
    message = order(group, broadcast, member)
    assert (message.sender, message.body) == (f"group:renamed/broadcast:{broadcast.id}", "brief")
    assert (message.id, message.handle) == (f"broadcast:{broadcast.id}/s1", member.handle)
    dropped = End(end="cancelled", at=NOW, reason="decided", is_dropped=True, is_withdrawn=False)
    broadcast = attrs.evolve(broadcast, ends={**broadcast.ends, "s1": dropped})
    told = cancellation(group, broadcast, member)
    assert told.sender == f"group:renamed/cancel:{broadcast.id}"
    assert told.body.startswith("decided: your reply to broadcast")
    end = result(group, broadcast, {"s0": "ann", "s1": "bob"})
    assert (end.handle, end.sender, end.status) == ("pm", "group:renamed", "ok")
    assert end.body == (
        f"broadcast {broadcast.id} is over: 1 of 2 members have replied\n"
        "bob: cancelled, decided\n\nann:\nyes"
    )


def test_the_message_to_the_sender_is_an_error_if_a_member_failed_or_none_replied() -> None:
    group, broadcast = group_of(1, "yes")
    lost = End(end="lost", at=NOW, reason="its session is closed")
    dropped = End(end="cancelled", at=NOW, reason="dissolved", is_dropped=True)
    for end in (lost, dropped):
        ended = attrs.evolve(broadcast, ends={"s0": end})
        assert result(group, ended, {"s0": "ann"}).status == "error"


def test_the_message_to_the_sender_fits_into_an_inbox() -> None:
    group, broadcast = group_of(MAX_MEMBERS, "x" * 50_000)
    handles = {each: f"handle-{each}" for each in group.members}
    message = result(group, broadcast, handles)
    assert len(message.body) <= MAX_BODY_CHARS
    assert all(f"{each}:\nxxx" in message.body for each in handles.values())
