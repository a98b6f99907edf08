"""Which calls are made again after a lost connection, and after how long."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from aegis.client.blocking.session import BlockingSession
from aegis.client.retrying import (
    FIRST_DELAY_S,
    MAX_DELAY_S,
    MAX_TRIES,
    SETTLED_S,
    checked_patience,
    delay_s,
    failures_after,
    is_repeated,
    lost,
)
from aegis.protocol.entry import Entry
from aegis.protocol.table import BY_NAME, COMMANDS


@pytest.mark.parametrize(
    ("failures", "whole"),
    [
        (1, FIRST_DELAY_S),
        (2, 2 * FIRST_DELAY_S),
        (4, 8 * FIRST_DELAY_S),
        (6, 32 * FIRST_DELAY_S),
        (7, MAX_DELAY_S),
        (100_000, MAX_DELAY_S),
    ],
)
def test_a_delay_doubles_up_to_a_bound_and_its_upper_half_is_chance(
    failures: int, whole: float
) -> None:
    assert delay_s(failures, 0.0) == whole / 2
    assert delay_s(failures, 0.5) == whole * 0.75
    assert delay_s(failures, 1.0) == whole


@pytest.mark.parametrize(
    ("failures", "lasted_s", "after"),
    [(0, 0.0, 1), (3, 0.1, 4), (3, SETTLED_S, 1), (3, SETTLED_S - 0.001, 4), (0, 3600.0, 1)],
)
def test_a_connection_that_lasted_ends_the_row_of_failures(
    failures: int, lasted_s: float, after: int
) -> None:
    assert failures_after(failures, lasted_s) == after


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_only_what_reads_is_asked_again_once_it_was_sent(entry: Entry) -> None:
    for tries in range(1, MAX_TRIES):
        assert is_repeated(entry, tries, was_sent=True) is entry.read_only


def test_what_reads_is_not_asked_again_for_ever() -> None:
    assert not is_repeated(BY_NAME["term_list"], MAX_TRIES, was_sent=True)


@pytest.mark.parametrize("tries", [1, MAX_TRIES, 50])
def test_what_never_left_is_sent_with_the_next_connection(tries: int) -> None:
    assert is_repeated(BY_NAME["term_run"], tries, was_sent=False)


@pytest.mark.parametrize(
    ("command", "may_repeat", "advice"),
    [
        ("term_run", False, "look at what became of it before you call again"),
        ("term_keys", False, "look at what became of it before you call again"),
        ("term_subscribe", True, "calling again does no harm"),
        ("term_list", True, "calling again does no harm"),
    ],
)
def test_a_lost_call_says_whether_it_may_be_made_again(
    command: str, may_repeat: bool, advice: str
) -> None:
    error = lost(BY_NAME[command], "the daemon closed it")
    assert (error.command, error.maybe_done, error.may_repeat) == (command, True, may_repeat)
    assert str(error) == (
        f"the connection was lost during {command} (the daemon closed it): "
        f"it may have been carried out; {advice}"
    )


@pytest.mark.parametrize("patience_s", [math.nan, -1.0, -math.inf])
def test_a_patience_that_is_no_time_is_refused(patience_s: float) -> None:
    with pytest.raises(ValueError, match="patience_s must be 0 or more seconds"):
        checked_patience(patience_s)
    with pytest.raises(ValueError, match="patience_s must be 0 or more seconds"):
        BlockingSession(Path("/"), handle=None, patience_s=patience_s)


def test_a_patience_may_be_without_end() -> None:
    assert checked_patience(math.inf) == math.inf
