"""The start of the interface: the first frame needs Textual only, and nothing is lost before."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

from aegis.tui.link_later import MAX_EARLY
from tests.aegis.tui.fake_daemon import FakeDaemon, link_to, until
from tests.aegis.tui.test_app import StillApp

HEAVY = ("trio", "cattrs", "aegis.client", "aegis.protocol", "aegis.tui.panes.terminal")


def test_the_first_frame_needs_neither_trio_nor_the_client() -> None:
    program = f"import aegis.tui.app, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"[]\n"


def test_what_is_asked_before_the_connection_is_done_after_it() -> None:
    daemon = FakeDaemon()
    daemon.open_terminal("build")
    done: list[Any] = []

    async def run() -> None:
        loaded = lambda: done.append((-1, None))  # noqa: E731
        app = StillApp("/nowhere", None, link_type=link_to(daemon), loaded=loaded)

        def asked(number: int) -> None:
            async def work(client: Any) -> None:
                done.append((number, client))

            app.link.call(work)

        for number in range(MAX_EARLY + 3):
            asked(number)
        async with app.run_test() as pilot:
            try:
                await until(lambda: len(done) == 1 + MAX_EARLY, "all of them are done")
                asked(1000)
                await until(lambda: done[-1] == (1000, daemon.client), "and later ones")
                await pilot.pause()
            finally:
                await app.link.stop()

    asyncio.run(run())
    assert done[0] == (-1, None)
    assert sorted(number for number, _ in done[1:]) == [*range(MAX_EARLY), 1000]


def test_an_app_that_ends_before_the_link_is_loaded_ends() -> None:
    async def run() -> None:
        app = StillApp("/nowhere", None, link_type=link_to(FakeDaemon()))
        async with app.run_test():
            await app.action_quit()

    asyncio.run(asyncio.wait_for(run(), 30))
