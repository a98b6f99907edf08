"""The names of branches of worktrees, and what would be lost with one."""

from __future__ import annotations

import pytest

from aegis.agents.directory.worktree_rules import (
    Holdings,
    ignored_losses,
    is_made_again,
    losses,
    refuse_branch,
)
from aegis.configuration.worktrees import MADE_AGAIN

TOOLS = frozenset(MADE_AGAIN)


@pytest.mark.parametrize("name", ["x", "feature/x-1", "a.b/c_d", "aegis/ann", "v1.0+x", "_x"])
def test_a_plain_name_is_taken(name: str) -> None:
    assert refuse_branch(name) is None


@pytest.mark.parametrize(
    "name",
    [
        *("", "-x", "--upload-pack=touch x", "a b", "a//b", "/a", "a/", "a/-b", ".a", "a/.b"),
        *("a..b", "a.", "a.lock", "a.lock/b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "@{1}"),
        *("HEAD", "refs/heads/a", "a\n", "a\x1b[0m", "ü", "0" * 40, "f" * 64, "x" * 201),
    ],
)
def test_a_name_that_git_could_read_as_something_else_is_refused(name: str) -> None:
    assert "cannot be called" in str(refuse_branch(name))


@pytest.mark.parametrize(
    ("path", "is_made"),
    [
        ("node_modules/a", True),
        ("web/node_modules/a/b", True),
        ("__pycache__/x.pyc", True),
        ("node_modules", False),
        ("my_node_modules/a", False),
        ("build/a", False),
        (".env", False),
    ],
)
def test_only_files_in_directories_that_tools_make_again_do_not_count(
    path: str, is_made: bool
) -> None:
    assert is_made_again(path, TOOLS) == is_made
    assert ignored_losses([path], {}, {}, TOOLS) == ([] if is_made else [path])


def test_a_copied_file_counts_once_it_has_changed_or_cannot_be_read() -> None:
    included = {".env": "1", "b": "2"}
    assert ignored_losses([".env", "b"], included, {".env": "1", "b": "2"}, TOOLS) == []
    assert ignored_losses([".env", "b"], included, {".env": "3", "b": None}, TOOLS) == [".env", "b"]


def test_nothing_is_lost_with_an_empty_one_alone() -> None:
    assert losses(Holdings()) == []
    each = {
        "changed": ["a"],
        "untracked": ["a"],
        "ignored": ["a"],
        "repositories": ["a"],
        "commits": ["0" * 40],
        "operation": "a rebase",
        "users": [1],
        "unknown": "it could not be examined",
    }
    for name, value in each.items():
        assert len(losses(Holdings(**{name: value}))) == 1, name  # type: ignore[arg-type]
    assert len(losses(Holdings(**each))) == len(each)  # type: ignore[arg-type]


def test_many_files_are_counted_and_some_are_named() -> None:
    [sentence] = losses(Holdings(changed=[f"f{number}" for number in range(7)]))
    assert sentence == "7 changed files (f0, f1, f2, f3, f4 and 2 more)"
