"""Handoffs with a key are delivered once, through restarts and reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from aegis.errors import AegisError, Forbidden, InvalidRequest
from aegis.inboxes.handoffs import NoSessions
from aegis.inboxes.router import HandleSeen
from aegis.protocol.inboxes import Handoff, MessageList, ReadInbox, Receipt
from tests.aegis.inboxes.harness import open_inboxes, router


def work(key: str | None = "k1", sender: str | None = "pm", text: str = "run") -> Handoff:
    return Handoff(from_handle=sender, target_handle="builder", context=text, key=key)


async def test_a_repeated_key_is_delivered_once_with_the_same_id(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        ref.tell(HandleSeen(handle="builder"))
        first: Receipt = await ref.ask(work())
        again: Receipt = await ref.ask(work(sender="PM", text="run it again"))
        other: Receipt = await ref.ask(work("k2"))
        assert first.id == again.id != other.id
        found: MessageList = await ref.ask(ReadInbox(from_handle="builder"))
        assert [each.body for each in found.messages] == ["run", "run"]
        await ref.ask(ReadInbox(from_handle="builder", after=found.next))
        assert (await ref.ask(work())).id == first.id
        assert (await ref.ask(ReadInbox(from_handle="builder"))).messages == []
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        assert (await ref.ask(work())).id == first.id
        assert (await ref.ask(ReadInbox(from_handle="builder"))).messages == []


async def test_a_key_is_the_senders_own(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        ref.tell(HandleSeen(handle="builder"))
        senders = ("pm", "ann", None, "human")
        ids = [(await ref.ask(work(sender=each))).id for each in senders]
        assert len(set(ids)) == 3, "a person is the same with and without the name"
        without = [(await ref.ask(work(None))).id for _ in range(2)]
        assert len({*without}) == 2


async def test_only_a_session_can_be_interrupted(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path) as system:
        ref = router(system)
        ref.tell(HandleSeen(handle="builder"))
        with pytest.raises(InvalidRequest, match="'builder' is no session"):
            await ref.ask(Handoff(target_handle="builder", context="x", interrupt=True))
        assert (await ref.ask(ReadInbox(from_handle="builder"))).messages == []


class Strict(NoSessions):
    def refuse_handoff(
        self, sender: str, target: str, *, interrupts: bool, now: float
    ) -> AegisError | None:
        return Forbidden(f"{sender} to {target}") if sender == "ann" else None


async def test_a_refused_message_is_not_in_the_inbox(tmp_path: Path) -> None:
    async with open_inboxes(tmp_path, sessions=Strict()) as system:
        ref = router(system)
        ref.tell(HandleSeen(handle="builder"))
        with pytest.raises(Forbidden, match="ann to builder"):
            await ref.ask(work(sender="ann"))
        for sender in ("pm", None):
            await ref.ask(work(sender=sender))
        found = await ref.ask(ReadInbox(from_handle="builder"))
        assert [each.sender for each in found.messages] == ["agent:pm", "human"]
