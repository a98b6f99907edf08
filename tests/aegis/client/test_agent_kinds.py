from __future__ import annotations

from typing import Any

import pytest

from aegis.client.agent_kinds import AgentsValue, SessionEvent, SessionKind
from aegis.client.errors import ProtocolMismatch
from aegis.client.stream_kinds import RECONNECTED, Gap, StatesKind
from aegis.protocol.agent_events import AssistantText, Unknown
from aegis.protocol.agent_streams import AgentItem, AgentsItem


def entry(seq: int, **fields: Any) -> dict[str, Any]:
    return {"seq": seq, "kind": "event", "at": "2026-01-01T00:00:00Z", "fields": fields}


def kind(**place: int | None) -> SessionKind:
    return SessionKind("me", "a", **{"since": None, "last_n": None, **place})


@pytest.mark.parametrize(
    ("place", "asked"),
    [({}, {}), ({"since": 0}, {"since": 0}), ({"last_n": 3}, {"last_n": 3})],
)
def test_the_first_opening_asks_for_the_place_that_was_given(
    place: dict[str, int], asked: dict[str, int]
) -> None:
    assert kind(**place).arguments() == {"handle": "a", "from_handle": "me", **asked}


def test_another_opening_continues_after_the_last_entry_without_a_gap() -> None:
    it = kind(last_n=3)
    assert it.opened({"since": 4, "newest": 7}) == []
    assert it.arguments()["since"] == 4
    it.items({"entries": [entry(5), entry(6)]})
    assert it.arguments() == {"handle": "a", "from_handle": "me", "since": 6}
    assert it.opened({"since": 6, "newest": 7}) == []


def test_a_place_that_was_lost_is_left_once_with_a_gap() -> None:
    it = kind(since=9)
    assert not it.is_restarted("invalid_request")  # the caller's own mistake
    it.opened({"since": 9, "newest": 9})
    assert not it.is_restarted("forbidden")
    assert it.is_restarted("invalid_request")
    assert "since" not in it.arguments()
    assert not it.is_restarted("invalid_request")
    lost = Gap(dropped=None, cursor=None, reason="reconnected")
    assert it.opened({"since": 5, "newest": 5}) == [lost]


def test_events_are_typed_and_an_unknown_one_is_kept() -> None:
    text = {"type": "assistant_text", "text": "hi"}
    newer = {"type": "of_tomorrow", "x": 1}
    entries = [entry(1, event=text), entry(2, event=newer), entry(3), {**entry(4), "kind": "ended"}]
    found = kind().items({"entries": entries})
    assert [each.event for each in found if isinstance(each, SessionEvent)] == [
        AssistantText(text="hi"),
        Unknown(kind="of_tomorrow", raw=newer),
        Unknown(kind="", raw={}),
        None,
    ]


def test_agents_begin_with_all_and_again_after_a_lost_connection() -> None:
    it = StatesKind[AgentsValue](None, "agents", AgentsItem, AgentItem)
    assert it.opened({}) == []
    assert it.items({"agents": []}) == [AgentsItem(agents=[])]
    assert it.opened({}) == [RECONNECTED]
    with pytest.raises(ProtocolMismatch):
        it.items({"agent": {"handle": "a"}})
