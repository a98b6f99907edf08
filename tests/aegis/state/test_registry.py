"""The registry of a user: a state is claimed whole or not at all, whenever it is killed."""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aegis.daemon_process import hold_root
from aegis.errors import StartupError
from aegis.state.registration import MAX_MOVED, claim_state
from aegis.state.registry import NAME, RegistryError, StateRegistry, find_entry
from aegis.state.root import StatePaths, UntrustedState, make_directory
from aegis.state.root import open_seals as open_seals_of
from aegis.state.sealing import (
    Seal,
    Seals,
    document_fits,
    opened_text,
    sealed_document,
    sealed_text,
)
from aegis.state.state_files import UnsafeFile


def open_seals(state: StatePaths) -> Seals:
    return open_seals_of(str(state.root))


class Killed(BaseException):
    """Stands for a kill: nothing that catches errors catches it."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty registry."""
    home = tmp_path / "home"
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    return home / NAME


@pytest.fixture
def state(tmp_path: Path, home: Path) -> StatePaths:
    return StatePaths(tmp_path)


WRITES = ("open", "mkdir", "fsync", "replace", "unlink")


def killed_at(number: int, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> bool:
    """Do it, and die before the writing call of this number; whether there was one."""
    left = [number]

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return real(*arguments, **named)

        return call

    with monkeypatch.context() as patched:
        for name in WRITES:
            patched.setattr(os, name, dying(getattr(os, name)))
        try:
            act()
        except Killed:
            return True
    return False


def hold(state: StatePaths) -> None:
    with hold_root(state):
        pass


@pytest.mark.parametrize("act", [claim_state, hold])
def test_a_state_is_claimed_again_after_a_kill_at_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[StatePaths], object]
) -> None:
    number, was_killed = 0, True
    while was_killed:
        root = tmp_path / str(number)
        root.mkdir()
        monkeypatch.setenv("XDG_STATE_HOME", str(root / "home"))
        state = StatePaths(root)
        was_killed = killed_at(number, monkeypatch, lambda state=state: act(state))  # type: ignore[misc]
        with hold_root(state) as held:
            assert open_seals(state) == held.seals
        number += 1
    assert number > 10


@pytest.mark.parametrize("number", range(40))
def test_a_state_that_is_taken_over_is_so_after_a_kill_and_the_same_word_again(
    state: StatePaths, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    make_directory(state)
    (state.directory / "workspace.json").write_text('{"version": 1, "terminals": ["build"]}')
    with pytest.raises(StartupError, match="--trust"):
        hold(state)

    def trust() -> None:
        with hold_root(state, trust=True):
            pass

    killed_at(number, monkeypatch, trust)
    trust()
    hold(state)


def test_a_key_is_for_its_user_alone(state: StatePaths, home: Path) -> None:
    claim_state(state)
    assert stat.S_IMODE((home / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("name", "text"), [(b"d\xff", r"$'{}/d\xff'"), ("größer".encode(), "{}/größer")]
)
def test_an_entry_has_its_root_as_text_that_is_the_same_in_every_locale(
    home: Path, tmp_path: Path, name: bytes, text: str
) -> None:
    root = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
    Path(root).mkdir()
    seals = claim_state(StatePaths(Path(root)))
    registry = StateRegistry.of_user()
    assert find_entry(registry, root, seals.directory)[1].root == root
    [file] = (home / "states").iterdir()
    assert json.loads(file.read_bytes())["root"] == text.format(tmp_path)


def test_an_entry_whose_root_is_no_path_is_that_of_another_state(
    state: StatePaths, home: Path
) -> None:
    claim_state(state)
    [file] = (home / "states").iterdir()
    file.write_text(json.dumps({"root": "/a\0b", "inode": 0, "configuration": None}))
    with pytest.raises(UntrustedState, match="it is a copy of the state of"):
        open_seals(state)


def test_all_that_claim_at_once_have_one_state(state: StatePaths) -> None:
    found: list[Seals] = []
    threads = [threading.Thread(target=lambda: found.append(claim_state(state))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 8
    assert len(set(found)) == 1


@pytest.mark.parametrize("what", ["link", "directory", "open", "rubbish"])
def test_a_registry_that_is_not_safe_is_refused_in_a_sentence(
    state: StatePaths, home: Path, tmp_path: Path, what: str
) -> None:
    claim_state(state)
    key = home / "key"
    match what:
        case "link":
            key.rename(tmp_path / "key")
            key.symlink_to(tmp_path / "key")
        case "directory":
            key.unlink()
            key.mkdir()
        case "open":
            home.chmod(0o777)
        case "rubbish":
            key.write_text("x")
    with pytest.raises(RegistryError, match=r"is not used|Is a directory|does not hold"):
        open_seals(state)


def test_a_registry_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    (tmp_path / "root").mkdir()
    with pytest.raises(StartupError, match="XDG_STATE_HOME"):
        hold(StatePaths(tmp_path / "root"))


def test_a_user_without_a_home_is_told(state: StatePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(RegistryError, match="no home directory: set HOME, or XDG_STATE_HOME"):
        claim_state(state)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_root_makes_no_registry_in_the_home_of_another_user(state: StatePaths, home: Path) -> None:
    home.parent.mkdir()
    os.chown(home.parent, 12_345, 12_345)
    with pytest.raises(RegistryError, match="belongs to user 12345, and this is root"):
        claim_state(state)
    assert not home.exists()


def test_a_state_that_was_deleted_and_made_anew_leaves_one_entry(
    state: StatePaths, home: Path
) -> None:
    for _ in range(3):
        claim_state(state)
        (state.directory / "state.id").unlink()
    assert len(list((home / "states").iterdir())) == 1


def test_a_copy_at_another_path_is_refused_while_the_original_is_there(
    state: StatePaths, tmp_path: Path
) -> None:
    claim_state(state)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / ".aegis", copy / ".aegis")
    with pytest.raises(UntrustedState, match="it is a copy of the state of"):
        open_seals(StatePaths(copy))


def test_states_that_were_moved_away_before_a_new_one_was_made_are_known_up_to_a_limit(
    home: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    for number in range(MAX_MOVED + 3):
        root.mkdir()
        claim_state(StatePaths(root))
        root.rename(tmp_path / f"moved{number}")
    assert len(list((home / "states").iterdir())) == MAX_MOVED + 1
    open_seals(StatePaths(tmp_path / f"moved{MAX_MOVED + 1}"))


def test_a_key_that_was_lost_is_told(state: StatePaths, home: Path) -> None:
    claim_state(state)
    (home / "key").unlink()
    with pytest.raises(RegistryError, match="has lost its key"):
        open_seals(state)
    with pytest.raises(StartupError, match="aegis-actors up --trust"):
        hold(state)
    with hold_root(state, trust=True):
        pass
    hold(state)


def test_a_state_is_known_by_any_path_to_it(state: StatePaths, tmp_path: Path) -> None:
    claim_state(state)
    other = tmp_path / "other"
    other.mkdir()
    (other / ".aegis").mkdir()
    registry = StateRegistry.of_user()
    assert find_entry(registry, "/elsewhere", str(state.directory))[1].root == str(tmp_path)
    (other / ".aegis" / "state").symlink_to(state.directory)
    with pytest.raises(UnsafeFile, match="symbolic link"):
        open_seals(StatePaths(other))


def test_an_id_that_is_none_is_foreign(state: StatePaths) -> None:
    claim_state(state)
    (state.directory / "state.id").write_text("../../x\n")
    with pytest.raises(UntrustedState):
        open_seals(state)


# Codes.


def seals(key: int = 0, state_id: str = "a", directory: str = "/s") -> Seals:
    return Seals(bytes([key] * 32), state_id, directory)


def test_a_code_is_of_one_key_one_state_one_path_and_one_content() -> None:
    codes = {
        seals(key, state_id).of(f"/s/{name}").mac(content)
        for key in (0, 1)
        for state_id in ("a", "b")
        for name in ("x", "y/x", "y", "x\udc80")
        for content in (b"", b"x", b"y")
    }
    assert len(codes) == 2 * 2 * 4 * 3


def test_a_path_outside_the_state_has_no_code() -> None:
    for path in ("/x", "/s", "/state/x"):
        with pytest.raises(ValueError, match="is not a file of"):
            seals().of(path)


@pytest.fixture
def seal() -> Seal:
    return seals().of("/s/x")


def test_a_document_has_its_code_however_it_is_written(seal: Seal) -> None:
    document = {"b": [1, 2.5, None], "a": "ü\udc80"}
    signed = sealed_document(document, seal)
    assert document_fits(dict(reversed(signed.items())), seal)
    assert sealed_document(signed, seal) == signed
    wrongs: list[Any] = [document, {**signed, "a": "u"}, {**signed, "mac": "ü"}, []]
    for wrong in (*wrongs, {**signed, "mac": 1}):
        assert not document_fits(wrong, seal)
    assert not document_fits(signed, seals().of("/s/y"))


def test_a_text_has_its_code_in_a_last_line(seal: Seal) -> None:
    signed = sealed_text(b"key\n", seal)
    assert opened_text(signed, seal) == b"key\n"
    for wrong in (b"", b"key\n", signed[:-1], signed + b"\n", b"x" + signed, b"\xff" * 60):
        assert opened_text(wrong, seal) is None
