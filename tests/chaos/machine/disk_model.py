"""A simulated disk: directories, files, descriptors, and the images after a power loss. Pure.

Every operation does to the cache what Linux does, errors included, and is remembered until it is
synced. ``docs/explanation/disk-model.md`` has the rules and their sources; the images that a crash
may leave are made in ``disk_images.py``.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

import attrs

from tests.chaos.machine.file_content import FailedSync, FileContent, Resize, Write
from tests.chaos.machine.open_file import OpenFile, OpenMode

ROOT = 0
"""The number of the root directory."""

Entries = dict[str, int]
"""The names in a directory, with the numbers of their files or directories."""

Image = Mapping[str, bytes | None]
"""A disk at rest: absolute paths, with the content of a file or None for a directory."""


@attrs.frozen
class EntryChange:
    """Names that were set to a file or directory, or removed (None): all of them or none.

    Durable as soon as one of the directories is synced.
    """

    sets: tuple[tuple[int, str, int | None], ...]

    def touches(self, directory: int) -> bool:
        """Return whether it changes names of this directory."""
        return any(each == directory for each, _, _ in self.sets)

    def follows(self, other: EntryChange) -> bool:
        """Return whether both change the same name."""
        mine = {(directory, name) for directory, name, _ in self.sets}
        return any((directory, name) in mine for directory, name, _ in other.sets)

    def apply(self, directories: Mapping[int, Entries]) -> None:
        for directory, name, number in self.sets:
            if number is None:
                directories[directory].pop(name, None)
            else:
                directories[directory][name] = number


@attrs.frozen
class SyncTicket:
    """A sync of a file in progress: it covers the changes up to ``mark``."""

    number: int
    mark: int


class DiskModel:
    """A disk with absolute paths, ``/`` between names. Operations may raise ``OSError``."""

    def __init__(self) -> None:
        self.files: dict[int, FileContent] = {}
        self.directories: dict[int, Entries] = {ROOT: {}}
        """The names in the cache, by the number of the directory."""
        self.medium: dict[int, Entries] = {ROOT: {}}
        """The names that are surely on the medium."""
        self.changes: list[EntryChange] = []
        """Changes of names that may be on the medium or not, in their order."""
        self._open: dict[int, OpenFile] = {}
        self._replaced_outside: set[int] = set()
        self._next_number = ROOT
        self._next_fd = 2

    @classmethod
    def of(cls, image: Image) -> DiskModel:
        """Return a disk with ``image``, all of it on the medium."""
        model = cls()
        for path in sorted(image):
            content = image[path]
            if path == "/":
                continue
            if content is None:
                model.mkdir(path)
            else:
                directory, name = model._parent(path)
                model._enter(directory, name, model._new_file(content))
        model.sync_all()
        return model

    # Descriptors.

    @property
    def open_count(self) -> int:
        """The number of open descriptors."""
        return len(self._open)

    def open_paths(self) -> list[str]:
        """Return a path for each descriptor; empty where no name leads to the file."""
        paths = {number: path for path, number in _paths(self.directories)}
        return [paths.get(file.number, "") for file in self._open.values()]

    def open(self, path: str, mode: OpenMode, *, is_outside: bool = False) -> int:
        """Open a descriptor; see ``OpenMode``. ``is_outside``: another program opens it."""
        directory, name = self._parent(path)
        number = directory if name == "" else self.directories[directory].get(name)
        if number is None:
            number = self._create(directory, name, mode)
        elif mode.create and mode.exclusive:
            _fail(errno.EEXIST)
        elif number in self.directories:
            if mode.write or mode.create:
                _fail(errno.EISDIR)
        elif mode.directory:
            _fail(errno.ENOTDIR)
        elif mode.truncate:
            self._resize(number, 0)
        return self._descriptor(OpenFile(number, mode, is_outside=is_outside))

    def close(self, fd: int) -> None:
        self._file(fd)
        del self._open[fd]

    def close_all(self) -> None:
        """Close the descriptors of a process that ended; other programs keep theirs."""
        self._open = {fd: file for fd, file in self._open.items() if file.is_outside}

    def dup(self, fd: int) -> int:
        """Return a second descriptor of the same open file."""
        return self._descriptor(self._file(fd))

    def size(self, fd: int) -> int:
        """Return the length of the file; 0 for a directory."""
        content = self.files.get(self._file(fd).number)
        return 0 if content is None else len(content.cached)

    def is_written_outside(self, fd: int) -> bool:
        """Return whether another program has the file open for writing."""
        number = self._file(fd).number
        return any(
            file.number == number and file.is_outside and file.mode.write
            for file in self._open.values()
        )

    def is_replaced_outside(self, fd: int) -> bool:
        """Return whether another program has renamed a file over the open one."""
        return self._file(fd).number in self._replaced_outside

    def is_removed(self, fd: int) -> bool:
        """Return whether no name leads to the open file."""
        number = self._file(fd).number
        return number != ROOT and not any(
            number in entries.values() for entries in self.directories.values()
        )

    # Data.

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """Return up to ``size`` bytes from ``offset`` on."""
        file = self._file(fd)
        if not file.mode.read:
            _fail(errno.EBADF)
        return bytes(self._content(file).cached[offset : offset + size])

    def write(self, fd: int, data: bytes) -> int:
        """Write at the position of the open file, or at the end where it was opened to append."""
        file = self._writable(fd)
        content = self._content(file)
        offset = len(content.cached) if file.mode.append else file.position
        content.change(Write(offset, data))
        file.position = offset + len(data)
        return len(data)

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """Write at ``offset``; as Linux does, at the end where the file was opened to append."""
        file = self._writable(fd)
        content = self._content(file)
        content.change(Write(len(content.cached) if file.mode.append else offset, data))
        return len(data)

    def ftruncate(self, fd: int, length: int) -> None:
        file = self._file(fd)
        if not file.mode.write:
            _fail(errno.EINVAL)
        self._resize(file.number, length)

    # Names.

    def mkdir(self, path: str) -> None:
        directory, name = self._parent(path)
        if name == "" or name in self.directories[directory]:
            _fail(errno.EEXIST)
        number = self._new_number()
        self.directories[number], self.medium[number] = {}, {}
        self._enter(directory, name, number)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        directory, name = self._parent(path)
        number = self._entry(directory, name)
        if number not in self.directories:
            _fail(errno.ENOTDIR)
        if self.directories[number]:
            _fail(errno.ENOTEMPTY)
        self._enter(directory, name, None)

    def unlink(self, path: str) -> None:
        """Remove the name of a file."""
        directory, name = self._parent(path)
        if self._entry(directory, name) in self.directories:
            _fail(errno.EISDIR)
        self._enter(directory, name, None)

    def link(self, old: str, new: str) -> None:
        """Give a file a second name."""
        directory, name = self._parent(old)
        number = self._entry(directory, name)
        to_directory, to_name = self._parent(new)
        if to_name == "" or to_name in self.directories[to_directory]:
            _fail(errno.EEXIST)
        if number in self.directories:
            _fail(errno.EPERM)
        self._enter(to_directory, to_name, number)

    def rename(self, old: str, new: str, *, is_outside: bool = False) -> None:
        """Rename ``old`` to ``new``, and replace a file of that name."""
        directory, name = self._parent(old)
        to_directory, to_name = self._parent(new)
        number = self._entry(directory, name)
        if number in self.directories and number in self._line_of(to_directory):
            _fail(errno.EINVAL)
        if to_name == "":
            _fail(errno.EBUSY)
        replaced = self.directories[to_directory].get(to_name)
        if replaced == number:
            return
        self._check_replaceable(number, replaced, directory)
        if is_outside and replaced is not None:
            self._replaced_outside.add(replaced)
        self._change(EntryChange(((directory, name, None), (to_directory, to_name, number))))

    def rename_new(self, old: str, new: str) -> None:
        """Rename a file, but replace none."""
        before, (directory, name) = self._parent(old), self._parent(new)
        if name == "":
            _fail(errno.EEXIST)
        number = self._entry(*before)
        if name in self.directories[directory]:
            _fail(errno.EEXIST)
        if number in self.directories and number in self._line_of(directory):
            _fail(errno.EPERM)  # EINVAL of the rename, then this of the link that replaces it
        self.rename(old, new)

    def exchange(self, one: str, other: str) -> None:
        """Exchange two names in one step."""
        (directory, name), (to_directory, to_name) = self._parent(one), self._parent(other)
        number, to_number = self._entry(directory, name), self._entry(to_directory, to_name)
        if number in self._line_of(to_directory) or to_number in self._line_of(directory):
            _fail(errno.EINVAL)
        if number != to_number:
            sets = ((directory, name, to_number), (to_directory, to_name, number))
            self._change(EntryChange(sets))

    def is_same(self, one: str, other: str) -> bool:
        """Return whether two names lead to one file; False if one of them does not exist."""
        try:
            return self._entry(*self._parent(one)) == self._entry(*self._parent(other))
        except FileNotFoundError:
            return False

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, in no order."""
        directory, name = self._parent(path)
        number = directory if name == "" else self._entry(directory, name)
        if number not in self.directories:
            _fail(errno.ENOTDIR)
        return list(self.directories[number])

    def is_directory(self, path: str) -> bool:
        """Return whether the path leads to a directory."""
        try:
            directory, name = self._parent(path)
        except OSError:
            return False
        return name == "" or self.directories[directory].get(name) in self.directories

    # Syncs.

    def begin_sync(self, fd: int) -> SyncTicket:
        """Begin a sync: later changes may not be covered."""
        number = self._file(fd).number
        content = self.files.get(number)
        return SyncTicket(number, 0 if content is None else content.mark)

    def end_sync(self, ticket: SyncTicket) -> None:
        """End a sync with success. The sync of a directory makes all its names durable."""
        if ticket.number in self.directories:
            self._sync_entries(ticket.number)
        else:
            self.files[ticket.number].settle(ticket.mark)

    def fail_sync(self, ticket: SyncTicket, fate: FailedSync) -> None:
        """End a sync with an error; ``fate`` is the effect on the pages of a file."""
        if ticket.number in self.files:
            self.files[ticket.number].fail(fate)

    def sync_all(self) -> None:
        """Put everything on the medium."""
        for content in self.files.values():
            content.settle(content.mark)
        for change in self.changes:
            change.apply(self.medium)
        self.changes.clear()

    def _sync_entries(self, directory: int) -> None:
        for change in self.changes:
            if change.touches(directory):
                change.apply(self.medium)
        self.changes = [change for change in self.changes if not change.touches(directory)]

    # Internals.

    def _parent(self, path: str) -> tuple[int, str]:
        """Return the directory of the last name of the path, and that name; "" for the root."""
        *above, name = path.strip("/").split("/")
        number = ROOT
        for each in above:
            number = self._entry(number, each)
            if number not in self.directories:
                _fail(errno.ENOTDIR)
        return number, name

    def _entry(self, directory: int, name: str) -> int:
        number = self.directories[directory].get(name)
        if number is None:
            _fail(errno.EBUSY if name == "" else errno.ENOENT)
        return number

    def _line_of(self, directory: int) -> set[int]:
        """Return the directory and its ancestors."""
        found = {directory}
        while directory != ROOT:
            directory = next(
                above for above, names in self.directories.items() if directory in names.values()
            )
            found.add(directory)
        return found

    def _check_replaceable(self, number: int, replaced: int | None, directory: int) -> None:
        if replaced is None:
            return
        if replaced in self.directories and replaced in self._line_of(directory):
            _fail(errno.ENOTEMPTY)
        if number in self.directories and replaced not in self.directories:
            _fail(errno.ENOTDIR)
        if number not in self.directories and replaced in self.directories:
            _fail(errno.EISDIR)
        if self.directories.get(replaced):
            _fail(errno.ENOTEMPTY)

    def _create(self, directory: int, name: str, mode: OpenMode) -> int:
        if not mode.create:
            _fail(errno.ENOENT)
        number = self._new_file(b"")
        self._enter(directory, name, number)
        return number

    def _new_file(self, content: bytes) -> int:
        number = self._new_number()
        self.files[number] = FileContent(content)
        return number

    def _new_number(self) -> int:
        self._next_number += 1
        return self._next_number

    def _descriptor(self, file: OpenFile) -> int:
        # Never a used number: so a use after close fails.
        self._next_fd += 1
        self._open[self._next_fd] = file
        return self._next_fd

    def _file(self, fd: int) -> OpenFile:
        file = self._open.get(fd)
        return _fail(errno.EBADF) if file is None else file

    def _writable(self, fd: int) -> OpenFile:
        file = self._file(fd)
        return file if file.mode.write else _fail(errno.EBADF)

    def _content(self, file: OpenFile) -> FileContent:
        content = self.files.get(file.number)
        return _fail(errno.EISDIR) if content is None else content

    def _resize(self, number: int, length: int) -> None:
        content = self.files[number]
        if len(content.cached) != length:
            content.change(Resize(length))

    def _enter(self, directory: int, name: str, number: int | None) -> None:
        self._change(EntryChange(((directory, name, number),)))

    def _change(self, change: EntryChange) -> None:
        change.apply(self.directories)
        self.changes.append(change)


def _paths(directories: Mapping[int, Entries]) -> Iterator[tuple[str, int]]:
    """Yield every path with its number, the root first."""
    waiting = [("", ROOT)]
    while waiting:
        path, number = waiting.pop()
        yield path or "/", number
        entries = directories.get(number, {})
        waiting += [(f"{path}/{name}", each) for name, each in entries.items()]


def image_of(
    directories: Mapping[int, Entries], content: Callable[[int], bytes]
) -> dict[str, bytes | None]:
    """Return the image of a tree of names; ``content`` returns that of a file by its number."""
    return {
        path: None if number in directories else content(number)
        for path, number in _paths(directories)
    }


def cached_image(model: DiskModel) -> dict[str, bytes | None]:
    """Return the content of the cache: it survives the end of a process, not that of the system."""
    return image_of(model.directories, lambda number: bytes(model.files[number].cached))


def _fail(code: int) -> NoReturn:
    raise OSError(code, errno.errorcode[code])
