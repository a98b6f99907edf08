"""Messages that an idle receiver handles in the step of their sender."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import Actor, ChildSpec, Down, Ref, SupervisorSpec, WrongMessage, open_system
from actors.faults import RUNTIME, Crash, Delay, Plan, armed

who: ContextVar[str] = ContextVar("who", default="nobody")


@attrs.frozen
class Add:
    """Note this text; ``fails``: raise an error then."""

    text: str
    fails: bool = False


@attrs.frozen
class AddLater:
    """Note this text in the actor's own task."""

    text: str


@attrs.frozen
class Hold:
    """Be busy until this event."""

    until: trio.Event


@attrs.frozen
class PassBack:
    """Hand ``Add`` over to this actor, which has handed this over."""

    to: Ref[Any]


class Book(Actor[Add | AddLater | Hold | PassBack]):
    """Notes texts at once, if it is idle."""

    def __init__(self, *, texts: list[str]) -> None:
        self._texts = texts

    async def receive(self, message: Add | AddLater | Hold | PassBack) -> None:
        match message:
            case AddLater(text=text):
                self._texts.append(f"later {text}")
            case Hold(until=until):
                await until.wait()
            case _:
                self.receive_now(message)

    def receive_now(self, message: Add | AddLater | Hold | PassBack) -> bool:
        match message:
            case Add(text=text, fails=fails):
                self._texts.append(text)
                if fails:
                    raise RuntimeError(text)
                return True
            case PassBack(to=to):
                assert not to.hand_over(Add("passed back")), "it is in a handler"
                self.context.start_soon(self._helper)
                return True
        return False

    async def _helper(self) -> None:
        self._texts.append(f"helper of {who.get()}")


class Sender(Actor[Add | PassBack | Down]):
    """Hands what it gets over to the book, and notes when that ends."""

    def __init__(self, *, texts: list[str]) -> None:
        self._texts = texts

    async def setup(self) -> None:
        self._book = self.context.sibling("book", Book)
        self.context.monitor(self._book)
        who.set("the sender")

    async def receive(self, message: Add | PassBack | Down) -> None:
        self.receive_now(message)

    def receive_now(self, message: Add | PassBack | Down) -> bool:
        match message:
            case Down(incarnation=incarnation):
                self._texts.append(f"down {incarnation}")
            case Add() if message.text == "passed back":
                self._texts.append(message.text)
            case _:
                handled = self._book.hand_over(message)
                self._texts.append(f"sent {handled}")
        return True


def open_book(texts: list[str]) -> Any:
    children = (
        ChildSpec.of("book", Book, texts=texts),
        ChildSpec.of("sender", Sender, texts=texts),
    )
    return open_system(SupervisorSpec(name="root", children=children))


async def settled() -> None:
    await trio.testing.wait_all_tasks_blocked(0.01)


async def test_an_idle_receiver_handles_a_message_before_the_sender_continues() -> None:
    texts: list[str] = []
    async with open_book(texts) as system:
        await settled()
        assert system.ref("root/book").hand_over(Add("a"))
        assert texts == ["a"]


async def test_a_message_never_overtakes_another_and_a_busy_receiver_gets_it_later() -> None:
    texts: list[str] = []
    async with open_book(texts) as system:
        await settled()
        book, until = system.ref("root/book"), trio.Event()
        book.tell(Add("a"))
        assert not book.hand_over(Add("b"))
        book.tell(Hold(until))
        await settled()
        assert not book.hand_over(Add("c"))
        assert texts == ["a", "b"]
        until.set()
        await settled()
        assert texts == ["a", "b", "c"]


async def test_a_message_that_needs_the_actors_own_task_is_queued() -> None:
    texts: list[str] = []
    async with open_book(texts) as system:
        await settled()
        assert not system.ref("root/book").hand_over(AddLater("a"))
        assert texts == []
        await settled()
        assert texts == ["later a"]


async def test_a_receiver_that_raises_is_restarted_and_its_sender_continues(
    autojump_clock: trio.testing.MockClock,
) -> None:
    texts: list[str] = []
    async with open_book(texts) as system:
        await settled()
        book = system.ref("root/book")
        system.ref("root/sender").tell(Add("a", fails=True))
        await settled()
        await trio.sleep(60)
        assert texts == ["a", "sent False", "down 1"]
        assert not book.hand_over(Add("b", fails=True))
        assert not book.hand_over(Add("c")), "it is between two incarnations"
        await trio.sleep(60)
        assert texts[3] == "b"
        assert sorted(texts[4:]) == ["c", "down 2"]
        assert [each.restarts for each in system.tree().children] == [2, 0]


async def test_no_handler_is_entered_twice_and_helpers_belong_to_the_receiver() -> None:
    texts: list[str] = []
    async with open_book(texts) as system:
        await settled()
        system.ref("root/sender").tell(PassBack(system.ref("root/sender")))
        await settled()
        assert texts[0] == "sent True"
        assert sorted(texts[1:]) == ["helper of nobody", "passed back"]
        # Also where both handle a message in one step of a third.
        texts.clear()
        assert system.ref("root/sender").hand_over(PassBack(system.ref("root/sender")))
        assert texts == ["sent True"]
        await settled()
        assert sorted(texts[1:]) == ["helper of nobody", "passed back"]


async def test_a_wrong_class_is_the_senders_error_and_a_stopped_receiver_is_a_dead_letter() -> None:
    async with open_book([]) as system:
        await settled()
        book: Ref[Any] = system.ref("root/book")
        with pytest.raises(WrongMessage):
            book.hand_over("text")
        book.stop()
        await settled()
        assert not book.hand_over(Add("a"))
        assert system.dead_letters == 1


@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_crash_at_a_point_of_the_receiver_is_its_own(side: str) -> None:
    texts: list[str] = []
    async with open_book(texts) as system:
        await settled()
        with armed(Plan({(f"actor.receive.{side}[Book]", 1): Crash()}), RUNTIME):
            assert not system.ref("root/book").hand_over(Add("a"))
            await settled()
        assert texts == ["a"] * (side == "after") + ["down 1"]


@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_delay_at_a_point_of_the_receiver_holds_only_the_receiver(
    side: str, autojump_clock: trio.testing.MockClock
) -> None:
    texts: list[str] = []
    async with open_book(texts) as system:
        await settled()
        book = system.ref("root/book")
        with armed(Plan({(f"actor.receive.{side}[Book]", 1): Delay(7.0)}), RUNTIME):
            assert book.hand_over(Add("a")) == (side == "after")
            await trio.sleep(6.9)
            assert not book.hand_over(Add("b"))
            assert texts == ["a"] * (side == "after")
            await trio.sleep(0.2)
        assert texts == ["a", "b"]
