"""The list of terminals while they change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from aegis.terminals.directory import listing


class Terminals:
    """A directory's terminals: each front answers with its name, and may do something before."""

    def __init__(self, *names: str) -> None:
        self.open: dict[str, Any] = dict.fromkeys(names, "settings")
        self.failed: dict[str, Any] = {}
        self.subtrees = SimpleNamespace(front=lambda key: SimpleNamespace(ask=self._ask(key)))
        self.before: dict[str, Any] = {}

    def node_of(self, key: str) -> str:
        return "local"

    def _ask(self, key: str) -> Any:
        async def ask(request: object, *, timeout: float) -> str:
            self.before.get(key, lambda: None)()
            return f"described {key}"

        return ask


@pytest.fixture(autouse=True)
def plain_infos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "unanswered_info", lambda settings, node: "unanswered")


async def test_a_failed_terminal_that_is_started_during_the_list_is_listed() -> None:
    terminals: Any = Terminals("other")
    terminals.failed["late"] = SimpleNamespace(info=lambda: "failed")

    def start() -> None:
        terminals.open["late"] = terminals.failed.pop("late", "settings")

    terminals.before["other"] = start
    found: Any = await listing.open_terminals(terminals, busy=())
    assert found == {"other": "described other", "late": "described late"}


async def test_a_terminal_that_fails_during_the_list_is_listed_as_failed() -> None:
    terminals: Any = Terminals("early", "other")

    def fail() -> None:
        terminals.open.pop("early", None)
        terminals.failed["early"] = SimpleNamespace(info=lambda: "failed")

    terminals.before["other"] = fail
    found: Any = await listing.open_terminals(terminals, busy=())
    assert found == {"other": "described other", "early": "failed"}


async def test_a_terminal_that_is_closed_during_the_list_is_not_listed() -> None:
    terminals: Any = Terminals("gone", "other")
    terminals.before["other"] = lambda: terminals.open.pop("gone", None)
    found: Any = await listing.open_terminals(terminals, busy=())
    assert found == {"other": "described other"}
