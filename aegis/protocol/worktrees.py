"""The git worktrees of agent sessions."""

from __future__ import annotations

from typing import Literal

import attrs

from aegis.protocol.agents import HANDLE
from aegis.protocol.command import Command, described, matching
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE


@attrs.frozen(kw_only=True)
class WorktreeInfo:
    """The worktree at ``path`` of the session ``id``, on a ``branch`` of its own.

    ``base`` is the commit with which it began, ``target`` the branch that was checked out where it
    was made, empty if none was. ``holds`` says what would be lost with it; empty: nothing.
    ``unmerged`` is the number of its commits that the target does not have; null: not known.
    """

    id: str
    handle: str
    path: str
    branch: str
    target: str
    base: str
    holds: str
    unmerged: int | None = None


@attrs.frozen(kw_only=True)
class WorktreeList:
    """The worktrees of agent sessions, by handle."""

    result: list[WorktreeInfo]


@attrs.frozen(kw_only=True)
class ListWorktrees(Command[WorktreeList]):
    """List the git worktrees of agent sessions, and what would be lost with each."""


@attrs.frozen(kw_only=True)
class RemoveWorktree(Command[WorktreeInfo]):
    """Remove the git worktree of a closed agent session. Commits stay in its branch.

    Refused, with a list, if something would be lost: use ``force`` to remove it in spite of that.
    """

    handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)
    force: bool = attrs.field(
        default=False, metadata=described("True: remove it with what would be lost.")
    )


@attrs.frozen(kw_only=True)
class MergedWorktree:
    """The merge of the ``branch`` of a session's worktree into its ``target``, now at ``commit``.

    ``kind`` is ``none`` if the target had all commits already. ``directory`` is the checkout of the
    target, empty if none has it checked out; ``files`` is the number of changed files. ``left`` are
    those in that directory that could not be replaced, and show as changed.
    """

    handle: str
    branch: str
    target: str
    kind: Literal["none", "fast-forward", "commit"]
    commit: str
    directory: str
    files: int
    left: list[str]


@attrs.frozen(kw_only=True)
class MergeWorktree(Command[MergedWorktree]):
    """Merge the branch of an agent's git worktree into the branch that it began from.

    By moving that branch forward, else by a merge commit if git finds no conflict, else refused
    with the files. Nothing is forced: refused if either side has changes that are not committed.
    """

    handle: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=HANDLE)
