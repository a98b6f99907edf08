"""The page as an application of a phone: keys, touch, installing, notifications."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import DaemonProcess
from tests.web.browser import PHONE, Window, log_in, needs_chromium
from tests.web.studio import Studio

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

SHOWN = """navigator.serviceWorker.ready.then(worker => worker.getNotifications())
.then(all => all.map(each => [each.title, each.body]))"""
HIDE = "Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })"


def swipe(window: Window, begin: int, end: int, *, aside: int = 0) -> None:
    """Move a finger over the terminal, from one height to another and ``aside`` to the left."""
    session = window.context.new_cdp_session(window.page)

    def touch(kind: str, *points: dict[str, int]) -> None:
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    touch("touchStart", {"x": 350, "y": begin})
    for step in range(1, 11):
        at = {"x": 350 - aside * step // 10, "y": begin + (end - begin) * step // 10}
        touch("touchMove", at)
    touch("touchEnd")


def test_a_finger_scrolls_the_output_and_a_full_screen_program(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = log_in(browser, daemon, PHONE)
    window.open_terminal(terminal.name)
    window.wait("app.current.owner?.yours")
    window.type("seq 300\r")
    window.wait_text("\n300")
    bottom = window.page.evaluate("app.current.term.buffer.active.viewportY")
    swipe(window, 200, 600)
    window.wait("bottom => app.current.term.buffer.active.viewportY < bottom - 10", bottom)
    swipe(window, 600, 150)
    window.wait("bottom => app.current.term.buffer.active.viewportY === bottom", bottom)
    window.type("seq 300 | less\r")
    window.wait("app.current.term.buffer.active.type === 'alternate'")
    window.wait_text("\n10")
    swipe(window, 600, 200)
    window.wait("!app.current.term.buffer.active.getLine(0).translateToString(true).match(/^1$/)")
    window.type("q")
    window.check()


def test_a_wider_terminal_moves_aside_under_a_finger_and_fits_once_it_is_taken(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    phone, desk = log_in(browser, daemon, PHONE), log_in(browser, daemon)
    for window in (phone, desk):
        window.open_terminal(terminal.name)
    desk.page.get_by_text("Fit to mine").click()
    phone.wait("app.current.owner?.yours === false && app.current.term.cols > 120")
    phone.wait("app.current.screen.scrollWidth > innerWidth + 100")
    swipe(phone, 400, 400, aside=300)
    phone.wait("app.current.screen.scrollLeft > 80")
    phone.page.get_by_text("Fit to mine").click()
    fits = "document.querySelector('.xterm-screen').getBoundingClientRect().right <= innerWidth"
    phone.wait(f"app.current.owner?.yours && app.current.term.cols < 70 && {fits}")
    phone.check()


KEYS = [
    *(("Escape", "", "^["), ("Tab", "", "^I"), ("Shift Tab", "", "^[[Z"), ("Up", "", "^[[A")),
    *(("Left", "", "^[[D"), ("Right", "", "^[[C"), ("Up", r"\033[?1h", "^[OA")),
]
"""A key of the bar, what the program has set before, and the bytes that it gets."""


def test_the_key_bar_types_what_a_keyboard_would(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = log_in(browser, daemon, PHONE)
    window.open_terminal(terminal.name)
    for number, (key, mode, typed) in enumerate(KEYS):
        size = len(typed.removeprefix("^")) if typed != "^[" else 1
        reader = f"printf '{mode}ready-{number}\\n'; stty raw -echo; head -c {size} | cat -A"
        daemon.call("term_run", name=terminal.name, cmd=f"{reader}; stty sane", until="started")
        window.wait_text(f"\nready-{number}")
        window.page.get_by_role("button", name=key, exact=True).tap()
        window.wait_text(f"ready-{number}\n{typed}")
    window.check()


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
