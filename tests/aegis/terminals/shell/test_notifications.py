"""What a shell's actor keeps to tell again."""

from __future__ import annotations

import pytest

from aegis.terminals import messages as msg
from aegis.terminals.shell.notifications import MAX_KEPT, NotificationLog
from tests.aegis.terminals.samples import ended, started

REFUSED = msg.SubmissionRefused(call=1, at_prompt=True)
STORY = (started(10), ended(10, 20), REFUSED, started(30), ended(30, 30), started(40))


@pytest.mark.parametrize(
    ("raw_end", "kept"), [(5, STORY), (20, STORY[2:]), (30, STORY[5:]), (99, ())]
)
def test_what_is_recorded_is_forgotten_with_all_that_was_before_it(
    raw_end: int, kept: tuple[msg.CommandNotification, ...]
) -> None:
    log = NotificationLog()
    for news in STORY:
        log.keep(news)
    log.recorded(raw_end)
    assert log.all() == kept


def test_only_news_that_decide_about_commands_are_kept() -> None:
    log = NotificationLog()
    log.keep(msg.Prompted(cwd="/"))
    log.keep(msg.TypingChanged(typing=None))
    log.keep(REFUSED)
    assert log.all() == (REFUSED,)


def test_no_more_is_kept_than_the_limit() -> None:
    log = NotificationLog()
    for position in range(MAX_KEPT + 5):
        log.keep(started(position))
    assert len(log.all()) == MAX_KEPT
    assert log.all()[0] == started(5)
