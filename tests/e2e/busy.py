"""A daemon at work, in whose midst a test makes one actor crash, and what everybody noticed.

Two terminals each run a command that a gate holds; ``watcher`` subscribes to both and waits for its
inbox; there is a client of every face, of both eras of MCP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import attrs
import structlog.testing
import trio

from actors import Gap, Node
from actors.envelope import current_handler
from actors.errors import InjectedCrash
from actors.faults import RECEIVE_BEFORE, Fault, FaultPoint, Plan, armed
from aegis.lifetime import FAULT_TABLES
from aegis.state.endpoint import Endpoint, read_endpoint
from tests.e2e.callers import Caller, Pending, line_caller, mcp_caller, websocket_caller
from tests.e2e.harness import Gate, processes_with
from tests.e2e.inside import DaemonInside, daemon_inside

NAMES = ("build", "other")

_NOTHING: Mapping[tuple[str, int], Fault] = {}


class CrashAt(Plan):
    """Each actor at ``paths`` crashes with the first message that it takes from now on.

    One that is named twice crashes with the first message of its next life too.
    """

    def __init__(self, paths: Sequence[str], faults: Mapping[tuple[str, int], Fault]) -> None:
        super().__init__(faults)
        self.left = Counter(paths)

    def strike(self, point: FaultPoint, subject: str = "") -> float:
        turn = current_handler.get()
        if point is RECEIVE_BEFORE and turn is not None and self.left[turn[0].path] > 0:
            self.left[turn[0].path] -= 1
            raise InjectedCrash(f"made to order, with a message for {turn[0].path}")
        return super().strike(point, subject)


@attrs.define(kw_only=True)
class Busy:
    """``runs`` and ``wait`` are under way; ``callers`` are there by their faces."""

    daemon: DaemonInside
    nursery: trio.Nursery
    gates: dict[str, Gate]
    callers: dict[str, Caller]
    sessions: dict[str, str]
    runs: dict[str, Pending] = attrs.field(factory=dict)
    wait: Pending
    woken: list[str] = attrs.field(factory=list)
    logged: Callable[[], list[str]]

    def call(self, face: str, command: str, **arguments: object) -> Pending:
        """A call of the client of this face, under way."""
        return Pending(self.nursery, self.callers[face], command, **arguments)

    def shells(self, name: str) -> list[str]:
        """The live processes of this terminal."""
        return processes_with(f"AEGIS_TERMINAL={self.daemon.root}/{name}/")

    def crashed(self) -> list[str]:
        """The actors that crashed, by their paths, as often as they did."""
        return [event.path for event in self.daemon.events if event.error is not None]

    def restarted(self) -> dict[str, int]:
        """The places of the tree that are not in their first life, and how often they began."""
        places = nodes(self.daemon.system.tree())
        return {each.path: each.restarts for each in places if each.restarts}

    async def is_up_again(self, path: str, restarts: int = 1) -> None:
        """Wait until the actor there is in a life after so many others."""
        with self.daemon.system.watch_tree() as watch:
            async for view in watch:
                places = nodes(view) if isinstance(view, Node) else [view]
                if any(
                    (each.path, each.state, each.restarts) == (path, "running", restarts)
                    for each in places
                    if not isinstance(each, Gap)
                ):
                    return

    async def all_wakes(self, number: int) -> list[str]:
        """The ids of all that came to the watcher, once there are ``number`` at least."""
        while len(self.woken) < number:
            after = {"after": self.woken[-1]} if self.woken else {}
            reply = await self.callers["line"].call(
                "inbox_wait", from_handle="watcher", timeout=20, **after
            )
            self.woken += [message["id"] for message in reply["messages"]]
        return self.woken


def nodes(node: Node) -> Iterator[Node]:
    """``node`` and all below it."""
    yield node
    for child in node.children:
        yield from nodes(child)


@contextmanager
def crashing(*paths: str, also: Mapping[tuple[str, int], Fault] = _NOTHING) -> Iterator[CrashAt]:
    """While the block lasts, these crash and ``also`` strikes; fails if something did not."""
    plan = CrashAt(paths, also)
    with armed(plan, *FAULT_TABLES):
        yield plan
    assert not +plan.left, f"did not crash: {+plan.left}"
    for point, number in also:
        assert plan.hits[point] >= number, f"did not strike: {point}@{number}"


def endpoint_of(daemon: DaemonInside) -> Endpoint:
    endpoint = read_endpoint(daemon.state)
    assert endpoint is not None
    return endpoint


@asynccontextmanager
async def callers(endpoint: Endpoint, sessions: dict[str, str]) -> AsyncIterator[dict[str, Caller]]:
    """A client of every face; those of MCP use ``sessions``, their addresses by their eras."""
    async with AsyncExitStack() as stack:
        yield {
            "line": await stack.enter_async_context(line_caller(endpoint)),
            "websocket": await stack.enter_async_context(websocket_caller(endpoint)),
            **{
                mode: await stack.enter_async_context(mcp_caller(url, mode))
                for mode, url in sessions.items()
            },
        }


async def sessions_of(endpoint: Endpoint) -> dict[str, str]:
    """Session addresses by the eras of MCP."""
    async with line_caller(endpoint) as operator:
        return {
            mode: (await operator.call("session_new", handle=handle))["url"]
            for mode, handle in (("legacy", "ann"), ("auto", "bob"))
        }


@asynccontextmanager
async def busy_daemon(directory: Path, new_gate: Callable[[], Gate]) -> AsyncIterator[Busy]:
    """The daemon, once everything is under way."""
    with structlog.testing.capture_logs() as logs:
        async with daemon_inside(directory) as daemon, trio.open_nursery() as nursery:
            endpoint = endpoint_of(daemon)
            sessions = await sessions_of(endpoint)
            for name in NAMES:
                await daemon.spawn(name)
            async with callers(endpoint, sessions) as there:
                yield await _begin(daemon, nursery, there, sessions, new_gate, logs)
            nursery.cancel_scope.cancel()


async def _begin(
    daemon: DaemonInside,
    nursery: trio.Nursery,
    there: dict[str, Caller],
    sessions: dict[str, str],
    new_gate: Callable[[], Gate],
    logs: Any,
) -> Busy:
    for name in NAMES:
        await there["line"].call("term_subscribe", name=name, from_handle="watcher")
    gates = {name: new_gate() for name in NAMES}
    wait = Pending(nursery, there["line"], "inbox_wait", from_handle="watcher", timeout=60)
    busy = Busy(
        daemon=daemon,
        nursery=nursery,
        gates=gates,
        callers=there,
        sessions=sessions,
        wait=wait,
        logged=lambda: [str(each) for each in logs if each["log_level"] in ("error", "critical")],
    )
    for name, face in zip(NAMES, ("legacy", "websocket"), strict=True):
        cmd = f"echo begun; {gates[name].hold}; echo {name}; (exit 5)"
        busy.runs[name] = busy.call(face, "term_run", name=name, cmd=cmd, timeout=60)
        await trio.to_thread.run_sync(gates[name].wait_reached)
    for face in there:
        await there[face].call("term_list")
    # The inbox has answered, so the router is done with the wait that was sent before.
    assert (await there["line"].call("inbox_read", from_handle="watcher"))["messages"] == []
    for name in NAMES:
        await daemon.has_printed(name, "begun")
    return busy
