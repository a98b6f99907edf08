"""The model of a disk against the real one: the same calls, the same answers, the same files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from aegis.journal import exchange
from aegis.journal.disk import OsDisk
from tests.chaos.machine.disk_model import cached_image
from tests.chaos.machine.simulated_disk import SimulatedDisk

ANYWHERE = -1
"""The descriptor of no directory: all paths are absolute."""

NAMES = ["a", "b", "c"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
FLAGS = st.sampled_from(
    [
        os.O_RDONLY,
        os.O_RDONLY | os.O_DIRECTORY,
        os.O_RDWR,
        os.O_RDWR | os.O_CREAT,
        os.O_RDWR | os.O_CREAT | os.O_EXCL,
        os.O_RDWR | os.O_CREAT | os.O_TRUNC,
        os.O_RDWR | os.O_CREAT | os.O_APPEND,
        os.O_WRONLY | os.O_CREAT | os.O_APPEND,
        os.O_WRONLY | os.O_TRUNC,
    ]
)
DATA = st.binary(max_size=40)
OFFSETS = st.integers(0, 60)
WHICH = st.integers(0, 7)
"""The index of an open descriptor, from the newest on."""

OPERATIONS = st.one_of(
    st.tuples(st.just("open"), PATHS, FLAGS),
    st.tuples(st.just("open"), PATHS, FLAGS),
    st.tuples(st.just("mkdir"), PATHS),
    st.tuples(st.just("rmdir"), PATHS),
    st.tuples(st.just("unlink"), PATHS),
    st.tuples(st.just("link"), PATHS, PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.just("rename_new"), PATHS, PATHS),
    st.tuples(st.just("exchange"), PATHS, PATHS),
    st.tuples(st.just("exchange"), PATHS, PATHS),
    st.tuples(st.just("list_directory"), PATHS),
    st.tuples(st.just("is_directory"), PATHS),
    st.tuples(st.just("close"), WHICH),
    st.tuples(st.just("dup"), WHICH),
    st.tuples(st.just("size"), WHICH),
    st.tuples(st.just("is_removed"), WHICH),
    st.tuples(st.just("fsync"), WHICH),
    st.tuples(st.just("fdatasync"), WHICH),
    st.tuples(st.just("pread"), WHICH, OFFSETS, OFFSETS),
    st.tuples(st.just("write"), WHICH, DATA),
    st.tuples(st.just("write"), WHICH, DATA),
    st.tuples(st.just("pwrite"), WHICH, DATA, OFFSETS),
    st.tuples(st.just("ftruncate"), WHICH, OFFSETS),
)

NEW = os.O_RDWR | os.O_CREAT
APPEND = NEW | os.O_APPEND

PRELUDE: list[tuple[Any, ...]] = [
    ("mkdir", "a"),
    ("mkdir", "a/b"),
    ("open", "b", NEW),
    ("write", 0, b"something"),
    ("open", "a/c", APPEND),
]
"""Operations that make files first, so that fewer calls fail."""


class RealDisk(OsDisk):
    """The real calls, and those of files that other programs edit too."""

    def open(self, path: Path, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, 0o600)

    def link(self, old: Path, new: Path) -> None:
        os.link(old, new, follow_symlinks=False)

    def rename_new(self, old: Path, new: Path) -> None:
        exchange.rename_new(ANYWHERE, str(old), str(new))

    def exchange(self, one: Path, other: Path) -> None:
        exchange.exchange_names(ANYWHERE, str(one), str(other))


@attrs.define
class Player:
    """A player of operations on one disk, below ``top``."""

    disk: Any
    top: Path
    fds: list[int] = attrs.field(factory=list)
    """The open descriptors, in the order of opening: the numbers themselves are not compared."""

    def outcome(self, name: str, *arguments: Any) -> object:
        """Return the result of the call, or the errno that it raises."""
        try:
            return self._play(name, *arguments)
        except OSError as error:
            return f"errno {error.errno}"

    def _play(self, name: str, *arguments: Any) -> object:
        call: Callable[..., Any] = getattr(self.disk, name)
        first, *rest = arguments
        if isinstance(first, str):
            rest = [self.top / each if isinstance(each, str) else each for each in rest]
            found = call(self.top / first, *rest)
        else:
            fd = self._fd(first)
            if fd is None:
                return None
            found = call(fd, *rest)
            if name == "size" and self._is_directory(fd):
                return None  # independent of the file system's answer
            if name == "close":
                self.fds.remove(fd)
        return self._shown(name, found)

    def _fd(self, which: int) -> int | None:
        return self.fds[-1 - which % len(self.fds)] if self.fds else None

    def _is_directory(self, fd: int) -> bool:
        try:
            self.disk.pread(fd, 1, 0)
        except IsADirectoryError:
            return True
        except OSError:
            return False
        return False

    def _shown(self, name: str, found: Any) -> object:
        if name in ("open", "dup"):
            self.fds.append(found)
            return "descriptor"
        return sorted(found) if name == "list_directory" else found

    def close_all(self) -> None:
        for fd in self.fds:
            self.disk.close(fd)


@contextlib.contextmanager
def players() -> Iterator[tuple[Player, Player]]:
    with tempfile.TemporaryDirectory() as place:
        real = Player(RealDisk(), Path(place))
        simulated = Player(SimulatedDisk(), Path("/"))
        try:
            yield real, simulated
        finally:
            real.close_all()
            simulated.close_all()


def files_below(top: Path) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {"/": None}
    for path in top.rglob("*"):
        name = f"/{path.relative_to(top)}"
        found[name] = None if path.is_dir() else path.read_bytes()
    return found


@pytest.mark.one_python
@settings(max_examples=300)
@given(st.lists(OPERATIONS, max_size=40), st.sampled_from([[], PRELUDE]))
@example([("open", "a", NEW), ("open", "a", NEW), ("unlink", "a"), ("is_removed", 0)], [])
@example([("mkdir", "a"), ("mkdir", "a/b"), ("rename", "a", "a/b/c")], [])
@example([("mkdir", "a"), ("mkdir", "a/b"), ("rename", "a/b", "a")], [])
@example([("open", "a", APPEND), ("write", 0, b"x" * 9), ("pwrite", 0, b"end", 2), ("size", 0)], [])
@example([("open", "a", NEW), ("pwrite", 0, b"x", 9), ("pread", 0, 20, 0), ("ftruncate", 0, 3)], [])
@example(
    [("open", "a", NEW), ("dup", 0), ("write", 0, b"12"), ("write", 1, b"34"), ("size", 0)], []
)
@example([("open", "c", NEW), ("exchange", "b", "c"), ("unlink", "c")], PRELUDE)
@example([("rename_new", "a/a/a", "b/a")], PRELUDE)
@example([("rename_new", "a", "a/b")], PRELUDE)
@example([("rename_new", "a/a", "b"), ("rename_new", "b", "a"), ("rename_new", "b", "c")], PRELUDE)
@example([("exchange", "a", "a/b")], PRELUDE)
@example([("exchange", "a/b", "a")], PRELUDE)
@example([("exchange", "b", "a")], PRELUDE)
@example([("open", "a", NEW), ("link", "a", "b"), ("rename", "a", "b"), ("unlink", "b")], [])
def test_the_same_calls_have_the_same_outcome_and_leave_the_same_files(
    operations: list[tuple[Any, ...]], prelude: list[tuple[Any, ...]]
) -> None:
    with players() as (real, simulated):
        for operation in [*prelude, *operations]:
            expected = real.outcome(*operation)
            if isinstance(expected, str) and expected.startswith("errno"):
                event(f"{operation[0]}: {expected}")
            assert simulated.outcome(*operation) == expected, operation
        assert cached_image(simulated.disk.model) == files_below(real.top)


@pytest.mark.parametrize("call", ["size", "is_removed", "fsync", "pread", "write", "close"])
def test_a_closed_descriptor_is_refused(call: str) -> None:
    disk = SimulatedDisk()
    fd = disk.open(Path("/a"), NEW)
    disk.close(fd)
    arguments = {"pread": (1, 0), "write": (b"x",)}.get(call, ())
    with pytest.raises(OSError, match="EBADF"):
        getattr(disk, call)(fd, *arguments)


def test_no_descriptor_is_given_twice() -> None:
    disk = SimulatedDisk()
    seen = set()
    for _ in range(5):
        fd = disk.open(Path("/a"), NEW)
        seen.add(fd)
        disk.close(fd)
    assert len(seen) == 5
    assert disk.model.open_count == 0
