"""A text that an agent says is found however its pieces are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.sessions.waits import SaidText
from aegis.protocol.agent_events import AssistantText


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
