"""``up``: what it makes of its options. The daemon itself is tested end to end."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aegis.configuration.sections import Configuration
from aegis.errors import StartupError
from aegis.settings import DaemonSettings, NodesAddress

if TYPE_CHECKING:
    from click.testing import Result

Invoke = Callable[..., "Result"]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[DaemonSettings]:
    """The settings with which a daemon would have been run; it ends at once with code 0."""
    settings: list[DaemonSettings] = []

    def run_daemon(given: DaemonSettings, configuration: Configuration) -> int:
        settings.append(given)
        if given.host == "configured":
            return configuration.terminals.cols
        if given.host == "taken":
            raise StartupError("another daemon (pid 7) serves this root")
        return 1 if given.host == "failing" else 0

    app = types.ModuleType("aegis.app")
    app.run_daemon = run_daemon  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "aegis.app", app)
    return settings


def test_up_needs_no_options(invoke: Invoke, started: list[DaemonSettings], tmp_path: Path) -> None:
    assert invoke("up").exit_code == 0
    assert started == [DaemonSettings(tmp_path, "127.0.0.1", None, "info")]


def test_up_passes_its_options_on(
    invoke: Invoke, started: list[DaemonSettings], tmp_path: Path
) -> None:
    invoke("up", "--host", "::1", "--port", "0", "--log-level", "debug", "--clean")
    assert started == [DaemonSettings(tmp_path, "::1", 0, "debug", clean=True)]


def test_workers_are_as_many_as_are_asked_for_else_as_configured(
    invoke: Invoke, started: list[DaemonSettings], tmp_path: Path
) -> None:
    invoke("up")
    (tmp_path / ".aegis.yaml").write_text("nodes: {workers: 3}")
    invoke("up")
    invoke("up", "--workers", "0")
    invoke("up", "--workers", "64")
    assert [each.workers for each in started] == [0, 3, 0, 64]


def test_nodes_are_taken_only_where_that_is_said(
    invoke: Invoke, started: list[DaemonSettings], tmp_path: Path
) -> None:
    invoke("up")
    invoke("up", "--nodes", "[::1]:0")
    assert [each.nodes_address for each in started] == [None, NodesAddress("::1", 0)]


def test_further_names_are_checked(
    invoke: Invoke, started: list[DaemonSettings], tmp_path: Path
) -> None:
    invoke("up", "--name", "Desk.example.org", "--name", "100.64.0.7")
    assert started == [DaemonSettings(tmp_path, names=("desk.example.org", "100.64.0.7"))]
    refused = invoke("up", "--name", "https://desk.example.org")
    assert refused.exit_code == 2
    assert "without a scheme" in refused.stderr


def test_debugging_shows_everything(
    invoke: Invoke, started: list[DaemonSettings], tmp_path: Path
) -> None:
    invoke("up", "--debug")
    invoke("up", "--debug", "--log-level", "error")
    assert started == [DaemonSettings(tmp_path, log_level="debug", debug=True)] * 2


def test_up_serves_the_nearest_configured_directory(
    invoke: Invoke,
    started: list[DaemonSettings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner = tmp_path / "a"
    inner.mkdir()
    (tmp_path / ".aegis.yaml").touch()
    monkeypatch.chdir(inner)
    invoke("up")
    assert started[0].root == tmp_path


@pytest.mark.parametrize("before", [True, False])
def test_up_serves_exactly_the_directory_that_was_given(
    invoke: Invoke, started: list[DaemonSettings], tmp_path: Path, before: bool
) -> None:
    inner = tmp_path / "a"
    inner.mkdir()
    (tmp_path / ".aegis.yaml").touch()
    result = invoke("--root", "a", "up") if before else invoke("up", "--root", "a")
    assert result.exit_code == 0
    assert started[0].root == inner


def test_a_daemon_that_cannot_start_is_one_line_and_exit_code_1(
    invoke: Invoke, started: list[DaemonSettings]
) -> None:
    result = invoke("up", "--host", "taken")
    assert result.exit_code == 1
    assert result.stderr == "aegis-actors: another daemon (pid 7) serves this root\n"


def test_up_exits_with_the_daemons_code(invoke: Invoke, started: list[DaemonSettings]) -> None:
    assert invoke("up", "--host", "failing").exit_code == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--port", "70000"], "70000 is not in the range 0<=x<=65535"),
        (["--port", "x"], "'x' is not a valid integer range"),
        (["--workers", "65"], "65 is not in the range 0<=x<=64"),
        (["--workers", "-1"], "-1 is not in the range 0<=x<=64"),
        (["--workers", "many"], "'many' is not a valid integer range"),
        (["--nodes", "8421"], "'8421': it must be HOST:PORT"),
        (["--log-level", "loud"], "'loud' is not one of 'debug', 'info', 'warning', 'error'"),
    ],
)
def test_bad_options_are_usage_errors(
    invoke: Invoke, started: list[DaemonSettings], words: list[str], told: str
) -> None:
    result = invoke("up", *words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert started == []


def test_up_passes_on_what_the_configuration_says(
    invoke: Invoke, started: list[DaemonSettings], tmp_path: Path
) -> None:
    assert invoke("up", "--host", "configured").exit_code == 80
    (tmp_path / ".aegis.yaml").write_text("terminals: {cols: 99}")
    assert invoke("up", "--host", "configured").exit_code == 99


def test_a_bad_configuration_starts_nothing_and_is_exit_code_2(
    invoke: Invoke, started: list[DaemonSettings], tmp_path: Path
) -> None:
    path = tmp_path / ".aegis.yaml"
    path.write_text("terminals:\n  cols: 1\nweb: {}\n")
    result = invoke("up")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"aegis-actors: {path} line 2: terminals.cols must be a whole number from 2 to 1000, not "
        "1\n"
        f"aegis-actors: {path} line 3: there is no key 'web'; the known keys are terminals, nodes, "
        "agents, default_agent, queues, canvases, plugin_dirs, groups, limits, keep, lifecycle, "
        "worktrees, telegram\n"
    )
    assert started == []
    assert [each.name for each in tmp_path.iterdir()] == [".aegis.yaml"]
