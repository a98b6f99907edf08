"""The snapshot of the live tree."""

from __future__ import annotations

import attrs
import trio
import trio.testing

from actors import Actor, Backoff, ChildSpec, SupervisorSpec, count, open_system


@attrs.frozen
class Do:
    how: str


class Busy(Actor[Do]):
    async def receive(self, message: Do) -> None:
        if message.how == "crash":
            raise RuntimeError
        await trio.sleep_forever()


SPEC = SupervisorSpec(
    name="root",
    children=(
        ChildSpec.of("a", Busy).with_options(backoff=Backoff(first_s=5.0)),
        SupervisorSpec(name="pool", dynamic=True),
        ChildSpec.of("z", Busy),
    ),
)


async def test_a_snapshot_shows_every_place_in_the_order_of_starting() -> None:
    async with open_system(SPEC) as system:
        await system.supervisor("root/pool").start_child(ChildSpec.of("b", Busy))
        root = system.tree()
    assert [child.path for child in root.children] == ["root/a", "root/pool", "root/z"]
    assert [child.kind for child in root.children] == ["Busy", "Supervisor", "Busy"]
    assert [child.path for child in root.children[1].children] == ["root/pool/b"]
    assert (root.name, root.kind, count(root)) == ("root", "Supervisor", 5)


async def test_a_snapshot_shows_state_waiting_messages_restarts_and_age(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(SPEC) as system:
        a = system.ref("root/a")
        await trio.sleep(2)
        a.tell(Do("hang"))
        await trio.testing.wait_all_tasks_blocked()
        a.tell(Do("waits"))
        node = system.tree().children[0]
        assert (node.state, node.mailbox, node.restarts, node.uptime_s) == ("running", 1, 0, 2.0)


async def test_a_snapshot_shows_who_waits_for_a_restart(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(SPEC) as system:
        system.ref("root/a").tell(Do("crash"))
        await trio.sleep(4)
        node = system.tree().children[0]
        assert (node.state, node.restarts) == ("down", 0)
        await trio.sleep(2)
        node = system.tree().children[0]
        assert (node.state, node.restarts, node.uptime_s) == ("running", 1, 1.0)


async def test_a_snapshot_shows_a_stop_under_way(autojump_clock: trio.testing.MockClock) -> None:
    async with open_system(SPEC) as system:
        system.ref("root/z").tell(Do("hang"))
        await trio.testing.wait_all_tasks_blocked()
        system.ref("root/z").stop()
        assert system.tree().children[2].state == "stopping"
        await trio.sleep(2)
        assert [child.name for child in system.tree().children] == ["a", "pool"]
