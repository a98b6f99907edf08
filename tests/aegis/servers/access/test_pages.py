"""The keys of web pages: codes that are used once, two keys for each page, links with an end."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aegis.errors import Forbidden, NotFound, StartupError, Unavailable
from aegis.servers.access import pages as pages_module
from aegis.servers.access.pages import MAX_PAGES, PageKeys, open_pages
from aegis.servers.calls import Identity


@pytest.fixture
def pages(tmp_path: Path) -> PageKeys:
    return open_pages(tmp_path)


def moved_on(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    later = datetime.now(UTC) + timedelta(seconds=seconds)
    monkeypatch.setattr(pages_module, "_now", lambda: later)


def test_a_code_logs_in_once(pages: PageKeys) -> None:
    code, _ = pages.new_code()
    login = pages.log_in(code, "Firefox")
    assert pages.identity_of([login.cookie], login.key) == Identity(
        handle=None, operator=True, page=login.page.id
    )
    with pytest.raises(Forbidden):
        pages.log_in(code, "Firefox")


def test_a_wrong_code_voids_the_right_one(pages: PageKeys) -> None:
    code, _ = pages.new_code()
    with pytest.raises(Forbidden):
        pages.log_in("guess", "")
    with pytest.raises(Forbidden):
        pages.log_in(code, "")


def test_a_code_ends_after_a_minute_and_with_the_next_one(
    pages: PageKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = pages.new_code()
    second, _ = pages.new_code()
    with pytest.raises(Forbidden):
        pages.log_in(first, "")
    late, _ = pages.new_code()
    assert second != late
    moved_on(monkeypatch, 61)
    with pytest.raises(Forbidden):
        pages.log_in(late, "")


def test_one_of_the_two_keys_is_not_enough(pages: PageKeys) -> None:
    one = pages.log_in(pages.new_code()[0], "")
    two = pages.log_in(pages.new_code()[0], "")
    assert pages.identity_of([], one.key) is None
    assert pages.identity_of([""], one.key) is None
    assert pages.identity_of([one.cookie], "") is None
    assert pages.identity_of([one.cookie], two.key) is None
    assert pages.identity_of([two.cookie, one.cookie], one.key) is not None


def test_pages_survive_a_restart_and_their_file_has_no_key(pages: PageKeys) -> None:
    login = pages.log_in(pages.new_code()[0], "a\u202eb")
    content = pages.path.read_text()
    assert login.key not in content
    assert login.cookie not in content
    assert stat.S_IMODE(pages.path.stat().st_mode) == 0o600
    again = open_pages(pages.path.parent)
    assert again.identity_of([login.cookie], login.key) is not None
    assert [page.label for page in again.pages] == ["a<U+202E>b"]


def test_a_link_has_a_view_an_end_and_pages_that_end_with_it(
    pages: PageKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, secret = pages.new_link("terminal:build", "Kim", 600)
    first, second = pages.open_link(secret, ""), pages.open_link(secret, "")
    identity = pages.identity_of([first.cookie], first.key)
    assert identity == Identity(
        handle=None, operator=False, view="terminal:build", page=first.page.id
    )
    assert first.page.expires_at == link.expires_at
    assert len(pages.revoke(link.id)) == 3
    assert pages.identity_of([second.cookie], second.key) is None
    with pytest.raises(Forbidden):
        pages.open_link(secret, "")
    _, other = pages.new_link("agent:ada", "", 600)
    seen = pages.open_link(other, "")
    moved_on(monkeypatch, 601)
    with pytest.raises(Forbidden):
        pages.open_link(other, "")
    pages.revoke(pages.new_link("agent:ada", "", 600)[0].id)  # which leaves the ended ones
    assert {each.page for each in pages.drop_ended()} >= {seen.page.id}
    assert (pages.pages, pages.links) == ([], [])


def test_a_new_token_logs_the_operators_pages_out_and_leaves_links(pages: PageKeys) -> None:
    login = pages.log_in(pages.new_code()[0], "")
    pages.new_link("terminal:build", "", 600)
    assert [each.page for each in pages.revoke_operators()] == [login.page.id]
    assert (len(pages.pages), len(pages.links)) == (0, 1)


def test_an_unknown_page_is_not_found_and_all_may_be_none(pages: PageKeys) -> None:
    with pytest.raises(NotFound):
        pages.revoke("nobody")
    assert pages.revoke("all") == []


def test_the_number_of_pages_is_limited(pages: PageKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_module, "MAX_PAGES", 2)
    assert MAX_PAGES > 2
    for _ in range(2):
        pages.log_in(pages.new_code()[0], "")
    with pytest.raises(Unavailable):
        pages.log_in(pages.new_code()[0], "")
    moved_on(monkeypatch, 40 * 24 * 3600)
    pages.log_in(pages.new_code()[0], "")


@pytest.mark.parametrize("content", [b"{", b'{"version": 2}', b'{"version": 1, "pages": [{}]}'])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pages.json"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(StartupError, match=r"pages\.json is damaged"):
        open_pages(tmp_path)
