"""The views of coordination in a browser: canvases, groups, inboxes, queues, workflows."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.resources.waiting import until
from tests.web.browser import DESK, PHONE, Window, log_in, needs_chromium
from tests.web.studio import Studio

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

on_both = pytest.mark.parametrize("form", [DESK, PHONE], ids=["desk", "phone"])
"""For tests of a whole way through the page, once on a desk and once on a phone."""


def fits(window: Window) -> None:
    """Check that nothing is wider than the window."""
    wide = (
        "document.documentElement.scrollWidth > innerWidth || main.scrollWidth > main.clientWidth"
    )
    assert not window.page.evaluate(wide)
    window.check()


@on_both
def test_a_section_is_edited_and_another_writers_change_is_not_overwritten(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    window = log_in(browser, studio.daemon, form)
    window.page.get_by_role("link", name="plan").click()
    part = window.page.get_by_role("region", name="Goals")
    part.get_by_role("button", name="Edit").click()
    part.get_by_role("textbox").fill("- ship\n- of the page")
    rev = studio.goals()["rev"]
    written = {"name": "plan", "section": "Goals", "content": "- of ada", "if_rev": rev}
    studio.call("canvas_write_section", **written, from_handle="ada")
    expect(part.get_by_role("alert")).to_contain_text("ada has written this section")
    part.get_by_role("button", name="Save").click()
    expect(window.page.locator("#toasts")).not_to_contain_text("saved")
    expect(part.get_by_role("alert")).to_contain_text("- of ada")
    assert studio.goals()["text"] == "- of ada"
    part.get_by_role("button", name="Keep mine").click()
    part.get_by_role("button", name="Save").click()
    expect(part.locator("pre")).to_have_text("- ship\n- of the page")
    assert studio.goals()["text"] == "- ship\n- of the page"
    assert "- ship\n- of the page" in studio.plan.read_text()
    fits(window)


def test_the_others_text_can_be_taken_and_other_sections_change_meanwhile(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon)
    window.go("/c/plan")
    part = window.page.get_by_role("region", name="Goals")
    part.get_by_role("button", name="Edit").click()
    part.get_by_role("textbox").fill("mine")
    studio.call("canvas_append_to_section", name="plan", section="Log", text="more")
    expect(window.page.get_by_role("region", name="Log").locator("pre")).to_contain_text("more")
    expect(part.get_by_role("textbox")).to_have_value("mine")
    studio.plan.write_text(studio.plan.read_text().replace("- ", "* "))
    part.get_by_role("button", name="Take theirs").click()
    expect(part.get_by_role("textbox")).to_have_value(re.compile(r"^\* "))
    window.page.keyboard.press("Escape")
    window.page.get_by_role("button", name="+ Section").click()
    window.page.keyboard.type("Risks")
    window.page.keyboard.press("Tab")
    window.page.keyboard.type("none")
    window.page.get_by_role("button", name="Add").click()
    expect(window.page.get_by_role("region", name="Risks").locator("pre")).to_have_text("none")
    assert "## Risks\n\nnone" in studio.plan.read_text()
    window.check()


def test_a_group_gets_an_order_and_shows_its_replies(studio: Studio, browser: Browser) -> None:
    name = "committee"
    window = log_in(browser, studio.daemon)
    studio.call("group_spawn_mixed", group=name, preset="pair")
    window.page.get_by_role("link", name=name).click()
    members = window.page.get_by_role("region", name="Members")
    expect(members.locator("a.row")).to_have_count(2)
    window.page.get_by_label("Order to all members").fill("SAY from the page")
    window.page.get_by_role("button", name="Send to all").click()
    replies = window.page.get_by_role("list", name="Replies")
    expect(replies.locator("pre", has_text="from the page")).to_have_count(2)
    expect(replies.locator(".chip.good", has_text="replied")).to_have_count(2)
    fits(window)
    window.page.get_by_role("button", name="Dissolve").click()
    window.page.get_by_role("button", name="Yes").click()
    expect(window.page.get_by_text("there is no such group")).to_be_visible()
    window.go("/")
    window.page.wait_for_selector(".cols")
    expect(window.page.get_by_role("link", name=name)).to_have_count(0)
    window.check()


def test_messages_to_a_person_are_shown_and_acknowledged(studio: Studio, browser: Browser) -> None:
    window, other = log_in(browser, studio.daemon), log_in(browser, studio.daemon)
    studio.send("human", "the tests pass\n<b>now</b>", sender="ada")
    for each in (window, other):
        expect(each.page.get_by_role("region", name="Messages to you")).to_contain_text("ada")
    window.go("/m/human")
    shown = window.page.locator(".letter", has_text="the tests pass")
    expect(shown.first.locator(".said")).to_have_text("the tests pass\n<b>now</b>")
    expect(shown.first.locator(".dot.bad")).to_have_count(1)
    fits(window)
    window.page.get_by_role("button", name="Mark all as read").click()
    expect(shown.first.locator(".dot.off")).to_have_count(1)
    assert studio.call("inbox_read")["messages"] == []
    window.go("/")
    window.page.wait_for_selector(".cols")
    expect(window.page.get_by_role("region", name="Messages to you")).to_have_count(0)
    window.check()


def test_the_inbox_of_another_is_read_without_a_reader_and_written_to(
    studio: Studio, browser: Browser
) -> None:
    studio.call("inbox_read", from_handle="bob")
    studio.send("bob", "first", sender="ada")
    window = log_in(browser, studio.daemon)
    window.page.keyboard.press("i")
    window.page.get_by_role("link", name="bob").click()
    expect(window.page.locator(".letter .said")).to_have_text("first")
    window.page.get_by_label("Message to bob").fill("second")
    window.page.keyboard.press("Control+Enter")
    expect(window.page.locator(".letter")).to_have_count(2)
    expect(window.page.locator(".letter").first).to_contain_text("human")
    sent = studio.call("handoff", target_handle="bob", context="third", from_handle="ada")
    assert (sent["status"], sent["position"]) == ("queued", 2)
    expect(window.page.locator(".letter")).to_have_count(3)
    fits(window)


def test_a_workflow_asks_and_ends(studio: Studio, browser: Browser) -> None:
    window = log_in(browser, studio.daemon)
    studio.call("workflow_trust")
    id_ = studio.release("1.2")
    window.page.locator(f'a[href="#/w/{id_}"]').click()
    expect(window.page.get_by_role("heading", name="release")).to_be_visible()
    expect(window.page.locator("dl.facts")).to_contain_text('"version": "1.2"')
    window.go("/")
    ask = window.page.locator(".ask", has_text="Publish 1.2?")
    expect(ask.get_by_role("link", name="release")).to_be_visible()
    ask.get_by_label("yes").check()
    window.page.wait_for_timeout(450)  # an answer that has just appeared takes no click
    ask.get_by_role("button", name="Answer").click()
    until(lambda: bool(studio.call("workflow_status", workflow_id=id_)["ended"]), "its end")
    window.go(f"/w/{id_}")
    expect(window.page.locator("dl.facts")).to_contain_text('"1.2: yes"')
    fits(window)


def test_a_workflow_is_cancelled_and_retried(studio: Studio, browser: Browser) -> None:
    studio.call("workflow_trust")
    id_ = studio.release("1.3")
    window = log_in(browser, studio.daemon)
    window.go(f"/w/{id_}")
    window.page.get_by_role("button", name="Cancel").click()
    expect(window.page.locator(".head")).to_contain_text("cancelled")
    window.page.get_by_role("button", name="Resume").click()
    expect(window.page.locator(".head")).to_contain_text("running")
    window.page.get_by_role("button", name="Cancel").click()
    expect(window.page.locator(".head")).to_contain_text("cancelled")
    window.check()


def test_a_queue_is_paused_and_shows_its_tasks(studio: Studio, browser: Browser) -> None:
    window = log_in(browser, studio.daemon)
    window.page.locator('a[href="#/q/builds"]').click()
    window.page.get_by_role("button", name="Pause").click()
    expect(window.page.locator(".head")).to_contain_text("paused")
    studio.call("enqueue", queue="builds", payload="SAY built")
    expect(window.page.locator("a.row", has_text="pending")).to_have_count(1)
    late = studio.call(
        "enqueue", queue="builds", payload="SAY late", not_before="2099-01-01T12:00Z"
    )
    waiting = window.page.locator("a.row", has_text="waiting")
    expect(waiting).to_contain_text(f"waits until {late['not_before']}")
    studio.call("cancel", task_id=late["task_id"])
    window.page.get_by_role("button", name="Resume").click()
    expect(window.page.locator("a.row", has_text="pending")).to_have_count(0)
    expect(window.page.locator("a.row", has_text="completed")).not_to_have_count(0)
    fits(window)


@on_both
def test_an_agents_changes_are_shown_as_differences_whichever_way_it_reports_them(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    handle = f"mender-{form['viewport']['width']}"
    studio.works(handle)
    window = log_in(browser, studio.daemon, form)
    window.go(f"/a/{handle}")
    given = window.page.locator("details.tool", has_text="Edit shop/cart.py")
    expect(given.locator(".del")).to_have_text("-    return sum(items, items[0])")
    expect(given.locator(".add")).to_have_text("+    return sum(items, start=0)")
    several = window.page.locator("details.tool", has_text="Patch 2 files")
    expect(several.locator(".file")).to_have_text(["shop/tax.py", "tests/tax.py"])
    expect(several.locator(".del")).to_have_text(["-RATE = 19"])
    expect(several.locator(".add")).to_have_text(["+RATE = 7", "+from shop import tax"])
    expect(several.locator(".diff > div")).to_have_count(3)
    fits(window)


LATER = '''
"""A plugin that came after the others were trusted."""

from aegis import workflow


@workflow
async def greet(engine, name: str, times: int = 1, loud: bool = False, words: list[str] = ()):
    """Greet somebody."""
    return repr((name, times, loud, list(words)))
'''


@on_both
def test_plugins_are_trusted_and_a_workflow_is_run_with_its_arguments(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    plugin = studio.daemon.root / ".aegis" / "plugins" / f"greet_{form['viewport']['width']}.py"
    plugin.write_text(LATER)
    window = log_in(browser, studio.daemon, form)
    page = window.page
    page.keyboard.press("w")
    dialog = page.get_by_role("dialog", name="Run a workflow")
    expect(dialog).to_contain_text(plugin.name)
    fits(window)
    dialog.get_by_role("button", name="Trust the plugins").click()
    expect(page.get_by_role("dialog", name="Trust the plugins?")).to_contain_text(plugin.name)
    page.get_by_role("button", name="Yes").click()
    dialog.get_by_label("Workflow").select_option("greet")
    expect(dialog).to_contain_text("Greet somebody.")
    dialog.get_by_label("name: str").fill("12")
    dialog.get_by_label("times").fill("3")
    dialog.get_by_label("loud").select_option("yes")
    dialog.get_by_label("words").fill("[1")
    dialog.get_by_role("button", name="Run").click()
    expect(dialog.get_by_role("alert")).to_have_text("words: the value is not JSON")
    dialog.get_by_label("words").fill('["a"]')
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="greet")).to_be_visible()
    expect(page.locator("dl.facts")).to_contain_text("('12', 3, True, ['a'])")
    fits(window)
    plugin.unlink()
    studio.call("workflow_trust")


@on_both
def test_a_canvas_is_opened_and_a_refusal_is_said_in_the_dialog(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    name = f"notes-{form['viewport']['width']}"
    window = log_in(browser, studio.daemon, form)
    window.page.get_by_role("button", name="+ Canvas").click()
    dialog = window.page.get_by_role("dialog", name="Open a canvas")
    dialog.get_by_label("Name of the canvas").fill(name)
    dialog.get_by_label("Its Markdown file").fill("/etc/passwd")
    dialog.get_by_role("button", name="Open").click()
    expect(dialog.get_by_role("alert")).to_contain_text("/etc/passwd")
    dialog.get_by_label("Its Markdown file").fill(f"{name}.md")
    dialog.get_by_role("button", name="Open").click()
    expect(window.page.get_by_role("heading", name=f"Canvas {name}")).to_be_visible()
    window.page.get_by_role("button", name="+ Section").click()
    window.page.get_by_label("Heading of the section").fill("Risks")
    window.page.get_by_role("button", name="Add").click()
    expect(window.page.get_by_role("region", name="Risks")).to_be_visible()
    assert "## Risks" in (studio.daemon.root / f"{name}.md").read_text()
    fits(window)
