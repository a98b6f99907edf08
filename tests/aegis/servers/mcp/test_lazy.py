"""The MCP face before it is imported, while it is being imported, and when it cannot be."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any, ClassVar

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from aegis.errors import Unavailable
from aegis.servers.calls import OPERATOR
from aegis.servers.mcp import lazy as late_mcp
from aegis.servers.mcp.lazy import LazyMcp

GUARD_S = 60


class Face:
    """Writes down what it is handed."""

    made: ClassVar[list[Face]] = []
    told: ClassVar[list[str]] = []

    def __init__(self, port: object, *, version: str) -> None:
        self.made.append(self)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await trio.sleep_forever()

    async def handle(self, identity: object, scope: Any, receive: Any, send: Any) -> None:
        await send(scope)

    def changed(self, key: str) -> None:
        self.told.append(key)


async def no_body() -> None:
    raise AssertionError("nobody reads it")


async def no_answer(message: object) -> None:
    raise AssertionError(f"nobody serves it: {message}")


@pytest.mark.real
@pytest.mark.every_python
def test_the_sdk_is_no_part_of_what_a_daemon_imports_before_it_listens() -> None:
    program = "import sys, aegis.app; sys.exit(any(each.startswith('mcp') for each in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=GUARD_S)
    assert done.returncode == 0


async def test_requests_that_come_during_the_import_wait_for_it_and_share_it(
    monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    may_end = threading.Event()
    imports: list[int] = []

    def slow_import() -> type[Face]:
        imports.append(threading.get_ident())
        assert may_end.wait(GUARD_S)
        return Face

    monkeypatch.setattr(late_mcp, "_import_face", slow_import)
    monkeypatch.setattr(late_mcp, "LOAD_AFTER_S", GUARD_S)
    monkeypatch.setattr(Face, "made", [])
    monkeypatch.setattr(Face, "told", [])
    late = LazyMcp(None, version="0")  # type: ignore[arg-type]
    await nursery.start(late.run)
    late.changed("before anybody came")
    await trio.testing.wait_all_tasks_blocked()
    assert imports == []
    sent: list[object] = []

    async def send(what: object) -> None:
        sent.append(what)

    with trio.fail_after(GUARD_S):
        async with trio.open_nursery() as requests:
            for number in range(3):
                requests.start_soon(late.handle, OPERATOR, number, no_body, send)
            await trio.testing.wait_all_tasks_blocked()
            assert sent == []
            may_end.set()
    assert sorted(sent, key=str) == [0, 1, 2]
    assert (len(imports), len(Face.made)) == (1, 1)
    assert imports != [threading.get_ident()]
    late.changed("now")
    assert Face.told == ["now"]
    nursery.cancel_scope.cancel()


async def test_the_import_begins_without_any_request(
    monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    imported = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def quick_import() -> type[Face]:
        token.run_sync_soon(imported.set)
        return Face

    monkeypatch.setattr(late_mcp, "_import_face", quick_import)
    await nursery.start(LazyMcp(None, version="0").run)  # type: ignore[arg-type]
    with trio.fail_after(GUARD_S):
        await imported.wait()
    nursery.cancel_scope.cancel()


async def test_an_sdk_that_cannot_be_imported_any_more_costs_its_requests_alone(
    monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    def broken_import() -> type[Face]:
        raise ImportError("somebody removed it")

    monkeypatch.setattr(late_mcp, "_import_face", broken_import)
    late = LazyMcp(None, version="0")  # type: ignore[arg-type]
    with capture_logs() as logs, trio.fail_after(GUARD_S):
        await nursery.start(late.run)
        for _ in range(2):
            with pytest.raises(Unavailable, match="restart the daemon"):
                await late.handle(OPERATOR, {}, no_body, no_answer)
        with pytest.raises(Unavailable, match="restart the daemon"):
            await late.converse(OPERATOR, None, trio.Event())  # type: ignore[arg-type]
    assert [each["event"] for each in logs] == ["MCP cannot be served"]
    late.changed("nobody watches")


ENDS_DURING_THE_IMPORT = """\
import atexit, sys, threading, trio
from aegis.servers.mcp.lazy import LazyMcp

has_stopped = threading.Event()

class Hold:
    "Holds the import up, in its middle, until all has stopped."
    def find_spec(self, name, *_):
        if name == "mcp.server":
            assert has_stopped.wait(60)

sys.meta_path.insert(0, Hold())

async def main():
    async with trio.open_nursery() as nursery:
        await nursery.start(LazyMcp(None, version="0").run)
        while "mcp" not in sys.modules:
            await trio.sleep(0.001)
        nursery.cancel_scope.cancel()

# Callbacks run in reverse order: this one behind that of the import.
atexit.register(lambda: print("aegis.servers.mcp.tools" in sys.modules))
trio.run(main)
print("stopped", "mcp.server" in sys.modules and hasattr(sys.modules["mcp"], "Client"))
has_stopped.set()
"""


def test_a_process_that_ends_during_the_import_waits_for_it_once_all_has_stopped() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDS_DURING_THE_IMPORT],
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["stopped False", "True"]
