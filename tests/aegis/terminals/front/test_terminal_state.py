"""Tests of the requests that wait for a terminal's first prompt."""

from __future__ import annotations

from typing import cast

import pytest

from actors import Reply
from actors.timers import Timers
from aegis.protocol.terminals import TerminalInfo
from aegis.terminals.front.terminal_state import PromptWaiters


def unread() -> TerminalInfo:
    """The answer, whose fields no waiter reads."""
    return cast("TerminalInfo", object())


async def test_a_prompt_answers_every_waiter_and_leaves_no_deadline_behind() -> None:
    waiters, timers = PromptWaiters(), Timers()
    replies: list[Reply[TerminalInfo]] = [Reply(), Reply()]
    due = [timers.after(10, None) for _ in replies]
    for number, (reply, timer) in enumerate(zip(replies, due, strict=True)):
        waiters.add(number, reply, timer)
    waiters.answer_all(unread)
    assert all(reply.is_settled for reply in replies)
    assert all(timer.is_cancelled for timer in due)
    waiters.answer(0, lambda: pytest.fail("it was answered"))  # its deadline was in the mailbox
