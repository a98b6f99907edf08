"""Monitors: ``Down`` comes once for each end of a life, in order, and is never lost for room."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import (
    Actor,
    ActorCrashed,
    ActorStopped,
    Backoff,
    ChildSpec,
    Down,
    MailboxSpec,
    MisuseError,
    Overflow,
    Ref,
    Request,
    Restart,
    SupervisorSpec,
    System,
    open_system,
)


@attrs.frozen
class Watch:
    """The watcher shall monitor this path."""

    path: str


@attrs.frozen
class Said:
    text: str


@attrs.frozen
class Do:
    how: str


@attrs.frozen
class Seen(Request[list[Said | Down]]):
    pass


@attrs.frozen
class Hold:
    """The watcher handles nothing for a second."""


@attrs.frozen
class Crash:
    pass


class Watcher(Actor[Watch | Said | Down | Seen | Hold | Crash]):
    def __init__(self, watch: str = "", seen: list[Said | Down] | None = None) -> None:
        self._watch = watch
        self._seen: list[Said | Down] = [] if seen is None else seen

    async def setup(self) -> None:
        if self._watch:
            self.context.monitor(self.context.system.ref(self._watch))

    async def receive(self, message: Watch | Said | Down | Seen | Hold | Crash) -> None:
        match message:
            case Watch(path=path):
                self.context.monitor(self.context.system.ref(path))
            case Said() | Down():
                self._seen.append(message)
            case Seen():
                self.reply(message, self._seen)
            case Hold():
                await trio.sleep(1)
            case Crash():
                raise RuntimeError


class Speaker(Actor[Do]):
    """Talks to the watcher until it ends."""

    async def receive(self, message: Do) -> None:
        match message.how:
            case "talk and crash":
                watcher: Ref[Said] = self.context.system.ref("root/w")
                for number in range(3):
                    watcher.tell(Said(str(number)))
                raise ValueError("last words")
            case "crash":
                raise ValueError("no words")
            case "finish":
                self.context.finish()


def pair(
    restart: Restart = Restart.PERMANENT,
    mailbox: MailboxSpec | None = None,
    **arguments: Any,
) -> SupervisorSpec:
    watcher = ChildSpec.of("w", Watcher, **arguments).with_options(mailbox=mailbox or MailboxSpec())
    speaker = ChildSpec.of("s", Speaker).with_options(restart=restart, backoff=Backoff(step_s=0))
    return SupervisorSpec(name="root", children=(speaker, watcher), intensity=10)


async def seen(system: System) -> list[Said | Down]:
    await trio.testing.wait_all_tasks_blocked()
    found: list[Said | Down] = await system.ref("root/w").ask(Seen())
    return found


async def test_down_comes_after_everything_that_was_sent_before_and_says_why() -> None:
    async with open_system(pair(watch="root/s")) as system:
        system.ref("root/s").tell(Do("talk and crash"))
        assert await seen(system) == [
            Said("0"),
            Said("1"),
            Said("2"),
            Down("root/s", 1, "crashed: ValueError: last words", crashed=True, final=False),
        ]


@pytest.mark.parametrize(
    ("restart", "how", "crashed", "final"),
    [
        (Restart.PERMANENT, "crash", True, False),
        (Restart.PERMANENT, "finish", False, False),
        (Restart.TRANSIENT, "crash", True, False),
        (Restart.TRANSIENT, "finish", False, True),
        (Restart.TEMPORARY, "crash", True, True),
        (Restart.TEMPORARY, "finish", False, True),
    ],
)
async def test_down_says_whether_a_life_follows(
    restart: Restart, how: str, crashed: bool, final: bool
) -> None:
    async with open_system(pair(restart, watch="root/s")) as system:
        system.ref("root/s").tell(Do(how))
        (down,) = await seen(system)
        assert isinstance(down, Down)
        assert (down.crashed, down.final) == (crashed, final)


async def test_an_ordered_stop_is_a_final_down() -> None:
    async with open_system(pair(watch="root/s")) as system:
        system.ref("root/s").stop()
        assert await seen(system) == [Down("root/s", 1, "stopped", crashed=False, final=True)]


async def test_every_end_of_a_life_is_heard() -> None:
    async with open_system(pair(watch="root/s")) as system:
        for _ in range(3):
            system.ref("root/s").tell(Do("crash"))
        heard = await seen(system)
        assert [each.incarnation for each in heard if isinstance(each, Down)] == [1, 2, 3]


async def test_monitoring_twice_is_monitoring_once() -> None:
    async with open_system(pair(watch="root/s")) as system:
        system.ref("root/w").tell(Watch("root/s"))
        system.ref("root/w").tell(Watch("root/s"))
        await trio.testing.wait_all_tasks_blocked()
        system.ref("root/s").tell(Do("crash"))
        assert len(await seen(system)) == 1


@pytest.mark.parametrize("overflow", list(Overflow))
async def test_down_finds_its_way_into_a_full_mailbox(
    overflow: Overflow, autojump_clock: trio.testing.MockClock
) -> None:
    mailbox = MailboxSpec(capacity=2, overflow=overflow)
    async with open_system(pair(watch="root/s", mailbox=mailbox)) as system:
        watcher = system.ref("root/w")
        watcher.tell(Hold())
        await trio.testing.wait_all_tasks_blocked()
        watcher.tell(Said("a"))
        watcher.tell(Said("b"))
        system.ref("root/s").tell(Do("crash"))
        await trio.testing.wait_all_tasks_blocked()
        if overflow is Overflow.DROP_OLDEST:
            watcher.tell(Said("c"))
            watcher.tell(Said("d"))
        await trio.sleep(2)
        heard = await seen(system)
        assert sum(isinstance(each, Down) for each in heard) == 1


async def test_a_monitor_outlives_a_restart_of_the_watcher() -> None:
    kept: list[Said | Down] = []
    async with open_system(pair(seen=kept)) as system:
        system.ref("root/w").tell(Watch("root/s"))
        system.ref("root/w").tell(Crash())
        await trio.testing.wait_all_tasks_blocked()
        system.ref("root/s").tell(Do("crash"))
        await trio.testing.wait_all_tasks_blocked()
        assert len(kept) == 1


async def test_a_watcher_that_is_gone_is_no_longer_told_nor_kept() -> None:
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        root = system.supervisor("root")
        speaker = await root.start_child(ChildSpec.of("s", Speaker))
        kept: list[Said | Down] = []
        for _ in range(5):
            await root.start_child(ChildSpec.of("w", Watcher, watch="root/s", seen=kept))
            await root.stop_child("w")
        cell = system.cell(speaker.path)
        assert cell is not None
        assert cell.watchers == {}
        speaker.tell(Do("crash"))
        await trio.testing.wait_all_tasks_blocked()
        assert kept == []


async def test_only_a_living_address_can_be_monitored() -> None:
    async with open_system(pair(Restart.TEMPORARY)) as system:
        speaker = system.ref("root/s")
        speaker.tell(Do("finish"))
        await trio.testing.wait_all_tasks_blocked()
        watcher = system.cell("root/w")
        assert watcher is not None
        with pytest.raises(ActorStopped):
            system.monitor(watcher=watcher, watched=speaker)


class Deaf(Actor[Seen]):
    async def receive(self, message: Seen) -> None:
        self.context.monitor(self.context.ref)


async def test_who_does_not_accept_down_cannot_monitor() -> None:
    async with open_system(
        SupervisorSpec(name="root", children=(ChildSpec.of("deaf", Deaf),))
    ) as system:
        with pytest.raises(ActorCrashed, match=MisuseError.__name__):
            await system.ref("root/deaf").ask(Seen())


async def test_a_child_of_a_supervisor_that_is_gone_for_good_is_finally_down() -> None:
    inner = SupervisorSpec(
        name="inner",
        children=(
            ChildSpec.of("a", Speaker),
            ChildSpec.of("b", Speaker),
        ),
        intensity=0,
        restart=Restart.TEMPORARY,
    )
    async with open_system(
        SupervisorSpec(name="root", children=(inner, ChildSpec.of("w", Watcher)))
    ) as system:
        for path in ("root/inner", "root/inner/a", "root/inner/b"):
            system.ref("root/w").tell(Watch(path))
        await trio.testing.wait_all_tasks_blocked()
        system.ref("root/inner/a").tell(Do("crash"))
        heard = [each for each in await seen(system) if isinstance(each, Down)]
        assert [(each.path, each.crashed, each.final) for each in heard] == [
            ("root/inner/a", True, False),
            ("root/inner/b", False, False),
            ("root/inner/a", False, True),
            ("root/inner/b", False, True),
            ("root/inner", True, True),
        ]


async def test_the_children_of_a_dynamic_supervisor_are_finally_down_each_once() -> None:
    pool = SupervisorSpec(name="pool", dynamic=True)
    async with open_system(
        SupervisorSpec(name="root", children=(pool, ChildSpec.of("w", Watcher)))
    ) as system:
        for name in "ab":
            await system.supervisor("root/pool").start_child(ChildSpec.of(name, Speaker))
            system.ref("root/w").tell(Watch(f"root/pool/{name}"))
        await trio.testing.wait_all_tasks_blocked()
        await system.supervisor("root").stop_child("pool")
        heard = [each for each in await seen(system) if isinstance(each, Down)]
        assert sorted((each.path, each.crashed, each.final) for each in heard) == [
            ("root/pool/a", False, True),
            ("root/pool/b", False, True),
        ]
