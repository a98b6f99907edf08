"""The plugin files of a root, and the digest by which they are trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aegis.workflows.plugins import found
from aegis.workflows.plugins.found import digest_of_all, find_plugins, sentences_of


def write(root: Path, name: str, text: str = "x = 1\n") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_a_directory_there_are_no_plugins(tmp_path: Path) -> None:
    assert find_plugins(tmp_path, ["plugins", "no/such"]) == ()


def test_the_files_of_all_directories_are_found_and_others_are_not(tmp_path: Path) -> None:
    for name in ("a/one.py", "b/two.py", "a/_helper.py", "a/.hidden.py", "a/notes.md"):
        write(tmp_path, name)
    files = find_plugins(tmp_path, ["a", "b/"])
    assert [(each.stem, each.shown) for each in files] == [("one", "a/one.py"), ("two", "b/two.py")]
    assert sentences_of(files) == ("the plugin a/one.py", "the plugin b/two.py")


def test_the_digest_changes_with_every_byte_name_and_configuration(tmp_path: Path) -> None:
    assert digest_of_all("digest", ()) == "digest"
    digests = set()
    for name, text, configuration in (
        ("a/one.py", "x = 1\n", "c"),
        ("a/one.py", "x = 2\n", "c"),
        ("a/two.py", "x = 2\n", "c"),
        ("a/two.py", "x = 2\n", "d"),
    ):
        write(tmp_path, name, text)
        digests.add(digest_of_all(configuration, find_plugins(tmp_path, ["a"])))
    assert len(digests) == 4


def test_a_file_that_cannot_be_used_has_a_problem_and_no_digest(tmp_path: Path) -> None:
    write(tmp_path, "a/not-a-name.py")
    write(tmp_path, "a/open.py").chmod(0o666)
    os.mkfifo(tmp_path / "a" / "fifo.py")
    (tmp_path / "a" / "folder.py").mkdir()
    (tmp_path / "a" / "broken.py").symlink_to("nowhere.py")
    write(tmp_path, "a/same.py")
    write(tmp_path, "b/same.py")
    write(tmp_path, "a/large.py", "#" * (found.MAX_PLUGIN_BYTES + 1))
    files = {each.shown: each for each in find_plugins(tmp_path, ["a", "b"])}
    problems = {shown: each.problem for shown, each in files.items() if each.problem}
    assert problems == {
        "a/not-a-name.py": "its name is no Python identifier: rename it",
        "a/open.py": "it is writable by everybody, who could choose what it runs: chmod o-w",
        "a/fifo.py": "it is not a regular file: replace it by one",
        "a/folder.py": "it is not a regular file: replace it by one",
        "a/broken.py": "it cannot be read: No such file or directory",
        "b/same.py": "a/same.py has the same name: rename one of them",
        "a/large.py": "it is longer than 1048576 bytes, the maximum",
    }
    assert [shown for shown, each in files.items() if each.digest] == ["a/same.py"]


def test_the_number_of_plugins_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "MAX_PLUGINS", 2)
    for number in range(5):
        write(tmp_path, f"a/p{number}.py")
    files = find_plugins(tmp_path, ["a"])
    assert [bool(each.digest) for each in files] == [True, True, False]
    assert files[-1].problem == "there are more than 2 plugins: remove some"


def test_a_name_that_is_not_utf8_is_shown_escaped(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    path = os.fsencode(tmp_path / "a") + b"/\xff.py"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    [file] = find_plugins(tmp_path, ["a"])
    assert file.problem == "its name is no Python identifier: rename it"
    file.shown.encode()
