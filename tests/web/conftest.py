"""The daemons of the end-to-end tests, and a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.e2e.conftest import daemon, new_terminal, own_daemon, shell
from tests.web.browser import chromium

__all__ = ["daemon", "new_terminal", "own_daemon", "shell"]


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running
