"""Tests of the client that opens and closes terminals, after a restart of the daemon."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from typing import Any, cast

import pytest

from aegis.client.line import CommandFailed, ConnectionLost, LineClient
from tests.chaos.real.opener import Opener
from tests.chaos.real.scratch import ScratchDaemon

RECORD = {"seq": 0, "stdout": "x\n"}


class Wire:
    """A daemon that answers a number of commands and is dead then."""

    def __init__(self, answers: int, refuse: str = "") -> None:
        self.done: list[tuple[str, str]] = []
        self._answers = answers
        self._refuse = refuse

    def call(self, command: str, **arguments: object) -> dict[str, Any]:
        if len(self.done) == self._answers:
            raise ConnectionLost("it is gone")
        self.done.append((command, str(arguments["name"])))
        if command == self._refuse:
            raise CommandFailed("storage", "the disk is full")
        return dict(RECORD)


class Kept:
    """The terminals and records of a last incarnation."""

    def __init__(self, records: dict[str, dict[str, Any]]) -> None:
        self._records = records

    def call(self, command: str, arguments: dict[str, object]) -> dict[str, Any]:
        assert command == "term_read"
        record = self._records.get(str(arguments["name"]))
        if record is None:
            raise CommandFailed("not_found", "no such terminal")
        return {"result": [record]}


def names() -> Callable[[], str]:
    numbers = count()
    return lambda: f"x{next(numbers)}"


class Sure(random.Random):
    """A client that closes every terminal it may close, with or without a purge."""

    def __init__(self, *, purge: bool) -> None:
        super().__init__(0)
        self._purge = purge

    def random(self) -> float:
        return 0.39 if self._purge else 0.99


def worked(wire: Wire, *, purge: bool = False) -> Opener:
    opener = Opener(names(), Sure(purge=purge))
    opener.work(cast(ScratchDaemon, wire))
    return opener


def complaints(opener: Opener, there: set[str], records: dict[str, dict[str, Any]]) -> list[str]:
    return [*opener.settle(there), *opener.differences(cast(LineClient, Kept(records)))]


def test_a_terminal_that_was_confirmed_open_must_be_restored() -> None:
    opener = worked(Wire(answers=1))  # only the spawn: its run was lost
    assert list(opener.settle({"x0"})) == []
    assert list(opener.settle(set())) == ["x0 was open and is not any longer"]


@pytest.mark.parametrize("there", [set[str](), {"x0"}])
def test_a_terminal_whose_close_was_lost_may_be_there_or_not(there: set[str]) -> None:
    opener = worked(Wire(answers=2))
    assert list(opener.settle(there)) == []
    assert list(opener.settle(there)) == []


@pytest.mark.parametrize(("purge", "what"), [(False, "closed"), (True, "purged")])
def test_a_terminal_that_was_confirmed_closed_must_stay_closed(purge: bool, what: str) -> None:
    opener = worked(Wire(answers=3), purge=purge)
    assert list(opener.settle({"x0"})) == [f"x0 was {what} and is open again"]


def test_what_was_closed_keeps_its_record_and_what_was_purged_keeps_none() -> None:
    assert complaints(worked(Wire(answers=3)), set(), {"x0": RECORD}) == []
    assert len(complaints(worked(Wire(answers=3)), set(), {})) == 1
    other = {"x0": {**RECORD, "stdout": "y\n"}}
    assert len(complaints(worked(Wire(answers=3)), set(), other)) == 1
    assert complaints(worked(Wire(answers=3), purge=True), set(), {}) == []
    assert len(complaints(worked(Wire(answers=3), purge=True), set(), {"x0": RECORD})) == 1


@pytest.mark.parametrize("there", [set[str](), {"x0"}])
def test_after_a_refusal_the_state_of_the_new_daemon_is_accepted(there: set[str]) -> None:
    records = dict.fromkeys(there, RECORD)
    assert complaints(worked(Wire(answers=1, refuse="term_spawn")), there, records) == []
    assert complaints(worked(Wire(answers=3, refuse="term_close")), there, {"x0": RECORD}) == []
