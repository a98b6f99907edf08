"""A root, its state's paths, and its endpoint file."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from aegis.state.endpoint import (
    BadEndpoint,
    Endpoint,
    read_endpoint,
    remove_endpoint,
    write_endpoint,
)
from aegis.state.registration import claim_state
from aegis.state.root import StatePaths, find_root, make_directory
from aegis.state.sealing import sealed_document

ENDPOINT = Endpoint(
    pid=4242,
    url="http://127.0.0.1:8420",
    mcp="http://127.0.0.1:8420/mcp",
    ws="ws://127.0.0.1:8420/ws",
    socket="/run/aegis.sock",
    token="a secret",
)


@pytest.fixture
def state(tmp_path: Path) -> StatePaths:
    made = StatePaths(tmp_path)
    make_directory(made)
    return made


def test_the_state_lies_below_the_root() -> None:
    state = StatePaths(Path("/r"))
    assert state.directory == Path("/r/.aegis/state")
    names = {path.name for path in (state.endpoint, state.keys, state.lock)}
    assert names == {"endpoint.json", "keys.json", "lock"}
    assert (state.terminals.name, state.inboxes.name) == ("terminals", "inboxes")


def test_the_nearest_directory_with_a_configuration_is_the_root(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    (tmp_path / ".aegis.yaml").touch()
    assert find_root(inner) == tmp_path
    (tmp_path / "a" / ".aegis.yaml").touch()
    assert find_root(inner) == tmp_path / "a"


def test_a_directory_with_a_running_daemon_is_a_root(state: StatePaths) -> None:
    inner = state.root / "a"
    inner.mkdir()
    write_endpoint(state, ENDPOINT)
    assert find_root(inner) == state.root
    remove_endpoint(state)
    assert find_root(inner) == inner


def test_without_any_mark_the_directory_itself_is_the_root(tmp_path: Path) -> None:
    assert find_root(tmp_path) == tmp_path


def test_a_worktree_that_a_daemon_made_belongs_to_its_root(tmp_path: Path) -> None:
    tree = tmp_path / ".aegis" / "worktrees" / ("0123456789abcdef" * 2)
    (tree / "sub").mkdir(parents=True)
    (tree / ".aegis.yaml").touch()
    (tree / "sub" / ".aegis.yaml").touch()
    assert find_root(tree) == find_root(tree / "sub") == tmp_path
    other = tmp_path / ".aegis" / "worktrees" / "other"
    other.mkdir()
    (other / ".aegis.yaml").touch()
    assert find_root(other) == other


def test_a_root_is_found_through_links_and_dots(tmp_path: Path) -> None:
    (tmp_path / ".aegis.yaml").touch()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert find_root(tmp_path / "link" / ".." / "real") == tmp_path


def test_the_endpoint_is_read_as_it_was_written(state: StatePaths) -> None:
    write_endpoint(state, ENDPOINT)
    assert read_endpoint(state) == ENDPOINT
    document = json.loads(state.endpoint.read_text())
    assert document["version"] == 1
    fields = {"version", "root", "pid", "url", "mcp", "ws", "socket", "token", "mac"}
    assert set(document) == fields


def test_only_the_owner_may_read_the_endpoint(state: StatePaths) -> None:
    previous = os.umask(0)
    try:
        write_endpoint(state, ENDPOINT)
    finally:
        os.umask(previous)
    assert stat.S_IMODE(state.endpoint.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.directory.stat().st_mode) == 0o700


def test_a_reader_never_meets_half_an_endpoint(state: StatePaths) -> None:
    write_endpoint(state, ENDPOINT)
    done = threading.Event()

    def rewrite() -> None:
        for number in range(300):
            write_endpoint(state, ENDPOINT._replace(token="x" * number * 20))
        done.set()

    writer = threading.Thread(target=rewrite)
    writer.start()
    while not done.is_set():
        found = read_endpoint(state)
        assert found is not None
        assert found.pid == ENDPOINT.pid
    writer.join()
    assert {path.name for path in state.directory.iterdir()} == {"endpoint.json", "state.id"}


def test_what_a_crash_left_of_a_write_is_no_hindrance(state: StatePaths) -> None:
    (state.directory / "endpoint.json.new").write_text("half")
    write_endpoint(state, ENDPOINT)
    assert read_endpoint(state) == ENDPOINT
    assert {path.name for path in state.directory.iterdir()} == {"endpoint.json", "state.id"}


def test_removing_an_endpoint_twice_is_fine(state: StatePaths) -> None:
    write_endpoint(state, ENDPOINT)
    remove_endpoint(state)
    remove_endpoint(state)
    assert read_endpoint(state) is None


def test_the_directory_may_be_made_twice(state: StatePaths) -> None:
    make_directory(state)
    assert state.directory.is_dir()


def test_the_token_is_not_shown() -> None:
    assert "secret" not in repr(ENDPOINT)
    assert "secret" not in f"{ENDPOINT}"


GOOD: dict[str, Any] = {**ENDPOINT._asdict()}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        "[" * 60_000,
        json.dumps({**GOOD, "pid": "4242"}),
        json.dumps({**GOOD, "pid": True}),
        json.dumps({**GOOD, "token": None}),
        json.dumps({**GOOD, "version": "1"}),
        json.dumps({name: value for name, value in GOOD.items() if name != "socket"}),
    ],
    ids=range(11),
)
def test_a_file_that_is_no_endpoint_is_refused_with_a_remedy(state: StatePaths, text: str) -> None:
    state.endpoint.write_text(text)
    with pytest.raises(BadEndpoint) as caught:
        read_endpoint(state)
    assert str(caught.value) == (
        f"{state.endpoint} does not hold the address of a daemon: remove it and start one with: "
        "aegis-actors up"
    )


def test_an_endpoint_of_a_newer_version_is_refused(state: StatePaths) -> None:
    state.endpoint.write_text(json.dumps({**GOOD, "version": 2}))
    with pytest.raises(BadEndpoint, match="is of version 2, made by a newer aegis-actors"):
        read_endpoint(state)


def test_more_than_is_known_may_stand_in_an_endpoint(state: StatePaths) -> None:
    seal = claim_state(state).of(str(state.endpoint))
    state.endpoint.write_text(json.dumps(sealed_document({**GOOD, "colour": "red"}, seal)))
    assert read_endpoint(state) == ENDPOINT


def test_an_endpoint_that_cannot_be_read_is_told(state: StatePaths) -> None:
    state.endpoint.mkdir()
    with pytest.raises(BadEndpoint, match="cannot be read: "):
        read_endpoint(state)
    state.endpoint.rmdir()
    state.endpoint.write_bytes(b"\xff\xfe")
    with pytest.raises(BadEndpoint, match="cannot be read: "):
        read_endpoint(state)


def test_the_endpoint_of_somebody_else_is_not_used(
    state: StatePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_endpoint(state, ENDPOINT)
    owner = state.endpoint.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(BadEndpoint, match=f"belongs to user {owner}"):
        read_endpoint(state)
