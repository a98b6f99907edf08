"""The web page in a real browser: login, terminals, blocks, requests, reconnects, phones."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.aegis.test_shown_text import EMOJI
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import Team
from tests.web.browser import address, log_in, needs_chromium, open_window

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]


def test_a_code_logs_in_once_and_a_reload_stays_logged_in(
    daemon: DaemonProcess, browser: Browser
) -> None:
    url = address(daemon)
    window = open_window(browser, url)
    window.wait_live()
    assert "code" not in window.page.url
    window.page.reload()
    window.wait_live()
    late = open_window(browser, url)
    expect(late.page.get_by_role("alert")).to_contain_text("log in again")
    window.check()


NEVER = """() => {
  const made = [];
  class Never {
    constructor() { made.push(this); this.readyState = 0; }
    close() { this.isClosed = true; }
  }
  const { WebSocket: own } = globalThis;
  globalThis.WebSocket = Never;
  app.link.redial();
  app.link.check();
  app.link.check();
  globalThis.WebSocket = own;
  app.link.check();
  return made.map(each => Boolean(each.isClosed));
}"""


def test_a_page_that_is_shown_again_leaves_no_connection_that_was_being_made(
    daemon: DaemonProcess, browser: Browser
) -> None:
    window = log_in(browser, daemon)
    assert window.page.evaluate(NEVER) == [True, True, True]
    window.wait("app.link.state === 'up'")
    window.check()


def test_a_page_that_is_revoked_asks_to_log_in(daemon: DaemonProcess, browser: Browser) -> None:
    window = log_in(browser, daemon)
    page_id = window.page.evaluate("app.link.me.page")
    assert page_id in [each["id"] for each in daemon.call("page_list")["pages"]]
    assert daemon.call("page_revoke", id=page_id)["connections"] == 1
    expect(window.page.get_by_role("heading", name="Log in")).to_be_visible()
    window.check()


def test_a_session_that_rests_on_its_question_needs_an_answer(
    own_daemon: DaemonProcess, browser: Browser
) -> None:
    team = Team(own_daemon)
    window = log_in(browser, own_daemon)
    team.spawn("SAY hello", handle="ada")
    team.has_turns("ada", 1)
    own_daemon.call("ask_human", from_handle="ada", question="Which colour?", wait_s=0)
    expect(window.page.locator("main")).to_contain_text("Which colour?")
    window.go("/a/ada")
    waiting = window.page.get_by_role("region", name="Waits for your answer")
    expect(waiting).to_contain_text("Which colour?")
    window.check()


def test_emoji_are_shown_whole_and_what_hides_beside_them_by_its_number(
    daemon: DaemonProcess, browser: Browser
) -> None:
    daemon.call("term_spawn", name="signs")
    hidden = "a\u200bb\U000e0101\ufe0f\U000e0041👍\u200d1\ufe0f"
    for text in (*EMOJI, hidden):
        daemon.call("term_run", name="signs", cmd=f": '{text}{text}'")
    window = log_in(browser, daemon)
    window.go("/t/signs")
    commands = window.page.locator(".cmd")
    expect(commands).to_have_count(len(EMOJI) + 1)
    named = "aU+200BbU+E0101U+FE0FU+E0041👍U+200D1U+FE0F"
    for at, text in enumerate((named, *reversed(EMOJI))):
        commands.nth(at).click()
        expect(window.page.locator(".block .whole")).to_have_text(f": '{text}{text}'")
    window.check()


EVIL = (
    "<img src=x onerror=alert(1)><script>alert(2)</script>"
    "\x1b]52;c;eA==\x07\x1b[2Jred\u202egnp.exe " + "A" * 200_000
)


def test_what_an_agent_says_is_text(own_daemon: DaemonProcess, browser: Browser) -> None:
    team = Team(own_daemon)
    window = log_in(browser, own_daemon)
    handle = team.spawn(f"SAY {EVIL}\nASK {EVIL[:2000]}", handle="eve")
    expect(window.page.locator("li.ask")).to_have_count(1)
    window.go(f"/a/{handle}")
    talk = window.page.get_by_role("log")
    expect(talk).to_contain_text("<img src=x onerror=alert(1)>")
    expect(window.page.locator("main img, main script")).to_have_count(0)
    shown = window.page.locator("main").inner_text()
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    window.check()
    own_daemon.stop()
