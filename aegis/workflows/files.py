"""``WorkflowFiles``: the directories of workflows: meta, ledger and log of each.

``meta.json`` is one line with a checksum and a code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import attrs
import structlog

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.errors import StorageError
from aegis.journal.appender import Appender
from aegis.journal.disk import (
    Disk,
    make_directory,
    read_file,
    remove_tree,
    replace_file,
    shown,
    storage_error,
    stored_names,
)
from aegis.journal.flusher import Flusher
from aegis.journal.folding import load
from aegis.journal.ledger import Append, DamagedLine, decode_line, encode_line, seal_line
from aegis.journal.line_writer import LineWriter
from aegis.workflows import faults
from aegis.workflows.events import Loaded
from aegis.workflows.ledger import Fold
from aegis.workflows.records import Workflow

log = structlog.get_logger("aegis.workflows")

META = "meta.json"
LEDGER = "ledger.jsonl"
LOG = "log.txt"

VERSION = 1

MAX_META_BYTES = 4 * 1024 * 1024


@attrs.define(kw_only=True)
class WorkflowFiles:
    """The files in ``directory``. ``synced`` and ``refused`` take the outcomes of lines."""

    directory: Path
    flusher: Flusher
    start_soon: Callable[..., object]
    synced: Callable[[int], None]
    refused: Callable[[str, str], None]
    _writers: dict[str, LineWriter] = attrs.field(factory=dict, init=False)
    _appenders: dict[str, Appender] = attrs.field(factory=dict, init=False)

    def close(self) -> None:
        """Close all ledgers."""
        for writer in self._writers.values():
            writer.close()

    def log_path(self, id_: str) -> Path:
        """Return the path of the log of a workflow."""
        return self.directory / id_ / LOG

    async def log(self, id_: str, size: int) -> str:
        """Return the end of the log of a workflow."""
        return await self.flusher.look(partial(_read_log, self.log_path(id_), size))

    async def exists(self) -> bool:
        """Return whether there ever was a workflow."""
        return await self.flusher.look(partial(self.flusher.disk.is_directory, self.directory))

    # Recovery.

    async def load(self) -> list[Loaded]:
        """Read all workflows, the oldest first. Raises ``StorageError``."""
        found = await self.flusher.look(self._metas)
        settled = [Loaded(workflow=each, is_marked=True) for each in found if each.is_settled]
        settled.sort(key=lambda each: each.workflow.ended or "")
        return [*settled, *[await self._loaded(each) for each in found if not each.is_settled]]

    async def _loaded(self, workflow: Workflow) -> Loaded:
        try:
            return await self.open(workflow)
        except StorageError as error:
            problem = f"its ledger cannot be read: {error}; start the daemon again then"
            return Loaded(workflow=workflow, problem=problem)

    def _metas(self) -> list[Workflow]:
        disk = self.flusher.disk
        return list(self._read(disk, stored_names(disk, self.directory)))

    def _read(self, disk: Disk, names: list[str]) -> Iterator[Workflow]:
        for name in names:
            directory = self.directory / name
            try:
                workflow = _read_meta(disk, directory)
            except OSError as error:
                raise storage_error("read", directory / META, error) from error
            if workflow is None or workflow.id != name:
                _remove(disk, directory, only_unstored=True)
            else:
                yield workflow

    # One workflow.

    async def store(self, workflow: Workflow) -> None:
        """Write the meta, durably, and open the ledger. Raises ``StorageError``."""
        directory = self.directory / workflow.id
        try:
            faults.META_BEFORE.hit(workflow.name)
            await self.flusher.call(partial(_write_meta, self.flusher.disk, directory, workflow))
        except OSError as error:
            raise storage_error("write", directory / META, error) from error
        await self._writer(workflow.id)

    async def open(self, workflow: Workflow) -> Loaded:
        """Open the ledger of a workflow, and read its journal. Raises ``StorageError``."""
        await self._writer(workflow.id)
        fold = await self.journal(workflow)
        return Loaded(workflow=fold.workflow, calls=fold.calls)

    async def journal(self, workflow: Workflow) -> Fold:
        """Return the journal of a workflow, which is open. Raises ``StorageError``."""
        path, end = self.directory / workflow.id / LEDGER, self._appenders[workflow.id].synced
        return await self.flusher.look(
            partial(load, self.flusher.disk, path, end, Fold(_at_start(workflow)))
        )

    def append(self, id_: str, append: Append) -> None:
        """Append a line to the ledger of a workflow, which is open."""
        self._writers[id_].append(append)

    def release(self, id_: str) -> None:
        """Close the ledger of a workflow."""
        writer = self._writers.pop(id_, None)
        self._appenders.pop(id_, None)
        if writer is not None:
            writer.close()

    async def drop(self, id_: str) -> None:
        """Remove the files of a workflow."""
        self.release(id_)
        await self.flusher.call(partial(_remove, self.flusher.disk, self.directory / id_))

    async def _writer(self, id_: str) -> None:
        if id_ in self._writers:
            return
        appender = await Appender.open(self.directory / id_ / LEDGER, self.flusher)
        self._appenders[id_] = appender
        self._writers[id_] = LineWriter(
            appender,
            self.start_soon,
            synced=self.synced,
            refused=partial(self.refused, id_),
            before=faults.APPEND_BEFORE.hit,
            after=faults.APPEND_AFTER.hit,
        )


def _at_start(workflow: Workflow) -> Workflow:
    """Return a workflow as it was before the first line of its ledger."""
    return Workflow(
        id=workflow.id,
        name=workflow.name,
        file=workflow.file,
        kwargs=workflow.kwargs,
        sender=workflow.sender,
        callback=workflow.callback,
        key=workflow.key,
        started=workflow.started,
    )


def _remove(disk: Disk, directory: Path, *, only_unstored: bool = False) -> None:
    """Remove the directory of a workflow; with ``only_unstored`` unless it has a meta."""
    with contextlib.suppress(OSError):
        if only_unstored and META in disk.list_directory(directory):
            return  # a damaged one is kept, for a person to look at
        remove_tree(disk, directory)


def _write_meta(disk: Disk, directory: Path, workflow: Workflow) -> None:
    """Write the meta of a workflow, durably. Raises ``OSError``."""
    make_directory(disk, directory)
    path = directory / META
    line = encode_line({"version": VERSION, "workflow": unstructure(workflow)})
    replace_file(disk, path, [seal_line(line, disk.seal(path))])


def _read_meta(disk: Disk, directory: Path) -> Workflow | None:
    """Return the workflow of a directory; None if it has none, or a damaged one, which is logged.

    Raises ``OSError``.
    """
    path = directory / META
    data = read_file(disk, path, max_bytes=MAX_META_BYTES)
    if data is None:
        return None  # the daemon ended before it was acknowledged
    try:
        fields = decode_line(data, disk.seal(path))
        return structure(Workflow, fields["workflow"])
    except (DamagedLine, CodecError, KeyError) as error:
        log.warning("workflow not read", file=shown(path), why=str(error))
        return None


def _read_log(path: Path, size: int) -> str:
    """Return the last ``size`` bytes of a log as text; empty without one."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - size))
            return file.read(size).decode("utf-8", "replace")
    except OSError:
        return ""
