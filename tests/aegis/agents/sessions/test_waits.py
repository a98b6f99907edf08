"""A text that an agent says is found however its pieces are cut; waits know their turn."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from actors import Reply
from aegis.agents.sessions.past import OpenTurn
from aegis.agents.sessions.status import SessionIdentity
from aegis.agents.sessions.waits import AgentWaits, SaidText
from aegis.protocol.agent_events import AssistantText
from aegis.protocol.agents import WaitAgent


@given(
    wanted=st.text("ab", min_size=1, max_size=4),
    messages=st.lists(st.lists(st.text("ab", max_size=4), max_size=5), max_size=3),
    said=st.text("ab", max_size=5),
)
def test_a_text_is_found_in_each_message_and_not_across_two(
    wanted: str, messages: list[list[str]], said: str
) -> None:
    search = SaidText(wanted, said)
    for number, pieces in enumerate(messages):
        for piece in pieces:
            search.take(AssistantText(message=str(number), text=piece))
    # What was said before the search continues in the first message that comes.
    whole = ["".join(pieces) for pieces in messages if pieces]
    whole = [said + whole[0], *whole[1:]] if whole else [said]
    assert search.is_found == any(wanted in each for each in whole)


def test_a_turn_is_awaited_by_its_number_and_by_each_of_its_messages() -> None:
    turn = OpenTurn(number=2, uuid="u", messages=(("m1", "human"), ("m2", "agent:pm")))
    identity = SessionIdentity(
        id="s", address="ann", profile="p", provider="claude", cwd="/", spawned_by="human"
    )
    wanted: list[dict[str, Any]] = [
        {"turn": 2},
        {"message": "m2"},
        {"turn": 1},
        {"message": "m3"},
        {},
        {"text": "m1"},
    ]
    found = []
    for each in wanted:
        waits = AgentWaits(identity, lambda *_: None, lambda _: None)
        waits.take(WaitAgent(handle="ann", **each), Reply())
        found.append(waits.has_turn(turn))
    assert found == [True, True, False, False, False, False]
