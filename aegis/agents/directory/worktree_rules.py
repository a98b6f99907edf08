"""The names of the branches of worktrees, and what would be lost with a worktree. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import attrs

PREFIX = "aegis/"
"""The beginning of the names of branches that a session was given without a choice."""

MAX_BRANCH_CHARS = 200

MAX_NAMED = 5

WorktreeState = Literal["making", "ready", "removing", "removed"]

MergeKind = Literal["none", "fast-forward", "commit"]

_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
_COMMIT = re.compile(r"[0-9a-fA-F]{40}(?:[0-9a-fA-F]{24})?")


@attrs.frozen(kw_only=True)
class BranchMerge:
    """The intent to move the target from the commit ``old`` to ``new``.

    ``place`` is the directory in which the target is checked out, as a stored path; empty: none is.
    """

    old: str
    new: str
    place: str = ""


@attrs.frozen(kw_only=True)
class Worktree:
    """The worktree of the session ``id``, whose directory has that name.

    ``checkout`` is the directory of the checkout that it was made from, and ``subdirectory`` the
    place in it where the session works; both as stored paths. ``target`` is the branch that was
    checked out there, empty if none was. ``base`` is the commit with which it began, ``tip`` the
    last one when it was removed. ``ended_on`` is the branch that was checked out then, empty: none
    was; None if that is ``branch``. ``included`` are the files that were copied into it, with
    digests of their content. ``kept`` says why it was not removed at the close of its session.

    ``making`` and ``removing`` are intents, as is ``merge``: they are durable before git runs.
    """

    id: str
    checkout: str
    branch: str
    base: str
    at: str
    subdirectory: str = ""
    target: str = ""
    is_named: bool = False
    state: WorktreeState = "making"
    tip: str = ""
    ended_on: str | None = None
    kept: str = ""
    included: Mapping[str, str] = attrs.field(factory=dict)
    merge: BranchMerge | None = None


@attrs.frozen(kw_only=True)
class Holdings:
    """The content of a worktree that would be lost with it.

    ``changed`` are tracked files that differ from the commit, in the directory or in the index,
    ``untracked`` files that git does not know, ``ignored`` those that it is to ignore. Each of
    ``repositories`` is a repository inside. ``commits`` are ids of commits that no other reference
    reaches. ``operation`` is what git is in the middle of, ``users`` the processes that work there.
    ``closed`` are directories that only another user may list or empty. ``unknown`` says why the
    rest is not known.
    """

    changed: Sequence[str] = ()
    untracked: Sequence[str] = ()
    ignored: Sequence[str] = ()
    repositories: Sequence[str] = ()
    commits: Sequence[str] = ()
    operation: str = ""
    users: Sequence[int] = ()
    closed: Sequence[str] = ()
    unknown: str = ""


def refuse_branch(name: str) -> str | None:
    """Return why a branch cannot have this name, in one sentence; None if it can.

    Stricter than git: a name is an argument of git's, and is shown to people.
    """
    parts = name.split("/")
    if len(name) > MAX_BRANCH_CHARS or _BRANCH.fullmatch(name) is None:
        why = (
            f"a name has at most {MAX_BRANCH_CHARS} characters; its parts, with a '/' between two, "
            "begin with a letter, a digit or '_', and have these, '.', '+' and '-' only"
        )
    elif ".." in name or any(each.endswith((".", ".lock")) for each in parts):
        why = "git takes no '..', and no part that ends with '.' or '.lock'"
    elif _COMMIT.fullmatch(name) or name == "HEAD" or parts[0] == "refs":
        why = "git would read it as something else"
    else:
        return None
    shown = name if len(name) <= 80 else name[:79] + "…"
    return f"the branch cannot be called {shown!r}: {why}"


def is_made_again(path: str, made_again: frozenset[str]) -> bool:
    """Return whether a path is in a directory of a name in ``made_again``."""
    return not made_again.isdisjoint(path.split("/")[:-1])


def ignored_losses(
    ignored: Iterable[str],
    included: Mapping[str, str],
    digests: Mapping[str, str | None],
    made_again: frozenset[str],
) -> list[str]:
    """Return the ignored files that count: not made again, nor included and unchanged.

    ``included`` and ``digests`` are those of the copied files, at first and now.
    """
    return [
        each
        for each in ignored
        if not is_made_again(each, made_again)
        and (each not in included or digests.get(each) != included[each])
    ]


def losses(holdings: Holdings) -> list[str]:
    """Return what would be lost with a worktree, as parts of a sentence; none: it can go."""
    found = [
        list_names(holdings.changed, "changed file"),
        list_names(
            holdings.untracked, "file that git does not know", "files that git does not know"
        ),
        list_names(holdings.ignored, "ignored file"),
        list_names(holdings.repositories, "repository inside", "repositories inside"),
        list_names(
            [each[:12] for each in holdings.commits],
            "commit that is in no other branch",
            "ends of commits that are in no other branch",
        ),
        f"{holdings.operation} that is not complete" if holdings.operation else "",
        list_names([*map(str, holdings.users)], "process that works in it", "processes in it"),
        list_names(
            holdings.closed,
            "directory that cannot be read or emptied",
            "directories that cannot be read or emptied",
        ),
        holdings.unknown,
    ]
    return [each for each in found if each]


def list_names(names: Sequence[str], one: str, many: str | None = None) -> str:
    """Return the number of these files or other things, and the first names; "" of none."""
    if not names:
        return ""
    what = one if len(names) == 1 else many or f"{one}s"
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{len(names)} {what} ({', '.join(names[:MAX_NAMED])}{more})"


def unnamed_branch(handle: str) -> str:
    """Return the branch of a session that was given none."""
    return f"{PREFIX}{handle}"
