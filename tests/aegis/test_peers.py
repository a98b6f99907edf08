"""The writer of a command to which a process belongs, by the times of both."""

from __future__ import annotations

import math
import os
from typing import cast

import pytest
import trio
import trio.testing

from actors import System
from aegis.errors import Forbidden
from aegis.peers import (
    LAG_S,
    SLACK_S,
    Peers,
    identity_of_writer,
    is_in_foreground,
    job_started_at,
    with_start,
    writer_at,
)
from aegis.processes.ancestry import Ancestor, ancestry
from aegis.processes.children import ChildCookies
from aegis.processes.os_processes import process_of
from aegis.servers.calls import OPERATOR, Identity
from aegis.terminals.messages import OpenCommand
from aegis.workspaces.cookie import cookie_of_execution


def command(writer: str, began: str, ended: str | None = None) -> OpenCommand:
    """Return a command with times of one day; without an end, it runs."""
    end = None if ended is None else f"2026-05-22T14:00:{ended}Z"
    return OpenCommand(writer, f"2026-05-22T14:00:{began}Z", end)


COMMANDS = [
    command("human", "00.000", "09.990"),
    command("agent:builder", "10.000", "10.019"),
    command("human", "10.020", "10.021"),
    command("human:term", "20.000"),
]
BEGIN = 1_779_458_400.0
"""14:00:00 of that day."""


@pytest.mark.parametrize(
    ("after_s", "writer"),
    [
        (-LAG_S - 1.0, None),
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


def test_the_start_of_an_agents_command_may_be_noted_late() -> None:
    late = [command("agent:builder", "10.500", "10.500"), command("human", "10.501")]
    assert writer_at(late, BEGIN + 10.1) == "agent:builder"
    assert writer_at([command("human", "00.000", "10.000"), *late], BEGIN + 10.1) == "agent:builder"


def test_a_persons_job_is_no_later_command_of_an_agent() -> None:
    jobs = [command("human", "10.000", "10.100"), command("agent:builder", "10.500", "10.600")]
    assert writer_at(jobs, BEGIN + 10.09) == "human"


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


def chain(*cookies: str | None) -> list[Ancestor]:
    """A process and its ancestors; the pid and the start of the highest are 1, of the next 2, …"""
    pids = range(len(cookies), 0, -1)
    return [
        Ancestor(pid=pid, started_at=float(pid), cookie=cookie, group=pid, foreground_group=4)
        for pid, cookie in zip(pids, cookies, strict=True)
    ]


@pytest.mark.parametrize(
    ("cookies", "shell", "start"),
    [
        (("c", "c", "c", None), 2, 3.0),  # below the shell
        ((None, None, "c", None), 2, 3.0),  # the job has removed its cookie
        (("c", "c", None), 2, 3.0),
        (("c", None), 2, math.inf),  # a command has replaced the shell
        ((None, "c", "c", None), 9, 2.0),  # its shell has ended, or it has left it
        (("c", None, None), None, 3.0),
    ],
)
def test_a_job_begins_with_its_highest_process_below_the_shell(
    cookies: tuple[str | None, ...], shell: int | None, start: float
) -> None:
    assert job_started_at(chain(*cookies), shell) == start


def test_the_foreground_is_that_of_the_terminal_of_the_shell() -> None:
    assert is_in_foreground(chain("c", "c", "c", None), 2)  # its group is 4
    assert not is_in_foreground(chain("c", "c", None), 2)
    assert not is_in_foreground(chain("c", "c", "c", None), None)
    assert not is_in_foreground(chain("c", "c", "c", None), 9)


@pytest.mark.real
def test_the_ancestors_of_this_process_do_not_include_it() -> None:
    assert ancestry(os.getpid()) == []
    assert os.getpid() not in {each.pid for each in ancestry(os.getppid())}
    assert ancestry(os.getppid())[0].pid == os.getppid()


def test_a_process_that_is_gone_has_no_ancestors() -> None:
    assert ancestry(2**31 - 1) == []


def test_the_start_of_a_shell_is_between_the_commands_before_and_after_it() -> None:
    """A process that a shell starts before its first command is its opener's."""
    known = with_start(COMMANDS, "agent:eve", BEGIN + 17.0)
    assert [each.writer for each in known] == [
        "human",
        "agent:builder",
        "human",
        "agent:eve",
        "human:term",
    ]
    assert writer_at(known, BEGIN + 11.0) == "human"
    assert writer_at(known, BEGIN + 17.1) == "agent:eve"
    assert writer_at(known, BEGIN + 25.0) == "human:term"


def test_a_shell_that_has_ended_began_before_all_commands() -> None:
    assert with_start(COMMANDS, "agent:eve", -math.inf)[0].writer == "agent:eve"


async def test_a_child_that_connects_before_its_start_is_complete_is_identified_after_it() -> None:
    """Its own environment has a forged cookie by then."""
    children = ChildCookies()
    peers = Peers(root="/root", handle_of_session=lambda session: None, children=children)
    forged = {**os.environ, "AEGIS_TERMINAL": "/root/build/life"}
    found: list[Identity] = []

    async def identify(pid: int) -> None:
        found.append(await peers.identify(cast(System, None), pid))

    async with trio.open_nursery() as nursery:
        process = await trio.lowlevel.open_process(["sleep", "60"], env=forged)
        try:
            with children.starting():
                nursery.start_soon(identify, process.pid)
                await trio.testing.wait_all_tasks_blocked()
                assert found == []
                own = cookie_of_execution("/root", "shop", "eve", 1)
                children.add(process_of(process.pid), own, process_of)
            await trio.testing.wait_all_tasks_blocked()
        finally:
            process.kill()
            await process.wait()
    assert found == [Identity(handle="eve", operator=False)]


@pytest.mark.parametrize("cookie", [None, "/another/root/life"])
async def test_a_child_of_which_the_daemon_knows_nothing_is_refused(cookie: str | None) -> None:
    peers = Peers(root="/root", handle_of_session=lambda session: None)
    plain = {name: text for name, text in os.environ.items() if name != "AEGIS_TERMINAL"}
    own = plain if cookie is None else {**plain, "AEGIS_TERMINAL": cookie}
    process = await trio.lowlevel.open_process(["sleep", "60"], env=own)
    try:
        with pytest.raises(Forbidden, match="it is not known for which caller"):
            await peers.identify(cast(System, None), process.pid)
    finally:
        process.kill()
        await process.wait()
