"""A real Claude Code after a spawn, against the program without a daemon, up to its first text.

All run offline, in one namespace with a scripted model, and are measured in turn. The bare program
gets the arguments and the MCP server that a driver gives it, and its turn at once. Beside it the
same without the MCP server, whose tools make each request to the model larger.

python tests/bench/bench_real_agents.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

import aegis
from aegis.agents.drivers.claude.launch import added_variables, launch, mcp_servers
from aegis.agents.drivers.harness import Beginning
from aegis.client.client import Client
from tests.agents_real.clis import CLIS
from tests.agents_real.installed import NotInstalled
from tests.agents_real.team import Team, new_team
from tests.bench.bench_agents import until, user_frame
from tests.bench.bench_drivers import Bare
from tests.bench.table import Row, print_rows

STARTS = 10
PROMPT = "SAY x"

[CLAUDE] = [cli for cli in CLIS if cli.name == "claude"]

Start = tuple[float, float]
"""The seconds to the first event, and to the first text of the model."""


async def bare_start(team: Team, mcp_url: str | None) -> Start:
    """Start the program, and take its time."""
    beginning = Beginning(cwd=str(team.daemon.root), mcp_url=mcp_url or "", primer="")
    added = added_variables(beginning)
    begin = time.perf_counter()
    process = await trio.lowlevel.open_process(
        team.namespace.command(*launch(beginning, command=CLAUDE.command())),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=beginning.cwd,
        env={**CLAUDE.environment(team.daemon.home, team.model.url), **added},
    )
    bare = Bare(process)
    servers = mcp_servers(beginning) if mcp_url else {}
    request = {"subtype": "initialize", "mcpServers": servers}
    await bare.send({"type": "control_request", "request_id": "1", "request": request})
    await bare.send(user_frame(PROMPT, "00000000-0000-4000-8000-000000000001"))
    await bare.until("system")
    first = time.perf_counter() - begin
    await bare.until("assistant")
    taken = time.perf_counter() - begin
    await end(process)
    return first, taken


async def end(process: trio.Process) -> None:
    """End a program as the guard does, and close its streams."""
    process.kill()
    await process.wait()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        await stream.aclose()


async def spawned(client: Client) -> Start:
    """Spawn a session, and take the time until its stream has both."""
    begin = time.perf_counter()
    info = await client.agents.spawn(profile="builder", prompt=PROMPT)
    async with client.agents.events(info.handle, since=0) as events:
        await until(events, "event")
        first = time.perf_counter() - begin
        await until(events, "text")
    taken = time.perf_counter() - begin
    await client.agents.close(info.handle)
    return first, taken


async def measured(directory: Path) -> list[Row]:
    """Return all rows."""
    profiles = {"builder": {"provider": "claude", "permission": "full"}}
    plain: list[Start] = []
    bare: list[Start] = []
    ours: list[Start] = []
    with new_team(directory, [CLAUDE], profiles) as team:
        async with aegis.connect(team.daemon.root) as client:
            url = team.call("session_new", handle="bare")["url"]
            await spawned(client)
            for _ in range(STARTS):
                plain.append(await bare_start(team, None))
                bare.append(await bare_start(team, url))
                ours.append(await spawned(client))
    return [
        *rows("event", *(median_ms([each[0] for each in side]) for side in (plain, bare, ours))),
        *rows("text", *(median_ms([each[1] for each in side]) for side in (plain, bare, ours))),
    ]


def rows(kind: str, plain: float, bare: float, ours: float) -> list[Row]:
    return [
        (
            f"first {kind} of a spawned Claude Code / of the bare one",
            ours / bare,
            "ratio, goal ≤ 1.1",
        ),
        ("  later by ms", ours - bare, "median"),
        ("  the bare one, ms", bare, "median, with the same MCP server"),
        ("  the bare one without MCP server, ms", plain, "median"),
    ]


def median_ms(seconds: Sequence[float]) -> float:
    return 1000 * statistics.median(seconds)


def measure() -> list[Row]:
    """Eight rows, or none where there is no Claude Code or no namespace; takes half a minute."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as name:
        try:
            return trio.run(measured, Path(name))
        except (NotInstalled, pytest.skip.Exception) as reason:
            sys.stderr.write(f"real agents are not measured: {reason}\n")
            return []


if __name__ == "__main__":
    print_rows(measure())
