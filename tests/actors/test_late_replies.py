"""G6: a late reply is dropped and counted; what is no reply is not."""

from __future__ import annotations

import contextlib

import attrs
import pytest
import trio
import trio.testing

from actors import (
    Actor,
    AskError,
    ChildSpec,
    MailboxSpec,
    OnRestart,
    Overflow,
    Ref,
    Refusal,
    Request,
    SupervisorSpec,
    open_system,
)


@attrs.frozen
class Do(Request[str]):
    """Each word of ``how`` in turn; to ``wait`` takes two seconds."""

    how: str


class Slow(Actor[Do]):
    """Does what it is told, also when nobody waits for it any more."""

    async def receive(self, message: Do) -> None:
        for word in message.how.split():
            match word:
                case "wait":
                    await trio.sleep(2)
                case "answer":
                    self.reply(message, "done")
                case "refuse":
                    raise Refusal
                case "crash":
                    raise ValueError("made to order")


def spec(mailbox: MailboxSpec | None = None) -> SupervisorSpec:
    return SupervisorSpec(
        name="root",
        children=tuple(
            ChildSpec.of(name, Slow).with_options(mailbox=mailbox or MailboxSpec()) for name in "ab"
        ),
    )


async def ask(slow: Ref[Do], how: str, patience_s: float = 100.0) -> None:
    with trio.move_on_after(patience_s), contextlib.suppress(AskError, Refusal):
        await slow.ask(Do(how), timeout=1.0)


@pytest.mark.parametrize(
    ("how", "late"),
    [
        ("answer", 0),
        ("wait answer", 1),
        ("wait refuse", 1),
        ("wait answer answer", 2),
        ("answer answer", 1),
        ("answer refuse", 1),
        # An end of a life, or no answer at all, is no reply.
        ("answer crash", 0),
        ("wait crash", 0),
        ("wait", 0),
        ("", 0),
    ],
)
async def test_a_system_counts_what_was_answered_after_the_outcome(
    how: str, late: int, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_system(spec()) as system:
        await ask(system.ref("root/a"), how)
        await trio.sleep(5)
        assert system.late_replies == late


async def test_an_answer_to_an_asker_that_was_cancelled_is_late(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(spec()) as system:
        await ask(system.ref("root/a"), "wait answer", patience_s=0.5)
        await trio.sleep(5)
        assert system.late_replies == 1


async def test_the_late_replies_of_all_actors_are_counted_together(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(spec()) as system, open_system(spec()) as other:
        for name in "aba":
            await ask(system.ref(f"root/{name}"), "wait answer")
            await trio.sleep(5)
        assert (system.late_replies, other.late_replies) == (3, 0)


async def test_an_answer_that_nobody_asked_for_is_not_late() -> None:
    async with open_system(spec()) as system:
        system.ref("root/a").tell(Do("answer answer"))
        await trio.testing.wait_all_tasks_blocked()
        assert system.late_replies == 0


@pytest.mark.parametrize(
    "mailbox",
    [
        MailboxSpec(on_restart=OnRestart.CLEAR),
        MailboxSpec(capacity=1, overflow=Overflow.DROP_OLDEST),
    ],
    ids=["cleared", "dropped"],
)
async def test_a_request_that_is_thrown_away_after_its_time_is_no_late_reply(
    mailbox: MailboxSpec, autojump_clock: trio.testing.MockClock
) -> None:
    async with open_system(spec(mailbox)) as system:
        a = system.ref("root/a")
        a.tell(Do("wait crash"))
        await trio.testing.wait_all_tasks_blocked()
        await ask(a, "answer")  # waits behind that, in vain
        assert trio.current_time() == pytest.approx(1.0)
        a.tell(Do(""))
        await trio.sleep(5)
        assert await a.ask(Do("answer")) == "done"
        assert system.late_replies == 0
