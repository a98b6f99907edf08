"""The files of a worktree: made from a commit, examined for what would be lost, and deleted."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from aegis.agents.directory.checkout import Checkout, branch_of, commit_of, find_checkout
from aegis.agents.directory.git import GitOutput, IsolatedGit, is_own_git, isolated_git, run_in
from aegis.agents.directory.worktree_rules import (
    Holdings,
    Worktree,
    ignored_losses,
    is_made_again,
    list_names,
    refuse_branch,
)
from aegis.errors import AegisError, InvalidRequest, Unavailable
from aegis.limits import in_thread
from aegis.path_text import path_of_text, text_of_path

VERB = "worktree"

INCLUDE = ".worktreeinclude"

MAX_INCLUDED = 1_000
MAX_INCLUDED_BYTES = 256 * 1024 * 1024
"""The limits of the files that are copied into a worktree."""

MAX_INCLUDE_BYTES = 64 * 1024
MAX_NAMES_BYTES = 4 * 1024 * 1024

READ_BY_GIT = frozenset({".gitignore", ".gitattributes", ".gitmodules"})

THEIR_INDEX = "their-index"
"""The name of the copy of the index of a checkout, in an isolated git's own directory."""

UNFINISHED = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "sequencer": "a cherry-pick or revert",
    "BISECT_LOG": "a bisection",
}


@attrs.frozen
class WorktreeSource:
    """Where a worktree is made from: a checkout, its commit, and the branch that is checked out.

    ``subdirectory`` is the place in the checkout where the session would work.
    """

    checkout: Checkout
    commit: str
    target: str
    subdirectory: str


def source_of(cwd: str) -> WorktreeSource:
    """Return the source of a worktree for a session in ``cwd``, text. Blocking.

    Raises ``InvalidRequest``.
    """
    directory = Path(os.path.realpath(path_of_text(cwd)))
    checkout = find_checkout(directory)
    commit = None if checkout is None else commit_of(checkout)
    if checkout is None or commit is None:
        raise InvalidRequest(
            f"{VERB}: {cwd!r} is in no git checkout with a commit; make one, or launch the agent "
            "without a worktree"
        )
    below = os.path.relpath(directory, checkout.top)
    return WorktreeSource(
        checkout,
        commit,
        branch_of(checkout) or "",
        text_of_path(below) if below != "." else "",
    )


def checkout_at(top: Path) -> Checkout:
    """Return the checkout whose top directory this is. Blocking. Raises ``Unavailable``."""
    found = find_checkout(top)
    if found is None or found.top != top:
        raise Unavailable(f"{VERB}: {text_of_path(top)} is no git checkout any more")
    return found


def repair(checkout: Checkout, path: Path) -> None:
    """Have a worktree and its repository know the place of each other. Blocking.

    Both write the other's path, so a root that was moved or copied has the old ones. Only these two
    files: ``git worktree repair`` would touch other worktrees. Raises ``OSError``.
    """
    own = checkout.common / "worktrees" / path.name
    if not path.is_dir() or not (own / "HEAD").is_file():
        return
    for file, text in ((path / ".git", f"gitdir: {own}"), (own / "gitdir", f"{path}/.git")):
        data = os.fsencode(f"{text}\n")
        if not file.is_symlink() and file.is_file() and file.read_bytes() != data:
            new = file.with_name(f"{file.name}.aegis-new")
            new.write_bytes(data)
            new.replace(file)


# Making.


async def has_branch(checkout: Checkout, branch: str) -> str | None:
    """Return the commit of a branch; None if there is none. Raises ``Unavailable``."""
    words = [
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        f"refs/heads/{branch}^{{commit}}",
    ]
    found = await run_in(VERB, checkout, words, check=False)
    return found.text if found.status == 0 and found.text else None


async def add(checkout: Checkout, path: Path, row: Worktree) -> None:
    """Have git register a worktree, without its files, where it ended or is to begin.

    If the branch on which it ended is gone, or checked out in another directory, it has the commit
    alone. It is locked: ``git worktree prune`` leaves it alone. Raises ``Unavailable``.
    """
    words = ["worktree", "add", "--quiet", "--no-checkout", "--lock"]
    words += ["--reason", f"of the session {row.id} of aegis-actors"]
    begin = row.tip or row.base
    if row.ended_on is None:
        is_there = await has_branch(checkout, row.branch) is not None
        branch = [str(path), row.branch] if is_there else ["-b", row.branch, str(path), begin]
        await run_in(VERB, checkout, [*words, *branch])
        return
    if refuse_branch(row.ended_on) is None and await has_branch(checkout, row.ended_on):
        done = await run_in(VERB, checkout, [*words, str(path), row.ended_on], check=False)
        if done.status == 0:
            return
    await run_in(VERB, checkout, [*words, "--detach", str(path), begin])


async def check_out(checkout: Checkout, path: Path, commit: str) -> None:
    """Write the files of a commit into a new worktree, without filters. Raises ``Unavailable``."""
    index = checkout.common / "worktrees" / path.name / "index"
    with isolated_git(VERB, checkout, commit, path) as git:
        await git.run(["read-tree", "--reset", "-u", commit], index=index, is_long=True)


async def copy_included(checkout: Checkout, path: Path, commit: str) -> dict[str, str]:
    """Copy the ignored files that ``.worktreeinclude`` names; return digests of them.

    Raises ``AegisError``, ``OSError``.
    """
    patterns = await in_thread(_include_of, checkout.top)
    if patterns is None:
        return {}
    with isolated_git(VERB, checkout, commit) as git:
        (git.own / "patterns").write_bytes(patterns)
        with contextlib.suppress(OSError):
            shutil.copyfile(checkout.common / "info" / "exclude", git.own / "info" / "exclude")
        await git.run(["read-tree", commit])
        listing = ["ls-files", "--others", "--ignored", "-z"]
        wanted = await git.run(
            [*listing, f"--exclude-from={git.own / 'patterns'}"], MAX_NAMES_BYTES
        )
        ignored = await git.run([*listing, "--exclude-standard"], MAX_NAMES_BYTES)
    if not (wanted.is_whole and ignored.is_whole):
        raise InvalidRequest(f"{VERB}: there are too many ignored files to find those of {INCLUDE}")
    both = {*ignored.names}
    names = [each for each in wanted.names if each in both and not _is_ours(each)]
    return await in_thread(_copy, checkout.top, path, names)


def _is_ours(name: str) -> bool:
    # The state of the daemon has keys; a repository inside is not a file.
    return name.endswith("/") or not {".aegis", ".git"}.isdisjoint(name.split("/"))


def _include_of(top: Path) -> bytes | None:
    try:
        fd = os.open(top / INCLUDE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as file:
        data = file.read(MAX_INCLUDE_BYTES + 1) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    if len(data) > MAX_INCLUDE_BYTES:
        raise InvalidRequest(f"{VERB}: {INCLUDE} is longer than {MAX_INCLUDE_BYTES} bytes")
    return data or b""


def _copy(top: Path, path: Path, names: Sequence[str]) -> dict[str, str]:
    if len(names) > MAX_INCLUDED:
        raise InvalidRequest(
            f"{VERB}: {INCLUDE} names {len(names)} files, of which at most {MAX_INCLUDED} are "
            "copied; name fewer"
        )
    left, real = MAX_INCLUDED_BYTES, Path(os.path.realpath(path))
    digests: dict[str, str] = {}
    for name in names:
        source, copy = top / name, path / name
        if not source.parent.resolve().is_relative_to(top.resolve()):
            continue  # a link leads out of the checkout
        # The commit may have a link there: a copy through it would be written outside.
        above = next(each for each in copy.parents if os.path.lexists(each))
        is_inside = above.is_dir() and above.resolve().is_relative_to(real)
        if os.path.lexists(copy) or not is_inside:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        status = source.lstat()
        if stat.S_ISREG(status.st_mode):
            left -= status.st_size
            if left < 0:
                raise InvalidRequest(
                    f"{VERB}: the files of {INCLUDE} have more than {MAX_INCLUDED_BYTES} bytes"
                )
            shutil.copy2(source, copy, follow_symlinks=False)
        elif stat.S_ISLNK(status.st_mode):
            copy.symlink_to(source.readlink())
        digest = digest_of(copy)
        if digest is not None:
            digests[text_of_path(name)] = digest
    return digests


def digest_of(file: Path) -> str | None:
    """Return a digest of a file or a link; None if there is neither. Blocking."""
    try:
        if file.is_symlink():
            return f"-> {text_of_path(file.readlink())}"
        with open(file, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as f:
            return hashlib.file_digest(f, "sha256").hexdigest()
    except OSError:
        return None


def exclude_state(checkout: Checkout, root: Path) -> None:
    """Have git ignore ``.aegis/`` if the root is in the checkout. Blocking. Raises ``OSError``."""
    if not root.is_relative_to(checkout.top):
        return
    file = checkout.common / "info" / "exclude"
    file.parent.mkdir(exist_ok=True)
    with file.open("ab+") as opened:
        opened.seek(0)
        text = opened.read()
        if b".aegis/" not in text.splitlines():
            opened.write((b"\n" if text and not text.endswith(b"\n") else b"") + b".aegis/\n")


# Examining.


async def examine(
    checkout: Checkout, path: Path, row: Worktree, registered: Path, made_again: frozenset[str]
) -> Holdings:
    """Return what would be lost with the worktree at ``path``; ``registered`` is its usual place.

    ``made_again`` are the names of directories whose ignored files do not count. What cannot be
    found out is part of the reply.
    """
    try:
        return await _examined(checkout, path, row, registered, made_again)
    except (AegisError, OSError) as error:
        return Holdings(unknown=f"it could not be examined: {error}")


async def _examined(
    checkout: Checkout, path: Path, row: Worktree, registered: Path, made_again: frozenset[str]
) -> Holdings:
    users = await in_thread(_users_of, path)
    own = worktree_checkout(checkout, path, registered.name)
    head = await in_thread(commit_of, own)
    if head is None:
        return Holdings(users=users, unknown="its commit could not be read")
    with isolated_git(VERB, checkout, head, path) as git:
        changed, untracked, found = await uncommitted(git, head, own.git / "index")
        listing = ["ls-files", "--others", "-z", "--exclude-standard", "--ignored", "--directory"]
        ignored = await git.run(listing, MAX_NAMES_BYTES)
        entries = await git.run(["ls-files", "--stage", "-z"], MAX_NAMES_BYTES * 8)
    if not (changed.is_whole and untracked.is_whole and ignored.is_whole and entries.is_whole):
        return Holdings(users=users, unknown="it has too many files to be examined")
    modules = [each.partition("\t")[2] for each in entries.names if each.startswith("160000 ")]
    files = await in_thread(_ignored_files, path, ignored.names, made_again)
    repositories = [*found.repositories, *await in_thread(_modules, own, modules)]
    repositories += [each for each in untracked.names if each.endswith("/")]
    digests = await in_thread(_digests, path, row.included)
    commits = await _unreachable(checkout, row, head)
    return Holdings(
        changed=[text_of_path(each) for each in changed.names],
        untracked=[text_of_path(each) for each in untracked.names if not each.endswith("/")],
        ignored=ignored_losses([*map(text_of_path, files)], row.included, digests, made_again),
        repositories=sorted({text_of_path(each.rstrip("/")) for each in repositories}),
        commits=commits,
        operation=await in_thread(_unfinished, own.git),
        users=users,
        closed=[*map(text_of_path, found.closed)],
    )


def worktree_checkout(checkout: Checkout, path: Path, name: str) -> Checkout:
    """Return the checkout of the worktree at ``path`` that git knows by ``name``."""
    return Checkout(top=path, git=checkout.common / "worktrees" / name, common=checkout.common)


@attrs.frozen
class FoundNames:
    """Names of files, unless they are too many."""

    names: list[str]
    is_whole: bool


async def uncommitted(
    git: IsolatedGit, head: str, real_index: Path
) -> tuple[FoundNames, GitOutput, FoundBelow]:
    """Return the files of a worktree that differ from ``head``, those that git does not know, and
    what it does not list.

    The index of ``git`` has the files of ``head`` then. Raises ``Unavailable``.
    """
    found = await in_thread(_look_into, git.work_tree)
    if found.pipes:
        names = list_names([*map(text_of_path, found.pipes)], "FIFO")
        raise Unavailable(f"git would wait for ever for {names}; delete it")
    await git.run(["read-tree", head])
    changed = await changed_files(git, head, real_index)
    listing = ["ls-files", "--others", "-z", "--exclude-standard"]
    return changed, await git.run(listing, MAX_NAMES_BYTES), found


async def changed_files(git: IsolatedGit, head: str, real_index: Path) -> FoundNames:
    """Return the tracked files that differ from ``head``, in the directory or in the index.

    The index of the worktree could hide a change of the directory, and may have one that is not in
    the directory any more.
    """
    refresh = ["update-index", "-q", "--refresh"]  # which reads all files
    await git.run(refresh, MAX_NAMES_BYTES, check=False, is_long=True)
    words = ["diff-files", "--name-only", "-z", "--ignore-submodules=all"]
    found = await git.run(words, MAX_NAMES_BYTES, is_long=True)
    copy = git.own / THEIR_INDEX
    await in_thread(git.copy_index, real_index, copy)
    cached = ["diff-index", "--cached", "--name-only", "-z", "--no-ext-diff", head, "--"]
    staged = await git.run(cached, MAX_NAMES_BYTES, index=copy)
    names = [*dict.fromkeys((*found.names, *staged.names))]
    return FoundNames(names, found.is_whole and staged.is_whole)


@attrs.frozen
class FoundBelow:
    """The ``repositories`` in a directory, its ``closed`` directories, and ``pipes``.

    Only another user may list or empty a closed directory. Pipes have the names of files that git
    reads.
    """

    repositories: list[str] = attrs.field(factory=list)
    closed: list[str] = attrs.field(factory=list)
    pipes: list[str] = attrs.field(factory=list)


def _look_into(path: Path) -> FoundBelow:
    """Look into each directory of a worktree. Blocking.

    git itself does not list a repository in a directory that has tracked files, only warns of a
    directory that it cannot read, and waits for the writer of a FIFO.
    """
    found = FoundBelow()

    def note_closed(error: OSError) -> None:
        found.closed.append(os.path.relpath(error.filename, path))

    for below, directories, names in os.walk(path, onerror=note_closed):
        here = os.path.relpath(below, path)
        is_top = here == "."
        if ".git" in (directories if is_top else (*directories, *names)):
            found.repositories.append(here)
        if not is_top and (directories or names) and _is_of_another(below):
            found.closed.append(here)
        for each in READ_BY_GIT.intersection(names):
            if Path(below, each).is_fifo():
                found.pipes.append(os.path.normpath(f"{here}/{each}"))
        directories[:] = [each for each in directories if each != ".git"]
    return found


def _ignored_files(path: Path, ignored: Sequence[str], made_again: frozenset[str]) -> list[str]:
    """Return the ignored files, also those in ignored directories. Blocking."""
    files = [each for each in ignored if not each.endswith("/")]
    for name in ignored:
        if name.endswith("/"):
            for below, directories, names in os.walk(path / name):
                here = os.path.relpath(below, path)
                directories[:] = [each for each in directories if each != ".git"]
                links = [each for each in directories if Path(below, each).is_symlink()]
                found = [f"{here}/{each}" for each in (*names, *links)]
                files += [each for each in found if not is_made_again(each, made_again)]
    return files


def _is_of_another(directory: str) -> bool:
    """Return whether this user may neither empty a directory nor change its mode."""
    is_own = os.lstat(directory).st_uid == os.geteuid()
    return not is_own and not os.access(directory, os.W_OK | os.X_OK, effective_ids=True)


def _modules(own: Checkout, names: Sequence[str]) -> list[str]:
    """Return the submodules with files, or whose repository git keeps beside the worktree's."""
    found = [each for each in names if _has_entries(own.top / each)]
    return found or ([".git/modules"] if _has_entries(own.git / "modules") else [])


def _has_entries(directory: Path) -> bool:
    try:
        return any(directory.iterdir())
    except FileNotFoundError:
        return False


def _digests(path: Path, included: Mapping[str, str]) -> dict[str, str | None]:
    return {each: digest_of(path / path_of_text(each)) for each in included}


def operation_in(git_directory: Path) -> str:
    """Return what git is in the middle of in a checkout; empty: nothing. Blocking."""
    found = (what for name, what in UNFINISHED.items() if os.path.lexists(git_directory / name))
    return next(found, "")


def _unfinished(git_directory: Path) -> str:
    """Return what is not complete in a worktree, whose own references are lost with it."""
    has_refs = any(each.is_file() for each in (git_directory / "refs").rglob("*"))
    return operation_in(git_directory) or ("work with references of its own" if has_refs else "")


def _users_of(path: Path) -> list[int]:
    """Return the processes whose working directory is in ``path``."""
    real = path.resolve()
    users: list[int] = []
    for each in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            is_here = each.name.isdecimal() and (each / "cwd").readlink().is_relative_to(real)
            if is_here and not is_own_git(each):
                users.append(int(each.name))
    return users


async def _unreachable(checkout: Checkout, row: Worktree, head: str) -> list[str]:
    """Return the ends of its commits that only its own branch reaches."""
    tip = await has_branch(checkout, row.branch)
    ends = [head] if tip in (None, head) else [head, tip]
    return [each for each in ends if each and not await is_elsewhere(checkout, each, row.branch)]


async def is_elsewhere(checkout: Checkout, commit: str, branch: str) -> bool:
    """Return whether a reference other than ``branch`` reaches a commit. Raises ``Unavailable``."""
    words = ["for-each-ref", "--format=%(refname)", "--contains", commit]
    places = ["refs/heads", "refs/remotes", "refs/tags"]
    found = await run_in(VERB, checkout, [*words, *places], MAX_NAMES_BYTES, is_long=True)
    return any(each != f"refs/heads/{branch}" for each in found.text.splitlines())


# Removing.


async def delete(checkout: Checkout, path: Path, registered: Path) -> None:
    """Delete the directory at ``path``, and what git knows of the worktree. Raises ``OSError``.

    Only what git keeps of this worktree: ``git worktree prune`` would touch others.
    """
    await in_thread(_delete_directory, path)
    await in_thread(_delete_directory, checkout.common / "worktrees" / registered.name)


def _delete_directory(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        try:
            shutil.rmtree(path)
        except PermissionError:  # the module cache of Go, for one, has read-only directories
            for below, directories, _ in os.walk(path):
                for each in directories:
                    found = Path(below) / each
                    if not found.is_symlink():
                        found.chmod(0o700)
            shutil.rmtree(path)


async def save_commit(checkout: Checkout, commit: str, name: str) -> None:
    """Make a branch for a commit that no reference reaches. Raises ``Unavailable``."""
    if await is_elsewhere(checkout, commit, ""):
        return
    branch = f"aegis-kept/{name}"
    if await has_branch(checkout, branch) is not None:  # of an earlier removal
        branch += f"-{commit[:12]}"
    none = "0" * len(commit)
    await run_in(VERB, checkout, ["update-ref", f"refs/heads/{branch}", commit, none])


async def delete_branch(checkout: Checkout, branch: str, commit: str) -> None:
    """Delete a branch if it is at this commit. Raises ``Unavailable``."""
    await run_in(VERB, checkout, ["update-ref", "-d", f"refs/heads/{branch}", commit])
