"""A daemon's line protocol to talk to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.line_server import LineServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LineServer]:
    running = LineServer(tmp_path)
    yield running
    running.stop()
