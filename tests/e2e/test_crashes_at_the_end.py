"""An actor crashes while its terminal is closed, or while the whole daemon stops.

A command is in flight that left a process outside its session. A close, or a stop, is made once for
each message of each actor that takes part, with a crash before or after its handler: the terminal
is ended in order all the same, its command has one record, and nothing of it runs on.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from actors import AskError
from actors.faults import RUNTIME, Crash, Plan, armed
from aegis.errors import AegisError
from aegis.protocol import terminals as api
from tests.e2e.harness import GUARD_S, Gate, processes_with
from tests.e2e.inside import DaemonInside, daemon_inside

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("tidied")]

NAME = "build"
Answer = api.CommandRecord | Exception

CHILD = "(setsid sh -c 'trap \"\" HUP TERM; sleep 1000' >/dev/null 2>&1 &);"


@asynccontextmanager
async def at_work(directory: Path, answers: list[Answer]) -> AsyncIterator[DaemonInside]:
    """A daemon whose one terminal runs a command; ``answers`` gets what its caller is told."""
    gate = Gate(directory)
    async with trio.open_nursery() as nursery, daemon_inside(directory) as daemon:
        await daemon.spawn(NAME)
        run = api.RunCommand(name=NAME, cmd=f"{CHILD} echo begun; {gate.hold}", timeout=60)
        nursery.start_soon(_answered, daemon, run, answers)
        await trio.to_thread.run_sync(gate.wait_reached)
        await daemon.has_printed(NAME, "begun")
        yield daemon
    gate.close()


async def _answered(daemon: DaemonInside, run: api.RunCommand, told: list[Answer]) -> None:
    try:
        record: api.CommandRecord = await daemon.front(NAME).ask(run, timeout=2 * GUARD_S)
        told.append(record)
    except (AskError, AegisError) as error:
        told.append(error)


def processes_of(daemon: DaemonInside) -> list[str]:
    return processes_with(f"AEGIS_TERMINAL={daemon.root}/")


async def records_of_the_closed(daemon: DaemonInside) -> list[api.CommandRecord]:
    read = api.ReadRecords(name=NAME, since_seq=-1)
    found: list[api.CommandRecord] = (await daemon.directory.ask(read, timeout=GUARD_S)).result
    return found


def told(record: api.CommandRecord) -> tuple[Any, ...]:
    return (record.seq, record.exit, record.stdout, record.end, record.killed_by_restart)


CLOSED = (0, None, "begun\n", "closed", False)
KILLED = (0, None, "begun\n", "killed_by_restart", True)

ACTORS = ["Terminal", "LedgerWriter", "Shell"]


@pytest.mark.long
@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("actor", ACTORS)
async def test_a_terminal_is_closed_in_order_whatever_crashes_meanwhile(
    tmp_path: Path, actor: str, where: str
) -> None:
    point = f"actor.receive.{where}[{actor}]"
    for number in itertools.count(1):
        plan = Plan({(point, number): Crash()})
        directory = tmp_path / str(number)
        directory.mkdir()
        answers: list[Answer] = []
        with trio.fail_after(2 * GUARD_S):
            async with at_work(directory, answers) as daemon:
                with armed(plan, RUNTIME):
                    request = api.CloseTerminal(name=NAME)
                    closed = await daemon.directory.ask(request, timeout=GUARD_S)
                assert (closed.ok, closed.leftover) == (True, []), number
                assert processes_of(daemon) == [], number
                [record] = await records_of_the_closed(daemon)
                # A shell whose actor crashed did not live to be closed.
                assert told(record) == CLOSED or (actor == "Shell" and told(record) == KILLED), (
                    number,
                    record,
                )
                assert actor == "Terminal" or answers == [record], number
                again = await daemon.spawn(NAME)
                assert again.state == "idle"
                assert (await daemon.ask(NAME, api.RunCommand(name=NAME, cmd="true"))).seq == 1
        if plan.hits[point] < number:
            break
    assert number > 1, "nothing was struck"


@pytest.mark.long
@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("actor", [*ACTORS, "TerminalDirectory"])
async def test_a_daemon_stops_in_order_whatever_crashes_meanwhile(
    tmp_path: Path, actor: str, where: str, capfd: pytest.CaptureFixture[str]
) -> None:
    point = f"actor.receive.{where}[{actor}]"
    for number in itertools.count(1):
        directory, plan = tmp_path / str(number), Plan({(point, number): Crash()})
        directory.mkdir()
        answers: list[Answer] = []
        with trio.fail_after(2 * GUARD_S):
            async with at_work(directory, answers) as daemon:
                daemon.on_stop = partial(armed, plan, RUNTIME)
            # On a busy machine a stop gives up waiting; then the callers get no record.
            gave_up = "terminals did not end in time" in capfd.readouterr().out
            assert processes_of(daemon) == [], number
            ledger = daemon.state.terminals / NAME / "ledger.jsonl"
            assert ledger.read_bytes().count(b"\n") == 1, f"{number}: not recorded by the stop"
            async with daemon_inside(directory) as daemon:
                [record] = await daemon.records(NAME)
                assert told(record) == KILLED, (number, record)
                assert actor == "Terminal" or gave_up or answers == [record], number
                assert (await daemon.ask(NAME, api.RunCommand(name=NAME, cmd="true"))).seq == 1
        if plan.hits[point] < number:
            break
    assert number > 1, "nothing was struck"
