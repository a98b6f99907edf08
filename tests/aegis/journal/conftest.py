"""What the tests of the journal share: disks that fail, and the exception that plays a kill."""

from __future__ import annotations

import pytest

from tests.fakes.faulty_disk import Crash, FaultyDisk


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture(scope="session")
def new_disk() -> type[FaultyDisk]:
    return FaultyDisk


@pytest.fixture(scope="session")
def crash() -> type[Crash]:
    return Crash
