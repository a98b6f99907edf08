"""The web page in a real browser: login, terminals, blocks, requests, reconnects, phones."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.aegis.test_shown_text import EMOJI
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import Team
from tests.e2e.test_telegram import ACP
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
    expect(window.page.locator("main")).to_contain_text("needs an answer: Which colour?")
    window.check()


def test_a_request_is_answered_in_one_browser_and_withdrawn_in_the_other(
    own_daemon: DaemonProcess, browser: Browser
) -> None:
    team = Team(own_daemon)
    first, second = log_in(browser, own_daemon), log_in(browser, own_daemon)
    own_daemon.call("term_spawn", name="build")
    own_daemon.call("term_spawn", name="server")
    own_daemon.call("term_run", name="build", cmd="echo 'all 214 tests passed'")
    own_daemon.call("term_run", name="server", cmd="sleep 1000", until="started")
    handle = team.spawn(
        "SAY I look at the failing test first.\nASK touch x\nSAY done", handle="ada"
    )
    team.spawn("SAY The pages are written.", handle="grace")
    for window in (first, second):
        expect(window.page.locator(".ask")).to_have_count(1)
        expect(window.page.locator(".ask pre")).to_contain_text("touch x")
    first.page.wait_for_timeout(500)  # a button that has just appeared takes no click
    first.page.get_by_role("button", name="Allow once").click()
    first.page.mouse.move(1, 1)  # under the pointer nothing moves
    for window in (first, second):
        expect(window.page.locator(".ask")).to_have_count(0)
    second.go(f"/a/{handle}")
    expect(second.page.get_by_role("log")).to_contain_text("done")
    again = team.spawn("ASK touch y")
    expect(first.page.locator(".ask")).to_have_count(1)
    [request] = own_daemon.call("request_list")["requests"]
    own_daemon.cli("request", "answer", request["id"], "deny")
    expect(first.page.locator(".ask")).to_have_count(0)
    assert again in first.page.locator("main").inner_text()
    first.check()
    second.check()
    own_daemon.stop()


def test_each_of_several_options_of_one_kind_has_a_button(
    own_daemon: DaemonProcess, browser: Browser
) -> None:
    team = Team(own_daemon, more={"acp": ACP})
    window = log_in(browser, own_daemon)
    handle = team.spawn("CHOOSE touch x", profile="acp")
    buttons = window.page.locator(".ask button")
    names = ["Allow once: Run it here", "Allow once: Run it in a sandbox", "Deny"]
    expect(buttons).to_have_text(names)
    window.page.wait_for_timeout(500)  # a button that has just appeared takes no click
    buttons.nth(1).click()
    team.has_outcomes(handle, "completed")
    assert "chose sandbox" in "".join(team.texts(handle))
    window.check()
    own_daemon.stop()


def test_emoji_are_shown_whole_and_what_hides_beside_them_by_its_number(
    daemon: DaemonProcess, browser: Browser
) -> None:
    window = log_in(browser, daemon)

    def shown(text: str) -> str:
        code = "async text => (await import('./dom.js')).plain(text)"
        return str(window.page.evaluate(code, text))

    for emoji in EMOJI:
        assert shown(f"done {emoji}{emoji}") == f"done {emoji}{emoji}"
    hidden = "a\u200bb\U000e0101\ufe0f\U000e0041👍\u200d1\ufe0f"
    assert shown(hidden) == "a⟨U+200B⟩b⟨U+E0101⟩⟨U+FE0F⟩⟨U+E0041⟩👍⟨U+200D⟩1⟨U+FE0F⟩"
    window.check()


CARD = """async request => {
    const { requestCard } = await import('./requests.js');
    const blank = { id: 'r', digest: 'd', handle: 'ann', kind: 'permission', tool: 'T' };
    const card = requestCard({ ...blank, options: [], created: '', ...request }, app);
    document.body.append(card);
    const text = card.innerText;
    card.remove();
    return text;
}"""
"""Shows a request on a card of its own, and returns its text."""


def test_an_input_is_shown_to_its_end_and_a_change_as_lines(
    daemon: DaemonProcess, browser: Browser
) -> None:
    window = log_in(browser, daemon)

    def shown(kind: str, **fields: object) -> str:
        text: str = window.page.evaluate(CARD, {"tool_kind": kind, "input": fields})
        return text

    assert "rm -rf /" in shown("execute", command=f"true {'x' * 60_000} ; rm -rf /", cwd="/srv")
    assert "/srv" in shown("execute", command="true", cwd="/srv")
    assert "rm -rf /" in shown("other", command=f"true {' ' * 60_000} ; rm -rf /")
    change = {"file_path": "a.py", "old_string": "one\ntwo\n", "new_string": "one\nthree\n"}
    text = shown("edit", **change, replace_all=True)
    assert "a.py" in text
    assert " one\n-two\n+three" in text
    assert '"replace_all": true' in text
    long = {**change, "new_string": "x\n" * 5_000 + "rm -rf /"}
    assert "rm -rf /" in shown("edit", **long)
    diff = {"type": "diff", "path": "b.py", "oldText": None, "newText": "new\n"}
    text = shown("edit", title="b.py", content=[diff, {"type": "other", "text": "beside"}])
    assert "+new" in text
    assert "beside" in text
    assert '"title": "b.py"' in text
    assert "unknown" in shown("edit", content=[{**diff, "unknown": 1}])
    window.check()


EVIL = (
    "<img src=x onerror=alert(1)><script>alert(2)</script>"
    "\x1b]52;c;eA==\x07\x1b[2Jred\u202egnp.exe " + "A" * 200_000
)


def test_what_an_agent_says_is_text(own_daemon: DaemonProcess, browser: Browser) -> None:
    team = Team(own_daemon)
    window = log_in(browser, own_daemon)
    handle = team.spawn(f"SAY {EVIL}\nASK {EVIL[:2000]}", handle="eve")
    expect(window.page.locator(".ask")).to_have_count(1)
    window.go(f"/a/{handle}")
    said = window.page.locator(".said", has_text="<img src=x onerror=alert(1)>")
    expect(said).not_to_have_count(0)
    assert window.page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    shown = window.page.locator("main").inner_text()
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    window.check()
    own_daemon.stop()
