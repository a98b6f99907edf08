"""The frame of the page: rail, tabs, panes, keys, the bar of a phone, and the login."""

from __future__ import annotations

import random
import re

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.chaos.real.scratch import free_port
from tests.e2e.harness import DaemonProcess
from tests.resources.waiting import until
from tests.web.browser import DESK, PHONE, Window, log_in, needs_chromium, open_window
from tests.web.studio import Studio

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

ALL_LISTED = "['agents', 'terminals'].every(each => app.store.loaded.value.has(each))"
BIG = {"viewport": {"width": 1440, "height": 900}}


def rail(window: Window) -> Locator:
    return window.page.get_by_role("navigation", name="Everything")


def item(window: Window, name: str) -> Locator:
    return rail(window).get_by_role("link", name=name)


def tab(window: Window, name: str) -> Locator:
    tabs = window.page.get_by_role("navigation", name="Open tabs")
    return tabs.get_by_role("link", name=name, exact=True)


def names_in_the_rail(window: Window, part: str) -> list[str]:
    return rail(window).get_by_role("region", name=part).locator(".item .name").all_inner_texts()


def test_the_rail_shows_everything_alive_with_its_state_and_filters_it(
    studio: Studio, browser: Browser
) -> None:
    studio.call("term_spawn", name="rail-fails")
    studio.call("term_run", name="rail-fails", cmd="false")
    asks = studio.spawn("ASK rail ls\nSAY end", handle="rail-asks")
    rests = studio.spawn("SAY ready", handle="rail-rests")
    window = log_in(browser, studio.daemon)
    expect(item(window, asks)).to_contain_text("1")
    expect(item(window, asks).get_by_role("img", name="waits for you")).to_be_visible()
    expect(item(window, "rail-fails")).to_contain_text("exit 1")
    both = [asks, rests]  # what waits for a person comes first

    def are_in_order() -> bool:
        return [each for each in names_in_the_rail(window, "Agents") if each in both] == both

    window.wait_until(are_in_order, "both in this order")
    window.page.keyboard.press("/")
    window.page.keyboard.type("rail-r")
    expect(item(window, rests)).to_be_visible()
    expect(item(window, asks)).to_have_count(0)
    window.page.keyboard.press("ArrowDown")
    window.page.keyboard.press("Enter")
    expect(window.page.get_by_role("heading", name=rests)).to_be_visible()
    rail(window).get_by_label("Filter agents and terminals").fill("rail-")
    rail(window).get_by_role("radio", name="Waiting").click()
    expect(item(window, asks)).to_be_visible()
    expect(item(window, rests)).to_have_count(0)
    window.check()


def test_a_row_of_the_rail_keeps_its_place_while_the_pointer_is_over_it(
    studio: Studio, browser: Browser
) -> None:
    studio.call("term_spawn", name="still-m")
    window = log_in(browser, studio.daemon)
    row = item(window, "still-m")
    window.wait(ALL_LISTED)  # agents that are listed late move the terminals
    row.hover()
    before = row.bounding_box()
    studio.call("term_spawn", name="still-a")
    expect(item(window, "still-a")).to_be_visible()
    assert row.bounding_box() == before
    studio.call("term_close", name="still-m")
    expect(row).to_have_class(re.compile("gone"))
    assert row.bounding_box() == before
    window.page.mouse.move(700, 500)
    expect(row).to_have_count(0)
    window.check()


def test_tabs_and_panes_side_by_side_outlive_a_reload(studio: Studio, browser: Browser) -> None:
    studio.call("term_spawn", name="left")
    studio.call("term_spawn", name="right")
    handle = studio.spawn("SAY beside", handle="third")
    window = log_in(browser, studio.daemon)
    item(window, "left").click()
    expect(window.page.get_by_role("heading", name="left")).to_be_visible()
    item(window, "right").click(modifiers=["Control"])
    item(window, handle).click(modifiers=["Control"])
    for name in ("left", "right", handle):
        expect(window.page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    expect(tab(window, f"left | right | {handle}")).to_have_attribute("aria-current", "page")
    window.page.get_by_role("link", name="Queues").click()
    expect(window.page.get_by_role("heading", name="Queues")).to_be_visible()
    window.page.reload()
    window.wait_live()
    tab(window, f"left | right | {handle}").click()
    for name in ("left", "right", handle):
        expect(window.page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    window.page.go_back()
    expect(window.page.get_by_role("heading", name="Queues")).to_be_visible()
    window.page.get_by_role("button", name="Close the tab Queues").click()
    expect(tab(window, "Queues")).to_have_count(0)
    window.check()


def test_home_is_one_tab_whichever_request_was_opened_there(
    studio: Studio, browser: Browser
) -> None:
    asks = [studio.spawn(f"ASK tab {number}\nSAY end") for number in range(2)]
    until(lambda: len(studio.call("request_list")["requests"]) >= 2, "both ask")
    window = log_in(browser, studio.daemon)
    tabs = window.page.get_by_role("navigation", name="Open tabs").get_by_role("listitem")
    for request in studio.call("request_list")["requests"]:
        window.go("/queues")
        expect(tab(window, "Queues")).to_have_attribute("aria-current", "page")
        window.go(f"/home?request={request['id']}")
        expect(tab(window, "Home")).to_have_attribute("aria-current", "page")
        home = rail(window).get_by_role("link", name="Home")
        expect(home).to_have_attribute("aria-current", "page")
    expect(tabs).to_have_count(2)
    expect(window.page.get_by_role("button", name="Close the tab Home")).to_have_count(0)
    window.page.keyboard.press("Control+k")
    expect(window.page.get_by_role("combobox", name="Go to or do")).to_be_focused()
    window.page.keyboard.type("Close all other tabs")
    window.page.keyboard.press("Enter")
    expect(tabs).to_have_count(1)
    for handle in asks:
        studio.call("close", handle=handle)
    window.check()


def test_the_width_of_two_panes_is_changed_by_keys_and_by_the_pointer(
    studio: Studio, browser: Browser
) -> None:
    studio.call("term_spawn", name="one-half")
    window = log_in(browser, studio.daemon)
    window.go("/t/one-half+queues")
    grip = window.page.get_by_role("separator", name="Width of the panes")
    pane = window.page.get_by_role("region", name="one-half", exact=True)
    before = pane.bounding_box()
    assert before is not None
    grip.press("ArrowRight")
    expect(grip).to_have_attribute("aria-valuenow", "55")
    box = grip.bounding_box()
    assert box is not None
    window.page.mouse.move(box["x"] + 2, box["y"] + 100)
    window.page.mouse.down()
    window.page.mouse.move(box["x"] - 250, box["y"] + 100, steps=5)
    window.page.mouse.up()
    after = pane.bounding_box()
    assert after is not None
    assert after["width"] < before["width"] - 50
    window.check()


def test_keys_of_the_page_go_to_pages_and_tabs_and_never_from_a_box(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon)
    page = window.page
    page.locator("#main").focus()
    page.keyboard.press("i")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    page.keyboard.press(",")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    page.keyboard.press("[")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    page.keyboard.press("1")
    expect(tab(window, "Home")).to_have_attribute("aria-current", "page")
    page.keyboard.press("]")
    page.keyboard.press("x")
    expect(tab(window, "Inbox")).to_have_count(0)
    filtering = page.get_by_label("Filter agents and terminals")
    filtering.fill("")
    filtering.press_sequentially("i,x")
    expect(filtering).to_have_value("i,x")
    assert page.evaluate("location.hash") != "#/inbox"
    filtering.fill("")
    page.locator("#main").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    window.check()


def test_a_phone_has_a_bar_of_pages_and_one_pane_at_a_time(
    studio: Studio, browser: Browser
) -> None:
    studio.call("term_spawn", name="pocket")
    window = log_in(browser, studio.daemon, PHONE)
    bar = window.page.get_by_role("navigation", name="Pages")
    for name in ("Agents", "Terminals", "Inbox", "More", "Home"):
        bar.get_by_role("link", name=name).tap()
        expect(bar.get_by_role("link", name=name)).to_have_attribute("aria-current", "page")
    window.go("/queues+t/pocket")
    window.page.get_by_role("radiogroup", name="Pane").get_by_role("radio", name="pocket").tap()
    expect(window.page.get_by_role("heading", name="pocket")).to_be_visible()
    expect(window.page.get_by_role("heading", name="Queues")).to_have_count(0)
    window.check()


def test_a_lost_connection_is_shown_and_a_refused_key_asks_for_a_login(
    own_daemon: DaemonProcess, browser: Browser
) -> None:
    port = str(free_port(random.Random()))
    own_daemon.start("--port", port)
    window = log_in(browser, own_daemon)
    own_daemon.kill()
    window.page.wait_for_selector("#link.down")
    own_daemon.start("--port", port)
    window.wait_live()
    expect(window.page.get_by_role("status").filter(has_text="was restarted")).to_be_visible()
    [login] = own_daemon.call("page_list")["pages"]
    own_daemon.call("page_revoke", id=login["id"])
    expect(window.page.get_by_role("heading", name="Log in")).to_be_visible()
    window.page.reload()
    expect(window.page.get_by_role("heading", name="Log in")).to_be_visible()
    window.check(was_cut=True)


def test_home_is_one_screen_with_sixty_requests_forty_terminals_and_agents(
    studio: Studio, browser: Browser
) -> None:
    for number in range(40):
        studio.call("term_spawn", name=f"many-{number:02}")
    handles = [
        studio.spawn("\n".join(f"ASK ls {n}" for n in range(4)) + "\nSAY end") for _ in range(8)
    ]
    until(lambda: len(studio.call("request_list")["requests"]) >= len(handles), "they ask")
    window = log_in(browser, studio.daemon, BIG)
    expect(item(window, "many-39")).to_be_attached()
    page = window.page.locator(".pane .page")
    fits = "each => each.scrollHeight <= each.clientHeight + 1"
    window.wait_until(lambda: bool(page.evaluate(fits)), "one screen")
    within = window.page.evaluate(
        """() => [...document.querySelectorAll('.rail .item')].filter(each => {
        const box = each.getBoundingClientRect();
        const seen = each.closest('.items').getBoundingClientRect();
        return box.top >= seen.top - 1 && box.bottom <= seen.bottom + 1;
        }).length"""
    )
    assert within >= 18
    window.check()


def test_without_a_login_the_page_says_what_to_run(daemon: DaemonProcess, browser: Browser) -> None:
    window = open_window(browser, daemon.endpoint.url, DESK)
    expect(window.page.get_by_role("heading", name="Log in")).to_be_visible()
    expect(window.page.get_by_text("aegis-actors web")).to_be_visible()
    window.check()
