"""The daemon as a process: what it asks of the interpreter, the port it remembers."""

from __future__ import annotations

import gc
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from aegis.daemon_process import (
    ErrorIgnoringStream,
    freeze_imports,
    hold_root,
    remember_port,
    remembered_port,
    wants_colours,
)
from aegis.state.root import StatePaths, make_directory


@pytest.fixture(autouse=True)
def thaw() -> Iterator[None]:
    """The process of the tests goes on."""
    yield
    gc.unfreeze()


def test_what_is_kept_is_passed_over_by_the_collector_and_what_comes_later_is_not() -> None:
    before: list[object] = []
    freeze_imports()
    after: list[object] = []
    looked_at = [id(each) for each in gc.get_objects()]
    assert id(before) not in looked_at
    assert id(after) in looked_at


@pytest.fixture
def state(tmp_path: Path) -> StatePaths:
    state = StatePaths(tmp_path)
    make_directory(state)
    return state


def test_the_port_is_remembered_and_only_a_new_one_is_written(state: StatePaths) -> None:
    assert remembered_port(state) is None
    remember_port(state, 8420)
    path = state.directory / "port"
    first = path.stat()
    assert (remembered_port(state), stat.S_IMODE(first.st_mode)) == (8420, 0o600)
    remember_port(state, 8420)
    then = path.stat()
    assert (then.st_ino, then.st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    remember_port(state, 8421)
    assert remembered_port(state) == 8421


class Died(BaseException):
    """Stands for a kill: nothing that catches errors catches it."""


@pytest.mark.parametrize("call", ["open", "replace"])
def test_a_kill_while_a_port_is_remembered_leaves_the_old_one(
    state: StatePaths, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_port(state, 8420)

    def die(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(os, call, die)
        with pytest.raises(Died):
            remember_port(state, 8421)
    assert remembered_port(state) == 8420
    remember_port(state, 8421)
    assert remembered_port(state) == 8421
    assert sorted(path.name for path in state.directory.iterdir()) == ["port"]


def test_git_passes_over_the_state_of_a_root(state: StatePaths) -> None:
    with hold_root(state):
        pass
    path = state.directory / ".gitignore"
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("*\n", 0o600)
    path.write_text("# mine\n")
    with hold_root(state):
        pass
    assert path.read_text() == "# mine\n"


def test_a_log_that_nobody_can_read_any_more_fails_nothing() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as pipe:
        stream = ErrorIgnoringStream(pipe)
        stream.write("heard\n")
        stream.flush()
        assert os.read(reader, 100) == b"heard\n"
        os.close(reader)
        stream.write("lost\n")
        stream.flush()
        stream.write("lost too\n")
        stream.flush()


@pytest.mark.parametrize(
    ("environment", "colours"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({}, False),
    ],
)
def test_logs_have_colours_where_they_are_liked(environment: dict[str, str], colours: bool) -> None:
    assert wants_colours(environment) == colours
