"""``Worktrees``: the worktrees of sessions, made, merged and removed; each is a row of a table.

``.aegis/worktrees/ID`` is the worktree of the session ``ID``. An intent is durable before git runs,
so the next start undoes a worktree that was not complete, and completes a removal or calls it off.
A worktree is removed only if nothing would be lost with it. Before its last examination its
directory gets another name, so nothing that opens a path writes into it meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import attrs
import structlog
import trio

from actors import Context, Reply
from aegis.agents import faults
from aegis.agents.directory import merging
from aegis.agents.directory import worktree_files as files
from aegis.agents.directory.checkout import Checkout, branch_of, commit_of, find_checkout
from aegis.agents.directory.git import delete_left_over
from aegis.agents.directory.roster import Member, Roster
from aegis.agents.directory.worktree_rules import (
    PREFIX,
    Holdings,
    Worktree,
    losses,
    refuse_branch,
    unnamed_branch,
)
from aegis.clock import utc_now
from aegis.errors import (
    AegisError,
    AlreadyExists,
    InvalidRequest,
    NotFound,
    StorageError,
    Unavailable,
)
from aegis.journal.disk import stored_names
from aegis.journal.flusher import Flusher
from aegis.journal.table import Table
from aegis.limits import in_thread
from aegis.path_text import path_of_stored, path_of_text, stored_path, text_of_path
from aegis.protocol.worktrees import MergedWorktree, WorktreeInfo

log = structlog.get_logger("aegis.agents")

NAME = "worktrees.jsonl"

REMOVING = ".removing"
"""The end of the name of a directory that is examined for the last time."""

DELETING = ".deleting"
"""The end of the name of a directory that held nothing that would be lost."""

VERB = files.VERB


class Worktrees:
    """The worktrees of sessions in ``roster``; the ledger is in ``directory``. The owner closes it.

    ``root`` is a text. Ignored files in directories of the names ``made_again`` keep none of them.
    """

    def __init__(
        self,
        root: str,
        directory: Path,
        flusher: Flusher,
        context: Context,
        roster: Roster,
        made_again: frozenset[str],
    ) -> None:
        self._root, self._directory, self._flusher = root, directory, flusher
        self._made_again = made_again
        self._roster = roster
        self._opening: Counter[str] = Counter()
        self._table: Table[Worktree] = Table(directory / NAME, Worktree, flusher, context)
        self._lock = trio.Lock()
        """Held by each change: two removed at once might each rely on the branch of the other."""

    def close(self) -> None:
        """Close the file."""
        self._table.close()

    async def open_if_there(self) -> None:
        """Read the worktrees if there are any, and repair those of a root that was moved."""
        if NAME in stored_names(self._flusher.disk, self._directory):
            with contextlib.suppress(StorageError):  # the next change opens the table again
                await self._open()
        for row in [*self._table.rows.values()]:
            if row.state == "ready":
                try:
                    await in_thread(files.repair, await self._checkout(row), self.path(row.id))
                except (AegisError, OSError) as error:
                    log.warning("worktree not repaired", session=row.id, why=str(error))

    async def recover(self) -> None:
        """Complete or call off what a kill has interrupted; settle worktrees of closed sessions."""
        if self._table.rows:  # else no git was run for them
            await in_thread(delete_left_over)
        for id_ in [*self._table.rows]:
            try:
                async with self._lock:
                    if id_ in self._table.rows and self._table.rows[id_].merge is not None:
                        await self._complete_merge(self._table.rows[id_])
                    if id_ in self._table.rows and not self._is_used(id_):
                        await self._recover(self._table.rows[id_])
            except (AegisError, OSError) as error:
                log.warning("worktree not recovered", session=id_, why=str(error))

    async def _recover(self, row: Worktree) -> None:
        has_session = row.id in self._roster.by_id
        if row.state == "making":
            await self._undo(row, has_session)
        elif row.state == "removing" or (row.state == "ready" and not row.kept):
            await self._settle(row)
        elif row.state == "removed" and not has_session:
            await self._changed(partial(self._table.drop, row.id))

    def users(self, id_: str) -> list[Member]:
        """Return the open sessions that work in a worktree: its own, and forks of that."""
        return [each for each in self._roster.open if each.id == id_ or _is_in(each, id_)]

    def of(self, member: Member) -> str | None:
        """Return the id of the worktree in which a session works or worked, its own or another's.

        That of a worktree is the id of the session for which it was made.
        """
        if member.id in self._table.rows:
            return member.id
        found = [each for each in self._table.rows if _is_in(member, each)]
        return found[0] if found else None

    def _is_used(self, id_: str) -> bool:
        return self._opening[id_] > 0 or bool(self.users(id_))

    @contextlib.contextmanager
    def opening(self, member: Member) -> Iterator[str]:
        """Have the worktree of a session left alone until the session is open; yield its id."""
        id_ = self.of(member) or member.id
        self._opening[id_] += 1
        try:
            yield id_
        finally:
            self._opening[id_] -= 1
            if not self._opening[id_]:
                del self._opening[id_]

    # The table.

    async def _open(self) -> None:
        await self._table.open()
        if self._table.problem:
            raise StorageError(self._table.refusal)

    async def _put(self, row: Worktree) -> Worktree:
        """Add or replace a row; return once it is durable. Raises ``StorageError``."""
        await self._open()
        await self._changed(partial(self._table.put, row))
        return row

    async def _changed(self, change: Callable[[Callable[[], None], Reply[None]], object]) -> None:
        reply: Reply[None] = Reply()
        change(partial(reply.send, None), reply)
        await reply.wait()

    def path(self, id_: str) -> Path:
        """Return the directory of the worktree of a session."""
        return Path(path_of_text(self._root)) / ".aegis" / "worktrees" / id_

    def cwd(self, row: Worktree) -> str:
        """Return the directory in which a session works in its worktree, as text."""
        path = self.path(row.id)
        below = path / path_of_text(row.subdirectory)
        return text_of_path(below if below.is_dir() else path)

    def has(self, id_: str) -> bool:
        """Return whether a session has or had a worktree."""
        return id_ in self._table.rows

    async def _checkout(self, row: Worktree) -> Checkout:
        top = Path(path_of_text(path_of_stored(row.checkout, self._root)))
        try:
            return await in_thread(files.checkout_at, top)
        except Unavailable:
            # A checkout above the root may have been moved with it.
            found = await in_thread(find_checkout, Path(path_of_text(self._root)))
            if found is None or not await in_thread((found.common / "worktrees" / row.id).is_dir):
                raise
            return found

    # Making.

    async def make(self, id_: str, handle: str, cwd: str, branch: str | None) -> str:
        """Make the worktree of a new session that would work in ``cwd``.

        Returns the directory in which it works instead. Raises ``AegisError``.
        """
        source = await in_thread(files.source_of, cwd)
        name = branch or unnamed_branch(handle)
        if refuse_branch(name) is not None:  # a handle may end as no branch may
            name = f"{PREFIX}{id_[:12]}"
        async with self._lock:
            if await files.has_branch(source.checkout, name) is not None:
                raise AlreadyExists(f"{VERB}: there is a branch {name!r} already; name another one")
            row = Worktree(
                id=id_,
                checkout=stored_path(text_of_path(source.checkout.top), self._root),
                subdirectory=source.subdirectory,
                branch=name,
                is_named=branch is not None,
                target=source.target,
                base=source.commit,
                at=utc_now(),
            )
            row = await self._made(await self._put(row), source.checkout, has_session=False)
        await faults.WORKTREE_OPEN_BEFORE.reach(id_)
        return self.cwd(row)

    async def make_again(self, id_: str) -> None:
        """Make the worktree of a closed session again if it was removed. Raises ``AegisError``."""
        async with self._lock:
            row = self._table.rows.get(id_)
            if row is None:
                return
            path = self.path(id_)
            if row.state == "removing":  # a kill came between, and the session may be wanted first
                row = await self._settle(row)
            if row.state == "ready" and path.is_dir():
                await self._put(attrs.evolve(row, kept=""))
                return
            checkout = await self._checkout(row)
            if row.state != "making" and (path.exists() or path.is_symlink()):
                raise InvalidRequest(
                    f"{VERB}: there is something at {text_of_path(path)}, where the worktree of "
                    "this session was; move it away"
                )
            # A person may have deleted the directory alone, with a commit that has no branch.
            head = await in_thread(_head, checkout, path)
            if head is not None:
                await files.save_commit(checkout, head, id_)
                if row.state == "ready":
                    row = await in_thread(_ended, row, checkout, path)
            # Durable before git's own record of that commit is deleted.
            row = await self._put(attrs.evolve(row, state="making", kept=""))
            await files.delete(checkout, path, path)
            await self._made(row, checkout, has_session=True)

    async def _made(self, row: Worktree, checkout: Checkout, *, has_session: bool) -> Worktree:
        path = self.path(row.id)
        try:
            await faults.WORKTREE_MAKE_BEFORE.reach(row.id)
            await in_thread(_make_parent, path.parent)
            await in_thread(files.exclude_state, checkout, Path(path_of_text(self._root)))
            await files.add(checkout, path, row)
            await faults.WORKTREE_FILES_BEFORE.reach(row.id)
            commit = await in_thread(_head, checkout, path) or row.base
            await files.check_out(checkout, path, commit)
            included = await files.copy_included(checkout, path, row.base)
            await faults.WORKTREE_MAKE_AFTER.reach(row.id)
            return await self._put(attrs.evolve(row, state="ready", included=included))
        except (AegisError, OSError) as error:
            with contextlib.suppress(AegisError, OSError):  # else the next start undoes it
                await self._undo(row, has_session)
            if isinstance(error, AegisError):
                raise
            raise Unavailable(f"{VERB}: it could not be made: {error}") from error

    async def _undo(self, row: Worktree, has_session: bool) -> None:
        """Delete a worktree that was not complete: no agent has worked in it."""
        checkout = await self._checkout(row)
        await files.delete(checkout, self.path(row.id), self.path(row.id))
        if has_session:
            await self._put(attrs.evolve(row, state="removed"))
            return
        if await files.has_branch(checkout, row.branch) == row.base:
            await files.delete_branch(checkout, row.branch, row.base)
        await self._changed(partial(self._table.drop, row.id))

    # Merging.

    async def merge(self, id_: str, handle: str) -> MergedWorktree:
        """Merge the branch of a worktree into the one that it began from.

        Raises ``AegisError``: nothing is changed, or the next start completes the merge.
        """
        async with self._lock:
            row = self.require(id_, handle)
            if row.merge is not None:
                row, _ = await self._complete_merge(row)
            checkout, left = await self._checkout(row), list[str]()
            try:
                planned = await merging.plan(checkout, row, self.path(id_))
            except OSError as error:
                raise Unavailable(f"{merging.VERB}: nothing is merged: {error}") from error
            if planned.merge is not None:
                self._check_place(row, planned.place)
                # Stored as relative to the root, which may be moved before a merge is completed.
                place = stored_path(planned.merge.place, self._root)
                intent = attrs.evolve(planned.merge, place=place)
                row = await self._put(attrs.evolve(row, merge=intent))
                try:
                    left = await merging.carry_out(checkout, row, planned)
                except (AegisError, OSError) as error:
                    row, is_done = await self._complete_merge(row)
                    if not is_done and isinstance(error, OSError):
                        raise Unavailable(f"{merging.VERB}: nothing is merged: {error}") from error
                    if not is_done:
                        raise
                else:
                    await faults.WORKTREE_MERGE_AFTER.reach(id_)
                    await self._put(attrs.evolve(row, merge=None))
        top = None if planned.place is None else planned.place.top
        return MergedWorktree(
            handle=handle,
            branch=row.branch,
            target=row.target,
            kind=planned.kind,
            commit=planned.tip if planned.merge is None else planned.merge.new,
            directory="" if top is None else text_of_path(top),
            files=len(planned.changed),
            left=[*map(text_of_path, left)],
        )

    def _check_place(self, row: Worktree, place: Checkout | None) -> None:
        """Raise ``InvalidRequest`` if an open session works where the target is checked out."""
        if place is None:
            return
        found = [each for each in self._table.rows if self.path(each) == place.top]
        users = [user.handle for each in found for user in self.users(each)]
        if users:
            raise InvalidRequest(
                f"{merging.VERB}: {row.target!r} is checked out in the worktree of {users[0]!r}, "
                f"which is open; have that agent run: git merge {row.branch}"
            )

    async def _complete_merge(self, row: Worktree) -> tuple[Worktree, bool]:
        try:
            assert row.merge is not None
            place = row.merge.place and path_of_stored(row.merge.place, self._root)
            is_done = await merging.complete(await self._checkout(row), row, place)
        except OSError as error:
            raise Unavailable(f"{merging.VERB}: it could not be completed: {error}") from error
        return await self._put(attrs.evolve(row, merge=None)), is_done

    # Removing.

    async def discard(self, id_: str) -> None:
        """Remove the worktree of a session that could not be opened, unless it has work."""
        with contextlib.suppress(AegisError, OSError):  # else the next start does
            async with self._lock:
                row = self._table.rows[id_]
                await self._settle(row)
                if self._table.rows[id_].state == "removed":
                    await self._changed(partial(self._table.drop, id_))

    async def settle(self, id_: str) -> str:
        """Remove the worktree of a closed session, or keep it; return a sentence about that."""
        if id_ not in self._table.rows:
            return ""
        async with self._lock:
            row = self._table.rows[id_]
            if self._is_used(id_):
                return ""
            try:
                if row.state == "ready" and not row.kept:
                    row = await self._settle(row)
            except (AegisError, OSError) as error:
                return f"its worktree {text_of_path(self.path(id_))} is kept: {error}"
        if row.state == "removed":
            return "its worktree held nothing that would be lost, and is removed"
        return f"its worktree {text_of_path(self.path(id_))} is kept: it has {row.kept}"

    async def settle_unused(self, but: str = "") -> None:
        """Look again at the worktrees of closed sessions for which no reason is stored."""
        for id_, row in [*self._table.rows.items()]:
            is_kept = row.state != "ready" or row.kept or self._is_used(id_)
            if id_ != but and not is_kept:
                log.info("worktree looked at again", session=id_, worktree=await self.settle(id_))

    async def remove(self, id_: str, handle: str, *, force: bool) -> WorktreeInfo:
        """Remove the worktree of a closed session, with ``force`` also if it has work.

        Commits stay in its branch. Raises ``AegisError``.
        """
        async with self._lock:
            row = self.require(id_, handle)
            if self._is_used(id_):
                raise InvalidRequest(
                    f"{VERB}: {handle!r} or a fork of it is open; close it first: agent stop"
                )
            try:
                removed = await self._settle(row, force=force)
            except OSError as error:
                raise Unavailable(f"{VERB}: it could not be removed: {error}") from error
        if removed.state != "removed":
            raise InvalidRequest(
                f"{VERB}: it is kept, for this would be lost: {removed.kept}; remove it in spite "
                "of that with --force (force: true); commits stay in the branch "
                f"{row.branch!r}"
            )
        return self._info(removed, handle)

    async def _settle(self, row: Worktree, *, force: bool = False) -> Worktree:
        """Remove a worktree unless that would lose something; return its row then."""
        if row.state == "removed":
            return row
        checkout = await self._checkout(row)
        path = self.path(row.id)
        renamed = path.with_name(f"{path.name}{REMOVING}")
        doomed = path.with_name(f"{path.name}{DELETING}")
        if renamed.exists() and not path.exists():
            renamed.rename(path)  # a kill came between: all is looked at again
        if path.exists() and not force:
            holdings = await self._holdings(checkout, row, path)
            if losses(holdings):
                return await self._keep(row, holdings)
        head = await in_thread(_head, checkout, path)
        row = await in_thread(_ended, row, checkout, path)
        row = await self._put(attrs.evolve(row, state="removing"))
        await faults.WORKTREE_REMOVE_BEFORE.reach(row.id)
        if path.exists():
            path.rename(renamed)
            holdings = Holdings() if force else await self._holdings(checkout, row, renamed)
            if losses(holdings):
                renamed.rename(path)
                return await self._keep(row, holdings)
            renamed.rename(doomed)
        await faults.WORKTREE_DELETE_BEFORE.reach(row.id)
        if head is not None:
            await files.save_commit(checkout, head, row.id)
        await files.delete(checkout, doomed, path)
        await faults.WORKTREE_BRANCH_BEFORE.reach(row.id)
        await self._delete_branch(checkout, row)
        await faults.WORKTREE_REMOVE_AFTER.reach(row.id)
        return await self._put(attrs.evolve(row, state="removed", kept=""))

    async def _delete_branch(self, checkout: Checkout, row: Worktree) -> None:
        """Delete the branch that we have named if another reference reaches its commit."""
        tip = await files.has_branch(checkout, row.branch)
        if row.is_named or tip is None:
            return
        if await files.is_elsewhere(checkout, tip, row.branch):
            await files.delete_branch(checkout, row.branch, tip)

    async def _holdings(self, checkout: Checkout, row: Worktree, path: Path) -> Holdings:
        return await files.examine(checkout, path, row, self.path(row.id), self._made_again)

    async def _keep(self, row: Worktree, holdings: Holdings) -> Worktree:
        """Keep a worktree, and return its row with the reason.

        That is not stored if it is only processes: they end, and it is looked at again.
        """
        lasting = losses(attrs.evolve(holdings, users=()))
        kept = "; ".join(losses(holdings))
        row = await self._put(attrs.evolve(row, state="ready", kept=kept if lasting else ""))
        return attrs.evolve(row, kept=kept)

    # Listing.

    def require(self, id_: str, handle: str) -> Worktree:
        """Return the worktree of a session. Raises ``NotFound``."""
        row = self._table.rows.get(id_)
        if row is None or row.state == "removed":
            raise NotFound(f"{handle!r} has no worktree; see: agent worktree list")
        return row

    async def all(self, handle_of: Callable[[str], str]) -> list[WorktreeInfo]:
        """Return the worktrees that exist, with what would be lost with each.

        One that was kept only for processes in it is removed if they have ended.
        """
        await self.settle_unused()
        rows = [each for each in self._table.rows.values() if each.state == "ready"]
        found = [
            attrs.evolve(
                self._info(row, handle_of(row.id), await self._holds(row)),
                unmerged=await self._unmerged(row),
            )
            for row in rows
        ]
        return sorted(found, key=lambda each: each.handle)

    async def _holds(self, row: Worktree) -> str:
        try:
            checkout, path = await self._checkout(row), self.path(row.id)
            holdings = await self._holdings(checkout, row, path)
            return "; ".join(losses(attrs.evolve(holdings, users=())))
        except (AegisError, OSError) as error:
            return str(error)

    async def _unmerged(self, row: Worktree) -> int | None:
        try:
            return await merging.count_unmerged(await self._checkout(row), row)
        except AegisError:
            return None

    def _info(self, row: Worktree, handle: str, holds: str = "") -> WorktreeInfo:
        return WorktreeInfo(
            id=row.id,
            handle=handle,
            path=text_of_path(self.path(row.id)),
            branch=row.branch,
            target=row.target,
            base=row.base,
            holds=holds,
        )


def _is_in(member: Member, id_: str) -> bool:
    return f"{member.place}/".startswith(f".aegis/worktrees/{id_}/")


def _head(checkout: Checkout, path: Path) -> str | None:
    return commit_of(files.worktree_checkout(checkout, path, path.name))


def _ended(row: Worktree, checkout: Checkout, path: Path) -> Worktree:
    """Return a row with the commit and the branch that its worktree has now. Blocking."""
    own = files.worktree_checkout(checkout, path, path.name)
    head = commit_of(own)
    if head is None:
        return attrs.evolve(row, tip=row.tip or row.base)
    branch = branch_of(own) or ""
    return attrs.evolve(row, tip=head, ended_on=None if branch == row.branch else branch)


def _make_parent(directory: Path) -> None:
    """Make the directory of worktrees; it must be this user's own, and no link."""
    directory.mkdir(parents=True, exist_ok=True)
    status = os.lstat(directory)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise Unavailable(
            f"{VERB}: {text_of_path(directory)} is not a directory of this user; remove it"
        )
