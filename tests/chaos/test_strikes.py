"""Tests of the table of faults by place."""

from __future__ import annotations

import pytest

from tests.chaos.machine.file_content import FailedSync
from tests.chaos.strikes import Kind, Strike, all_strikes


@pytest.mark.parametrize(
    ("place", "may_wait", "kinds"),
    [
        ("disk.pread", False, "DIE EIO"),
        ("disk.rename", False, "DIE EIO ENOSPC"),
        ("disk.write", False, "DIE EIO ENOSPC SHORT"),
        ("disk.fsync", False, "DIE EIO EIO_CLEAN EIO_DIRTY ENOSPC"),
        ("disk.fdatasync", False, "DIE EIO EIO_CLEAN EIO_DIRTY ENOSPC STALL"),
        ("ledger.append.before", False, "DIE CRASH EIO ENOSPC"),
        ("ledger.sync.before", True, "DIE CRASH STALL EIO ENOSPC"),
        ("inbox.append.after", False, "DIE CRASH"),
        ("actor.receive.before[Inbox]", True, "DIE CRASH STALL"),
    ],
)
def test_every_kind_strikes_every_pass(place: str, may_wait: bool, kinds: str) -> None:
    strikes = list(all_strikes({place: 2}, {place.split("[")[0]: may_wait}))
    expected = [Kind[name] for name in kinds.split()]
    assert strikes == [Strike(place, number, kind) for number in (1, 2) for kind in expected]


def test_a_strike_names_its_place() -> None:
    assert str(Strike("disk.fsync", 3, Kind.EIO_CLEAN)) == "disk.fsync@3=eio_clean"
    assert Strike("disk.fsync", 3, Kind.DIE).call == "fsync"
    assert Strike("ledger.sync.after", 1, Kind.DIE).call is None


def test_what_becomes_of_the_pages_goes_by_the_kind() -> None:
    assert Kind.EIO_CLEAN.fate is FailedSync.CLEAN
    assert Kind.EIO_DIRTY.fate is FailedSync.DIRTY
    assert Kind.EIO.fate is FailedSync.DROPPED
