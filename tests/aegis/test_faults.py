"""Faults that a daemon is started with: what the variable may say, and what it may not."""

from __future__ import annotations

import errno

import pytest

from actors.faults import Block, Crash, Delay, FaultTable, Kill, Plan, Raise, armed
from aegis.errors import StartupError
from aegis.faults import VARIABLE, parse_plan, plan_from_environment


@pytest.mark.parametrize(
    ("text", "key", "fault"),
    [
        ("ledger.sync.before@3=kill", ("ledger.sync.before", 3), Kill()),
        ("actor.receive.before[Shell]@9=crash", ("actor.receive.before[Shell]", 9), Crash()),
        ("ledger.sync.after@1=delay:0.25", ("ledger.sync.after", 1), Delay(0.25)),
        ("actor.receive.before@1=block:0.5", ("actor.receive.before", 1), Block(0.5)),
    ],
)
def test_a_fault_is_read_with_its_point_its_pass_and_its_kind(
    text: str, key: tuple[str, int], fault: object
) -> None:
    assert parse_plan(text).faults == {key: fault}


def test_an_errno_by_its_name_is_raised_as_the_system_would() -> None:
    table = FaultTable()
    point = table.point("ledger.append.before")
    with armed(parse_plan("ledger.append.before@2=enospc"), table):
        point.hit()
        with pytest.raises(OSError, match="No space left") as caught:
            point.hit()
    assert caught.value.errno == errno.ENOSPC


def test_several_faults_stand_between_commas() -> None:
    plan = parse_plan("note.write.after@1=kill, ledger.sync.before@2=eio")
    assert [*plan.faults] == [("note.write.after", 1), ("ledger.sync.before", 2)]
    assert isinstance(plan.faults["ledger.sync.before", 2], Raise)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kill",
        "a.b.before@0=kill",
        "a.b.before@1=",
        "a.b.before@1=often",
        "a.b.before@1=block:",
        "@1=kill",
    ],
)
def test_what_is_no_fault_is_refused_with_the_form_that_it_must_have(text: str) -> None:
    with pytest.raises(StartupError, match=r"<point>@<pass>"):
        parse_plan(text)


def test_without_the_variable_there_is_no_plan() -> None:
    assert plan_from_environment({}) is None
    assert plan_from_environment({VARIABLE: ""}) is None
    assert isinstance(plan_from_environment({VARIABLE: "a.b.before@1=kill"}), Plan)
