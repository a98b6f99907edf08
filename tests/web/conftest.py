"""The daemons of the end-to-end tests, and a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.e2e.conftest import daemon, new_terminal, own_daemon, shell
from tests.web.browser import chromium
from tests.web.studio import Studio, studio_at

__all__ = ["daemon", "new_terminal", "own_daemon", "shell"]


@pytest.fixture(scope="module")
def running_browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def browser(running_browser: Browser) -> Iterator[Browser]:
    """A browser whose windows are those of one test."""
    yield running_browser
    for context in running_browser.contexts:
        context.close()


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """One daemon for the tests of a module: each names its own groups and messages."""
    with studio_at(tmp_path_factory.mktemp("studio")) as running:
        yield running
