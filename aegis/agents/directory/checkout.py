"""The commit of a git checkout, read from its files: no program is run, so none of the checkout.

The functions block and are for a thread. They return None for files that git would not write.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import attrs

from aegis.path_text import is_utf8

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(r"ref: (refs/[^\x00-\x20~^:?*\[\\]+)")

BRANCHES = "refs/heads/"

MAX_FILE_BYTES = 4 * 1024 * 1024
"""The largest file of git that is read: packed refs can be long."""


@attrs.frozen(kw_only=True)
class Checkout:
    """A git checkout: its ``top`` directory, its git directory, and that of its objects."""

    top: Path
    git: Path
    common: Path

    @property
    def objects(self) -> Path:
        """The directory of its objects."""
        return self.common / "objects"


def find_checkout(directory: Path) -> Checkout | None:
    """Return the checkout that ``directory`` is in."""
    for top in (directory, *directory.parents):
        git = _git_directory(top)
        if git is not None:
            named = git_text(git / "commondir")
            common = git / named.strip() if named else git
            return Checkout(top=top, git=git, common=Path(os.path.normpath(common)))
    return None


def commit_of(checkout: Checkout) -> str | None:
    """Return the id of the commit that is checked out; None without one."""
    head = git_text(checkout.git / "HEAD") or ""
    ref = _REF.fullmatch(head.strip())
    if ref is None:
        return _commit(head)
    if ".." in ref[1]:
        return None
    for git in (checkout.git, checkout.common):
        found = _commit(git_text(git / ref[1]) or "")
        if found is not None:
            return found
    return _packed(git_text(checkout.common / "packed-refs") or "", ref[1])


def branch_of(checkout: Checkout) -> str | None:
    """Return the name of the branch that is checked out; None without one that is UTF-8."""
    ref = _REF.fullmatch((git_text(checkout.git / "HEAD") or "").strip())
    if ref is None or not ref[1].startswith(BRANCHES) or not is_utf8(ref[1]):
        return None
    return ref[1].removeprefix(BRANCHES)


def head_of(directory: str) -> str | None:
    """Return the commit of the checkout that a directory is in; None if it is in none."""
    checkout = find_checkout(Path(directory))
    return None if checkout is None else commit_of(checkout)


def _git_directory(top: Path) -> Path | None:
    git = top / ".git"
    if git.is_dir():
        return git
    named = re.fullmatch(r"gitdir: ([^\n]+)\n?", git_text(git) or "")
    return None if named is None else Path(os.path.normpath(top / named[1]))


def git_text(file: Path) -> str | None:
    """Return the text of a regular file; None if there is none, or a larger one."""
    try:
        with open(file, "rb", opener=_open_regular) as opened:
            data = opened.read(MAX_FILE_BYTES + 1) or b""
    except (OSError, ValueError):
        return None
    return data.decode("utf-8", "surrogateescape") if len(data) <= MAX_FILE_BYTES else None


def _open_regular(name: str, flags: int) -> int:
    # A FIFO that a checkout has brought must not block.
    return os.open(name, flags | os.O_NONBLOCK)


def _commit(text: str) -> str | None:
    found = _COMMIT.fullmatch(text.strip())
    return None if found is None else found[0]


def _packed(text: str, ref: str) -> str | None:
    for line in text.splitlines():
        commit, _, name = line.partition(" ")
        if name == ref:
            return _commit(commit)
    return None
