"""``node key``, ``node forget`` and ``join``: what they make of their arguments."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from actors.errors import HandshakeRefused
from aegis.errors import StartupError
from aegis.node_key import open_node_key
from aegis.settings import JoinSettings, NodesAddress
from aegis.state.root import StatePaths

if TYPE_CHECKING:
    from click.testing import Result

    from tests.fakes.line_server import LineServer

Invoke = Callable[..., "Result"]


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[JoinSettings]:
    """The settings with which a node would have been run; it ends at once with code 0."""
    settings: list[JoinSettings] = []

    def run_node(given: JoinSettings) -> int:
        settings.append(given)
        if given.name == "refused":
            raise HandshakeRefused("The other side did not prove that it has the key.")
        if given.name == "taken":
            raise StartupError("a node already runs for this root")
        return 3 if given.name == "failing" else 0

    joining = types.ModuleType("aegis.nodes.joining")
    joining.run_node = run_node  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "aegis.nodes", types.ModuleType("aegis.nodes"))
    monkeypatch.setitem(sys.modules, "aegis.nodes.joining", joining)
    return settings


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key that was brought here."""
    state = StatePaths(tmp_path)
    open_node_key(state)
    return state.node_key


def test_the_key_is_made_and_its_path_printed(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("node", "key")
    path = tmp_path / ".aegis/state/node.key"
    assert (result.exit_code, result.stdout) == (0, f"{path}\n")
    assert "copy this file" in result.stderr
    assert "aegis-actors join HOST:PORT" in result.stderr
    key = path.read_text()
    assert key.strip() not in result.output
    assert invoke("node", "key").stdout == result.stdout
    assert path.read_text() == key


@pytest.mark.parametrize("before", [True, False])
def test_the_key_is_that_of_the_root_that_was_given(
    invoke: Invoke, tmp_path: Path, before: bool
) -> None:
    (tmp_path / "a").mkdir()
    where = ["--root", "a"]
    result = invoke(*where, "node", "key") if before else invoke("node", "key", *where)
    assert result.stdout == f"{tmp_path}/a/.aegis/state/node.key\n"


def test_a_key_that_cannot_be_used_is_one_line(invoke: Invoke, key: Path) -> None:
    key.write_text("rubbish")
    result = invoke("node", "key")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"aegis-actors: {key} holds no key: ")


def test_forget_says_which_names_are_free(server: LineServer, invoke: Invoke) -> None:
    server.answers["node_forget"] = {"terminals": ["build", "web"]}
    result = invoke("node", "forget", "gpu1")
    assert server.arguments() == {"node": "gpu1"}
    assert (result.exit_code, result.stdout) == (0, "names free again: build, web\n")


def test_join_needs_a_name_and_a_root(
    invoke: Invoke, joined: list[JoinSettings], key: Path, tmp_path: Path
) -> None:
    assert invoke("join", "10.0.0.1:8421", "--name", "gpu1", "--root", ".").exit_code == 0
    assert joined == [
        JoinSettings(
            address=NodesAddress("10.0.0.1", 8421), name="gpu1", root=tmp_path, key_file=key
        )
    ]


def test_join_passes_its_options_on(
    invoke: Invoke, joined: list[JoinSettings], key: Path, tmp_path: Path
) -> None:
    (tmp_path / "b").mkdir()
    key.rename(tmp_path / "the.key")
    rest = ["--name", "gpu1", "--key-file", "the.key", "--log-level", "debug"]
    assert invoke("--root", "b", "join", "[::1]:9", *rest).exit_code == 0
    assert joined == [
        JoinSettings(
            address=NodesAddress("::1", 9),
            name="gpu1",
            root=tmp_path / "b",
            key_file=tmp_path / "the.key",
            log_level="debug",
        )
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Missing argument 'HOST:PORT'"),
        (["host:1"], "Missing option '--name'"),
        (["host", "--name", "a"], "must be HOST:PORT"),
        (["host:0", "--name", "a"], "port 0 cannot be"),
        (["host:70000", "--name", "a"], "must be HOST:PORT"),
        (["host:1", "--name", "a b"], "1 to 64 letters"),
        (["host:1", "--name", "Local"], "reserved for"),
        (["host:1", "--name", "w12"], "reserved for"),
        (["host:1", "--name", "a", "--root", "nowhere"], "does not exist"),
        (["host:1", "--name", "a"], "give --root DIR"),
        (["host:1", "--name", "a", "--root", ".", "--log-level", "loud"], "is not one of"),
    ],
)
def test_bad_arguments_of_join_are_usage_errors(
    invoke: Invoke, joined: list[JoinSettings], words: list[str], told: str
) -> None:
    result = invoke("join", *words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert joined == []


def test_join_without_a_key_says_where_it_comes_from(
    invoke: Invoke, joined: list[JoinSettings], tmp_path: Path
) -> None:
    result = invoke("join", "host:1", "--name", "gpu1", "--root", ".")
    assert result.exit_code == 1
    assert result.stderr == (
        f"aegis-actors: there is no key at {tmp_path}/.aegis/state/node.key: copy it from the root "
        "that is to be joined, where 'aegis-actors node key' names it\n"
    )
    assert joined == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("refused", "The other side did not prove that it has the key."),
        ("taken", "a node already runs for this root"),
    ],
)
def test_a_node_that_cannot_run_is_one_line_and_exit_code_1(
    invoke: Invoke, joined: list[JoinSettings], key: Path, name: str, told: str
) -> None:
    result = invoke("join", "host:1", "--name", name, "--root", ".")
    assert result.exit_code == 1
    assert result.stderr.removesuffix("\n") == f"aegis-actors: {told.removesuffix('.')}"


def test_join_exits_with_the_nodes_code(
    invoke: Invoke, joined: list[JoinSettings], key: Path
) -> None:
    assert invoke("join", "host:1", "--name", "failing", "--root", ".").exit_code == 3


@pytest.mark.parametrize(
    "words",
    [
        ["join", "host:1", "--name", "gpu1", "--root", "."],
        ["up", "--workers", "1"],
        ["up", "--nodes", "127.0.0.1:0"],
    ],
)
def test_without_the_extra_one_line_names_the_command_that_installs_it(
    invoke: Invoke,
    joined: list[JoinSettings],
    key: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
) -> None:
    monkeypatch.setitem(sys.modules, "tractor", None)
    result = invoke(*words)
    assert result.exit_code == 1
    assert "need tractor, which is not installed: run `uv sync --extra nodes`" in result.stderr
    assert result.stderr.count("\n") == 1
    assert joined == []
