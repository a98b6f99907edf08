"""Who watches what: changes are told once, to whoever watches, under the address it wrote."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from aegis.errors import NotFound
from aegis.protocol.resources import Inbox, Ledger
from aegis.servers.mcp.resources import ResourceSubscriptions, Subscribers

BUILD, WEB = Ledger("build"), Ledger("web")


def watching(watches: Subscribers, *uris: str) -> ResourceSubscriptions:
    watch = ResourceSubscriptions()
    for uri in uris:
        name = uri.removeprefix("aegis://terminals/").removesuffix("/ledger")
        watches.add(watch, Ledger(name), uri)
    return watch


def test_a_change_is_told_to_whoever_watches_it() -> None:
    watches = Subscribers()
    one, both = watching(watches, BUILD.uri), watching(watches, BUILD.uri, WEB.uri)
    watches.changed(WEB.key)
    assert (one.take(), both.take()) == ([], [WEB.uri])
    watches.changed(BUILD.key)
    assert (one.take(), both.take()) == ([BUILD.uri], [BUILD.uri])
    watches.changed(Inbox("pm").key)
    assert (one.take(), both.take()) == ([], [])


def test_many_changes_before_anybody_asks_are_told_once_in_the_order_of_the_first() -> None:
    watches = Subscribers()
    watch = watching(watches, BUILD.uri, WEB.uri)
    for _ in range(1000):
        watches.changed(WEB.key)
        watches.changed(BUILD.key)
    assert watch.take() == [WEB.uri, BUILD.uri]
    assert watch.take() == []


def test_every_spelling_that_is_watched_is_told() -> None:
    watches = Subscribers()
    watch = watching(watches, "aegis://terminals/Build/ledger", BUILD.uri, BUILD.uri)
    assert len(watch) == 2
    watches.changed(Ledger("BUILD").key)
    assert watch.take() == ["aegis://terminals/Build/ledger", BUILD.uri]


def test_what_is_watched_no_more_is_not_told_though_it_had_changed() -> None:
    watches = Subscribers()
    watch = watching(watches, BUILD.uri, WEB.uri)
    watches.changed(BUILD.key)
    watches.remove(watch, BUILD.uri)
    assert (watch.take(), len(watch), len(watches)) == ([], 1, 1)
    watches.changed(BUILD.key)
    assert watch.take() == []


def test_one_spelling_less_leaves_the_other() -> None:
    watches = Subscribers()
    watch = watching(watches, "aegis://terminals/Build/ledger", BUILD.uri)
    watches.remove(watch, BUILD.uri)
    watches.changed(BUILD.key)
    assert watch.take() == ["aegis://terminals/Build/ledger"]


def test_what_was_never_watched_can_be_left_and_what_is_no_address_cannot() -> None:
    watches = Subscribers()
    watch = watching(watches, BUILD.uri)
    watches.remove(watch, WEB.uri)
    with pytest.raises(NotFound, match="there is no resource 'nonsense'"):
        watches.remove(watch, "nonsense")
    assert len(watch) == 1


def test_who_is_gone_leaves_nothing_behind() -> None:
    watches = Subscribers()
    one, other = watching(watches, BUILD.uri, WEB.uri), watching(watches, BUILD.uri)
    watches.remove_all(one)
    watches.changed(BUILD.key)
    assert (len(watches), other.take()) == (1, [BUILD.uri])
    watches.remove_all(other)
    assert len(watches) == 0


def test_all_that_is_watched_can_be_told_again() -> None:
    watches = Subscribers()
    watch = watching(watches, BUILD.uri, WEB.uri)
    watches.changed(WEB.key)
    watch.changed_all()
    assert watch.take() == [WEB.uri, BUILD.uri]


async def test_who_waits_hears_of_a_change_before_and_after_it_began_to_wait() -> None:
    watches = Subscribers()
    watch = watching(watches, BUILD.uri)
    watches.changed(BUILD.key)
    with trio.fail_after(60):
        await watch.wait()
        assert watch.take() == [BUILD.uri]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.wait)
            await trio.testing.wait_all_tasks_blocked()
            watches.changed(WEB.key)
            watches.changed(BUILD.key)
    assert watch.take() == [BUILD.uri]
