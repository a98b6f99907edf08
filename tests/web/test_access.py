"""Access to the daemon, its settings in a browser, its processes, and its stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.e2e.harness import DaemonProcess
from tests.resources.waiting import until
from tests.web.browser import DESK, PHONE, Window, address, log_in, needs_chromium, open_window
from tests.web.studio import Studio

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

BOTH = pytest.mark.parametrize("form", [DESK, PHONE], ids=["desk", "phone"])


CHECK_MS = 60_000
"""An examination starts a daemon and three shells."""


def dialog(window: Window, name: str) -> Locator:
    return window.page.get_by_role("dialog", name=name)


def address_in(box: Locator) -> str:
    text: str = box.get_by_role("textbox", name="Address").input_value()
    return text


@BOTH
def test_a_read_only_link_is_made_opened_and_revoked(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    name = f"link-{'phone' if form is PHONE else 'desk'}"
    studio.call("term_spawn", name=name)
    window = log_in(browser, studio.daemon, form)
    window.go("/access")
    page = window.page
    page.get_by_role("button", name="New link").click()
    box = dialog(window, "New read-only link")
    box.get_by_label("What it shows").select_option(f"terminal:{name}")
    box.get_by_label("Ends after").select_option("3600")
    box.get_by_label("For whom").fill("for kim")
    box.get_by_role("button", name="Make the link").click()
    made = dialog(window, f"Link to Terminal {name}")
    url = address_in(made)
    made.get_by_role("button", name="Done").click()
    row = page.get_by_role("region", name="Link").get_by_role("row", name=name)
    expect(row).to_contain_text("for kim")
    other = open_window(browser, url)
    expect(other.page.get_by_text("read-only")).to_be_visible()
    expect(other.page.get_by_role("heading", name=name)).to_be_visible()
    for absent in ("Everything", "Pages"):  # neither rail nor bar
        expect(other.page.get_by_role("navigation", name=absent)).to_have_count(0)
    other.page.keyboard.press("Control+k")
    expect(other.page.get_by_role("dialog")).to_have_count(0)
    row.get_by_role("button", name="Revoke").click()
    confirm = dialog(window, f"Revoke the link to Terminal {name}?")
    expect(confirm).to_contain_text("disconnected")
    confirm.get_by_role("button", name="Revoke").click()
    expect(row).to_have_count(0)
    expect(other.page.get_by_role("heading", name="Log in")).to_be_visible()
    # Another test of this studio may have left links of its own.
    left = [each["view"] for each in studio.call("page_list")["links"]]
    assert f"terminal:{name}" not in left
    window.check()


def test_another_browser_is_logged_in_and_revoked(studio: Studio, browser: Browser) -> None:
    window = log_in(browser, studio.daemon)
    window.go("/access")
    page = window.page
    page.get_by_role("button", name="Log in another").click()
    box = dialog(window, "Log in another browser")
    other = open_window(browser, address_in(box), PHONE)
    other.wait_live()
    box.get_by_role("button", name="Done").click()
    page.reload()
    rows = page.get_by_role("region", name="Browser").get_by_role("row")
    own = rows.filter(has_text="this browser")
    expect(own).to_have_count(1)
    for row in rows.filter(has=page.get_by_role("button", name="Revoke")).all():
        del row  # each is the first after the one before is gone
        rows.get_by_role("button", name="Revoke").first.click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
    expect(other.page.get_by_role("heading", name="Log in")).to_be_visible()
    own.get_by_role("button", name="Log out").click()
    dialog(window, "Log this browser out?").get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert studio.call("page_list")["pages"] == []
    window.check()


UPLOAD = """fetch('/upload?name=x.txt',
{ method: 'POST', body: 'x', headers: { 'X-Aegis-Page': app.link.pageKey() } })
.then(answer => answer.status)"""


OLD_KEY = """() => {
  const { link } = app, { pageKey } = link;
  link.pageKey = () => { link.pageKey = pageKey; return 'x'; };
  link.redial();
}"""


def beside(window: Window, url: str) -> Window:
    """Open an address in another tab of the same browser."""
    page = window.context.new_page()
    page.goto(url)
    found = Window(page, window.context, window.origin)
    found.wait("globalThis.app?.link?.state === 'up'")
    return found


def test_a_browser_that_logs_in_again_keeps_its_tabs_and_its_login(
    studio: Studio, browser: Browser
) -> None:
    first = log_in(browser, studio.daemon)
    before = {each["id"] for each in studio.call("page_list")["pages"]}
    second = beside(first, address(studio.daemon))
    assert {each["id"] for each in studio.call("page_list")["pages"]} == before
    assert first.page.evaluate(UPLOAD) == 200
    first.page.evaluate("app.link.redial()")
    first.wait("app.link.state === 'up'")
    second.page.reload()
    second.wait("app.link?.state === 'up'")
    # A tab that was refused with a key of before looks for the present one.
    first.page.evaluate(OLD_KEY)
    first.wait("app.link.state === 'up'")
    # An address that is opened in a tab of the page logs in there.
    first.page.goto(address(studio.daemon))
    first.wait("app.link?.state === 'up' && !location.hash.includes('code')")
    assert {each["id"] for each in studio.call("page_list")["pages"]} == before
    studio.call("page_revoke", id=first.page.evaluate("app.link.me.page"))
    for window in (first, second):
        expect(window.page.get_by_role("heading", name="Log in")).to_be_visible()
    first.check()


def test_two_links_are_open_in_two_tabs_of_a_browser(studio: Studio, browser: Browser) -> None:
    names = ["first-link", "second-link"]
    for name in names:
        studio.call("term_spawn", name=name)
    one, two = [studio.call("page_link", view=f"terminal:{name}")["url"] for name in names]
    first = open_window(browser, one)
    first.wait_live()
    second = beside(first, two)
    first.page.evaluate("app.link.redial()")
    first.wait("app.link.state === 'up'")
    second.page.reload()
    for window, name in ((first, names[0]), (second, names[1])):
        window.wait("app.link?.state === 'up'")
        expect(window.page.get_by_role("heading", name=name)).to_be_visible()
    first.check()


def test_an_installed_page_takes_the_address_that_logs_in(studio: Studio, browser: Browser) -> None:
    window = open_window(browser, address(studio.daemon).partition("/#")[0], PHONE)
    form = window.page.locator("form")
    form.get_by_label("Address").fill("guess")
    form.get_by_role("button", name="Log in").click()
    expect(window.page.get_by_role("alert")).to_contain_text("log in again")
    form.get_by_label("Address").fill(f" {address(studio.daemon)}\n")
    form.get_by_role("button", name="Log in").click()
    window.wait_live()
    assert window.page.evaluate("document.body.scrollWidth <= innerWidth")
    # The refused guess is an answer that the browser itself reports.
    assert len(window.errors) == 1
    assert "403" in window.errors.pop()
    window.check()


@BOTH
def test_the_address_of_an_agent_is_made_replaced_and_revoked(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    name = f"editor-{'phone' if form is PHONE else 'desk'}"
    window = log_in(browser, studio.daemon, form)
    window.go("/access")
    page = window.page
    page.get_by_role("button", name="New address").click()
    box = dialog(window, "Address for an agent")
    box.get_by_label("Name").fill("no spaces allowed")
    box.get_by_role("button", name="Make the address").click()
    expect(box.get_by_role("alert")).to_be_visible()
    box.get_by_label("Name").fill(name)
    box.get_by_role("button", name="Make the address").click()
    made = dialog(window, f"Address of {name}")
    first = address_in(made)
    assert first == studio.call("session_new", handle=name)["url"]
    made.get_by_role("button", name="Done").click()
    page.get_by_role("button", name=f"Replace the address of {name}").click()
    page.get_by_role("dialog").get_by_role("button", name="Replace", exact=True).click()
    assert address_in(made) != first
    made.get_by_role("button", name="Done").click()
    page.get_by_role("button", name=f"Revoke the address of {name}").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert name not in studio.call("session_list")["handles"]
    window.check()


def test_the_operators_key_is_replaced(own_daemon: DaemonProcess, browser: Browser) -> None:
    own_daemon.start("--port", "0")
    window = log_in(browser, own_daemon)
    window.go("/access")
    before = own_daemon.endpoint.token
    window.page.get_by_role("button", name="Replace the key of the operator").click()
    box = dialog(window, "Replace the key of the operator?")
    expect(box).to_contain_text("All browsers are logged out")
    box.get_by_role("button", name="Replace").click()
    expect(window.page.get_by_role("heading", name="Log in")).to_be_visible()
    until(lambda: own_daemon.endpoint.token != before, "the key is another one")


BUSY = """setTimeout(() => {
  const till = performance.now() + 20000;
  while (!document.cookie.includes('go=') && performance.now() < till);
}); 0"""
"""A page that hears of nothing until another one lets it go on."""


@BOTH
def test_settings_hold_at_once_in_all_windows_and_after_a_reload(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    window = log_in(browser, studio.daemon, form)
    page = window.page
    other = window.context.new_page()
    other.goto(window.origin)
    window.go("/settings")
    expect(page.get_by_role("radiogroup", name="Theme")).to_be_visible()
    other.evaluate(BUSY)
    page.get_by_role("radiogroup", name="Theme").get_by_role("radio", name="Dark").click()
    page.get_by_role("radiogroup", name="Text size").get_by_role("radio", name="Largest").click()
    page.get_by_role("radiogroup", name="Clock").get_by_role("radio", name="12 hours").click()
    page.evaluate("document.cookie = 'go=1'")  # it hears of the first choice, behind the others
    page.get_by_role("radio", name="Always dark").click()
    page.get_by_label("Font of terminals").last.fill("Fira Code")
    page.get_by_role("button", name="Larger letters").click()
    page.get_by_role("radiogroup", name="Screen reader").get_by_role("radio", name="On").click()
    page.get_by_label("Editor").last.select_option("own")
    page.get_by_label("Link of the editor").fill("javascript:{path}")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Link of the editor").fill("my-editor://{path}:{line}")
    expect(page.get_by_role("alert")).to_have_count(0)
    shown = "[document.documentElement.dataset.theme, document.documentElement.dataset.size]"
    until(lambda: page.evaluate(shown) == ["dark", "xl"], "it is shown")
    until(lambda: other.evaluate(shown) == ["dark", "xl"], "the other window follows")
    page.reload()
    expect(page.get_by_label("Link of the editor")).to_have_value("my-editor://{path}:{line}")
    expect(page.get_by_label("Size of terminals").get_by_text("14 px")).to_be_visible()
    until(lambda: page.evaluate(shown) == ["dark", "xl"], "it is kept")
    window.check()


@BOTH
def test_the_processes_are_shown_searched_and_walked(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    name = f"tree-{'phone' if form is PHONE else 'desk'}"
    studio.call("term_spawn", name=name)
    window = log_in(browser, studio.daemon, form)
    window.go("/tree")
    page = window.page
    daemon = page.get_by_role("region", name="Daemon")
    expect(daemon).to_contain_text(studio.call("status")["version"])
    expect(daemon).to_contain_text(str(studio.daemon.root))
    tree = page.get_by_role("tree", name="Processes")
    root = tree.get_by_role("treeitem").first
    root.focus()
    page.keyboard.press("ArrowLeft")
    expect(tree.get_by_role("treeitem")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(tree.get_by_role("treeitem")).not_to_have_count(1)
    page.keyboard.press("ArrowDown")
    window.wait("document.activeElement.getAttribute('role') === 'treeitem'")
    page.get_by_role("searchbox", name="Search processes").fill(name)
    found = page.get_by_role("list", name="Found processes")
    expect(found).to_contain_text(name)
    studio.call("term_close", name=name)
    expect(found).to_contain_text("None.")
    page.get_by_role("button", name="Join a host").click()
    expect(dialog(window, "Join another host")).to_contain_text("aegis-actors join")
    window.check()


@BOTH
def test_the_machine_is_checked_with_problems_first(
    own_daemon: DaemonProcess, browser: Browser, form: dict[str, Any]
) -> None:
    own_daemon.start("--port", "0")
    own_daemon.terminal("build").run("true")
    (own_daemon.state.terminals / "build" / "meta.json").write_text("{")
    window = log_in(browser, own_daemon, form)
    window.go("/tree")
    section = window.page.get_by_role("region", name="Check", exact=True)
    expect(section).to_contain_text("Nothing is changed")
    section.get_by_role("button", name="Check this machine").click()
    expect(section).to_contain_text("Checking")
    found = section.get_by_role("list", name="Findings").get_by_role("listitem")
    expect(found.first).to_contain_text("meta.json is damaged", timeout=CHECK_MS)
    expect(found.first).to_contain_text("To do: Close the terminal and spawn it again")
    expect(found.first.get_by_role("img", name="problem")).to_be_visible()
    expect(found.filter(has_text="shell bash")).to_contain_text("exact boundaries")
    expect(section.get_by_role("status")).to_contain_text("1 problem")
    window.check()
    if form is PHONE:
        return
    window.go("/")
    window.page.keyboard.press("Control+k")
    window.page.keyboard.type("check this machine")
    window.page.keyboard.press("Enter")
    expect(found.first).to_contain_text("meta.json is damaged", timeout=CHECK_MS)


def test_the_daemon_is_stopped_after_a_question(tmp_path: Path, browser: Browser) -> None:
    daemon = DaemonProcess(tmp_path)
    daemon.start("--port", "0")
    daemon.call("term_spawn", name="build")
    window = log_in(browser, daemon)
    window.go("/tree")
    window.page.get_by_role("button", name="Stop the daemon").click()
    box = dialog(window, "Stop the daemon?")
    expect(box).to_contain_text("1 terminal")
    box.get_by_role("button", name="Stop it").click()
    expect(window.page.locator("#link")).to_have_text("reconnecting")
    until(lambda: not daemon.is_running, "it has ended")
    daemon.stop()
    daemon.check_left_nothing()
