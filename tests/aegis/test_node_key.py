"""The key of nodes in its file."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from actors.nodes import BadNodeKey, NodeKey
from aegis.errors import StartupError
from aegis.node_key import open_node_key, read_node_key
from aegis.state.root import StatePaths


def test_a_key_is_made_once_for_its_user_alone_and_stays(tmp_path: Path) -> None:
    state = StatePaths(tmp_path)
    key = open_node_key(state)
    assert stat.S_IMODE(state.node_key.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.directory.stat().st_mode) == 0o700
    assert open_node_key(state) == key == read_node_key(state.node_key)


def test_a_key_that_is_made_before_any_daemon_is_kept_out_of_repositories(tmp_path: Path) -> None:
    state = StatePaths(tmp_path)
    open_node_key(state)
    names = {each.name for each in state.directory.iterdir()}
    assert names == {".gitignore", "node.key", "state.id"}
    assert (state.directory / ".gitignore").read_text() == "*\n"


def test_all_who_make_it_at_once_get_the_same(tmp_path: Path) -> None:
    keys: list[NodeKey] = []
    makers = [
        threading.Thread(target=lambda: keys.append(open_node_key(StatePaths(tmp_path))))
        for _ in range(8)
    ]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join(60)
    assert len(keys) == 8
    assert len({key.secret for key in keys}) == 1


@pytest.mark.parametrize("content", ["", "rubbish\n", "00" * 31])
def test_what_is_no_key_is_refused_and_left_as_it_is(tmp_path: Path, content: str) -> None:
    state = StatePaths(tmp_path)
    open_node_key(state)
    state.node_key.write_text(content)
    with pytest.raises(BadNodeKey):
        open_node_key(state)
    assert state.node_key.read_text() == content


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    state = StatePaths(tmp_path)
    open_node_key(state)
    state.node_key.chmod(0o640)
    with pytest.raises(BadNodeKey, match="chmod 600"):
        read_node_key(state.node_key)


def test_a_key_that_nobody_brought_is_told_with_where_it_comes_from(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"there is no key at .*aegis-actors node key"):
        read_node_key(tmp_path / "node.key")


def test_a_state_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".aegis").write_text("a file")
    with pytest.raises(StartupError, match=r"cannot use .*node\.key: "):
        open_node_key(StatePaths(tmp_path))
