"""Progress of a call that waits, as the official MCP client gets it in both eras."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
from mcp import Client

from tests.e2e.conftest import Connect
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

both_eras = pytest.mark.parametrize("mode", ["legacy", "auto"])


@attrs.define
class Call:
    """A call under way: ``lines`` is what its client was told of its progress."""

    lines: list[str | None] = attrs.field(factory=list)
    numbers: list[float] = attrs.field(factory=list)
    result: Any = None
    changed: trio.Event = attrs.field(factory=trio.Event)

    async def told(self, progress: float, total: float | None, message: str | None) -> None:
        self.numbers.append(progress)
        self.lines.append(message)
        self.changed.set()
        self.changed = trio.Event()

    async def until(self, line: str) -> None:
        with trio.fail_after(GUARD_S):
            while line not in self.lines:
                await self.changed.wait()


@asynccontextmanager
async def calling(client: Client, tool: str, **arguments: object) -> AsyncIterator[Call]:
    """A call that wants to be told; its result is there behind the context."""
    call = Call()

    async def run() -> None:
        call.result = await client.call_tool(tool, arguments, progress_callback=call.told)

    with trio.fail_after(2 * GUARD_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            yield call


@both_eras
async def test_a_run_tells_its_newest_line(
    daemon: DaemonProcess, terminal: LiveTerminal, connect_mcp: Connect, mode: str, tmp_path: Any
) -> None:
    gates = [Gate(tmp_path) for _ in range(3)]
    cmd = (
        f"echo one; {gates[0].hold}; printf '\\033[31m10%%\\r20%%'; {gates[1].hold}; "
        f"printf '\\n\\n'; echo {'w' * 300}; {gates[2].hold}; echo end"
    )
    async with connect_mcp(daemon, mode, "alice") as client:
        arguments = {"name": terminal.name, "cmd": cmd, "timeout": GUARD_S}
        async with calling(client, "aegis_term_run", **arguments) as call:
            for gate, line in zip(gates, ["one", "20%", "w" * 199 + "…"], strict=True):
                await call.until(line)
                gate.open()
    assert call.result.structured_content["exit"] == 0
    assert call.lines[:3] == ["one", "20%", "w" * 199 + "…"]
    assert call.numbers == sorted(set(call.numbers))
    for gate in gates:
        gate.close()


@both_eras
async def test_a_queued_run_tells_who_has_the_terminal(
    daemon: DaemonProcess,
    terminal: LiveTerminal,
    connect_mcp: Connect,
    mode: str,
    new_gate: Callable[[], Gate],
) -> None:
    gate, shown = new_gate(), new_gate()
    running = terminal.start(f"echo theirs; {gate.hold}", from_handle="bob")
    await trio.to_thread.run_sync(gate.wait_reached)
    async with connect_mcp(daemon, mode, "alice") as client:
        cmd = f"echo mine; {shown.hold}"
        arguments = {"name": terminal.name, "cmd": cmd, "timeout": GUARD_S}
        async with calling(client, "aegis_term_run", **arguments) as call:
            with trio.fail_after(GUARD_S):
                while not call.lines:
                    await call.changed.wait()
            assert call.lines[0] is not None
            assert call.lines[0].startswith("waiting: agent:bob runs 'echo theirs; ")
            assert "theirs" not in call.lines
            gate.open()
            await call.until("mine")
            shown.open()
    assert call.result.structured_content["stdout"] == "mine\n"
    running.result()


@both_eras
async def test_a_wait_tells_what_the_command_prints(
    daemon: DaemonProcess, terminal: LiveTerminal, connect_mcp: Connect, mode: str, gate: Gate
) -> None:
    running = terminal.start(f"echo working; {gate.hold}; echo found it")
    await trio.to_thread.run_sync(gate.wait_reached)
    async with connect_mcp(daemon, mode, "alice") as client:
        arguments = {"name": terminal.name, "pattern": "found", "timeout": GUARD_S}
        async with calling(client, "aegis_term_wait", **arguments) as call:
            await call.until("working")
            gate.open()
    assert call.result.structured_content["match"] == "found"
    running.result()


@both_eras
async def test_a_flood_is_told_ten_times_a_second_at_most(
    daemon: DaemonProcess,
    terminal: LiveTerminal,
    connect_mcp: Connect,
    mode: str,
    new_gate: Callable[[], Gate],
) -> None:
    first, last = new_gate(), new_gate()
    async with connect_mcp(daemon, mode, "alice") as client:
        flood = "for i in {2..40}; do echo $i; sleep 0.03; done"
        cmd = f"echo 1; {first.hold}; {flood}; {last.hold}"
        arguments = {"name": terminal.name, "cmd": cmd, "timeout": GUARD_S}
        async with calling(client, "aegis_term_run", **arguments) as call:
            # However late the daemon reads them, these two lines are the newest for a while.
            await call.until("1")
            first.open()
            await call.until("40")
            last.open()
    record = call.result.structured_content
    assert 2 <= len(call.lines) <= record["duration_s"] / 0.1 + 2
    assert [int(line or 0) for line in call.lines] == sorted(
        {int(line or 0) for line in call.lines}
    )


@both_eras
async def test_a_client_that_cancels_leaves_its_command_running_and_recorded(
    daemon: DaemonProcess, terminal: LiveTerminal, connect_mcp: Connect, mode: str, gate: Gate
) -> None:
    async with connect_mcp(daemon, mode, "alice") as client:
        with trio.CancelScope() as scope:
            call = Call()

            async def cancel() -> None:
                await call.until("begun")
                scope.cancel()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(cancel)
                arguments = {"name": terminal.name, "cmd": f"echo begun; {gate.hold}"}
                await client.call_tool("aegis_term_run", arguments, progress_callback=call.told)
        gate.open()
        ended = await client.call_tool("aegis_term_wait", {"name": terminal.name, "seq": 0})
    assert ended.structured_content["record"]["stdout"] == "begun\n"


@both_eras
async def test_who_calls_with_bad_arguments_gets_the_error_and_no_progress(
    daemon: DaemonProcess, terminal: LiveTerminal, connect_mcp: Connect, mode: str
) -> None:
    async with connect_mcp(daemon, mode, "alice") as client:
        for arguments in ({"name": terminal.name}, {"name": "no-such", "cmd": "x"}):
            async with calling(client, "aegis_term_run", **arguments) as call:
                pass
            assert call.result.is_error
            assert call.lines == []
