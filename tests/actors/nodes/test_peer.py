"""Actors of two processes and what they say to each other: outcomes, order, cuts, the tree."""

from __future__ import annotations

import gc

import pytest
import trio
import trio.testing

from actors import (
    Actor,
    ActorCrashed,
    ActorStopped,
    AskDeadline,
    Change,
    ChildSpec,
    Down,
    MailboxFull,
    MailboxSpec,
    MisuseError,
    Node,
    NoReply,
    Overflow,
    Refusal,
    Restart,
    WrongMessage,
    mailbox_depths,
)
from actors.errors import RemoteFailure, Unreachable
from actors.nodes.links import outbox
from tests.actors.nodes.pair import Add, Chain, Do, Echo, Sum, Unknown, Worked, children, open_pair


async def test_a_message_and_a_request_reach_an_actor_of_another_process(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_pair() as pair:
        x = pair.above.ref("root/w/x")
        for number in range(10):
            x.tell(Add(number))
        assert await x.ask(Sum()) == 45
        assert await pair.below.ref("root/a").ask(Echo("up", b"\x00\xff")) == Echo(
            "up", b"\x00\xff"
        )


async def test_large_messages_come_whole_and_in_order_with_small_ones(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_pair() as pair:
        x = pair.above.ref("root/w/x")
        big = x.send_request(Echo("big", bytes(3_000_000)))
        small = x.send_request(Echo("small"))
        assert (await big.wait()).data == bytes(3_000_000)
        assert await small.wait() == Echo("small")


@pytest.mark.parametrize(
    ("how", "error", "text"),
    [
        ("refuse", Refusal, "not today"),
        ("refuse a name", Refusal, r"no file \?"),
        ("crash", ActorCrashed, "root/w/x crashed: ValueError: told to"),
        ("silent", NoReply, "ended Do without a reply"),
        ("raise", RemoteFailure, "Odd: very"),
        ("hang", AskDeadline, "did not answer Do within 5 s"),
    ],
)
async def test_outcomes_are_those_of_one_process(
    how: str, error: type[Exception], text: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_pair() as pair:
        with pytest.raises(error, match=text):
            await pair.above.ref("root/w/x").ask(Do(how))


async def test_an_address_where_nobody_is_answers_that_it_has_stopped(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_pair() as pair:
        for system, path in ((pair.above, "root/w/nobody"), (pair.below, "root/nobody")):
            with pytest.raises(ActorStopped, match="nothing at"):
                await system.ref(path).ask(Sum())


async def test_a_message_that_no_actor_there_accepts_is_refused_or_a_dead_letter(
    autojump_clock: trio.testing.MockClock,
) -> None:
    class Narrow(Actor[Add]):
        async def receive(self, message: Add) -> None:
            raise AssertionError

    async with open_pair(below=(ChildSpec.of("n", Narrow),)) as pair:
        narrow = pair.above.ref("root/w/n")
        with pytest.raises(WrongMessage, match="does not accept Sum"):
            await narrow.ask(Sum())
        narrow.tell(Echo("?"))
        await trio.testing.wait_all_tasks_blocked()
        assert pair.below.dead_letters == 1


async def test_what_is_not_in_the_vocabulary_is_refused_to_who_sends_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_pair() as pair:
        with pytest.raises(MisuseError, match="Unknown cannot go to another process"):
            pair.above.ref("root/w/x").tell(Unknown())
        with pytest.raises(MisuseError, match="surrogates"):
            pair.above.ref("root/w/x").tell(Echo("\ud800"))


async def test_asking_in_a_circle_through_two_processes_fails_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_pair() as pair:
        path = ["root/w/x", "root/b", "root/w/y"]
        assert await pair.above.ref("root/a").ask(Chain(path)) == "root/w/y"
        with pytest.raises(ActorCrashed, match=r"AskCycle.*: root/a -> root/w/x -> root/a"):
            await pair.above.ref("root/a").ask(Chain(["root/w/x", "root/a"]))


async def test_who_gives_up_lets_the_actor_there_know(
    autojump_clock: trio.testing.MockClock,
) -> None:
    class Slow(Worked):
        async def receive(self, message: Add | Sum | Echo | Do | Chain) -> None:
            if isinstance(message, Sum):
                self.defer(message).on_abandon(given_up.set)

    given_up = trio.Event()
    async with open_pair(below=(ChildSpec.of("x", Slow),)) as pair:
        with pytest.raises(AskDeadline):
            await pair.above.ref("root/w/x").ask(Sum(), timeout=1)
        await given_up.wait()
        assert not pair.to_below._pending


async def test_names_cross_and_vanish_with_their_actors(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_pair() as pair:
        x = pair.above.registry.find("worked", "x")
        assert x is not None
        assert await x.ask(Sum()) == 0
        assert pair.below.registry.find("worked", "a") is not None
        assert pair.below.registry.find("worked", "b") is None  # it is not exported
        pair.below.ref("root/w/x").stop()
        await trio.testing.wait_all_tasks_blocked()
        assert pair.above.registry.find("worked", "x") is None
        assert x.is_stopped
        with pytest.raises(ActorStopped):
            await x.ask(Sum())


async def test_an_actor_is_stopped_from_another_process(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_pair() as pair:
        pair.above.ref("root/w/x").stop()
        await trio.testing.wait_all_tasks_blocked()
        assert pair.below.cell("root/w/x") is None


class Monitor(Actor[Down]):
    """Monitors ``path``."""

    def __init__(self, path: str, seen: list[Down]) -> None:
        self._path = path
        self._seen = seen

    async def setup(self) -> None:
        self.context.monitor(self.context.system.ref(self._path))

    async def receive(self, message: Down) -> None:
        self._seen.append(message)


def monitor(path: str, seen: list[Down]) -> tuple[ChildSpec, ...]:
    return (ChildSpec.of("m", Monitor, path=path, seen=seen),)


async def test_a_monitor_hears_of_lives_that_end_in_another_process(
    autojump_clock: trio.testing.MockClock,
) -> None:
    seen: list[Down] = []
    async with open_pair(below=(*children("x"), *monitor("root/a", seen))) as pair:
        pair.above.ref("root/a").tell(Do("crash"))
        await trio.sleep(1)
        pair.above.ref("root/a").stop()
        await trio.sleep(1)
        assert [(down.path, down.crashed, down.final) for down in seen] == [
            ("root/a", True, False),
            ("root/a", False, True),
        ]


async def test_while_there_is_no_connection_requests_fail_at_once_and_messages_are_counted() -> (
    None
):
    async with open_pair() as pair:
        x = pair.above.ref("root/w/x")
        hanging = x.send_request(Do("hang"))
        await pair.cut()
        with pytest.raises(Unreachable, match="worker w cannot be reached: root/w/x may go on"):
            await hanging.wait()
        with pytest.raises(Unreachable):
            await x.ask(Sum())
        x.tell(Add(1))
        assert pair.above.dead_letters == 1
        assert not x.is_stopped


async def test_after_a_cut_the_same_addresses_names_and_monitors_serve_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    seen: list[Down] = []
    async with open_pair(above=(*children("a"), *monitor("root/w/x", seen))) as pair:
        y = pair.above.registry.find("worked", "y")
        assert y is not None
        y.tell(Add(1))
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(3):
            await pair.cut()
            await pair.connect()
        assert await y.ask(Sum()) == 1
        pair.below.ref("root/w/x").tell(Do("crash"))
        await trio.sleep(1)
        assert [down.crashed for down in seen] == [True]


async def test_names_that_were_lost_while_there_was_no_connection_are_lost_after_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_pair() as pair:
        x = pair.above.registry.find("worked", "x")
        await pair.cut()
        pair.below.ref("root/w/x").stop()
        await trio.testing.wait_all_tasks_blocked()
        await pair.connect()
        assert pair.above.registry.find("worked", "x") is None
        assert x is not None
        assert x.is_stopped
        assert pair.above.registry.find("worked", "y") is not None


async def test_a_monitor_hears_after_a_cut_of_who_has_stopped_for_good(
    autojump_clock: trio.testing.MockClock,
) -> None:
    seen: list[Down] = []
    async with open_pair(above=(*children("a"), *monitor("root/w/x", seen))) as pair:
        await pair.cut()
        pair.below.ref("root/w/x").stop()
        await trio.testing.wait_all_tasks_blocked()
        assert seen == []
        await pair.connect()
        await trio.testing.wait_all_tasks_blocked()
        assert [(down.path, down.final) for down in seen] == [("root/w/x", True)]


async def test_the_end_of_a_process_is_the_end_of_all_that_was_there(
    autojump_clock: trio.testing.MockClock,
) -> None:
    seen: list[Down] = []
    async with open_pair(above=(*children("a"), *monitor("root/w/x", seen))) as pair:
        x = pair.above.ref("root/w/x")
        hanging = x.send_request(Do("hang"))
        await trio.testing.wait_all_tasks_blocked()
        pair.to_below.end("killed by signal 9", crashed=True)
        with pytest.raises(ActorCrashed, match="went down with worker w: killed by signal 9"):
            await hanging.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert [(down.path, down.final, down.with_node) for down in seen] == [
            ("root/w/x", True, True)
        ]
        assert x.is_stopped
        assert pair.above.registry.find("worked", "y") is None
        assert pair.above.tree().children[-1].name == "m"


async def test_the_tree_of_one_process_hangs_in_that_of_the_other(
    autojump_clock: trio.testing.MockClock,
) -> None:
    stand_in = children("a", "w")
    async with open_pair(above=stand_in) as pair:
        await trio.testing.wait_all_tasks_blocked()
        tree = pair.above.tree()
        (w,) = [node for node in tree.children if node.path == "root/w"]
        assert [(node.path, node.state) for node in w.children] == [
            ("root/w/x", "running"),
            ("root/w/y", "running"),
        ]
        with pair.above.watch_tree() as watch:
            assert isinstance(await anext(watch), Node)
            pair.below.ref("root/w/x").tell(Do("crash"))
            changes = [await anext(watch) for _ in range(3)]
            assert [
                (change.path, change.state) for change in changes if isinstance(change, Change)
            ] == [("root/w/x", "down"), ("root/w/x", "starting"), ("root/w/x", "running")]
            await pair.cut()
            changes = [await anext(watch), await anext(watch)]
            assert {each.state for each in changes if isinstance(each, Change)} == {"unreachable"}
        (w,) = [node for node in pair.above.tree().children if node.path == "root/w"]
        assert {node.state for node in w.children} == {"unreachable"}


async def test_a_mailbox_there_that_is_full_refuses_or_lets_wait_as_its_policy_says(
    autojump_clock: trio.testing.MockClock,
) -> None:
    small = [
        ChildSpec.of(name, Worked).with_options(mailbox=MailboxSpec(capacity=4, overflow=overflow))
        for name, overflow in (("r", Overflow.REJECT), ("p", Overflow.WAIT))
    ]
    async with open_pair(below=tuple(small)) as pair:
        for name in ("r", "p"):
            pair.above.ref(f"root/w/{name}").tell(Do("hang"))
        await trio.testing.wait_all_tasks_blocked()
        rejecting = [pair.above.ref("root/w/r").send_request(Sum()) for _ in range(5)]
        waiting = [pair.above.ref("root/w/p").send_request(Sum()) for _ in range(300)]
        with pytest.raises(MailboxFull):
            await rejecting[4].wait()
        with pytest.raises(MailboxFull, match="256 requests already wait"):
            await waiting[299].wait()
        assert not waiting[200].is_settled


async def test_who_sends_faster_than_it_is_carried_waits_or_is_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_pair() as pair:
        x = pair.above.ref("root/w/x")
        for _ in range(outbox.MOST_PACKETS):
            x.tell(Add(1))
        with pytest.raises(MailboxFull, match="too much waits to be carried to worker w"):
            x.tell(Add(1))
        for _ in range(100):
            await x.send(Add(1))
        assert await x.ask(Sum()) == outbox.MOST_PACKETS + 100


async def test_addresses_that_nobody_keeps_are_not_remembered(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_pair() as pair:
        for number in range(500):
            with pytest.raises(ActorStopped):
                await pair.above.ref(f"root/w/{number}").ask(Sum())
        gc.collect()
        assert len(pair.to_below._places) < 100  # tracebacks hold some
        assert len(pair.to_above._names._known_to_peer) <= 3


async def test_an_actor_that_is_gone_for_good_is_gone_for_who_knew_its_address(
    autojump_clock: trio.testing.MockClock,
) -> None:
    temporary = ChildSpec.of("x", Worked).with_options(restart=Restart.TEMPORARY)
    async with open_pair(below=(temporary,)) as pair:
        x = pair.above.ref("root/w/x")
        with pytest.raises(ActorCrashed):
            await x.ask(Do("crash"))
        await trio.testing.wait_all_tasks_blocked()
        assert x.is_stopped


async def test_how_full_mailboxes_there_are_is_asked_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_pair(above=children("a", "w")) as pair:
        x = pair.above.ref("root/w/x")
        x.tell(Do("hang"))
        for _ in range(3):
            x.tell(Add(1))
        await trio.testing.wait_all_tasks_blocked()
        assert depth_of(await pair.above.fresh_tree(1), "root/w/x") == 3
        await pair.cut()
        assert depth_of(await pair.above.fresh_tree(1), "root/w/x") == 3


def depth_of(tree: Node, path: str) -> int:
    return mailbox_depths(tree)[path]
