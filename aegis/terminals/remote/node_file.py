"""``nodes.json``: what is remembered of the hosts that joined, on disk."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import structlog
import trio

from actors import describe
from aegis.errors import StartupError, StorageError
from aegis.journal.disk import (
    Disk,
    make_directory,
    read_file,
    replace_file,
    storage_error,
    sync_found,
)
from aegis.journal.flusher import Flusher
from aegis.names import shorten
from aegis.terminals.aside import set_aside
from aegis.terminals.remote.node_map import (
    DamagedNodes,
    NewerNodes,
    NodeMap,
    decode_nodes,
    encode_nodes,
)

log = structlog.get_logger("aegis.terminals")

MAX_NODES_BYTES = 64 * 1024 * 1024


class NodeFile:
    """The file at ``path`` with what ``nodes`` holds. Without a path nothing is kept.

    Changes that come while it is being written share the next writing.
    """

    def __init__(self, path: Path | None, flusher: Flusher, nodes: NodeMap) -> None:
        self.nodes = nodes
        self._path = path
        self._flusher = flusher
        self._changes = 0
        self._changes_saved = 0
        self._saving = trio.Lock()

    @classmethod
    async def open(cls, path: Path | None, flusher: Flusher) -> NodeFile:
        """Read the file; one that is damaged is set aside.

        Raises ``StartupError`` if it cannot be read, or if a newer aegis-actors wrote it.
        """
        if path is None:
            return cls(None, flusher, NodeMap())
        return cls(path, flusher, await flusher.call(partial(_load, flusher.disk, path)))

    async def save(self) -> None:
        """Return once every change made until now is durable. Raises ``StorageError``."""
        self._changes += 1
        change = self._changes
        async with self._saving:
            if self._path is not None and self._changes_saved < change:
                await self._write(self._path)

    async def save_soon(self) -> None:
        """Save; should the disk refuse, the next change is saved with this one."""
        try:
            await self.save()
        except StorageError as error:
            log.warning("nodes not written", why=describe(error))

    async def _write(self, path: Path) -> None:
        changes = self._changes
        content = encode_nodes(self.nodes, self._flusher.disk.seal(path))
        try:
            await self._flusher.call(partial(_store, self._flusher.disk, path, content))
        except OSError as error:
            raise storage_error("write", path, error) from error
        self._changes_saved = changes


def _load(disk: Disk, path: Path) -> NodeMap:
    try:
        data = read_file(disk, path, max_bytes=MAX_NODES_BYTES)
        if data is None:
            return NodeMap()
        try:
            nodes = decode_nodes(data, disk.seal(path))
        except DamagedNodes as damage:
            set_aside(disk, path, data, str(damage))
            return NodeMap()
        sync_found(disk, path)
    except NewerNodes as newer:
        raise StartupError(
            f"{path} is of version {shorten(str(newer), 20)}, made by a newer aegis-actors: "
            "upgrade this one"
        ) from None
    except OSError as error:
        raise StartupError(
            f"cannot read {path}: {error.strerror}; it names the terminals of other hosts: put it "
            "right, or move it away to start without them"
        ) from error
    return nodes


def _store(disk: Disk, path: Path, content: bytes) -> None:
    make_directory(disk, path.parent)
    replace_file(disk, path, [content])
