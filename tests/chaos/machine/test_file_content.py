"""Tests of the contents of one file after a loss of power, as tables."""

from __future__ import annotations

from random import Random

import pytest

from tests.chaos.machine.file_content import (
    MAX_BASES,
    PAGE_BYTES,
    Change,
    FailedSync,
    FileContent,
    Resize,
    Write,
    after_power_loss,
    applied,
    cuts,
)


@pytest.mark.parametrize(
    ("base", "changes", "expected"),
    [
        (b"", [], b""),
        (b"ab", [Write(2, b"cd")], b"abcd"),
        (b"abcd", [Write(1, b"XY")], b"aXYd"),
        (b"ab", [Write(4, b"x")], b"ab\0\0x"),
        (b"ab", [Write(9, b"")], b"ab"),
        (b"abcd", [Resize(1)], b"a"),
        (b"a", [Resize(3)], b"a\0\0"),
        (b"abcd", [Resize(1), Write(1, b"z")], b"az"),
    ],
)
def test_changes_are_carried_out_in_order(
    base: bytes, changes: list[Change], expected: bytes
) -> None:
    assert applied(base, changes) == expected


@pytest.mark.parametrize(
    ("base", "changes", "expected"),
    [
        (b"ab", [], {b"ab"}),
        # An append: any part of it, or its length without its bytes.
        (b"a", [Write(1, b"xyz")], {b"a", b"ax", b"axy", b"axyz", b"a\0\0\0"}),
        # An overwrite: any part of it over what was there.
        (b"abc", [Write(0, b"xy")], {b"abc", b"xbc", b"xyc"}),
        # Two writes: never the second one without the first, as long as both are in one page.
        (b"", [Write(0, b"1"), Write(1, b"2")], {b"", b"1", b"12", b"\0\0"}),
        # A file that was cut short and written again.
        (b"old", [Resize(0), Write(0, b"xy")], {b"old", b"", b"x", b"xy", b"ol"}),
    ],
)
def test_what_is_not_synced_is_there_in_part(
    base: bytes, changes: list[Change], expected: set[bytes]
) -> None:
    assert set(after_power_loss(base, changes)) == expected


def test_pages_reach_the_medium_in_any_order() -> None:
    first, second = b"1" * PAGE_BYTES, b"2" * PAGE_BYTES
    zeros = bytes(PAGE_BYTES)
    found = set(after_power_loss(b"", [Write(0, first), Write(PAGE_BYTES, second)]))
    assert {first + zeros, zeros + second, first + second, zeros + zeros, b""} <= found


def test_a_short_write_is_torn_at_every_byte_and_a_long_one_at_lines_pages_and_the_middle() -> None:
    assert cuts(Write(0, b"x" * 5)) == [1, 2, 3, 4]
    long = Write(PAGE_BYTES - 100, b"x" * 49 + b"\n" + b"y" * 150)
    assert cuts(long) == [1, 49, 50, 51, 99, 100, 101, 199]
    assert cuts(Write(0, b"x")) == []


def test_a_sync_keeps_what_was_written_before_it_began() -> None:
    content = FileContent()
    content.change(Write(0, b"a"))
    began = content.mark
    content.change(Write(1, b"b"))
    content.settle(began)
    assert set(content.contents()) == {b"a", b"ab", b"a\0"}
    content.settle(content.mark)
    assert content.contents() == [b"ab"]
    content.settle(began)  # an older sync that ends late takes nothing back
    assert content.contents() == [b"ab"]


@pytest.mark.parametrize(
    ("fate", "seen", "possible"),
    [
        (FailedSync.DIRTY, b"ab", {b"ab"}),
        (FailedSync.CLEAN, b"ab", {b"a", b"ab"}),
        (FailedSync.DROPPED, b"a\0", {b"a", b"a\0"}),
    ],
)
def test_after_a_failed_sync_one_that_ends_well_proves_nothing(
    fate: FailedSync, seen: bytes, possible: set[bytes]
) -> None:
    content = FileContent(b"a")
    content.change(Write(1, b"b"))
    content.fail(fate)
    assert bytes(content.cached) == seen
    content.settle(content.mark)
    assert set(content.contents()) == possible


@pytest.mark.parametrize("fate", FailedSync)
def test_cut_off_and_written_again_a_file_is_certain_again(fate: FailedSync) -> None:
    content = FileContent(b"a")
    content.change(Write(1, b"b"))
    content.fail(fate)
    content.change(Resize(1))
    content.change(Write(1, b"c"))
    content.settle(content.mark)
    assert content.contents() == [b"ac"]


def test_what_may_be_there_after_many_failed_syncs_stays_bounded() -> None:
    content = FileContent()
    for number in range(20):
        content.change(Write(number, b"x"))
        content.fail(FailedSync.CLEAN)
    assert len(content.bases) <= MAX_BASES
    assert b"x" * 20 in content.bases
    assert b"" in content.bases


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [Write(0, b"x")],
        [Write(2, b"abc"), Resize(1), Write(1, b"de")],
        [Write(0, bytes(range(256)) * 40), Write(5000, b"in the middle")],
        [Resize(0), Write(0, b"line\n" * 50)],
    ],
)
def test_a_sample_is_one_of_all(changes: list[Change]) -> None:
    content = FileContent(b"some content")
    for change in changes:
        content.change(change)
    everything = content.contents()
    choose = Random(1).randrange
    samples = {content.sample(choose) for _ in range(300)}
    assert samples <= set(everything)
    assert len(samples) > len(set(everything)) / 5
