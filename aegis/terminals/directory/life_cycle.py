"""``OpenTerminals``: starts, restores, ends and purges the terminals of a root.

An open terminal has actors (its subtree), or it has failed: then it is listed with the reason until
it is closed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio

from actors import ActorStopped, AskError, Ref, describe
from aegis.errors import AegisError, StorageError
from aegis.journal import purging
from aegis.journal.disk import is_there, shown, storage_error
from aegis.journal.flusher import Flusher
from aegis.path_text import text_of_path
from aegis.processes.environment import Withhold, withhold_keys
from aegis.processes.process_scan import ProcessScan
from aegis.protocol.naming import is_name, name_key
from aegis.protocol.terminals import SpawnTerminal
from aegis.terminals import faults
from aegis.terminals.directory.inactive import FailedTerminal
from aegis.terminals.directory.moving import Mover
from aegis.terminals.directory.placed_subtrees import PlacedSubtrees, PlaceLost
from aegis.terminals.directory.placement import NoPlace
from aegis.terminals.directory.spawning import (
    check_can_start,
    check_descriptors,
    default_settings,
    life_without_meta,
    make_settings,
    resaved_settings,
    restored_settings,
    spawn_failure,
)
from aegis.terminals.directory.workspace import OpenNames
from aegis.terminals.front.recovery import finalise, wake_subscribers
from aegis.terminals.messages import EndTerminal, WhyEnded
from aegis.terminals.meta import (
    delete_unfinished,
    load_settings,
    save_settings,
    saved_settings,
)
from aegis.terminals.retry import ask_across_restarts
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.processes import end_terminal_processes
from aegis.terminals.wakes.delivery import retry_delay

log = structlog.get_logger("aegis.terminals")

END_TIMEOUT_S = 5.0

SHOWN_NAMES = 20
"""The most terminals that one log line names."""

RESTORED_AT_ONCE = 16
"""The most terminals that are started at a time; more gain nothing."""


@attrs.define(eq=False, kw_only=True)
class OpenTerminals:
    """The open terminals, by the keys of names: ``open`` have actors, ``failed`` have none.

    ``earlier`` are the earlier paths of ``root``. Their files are below ``directory``.
    ``start_soon`` starts a helper task of the owner; ``monitor`` makes the owner monitor an actor.
    ``withhold`` is asked once for each spawn.
    """

    root: Path
    earlier: tuple[str, ...]
    directory: Path
    subtrees: PlacedSubtrees
    workspace: OpenNames
    flusher: Flusher
    scan: ProcessScan
    start_soon: Callable[..., object]
    monitor: Callable[[Ref[Any]], None]
    withhold: Withhold = withhold_keys
    open: dict[str, TerminalSettings] = attrs.field(factory=dict)
    failed: dict[str, FailedTerminal] = attrs.field(factory=dict)
    mover: Mover = attrs.field(init=False)
    _at_once: trio.CapacityLimiter = attrs.field(init=False)
    _by_key: dict[str, str] | None = attrs.field(default=None, init=False)

    @mover.default
    def _mover(self) -> Mover:
        return Mover(self)

    @_at_once.default
    def _limiter(self) -> trio.CapacityLimiter:
        return trio.CapacityLimiter(RESTORED_AT_ONCE)

    def has(self, name: str) -> bool:
        """Whether the terminal is open or has failed."""
        return name_key(name) in self.open or name_key(name) in self.failed

    def node_of(self, name: str) -> str:
        """Return the name of the node where the terminal is, or was last."""
        move = self.mover.moves.get(name_key(name))
        return self.subtrees.node_of(name) if move is None else move.node

    def files(self, name: str) -> TerminalFiles:
        """Return the paths of the terminal's files. Raises ``StorageError``."""
        # The directory keeps the case of the name under which it was made.
        return TerminalFiles(self.directory / self._names().get(name_key(name), name))

    def known_name(self, name: str) -> str | None:
        """Return the name as its directory is written; None without one.

        Raises ``StorageError``.
        """
        self._by_key = None  # a person may have removed the directory, or restored it
        return self._names().get(name_key(name))

    def _names(self) -> dict[str, str]:
        """Return the known names by their keys. Raises ``StorageError``."""
        # Listed once for many starts: a thousand spawns would list half a million names.
        if self._by_key is None:
            self._by_key = {name_key(each): each for each in reversed(self.known_names())}
        return self._by_key

    def known_names(self) -> list[str]:
        """Return the names of all terminals that have a directory. Raises ``StorageError``."""
        try:
            known = self.flusher.disk.list_directory(self.directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise storage_error("read", self.directory, error) from error
        return [each for each in known if is_name(each)]

    # Starting.

    def delete_unfinished(self) -> None:
        """Delete what a kill in the middle of a spawn left, before it was answered. Blocks."""
        with contextlib.suppress(StorageError):
            for name in self.known_names():
                if not self.workspace.may_restore(name):
                    with contextlib.suppress(OSError):
                        delete_unfinished(self.flusher.disk, TerminalFiles(self.directory / name))

    def report_missing_workspace(self) -> None:
        """Log the terminals that have a ledger, where the workspace file is missing. Blocks."""
        # A root that never had a terminal has neither: nothing is logged.
        names = []
        with contextlib.suppress(StorageError, OSError):
            names = list(filter(self._has_ledger, self.known_names()))
        if names:
            log.warning(
                "workspace file missing",
                file=shown(self.workspace.path),
                not_restored=sorted(names)[:SHOWN_NAMES],
                number=len(names),
            )

    def _has_ledger(self, name: str) -> bool:
        return is_there(self.flusher.disk, TerminalFiles(self.directory / name).ledger)

    async def find_open(self) -> None:
        """Find the terminals that are still running after a crash of the directory."""
        for name in await self.subtrees.find():
            read = partial(
                load_settings, self.flusher.disk, self.files(name), self.root, self.earlier
            )
            try:
                settings = await self.flusher.call(read)
            except (AegisError, OSError) as error:
                log.warning("settings not read", terminal=name, why=describe(error))
                settings = None
            known = settings or default_settings(name, self.root)
            self.open[name_key(name)] = attrs.evolve(known, name=name)
            with contextlib.suppress(ActorStopped):
                self.monitor(self.subtrees.root(name))

    async def restore(self) -> None:
        """Start the terminals of the workspace that are not open.

        A terminal that cannot be started has failed.
        """
        names = [name for name in self.workspace.names if not self.has(name)]
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(self._restart, default_settings(name, self.root), False)
        if names:
            failed = [name for name in names if name_key(name) in self.failed]
            log.info("restored terminals", number=len(names) - len(failed), failed=failed)

    async def restart(self, settings: TerminalSettings) -> None:
        """Start a terminal that has lost its actors. If it cannot be started, it has failed."""
        await self._restart(settings, True)

    async def _restart(self, settings: TerminalSettings, is_known: bool) -> None:
        async with self._at_once:
            await self._start_from_files(settings, is_known=is_known)

    async def _start_from_files(self, settings: TerminalSettings, *, is_known: bool) -> None:
        name, files = settings.name, None
        try:
            files = self.files(name)
            read = partial(restored_settings, name, self.root, files, self.flusher, self.earlier)
            settings, is_known = await self.flusher.call(read), True
            check_can_start(settings)
            check_descriptors(coming=self._at_once.borrowed_tokens)
            await self._start(settings, files)
        except Exception as error:
            refusal = spawn_failure(name, files or TerminalFiles(self.directory / name), error)
            self.open.pop(name_key(name), None)
            failed = self.fail(settings, _why(refusal), is_known=is_known)
            if isinstance(refusal, StorageError | NoPlace):
                failed.is_retried = True
                self.start_soon(self._start_when_possible, failed)

    async def _start_when_possible(self, failed: FailedTerminal) -> None:
        """Retry until the terminal starts or is closed."""
        # The disk may recover, and a worker may come up.
        key = name_key(failed.settings.name)
        tries = 0
        await failed.settled.wait()
        while self.failed.get(key) is failed:
            tries += 1
            await self.subtrees.wait_worker(retry_delay(tries))
            if self.failed.get(key) is failed:
                await self._try_again(key, failed)

    async def _try_again(self, key: str, failed: FailedTerminal) -> None:
        failed.settled = trio.Event()
        name = failed.settings.name
        files = TerminalFiles(self.directory / name)
        try:
            files = self.files(name)
            read = partial(resaved_settings, name, self.root, files, self.flusher, self.earlier)
            failed.settings = await self.flusher.call(read)
            check_can_start(failed.settings)
            async with self._at_once:
                check_descriptors(coming=self._at_once.borrowed_tokens)
                await self._start(failed.settings, files)
            del self.failed[key]
            log.info("failed terminal started", terminal=name)
        except Exception as error:
            failed.why = _why(spawn_failure(name, files, error))
        finally:
            failed.settled.set()

    async def spawn(self, request: SpawnTerminal) -> Ref[Any]:
        """Start a terminal and return its front; its name is durably in the workspace.

        Raises ``AegisError``: then none of its processes runs, and a new one leaves no files.
        """
        files = self.files(request.name)
        try:
            is_new = not self.flusher.disk.is_directory(files.directory)
            files = attrs.evolve(files, is_new=is_new)
            settings = await self.flusher.call(partial(self._new_settings, request, files))
            if self._by_key is not None:
                self._by_key[name_key(request.name)] = files.directory.name
            await self.workspace.add(settings.name)
            return await self._start(settings, files, request.node)
        except Exception as error:
            await self._undo_spawn(request.name, files)
            raise spawn_failure(request.name, files, error) from error

    def _new_settings(self, request: SpawnTerminal, files: TerminalFiles) -> TerminalSettings:
        before = None if files.is_new else load_settings(self.flusher.disk, files, self.root)
        settings = make_settings(request, self.root, before, self.withhold)
        if before is None and not files.is_new:
            life = life_without_meta(files, self.flusher)
            settings = attrs.evolve(settings, life=life)
        save_settings(self.flusher.disk, files, settings, is_new=files.is_new)
        return settings

    async def _undo_spawn(self, name: str, files: TerminalFiles) -> None:
        # If the disk refuses, the next change of the workspace leaves the name out.
        with contextlib.suppress(StorageError):
            await self.workspace.remove(name)
        if files.is_new:
            self._by_key = None
            with contextlib.suppress(OSError):
                await self.flusher.call(partial(self._delete_if_made, files.directory))

    def _delete_if_made(self, directory: Path) -> None:
        if self.flusher.disk.is_directory(directory):
            purging.delete(self.flusher.disk, directory)

    async def _start(
        self, settings: TerminalSettings, files: TerminalFiles, node: str | None = None
    ) -> Ref[Any]:
        front = await self.subtrees.start(settings, files, node)
        try:
            self.monitor(self.subtrees.root(settings.name))
        except ActorStopped as error:
            raise PlaceLost("it ended as soon as it was started; try again") from error
        self.open[name_key(settings.name)] = settings
        return front

    # Ending.

    async def end(self, name: str, end: WhyEnded) -> tuple[str, ...]:
        """End an open terminal and return the processes that remain. It stays in the workspace."""
        # Two calls may overlap: a close, and the stop of the daemon.
        key = name_key(name)
        await self.mover.cancel(name)
        while key in self.failed:
            failed = self.failed[key]
            if failed.settled.is_set():
                del self.failed[key]
                if end == "closed" and not failed.is_finalised:
                    await self._finalise(failed)
                return failed.leftover
            await failed.settled.wait()  # meanwhile a retry may have started it
        settings = self.open.get(key)
        if settings is None:
            return ()
        leftover = await self._ask_to_end(key, end)
        await self.subtrees.stop(settings.name)
        self.open.pop(key, None)
        if leftover is not None:
            return leftover
        leftover = await self.end_processes(settings.name)
        if end == "closed":  # otherwise the next daemon writes the records, and has more time
            await self._finalise(FailedTerminal(settings=settings, why="it did not end in time"))
        return leftover

    async def _ask_to_end(self, key: str, end: WhyEnded) -> tuple[str, ...] | None:
        """Have the front end its shell and write its records; None if it failed to."""
        front = self.subtrees.front(key)
        try:
            if front is not None:
                ended = await ask_across_restarts(
                    front, EndTerminal(end=end), timeout=END_TIMEOUT_S
                )
                return tuple(ended.leftover)
        except AskError as error:
            log.warning("terminal did not end in order", terminal=key, error=str(error))
        return None

    async def end_processes(self, name: str) -> tuple[str, ...]:
        """End all processes of the terminal's shells; return those that remain."""
        try:
            files = self.files(name)
        except StorageError:  # without the note the processes are found by their cookies
            files = TerminalFiles(self.directory / name)
        disk = self.flusher.disk
        return await end_terminal_processes(
            text_of_path(self.root), name, files.shell, self.scan, disk
        )

    async def end_all(self) -> None:
        """End every terminal as the daemon stops; all stay in the workspace."""
        async with trio.open_nursery() as nursery:
            for key in list(self.open):
                nursery.start_soon(self.end, key, "killed_by_restart")

    async def purge(self, name: str) -> None:
        """Delete all files of a closed terminal. Raises ``StorageError``."""
        directory, self._by_key = self.files(name).directory, None
        try:
            take = partial(purging.take_name, self.flusher.disk, directory)
            doomed = await self.flusher.call(take)
            faults.PURGE_AFTER.hit()
            if doomed is not None:
                await self.flusher.call(partial(purging.delete, self.flusher.disk, doomed))
        except OSError as error:
            raise StorageError(
                f"aegis_term_close: the history of terminal {name!r} could not be deleted: "
                f"{error.strerror}; the terminal is closed"
            ) from error

    # Failing.

    def subtree_failed(self, path: str, reason: str) -> None:
        """Fail the open terminal whose subtree at ``path`` has spent its restarts, if any."""
        for key, settings in list(self.open.items()):
            if path == self.subtrees.path(settings.name):
                self.subtrees.remove(settings.name)
                self.fail_open(key, f"its actors crashed too often ({reason})")

    def fail_open(self, key: str, why: str) -> None:
        """Turn an open terminal into a failed one."""
        self.fail(self.open.pop(key), why, is_known=True)

    def fail(self, settings: TerminalSettings, why: str, *, is_known: bool) -> FailedTerminal:
        """List the terminal as failed; start the cleanup of its processes and records.

        ``is_known``: the settings are the terminal's own, and not defaults.
        """
        log.warning("terminal failed", terminal=settings.name, why=why)
        failed = FailedTerminal(
            settings=settings, why=why, is_known=is_known, node=self.node_of(settings.name)
        )
        self.failed[name_key(settings.name)] = failed
        self.start_soon(self._settle, failed)
        return failed

    async def _settle(self, failed: FailedTerminal) -> None:
        """End the terminal's processes; then write its missing records and send their wakes."""
        try:
            failed.leftover = await self.end_processes(failed.settings.name)
            await self._finalise(failed)
        except Exception as error:
            log.warning("processes not ended", terminal=failed.settings.name, why=describe(error))
        finally:
            failed.settled.set()

    async def _finalise(self, failed: FailedTerminal) -> None:
        """Write the missing records and send their wakes, as no front will do it."""
        # No wakes where the settings are not known: ids of wakes contain the settings' life id.
        name = failed.settings.name
        try:
            files = self.files(name)
            read = partial(saved_settings, self.flusher.disk, files, failed.settings)
            failed.settings = await self.flusher.call(read)
            failed.last = await finalise(files, self.flusher)
            if failed.is_known:
                failed.subscribers = await wake_subscribers(
                    failed.settings, files, self.flusher, self.subtrees.inboxes
                )
            failed.is_finalised = True
        except Exception as error:
            # Tried again when the terminal is closed, and when it is next spawned.
            log.warning("records not finalised", terminal=name, why=describe(error))


def _why(refusal: AegisError) -> str:
    return str(refusal).removeprefix("aegis_term_spawn: ")
