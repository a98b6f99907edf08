"""The changes in the directory of a session since its start, as ``git diff`` prints them.

git runs with an index of its own: that of the checkout could hide changes, as ``git update-index
--assume-unchanged`` does. Without the checkout's configuration no filter, no monitor, no other diff
program and no hook of it can run, even if ``.gitattributes`` names one.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import trio

from aegis.agents.directory.checkout import Checkout, commit_of, find_checkout
from aegis.agents.directory.git import GitOutput, IsolatedGit, isolated_git
from aegis.agents.directory.roster import Member
from aegis.errors import InvalidRequest, Unavailable
from aegis.limits import in_thread_or_here
from aegis.path_text import path_of_text, text_of_path
from aegis.protocol.agents import AgentDiff

VERB = "agent diff"

MAX_DIFF_BYTES = 1024 * 1024
MAX_NAMES_BYTES = 256 * 1024
"""The limits of what is returned; the rest is left out, which the reply says."""

LIMIT_S = 60.0
"""Seconds that git has, all together."""


async def difference(member: Member, cwd: str, worktree: Path | None, root: Path) -> AgentDiff:
    """Return what changed since the session began in ``cwd``, or in its ``worktree``.

    The state of the daemon for ``root`` is left out. Raises ``InvalidRequest``, ``Unavailable``.
    """
    directory = worktree or Path(path_of_text(cwd))
    is_there = await in_thread_or_here(directory.is_dir)
    checkout = await in_thread_or_here(find_checkout, directory)
    # A checkout above a removed one has changes of others.
    if not is_there or (worktree is not None and checkout is not None and checkout.top != worktree):
        raise InvalidRequest(
            f"{VERB}: {text_of_path(directory)}, where {member.handle!r} worked, is removed; look "
            "at its transcript with agent read"
        )
    if checkout is None or member.head is None:
        own = "transcript with agent read" if member.cmd is None else "terminal with term read"
        raise InvalidRequest(
            f"{VERB}: {member.handle!r} works in {cwd!r}, which was no git checkout "
            f"with a commit when it began; look at its {own} {member.address}"
        )
    with trio.move_on_after(LIMIT_S), isolated_git(VERB, checkout, member.head) as git:
        if root.is_relative_to(checkout.top):
            state = os.fsencode((root / ".aegis").relative_to(checkout.top))
            pattern = b"/" + re.sub(rb"([\\*?\[ ])", rb"\\\1", state) + b"/\n"
            (git.own / "info" / "exclude").write_bytes(pattern)
        return await _with_git(git, checkout, member.handle, member.head)
    raise Unavailable(f"{VERB}: git did not end within {LIMIT_S:g} s; use git yourself")


async def _with_git(git: IsolatedGit, checkout: Checkout, handle: str, base: str) -> AgentDiff:
    # Nothing is written into the checkout: a new file is noted with an empty object.
    objects = git.own / "objects"
    objects.mkdir()
    try:
        await git.run(["read-tree", base])
        names = await git.run(["ls-files", "--others", "--exclude-standard", "-z"], MAX_NAMES_BYTES)
        added = _add_new(names, git.own / "names")
        await git.run(added, variables={"GIT_OBJECT_DIRECTORY": str(objects)})
        shown = await git.run([*_DIFF, base, "--"], MAX_DIFF_BYTES)
        loose = await _uncommitted(git, checkout)
    except Unavailable as error:
        raise Unavailable(f"{error}; the commit may have been removed from the checkout") from error
    new_files = map(_shown, names.names)
    return AgentDiff(
        handle=handle,
        base=base,
        directory=_shown(str(checkout.top)),
        diff=shown.data.decode("utf-8", "replace"),
        new_files=sorted(new_files),
        uncommitted=sorted({_shown(each) for found in loose for each in found.names}),
        truncated=not all(each.is_whole for each in (shown, names, *loose)),
    )


async def _uncommitted(git: IsolatedGit, checkout: Checkout) -> list[GitOutput]:
    """Return the names of the files that differ from the current commit, and of those not in it."""
    head = commit_of(checkout)
    if head is None:
        return []
    index = git.own / "current"
    await git.run(["read-tree", head], index=index)
    changed = [*_DIFF, "--name-only", "-z", head, "--"]
    unknown = ["ls-files", "--others", "--exclude-standard", "-z"]
    return [await git.run(each, MAX_NAMES_BYTES, index=index) for each in (changed, unknown)]


def _shown(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _add_new(names: GitOutput, list_file: Path) -> list[str]:
    """Return the command that adds new files to the index, by names in ``list_file``.

    By name: git would run the monitor of a repository that it enters.
    """
    files = [each for each in names.data.split(b"\0")[:-1] if not each.endswith(b"/")]
    list_file.write_bytes(b"\0".join(files))
    listed = [f"--pathspec-from-file={list_file}", "--pathspec-file-nul"] if files else []
    return ["add", "--intent-to-add", *listed]


_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
# The configuration of a submodule is its own: git would run its monitor there.
