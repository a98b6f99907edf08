"""Commands on a session that is being opened wait until it is open."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio

from actors import Actor, ChildSpec, Reply, Request, SupervisorSpec, open_system
from aegis.agents.directory.openings import OPENED, Openings
from aegis.protocol import agents as api


@attrs.frozen
class Close(Request[float]):
    """Close the session, as ``CloseAgent`` does."""

    handle: str


class Directory(Actor[Close]):
    """Answers each close with the time."""

    async def receive(self, message: Close) -> None:
        self.reply(message, trio.current_time())


SPAWNS: list[OPENED] = [
    api.SpawnWorker(handle="work-1", queue="work", task_id="t"),
    api.SpawnForWorkflow(handle="Work-1", workflow="release"),
]


@pytest.mark.parametrize("spawn", SPAWNS, ids=["queue", "workflow"])
async def test_a_close_waits_for_the_end_of_the_spawn(
    spawn: OPENED, autojump_clock: trio.testing.MockClock
) -> None:
    openings = Openings()
    openings.begin(spawn)
    assert "WORK-1" in openings
    tree = SupervisorSpec(name="root", children=(ChildSpec.of("directory", Directory),))
    async with open_system(tree) as system, trio.open_nursery() as nursery:
        reply: Reply[Any] = Reply(system)
        close = Close("work-1")
        nursery.start_soon(openings.pass_on, close, reply, system.ref("root/directory"))
        began = trio.current_time()
        await trio.sleep(5)
        assert not reply.is_settled
        openings.end(spawn)
        assert await reply.wait() >= began + 5
    assert "work-1" not in openings


async def test_a_session_that_a_client_opens_is_known_by_its_reply_only() -> None:
    openings = Openings()
    openings.begin(api.SpawnAgent(handle="ann"))
    assert "ann" not in openings
    openings.end(api.SpawnAgent(handle="ann"))
