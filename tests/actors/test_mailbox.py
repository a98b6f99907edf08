"""The mailbox alone: order, lanes, room, classes."""

from __future__ import annotations

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

import actors
from actors.envelope import Envelope
from actors.errors import MailboxFull, MisuseError, WrongMessage
from actors.mailbox import Mailbox, MailboxSpec, Overflow, Signal
from actors.messages import message_classes
from actors.reply import Reply


@attrs.frozen
class Number:
    value: int


@attrs.frozen
class Special(Number):
    pass


@attrs.frozen
class Tick:
    value: int = 0


def mailbox(capacity: int = 10, overflow: Overflow = Overflow.REJECT) -> Mailbox:
    spec = MailboxSpec(capacity=capacity, overflow=overflow)
    return Mailbox("root/a", frozenset({Number, Tick}), spec)


def taken(box: Mailbox) -> list[object]:
    return [_bare(item) for item in box.take_all()]


def test_messages_come_out_in_the_order_they_went_in() -> None:
    box = mailbox()
    for value in range(5):
        box.put(Number(value))
    assert len(box) == 5
    assert taken(box) == [Number(value) for value in range(5)]
    assert box.take() is None


def test_a_signal_overtakes_every_message() -> None:
    box = mailbox()
    box.put(Number(1))
    box.put_signal(Signal.STOP)
    assert box.take() is Signal.STOP
    assert box.take() == Number(1)


def test_news_of_the_runtime_overtakes_nothing() -> None:
    box = mailbox()
    box.put(Number(1))
    box.put_always(Tick())
    box.put(Number(2))
    assert taken(box) == [Number(1), Tick(), Number(2)]


async def test_a_stop_overtakes_a_full_mailbox_and_all_who_wait_for_room() -> None:
    box = mailbox(capacity=1, overflow=Overflow.WAIT)
    box.put(Number(1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.put_when_room, Number(2))
        await trio.testing.wait_all_tasks_blocked()
        box.put_signal(Signal.STOP)
        assert box.take() is Signal.STOP
        assert box.take_all() == [Number(1)]
    assert taken(box) == [Number(2)]


def test_the_control_lane_is_the_runtimes_own() -> None:
    assert "Signal" not in actors.__all__
    with pytest.raises(MisuseError, match="not a message"):
        message_classes(Signal)


def test_the_same_signal_twice_is_one() -> None:
    box = mailbox()
    box.put_signal(Signal.STOP)
    box.put_signal(Signal.STOP)
    assert box.take() is Signal.STOP
    assert box.take() is None


def test_dropped_signals_are_not_seen_by_the_next_life() -> None:
    box = mailbox()
    box.put_signal(Signal.STOP)
    box.drop_signals()
    assert box.take() is None


def test_a_full_mailbox_rejects_and_says_so() -> None:
    box = mailbox(capacity=2)
    box.put(Number(1))
    box.put(Number(2))
    with pytest.raises(MailboxFull, match=r"root/a is full \(2 messages\)"):
        box.put(Number(3))
    assert taken(box) == [Number(1), Number(2)]


def test_requests_leave_a_quarter_of_the_room_to_messages_nobody_waits_for() -> None:
    box = mailbox(capacity=8)
    for value in range(6):
        box.put_request(Envelope(Number(value), Reply()))
    with pytest.raises(MailboxFull):
        box.put_request(Envelope(Number(6), Reply()))
    box.put(Number(7))
    box.put(Number(8))
    with pytest.raises(MailboxFull):
        box.put(Number(9))


def test_drop_oldest_makes_room_and_counts() -> None:
    box = mailbox(capacity=2, overflow=Overflow.DROP_OLDEST)
    for value in range(5):
        box.put(Number(value))
    assert box.dropped == 3
    assert taken(box) == [Number(3), Number(4)]


OPERATIONS = st.lists(
    st.sampled_from(["put", "put", "put", "news", "take", "take", "take_all"]),
    min_size=8,
    max_size=60,
)


@pytest.mark.parametrize("overflow", [Overflow.REJECT, Overflow.DROP_OLDEST])
@given(operations=OPERATIONS)
def test_whatever_is_put_and_taken_a_mailbox_is_one_bounded_queue(
    overflow: Overflow, operations: list[str]
) -> None:
    box, model, dropped = mailbox(4, overflow), list[object](), 0
    for number, operation in enumerate(operations):
        if operation == "take":
            assert _bare(box.take()) == (model.pop(0) if model else None)
        elif operation == "take_all":
            assert taken(box) == model
            model = []
        elif operation == "news":
            box.put_always(Tick(number))
            model.append(Tick(number))
        elif len(model) >= 4 and overflow is Overflow.REJECT:
            with pytest.raises(MailboxFull):
                box.put(Number(number))
        else:
            oldest = [each for each in model if isinstance(each, Number)][:1]
            if len(model) >= 4 and oldest:
                model.remove(oldest[0])
                dropped += 1
            box.put(Number(number))
            model.append(Number(number))
        assert (len(box), box.dropped) == (len(model), dropped)


def _bare(item: object) -> object:
    return item.message if isinstance(item, Envelope) else item


async def test_the_asker_of_a_dropped_request_gets_mailbox_full() -> None:
    box = mailbox(capacity=1, overflow=Overflow.DROP_OLDEST)
    reply: Reply[int] = Reply()
    box.put_request(Envelope(Number(1), reply))
    box.put(Number(2))
    with pytest.raises(MailboxFull, match="newer messages came"):
        await reply.wait()


def test_news_of_the_runtime_finds_room_in_a_full_mailbox() -> None:
    box = mailbox(capacity=1)
    box.put(Number(1))
    box.put_always(Tick())
    assert taken(box) == [Number(1), Tick()]


def test_drop_oldest_never_drops_news_of_the_runtime() -> None:
    box = mailbox(capacity=2, overflow=Overflow.DROP_OLDEST)
    box.put_always(Tick(1))
    box.put(Number(1))
    box.put_always(Tick(2))
    for value in range(2, 50):
        box.put(Number(value))
    assert [each for each in taken(box) if isinstance(each, Tick)] == [Tick(1), Tick(2)]


def test_a_drop_oldest_mailbox_full_of_news_still_holds_one_message() -> None:
    box = mailbox(capacity=1, overflow=Overflow.DROP_OLDEST)
    box.put_always(Tick())
    box.put(Number(1))
    box.put(Number(2))
    assert taken(box) == [Tick(), Number(2)]
    assert box.dropped == 1


@pytest.mark.parametrize("message", [3, None, Special(1)])
def test_only_the_exact_classes_are_accepted(message: object) -> None:
    with pytest.raises(WrongMessage, match="it accepts Number, Tick"):
        mailbox().put(message)


async def test_waiting_ends_when_something_comes() -> None:
    box = mailbox()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.wait)
        await trio.testing.wait_all_tasks_blocked()
        box.put(Number(1))
    assert len(box) == 1


async def test_waiting_is_over_at_once_when_something_is_there() -> None:
    box = mailbox()
    box.put_signal(Signal.STOP)
    with trio.testing.assert_no_checkpoints():
        await box.wait()


async def test_a_cancelled_wait_loses_nothing() -> None:
    box = mailbox()
    with trio.move_on_after(0):
        await box.wait()
    box.put(Number(1))
    await box.wait()
    assert taken(box) == [Number(1)]


async def test_a_message_may_come_to_a_wait_that_has_just_been_cancelled() -> None:
    box = mailbox()
    scope = trio.CancelScope()

    async def wait() -> None:
        with scope:
            await box.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
        box.put(Number(1))
    assert scope.cancelled_caught
    assert taken(box) == [Number(1)]


async def test_two_tasks_may_not_wait_on_one_mailbox() -> None:
    box = mailbox()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.wait)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(MisuseError, match="two tasks wait"):
            await box.wait()
        nursery.cancel_scope.cancel()
