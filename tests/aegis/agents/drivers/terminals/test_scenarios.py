"""The scenarios of the protocol's page on terminals, with real processes."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from aegis.errors import NotFound
from tests.aegis.agents.drivers.terminals.world import GUARD_S, KILLED, terminals_in

pytestmark = pytest.mark.real

ENDED = ({"exitCode": None, "signal": "SIGTERM"}, KILLED)
"""By the first signal; by the second one if the machine was too busy for the shell to end by it.

The answer to ``kill`` comes after some time whether it has ended or not.
"""


async def test_a_command_is_run_and_waited_for(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("echo a; echo b | wc -l; exit 3")
        assert await it.wait(id_) == {"exitCode": 3, "signal": None}
        assert await it.call("output", id_) == {
            "output": "a\n1\n",
            "truncated": False,
            "exitStatus": {"exitCode": 3, "signal": None},
        }
        assert await it.call("release", id_) == {}


async def test_the_output_of_a_running_command_has_no_exit_status(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("echo begun; sleep 1000")
        await it.printed(id_, "begun")
        assert await it.call("output", id_) == {"output": "begun\n", "truncated": False}


async def test_a_killed_command_keeps_its_terminal(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("echo begun; sleep 1000")
        await it.printed(id_, "begun")
        assert await it.call("kill", id_) == {}
        status = await it.wait(id_)
        assert status in ENDED
        ended = await it.call("output", id_)
        assert ended == {"output": "begun\n", "truncated": False, "exitStatus": status}
        assert await it.call("kill", id_) == {}


async def test_a_release_answers_an_open_wait_and_the_id_is_unknown_afterwards(
    tmp_path: Path,
) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("echo begun; sleep 1000")
        await it.printed(id_, "begun")
        answers = []

        async def wait() -> None:
            answers.append(await it.wait(id_))

        with trio.fail_after(GUARD_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                await trio.testing.wait_all_tasks_blocked()
                assert await it.call("release", id_) == {}
        assert answers == [KILLED]
        assert it.processes() == []
        for method in ("output", "wait_for_exit", "kill", "release"):
            with pytest.raises(NotFound, match="was released, or never created"):
                await it.call(method, id_)
        (end,) = it.ends
        assert (end.terminal, end.output, end.signal) == (id_, "begun\n", "SIGKILL")


async def test_a_timeout_is_built_from_the_parts(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("echo begun; sleep 1000; echo never")
        await it.printed(id_, "begun")
        with trio.move_on_after(0.2) as timer:
            await it.wait(id_)
        assert timer.cancelled_caught
        await it.call("kill", id_)
        status = await it.wait(id_)
        assert status in ENDED
        ended = await it.call("output", id_)
        assert (ended["output"], ended["exitStatus"]) == ("begun\n", status)
        await it.call("release", id_)


async def test_the_last_output_is_stored_at_the_release(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("seq", args=["1", "20000"])
        await it.wait(id_)
        await it.call("release", id_)
        (end,) = it.ends
        assert (end.command, end.exit_code, end.truncated) == ("seq 1 20000", 0, True)
        assert end.output.endswith("\n20000\n")
        assert len(end.output) == 64 * 1024
