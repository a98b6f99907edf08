"""Appending to one ledger with group commit: many waiters share one sync.

``append`` writes at once, on the event loop, without a sync. ``wait_synced`` requests a sync and
returns when one that began after the append has succeeded: the line is then acknowledged. Lines
appended during a sync are covered by the next one.

When the disk refuses a write or a sync, the appender has *failed*:

* All lines written and not acknowledged are truncated, and their waiters, now or later, get a
  ``StorageError``. The appender keeps no copy: the owner may append them again.
* ``append`` raises until ``recover`` has succeeded. ``recover`` opens the file again, because after
  a failed fsync the kernel may mark lost pages clean, and a second fsync would prove nothing. It
  checks that the last acknowledged line is there, truncates the rest, and syncs.
* A position from before a failure keeps its outcome: after a recovery, its offset may belong to
  another line, and the two must not be confused.

``replace`` lets another file take the place of the ledger. Positions stay valid: they count the
bytes from the start of the first file, and ``shift`` is the part of them that later files lack.

    appender = await Appender.open(path, flusher)
    appender.start(nursery.start_soon)
    position = appender.append(encode_line({"seq": 0}))
    await appender.wait_synced(position)
    appender.close()
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs
import structlog
import trio

from aegis.errors import LimitReached, StorageError
from aegis.journal import faults
from aegis.journal.disk import (
    Disk,
    read_exactly,
    shown,
    storage_error,
    storage_errors,
    sync_directory,
    write_all,
)
from aegis.journal.flusher import Flusher, Forget, Outcome
from aegis.journal.ledger import Line, judge, pieces_backward, seal_new_line
from aegis.journal.opening import OpenedLedger, open_ledger

log = structlog.get_logger("aegis.journal")

COPY_BYTES = 256 * 1024
"""The bytes of lines that are copied at once to the file that takes the place of another."""


@attrs.define(eq=False)
class _Epoch:
    """One open descriptor, from opening or recovery until it fails."""

    fd: int
    written: int
    synced: int
    error: StorageError | None = None
    waiters: trio.lowlevel.ParkingLot | None = None  # made when needed

    def wake(self) -> None:
        if self.waiters is not None:
            self.waiters.unpark_all()


@attrs.frozen(eq=False)
class Position:
    """The places at which an appended line begins and ends; ``shift`` less are its offsets."""

    start: int
    end: int
    _epoch: _Epoch = attrs.field(repr=False)


class Appender:
    """The only writer of a ledger. Not thread-safe: all calls come from one Trio loop.

    The owner closes it. An idle appender is small and has no task: there may be thousands.
    """

    def __init__(self, path: Path, opened: OpenedLedger, flusher: Flusher) -> None:
        self.path = path
        self._name = path.name
        self.opened = opened
        """The result of opening the ledger; its ``fd`` belongs to the appender."""
        self._flusher = flusher
        self._seal = flusher.disk.seal(path)
        self._epoch = _Epoch(opened.fd, opened.length, opened.length)
        self.shift = 0
        """The difference between a position and the offset in the file that is open now."""
        self._start_soon: Callable[..., object] | None = None
        self._is_wanted = False
        self._is_syncing = False
        self._is_held = False  # no sync begins
        self._idle: trio.Event | None = None  # set once no sync is in progress
        self._is_renamed = False  # and the directory not synced since
        self._forget: Forget | None = None  # of the sync in progress
        self._recovering: trio.Lock | None = None  # made when needed
        # On some file systems the link count is always 0: there a removed file cannot be detected.
        self._counts_names = not flusher.disk.is_removed(opened.fd)
        self.on_outcome: Callable[[], None] | None = None
        """Called when a sync has ended or the disk has refused: call ``is_synced`` again."""
        self._is_cut = False
        self._closed = False

    @classmethod
    async def open(cls, path: Path, flusher: Flusher, *, is_new: bool = False) -> Appender:
        """Open or create the ledger; move a torn tail to a file of its own, and log its name.

        ``is_new``: it is empty, and its name durable, so nothing is synced. Raises
        ``StorageError``. A cancellation takes effect when the opening is done: the thread that
        repairs the ledger must not outlive its owner.
        """
        if is_new:
            return cls(path, open_ledger(flusher.disk, path, is_new=True), flusher)
        opened = await flusher.call(partial(open_ledger, flusher.disk, path))
        if opened.torn is not None:
            log.warning("torn line cut off", file=shown(path), kept_as=opened.torn.name)
        return cls(path, opened, flusher)

    def start(self, start_soon: Callable[..., object]) -> None:
        """Use ``start_soon`` for tasks of the owner; must be called before the first sync."""
        self._start_soon = start_soon

    @property
    def synced(self) -> int:
        """The end of the acknowledged lines; a reader that stops there sees nothing uncertain."""
        return self._epoch.synced

    @property
    def length(self) -> int:
        """The number of bytes in the file."""
        return self._epoch.written - self.shift

    @property
    def fd(self) -> int:
        """The open file, for reading on the loop. Raises ``StorageError`` once it is closed."""
        self._check_open()
        return self._epoch.fd

    @property
    def failed(self) -> bool:
        """Whether ``recover`` is needed before the next ``append``."""
        return self._epoch.error is not None

    def append(self, line: bytes) -> Position:
        """Write one encoded line at the end, with its code and without a sync; takes microseconds.

        Raises ``StorageError`` if the disk refuses: then no part of the line is in the file, and
        the appender has failed.
        """
        assert line.find(b"\n") == len(line) - 1 >= 0, "a line has one newline, at its end"
        epoch = self._epoch
        self._check_open()
        if epoch.error is not None:
            raise _again(epoch.error)
        line = seal_new_line(line, self._seal)
        try:
            faults.APPEND_BEFORE.hit(self._name)
            write_all(self._flusher.disk, epoch.fd, line)
            faults.APPEND_AFTER.hit(self._name)
        except OSError as error:
            refusal = storage_error("write", self.path, error)
            self._fail(epoch, refusal)
            raise _again(refusal) from error
        start = epoch.written
        epoch.written += len(line)
        return Position(start, epoch.written, epoch)

    def request_sync(self) -> None:
        """Request a sync without waiting for it; ``on_outcome`` is called after it."""
        assert self._start_soon is not None, "an appender syncs once it was started"
        self._is_wanted = True
        if not self._is_syncing:
            self._sync_next()

    def is_synced(self, position: Position) -> bool:
        """Return whether the line that ends at ``position`` would survive a power loss.

        Raises ``StorageError`` if the line was not acknowledged and will not be.
        """
        epoch = position._epoch
        if position.end <= epoch.synced:
            return True
        if epoch.error is not None:
            raise _again(epoch.error)
        return False

    async def wait_synced(self, position: Position) -> None:
        """Return once the line that ends at ``position`` would survive a power loss.

        Raises ``StorageError`` if the line was not acknowledged and will not be: the disk refused,
        or the appender was closed.
        """
        epoch = position._epoch
        if position.end <= epoch.synced:
            await trio.lowlevel.checkpoint()
        while not self.is_synced(position):
            self._check_open()
            self.request_sync()
            if epoch.waiters is None:
                epoch.waiters = trio.lowlevel.ParkingLot()
            await epoch.waiters.park()

    async def recover(self) -> None:
        """After a failure, reopen the file at its last acknowledged byte; otherwise do nothing.

        Raises ``StorageError`` and stays failed if the disk still refuses, or if acknowledged bytes
        are missing in the file; opening the ledger anew then shows what is left.
        """
        if self._recovering is None:
            self._recovering = trio.Lock()
        async with self._recovering:
            self._check_open()
            failed = self._epoch
            if failed.error is None:
                return
            with storage_errors("open", self.path):
                fresh = await self._reopened(failed.synced - self.shift)
            if self._closed:
                self._flusher.disk.close(fresh)
                self._check_open()
            self._flusher.disk.close(failed.fd)
            self._epoch = _Epoch(fresh, failed.synced, failed.synced)

    async def replace(
        self, fresh: Path, fd: int, since: int, replaced: Callable[[int], object]
    ) -> None:
        """Let another file take the place of the ledger.

        ``fresh``, open as ``fd`` for appending, has what follows from the lines before the position
        ``since``; the lines after it are copied. Lines can be appended meanwhile, and those of the
        last moment are acknowledged a little later. ``replaced`` is called when the files have
        changed, with the descriptor of the old one, which the owner closes.

        Raises ``StorageError`` if the disk refuses: then nothing has changed, and ``fd`` belongs to
        the caller. If it refuses only to sync the new name, the appender fails as by any sync.
        """
        epoch, disk = self._epoch, self._flusher.disk
        head = disk.size(fd)
        try:
            copied = await self._copy(epoch, fd, since, epoch.synced)
            await self._flusher.fsync(fd)  # most of it, while others are acknowledged
            self._is_held = True
            while self._is_syncing:
                self._idle = trio.Event()
                await self._idle.wait()
            # From here on all acknowledged lines are in the part that is synced below.
            copied = await self._copy(epoch, fd, copied, epoch.written)
            await self._flusher.fsync(fd)
            # In one step: what was appended during the sync, which nobody takes for durable.
            self._check_is_of(epoch)
            _copy_bytes(disk, epoch.fd, fd, copied - self.shift, epoch.written - self.shift)
            faults.REPLACE_BEFORE.hit(self._name)
            disk.rename(fresh, self.path)
        except OSError as error:
            self._release()
            raise storage_error("replace", self.path, error) from error
        except BaseException:
            self._release()
            raise
        old, epoch.fd = epoch.fd, fd
        self.shift, self._is_renamed = since - head, True
        replaced(old)
        try:
            faults.REPLACE_AFTER.hit(self._name)
            await self._sync_name()
        except OSError as error:
            self._fail(epoch, storage_error("sync", self.path, error))
        finally:
            self._release()

    async def _copy(self, epoch: _Epoch, fd: int, start: int, end: int) -> int:
        """Copy the lines between two positions to the end of another file; return the ``end``."""
        for at in range(start, end, COPY_BYTES):
            self._check_is_of(epoch)
            stop = min(at + COPY_BYTES, end)
            copy = partial(_copy_bytes, self._flusher.disk, epoch.fd, fd)
            await self._flusher.call(partial(copy, at - self.shift, stop - self.shift))
        self._check_is_of(epoch)
        return end

    def _check_is_of(self, epoch: _Epoch) -> None:
        """Raise ``StorageError`` if the file has failed, or was opened again, since."""
        self._check_open()
        if epoch.error is not None:
            raise _again(epoch.error)

    def _release(self) -> None:
        self._is_held, self._idle = False, None
        if self._is_wanted and not self._is_syncing:
            self._sync_next()

    async def _sync_name(self) -> None:
        # Shielded: the name must be durable before any line is acknowledged.
        await self._flusher.call(partial(sync_directory, self._flusher.disk, self.path.parent))
        self._is_renamed = False

    def close(self) -> None:
        """Close the file without a sync; waiters get a ``StorageError``.

        An owner that wants its lines acknowledged waits for the last of them first.
        """
        if self._closed:
            return
        self._closed = True
        if self._forget is not None:
            self._forget()
        self._rest()
        epoch = self._epoch
        if epoch.error is None:
            epoch.error = self._closing()
        epoch.wake()
        self._flusher.disk.close(epoch.fd)

    # One sync at a time, and without a task: a task would cost two turns of the loop for each, one
    # until it runs and one until it wakes.

    def _sync_next(self) -> None:
        """Begin a sync, if one is wanted and there is something to sync."""
        epoch = self._epoch
        if self._is_held:
            self._rest()
            return
        self._is_syncing = self._is_wanted and epoch.error is None and epoch.written > epoch.synced
        self._is_wanted = False
        if self._is_syncing:
            self._pass(faults.SYNC_BEFORE.delay, partial(self._begin, epoch), epoch)

    def _rest(self) -> None:
        self._is_syncing = False
        if self._idle is not None:
            self._idle.set()

    def _begin(self, epoch: _Epoch) -> None:
        if epoch.error is not None:
            self._sync_next()
            return
        target = epoch.synced

        def began() -> None:
            nonlocal target
            target = epoch.written

        def ended(result: Outcome) -> None:
            self._forget = None
            judge = partial(self._judge, epoch, target, result)
            try:
                self._pass(faults.SYNC_AFTER.delay, judge, epoch)
            except Exception as error:  # of ``on_outcome``: it is the owner's, not the flusher's
                self._rest()
                self._run_soon(_fail_with, error)

        begin = self._flusher.begin_fdatasync
        try:
            self._forget = begin(epoch.fd, began, ended, self._run_soon)
        except OSError as error:
            self._run_soon(self._refused, epoch, error)

    def _pass(
        self, delay: Callable[[str], float], proceed: Callable[[], None], epoch: _Epoch
    ) -> None:
        """Pass a fault point, where the disk may refuse, and proceed."""
        try:
            delay_s = delay(self._name)
        except Exception as error:
            self._run_soon(self._refused, epoch, error)
            return
        if delay_s > 0:
            self._run_soon(_after, delay_s, proceed)
        else:
            proceed()

    def _judge(self, epoch: _Epoch, target: int, result: Outcome) -> None:
        try:
            result.unwrap()
            if epoch.error is None:  # otherwise the descriptor may be closed or reused
                self._check_is_there(epoch, target)
        except OSError as error:
            self._fail(epoch, storage_error("sync", self.path, error))
        except StorageError as error:
            self._fail(epoch, error)
        else:
            self._acknowledge(epoch, target)
        self._sync_next()

    async def _refused(self, epoch: _Epoch, error: Exception) -> None:
        """Fail as the disk did. Any other error is a crash of the owner, whose task this is."""
        self._rest()
        if not isinstance(error, OSError):
            raise error
        self._fail(epoch, storage_error("sync", self.path, error))

    def _run_soon(self, task: Callable[..., object], *arguments: object) -> None:
        assert self._start_soon is not None
        with contextlib.suppress(RuntimeError):  # the owner has ended
            self._start_soon(task, *arguments)

    def _check_is_there(self, epoch: _Epoch, target: int) -> None:
        """Raise if another program has removed or shortened the file: no line is acknowledged."""
        disk = self._flusher.disk
        if self._counts_names and disk.is_removed(epoch.fd):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if disk.size(epoch.fd) < target - self.shift:
            raise self._shortened(disk.size(epoch.fd), target - self.shift)

    def _acknowledge(self, epoch: _Epoch, target: int) -> None:
        if epoch.error is None:  # a write that failed meanwhile has truncated the bytes synced here
            epoch.synced = target
            self._notify(epoch)

    def _notify(self, epoch: _Epoch) -> None:
        epoch.wake()
        if self.on_outcome is not None:
            self.on_outcome()

    def _fail(self, epoch: _Epoch, error: StorageError) -> None:
        if epoch.error is not None:
            return
        epoch.error = error
        disk = self._flusher.disk
        with contextlib.suppress(OSError):  # recovery truncates it in any case
            if disk.size(epoch.fd) > epoch.synced - self.shift:
                disk.ftruncate(epoch.fd, epoch.synced - self.shift)
        self._notify(epoch)

    async def _reopened(self, acknowledged: int) -> int:
        disk = self._flusher.disk
        with contextlib.ExitStack() as undo:
            fd = disk.open(self.path, os.O_RDWR | os.O_APPEND)
            undo.callback(disk.close, fd)
            self._verify(fd, acknowledged)
            disk.ftruncate(fd, acknowledged)
            await self._flusher.fsync(fd)
            if self._is_renamed:
                await self._sync_name()
            undo.pop_all()
        return fd

    def _verify(self, fd: int, acknowledged: int) -> None:
        disk = self._flusher.disk
        if disk.size(fd) < acknowledged:
            raise self._shortened(disk.size(fd), acknowledged)
        if acknowledged == 0 or (self.shift == 0 and acknowledged == self.opened.length):
            return  # the bytes before it were checked when the ledger was opened
        pieces = pieces_backward(lambda start, n: read_exactly(disk, fd, n, start), acknowledged)
        last = next(pieces)
        if not (last.whole and isinstance(judge(last, self._seal), Line)):
            raise StorageError(
                f"the last acknowledged line of {shown(self.path)} is damaged; "
                "restart the daemon to continue without it"
            )

    def _shortened(self, found: int, expected: int) -> StorageError:
        if not self._is_cut:
            self._is_cut = True
            log.warning(
                "file was cut from outside", file=shown(self.path), bytes=found, had=expected
            )
        return StorageError(
            f"{shown(self.path)} is shorter than its acknowledged lines; "
            "restart the daemon to continue with the rest"
        )

    def _check_open(self) -> None:
        if self._closed:
            raise self._closing()

    def _closing(self) -> StorageError:
        return StorageError(f"{shown(self.path)} is closed: try again when it is open")


def _copy_bytes(disk: Disk, source: int, target: int, start: int, end: int) -> None:
    if start < end:
        write_all(disk, target, read_exactly(disk, source, end - start, start))


async def _fail_with(error: Exception) -> None:
    raise error


async def _after(seconds: float, proceed: Callable[[], None]) -> None:
    await trio.sleep(seconds)
    proceed()


def _again(error: StorageError) -> StorageError:
    # Each caller gets its own exception: a shared one would collect the tracebacks of all.
    kind = type(error) if isinstance(error, LimitReached) else StorageError
    return kind(*error.args)
