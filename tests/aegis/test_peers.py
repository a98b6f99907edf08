"""The writer of a command to which a process belongs, by the times of both."""

from __future__ import annotations

import os

import pytest

from aegis.peers import SLACK_S, identity_of_writer, writer_at
from aegis.processes.ancestry import ancestry
from aegis.servers.calls import OPERATOR, Identity
from aegis.terminals.open_commands import OpenCommand

COMMANDS = [
    OpenCommand("human", "2026-05-22T14:00:00.000Z"),
    OpenCommand("agent:builder", "2026-05-22T14:00:10.000Z"),
    OpenCommand("human", "2026-05-22T14:00:10.020Z"),
    OpenCommand("human:term", "2026-05-22T14:00:20.000Z"),
]
BEGIN = 1_779_458_400.0
"""14:00:00 of that day."""


@pytest.mark.parametrize(
    ("after_s", "writer"),
    [
        (-1.0, None),
        (0.0, "human"),
        (9.9, "human"),
        (10.0, "agent:builder"),
        (10.01, "agent:builder"),
        (10.025, "human"),
        (25.0, "human:term"),
    ],
)
def test_the_last_command_before_a_process_is_its_own(after_s: float, writer: str | None) -> None:
    assert writer_at(COMMANDS, BEGIN + after_s) == writer


def test_where_the_order_is_not_certain_it_is_an_agents() -> None:
    assert writer_at(COMMANDS, BEGIN + 10.0 - SLACK_S / 2) == "agent:builder"
    assert writer_at(COMMANDS, BEGIN + 10.020 - SLACK_S / 2) == "agent:builder"


def test_without_commands_nobody_wrote_it() -> None:
    assert writer_at([], BEGIN) is None


@pytest.mark.parametrize(
    ("writer", "identity"),
    [
        (None, OPERATOR),
        ("human", OPERATOR),
        ("human:term", OPERATOR),
        ("agent:builder", Identity(handle="builder", operator=False)),
    ],
)
def test_a_person_is_the_operator_and_an_agent_itself(
    writer: str | None, identity: Identity
) -> None:
    assert identity_of_writer(writer) == identity


@pytest.mark.real
def test_the_ancestors_of_this_process_do_not_include_it() -> None:
    assert ancestry(os.getpid()) == []
    assert os.getpid() not in {each.pid for each in ancestry(os.getppid())}
    assert ancestry(os.getppid())[0].pid == os.getppid()


def test_a_process_that_is_gone_has_no_ancestors() -> None:
    assert ancestry(2**31 - 1) == []
