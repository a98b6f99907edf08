"""Real daemons for tests from outside: whoever stops one here sees that it left nothing."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from shutil import which
from typing import Any, TypeAlias

import pytest
from mcp import Client

from tests.e2e.harness import STARTUP_FILES, DaemonProcess, Gate, LiveTerminal
from tests.e2e.mcp_client import connect_mcp_to

NewTerminal: TypeAlias = Callable[..., LiveTerminal]
Connect: TypeAlias = Callable[..., AbstractAsyncContextManager[Client]]

_numbers = itertools.count()

needs_zsh = pytest.mark.skipif(which("zsh") is None, reason="zsh is not installed")

on_both_shells = pytest.mark.parametrize("shell", ["bash", pytest.param("zsh", marks=needs_zsh)])
"""For tests whose terminals are once a bash and once a zsh."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    """One daemon for the tests of a module: each uses terminals and handles of its own."""
    running = DaemonProcess(tmp_path_factory.mktemp("daemon"))
    running.start()
    try:
        yield running
    finally:
        running.hang_up()
        code = running.stop()
    assert code == 0
    running.check_left_nothing()


@pytest.fixture
def own_daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    """A daemon of one test, not started yet; the test may stop, kill and start it as it likes."""
    own = DaemonProcess(tmp_path)
    try:
        yield own
    finally:
        own.hang_up()
        code = own.stop() if own.is_running else None
    assert code in (0, None)
    if code == 0:
        own.check_left_nothing()


@pytest.fixture
def shell() -> str:
    """The shell of new terminals, unless a test is parametrized by it."""
    return "bash"


@pytest.fixture
def new_terminal(daemon: DaemonProcess, tmp_path: Path, shell: str) -> Iterator[NewTerminal]:
    """Spawns terminals of the module's daemon, each with a name of its own.

    ``startup`` is what the user has as .bashrc or .zshrc; the rest is passed to ``term_spawn``.
    """
    spawned: list[LiveTerminal] = []

    def spawn(startup: str | None = None, **arguments: Any) -> LiveTerminal:
        name = f"t{next(_numbers)}"
        if shell != "bash":  # which the daemon takes by itself
            arguments.setdefault("shell", shell)
        if startup is not None:
            home = tmp_path / f"home-{name}"
            home.mkdir()
            (home / STARTUP_FILES[shell]).write_text(startup)
            arguments["env"] = {**arguments.get("env", {}), "HOME": str(home)}
        terminal = LiveTerminal(daemon, name, daemon.call("term_spawn", name=name, **arguments))
        spawned.append(terminal)
        return terminal

    yield spawn
    daemon.hang_up()
    still_open = {info["name"] for info in daemon.call("term_list")["result"]}
    for terminal in spawned:
        if terminal.name in still_open:
            terminal.close()
            assert daemon.shell_processes(f"{terminal.name}/") == []


@pytest.fixture
def terminal(new_terminal: NewTerminal) -> LiveTerminal:
    """A terminal of the module's daemon."""
    return new_terminal()


@pytest.fixture
def new_gate(tmp_path: Path) -> Iterator[Callable[[], Gate]]:
    """Makes gates that hold commands."""
    gates: list[Gate] = []

    def make() -> Gate:
        gates.append(Gate(tmp_path))
        return gates[-1]

    yield make
    for gate in gates:
        gate.close()


@pytest.fixture
def gate(new_gate: Callable[[], Gate]) -> Gate:
    """A gate that holds a command."""
    return new_gate()


@pytest.fixture
def handle() -> str:
    """A handle that nobody else uses."""
    return f"agent-{next(_numbers)}"


@pytest.fixture
def connect_mcp() -> Connect:
    """``async with connect_mcp(daemon, mode, handle) as client``: the official client, on Trio.

    With a handle it uses the session URL that the daemon makes for it, without one the operator's.
    """
    return connect_mcp_to


@pytest.fixture
def tidied() -> Iterator[None]:
    """What a test left open is found in that test: for daemons inside its own process."""
    yield
    gc.collect()
