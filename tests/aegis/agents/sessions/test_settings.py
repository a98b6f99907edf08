"""A change of settings is taken by the agent as a whole, or not at all."""

from __future__ import annotations

from typing import Any, cast

import pytest

from actors import Ref, Reply
from aegis.agents.messages import SetModel, SetPermission
from aegis.agents.sessions.settings import ChangeSettings, change_agent
from tests.aegis.agents.sessions.world import settings

pytestmark = pytest.mark.trio


class Agent:
    """Takes orders; refuses those of the type ``refuses``."""

    def __init__(self, refuses: type[object]) -> None:
        self.refuses = refuses
        self.model, self.permission = "small", "ask"

    async def ask(self, order: SetModel | SetPermission, timeout: float) -> str | None:
        if isinstance(order, self.refuses):
            return "refused"
        if isinstance(order, SetModel):
            self.model = order.model
        else:
            self.permission = order.permission
        return None


@pytest.mark.parametrize(
    ("refuses", "left", "answer"),
    [
        (SetModel, ("small", "ask"), "refused"),
        (SetPermission, ("small", "ask"), "refused"),
        (str, ("big", "plan"), None),
    ],
)
async def test_an_agent_that_refuses_a_part_of_a_change_keeps_all_that_it_had(
    refuses: type[object], left: tuple[str, str], answer: str | None
) -> None:
    agent, replies = Agent(refuses), []

    class Kept:
        def send(self, refusal: str | None) -> None:
            replies.append(refusal)

    change = ChangeSettings(settings=settings(), model="big", permission="plan")
    reply = cast("Reply[str | None]", Kept())
    await change_agent(change, cast("Ref[Any]", agent), reply, "small")
    assert (agent.model, agent.permission) == left
    assert replies == [answer]
