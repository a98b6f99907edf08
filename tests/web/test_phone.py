"""The page as an application of a phone: keys, touch, installing, notifications."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.harness import DaemonProcess
from tests.web.browser import PHONE, log_in, needs_chromium
from tests.web.studio import Studio

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

SHOWN = """navigator.serviceWorker.ready.then(worker => worker.getNotifications())
.then(all => all.map(each => [each.title, each.body]))"""
HIDE = "Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })"


def test_the_page_can_be_installed(daemon: DaemonProcess, browser: Browser) -> None:
    window = log_in(browser, daemon, PHONE)
    window.page.evaluate("navigator.serviceWorker.ready.then(worker => worker.scope)")
    session = window.context.new_cdp_session(window.page)
    manifest: dict[str, Any] = session.send("Page.getAppManifest")
    assert manifest["errors"] == []
    found = session.send("Page.getInstallabilityErrors")["installabilityErrors"]
    assert [each["errorId"] for each in found] == ["in-incognito"]  # as is each test's profile
    window.check()


def test_a_request_notifies_and_is_withdrawn_when_it_is_answered(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon, PHONE)
    window.context.grant_permissions(["notifications"], origin=window.origin)
    window.page.evaluate(HIDE)
    studio.spawn("ASK touch x", handle="ada")
    window.wait_until(lambda: bool(window.page.evaluate(SHOWN)), "a notification")
    assert window.page.evaluate(SHOWN) == [["ada needs an answer", "Bash: touch x"]]
    [request] = studio.call("request_list")["requests"]
    studio.daemon.cli("request", "answer", request["id"], "deny")
    window.wait_until(lambda: window.page.evaluate(SHOWN) == [], "it is withdrawn")
    window.check()


def test_nobody_is_notified_who_looks_or_has_not_allowed_it(
    studio: Studio, browser: Browser
) -> None:
    looks, forbids = log_in(browser, studio.daemon), log_in(browser, studio.daemon)
    looks.context.grant_permissions(["notifications"], origin=looks.origin)
    forbids.page.evaluate(HIDE)
    studio.spawn("ASK touch y", handle="bob")
    expect(looks.page.locator(".ask")).to_have_count(1)
    forbids.wait("app.store.requests.size === 1")
    for window in (looks, forbids):
        window.page.wait_for_timeout(300)
        assert window.page.evaluate(SHOWN) == []
        window.check()
