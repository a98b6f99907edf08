"""The keys of web pages: codes that are used once, two keys for each page, links with an end."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import pytest

from aegis.errors import Forbidden, NotFound, StartupError, Unavailable
from aegis.servers.access import pages as pages_module
from aegis.servers.access.pages import (
    MAX_FILE_BYTES,
    MAX_LABEL_CHARS,
    MAX_LINKS,
    MAX_OF_LINK,
    MAX_PAGES,
    PageKeys,
    open_pages,
)
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


def test_a_browser_that_logs_in_again_keeps_its_login_with_new_keys(pages: PageKeys) -> None:
    first = pages.log_in(pages.new_code()[0], "")
    other = pages.log_in(pages.new_code()[0], "")
    shown = ["x", first.cookie]
    second = pages.log_in(pages.new_code()[0], "", shown, first.key)
    assert (second.page.id, len(pages.pages)) == (first.page.id, 2)
    assert pages.identity_of(shown, first.key) is None
    assert pages.identity_of([second.cookie], second.key) == first.page.identity
    # Neither one key alone, nor those of two logins, nor those of a revoked one, are a login.
    pages.revoke(other.page.id)
    view = pages.open_link(pages.new_link("terminal:build", "", 600)[1], "")
    for cookie, key in [
        (second.cookie, ""),
        ("", second.key),
        (second.cookie, other.key),
        (other.cookie, other.key),
        (view.cookie, view.key),
    ]:
        before = {each.id for each in pages.pages}
        third = pages.log_in(pages.new_code()[0], "", [cookie], key)
        assert third.page.id not in before
        assert third.cookie != cookie
    assert pages.identity_of([second.cookie], second.key) is not None
    assert pages.identity_of([view.cookie], view.key) == view.page.identity


def test_the_links_of_a_browser_have_one_cookie_and_a_key_each(pages: PageKeys) -> None:
    login = pages.log_in(pages.new_code()[0], "")
    _, one = pages.new_link("terminal:build", "", 600)
    _, two = pages.new_link("agent:ada", "", 600)
    first = pages.open_link(one, "", ["x", login.cookie])
    assert first.cookie not in ("x", login.cookie)
    second = pages.open_link(two, "", [login.cookie, first.cookie])
    assert second.cookie == first.cookie
    views = [pages.identity_of([second.cookie], each.key) for each in (first, second)]
    assert [each and each.view for each in views] == ["terminal:build", "agent:ada"]


def test_a_link_that_is_opened_without_end_locks_nobody_out(pages: PageKeys) -> None:
    login = pages.log_in(pages.new_code()[0], "")
    link, secret = pages.new_link("terminal:build", "", 600)
    opened = [pages.open_link(secret, "") for _ in range(300)]
    other = pages.open_link(pages.new_link("agent:ada", "", 600)[1], "")
    pages.log_in(pages.new_code()[0], "")
    is_known = [pages.identity_of([each.cookie], each.key) is not None for each in opened]
    assert is_known == [False] * (300 - MAX_OF_LINK) + [True] * MAX_OF_LINK
    gone = [each.page.identity for each in opened[:-MAX_OF_LINK]]
    assert pages.drop_ended() == gone  # their connections are ended
    assert pages.drop_ended() == []
    last = pages.open_link(secret, "")
    ended = pages.revoke(link.id)
    assert {each.page for each in ended} >= {last.page.id, opened[-MAX_OF_LINK].page.id}
    for each in (login, other):
        assert pages.identity_of([each.cookie], each.key) is not None


def test_the_numbers_of_logins_and_links_are_limited_apart(
    pages: PageKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages_module, "MAX_PAGES", 2)
    monkeypatch.setattr(pages_module, "MAX_LINKS", 2)
    logins = [pages.log_in(pages.new_code()[0], "") for _ in range(2)]
    for _ in range(2):
        pages.new_link("terminal:build", "", 50 * 24 * 3600)
    with pytest.raises(Unavailable):
        pages.new_link("terminal:build", "", 600)
    code, _ = pages.new_code()
    with pytest.raises(Unavailable):
        pages.log_in(code, "")
    again = pages.log_in(pages.new_code()[0], "", [logins[0].cookie], logins[0].key)
    code, _ = pages.new_code()
    with pytest.raises(Unavailable):
        pages.log_in(code, "")
    pages.revoke(again.page.id)
    pages.log_in(code, "")  # it is still valid
    moved_on(monkeypatch, 40 * 24 * 3600)
    pages.log_in(pages.new_code()[0], "")


def test_the_file_of_as_many_pages_as_may_be_is_read_again(pages: PageKeys) -> None:
    most = MAX_PAGES + MAX_LINKS * (1 + MAX_OF_LINK)
    label = "\U0001f600" * MAX_LABEL_CHARS
    content = json.dumps([attrs.asdict(pages.log_in(pages.new_code()[0], label).page)], indent=1)
    assert most * (len(content) + 64) < MAX_FILE_BYTES


@pytest.mark.parametrize("content", [b"{", b'{"version": 2}', b'{"version": 1, "pages": [{}]}'])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pages.json"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(StartupError, match=r"pages\.json is damaged"):
        open_pages(tmp_path)
