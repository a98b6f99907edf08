"""Chains of askers: a cycle fails at once, and nothing else is taken for one."""

from __future__ import annotations

import attrs
import pytest
import trio
import trio.testing

from actors import (
    Actor,
    ActorCrashed,
    AskCycle,
    AskDeadline,
    AskError,
    ChildSpec,
    Ref,
    Reply,
    Request,
    SupervisorSpec,
    open_system,
)

# A ``Stop`` does what ``Visit`` says: it goes along ``way``, one actor after the other.


@attrs.frozen
class Visit(Request[str]):
    way: tuple[str, ...]
    by: str = "ask"


class Stop(Actor[Visit]):
    """One stop on the way of a ``Visit``."""

    async def receive(self, message: Visit) -> None:
        if not message.way:
            self.reply(message, self.context.path)
            return
        ahead: Ref[Visit] = self.context.sibling(message.way[0], Stop)
        onward = Visit(message.way[1:], message.by)
        match message.by:
            case "ask":
                self.reply(message, await ahead.ask(onward))
            case "pass":
                self.pass_on(message, ahead, onward)
            case "ask, then pass":
                ahead_answer = await ahead.ask(Visit(message.way[1:], "pass"))
                self.reply(message, ahead_answer)
            case "defer":
                self.context.start_soon(_answer_later, self.defer(message), ahead, onward)


async def _answer_later(reply: Reply[str], ahead: Ref[Visit], onward: Visit) -> None:
    try:
        reply.send(await ahead.ask(onward))
    except AskError as error:
        reply.fail(error)


STOPS = SupervisorSpec(
    name="root",
    children=tuple(ChildSpec.of(name, Stop) for name in "abc"),
    intensity=100,
)


@pytest.mark.parametrize("way", ["a", "ba", "bca"])
async def test_a_cycle_of_askers_fails_at_once(
    way: str, autojump_clock: trio.testing.MockClock
) -> None:
    errors: list[Exception] = []
    async with open_system(
        STOPS, observer=lambda event: errors.append(event.error) if event.error else None
    ) as system:
        started = trio.current_time()
        with pytest.raises(ActorCrashed, match="would wait for itself"):
            await system.ref("root/a").ask(Visit(tuple(way)))
        assert trio.current_time() == started
    assert isinstance(errors[0], AskCycle)
    assert str(errors[0]).endswith(" -> ".join(f"root/{each}" for each in "a" + way))


@pytest.mark.parametrize(
    ("way", "by"), [("", "ask"), ("bc", "ask"), ("bab", "pass"), ("aaa", "pass"), ("aba", "defer")]
)
async def test_no_cycle_is_seen_where_nobody_waits_for_himself(
    way: str, by: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_system(STOPS) as system:
        last = way[-1] if way else "a"
        assert await system.ref("root/a").ask(Visit(tuple(way), by)) == f"root/{last}"


async def test_a_request_passed_back_to_its_asker_ends_as_a_cycle() -> None:
    crashes: list[str] = []
    async with open_system(STOPS, observer=lambda event: crashes.append(event.path)) as system:
        crashes.clear()
        with pytest.raises(ActorCrashed, match="AskCycle"):
            await system.ref("root/a").ask(Visit(("b", "a"), "ask, then pass"))
    assert "root/b" not in crashes


# A host asks its guest, and the guest asks back.


@attrs.frozen
class Invite(Request[str]):
    patience_s: float
    stay_s: float


@attrs.frozen
class Greet(Request[str]):
    answer_first: bool
    pause_s: float


@attrs.frozen
class Name(Request[str]):
    pass


@attrs.frozen
class Learnt(Request[list[str]]):
    pass


class Host(Actor[Invite | Name]):
    async def receive(self, message: Invite | Name) -> None:
        if isinstance(message, Name):
            self.reply(message, "the host")
            return
        guest = self.context.sibling("guest", Guest)
        hurried = message.patience_s < 1
        try:
            greeting = Greet(answer_first=not hurried, pause_s=1.0)
            self.reply(message, await guest.ask(greeting, timeout=message.patience_s))
        except AskDeadline:
            self.reply(message, "too slow")
        await trio.sleep(message.stay_s)


class Guest(Actor[Greet | Learnt]):
    def __init__(self) -> None:
        self._learnt: list[str] = []

    async def receive(self, message: Greet | Learnt) -> None:
        if isinstance(message, Learnt):
            self.reply(message, self._learnt)
            return
        if message.answer_first:
            self.reply(message, "hello")
        await trio.sleep(message.pause_s)
        host = self.context.sibling("host", Host)
        self._learnt.append(await host.ask(Name()))
        self.reply(message, "hello at last")


PARTY = SupervisorSpec(
    name="root",
    children=(ChildSpec.of("host", Host), ChildSpec.of("guest", Guest)),
)


@pytest.mark.parametrize(("patience_s", "answer"), [(5.0, "hello"), (0.5, "too slow")])
async def test_an_actor_whose_asker_no_longer_waits_may_ask_it(
    patience_s: float, answer: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_system(PARTY) as system:
        invitation = Invite(patience_s=patience_s, stay_s=2.0)
        assert await system.ref("root/host").ask(invitation) == answer
        assert await system.ref("root/guest").ask(Learnt()) == ["the host"]
        assert [child.restarts for child in system.tree().children] == [0, 0]


# What a helper task asks belongs to no chain of askers.


@attrs.frozen
class Errand(Request[str]):
    pass


class Sender(Actor[Errand | Name]):
    """Its helper asks the runner, who asks the sender, while the handler that began it goes on."""

    async def receive(self, message: Errand | Name) -> None:
        if isinstance(message, Name):
            self.reply(message, "the sender")
            return
        reply = self.defer(message)
        self.context.start_soon(self._send_runner, reply)
        await trio.sleep(1)

    async def _send_runner(self, reply: Reply[str]) -> None:
        reply.send(await self.context.sibling("runner", Runner).ask(Errand()))


class Runner(Actor[Errand]):
    async def receive(self, message: Errand) -> None:
        self.reply(message, await self.context.sibling("sender", Sender).ask(Name()))


async def test_a_helper_task_does_not_belong_to_the_handler_that_started_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    spec = SupervisorSpec(
        name="root",
        children=(
            ChildSpec.of("sender", Sender),
            ChildSpec.of("runner", Runner),
        ),
    )
    async with open_system(spec) as system:
        assert await system.ref("root/sender").ask(Errand()) == "the sender"


class Impatient(Actor[Errand | Name]):
    """Waits for a helper to start that waits for an answer of this very actor."""

    async def receive(self, message: Errand | Name) -> None:
        match message:
            case Errand():
                self.reply(message, await self.context.start(self._help))
            case Name():
                self.reply(message, "nobody")

    async def _help(self, task_status: trio.TaskStatus[str]) -> None:
        try:
            task_status.started(await self.context.ref.ask(Name()))
        except AskCycle as cycle:
            task_status.started(str(cycle))


async def test_a_helper_task_that_the_handler_waits_for_stands_in_its_chain(
    autojump_clock: trio.testing.MockClock,
) -> None:
    spec = SupervisorSpec(name="root", children=(ChildSpec.of("i", Impatient),))
    async with open_system(spec) as system:
        answer = await system.ref("root/i").ask(Errand())
        assert answer == "asking Name would wait for itself: root/i -> root/i"
        assert trio.current_time() == 0


# A handler that has ended waits for nobody, although a request of its is still open.


class Poster(Actor[Errand | Name]):
    """Sends the runner in its handler, and leaves the waiting to a helper task."""

    async def receive(self, message: Errand | Name) -> None:
        if isinstance(message, Name):
            self.reply(message, "the poster")
            return
        letter = self.context.sibling("runner", Messenger).send_request(Errand())
        self.context.start_soon(_forward, letter, self.defer(message))


class Messenger(Actor[Errand]):
    async def receive(self, message: Errand) -> None:
        await trio.sleep(1)
        self.reply(message, await self.context.sibling("poster", Poster).ask(Name()))


async def _forward(letter: Reply[str], answer: Reply[str]) -> None:
    answer.send(await letter.wait())


async def test_a_handler_that_has_ended_is_no_asker_any_more(
    autojump_clock: trio.testing.MockClock,
) -> None:
    spec = SupervisorSpec(
        name="root",
        children=(
            ChildSpec.of("poster", Poster),
            ChildSpec.of("runner", Messenger),
        ),
    )
    async with open_system(spec) as system:
        assert await system.ref("root/poster").ask(Errand()) == "the poster"


# A borrower defers the request of its lender, and later turns to the lender itself.


@attrs.frozen
class Borrow(Request[str]):
    pass


@attrs.frozen
class Settle:
    pass


@attrs.frozen
class CrashNow:
    pass


@attrs.frozen
class Ping(Request[str]):
    pass


class Lender(Actor[Borrow | Ping]):
    async def receive(self, message: Borrow | Ping) -> None:
        match message:
            case Borrow():
                self.reply(message, await self.context.sibling("b", Borrower).ask(Borrow()))
            case Ping():
                self.reply(message, "pong")


class Borrower(Actor[Borrow | Settle | CrashNow | Ping]):
    def __init__(self, heard: list[str]) -> None:
        self._owed: list[Reply[str]] = []
        self._heard = heard

    async def teardown(self) -> None:
        try:
            await self.context.sibling("c", PingsBack).ask(Ping(), timeout=0.5)
        except AskError as error:
            self._heard.append(type(error).__name__)

    async def receive(self, message: Borrow | Settle | CrashNow | Ping) -> None:
        match message:
            case Borrow():
                self._owed.append(self.defer(message))
            case Settle():
                answer = self.context.sibling("a", Lender).send_request(Ping())
                self._owed.pop().send("settled")
                self._heard.append(await answer.wait())
            case CrashNow():
                raise ValueError("made to order")
            case Ping():
                self.reply(message, "pong")


class PingsBack(Actor[Ping]):
    async def receive(self, message: Ping) -> None:
        borrower = self.context.sibling("b", Borrower)
        self.reply(message, await borrower.ask(Ping(), timeout=0.25))


def lending(heard: list[str]) -> SupervisorSpec:
    return SupervisorSpec(
        name="root",
        children=(
            ChildSpec.of("a", Lender),
            ChildSpec.of("b", Borrower, heard=heard),
            ChildSpec.of("c", PingsBack),
        ),
    )


async def test_a_handler_of_a_tell_stands_in_no_chain_of_an_earlier_request() -> None:
    heard: list[str] = []
    async with open_system(lending(heard)) as system:
        borrowed = system.ref("root/a").send_request(Borrow())
        await trio.testing.wait_all_tasks_blocked()
        system.ref("root/b").tell(Settle())
        assert await borrowed.wait() == "settled"
        await trio.testing.wait_all_tasks_blocked()
        assert heard == ["pong"]


async def test_a_teardown_stands_in_no_chain_even_after_a_crash(
    autojump_clock: trio.testing.MockClock,
) -> None:
    crashes: list[type[Exception]] = []
    async with open_system(
        lending([]),
        observer=lambda event: crashes.append(type(event.error)),  # type: ignore[arg-type]
    ) as system:
        crashes.clear()
        system.ref("root/b").tell(CrashNow())
        await trio.sleep(2)
    # The one that it asked, and that asked back, lost patience: no cycle was seen.
    assert AskDeadline in crashes
    assert AskCycle not in crashes
