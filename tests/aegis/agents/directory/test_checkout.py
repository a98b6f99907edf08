"""The commit of a checkout, read from its files, against git itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from aegis.agents.directory.checkout import commit_of, find_checkout, head_of


def git(directory: Path, *words: str) -> str:
    settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *settings, *words], cwd=directory, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "work")
    work = tmp_path / "work"
    git(work, "commit", "-q", "--allow-empty", "-m", "one")
    return work


def test_it_is_the_commit_that_git_names(checkout: Path) -> None:
    below = checkout / "a" / "b"
    below.mkdir(parents=True)
    assert head_of(str(below)) == git(checkout, "rev-parse", "HEAD")
    git(checkout, "switch", "-q", "-c", "feature/x")
    git(checkout, "commit", "-q", "--allow-empty", "-m", "two")
    assert head_of(str(checkout)) == git(checkout, "rev-parse", "HEAD")
    git(checkout, "pack-refs", "--all", "--prune")
    assert head_of(str(checkout)) == git(checkout, "rev-parse", "HEAD")
    git(checkout, "switch", "-q", "--detach", "HEAD~1")
    assert head_of(str(checkout)) == git(checkout, "rev-parse", "HEAD")


def test_a_worktree_has_a_commit_and_the_objects_of_its_checkout(checkout: Path) -> None:
    git(checkout, "worktree", "add", "-q", "../tree")
    tree = checkout.parent / "tree"
    git(tree, "commit", "-q", "--allow-empty", "-m", "two")
    found = find_checkout(tree)
    assert found is not None
    assert commit_of(found) == git(tree, "rev-parse", "HEAD")
    assert found.objects.resolve() == (checkout / ".git" / "objects").resolve()


def test_a_checkout_of_sha256_has_a_long_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    assert head_of(str(tmp_path)) == git(tmp_path, "rev-parse", "HEAD")


def test_a_directory_without_a_commit_has_none(tmp_path: Path) -> None:
    assert head_of(str(tmp_path)) is None
    git(tmp_path, "init", "-q")
    assert head_of(str(tmp_path)) is None


@pytest.mark.parametrize(
    "head", ["ref: ../../secret\n", "ref: refs/../../../x\n", "x" * 40, "", "\xff", "ref: refs/a b"]
)
def test_a_head_that_git_would_not_write_is_none(checkout: Path, head: str) -> None:
    (checkout / ".git" / "HEAD").write_text(head)
    assert head_of(str(checkout)) is None


def test_a_fifo_in_place_of_a_file_blocks_nothing(checkout: Path) -> None:
    (checkout / ".git" / "HEAD").unlink()
    os.mkfifo(checkout / ".git" / "HEAD")
    assert head_of(str(checkout)) is None
