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
    AskDeadline,
    ChildSpec,
    MailboxFull,
    MailboxSpec,
    MisuseError,
    NoReply,
    OnRestart,
    Overflow,
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
    child = ChildSpec.of("desk", Desk).with_options(
        restart=Restart.TRANSIENT, mailbox=MailboxSpec(**mailbox)
    )
    return SupervisorSpec(name="root", children=(child,), intensity=100)


async def test_from_one_sender_the_order_is_kept() -> None:
    words = [str(number) for number in range(300)]
    async with open_system(desk()) as system:
        ref = system.ref("root/desk")
        for word in words:
            ref.tell(Say(word))
        assert await ref.ask(Heard()) == words


async def test_a_tell_does_not_wait_for_the_receiver(
    autojump_clock: trio.testing.MockClock,
) -> None:
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


async def test_an_ask_that_finds_no_room_is_rejected(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(desk(capacity=1)) as system:
        ref = system.ref("root/desk")
        ref.tell(Do("hang"))
        await trio.testing.wait_all_tasks_blocked()
        ref.tell(Say("fills it"))
        with pytest.raises(MailboxFull, match="1 messages"):
            await ref.ask(Heard())
        with pytest.raises(MailboxFull):
            ref.tell(Say("no room either"))


async def test_an_ask_that_is_dropped_for_newer_messages_ends_with_mailbox_full(
    autojump_clock: trio.testing.MockClock,
) -> None:
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
        with pytest.raises(ValueError, match="is not a time"):
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
