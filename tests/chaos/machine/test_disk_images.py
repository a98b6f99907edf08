"""Tests of the images of a whole disk that a loss of power may leave, as tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from aegis.journal.disk import APPEND, replace_file, sync_directory, write_all
from tests.chaos.machine.disk_images import (
    MAX_SUBSET_CHANGES,
    change_sets,
    drawn_image,
    legal_images,
)
from tests.chaos.machine.disk_model import EntryChange, Image, cached_image
from tests.chaos.machine.simulated_disk import SimulatedDisk

NEW = os.O_RDWR | os.O_CREAT
A, B = Path("/a"), Path("/b")


def images(disk: SimulatedDisk) -> list[dict[str, bytes | None]]:
    return [
        {path: data for path, data in sorted(each.items()) if path != "/"} for each in _of(disk)
    ]


def _of(disk: SimulatedDisk) -> list[Image]:
    return list(legal_images(disk.model))


def create(disk: SimulatedDisk) -> None:
    write_all(disk, disk.open(A, NEW), b"x")


def create_and_sync(disk: SimulatedDisk) -> None:
    fd = disk.open(A, NEW)
    write_all(disk, fd, b"x")
    disk.fsync(fd)


def create_and_sync_directory(disk: SimulatedDisk) -> None:
    create(disk)
    sync_directory(disk, Path("/"))


def replace(disk: SimulatedDisk) -> None:
    replace_file(disk, A, [b"y"], durable=False)


def replace_durably(disk: SimulatedDisk) -> None:
    replace_file(disk, A, [b"y"])


def append(disk: SimulatedDisk) -> None:
    write_all(disk, disk.open(A, APPEND), b"y")


def unlink(disk: SimulatedDisk) -> None:
    disk.unlink(A)


def make_deep(disk: SimulatedDisk) -> None:
    disk.mkdir(Path("/d"))
    disk.open(Path("/d/a"), NEW)
    sync_directory(disk, Path("/d"))


OLD: Image = {"/a": b"x"}


@pytest.mark.parametrize(
    ("before", "act", "expected"),
    [
        pytest.param({}, create, [{}, {"/a": b""}, {"/a": b"x"}, {"/a": b"\0"}], id="create"),
        # The file is synced, its name is not.
        pytest.param({}, create_and_sync, [{}, {"/a": b"x"}], id="sync"),
        # The name is synced, the file is not.
        pytest.param(
            {},
            create_and_sync_directory,
            [{"/a": b""}, {"/a": b"x"}, {"/a": b"\0"}],
            id="sync directory",
        ),
        # A new content that was not synced before it got the name may be empty.
        pytest.param(
            OLD,
            replace,
            [
                {"/a": b"x"},
                *({"/a": b"x", "/a.new": new} for new in (b"", b"y", b"\0")),
                *({"/a": new} for new in (b"", b"y", b"\0")),
            ],
            id="replace",
        ),
        pytest.param(OLD, replace_durably, [{"/a": b"y"}], id="replace durably"),
        pytest.param(OLD, append, [{"/a": b"x"}, {"/a": b"xy"}, {"/a": b"x\0"}], id="append"),
        pytest.param(OLD, unlink, [{"/a": b"x"}, {}], id="unlink"),
        # What is in a directory that is not there is not there either.
        pytest.param({}, make_deep, [{}, {"/d": None, "/d/a": b""}], id="directory"),
    ],
)
def test_every_image_and_no_other(
    before: Image, act: Callable[[SimulatedDisk], None], expected: list[Image]
) -> None:
    disk = SimulatedDisk(before)
    act(disk)
    found = images(disk)
    assert sorted(map(str, found)) == sorted(map(str, expected))
    assert len({str(each) for each in found}) == len(found)
    assert cached_image(disk.model) in _of(disk)


def test_what_was_replaced_durably_half_way_is_the_old_or_the_new() -> None:
    calls = ["open", "write", "fsync", "rename", "open", "fsync", "close"]
    for count in range(len(calls)):
        disk = SimulatedDisk(OLD)
        steps = replacement(disk)
        for _ in range(count):
            next(steps)
        assert {each.get("/a") for each in images(disk)} <= {b"x", b"y"}, calls[:count]


def replacement(disk: SimulatedDisk) -> Iterator[None]:
    fresh = Path("/a.new")
    fd = disk.open(fresh, NEW)
    yield
    write_all(disk, fd, b"y")
    yield
    disk.fsync(fd)
    yield
    disk.rename(fresh, A)
    yield
    directory = disk.open(Path("/"), os.O_RDONLY)
    yield
    disk.fsync(directory)
    yield
    disk.close(directory)
    yield


def set_name(name: str, number: int | None) -> EntryChange:
    return EntryChange(((0, name, number),))


def test_two_names_are_exchanged_both_or_not_at_all() -> None:
    disk = SimulatedDisk({"/a": b"1", "/b": b"2"})
    disk.exchange(A, B)
    assert images(disk) == [{"/a": b"1", "/b": b"2"}, {"/a": b"2", "/b": b"1"}]
    sync_directory(disk, Path("/"))
    assert images(disk) == [{"/a": b"2", "/b": b"1"}]


def test_the_removal_of_an_exchanged_file_is_never_there_without_the_exchange() -> None:
    disk = SimulatedDisk({"/a": b"1", "/b": b"2"})
    disk.exchange(A, B)
    disk.unlink(B)
    assert images(disk) == [{"/a": b"1", "/b": b"2"}, {"/a": b"2", "/b": b"1"}, {"/a": b"2"}]


def test_a_file_system_without_the_call_refuses_an_exchange() -> None:
    disk = SimulatedDisk({"/a": b"1", "/b": b"2"})
    disk.can_exchange = False
    with pytest.raises(OSError, match="Invalid argument"):
        disk.exchange(A, B)
    assert cached_image(disk.model) == {"/": None, "/a": b"1", "/b": b"2"}


def test_changes_of_one_name_keep_their_order_and_of_others_not() -> None:
    one, two, other = set_name("a", 1), set_name("a", None), set_name("b", 2)
    assert change_sets([one, two, other]) == [
        (),
        (one,),
        (other,),
        (one, two),
        (one, other),
        (one, two, other),
    ]


def test_of_many_changes_it_is_the_first_ones_or_all_but_one_and_those_that_follow_it() -> None:
    changes = [set_name(f"{index % 5}", index) for index in range(MAX_SUBSET_CHANGES + 2)]
    found = change_sets(changes)
    assert () in found
    assert tuple(changes) in found
    assert tuple(changes[1:5] + changes[6:]) in found  # the first, and the sixth of the same name
    assert len(found) == 2 * len(changes) + 1


def test_where_all_with_all_is_too_much_each_file_is_varied_alone() -> None:
    disk = SimulatedDisk({"/a": b"", "/b": b""})
    for path in (A, B):
        write_all(disk, disk.open(path, APPEND), b"12345678")
    every = list(legal_images(disk.model))
    few = list(legal_images(disk.model, max_product=10))
    assert len(every) == 10 * 10
    assert len(few) == 2 * (10 + 10) - 2 * 2
    assert few[0] == every[0] == {"/": None, "/a": b"", "/b": b""}
    assert cached_image(disk.model) in few


def test_a_sample_is_one_of_all_and_each_of_all_is_drawn() -> None:
    disk = SimulatedDisk({"/d": None, "/d/a": b"old"})
    fd = disk.open(Path("/d/a"), os.O_RDWR)
    disk.pwrite(fd, b"new", 1)
    replace_file(disk, Path("/d/b"), [b"xyz"], durable=False)
    disk.unlink(Path("/d/a"))
    legal = [dict(image) for image in legal_images(disk.model)]
    choose = Random(1).randrange
    samples = [dict(drawn_image(disk.model, choose)) for _ in range(2000)]
    assert all(sample in legal for sample in samples)
    # Of a few changes of names every legal set is tried; a sample has the first, or all but one.
    assert sum(image in samples for image in legal) > len(legal) / 2


def test_the_paths_of_open_files_are_listed() -> None:
    disk = SimulatedDisk({"/d": None, "/d/a": b""})
    first, second = disk.open(Path("/d/a"), os.O_RDWR), disk.open(Path("/d"), os.O_RDONLY)
    assert disk.model.open_paths() == ["/d/a", "/d"]
    disk.unlink(Path("/d/a"))
    assert disk.model.open_paths() == ["", "/d"]
    disk.close(first)
    disk.close(second)
    assert disk.model.open_paths() == []
