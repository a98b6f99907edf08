"""Keys of nodes, and the files that they lie in."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from actors.errors import BadNodeKey
from actors.nodes.links.key import NodeKey, key_of_text, new_key, read_key, write_key


def test_a_key_comes_back_from_its_file_which_only_its_owner_can_read(tmp_path: Path) -> None:
    path, key = tmp_path / "key", new_key()
    write_key(path, key)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_key(path) == key


def test_no_key_is_written_over_another(tmp_path: Path) -> None:
    path, key = tmp_path / "key", new_key()
    write_key(path, key)
    with pytest.raises(FileExistsError):
        write_key(path, new_key())
    assert read_key(path) == key


def test_two_keys_differ() -> None:
    assert new_key() != new_key()


def test_a_key_does_not_show_itself() -> None:
    key = new_key()
    for shown in (repr(key), str(key), repr([key])):
        assert key.secret.hex() not in shown
        assert repr(key.secret) not in shown


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o666])
def test_a_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    write_key(path, new_key())
    path.chmod(mode)
    with pytest.raises(BadNodeKey, match="chmod 600"):
        read_key(path)


@pytest.mark.parametrize("text", [b"", b"00" * 31, b"00" * 33, b"zz" * 32, b"\xff" * 64])
def test_what_is_no_key_is_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(BadNodeKey):
        key_of_text(text)
    path = tmp_path / "key"
    path.write_bytes(text)
    path.chmod(0o600)
    with pytest.raises(BadNodeKey):
        read_key(path)


def test_a_key_has_32_bytes() -> None:
    with pytest.raises(BadNodeKey, match="32 bytes"):
        NodeKey(b"short")


def one_sentence(error: pytest.ExceptionInfo[BadNodeKey], path: Path) -> str:
    """What the error says, which names the file and is one sentence."""
    text = str(error.value)
    assert str(path) in text
    assert text.endswith(".")
    assert ". " not in text.replace(str(path), "")
    return text


@pytest.mark.parametrize("name", ["missing", "no/directory", "key/below"])
def test_where_no_key_is_the_error_says_what_to_put_there(tmp_path: Path, name: str) -> None:
    write_key(tmp_path / "key", new_key())
    with pytest.raises(BadNodeKey) as caught:
        read_key(tmp_path / name)
    assert "copy the key file of the root there" in one_sentence(caught, tmp_path / name)


def test_a_link_is_no_key_file_wherever_it_leads(tmp_path: Path) -> None:
    write_key(tmp_path / "key", new_key())
    for target in ("key", "nowhere", "link"):
        path = tmp_path / "link"
        path.unlink(missing_ok=True)
        path.symlink_to(tmp_path / target)
        with pytest.raises(BadNodeKey) as caught:
            read_key(path)
        assert "symbolic link" in one_sentence(caught, path)


def test_a_directory_or_a_pipe_is_no_key_file_and_costs_no_descriptor(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "directory").mkdir(mode=0o700)
    before = os.listdir("/proc/self/fd")
    for name in ("pipe", "directory"):
        with pytest.raises(BadNodeKey) as caught:
            read_key(tmp_path / name)
        assert "regular file" in one_sentence(caught, tmp_path / name)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_key(path, new_key())
    os.chown(path, 65_534, 65_534)
    with pytest.raises(BadNodeKey) as caught:
        read_key(path)
    assert "another user" in one_sentence(caught, path)


def test_a_file_that_holds_no_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"secret")
    path.chmod(0o600)
    with pytest.raises(BadNodeKey, match=f"{path} holds no key"):
        read_key(path)
