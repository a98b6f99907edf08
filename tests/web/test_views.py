"""The views of coordination in a browser: canvases, groups, inboxes, queues, workflows."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.web.browser import DESK, PHONE, Window, log_in, needs_chromium
from tests.web.studio import Studio

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

on_both = pytest.mark.parametrize("form", [DESK, PHONE], ids=["desk", "phone"])
"""For tests of a whole way through the page, once on a desk and once on a phone."""


def fits(window: Window) -> None:
    """Check that nothing is wider than the window."""
    wide = (
        "() => { const main = document.getElementById('main');"
        " return document.documentElement.scrollWidth > innerWidth"
        " || main.scrollWidth > main.clientWidth; }"
    )
    window.wait_until(lambda: not window.page.evaluate(wide), "nothing is wider")
    window.check()


@on_both
def test_an_agents_changes_are_shown_as_differences_whichever_way_it_reports_them(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    handle = f"mender-{form['viewport']['width']}"
    studio.works(handle)
    window = log_in(browser, studio.daemon, form)
    window.go(f"/a/{handle}")
    shown = window.page.get_by_role("log").locator(".diff")
    lines = shown.locator(".add, .del")
    expect(lines).to_have_text(
        [
            re.compile(each)
            for each in (
                *("return sum.items, items.0..", "return sum.items, start=0."),
                *("RATE = 19", "RATE = 7", "from shop import tax"),
            )
        ]
    )
    for name in ("shop/cart.py", "shop/tax.py", "tests/tax.py"):
        expect(window.page.get_by_role("log")).to_contain_text(name)
    fits(window)
