"""One file of a simulated disk: its cached content, and its content on the medium. Pure.

A file has its content in the cache, which every read sees; the content that is surely on the
medium; and the changes since, in their order, any part of which may have reached the medium. After
a failed sync, the medium has one of several contents.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

PAGE_BYTES = 4096
"""The unit in which the kernel writes back: pages reach the medium in any order."""

ALL_CUTS_BYTES = 64
"""The longest write that is torn at each byte; a longer one is torn at chosen places."""

MAX_BASES = 8
"""The most possible contents after failed syncs; of more, the first and the last are kept."""


@attrs.frozen
class Write:
    """A write of ``data`` at ``offset``; a gap before it is zeros."""

    offset: int
    data: bytes


@attrs.frozen
class Resize:
    """A change of the length; added bytes are zeros."""

    length: int


Change = Write | Resize


class FailedSync(enum.Enum):
    """The effect of a failed sync on the pages that it was to write. All are legal."""

    DIRTY = "dirty"
    """The pages stay dirty: the next successful sync writes them."""
    CLEAN = "clean"
    """The pages count as written, and reads see them; none, all or the first half really is."""
    DROPPED = "dropped"
    """The pages are dropped: reads see the old content, at the new length."""


class FileContent:
    """The content of one file, in the cache and on the medium."""

    def __init__(self, content: bytes = b"") -> None:
        self.cached = bytearray(content)
        self.bases: tuple[bytes, ...] = (content,)
        """The contents of which one is surely on the medium; several after a failed sync."""
        self.changes: list[Change] = []
        self._dropped = 0

    @property
    def mark(self) -> int:
        """Return a number for this moment: ``settle`` covers the changes up to it."""
        return self._dropped + len(self.changes)

    def change(self, change: Change) -> None:
        """Carry out one change in the cache."""
        apply(self.cached, change)
        self.changes.append(change)

    def settle(self, mark: int) -> None:
        """End a successful sync that began at ``mark``."""
        count = max(0, mark - self._dropped)
        done = self.changes[:count]
        self._rest_on([applied(base, done) for base in self.bases], count)

    def fail(self, fate: FailedSync) -> None:
        """End a failed sync."""
        if fate is FailedSync.CLEAN:
            cuts = {0, len(self.changes) // 2, len(self.changes)}
            found = [
                applied(base, self.changes[:cut]) for cut in sorted(cuts) for base in self.bases
            ]
            self._rest_on(found, len(self.changes))
        elif fate is FailedSync.DROPPED:
            length = len(self.cached)
            self.cached[:] = applied(self.bases[0], [Resize(length)])
            self._rest_on([*self.bases, bytes(self.cached)], len(self.changes))

    def contents(self) -> list[bytes]:
        """Yield every content of the medium that a power loss now may leave, each once."""
        found = [content for base in self.bases for content in after_power_loss(base, self.changes)]
        return list(dict.fromkeys(found))

    def sample(self, choose: Callable[[int], int]) -> bytes:
        """Return one of ``contents``, without making them all; ``choose(n)`` picks one below n."""
        base = self.bases[choose(len(self.bases))]
        if not self.changes:
            return base
        match choose(4):
            case 0:
                return base
            case 1:
                return applied(base, self.changes)
            case 2:
                return self._torn(base, choose)
            case _:
                return _one_out_of_order(base, applied(base, self.changes), choose)

    def _torn(self, base: bytes, choose: Callable[[int], int]) -> bytes:
        """Return the content after some of the changes, the last of which may be torn."""
        index = choose(len(self.changes))
        last, found = self.changes[index], bytearray(applied(base, self.changes[:index]))
        places = cuts(last) if isinstance(last, Write) else []
        if isinstance(last, Write) and places:
            last = Write(last.offset, last.data[: places[choose(len(places))]])
        apply(found, last)
        return bytes(found)

    def _rest_on(self, bases: Iterable[bytes], count: int) -> None:
        self.bases = _few(list(dict.fromkeys(bases)))
        del self.changes[:count]
        self._dropped += count


def apply(content: bytearray, change: Change) -> None:
    """Return ``content`` after ``change``."""
    match change:
        case Write(offset, data):
            if data:
                content.extend(bytes(max(0, offset - len(content))))
                content[offset : offset + len(data)] = data
        case Resize(length):
            del content[length:]
            content.extend(bytes(length - len(content)))


def applied(base: bytes, changes: Iterable[Change]) -> bytes:
    """Return ``base`` after ``changes``."""
    content = bytearray(base)
    for change in changes:
        apply(content, change)
    return bytes(content)


def after_power_loss(base: bytes, changes: Sequence[Change]) -> Iterator[bytes]:
    """Yield the contents that a power loss may leave of ``base`` after unsynced changes.

    The changes up to some moment, also torn inside one write; the final length with the old bytes,
    or zeros, in the place of the new ones; and the final content without one of the changed pages,
    or with one of them alone. The same content may appear more than once.
    """
    yield base
    content = bytearray(base)
    for change in changes:
        if isinstance(change, Write):
            for cut in cuts(change):
                torn = bytearray(content)
                apply(torn, Write(change.offset, change.data[:cut]))
                yield bytes(torn)
        apply(content, change)
        yield bytes(content)
    if changes:
        yield from _out_of_order(base, bytes(content))


def cuts(write: Write) -> list[int]:
    """Return the lengths at which a write may be torn, the chosen ones of a long write.

    Chosen are the ends of lines and of pages with a byte more and less, the first byte, the last
    one, and the middle.
    """
    size = len(write.data)
    if size <= ALL_CUTS_BYTES:
        return list(range(1, size))
    lines = [at + 1 for at in range(size) if write.data[at] == ord("\n")]
    pages = list(range(PAGE_BYTES - write.offset % PAGE_BYTES, size, PAGE_BYTES))
    near = {edge + step for edge in (0, size, *lines, *pages) for step in (-1, 0, 1)}
    return sorted(cut for cut in near | {size // 2} if 0 < cut < size)


def _out_of_order(base: bytes, content: bytes) -> Iterator[bytes]:
    old = applied(base, [Resize(len(content))])
    yield old
    changed = _changed_pages(old, content)
    if len(changed) > 1:
        for page in changed:
            yield _with_page(content, old, page)
            yield _with_page(old, content, page)


def _one_out_of_order(base: bytes, content: bytes, choose: Callable[[int], int]) -> bytes:
    old = applied(base, [Resize(len(content))])
    changed = _changed_pages(old, content)
    picked = choose(2 * len(changed) + 1)
    if len(changed) < 2 or picked == 2 * len(changed):
        return old
    page = changed[picked // 2]
    return _with_page(content, old, page) if picked % 2 else _with_page(old, content, page)


def _changed_pages(old: bytes, content: bytes) -> list[int]:
    """Yield the offsets of the pages that differ between two contents of one length."""
    return [
        page
        for page in range(0, len(content), PAGE_BYTES)
        if old[page : page + PAGE_BYTES] != content[page : page + PAGE_BYTES]
    ]


def _with_page(content: bytes, other: bytes, page: int) -> bytes:
    """Return ``content`` with the page at that offset replaced by that of ``other``."""
    end = page + PAGE_BYTES
    return content[:page] + other[page:end] + content[end:]


def _few(bases: list[bytes]) -> tuple[bytes, ...]:
    return tuple(bases if len(bases) <= MAX_BASES else [*bases[: MAX_BASES - 1], bases[-1]])
