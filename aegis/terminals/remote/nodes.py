"""The hosts that joined and the names of their terminals, in memory and in ``nodes.json``.

The file keeps names reserved while a host cannot be reached:

    {
     "version": 1,
     "nodes": [{"name": "gpu1", "since": "…Z", "open": [TerminalInfo, …], "closed": ["old"]}]
    }
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio

from actors import describe
from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.errors import StartupError, StorageError
from aegis.journal.disk import (
    Disk,
    make_directory,
    read_file,
    replace_file,
    storage_errors,
    sync_found,
)
from aegis.journal.flusher import Flusher
from aegis.names import shorten
from aegis.protocol.naming import is_name, name_key
from aegis.protocol.nodes import TerminalNames
from aegis.protocol.terminals import TerminalInfo
from aegis.state.sealing import Seal, document_fits, sealed_document
from aegis.terminals.quarantine import quarantine

log = structlog.get_logger("aegis.terminals")

MAX_NODES_BYTES = 64 * 1024 * 1024

NODES_VERSION = 1

MOST_NODES = 256
"""The most hosts that are stored; the terminals of a further one are known while it is up."""

MOST_CLOSED = 10_000
"""The most names of closed terminals that are stored for one host."""

MAX_CWD_CHARS = 1024
"""A longer directory is not stored."""


class DamagedNodes(ValueError):
    """The file is damaged; the text is a short reason."""


class NewerNodes(ValueError):
    """The file was written by a newer version of aegis-actors; the text is that version."""


@attrs.define
class KnownHost:
    """One host and its terminals; ``open`` and ``closed`` are by the keys of names.

    ``since``: when the host was last lost (UTC); None if that is not known.
    """

    name: str
    since: str | None = None
    open: dict[str, TerminalInfo] = attrs.field(factory=dict)
    closed: dict[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Holder:
    """The host of a terminal, and whether the terminal is open there."""

    node: str
    is_open: bool


class NodeMap:
    """The hosts, in the order in which they first joined.

    If several hosts have a name, it belongs to the first one where it is open, else to the first.
    """

    def __init__(self, nodes: Iterable[KnownHost] = ()) -> None:
        self._nodes = {name_key(each.name): each for each in nodes}

    def __iter__(self) -> Iterator[KnownHost]:
        return iter(list(self._nodes.values()))

    def find(self, node: str) -> KnownHost | None:
        """Return the host, if it is known."""
        return self._nodes.get(name_key(node))

    def holder(self, name: str) -> Holder | None:
        """Return the host of the terminal ``name``; None if no known host has it."""
        key = name_key(name)
        for each in self._nodes.values():
            if key in each.open:
                return Holder(each.name, is_open=True)
        for each in self._nodes.values():
            if key in each.closed:
                return Holder(each.name, is_open=False)
        return None

    def learned(self, node: str, names: TerminalNames) -> None:
        """Replace the terminals of the host."""
        known = self._node(node)
        known.open = {name_key(info.name): info for info in names.open}
        closed = {name_key(name): name for name in names.closed if is_name(name)}
        known.closed = dict(list(closed.items())[:MOST_CLOSED])

    def seen_open(self, node: str, infos: Iterable[TerminalInfo]) -> None:
        """Replace the open terminals of the host; those that were open before are closed."""
        known = self._node(node)
        gone = {key: info.name for key, info in known.open.items()}
        known.open = {name_key(info.name): info for info in infos}
        known.closed = {
            key: name for key, name in {**known.closed, **gone}.items() if key not in known.open
        }

    def opened(self, node: str, info: TerminalInfo) -> None:
        """Record that a terminal of the host is open."""
        known, key = self._node(node), name_key(info.name)
        known.open[key] = info
        known.closed.pop(key, None)

    def closed(self, node: str, name: str) -> None:
        """Record that a terminal of the host is closed, or that its name is reserved there."""
        known, key = self._node(node), name_key(name)
        known.open.pop(key, None)
        known.closed[key] = name

    def purged(self, node: str, name: str) -> None:
        """Record that the host has no terminal of that name."""
        known, key = self._node(node), name_key(name)
        known.open.pop(key, None)
        known.closed.pop(key, None)

    def joined(self, node: str) -> None:
        """Record that the host is reachable."""
        self._node(node).since = None

    def lost(self, node: str, since: str) -> None:
        """Record that the host cannot be reached since ``since``."""
        self._node(node).since = since

    def forget(self, node: str) -> KnownHost | None:
        """Remove the host; return what was known of it."""
        return self._nodes.pop(name_key(node), None)

    def restore(self, node: KnownHost) -> None:
        """Add a removed host again."""
        self._nodes[name_key(node.name)] = node

    def _node(self, node: str) -> KnownHost:
        return self._nodes.setdefault(name_key(node), KnownHost(node))


def encode_nodes(nodes: NodeMap, seal: Seal | None = None) -> bytes:
    """Return the content of the file."""
    document = {
        "version": NODES_VERSION,
        "nodes": [_plain(each) for each in list(nodes)[:MOST_NODES]],
    }
    return (json.dumps(sealed_document(document, seal), indent=1) + "\n").encode()


def decode_nodes(data: bytes, seal: Seal | None = None) -> NodeMap:
    """Parse the content of the file. Raises ``DamagedNodes`` or ``NewerNodes``.

    An open terminal whose entry cannot be read, except for its name, counts as closed.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise DamagedNodes("it is not JSON") from None
    version = document.get("version") if isinstance(document, dict) else None
    if type(version) is not int:
        raise DamagedNodes("it does not say its version")
    if version > NODES_VERSION:
        raise NewerNodes(str(version))
    if not document_fits(document, seal):
        raise DamagedNodes("it was not written by a daemon of this state")
    nodes = document.get("nodes")
    if not isinstance(nodes, list):
        raise DamagedNodes("it does not list nodes")
    return NodeMap(map(_known_host, filter(_is_node, nodes)))


def _plain(node: KnownHost) -> dict[str, object]:
    return {
        "name": node.name,
        "since": node.since,
        "open": [unstructure(_kept(info)) for info in node.open.values()],
        "closed": sorted(node.closed.values())[:MOST_CLOSED],
    }


def _kept(info: TerminalInfo) -> TerminalInfo:
    """Return the stored part of an entry: what is still true when the host returns."""
    cwd = info.cwd if info.cwd is None or len(info.cwd) <= MAX_CWD_CHARS else None
    return attrs.evolve(info, pid=None, subscribers=[], cwd=cwd)


def _is_node(fields: object) -> bool:
    match fields:
        case {"name": str(name), "open": list(), "closed": list()}:
            return is_name(name)
        case _:
            return False


def _known_host(fields: Mapping[str, Any]) -> KnownHost:
    since = fields.get("since")
    node = KnownHost(fields["name"], since if isinstance(since, str) else None)
    names = [name for name in fields["closed"] if isinstance(name, str) and is_name(name)]
    node.closed = {name_key(name): name for name in names}
    for each in fields["open"]:
        try:
            info = structure(TerminalInfo, each)
        except CodecError:
            name = each.get("name") if isinstance(each, dict) else None
            if isinstance(name, str) and is_name(name):
                node.closed[name_key(name)] = name
            continue
        if is_name(info.name):
            node.open[name_key(info.name)] = info
            node.closed.pop(name_key(info.name), None)
    return node


# The file.


class NodeFile:
    """The file at ``path`` with the content of ``nodes``. Without a path nothing is stored.

    Changes during a write are written together afterwards.
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
        """Read the file; a damaged one is quarantined.

        Raises ``StartupError`` if it cannot be read, or if a newer aegis-actors wrote it.
        """
        if path is None:
            return cls(None, flusher, NodeMap())
        return cls(path, flusher, await flusher.call(partial(_load, flusher.disk, path)))

    async def save(self) -> None:
        """Return once every change so far is durable. Raises ``StorageError``."""
        self._changes += 1
        change = self._changes
        async with self._saving:
            if self._path is not None and self._changes_saved < change:
                await self._write(self._path)

    async def save_soon(self) -> None:
        """Save; if the disk refuses, the next save includes this change."""
        try:
            await self.save()
        except StorageError as error:
            log.warning("nodes not written", why=describe(error))

    async def _write(self, path: Path) -> None:
        changes = self._changes
        content = encode_nodes(self.nodes, self._flusher.disk.seal(path))
        with storage_errors("write", path):
            await self._flusher.call(partial(_store, self._flusher.disk, path, content))
        self._changes_saved = changes


def _load(disk: Disk, path: Path) -> NodeMap:
    try:
        data = read_file(disk, path, max_bytes=MAX_NODES_BYTES)
        if data is None:
            return NodeMap()
        try:
            nodes = decode_nodes(data, disk.seal(path))
        except DamagedNodes as damage:
            quarantine(disk, path, data, str(damage))
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
