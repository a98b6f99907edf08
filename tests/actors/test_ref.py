"""Telling and asking: order, and every outcome of an ask."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import (
    Actor,
    ActorCrashed,
    ActorStopped,
    AskCycle,
    AskDeadline,
    AskError,
    ChildSpec,
    MailboxFull,
    MailboxSpec,
    MisuseError,
    NoReply,
    OnRestart,
    Overflow,
    Ref,
    Refusal,
    Reply,
    Request,
    Restart,
    SupervisorSpec,
    WrongMessage,
    open_system,
)


@attrs.frozen
class Say:
    word: str


@attrs.frozen
class Heard(Request[list[str]]):
    pass


@attrs.frozen
class Do(Request[str]):
    """Asks the actor to end this request in the way that ``how`` names."""

    how: str


@attrs.frozen
class Open:
    """Lets those go who wait at the gate, and answers what was deferred."""


class Desk(Actor[Say | Heard | Do | Open]):
    def __init__(self) -> None:
        self._heard: list[str] = []
        self._owed: list[Reply[str]] = []

    async def receive(self, message: Say | Heard | Do | Open) -> None:
        match message:
            case Say(word=word):
                self._heard.append(word)
            case Heard():
                self.reply(message, self._heard)
            case Open():
                for reply in self._owed:
                    reply.send("later")
            case Do(how=how):
                await self._do(how, message)

    async def _do(self, how: str, message: Do) -> None:  # noqa: C901 - one line for each way
        match how:
            case "answer":
                self.reply(message, "done")
            case "answer twice":
                self.reply(message, "first")
                self.reply(message, "second")
            case "refuse":
                raise Refusal("not here")
            case "crash":
                raise ValueError("broken")
            case "answer and crash":
                self.reply(message, "before the crash")
                raise ValueError("broken")
            case "stop":
                self.context.ref.stop()
                await trio.sleep_forever()
            case "finish":
                self.defer(message)
                self.context.finish()
            case "forget":
                pass
            case "hang":
                await trio.sleep_forever()
            case "helper crash":
                self.context.start_soon(_raise)
                await trio.sleep_forever()
            case "defer":
                self._owed.append(self.defer(message))
            case "defer and answer":
                self.defer(message)
                self.reply(message, "answered in hand")
            case "defer and refuse":
                self.defer(message)
                raise Refusal("on second thought")
            case "defer and crash":
                self.defer(message)
                raise ValueError("broken")
            case "defer, then helper crash":
                self.defer(message)
                self.context.start_soon(_raise)


async def _raise() -> None:
    raise OSError("helper")


def desk(**mailbox: Any) -> SupervisorSpec:
    child = ChildSpec(
        name="desk", actor=Desk, restart=Restart.TRANSIENT, mailbox=MailboxSpec(**mailbox)
    )
    return SupervisorSpec(name="root", children=(child,), intensity=100)


async def test_from_one_sender_the_order_is_kept() -> None:
    words = [str(number) for number in range(300)]
    async with open_system(desk()) as system:
        ref = system.ref("root/desk")
        for word in words:
            ref.tell(Say(word))
        assert await ref.ask(Heard()) == words


async def test_a_tell_does_not_wait_for_the_receiver() -> None:
    async with open_system(desk()) as system:
        ref = system.ref("root/desk")
        ref.tell(Do("hang"))
        with trio.testing.assert_no_checkpoints():
            ref.tell(Say("hello"))


@pytest.mark.parametrize(
    ("how", "value"),
    [
        ("answer", "done"),
        ("answer twice", "first"),
        ("answer and crash", "before the crash"),
        ("defer and answer", "answered in hand"),
    ],
)
async def test_an_ask_ends_with_the_first_value(how: str, value: str) -> None:
    async with open_system(desk()) as system:
        assert await system.ref("root/desk").ask(Do(how)) == value


@pytest.mark.parametrize(
    ("how", "outcome", "text"),
    [
        ("refuse", Refusal, "not here"),
        ("crash", ActorCrashed, "root/desk crashed: ValueError: broken"),
        ("helper crash", ActorCrashed, "OSError: helper"),
        ("stop", ActorStopped, "root/desk"),
        ("finish", ActorStopped, "root/desk"),
        ("forget", NoReply, "root/desk ended Do without a reply"),
        ("hang", AskDeadline, "did not answer Do within 5 s"),
        ("defer", AskDeadline, "did not answer Do within 5 s"),
        ("defer and refuse", Refusal, "on second thought"),
        ("defer and crash", ActorCrashed, "ValueError: broken"),
        ("defer, then helper crash", ActorCrashed, "OSError: helper"),
    ],
)
async def test_an_ask_without_a_value_says_why(
    how: str, outcome: type[Exception], text: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_system(desk()) as system:
        with pytest.raises(outcome, match=text):
            await system.ref("root/desk").ask(Do(how))


@pytest.mark.parametrize("how", ["refuse", "forget", "defer and refuse", "answer twice"])
async def test_the_actor_lives_on_after_a_refusal_or_a_forgotten_reply(how: str) -> None:
    async with open_system(desk()) as system:
        ref = system.ref("root/desk")
        ref.tell(Say("before"))
        with pytest.raises((Refusal, NoReply, AssertionError)):
            assert await ref.ask(Do(how)) == "never this"
        assert await ref.ask(Heard()) == ["before"]
        assert system.tree().children[0].restarts == 0


async def test_a_refusal_of_a_told_message_is_a_crash() -> None:
    async with open_system(desk()) as system:
        ref = system.ref("root/desk")
        ref.tell(Do("refuse"))
        await ref.ask(Heard())
        assert system.tree().children[0].restarts == 1


async def test_a_deferred_reply_is_given_later() -> None:
    async with open_system(desk()) as system, trio.open_nursery() as nursery:
        ref = system.ref("root/desk")
        got: list[str] = []

        @nursery.start_soon
        async def ask() -> None:
            got.append(await ref.ask(Do("defer")))

        await trio.testing.wait_all_tasks_blocked()
        assert got == []
        ref.tell(Open())
        await trio.testing.wait_all_tasks_blocked()
        assert got == ["later"]


async def test_an_ask_that_finds_no_room_is_rejected() -> None:
    async with open_system(desk(capacity=1)) as system:
        ref = system.ref("root/desk")
        ref.tell(Do("hang"))
        await trio.testing.wait_all_tasks_blocked()
        ref.tell(Say("fills it"))
        with pytest.raises(MailboxFull, match="1 messages"):
            await ref.ask(Heard())
        with pytest.raises(MailboxFull):
            ref.tell(Say("no room either"))


async def test_an_ask_that_is_dropped_for_newer_messages_ends_with_mailbox_full() -> None:
    async with open_system(desk(capacity=1, overflow=Overflow.DROP_OLDEST)) as system:
        ref = system.ref("root/desk")
        ref.tell(Do("hang"))
        await trio.testing.wait_all_tasks_blocked()
        reply = ref.send_request(Heard())
        ref.tell(Say("newer"))
        with pytest.raises(MailboxFull, match="dropped"):
            await reply.wait()


async def test_an_ask_of_a_stopped_actor_fails_and_a_tell_is_a_dead_letter() -> None:
    async with open_system(desk()) as system:
        ref = system.ref("root/desk")
        await system.supervisor("root").stop_child("desk")
        assert ref.is_stopped
        with pytest.raises(ActorStopped, match="root/desk has stopped"):
            await ref.ask(Heard())
        ref.tell(Say("to nobody"))
        assert system.dead_letters == 1
        ref.stop()


async def test_a_message_of_a_wrong_class_is_refused_where_it_is_sent() -> None:
    @attrs.frozen
    class Other(Request[int]):
        pass

    async with open_system(desk()) as system:
        ref = system.ref("root/desk")
        with pytest.raises(WrongMessage, match="does not accept Other; it accepts Do, Heard"):
            await ref.ask(Other())
        with pytest.raises(WrongMessage):
            ref.tell(Other())
        with pytest.raises(WrongMessage, match="it accepts nothing"):
            system.ref("root").tell(Other())


async def test_a_timeout_of_zero_still_sends_the_request() -> None:
    async with open_system(desk()) as system:
        ref = system.ref("root/desk")
        with pytest.raises(AskDeadline):
            await ref.ask(Do("defer"), timeout=0)
        assert await ref.ask(Heard()) == []


async def test_an_impossible_timeout_sends_nothing() -> None:
    async with open_system(desk()) as system:
        ref = system.ref("root/desk")
        with pytest.raises(ValueError, match="non-negative"):
            await ref.ask(Do("crash"), timeout=-1)
        await ref.ask(Heard())
        assert system.tree().children[0].restarts == 0


async def test_a_cancelled_asker_abandons_its_reply() -> None:
    async with open_system(desk()) as system:
        reply = system.ref("root/desk").send_request(Do("defer"))
        with trio.move_on_after(0):
            await reply.wait()
        assert reply.is_abandoned
        system.ref("root/desk").tell(Open())
        await trio.testing.wait_all_tasks_blocked()
        assert reply.late == 1


async def test_a_request_to_an_actor_between_two_lives_waits_for_the_next(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(desk()) as system:
        ref = system.ref("root/desk")
        for _ in range(2):  # the second crash is followed by a pause
            with pytest.raises(ActorCrashed):
                await ref.ask(Do("crash"))
        assert await ref.ask(Do("answer")) == "done"


async def test_waiting_requests_are_failed_by_a_crash_where_the_mailbox_is_cleared() -> None:
    async with open_system(desk(on_restart=OnRestart.CLEAR)) as system:
        ref = system.ref("root/desk")
        ref.tell(Do("crash"))
        with pytest.raises(ActorCrashed, match="ValueError: broken"):
            await ref.ask(Do("answer"))


async def test_waiting_requests_are_answered_by_the_next_life_where_the_mailbox_is_kept() -> None:
    async with open_system(desk(on_restart=OnRestart.KEEP)) as system:
        ref = system.ref("root/desk")
        ref.tell(Do("crash"))
        assert await ref.ask(Do("answer")) == "done"


async def test_waiting_requests_are_failed_by_a_stop() -> None:
    async with open_system(desk()) as system:
        ref = system.ref("root/desk")
        reply = ref.send_request(Do("answer"))
        ref.stop()
        with pytest.raises(ActorStopped):
            await reply.wait()


async def test_refs_are_equal_by_path_and_stay_in_their_process() -> None:
    async with open_system(desk()) as system:
        ref = system.ref("root/desk")
        assert ref == system.ref("root/desk")
        assert len({ref, system.ref("root/desk"), system.ref("root")}) == 2
        assert repr(ref) == "Ref('root/desk')"
        with pytest.raises(MisuseError, match="send its path instead"):
            pickle.dumps(ref)
        with pytest.raises(MisuseError):
            copy.copy(ref)


# Cycles. A ``Stop`` does what ``Visit`` says: it goes along ``way``, one actor after the other.


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
            case "answer first":
                self.reply(message, "answered")
                await ahead.ask(onward)


async def _answer_later(reply: Reply[str], ahead: Ref[Visit], onward: Visit) -> None:
    try:
        reply.send(await ahead.ask(onward))
    except AskError as error:
        reply.fail(error)


STOPS = SupervisorSpec(
    name="root",
    children=tuple(ChildSpec(name=name, actor=Stop) for name in "abc"),
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
    children=(ChildSpec(name="host", actor=Host), ChildSpec(name="guest", actor=Guest)),
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
            ChildSpec(name="sender", actor=Sender),
            ChildSpec(name="runner", actor=Runner),
        ),
    )
    async with open_system(spec) as system:
        assert await system.ref("root/sender").ask(Errand()) == "the sender"


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
            ChildSpec(name="poster", actor=Poster),
            ChildSpec(name="runner", actor=Messenger),
        ),
    )
    async with open_system(spec) as system:
        assert await system.ref("root/poster").ask(Errand()) == "the poster"
