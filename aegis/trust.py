"""The check that a state is this user's own, and taking over a state at the user's request.

A daemon calls ``examine`` before it writes anything, and ``adopt_state`` once it holds the root.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aegis.errors import StartupError
from aegis.journal.disk import OsDisk, read_exactly, replace_file
from aegis.journal.ledger import (
    MAX_LINE_BYTES,
    DamagedLine,
    ForgedLine,
    decode_line,
    pieces_backward,
    seal_line,
)
from aegis.journal.note import resealed_note
from aegis.journal.segment_names import segment_named
from aegis.path_text import path_of_text, text_of_path
from aegis.state.registration import WritableRegistry, claim_state, is_empty, register_state
from aegis.state.registry import (
    ForeignState,
    RegisteredState,
    RegistryError,
    StateRegistry,
    find_entry,
    is_same,
    read_state_id,
    seals_of,
)
from aegis.state.root import CONFIG_NAME, StatePaths, UntrustedState, check_directories
from aegis.state.sealing import (
    Seal,
    Seals,
    document_fits,
    opened_text,
    sealed_document,
    sealed_text,
)
from aegis.state.state_files import (
    check_directory,
    check_file,
    every_entry,
    open_safely,
    read_safely,
    write_safely,
)

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
BLOCK_BYTES = 1 << 20
MAX_DAMAGED = 100
"""The number of damaged lines at the end of a file that are skipped to find a whole line."""

MAX_SHOWN = 3

LINE_FIFO = "/.zdotdir/ask"
"""The end of the path of the only FIFO in a state (``aegis.terminals.hooks.zsh``)."""

VERSION = 1
"""The version of all documents; other versions are refused when they are read."""

_DOCUMENTS = {
    "keys.json": "operator",
    "nodes.json": "nodes",
    "pages.json": "pages",
    "place.json": "root",
    "workspace.json": "terminals",
}
"""The JSON documents, and the member that each must have beside a version.

A file without both members is ignored.
"""

_SHELL = {"shell.json": "sid"}
_TEXTS = ("node.key", "node.id", "push.key")
_NOTES = ("workspaces.json",)
_OF_TERMINALS = {
    "shell.json": "document",
    "meta.json": "lines",
    "ledger.jsonl": "lines",
    "in_flight.json": "note",
    "subscribers.json": "note",
}
_OF_WORKFLOWS = {"meta.json": "lines", "ledger.jsonl": "lines"}
_OF_SESSIONS = dict.fromkeys(
    ("transcript.jsonl", "transcript.jsonl.1", "transcript.jsonl.next"), "lines"
)
_OF_CANVASES = dict.fromkeys(
    ("meta.json", "ledger.jsonl", "ledger.jsonl.1", "ledger.jsonl.next"), "lines"
)
_PREVIOUS = ".jsonl.1"
"""The end of the name of a ledger that was rotated; it has the codes of its earlier name."""

_OF_ITS_OWN = ("keys.json", "pages.json", "node.key", "node.id", "port", "push.key", "push.jsonl")
"""Files that a copy makes anew: with the keys it would be taken for the original."""

MAX_PACKED_BYTES = 1 << 30

MAX_PLACES = 32
"""The earlier paths of a root that are kept."""

_ARCHIVE, _ROWS = "archive", "rows.jsonl"
"""The directory of the archive, and the name for which all lines of one kind have their code."""

_LEDGER = "ledger.jsonl"
"""The name for which the lines of a terminal's segments have their code."""

_NEXT = ".next"
"""The suffix of a note that is not synced yet, and of the next file of a ledger."""


class NamedPrograms(NamedTuple):
    """The programs that a configuration names: sentences, and the digest of its content."""

    sentences: tuple[str, ...] = ()
    digest: str = ""


NO_PROGRAMS = NamedPrograms()


class StateLocation(NamedTuple):
    """The place of a state: the path of its root, as text, and the inode of its directory.

    ``earlier`` are the paths that the root had before, the newest first: an older version stored
    absolute directories.
    """

    root: str
    inode: int
    earlier: tuple[str, ...] = ()


UNKNOWN = "/"
"""The earlier root of a state that is taken over from an unknown place.

Every absolute directory that it stores is then below an earlier root, so that only directories
below the present root are used.
"""


def examine(state: StatePaths, *, trust: bool, programs: NamedPrograms) -> str | None:
    """Return the id of a state that is this user's own; None if it is to be registered.

    Nothing is written. Raises ``UntrustedState``, ``RegistryError``, ``StartupError`` for programs
    that were not trusted, ``OSError``.
    """
    directory, registry = str(state.directory), WritableRegistry.of_user()
    try:
        check_directories(str(state.root))
        check_owners(state)
        state_id, entry = find_entry(registry, str(state.root), directory)
    except ForeignState as foreign:
        if not trust and not is_empty(directory):
            raise UntrustedState(directory, str(foreign)) from None
        state_id, entry = None, None
        registry.check_usable()
    known = None if entry is None else entry.configuration
    if programs.sentences and not trust and programs.digest != known:
        raise StartupError(
            f"{state.root / CONFIG_NAME} and the plugins name programs to run, and you have not "
            f"trusted them as they are now: {'; '.join(programs.sentences)}. If that is right, "
            "start once with: "
            "aegis-actors up --trust"
        )
    return state_id


def adopt_state(
    state: StatePaths, state_id: str | None, *, trust: bool, programs: NamedPrograms
) -> tuple[Seals, tuple[str, ...]]:
    """Register the state for this user if it is not registered yet; check each of its files.

    Returns its seals, and the earlier paths of its root. The caller holds the root. Raises
    ``UntrustedState``, ``RegistryError``, ``OSError``.
    """
    registry = WritableRegistry.of_user()
    digest = programs.digest if programs.sentences else None
    if trust and (state_id is None or registry.key() is None):
        _keep_place(state, registry)
        seals = register_state(state, registry, digest)
    elif state_id is None:
        seals = claim_state(state)
    else:
        seals = seals_of(registry, state_id, str(state.directory))
    if trust:
        take_over(state, seals)
    forged = forged_files(state, seals)
    if forged:
        raise UntrustedState(
            str(state.directory), f"a daemon of yours did not write {shown(forged)} as it is now"
        )
    # The earlier path is in the state before the registry forgets it.
    place = _settle_place(state, seals, registry.entry(seals.state_id))
    if state_id is not None:
        _remember(registry, state, seals.state_id, digest if trust else None)
    return seals, place.earlier


def _keep_place(state: StatePaths, registry: WritableRegistry) -> None:
    """Write down where a state was that is taken over, before it gets an id of this place.

    May be repeated after a kill: an earlier note stays.
    """
    directory = str(state.directory)
    if is_empty(directory) or _read_place(state) is not None:
        return
    known = read_state_id(directory)
    entry = None if known is None else registry.entry(known)
    if entry is None:
        place = StateLocation(UNKNOWN, state.directory.stat().st_ino)
    else:
        place = StateLocation(text_of_path(entry.root), entry.inode)
    _write_place(state, place)


def _settle_place(state: StatePaths, seals: Seals, entry: RegisteredState | None) -> StateLocation:
    """Return the place of a state that is in use here from now on, and store it if it changed."""
    root, inode = text_of_path(state.root), state.directory.stat().st_ino
    known = _read_place(state, seals)
    before = known or StateLocation(root if entry is None else text_of_path(entry.root), inode)
    if before.root == root or is_same(path_of_text(before.root), str(state.directory)):
        place = before._replace(inode=inode)
    else:
        paths = dict.fromkeys((before.root, *before.earlier))
        place = StateLocation(
            root, inode, tuple(each for each in paths if each != root)[:MAX_PLACES]
        )
    if place != known:
        _write_place(state, place, seals)
    return place


def _read_place(state: StatePaths, seals: Seals | None = None) -> StateLocation | None:
    """Return the stored place; None without a valid one. ``seals``: it must be signed."""
    document = _parsed(read_safely(str(state.place), MAX_DOCUMENT_BYTES) or b"")
    seal = None if seals is None else seals.of(str(state.place))
    match document:
        case {"version": 1, "root": str(root), "inode": int(inode), "earlier": list(earlier)}:
            if document_fits(document, seal):
                return StateLocation(root, inode, tuple(map(str, earlier)))
    return None


def _write_place(state: StatePaths, place: StateLocation, seals: Seals | None = None) -> None:
    seal = None if seals is None else seals.of(str(state.place))
    document = sealed_document({"version": VERSION, **place._asdict()}, seal)
    write_safely(str(state.place), json.dumps(document, indent=1).encode() + b"\n", durable=True)


def _remember(
    registry: WritableRegistry, state: StatePaths, state_id: str, digest: str | None
) -> None:
    """Store the current path of the root, and which configuration is trusted."""
    known = registry.entry(state_id)
    inode = state.directory.stat().st_ino
    kept = None if known is None else known.configuration
    root = str(state.root)
    if known is not None and known.root != root and is_same(known.root, str(state.directory)):
        root = known.root  # the same directory by another path
    projects = () if known is None else known.projects
    entry = RegisteredState(root, inode, digest or kept, projects)
    if entry != known:
        registry.enter(state_id, entry)


def trust_programs(state: StatePaths, digest: str) -> None:
    """Store the digest of what the user trusts from now on. Raises ``OSError``."""
    registry = WritableRegistry.of_user()
    try:
        state_id, entry = find_entry(registry, str(state.root), str(state.directory))
        registry.enter(state_id, entry._replace(configuration=digest))
    except (ForeignState, RegistryError) as error:
        raise OSError(errno.EPERM, str(error)) from error


MAX_PROJECTS = 256
"""The digests of trusted directories that are kept."""


def trusted_projects(state: StatePaths) -> tuple[str, ...]:
    """Return the digests of the directories whose settings agents may use. Raises ``OSError``."""
    try:
        _, entry = find_entry(StateRegistry.of_user(), str(state.root), str(state.directory))
    except (ForeignState, RegistryError) as error:
        raise OSError(errno.EPERM, str(error)) from error
    return tuple(entry.projects)


def trust_projects(state: StatePaths, digests: Sequence[str]) -> None:
    """Store the digests of directories whose settings agents may use. Raises ``OSError``."""
    registry = WritableRegistry.of_user()
    try:
        with registry.locked():
            state_id, entry = find_entry(registry, str(state.root), str(state.directory))
            others = [each for each in entry.projects if each not in digests]
            projects = (*others, *digests)[-MAX_PROJECTS:]
            registry.enter(state_id, entry._replace(projects=projects))
    except (ForeignState, RegistryError) as error:
        raise OSError(errno.EPERM, str(error)) from error


def check_owners(state: StatePaths) -> None:
    """Raise ``UnsafeFile`` unless each entry below the state's directory is this user's own.

    Allowed are directories that only this user may write to, regular files with one name, sockets,
    and the FIFO of a zsh; links are not allowed. Raises ``OSError``.
    """
    for entry in every_entry(str(state.directory)):
        try:
            found = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        if stat.S_ISDIR(found.st_mode):
            check_directory(entry.path, found)
        elif not _is_own_channel(entry.path, found):
            check_file(entry.path, found)


def _is_own_channel(path: str, found: os.stat_result) -> bool:
    """Return whether it is this user's socket, or FIFO through which a zsh is asked for its line.

    Neither stores data. A daemon that was killed leaves them behind.
    """
    is_channel = stat.S_ISSOCK(found.st_mode) or (
        stat.S_ISFIFO(found.st_mode) and path.endswith(LINE_FIFO)
    )
    return is_channel and found.st_uid == os.geteuid()


def forged_files(state: StatePaths, seals: Seals) -> list[str]:
    """Return the files with programs, keys or terminals that this state's daemon did not write.

    Damaged files are not included: they are not used. Of a ledger only the last whole line is
    checked, as each line is checked again when it is used. Raises ``OSError``.
    """
    return [
        os.path.relpath(path, state.directory)
        for path, kind in _signed_files(state)
        if _is_forged(path, kind, _seal(seals, path))
    ]


def take_over(state: StatePaths, seals: Seals) -> None:
    """Sign every file with these seals; remove the endpoint, which leads to another daemon.

    Of a copy remove too what only the original may have: its keys, its port, and the notes that
    name the processes of its shells. If it is killed it can be repeated: each file is replaced
    atomically. Raises ``OSError``.
    """
    disk = OsDisk()
    if os.path.lexists(state.endpoint):
        disk.unlink(state.endpoint)
    place = _read_place(state)
    if place is not None and place.inode != state.directory.stat().st_ino:
        notes = [f"{path}/shell.json" for path in _entries(str(state.terminals))]
        for path in (*(f"{state.directory}/{name}" for name in _OF_ITS_OWN), *notes):
            if os.path.lexists(path):
                disk.unlink(Path(path))
    for path, kind in _signed_files(state):
        seal = _seal(seals, path)
        if kind == "lines":
            _sign_lines(disk, path, seal)
        elif kind == "packed":
            _sign_packed(disk, path, seal)
        elif (content := _signed(path, kind, seal)) is not None:
            replace_file(disk, Path(path), [content])


def shown(files: list[str]) -> str:
    """Return the names of some of the files, and the number of the others."""
    more = f" and {len(files) - MAX_SHOWN} more" if len(files) > MAX_SHOWN else ""
    return ", ".join(files[:MAX_SHOWN]) + more


def _signed_files(state: StatePaths) -> Iterator[tuple[str, str]]:
    """Yield each file that carries a code, and its kind; skip a directory in place of a file."""
    for path, kind in _places(state):
        if os.path.lexists(path) and not os.path.isdir(path):  # noqa: PTH112
            yield path, kind


def _places(state: StatePaths) -> Iterator[tuple[str, str]]:
    for names, kind in ((_DOCUMENTS, "document"), (_TEXTS, "text"), (_NOTES, "note")):
        yield from _below(str(state.directory), dict.fromkeys(names, kind))
    for path in _entries(str(state.terminals)):
        if not os.path.basename(path).startswith("."):  # noqa: PTH119
            yield from _below(path, _OF_TERMINALS)
            segments = (each for each in _entries(path) if _is_segment(each))
            yield from ((each, "packed" if each.endswith(".gz") else "lines") for each in segments)
    for directory in (state.inboxes, state.queues, state.groups):
        ledgers = (path for path in _entries(str(directory)) if path.endswith(".jsonl"))
        yield from ((path, "lines") for path in ledgers)
    for kind in _entries(str(state.archive)):
        for path in _entries(kind):
            yield path, "packed" if path.endswith(".gz") else "lines"
    for path in _entries(str(state.workflows)):
        yield from _below(path, _OF_WORKFLOWS)
    for path in _entries(str(state.canvases)):
        yield from _below(path, _OF_CANVASES)
    yield str(state.requests), "lines"
    for suffix in ("", _NEXT):
        yield f"{state.push}{suffix}", "lines"
    for suffix in ("", ".1", _NEXT):
        yield f"{state.telegram}{suffix}", "lines"
    for name in ("sessions.jsonl", "worktrees.jsonl", "usage.jsonl"):
        yield f"{state.agents}/{name}", "lines"
    for path in _entries(str(state.agents)):
        yield from _below(path, _OF_SESSIONS)


def _is_segment(path: str) -> bool:
    return segment_named(Path(path).with_name(_LEDGER), os.path.basename(path)) is not None  # noqa: PTH119


def _below(directory: str, kinds: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, kind in kinds.items():
        path = f"{directory}/{name}"
        yield path, kind
        if kind == "note":
            yield path + _NEXT, kind


def _entries(directory: str) -> list[str]:
    try:
        return sorted(f"{directory}/{name}" for name in os.listdir(directory))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []


def _seal(seals: Seals, path: str) -> Seal:
    """Return the seal of a file; one that is renamed has the same codes under each name."""
    if path.endswith(_PREVIOUS):
        path = path.removesuffix(".1")
    directory = os.path.dirname(path)  # noqa: PTH120
    if directory.startswith(f"{seals.directory}/{_ARCHIVE}/"):
        path = f"{directory}/{_ROWS}"  # lines move from one file to another
    if _is_segment(path):
        path = f"{directory}/{_LEDGER}"
    return seals.of(path.removesuffix(_NEXT))


def _is_forged(path: str, kind: str, seal: Seal) -> bool:
    match kind:
        case "lines":
            return _last_line_is_forged(path, seal)
        case "packed":
            return False  # each line is checked when it is read, and there may be thousands
        case "note":
            return _note_is_forged(path, seal)
    data = read_safely(path, MAX_DOCUMENT_BYTES) or b""
    if kind == "text":
        return bool(data.strip(b"\0\n ")) and opened_text(data, seal) is None
    document = _parsed(data)
    if not isinstance(document, dict) or not _has_content(os.path.basename(path), document):  # noqa: PTH119
        return False
    return not document_fits(document, seal)


def _has_content(name: str, document: dict[str, Any]) -> bool:
    """Return whether a document of this name has content that would be used.

    Another version is refused with its own error, and a document without a version is damaged.
    """
    if name in _SHELL:
        return _SHELL[name] in document
    return _DOCUMENTS[name] in document and document.get("version") == VERSION


def _note_is_forged(path: str, seal: Seal) -> bool:
    data = read_safely(path, MAX_LINE_BYTES) or b""
    return any(_line_is_forged(line + b"\n", seal) for line in data.split(b"\n") if line.strip())


def _last_line_is_forged(path: str, seal: Seal) -> bool:
    disk = OsDisk()
    fd = open_safely(path, os.O_RDONLY)
    try:
        pieces = pieces_backward(lambda at, n: read_exactly(disk, fd, n, at), disk.size(fd))
        for number, piece in enumerate(pieces):
            if piece.whole and piece.data is not None:
                try:
                    decode_line(piece.data, seal)
                except ForgedLine:
                    return True
                except DamagedLine:
                    pass
                else:
                    return False
            if number >= MAX_DAMAGED:
                break
    finally:
        os.close(fd)
    return False


def _line_is_forged(line: bytes, seal: Seal) -> bool:
    try:
        decode_line(line.strip() + b"\n", seal)
    except ForgedLine:
        return True
    except DamagedLine:
        return False
    return False


def _signed(path: str, kind: str, seal: Seal) -> bytes | None:
    """Return the content of the file with its code; None if it is damaged."""
    if kind == "note":
        return resealed_note(read_safely(path, MAX_LINE_BYTES) or b"", seal)
    data = read_safely(path, MAX_DOCUMENT_BYTES) or b""
    if kind == "text":
        first, newline, _ = data.partition(b"\n")
        return sealed_text(first + newline, seal) if newline else None
    document = _parsed(data)
    if not isinstance(document, dict):
        return None
    return json.dumps(sealed_document(document, seal), indent=1).encode() + b"\n"


def _sign_lines(disk: OsDisk, path: str, seal: Seal) -> None:
    """Add a code to each line; write nothing if every line has its code."""
    fd = open_safely(path, os.O_RDONLY)
    try:
        if any(seal_line(line, seal) != line for line in _lines(fd)):
            os.lseek(fd, 0, os.SEEK_SET)
            replace_file(disk, Path(path), _blocks(seal_line(line, seal) for line in _lines(fd)))
    finally:
        os.close(fd)


def _packed_lines(path: str) -> list[bytes]:
    """Return the lines of a compressed file; none of a damaged one."""
    # Loaded only for a state with an archive: one-shot commands load this module.
    import gzip
    import zlib

    try:
        data = gzip.decompress(read_safely(path, MAX_PACKED_BYTES) or b"")
    except (EOFError, OSError, zlib.error):
        return []
    return data.splitlines(keepends=True)


def _sign_packed(disk: OsDisk, path: str, seal: Seal) -> None:
    """Add a code to each line of a compressed file; write nothing if every line has its code."""
    import gzip

    lines = _packed_lines(path)
    signed = [seal_line(line, seal) for line in lines]
    if signed != lines:
        replace_file(disk, Path(path), [gzip.compress(b"".join(signed), 6, mtime=0)])


def _lines(fd: int) -> Iterator[bytes]:
    """Yield the lines from the descriptor's position on; the last may be torn or incomplete."""
    rest = b""
    while block := os.read(fd, BLOCK_BYTES):
        *lines, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in lines)
        if len(rest) > MAX_LINE_BYTES:  # no line of this program is as long
            yield rest
            rest = b""
    if rest:
        yield rest


def _blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines joined into blocks, to save calls of the disk."""
    block: list[bytes] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= BLOCK_BYTES:
            yield b"".join(block)
            block, size = [], 0
    yield b"".join(block)


def _parsed(data: bytes) -> Any:
    """Return the parsed document; None if it is not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
