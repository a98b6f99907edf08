"""Tests of the rules for groups: a sound history has no violation, and each broken one is found."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.chaos.checking.agent_evidence import AgentEvidence, UserFrame
from tests.chaos.checking.case import Case
from tests.chaos.checking.group_evidence import GroupEvidence, GroupReply, GroupSent
from tests.chaos.checking.group_rules import GROUP_RULES
from tests.chaos.checking.observations import Span
from tests.chaos.checking.test_checker import SOUND as SOUND_TERMINALS

FIRST, SECOND = "@work.1.quick@", "@work.2.slow@"


def sent(number: int, token: str, **fields: Any) -> GroupSent:
    known: dict[str, Any] = {"group": "jury", "token": token, "sender": "human", "span": Span(1, 2)}
    return GroupSent(**known | {"id": f"b{number}"} | fields)


def reply(number: int, member: str, text: str) -> GroupReply:
    return GroupReply(id=f"b{number}", member=member, text=text)


def got(session: str, token: str) -> UserFrame:
    return UserFrame(process=1, session=session, uuid=token, tokens=(token,), moment=5)


SOUND = GroupEvidence(
    sent=(sent(1, FIRST, key="k"), sent(1, FIRST, key="k"), sent(2, SECOND, callback=False)),
    replies=(
        reply(1, "ann", "did work.1.quick"),
        reply(1, "ann", "did work.1.quick"),
        reply(1, "ben", "did work.1.quick"),
        reply(2, "ben", "did work.2.slow"),
    ),
    members=frozenset({"ann", "ben"}),
    open=frozenset({"jury"}),
)
FRAMES = (got("a", FIRST), got("b", FIRST), got("b", SECOND))
TOLD = ({"id": "broadcast:b1/end"},)
SESSIONS = ({"id": "a", "handle": "ann"}, {"id": "b", "handle": "ben"})


def found(
    groups: GroupEvidence, frames: tuple[UserFrame, ...] = FRAMES, inbox: tuple[Any, ...] = TOLD
) -> set[str]:
    agents = AgentEvidence(frames=frames, sessions=SESSIONS, inboxes={"human": inbox})
    case = Case(attrs.evolve(SOUND_TERMINALS, agents=agents, groups=groups))
    return {name for name, rule in GROUP_RULES.items() if [*rule.find(case)]}


def with_reply(extra: GroupReply) -> GroupEvidence:
    return attrs.evolve(SOUND, replies=(*SOUND.replies, extra))


def test_a_sound_history_breaks_nothing() -> None:
    assert found(SOUND) == set()


BROKEN: dict[str, tuple[set[str], tuple[Any, ...]]] = {
    "a reply to the broadcast before": (
        {"reply miscredited"},
        (
            attrs.evolve(SOUND, replies=(reply(2, "ben", "did work.1.quick"),)),
            FRAMES,
        ),
    ),
    "a reply that changes": (
        {"reply miscredited", "reply changed"},
        (with_reply(reply(1, "ann", "did")),),
    ),
    "a broadcast that a member got twice": (
        {"broadcast sent twice"},
        (SOUND, (*FRAMES, got("a", FIRST))),
    ),
    "a reply of a member that never got it": (
        {"broadcast sent twice"},
        (with_reply(reply(2, "ann", "did work.2.slow")),),
    ),
    "a key with two broadcasts": (
        {"broadcast key twice"},
        (attrs.evolve(SOUND, sent=(*SOUND.sent, sent(3, FIRST, key="k", callback=False))),),
    ),
    "an end that nobody was told": ({"broadcast unreported"}, (SOUND, FRAMES, ())),
    "an end that nobody wanted": (
        {"broadcast unreported"},
        (SOUND, FRAMES, (*TOLD, {"id": "broadcast:b2/end"})),
    ),
    "a group that does not come to rest": (
        {"group stuck"},
        (attrs.evolve(SOUND, stuck=("jury",)),),
    ),
}


@pytest.mark.parametrize(("rules", "evidence"), BROKEN.values(), ids=BROKEN)
def test_one_thing_wrong_with_a_group_is_named_by_its_rules(
    rules: set[str], evidence: tuple[Any, ...]
) -> None:
    assert found(*evidence) == rules
