from __future__ import annotations

import os
from pathlib import Path

import pytest

from aegis.directories import find_directory
from aegis.errors import InvalidRequest


def test_nothing_asked_is_the_base(tmp_path: Path) -> None:
    assert find_directory(None, tmp_path, "it") == os.path.realpath(tmp_path)


def test_what_is_asked_stands_under_the_base_and_comes_without_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert find_directory("link", tmp_path, "it") == os.path.realpath(tmp_path / "real")
    assert find_directory(str(tmp_path / "real"), Path("/"), "it") == str(tmp_path / "real")


def test_a_tilde_is_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_directory("~", Path("/"), "it") == os.path.realpath(tmp_path)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ("", "'' is empty"),
        ("a\0b", "holds a NUL"),
        ("missing", "'missing' does not exist"),
        ("file", "'file' is not a directory"),
        ("file/below", "does not exist"),
        ("x" * 300, r"cannot be looked up \(File name too long\)"),
        ("x/" * 3000, r"cannot be looked up \(File name too long\)"),
        ("~nobody-has-this-name", "names a home directory that is not known"),
        pytest.param(
            "closed/below",
            r"cannot be looked up \(Permission denied\)",
            marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every directory"),
        ),
        pytest.param(
            "closed",
            "cannot be read and entered",
            marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every directory"),
        ),
    ],
)
def test_what_cannot_be_entered_is_told_in_one_sentence(
    tmp_path: Path, asked: str, problem: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(InvalidRequest, match=problem) as caught:
        find_directory(asked, tmp_path, "tool: cwd", ", or none")
    assert str(caught.value).startswith("tool: cwd ")
    assert str(caught.value).endswith("; give a directory that exists, or none")
