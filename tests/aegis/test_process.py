"""The daemon as a process: what it asks of the interpreter."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from aegis.process import keep_what_is_there


@pytest.fixture(autouse=True)
def thaw() -> Iterator[None]:
    """The process of the tests goes on."""
    yield
    gc.unfreeze()


def test_what_is_kept_is_passed_over_by_the_collector_and_what_comes_later_is_not() -> None:
    before: list[object] = []
    keep_what_is_there()
    after: list[object] = []
    looked_at = [id(each) for each in gc.get_objects()]
    assert id(before) not in looked_at
    assert id(after) in looked_at
