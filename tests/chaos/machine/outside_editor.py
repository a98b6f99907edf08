"""``OutsideEditor``: another program that edits files of a simulated disk, as editors do.

It reads the whole file, adds a line to it, and writes it back: into a new file that it renames over
the old one, or in place. Most editors sync what they wrote, some do not. A kill of the daemon does
not end it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

import attrs
import trio

from tests.chaos.machine.disk_model import DiskModel
from tests.chaos.machine.open_file import OpenMode

MOST_BYTES = 2**20

READ, WRITE = OpenMode(), OpenMode(write=True)
NEW = OpenMode(write=True, create=True, truncate=True)


@attrs.frozen
class OutsideEditor:
    """A program that edits the file ``path`` of the disk ``model``.

    Unless it ``syncs``, a loss of power may leave an older file, an empty one, or zeros.
    """

    model: DiskModel
    path: str
    syncs: bool = True

    def text(self) -> str | None:
        """Return the text of the file; None if it does not exist."""
        try:
            fd = self.model.open(self.path, READ, is_outside=True)
        except FileNotFoundError:
            return None
        data = self.model.pread(fd, MOST_BYTES, 0)
        self.model.close(fd)
        return data.decode(errors="replace")

    def replace(self, text: str) -> None:
        """Write the text into a new file, and rename it over the old one."""
        fresh = f"{self.path}~"
        fd = self.model.open(fresh, NEW, is_outside=True)
        self._write(fd, text)
        self.model.rename(fresh, self.path, is_outside=True)
        fd = self.model.open(
            posixpath.dirname(self.path), OpenMode(directory=True), is_outside=True
        )
        self._sync(fd)
        self.model.close(fd)

    async def write_slowly(
        self, text: Callable[[], str], seconds: float, made: Callable[[], object] = lambda: None
    ) -> None:
        """Write ``text()`` in place, with the file open for some time before and after.

        ``made`` is called once it is written. The edit ends at once if the run ends meanwhile.
        Nothing is written if another editor has replaced the file meanwhile.
        """
        fd = self.model.open(self.path, WRITE, is_outside=True)
        try:
            await trio.sleep(seconds / 2)
            if self.model.is_replaced_outside(fd):
                return
            data = text().encode()
            self.model.ftruncate(fd, 0)
            self.model.write(fd, data)
            made()
            try:
                await trio.sleep(seconds / 2)
            finally:
                self._sync(fd)
        finally:
            self.model.close(fd)

    def _write(self, fd: int, text: str) -> None:
        self.model.write(fd, text.encode())
        self._sync(fd)
        self.model.close(fd)

    def _sync(self, fd: int) -> None:
        if self.syncs:
            self.model.end_sync(self.model.begin_sync(fd))


def repaired(text: str | None) -> str | None:
    """Return the text without the zeros that a loss of power left, as a person would repair it."""
    return None if text is None else text.replace("\0", "")


def with_line(text: str | None, section: str, line: str) -> str:
    """Return the text with a line more in a section, which is added if it is new."""
    lines = (text or "").split("\n")
    heading = f"## {section}"
    if heading not in lines:
        return f"{(text or '').rstrip()}\n\n{heading}\n\n{line}\n".lstrip("\n")
    place = lines.index(heading) + 1
    while place < len(lines) and not lines[place].startswith("## "):
        place += 1
    while not lines[place - 1].strip():
        place -= 1
    return "\n".join(
        [*lines[:place], *([""] if lines[place - 1] == heading else []), line, *lines[place:]]
    )
