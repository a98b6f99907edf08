"""The merge of a worktree's branch into the branch that it began from.

The new commit exists before the intent is durable. Then the index of the directory that has the
branch checked out is locked, as git locks it; the branch is moved if it is still at the commit that
was looked at; files are replaced one by one, each at once; and the index is replaced. A kill at any
point leaves the lock, so nobody can commit what is half there, and the next start completes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import filecmp
import os
import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import structlog
import trio

from aegis.agents import faults
from aegis.agents.directory.checkout import Checkout, branch_of, commit_of, find_checkout, git_text
from aegis.agents.directory.git import (
    LIMIT_S,
    IsolatedGit,
    git_program,
    isolated_git,
    run_git,
    run_in,
)
from aegis.agents.directory.worktree_files import (
    MAX_NAMES_BYTES,
    THEIR_INDEX,
    changed_files,
    has_branch,
    operation_in,
    uncommitted,
    worktree_checkout,
)
from aegis.agents.directory.worktree_rules import (
    BranchMerge,
    MergeKind,
    Worktree,
    list_names,
)
from aegis.errors import InvalidRequest, Unavailable
from aegis.limits import in_thread
from aegis.path_text import path_of_text, text_of_path

log = structlog.get_logger("aegis.agents")

VERB = "agent merge"

LOCK_S = 30.0
"""Seconds in which a git of a killed daemon, which still holds the lock, has to end."""

STAGE = "aegis-merge-"
"""The beginning of the names of the directories in which new files are made, beside the index."""

MAX_LEFT = 20

MAX_CHANGED_BYTES = 16 * 1024 * 1024
"""The limit of the list of changed files."""

SUBMODULE = "160000"


@attrs.frozen
class ChangedFile:
    """A file that differs between two commits; ``new`` is its mode there, "" if it is deleted."""

    path: str
    old: str
    new: str


@attrs.frozen
class PlannedMerge:
    """A merge whose commit exists; nothing else is changed. ``place`` has the branch checked out.

    ``changed`` are the files that the branch gets, ``merge`` is None if it has all commits already.
    """

    merge: BranchMerge | None
    kind: MergeKind
    tip: str
    place: Checkout | None = None
    changed: Sequence[ChangedFile] = ()


async def count_unmerged(checkout: Checkout, row: Worktree) -> int | None:
    """Return the number of commits of a worktree that its target does not have.

    None if one of the two branches does not exist. Raises ``Unavailable``.
    """
    if not row.target:
        return None
    words = ["rev-list", "--count", f"refs/heads/{row.branch}", f"^refs/heads/{row.target}", "--"]
    found = await run_in(VERB, checkout, words, check=False)
    return int(found.text) if found.status == 0 and found.text.isdecimal() else None


# Planning.


async def plan(checkout: Checkout, row: Worktree, path: Path) -> PlannedMerge:
    """Return how the branch of a worktree at ``path`` is merged, and make the commit.

    Raises ``InvalidRequest`` with the reason if it cannot be merged, ``Unavailable``.
    """
    if not row.target:
        raise InvalidRequest(
            f"{VERB}: the worktree began where no branch was checked out; merge it yourself: "
            f"git merge {row.branch}"
        )
    old, tip = await has_branch(checkout, row.target), await has_branch(checkout, row.branch)
    for name, commit in ((row.target, old), (row.branch, tip)):
        if commit is None:
            raise InvalidRequest(f"{VERB}: there is no branch {name!r} any more")
    assert old is not None
    assert tip is not None
    await _check_worktree(checkout, row, path, tip)
    if await _is_ancestor(checkout, tip, old):
        return PlannedMerge(None, "none", tip)
    place = await in_thread(_place_of, checkout, row.target)
    by_hand = f"merge it yourself: git merge {row.branch}"
    with isolated_git(VERB, checkout, tip, None if place is None else place.top) as git:
        is_forward = await _is_ancestor(checkout, old, tip)
        new = tip if is_forward else await _merge_commit(git, row, old, tip, by_hand)
        changed = await _changed_between(git, old, new)
        modules = [each.path for each in changed if SUBMODULE in (each.old, each.new)]
        if modules:
            raise InvalidRequest(
                f"{VERB}: it changes {list_names(modules, 'submodule')}; {by_hand}"
            )
        if place is not None:
            await _check_place(git, place, row, old, new, changed)
    merge = BranchMerge(old=old, new=new, place="" if place is None else text_of_path(place.top))
    return PlannedMerge(merge, "fast-forward" if is_forward else "commit", tip, place, changed)


async def _check_worktree(checkout: Checkout, row: Worktree, path: Path, tip: str) -> None:
    own = worktree_checkout(checkout, path, row.id)
    head = await in_thread(commit_of, own)
    if head is None:
        raise InvalidRequest(f"{VERB}: the worktree {text_of_path(path)} could not be read")
    if head != tip:
        raise InvalidRequest(
            f"{VERB}: the worktree is at the commit {head[:12]}, which is not that of its branch "
            f"{row.branch!r} ({tip[:12]}); have the agent move the branch, or merge it yourself"
        )
    operation = await in_thread(operation_in, own.git)
    if operation:
        raise InvalidRequest(
            f"{VERB}: the worktree has {operation} that is not complete; have the agent end it"
        )
    with isolated_git(VERB, checkout, head, path) as git:
        changed, untracked, _ = await uncommitted(git, head, own.git / "index")
    names = [*map(text_of_path, (*changed.names, *untracked.names))]
    if names:
        # Your own ignore files belong to the configuration, of which nothing is read.
        also = ", or ignore it in .gitignore: only that is read" if untracked.names else ""
        raise InvalidRequest(
            f"{VERB}: the worktree has work that is not committed: {list_names(names, 'file')}; "
            f"have the agent commit it{also}"
        )


async def _is_ancestor(checkout: Checkout, first: str, second: str) -> bool:
    words = ["merge-base", "--is-ancestor", first, second]
    done = await run_in(VERB, checkout, words, check=False)
    if done.status not in (0, 1):
        raise Unavailable(f"{VERB}: git could not compare {first[:12]} and {second[:12]}")
    return done.status == 0


async def _merge_commit(git: IsolatedGit, row: Worktree, old: str, tip: str, by_hand: str) -> str:
    """Make the commit of a merge without a conflict; nothing refers to it yet."""
    shallow = git.checkout.common / "shallow"
    variables = {"GIT_SHALLOW_FILE": str(shallow)} if shallow.exists() else {}
    # Attributes of both sides hold: a merge by the program of a driver is not ours to replace.
    base = await git.run(["merge-base", old, tip], variables=variables, check=False)
    if base.status or not base.text:
        raise InvalidRequest(
            f"{VERB}: {row.branch!r} and {row.target!r} have no common commit; {by_hand}"
        )
    sides = [await _changed_between(git, base.text, each) for each in (old, tip)]
    both = sorted({each.path for each in sides[0]} & {each.path for each in sides[1]})
    for commit in (old, tip):
        drivers = await _attributes(git, commit, "merge", both)
        names = [
            name
            for name, driver in drivers.items()
            if driver not in ("set", "unset", "text", "binary", "union")
        ]
        if names:
            raise InvalidRequest(
                f"{VERB}: {list_names(names, 'file')} needs a merge program of your configuration, "
                f"which is not run; {by_hand}"
            )
    words = ["merge-tree", "--write-tree", "--name-only", "-z", old, tip]
    found = await git.run(words, MAX_NAMES_BYTES, check=False, variables=variables, is_long=True)
    tree, *rest = found.data.split(b"\0")
    if found.status == 1:
        names = [text_of_path(os.fsdecode(each)) for each in _until_empty(rest)]
        raise InvalidRequest(
            f"{VERB}: {row.branch!r} and {row.target!r} conflict in {list_names(names, 'file')}; "
            f"have the agent merge {row.target} into its branch, or {by_hand}"
        )
    if found.status:
        raise Unavailable(f"{VERB}: git could not merge the files (git 2.38 can); {by_hand}")
    message = f"Merge branch '{row.branch}' into {row.target}"
    person = await _identity(git.checkout)
    words = ["commit-tree", tree.decode(), "-p", old, "-p", tip, "-m", message]
    return (await git.run(words, variables={**variables, **person})).text


def _until_empty(parts: Sequence[bytes]) -> Iterator[bytes]:
    for each in parts:
        if not each:
            return
        yield each


async def _identity(checkout: Checkout) -> dict[str, str]:
    """Return the person's name and address, as git reads them from its configuration."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_DIR": str(checkout.common),
        **{name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in os.environ},
    }
    found: dict[str, str] = {}
    for who in ("AUTHOR", "COMMITTER"):
        variable = f"GIT_{who}_IDENT"
        command = [git_program(VERB), "-c", "user.useConfigOnly=true", "var", variable]
        place = str(checkout.common)
        done = await run_git(
            VERB, "var", command, place, environment, limit=4096, check=False, limit_s=LIMIT_S
        )
        parsed = re.fullmatch(r"([^<>\n]+) <([^<>\n]*)> \d+ [+-]\d{4}", done.text)
        if done.status or parsed is None:
            raise InvalidRequest(
                f"{VERB}: the merge is a commit, and git has no name for it: git config --global "
                "user.name NAME, and user.email ADDRESS"
            )
        found |= {f"GIT_{who}_NAME": parsed[1], f"GIT_{who}_EMAIL": parsed[2]}
    return found


async def _changed_between(git: IsolatedGit, old: str, new: str) -> list[ChangedFile]:
    words = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", old, new, "--"]
    found = await git.run(words, MAX_CHANGED_BYTES)
    if not found.is_whole:
        raise InvalidRequest(f"{VERB}: too many files change; merge it yourself")
    pairs = iter(found.names)
    changed = []
    for entry, path in zip(pairs, pairs, strict=True):
        before, after = (each.lstrip(":") for each in entry.split(" ")[:2])
        new_mode = "" if after == "000000" else after
        changed.append(ChangedFile(path, "" if before == "000000" else before, new_mode))
    return changed


async def _attributes(
    git: IsolatedGit, commit: str, name: str, paths: Sequence[str]
) -> dict[str, str]:
    """Return an attribute of files, where it is specified in a commit or beside it."""
    if not paths:
        return {}
    own = git.own / "info" / "attributes"
    with contextlib.suppress(OSError):
        shutil.copyfile(git.checkout.common / "info" / "attributes", own)
    index = git.own / "attributes-index"
    await git.run(["read-tree", commit], index=index)
    found: dict[str, str] = {}
    for at in range(0, len(paths), 500):  # as arguments, of which there may not be too many
        words = ["check-attr", "--cached", "-z", name, "--", *paths[at : at + 500]]
        parts = iter((await git.run(words, MAX_CHANGED_BYTES, index=index)).names)
        triples = zip(parts, parts, parts, strict=True)
        found |= {path: value for path, _, value in triples if value != "unspecified"}
    return found


# The directory in which the branch is checked out.


def _place_of(checkout: Checkout, branch: str) -> Checkout | None:
    """Return the checkout that has a branch checked out, if one has. Raises ``InvalidRequest``."""
    ref, found = f"refs/heads/{branch}", []
    for each in _all_checkouts(checkout):
        if not (each.git / "index").exists():
            continue  # a bare repository, which has no files
        if branch_of(each) == branch:
            found.append(each)
        operation = operation_in(each.git)
        heads = {
            (git_text(each.git / name) or "").strip()
            for name in ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
        }
        if operation and (found[-1:] == [each] or not heads.isdisjoint({ref, branch})):
            raise InvalidRequest(
                f"{VERB}: {operation} of {branch!r} is not complete in {text_of_path(each.top)}; "
                "end it first"
            )
    if len(found) > 1:
        places = ", ".join(text_of_path(each.top) for each in found)
        raise InvalidRequest(f"{VERB}: {branch!r} is checked out more than once: {places}")
    if found and not found[0].top.is_dir():
        return None  # its directory was deleted
    return found[0] if found else None


def _all_checkouts(checkout: Checkout) -> Iterator[Checkout]:
    common = checkout.common
    top = checkout.top if checkout.git == common else common.parent
    main = find_checkout(top)
    if main is not None and main.git == common:
        yield main
    elif checkout.git == common:
        yield checkout
    for each in sorted((common / "worktrees").glob("*/gitdir")):
        yield Checkout(
            top=Path((git_text(each) or "").strip()).parent, git=each.parent, common=common
        )


async def _check_place(
    git: IsolatedGit,
    place: Checkout,
    row: Worktree,
    old: str,
    new: str,
    changed: Sequence[ChangedFile],
) -> None:
    """Raise ``InvalidRequest`` if a checkout has changes, or needs programs to be changed."""
    by_hand = f"git -C {shlex.quote(text_of_path(place.top))} merge {row.branch}"
    paths = [each.path for each in changed]
    for commit in (old, new):
        filtered = await _attributes(git, commit, "filter", paths)
        if filtered:
            raise InvalidRequest(
                f"{VERB}: {list_names([*filtered], 'file')} is written by a filter of your "
                f"configuration (such as Git LFS), which is not run; merge it yourself: {by_hand}"
            )
    await _check_clean(git, place, row.target, old, by_hand)
    obstacles = await in_thread(_obstacles, place, changed)
    if obstacles:
        raise InvalidRequest(
            f"{VERB}: in {text_of_path(place.top)} there are files that git does not know, where "
            f"the merge writes: {list_names(obstacles, 'file')}; move them away"
        )


async def _check_clean(
    git: IsolatedGit, place: Checkout, target: str, old: str, by_hand: str
) -> None:
    await git.run(["read-tree", old])
    found = await changed_files(git, old, place.git / "index")
    names = found.names
    # What a filter writes cannot be compared without it. The merge does not touch it.
    filtered = await _attributes(git, old, "filter", names)
    names = [each for each in names if each not in filtered]
    left_out = {*names} & await _left_out(git)
    if left_out:
        files = list_names(sorted(map(text_of_path, left_out)), "file")
        raise InvalidRequest(
            f"{VERB}: {target!r} is checked out in {text_of_path(place.top)} without {files} (git "
            f"sparse-checkout); merge it yourself: {by_hand}"
        )
    if names or not found.is_whole:
        raise InvalidRequest(
            f"{VERB}: {target!r} is checked out in {text_of_path(place.top)}, with changes that "
            f"are not committed: {list_names([*map(text_of_path, names)], 'file')}; commit or "
            "stash them first"
        )


async def _left_out(git: IsolatedGit) -> set[str]:
    """Return the files that a sparse checkout does not have, by the copy of its index."""
    words = ["ls-files", "-t", "-z"]
    listed = await git.run(words, MAX_CHANGED_BYTES, index=git.own / THEIR_INDEX)
    return {each[2:] for each in listed.names if each.startswith("S ")}


def _obstacles(place: Checkout, changed: Sequence[ChangedFile]) -> list[str]:
    """Return what is in the way of new files, ignored files too. Blocking."""
    tracked = {each.path for each in changed if each.old}
    device = place.git.stat().st_dev
    found: list[str] = []
    if place.top.stat().st_dev != device:
        raise _apart(place.top)
    for each in changed:
        path = place.top / each.path
        parents = [*path.relative_to(place.top).parents][:-1]
        for parent in reversed(parents):
            status = _lstat(place.top / parent)
            if status is not None and not stat.S_ISDIR(status.st_mode):
                if str(parent) not in tracked:
                    found.append(text_of_path(str(parent)))
                break
            if status is not None and status.st_dev != device:
                raise _apart(place.top / parent)
        if each.new and not each.old and (status := _lstat(path)) is not None:
            if not stat.S_ISDIR(status.st_mode):
                found.append(text_of_path(each.path))
            else:
                found += [text_of_path(name) for name in _files_below(place.top, path) - tracked]
    return sorted({*found})


def _apart(directory: Path) -> InvalidRequest:
    # A file cannot be moved there at once.
    return InvalidRequest(
        f"{VERB}: {text_of_path(directory)} is in another file system than the repository; merge "
        "it yourself"
    )


def _files_below(top: Path, directory: Path) -> set[str]:
    found = set()
    for below, directories, names in os.walk(directory):
        links = [each for each in directories if (Path(below) / each).is_symlink()]
        found |= {os.path.relpath(f"{below}/{each}", top) for each in (*names, *links)}
    return found


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


# Carrying out.


async def carry_out(checkout: Checkout, row: Worktree, planned: PlannedMerge) -> list[str]:
    """Move the branch and replace the files of its checkout; the intent is durable.

    Returns the files that could not be replaced. Raises ``InvalidRequest``, ``Unavailable`` or
    ``OSError``: nothing is changed, or, if the branch has moved, ``complete`` has to be called.
    """
    merge, place = planned.merge, planned.place
    assert merge is not None
    await faults.WORKTREE_MERGE_BEFORE.reach(row.id)
    if place is None:
        await _move(checkout, row, merge)
        return []
    lock = _IndexLock.take(place, row.id, merge)
    try:
        if branch_of(place) != row.target:
            raise InvalidRequest(f"{VERB}: {row.target!r} is not checked out any more; try again")
        with isolated_git(VERB, checkout, merge.old, place.top) as git:
            # Again, since files may have been changed before the lock.
            await _check_place(git, place, row, merge.old, merge.new, planned.changed)
            with _stage(git, place, row.id) as stage:
                await stage.fill(merge, planned.changed)
                await faults.WORKTREE_MOVE_BEFORE.reach(row.id)
                lock.is_left = True
                await _move(checkout, row, merge, lock)
                await faults.WORKTREE_WRITE_BEFORE.reach(row.id)
                left = await in_thread(stage.write, planned.changed)
                await faults.WORKTREE_INDEX_BEFORE.reach(row.id)
                await stage.install_index()
                lock.is_left = False
                await faults.WORKTREE_UNLOCK_BEFORE.reach(row.id)
                return left
    finally:
        lock.release()


async def _move(
    checkout: Checkout, row: Worktree, merge: BranchMerge, lock: _IndexLock | None = None
) -> None:
    """Move the branch if it is where the intent says."""
    reason = f"aegis-actors: merge {row.branch}"
    words = ["update-ref", "-m", reason, f"refs/heads/{row.target}", merge.new, merge.old]
    try:
        # git inherits the lock: a later daemon waits for one that outlives this one.
        await run_in(VERB, checkout, words, inherited=() if lock is None else (lock.file,))
    except Unavailable:
        if lock is not None and await has_branch(checkout, row.target) != merge.new:
            lock.is_left = False
        raise


class _IndexLock:
    """The lock of an index, as git has it, with an advisory lock on that file.

    ``is_left``: the file is left for a later start, since the merge is not complete.
    """

    def __init__(self, path: Path, file: int) -> None:
        self.path, self.file, self.is_left = path, file, False

    @classmethod
    def take(cls, place: Checkout, id_: str, merge: BranchMerge) -> _IndexLock:
        """Lock the index of a checkout. Raises ``InvalidRequest`` if it is locked, ``OSError``."""
        path = place.git / "index.lock"
        # Linked once its text is written: no kill leaves a lock that is not known as ours.
        file, name = tempfile.mkstemp(prefix=f"{STAGE}{id_}-", dir=place.git)
        try:
            os.write(file, _lock_text(id_, merge))
            fcntl.flock(file, fcntl.LOCK_EX)
            os.link(name, path)
        except OSError as error:
            os.close(file)
            if not isinstance(error, FileExistsError):
                raise
            raise InvalidRequest(
                f"{VERB}: {text_of_path(path)} exists: git works in this checkout, or was killed "
                "there; wait for it, or delete that file if no git runs"
            ) from None
        finally:
            Path(name).unlink()
        return cls(path, file)

    @classmethod
    async def find(cls, place: Checkout, id_: str, merge: BranchMerge) -> _IndexLock | None:
        """Return the lock that a killed daemon has left for this merge; None if there is none.

        Waits until a git of that daemon has ended. Raises ``Unavailable``, ``OSError``.
        """
        path = place.git / "index.lock"
        try:
            lock = cls(path, os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC))
        except FileNotFoundError:
            return None
        if os.read(lock.file, 1024) != _lock_text(id_, merge):
            os.close(lock.file)
            return None
        lock.is_left = True
        with trio.move_on_after(LOCK_S):
            while not lock._is_locked():  # noqa: ASYNC110 (another process has it)
                await trio.sleep(0.05)
            return lock
        os.close(lock.file)
        raise Unavailable(f"{VERB}: a git of an earlier daemon still runs")

    def _is_locked(self) -> bool:
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Unlock the index, unless the merge is not complete."""
        if not self.is_left:
            self.path.unlink(missing_ok=True)
        os.close(self.file)


def _lock_text(id_: str, merge: BranchMerge) -> bytes:
    return (
        f"aegis-actors merges the worktree {id_} ({merge.old} to {merge.new}).\n"
        "Start the daemon: it completes the merge, and removes this file.\n"
    ).encode()


@contextlib.contextmanager
def _stage(git: IsolatedGit, place: Checkout, id_: str) -> Iterator[_Stage]:
    """Provide a directory beside the index, in which the files and the index are made."""
    directory = Path(tempfile.mkdtemp(prefix=f"{STAGE}{id_}-", dir=place.git))
    try:
        yield _Stage(git, place, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@attrs.frozen
class _Stage:
    """The new files of a checkout and its new index, in ``directory``, until they are moved."""

    git: IsolatedGit
    place: Checkout
    directory: Path

    @property
    def index(self) -> Path:
        """The new index."""
        return self.directory / "index"

    async def fill(self, merge: BranchMerge, changed: Sequence[ChangedFile]) -> None:
        """Make the new files and the new index. Raises ``Unavailable``, ``OSError``."""
        await in_thread(self.git.copy_index, self.place.git / "index", self.index)
        await self.git.run(["read-tree", "-i", "-m", merge.old, merge.new], index=self.index)
        await self.check_out("new", self.index, [each.path for each in changed if each.new])

    async def check_out(self, name: str, index: Path, paths: Sequence[str]) -> None:
        """Write files of an index, below ``name``. Attributes are those of the index."""
        directory = self.directory / name
        directory.mkdir()
        git = attrs.evolve(self.git, work_tree=directory)
        for at in range(0, len(paths), 500):
            await git.run(
                ["checkout-index", "--", *paths[at : at + 500]], index=index, is_long=True
            )

    def write(self, changed: Sequence[ChangedFile]) -> list[str]:
        """Replace the files of the checkout; return those for which that failed. Blocking."""
        left = [each.path for each in changed if not each.new and not self._delete(each.path)]
        left += [each.path for each in changed if each.new and not self._replace(each.path)]
        return left

    def _delete(self, name: str) -> bool:
        path = self.place.top / name
        try:
            if self._is_inside(path):
                path.unlink(missing_ok=True)
        except NotADirectoryError:
            return True
        except OSError:
            return False
        for parent in path.relative_to(self.place.top).parents[:-1]:
            try:
                (self.place.top / parent).rmdir()
            except OSError:  # it has other files
                break
        return True

    def _replace(self, name: str) -> bool:
        path = self.place.top / name
        try:
            if not self._is_inside(path):
                return False
            path.parent.mkdir(parents=True, exist_ok=True)
            (self.directory / "new" / name).replace(path)
        except OSError:
            return False
        return True

    def _is_inside(self, path: Path) -> bool:
        """Return whether no link leads out of the checkout."""
        real = Path(os.path.realpath(self.place.top))
        below = path.parent.relative_to(self.place.top)
        return path.parent.resolve() == real / below

    def foreign(self, changed: Sequence[ChangedFile]) -> set[str]:
        """Return the files that are as neither commit has them: a person has changed them."""
        return {
            each.path
            for each in changed
            if not any(
                _is_same(self.place.top / each.path, self.directory / name / each.path)
                for name in ("old", "new")
            )
        }

    async def install_index(self) -> None:
        """Replace the index of the checkout, which is locked. Raises ``OSError``."""
        refresh = ["update-index", "-q", "--refresh"]  # fails if files were changed
        await self.git.run(refresh, MAX_NAMES_BYTES, index=self.index, check=False, is_long=True)
        self.index.replace(self.place.git / "index")


def _is_same(first: Path, second: Path) -> bool:
    one, other = _lstat(first), _lstat(second)
    if one is None or other is None:
        return one is other
    if stat.S_IFMT(one.st_mode) != stat.S_IFMT(other.st_mode):
        return False
    if stat.S_ISLNK(one.st_mode):
        return first.readlink() == second.readlink()
    is_program = bool(one.st_mode & stat.S_IXUSR) == bool(other.st_mode & stat.S_IXUSR)
    return stat.S_ISREG(one.st_mode) and is_program and filecmp.cmp(first, second, shallow=False)


# After a kill.


async def complete(checkout: Checkout, row: Worktree, at: str) -> bool:
    """Complete a merge of an earlier daemon, or call it off; return whether it is done.

    ``at`` is the directory in which the target was checked out, as text; empty: in none.
    Files that were changed since are left alone. Raises ``AegisError``, ``OSError``.
    """
    merge = row.merge
    assert merge is not None
    place = None
    if at:
        place = await in_thread(find_checkout, Path(path_of_text(at)))
    if place is None or text_of_path(place.top) != at:
        return await has_branch(checkout, row.target) == merge.new
    lock = await _IndexLock.find(place, row.id, merge)
    is_moved = await has_branch(checkout, row.target) == merge.new
    await in_thread(_delete_stages, place, row.id)
    if lock is None:  # it was complete, or not begun
        return is_moved
    try:
        if is_moved and branch_of(place) == row.target:
            await _write_again(checkout, row, merge, place)
        lock.is_left = False
    finally:
        lock.release()
    return is_moved


def _delete_stages(place: Checkout, id_: str) -> None:
    """Delete what a killed daemon has left beside the index. Blocking."""
    for each in place.git.glob(f"{STAGE}{id_}-*"):
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)


async def _write_again(
    checkout: Checkout, row: Worktree, merge: BranchMerge, place: Checkout
) -> None:
    with isolated_git(VERB, checkout, merge.new, place.top) as git:
        index = git.own / THEIR_INDEX
        await in_thread(git.copy_index, place.git / "index", index)
        staged = ["diff-index", "--cached", "--name-only", "-z", "--no-ext-diff", merge.old, "--"]
        if (await git.run(staged, MAX_NAMES_BYTES, index=index)).data:
            return  # it has the new index
        changed = await _changed_between(git, merge.old, merge.new)
        with _stage(git, place, row.id) as stage:
            await stage.fill(merge, changed)
            await git.run(["read-tree", merge.old])
            await stage.check_out("old", git.index, [each.path for each in changed if each.old])
            foreign = await in_thread(stage.foreign, changed)
            ours = [each for each in changed if each.path not in foreign]
            left = [*foreign, *await in_thread(stage.write, ours)]
            await stage.install_index()
    if left:
        names = [*map(text_of_path, left)]
        log.warning("files of a merge left as they are", session=row.id, files=names[:MAX_LEFT])
