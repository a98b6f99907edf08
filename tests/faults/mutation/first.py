"""A plugin of pytest: the tests of some file go before all others (``--first FILE``)."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--first", default="", help="the file whose tests go first")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    first = f"{config.getoption('--first')}::"
    items.sort(key=lambda item: not item.nodeid.startswith(first))
