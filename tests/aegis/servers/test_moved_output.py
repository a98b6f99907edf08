"""The stream of a terminal whose worker dies goes on at the byte where it was."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors import AskError
from actors.faults import RUNTIME, Crash, Plan, armed
from aegis.errors import Unavailable
from aegis.protocol import terminals as api
from aegis.protocol.output_streams import (
    OutputStart,
    StreamOutput,
)
from aegis.servers.streams.outlet import SendKeys, SendSize
from aegis.servers.streams.output_source import InputRights, follow_output
from aegis.terminals.directory import moving
from tests.aegis.terminals.workers import Daemon, open_daemon
from tests.e2e.harness import GUARD_S

pytestmark = pytest.mark.real


@attrs.define(eq=False)
class Viewer:
    """A client that takes all there is. ``data`` begins at the cursor ``begin``; no gap is let in.

    ``end`` is how the stream ended: what it returned, or raised.
    """

    credit: int = 65_536
    begin: int = -1
    data: bytes = b""
    items: list[Any] = attrs.field(factory=list)
    send: SendKeys | None = None
    end: str | Exception | None = None
    news: trio.Event = attrs.field(factory=trio.Event)

    async def follow(self, daemon: Daemon, name: str, **options: Any) -> None:
        try:
            command = StreamOutput(name=name, **options)
            self.end = await follow_output(daemon.system, command, self, InputRights())
        except Exception as error:
            self.end = error
        self._tell()

    async def opened(self, start: object | None) -> None:
        assert isinstance(start, OutputStart)
        self.begin = start.cursor
        self._tell()

    async def room(self) -> None:
        await trio.lowlevel.checkpoint()

    async def room_for_bytes(self) -> int:
        await trio.lowlevel.checkpoint()
        return self.credit

    async def item(self, item: object) -> None:
        self.items.append(item)
        self._tell()

    async def gap(self, dropped: int, cursor: int | None = None) -> None:
        raise AssertionError(f"{dropped} bytes are missing before {cursor}")

    async def output(self, cursor: int, data: bytes) -> None:
        assert cursor == self.begin + len(self.data)
        self.data += data
        self._tell()

    def takes_input(self, send: SendKeys, _: SendSize) -> None:
        self.send = send

    def _tell(self) -> None:
        self.news.set()
        self.news = trio.Event()

    async def has_opened(self) -> None:
        while self.begin < 0:
            await self.news.wait()

    async def has_seen(self, text: bytes) -> None:
        while text not in self.data:
            assert self.end is None, self.end
            await self.news.wait()

    async def has_ended(self) -> str | Exception:
        while self.end is None:
            await self.news.wait()
        return self.end


async def close(daemon: Daemon, name: str) -> None:
    await daemon.directory.ask(api.CloseTerminal(name=name), timeout=GUARD_S)


def poke(daemon: Daemon) -> None:
    """Let the front pass a fault point."""
    with contextlib.suppress(AskError):
        daemon.owner("build").send_request(api.SendKeys(name="build", keys=" "))


async def test_a_stream_goes_on_where_the_terminal_is_started_again(tmp_path: Path) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon, trio.open_nursery() as nursery:
        await daemon.spawn("build", node="w1")
        viewer = Viewer()
        nursery.start_soon(viewer.follow, daemon, "build")
        await viewer.has_opened()
        for round_, node in enumerate(("w1", "w2", "w1")):
            await daemon.run("build", f"echo ro''und-{round_}")
            await viewer.has_seen(f"round-{round_}".encode())
            await daemon.kill_worker(node)
            await daemon.start_worker(node)
            await daemon.records("build")
        assert viewer.send is not None
        await viewer.send(b"echo typed-''here\n").wait()
        await viewer.has_seen(b"typed-here")
        await close(daemon, "build")
        assert await viewer.has_ended() == "terminal 'build' was closed"
        raw = (tmp_path / "terminals" / "build" / "raw.log").read_bytes()
        assert raw.endswith(viewer.data[-200:])


async def test_a_stream_waits_while_no_worker_is_up_and_so_does_one_that_is_opened_then(
    tmp_path: Path,
) -> None:
    async with open_daemon(tmp_path, "w1") as daemon, trio.open_nursery() as nursery:
        await daemon.spawn("build")
        early, late = Viewer(), Viewer()
        nursery.start_soon(early.follow, daemon, "build")
        await early.has_opened()
        await daemon.kill_worker("w1")
        nursery.start_soon(late.follow, daemon, "build")
        await trio.testing.wait_all_tasks_blocked()
        assert early.end is None
        assert late.begin == -1
        assert early.send is not None
        with pytest.raises(Unavailable, match="its worker died; it is being started again"):
            await early.send(b"x").wait()
        await daemon.start_worker("w1")
        await late.has_opened()
        await daemon.run("build", "echo ba''ck")
        for viewer in (early, late):
            await viewer.has_seen(b"back")
        await close(daemon, "build")
        for viewer in (early, late):
            assert await viewer.has_ended() == "terminal 'build' was closed"


async def test_a_stream_of_a_terminal_that_does_not_come_back_ends_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "LOSSES", attrs.evolve(moving.LOSSES, intensity=0))
    async with open_daemon(tmp_path, "w1", "w2") as daemon, trio.open_nursery() as nursery:
        await daemon.spawn("build")
        viewer = Viewer()
        nursery.start_soon(viewer.follow, daemon, "build")
        await viewer.has_opened()
        await daemon.kill_worker("w1")
        end = await viewer.has_ended()
        assert isinstance(end, Unavailable)
        assert "its worker died 1 times within 60 s" in str(end)


async def test_a_stream_that_has_moved_ends_when_the_actors_of_its_terminal_give_up(
    tmp_path: Path,
) -> None:
    async with open_daemon(tmp_path, "w1", "w2") as daemon, trio.open_nursery() as nursery:
        await daemon.spawn("build")
        viewer = Viewer()
        nursery.start_soon(viewer.follow, daemon, "build")
        await viewer.has_opened()
        await daemon.kill_worker("w1")
        await daemon.records("build")
        await daemon.run("build", "echo ba''ck")
        await viewer.has_seen(b"back")
        passes = {("actor.receive.before[Terminal]", number): Crash() for number in range(1, 5)}
        with armed(Plan(passes), RUNTIME):
            while viewer.end is None:
                poke(daemon)
                await trio.testing.wait_all_tasks_blocked(0.001)
        assert isinstance(viewer.end, Unavailable)
        # The stream may hear of the failure itself, or of its terminal's state when it asks again.
        ends = ("its actors crashed too often", "terminal 'build' has failed; look at its state")
        assert any(each in str(viewer.end) for each in ends), viewer.end
