"""Names: kept across restarts, free when their actor is gone."""

from __future__ import annotations

import attrs
import pytest

from actors import (
    Actor,
    ActorCrashed,
    Backoff,
    ChildSpec,
    Refusal,
    Request,
    SupervisorSpec,
    open_system,
)


@attrs.frozen
class Be(Request[None]):
    group: str
    name: str


@attrs.frozen
class Crash(Request[None]):
    pass


class Named(Actor[Be | Crash]):
    async def receive(self, message: Be | Crash) -> None:
        if isinstance(message, Crash):
            raise RuntimeError  # noqa: TRY004 - a crash made to order
        try:
            self.context.register(message.group, message.name)
        except Exception as error:
            raise Refusal(str(error)) from error
        self.reply(message, None)


POOL = SupervisorSpec(name="root", dynamic=True)


def named(name: str) -> ChildSpec:
    return ChildSpec.of(name, Named).with_options(backoff=Backoff(step_s=0))


async def test_an_actor_is_found_by_the_names_it_took() -> None:
    async with open_system(POOL) as system:
        a = await system.supervisor("root").start_child(named("a"))
        b = await system.supervisor("root").start_child(named("b"))
        await a.ask(Be("terminal", "build"))
        await a.ask(Be("terminal", "alias"))
        await b.ask(Be("agent", "build"))
        registry = system.registry
        assert registry.find("terminal", "build") == a
        assert registry.find("agent", "build") == b
        assert registry.find("agent", "nobody") is None
        assert registry.find("nothing", "build") is None
        assert registry.names("terminal") == ["alias", "build"]
        assert registry.names("nothing") == []


async def test_a_name_is_kept_across_restarts_and_free_after_the_stop() -> None:
    async with open_system(POOL) as system:
        root, registry = system.supervisor("root"), system.registry
        a = await root.start_child(named("a"))
        await a.ask(Be("terminal", "build"))
        with pytest.raises(ActorCrashed):
            await a.ask(Crash())
        assert registry.find("terminal", "build") == a
        await a.ask(Be("terminal", "build"))
        await root.stop_child("a")
        assert registry.find("terminal", "build") is None
        assert registry.names("terminal") == []
        b = await root.start_child(named("b"))
        await b.ask(Be("terminal", "build"))
        assert registry.find("terminal", "build") == b


async def test_the_name_of_another_live_actor_cannot_be_taken() -> None:
    async with open_system(POOL) as system:
        a = await system.supervisor("root").start_child(named("a"))
        b = await system.supervisor("root").start_child(named("b"))
        await a.ask(Be("terminal", "build"))
        with pytest.raises(Refusal, match="terminal 'build' is root/a; root/b cannot be it too"):
            await b.ask(Be("terminal", "build"))
        assert system.registry.find("terminal", "build") == a


async def test_a_new_actor_at_an_old_path_keeps_its_own_names() -> None:
    async with open_system(POOL) as system:
        root = system.supervisor("root")
        for _ in range(3):
            a = await root.start_child(named("a"))
            await a.ask(Be("terminal", "build"))
            assert system.registry.find("terminal", "build") is a
            await root.stop_child("a")
