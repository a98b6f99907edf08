"""The primitives on the page: queues, canvases, workflows, groups and inboxes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, expect

from aegis.client.line import CommandFailed
from tests.resources.waiting import until
from tests.web.browser import DESK, PHONE, Window, address, log_in, needs_chromium, open_window
from tests.web.studio import Studio
from tests.web.wire import TO_DAEMON, Wire, wire_to

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

on_both = pytest.mark.parametrize("form", [DESK, PHONE], ids=["desk", "phone"])


def main(window: Window) -> Locator:
    return window.page.get_by_role("main")


def note(window: Window, text: str) -> Locator:
    return window.page.get_by_role("status").get_by_text(text)


def fits(window: Window) -> None:
    """Check that nothing is wider than the window, and that nothing went wrong."""
    window.wait("document.documentElement.scrollWidth <= innerWidth")
    window.check()


@pytest.fixture(autouse=True)
def _nothing_is_left(studio: Studio) -> Iterator[None]:
    yield
    studio.call("queue_resume", queue="builds")
    for task in studio.call("task_list", limit=500)["result"]:
        with contextlib.suppress(CommandFailed):  # it has ended
            studio.call("cancel", task_id=task["task_id"])
    for run in studio.call("workflow_list", limit=100)["result"]:
        if run["status"] == "running":
            studio.call("workflow_cancel", workflow_id=run["workflow_id"])
    for group in studio.call("group_list")["result"]:
        studio.call("group_dissolve", group=group["group"])
    for peer in studio.call("list_sessions")["result"]:
        with contextlib.suppress(CommandFailed):  # a worker whose task has ended closes by itself
            studio.call("close", handle=peer["handle"])


@pytest.fixture
def wire(studio: Studio) -> Iterator[Wire]:
    with wire_to(urlsplit(studio.daemon.endpoint.url).port or 0) as made:
        yield made


def log_in_over(wire: Wire, browser: Browser, studio: Studio) -> Window:
    """A window whose connection to the daemon can be held."""
    url = re.sub(r":\d+/", f":{wire.port}/", address(studio.daemon), count=1)
    window = open_window(browser, url)
    window.wait_live()
    window.allow_silence()
    return window


# Queues.


def tasks(window: Window) -> Locator:
    return window.page.get_by_role("list", name="Tasks").locator("> li")


def task(window: Window, text: str) -> Locator:
    return tasks(window).filter(has_text=text)


def add(studio: Studio, payload: str, **more: object) -> str:
    id_: str = studio.call("enqueue", queue="builds", payload=payload, **more)["task_id"]
    return id_


def status(studio: Studio, id_: str) -> dict[str, Any]:
    return studio.call("task_status", task_id=id_)


def in_order(studio: Studio) -> list[str]:
    """The texts of the tasks that have not begun, in the order in which they will."""
    found = studio.call("task_list", queue="builds", limit=100)["result"]
    return [each["payload"] for each in found if each["status"] == "pending"]


@on_both
def test_a_task_is_added_with_its_priority_time_and_order_and_cancelled(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    studio.call("queue_pause", queue="builds")
    first, text = add(studio, "SAY the first"), f"SAY {form['viewport']['width']}"
    window = log_in(browser, studio.daemon, form)
    window.go("/queues")
    window.page.get_by_role("link", name="builds").click()
    expect(main(window).get_by_role("heading", name="builds")).to_be_visible()
    window.page.get_by_label("A new task").fill(f"{text}\n\nwith a second line")
    window.page.get_by_role("button", name="Priority, time, order").click()
    window.page.get_by_label("Priority", exact=False).last.fill("4")
    window.page.get_by_label("Not before").fill("2099-01-01T12:00")
    window.page.get_by_label("Attempts at most").fill("2")
    window.page.get_by_role("group", name="After").get_by_label("SAY the first").check()
    window.page.get_by_label("A new task").press("Control+Enter")
    expect(note(window, "Added; the queue is paused")).to_be_visible()
    expect(task(window, text)).to_contain_text("+4" if form is DESK else text)
    [made] = [
        each
        for each in studio.call("task_list", queue="builds")["result"]
        if each["payload"].startswith(text)
    ]
    assert (made["priority"], made["max_attempts"], made["waiting_for"]) == (4, 2, [first])
    assert made["payload"] == f"{text}\n\nwith a second line"
    assert made["not_before"].startswith("2099-01-01")
    expect(window.page.get_by_label("A new task")).to_have_value("")
    window.settle()
    window.page.get_by_role("button", name=f"Cancel: {text}").click()
    until(lambda: status(studio, made["task_id"])["status"] == "cancelled", "it is cancelled")
    fits(window)


@on_both
def test_a_result_and_an_error_are_read_whole_and_a_task_is_retried(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    width = form["viewport"]["width"]
    title, dies = f"Built {width}", f"DIE {width % 100}"
    long = f"SAY # {title}\n" + "\n".join(f"SAY - part {number} of it" for number in range(80))
    good, bad = add(studio, long), add(studio, dies)
    until(lambda: status(studio, bad)["status"] == "failed", "one fails")
    window = log_in(browser, studio.daemon, form)
    window.go("/q/builds")
    task(window, title).get_by_role("button", expanded=False).click()
    result = task(window, title).get_by_role("region", name="The result")
    expect(result.get_by_text("part 79 of it")).to_have_count(1)
    beginning = task(window, title).get_by_role("region", name="The task")
    expect(beginning).to_contain_text("part 1 of it")
    expect(task(window, title)).to_contain_text("only the beginning")
    worker = status(studio, good)["worker"]
    expect(task(window, title).get_by_role("link", name=worker).last).to_be_visible()
    task(window, dies).get_by_role("button", expanded=False).click()
    error = task(window, dies).get_by_role("region", name="The error")
    expect(error).to_have_text(status(studio, bad)["error"])
    main(window).get_by_role("radio", name="Failed").click()
    expect(task(window, title)).to_have_count(0)
    attempts = status(studio, bad)["attempt"]
    window.settle()
    window.page.get_by_role("button", name=f"Retry: {dies}").click()
    again = {"status": "failed", "attempt": attempts}
    until(lambda: not again.items() <= status(studio, bad).items(), "it runs again")
    fits(window)


def test_a_queue_is_paused_reordered_and_resumed(studio: Studio, browser: Browser) -> None:
    window = log_in(browser, studio.daemon)
    window.go("/q/builds")
    window.page.get_by_role("button", name="Pause").click()
    expect(window.page.locator(".head")).to_contain_text("paused")
    for text in ("SAY one", "SAY two", "SAY three"):
        add(studio, text)
    expect(tasks(window)).not_to_have_count(0)
    expect(task(window, "SAY three")).to_be_visible()

    def move(text: str, where: str, *order: str) -> None:
        """Move a task by its menu; the order is shown at once, and its row has the focus."""
        window.page.get_by_role("button", name=f"Move: SAY {text}").click()
        window.page.get_by_role("menuitem", name=where).click()
        wanted = [f"SAY {each}" for each in order]
        expect(tasks(window).locator(".task-text")).to_have_text(wanted)
        expect(window.page.get_by_role("button", name=f"Move: SAY {text}")).to_be_focused()
        assert in_order(studio) == wanted

    main(window).get_by_role("radio", name="Waiting").click()
    move("three", "Move to the front", "three", "one", "two")
    move("one", "Move down", "three", "two", "one")
    move("one", "Move up", "three", "one", "two")
    move("three", "Move to the end", "one", "two", "three")
    window.page.get_by_role("button", name="Resume").click()
    until(lambda: in_order(studio) == [], "they run")
    fits(window)


def test_a_running_task_is_cancelled_after_a_question(studio: Studio, browser: Browser) -> None:
    id_ = add(studio, "HANG here")
    until(lambda: status(studio, id_)["status"] == "running", "it runs")
    window = log_in(browser, studio.daemon)
    window.go("/q/builds")
    expect(task(window, "HANG here")).to_be_visible()
    window.settle()
    window.page.get_by_role("button", name="Cancel: HANG here").click()
    dialog = window.page.get_by_role("dialog", name="Cancel the task?")
    expect(dialog).to_contain_text("is ended")
    dialog.get_by_role("button", name="Cancel the task").click()
    until(lambda: status(studio, id_)["status"] == "cancelled", "it is cancelled")
    window.check()


def test_what_a_list_of_tasks_leaves_out_is_found_in_the_history_and_opened_by_its_address(
    studio: Studio, browser: Browser
) -> None:
    failed = [add(studio, f"DIE {number}") for number in (7, 8)]
    until(lambda: all(status(studio, id_)["status"] == "failed" for id_ in failed), "they fail")
    long = [add(studio, f"SAY {'x' * 60_000}") for _ in range(6)]
    done = {"completed"}
    until(lambda: {status(studio, id_)["status"] for id_ in long} == done, "the others are done")
    window = log_in(browser, studio.daemon)
    window.go("/q/builds")
    expect(tasks(window)).not_to_have_count(0)
    expect(window.page.get_by_role("button", name="Show more")).to_have_count(0)
    main(window).get_by_role("radio", name="Failed").click()
    expect(tasks(window)).to_have_count(0)
    main(window).get_by_role("link", name="the history").click()
    found = window.page.get_by_role("list", name="Found")
    found.get_by_role("link").filter(has_text="DIE 7").click()
    expect(task(window, "DIE 7").get_by_role("region", name="The error")).to_be_visible()
    expect(tasks(window).first).to_contain_text("DIE 7")
    window.go(f"/q/builds?task={failed[1]}")  # the page is open already
    expect(task(window, "DIE 8").get_by_role("region", name="The error")).to_be_visible()
    window.settle()
    window.page.get_by_role("button", name="Retry: DIE 8").click()
    until(lambda: status(studio, failed[1])["attempt"] == 2, "it runs again")
    window.go(f"/q/builds?task={long[-1]}")
    expect(task(window, "xxx").get_by_role("region", name="The result")).to_be_visible()
    window.go("/home")
    lost = window.page.get_by_role("list", name="Failed tasks").get_by_role("listitem")
    expect(lost.filter(has_text="DIE 7").get_by_role("button", name="Retry")).to_be_visible()
    ended = main(window).get_by_role("list", name="Ended")
    expect(ended.get_by_role("listitem")).not_to_have_count(0)
    window.settle()  # each list that comes moves those below it
    lost.filter(has_text="DIE 7").get_by_role("link").click()
    window.wait("id => location.hash === `#/q/builds?task=${id}`", failed[0])
    window.check()


def test_all_failed_tasks_are_retried_also_those_that_failed_because_of_another_one(
    studio: Studio, browser: Browser
) -> None:
    studio.call("queue_pause", queue="builds")
    first = add(studio, "DIE 9")
    second = add(studio, "SAY second", after=[first])
    third = add(studio, "SAY third", after=[second])
    window = log_in(browser, studio.daemon)
    studio.call("queue_resume", queue="builds")
    until(lambda: status(studio, third)["status"] == "failed", "all fail")
    until(lambda: not studio.call("list_sessions")["result"], "the session of the first is ended")
    window.go("/q/builds")
    expect(task(window, "SAY third")).to_be_visible()
    studio.call("queue_pause", queue="builds")
    window.page.get_by_role("button", name=re.compile(r"Retry\s+\d+ failed")).click()
    wait = {"pending", "waiting"}
    ids = (first, second, third)
    until(lambda: {status(studio, id_)["status"] for id_ in ids} <= wait, "all are to be done")
    window.check()


# Canvases.


def part(window: Window, name: str) -> Locator:
    return window.page.get_by_role("region", name=name, exact=True)


def write_as_ada(studio: Studio, content: str) -> None:
    rev = studio.goals()["rev"]
    given = {"name": "plan", "section": "Goals", "content": content, "if_rev": rev}
    studio.call("canvas_write_section", **given, from_handle="ada")


@on_both
def test_a_section_is_edited_and_another_writers_change_is_not_overwritten(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    window = log_in(browser, studio.daemon, form)
    window.go("/canvases")
    window.page.get_by_role("link", name="plan").click()
    goals = part(window, "Goals")
    goals.get_by_role("button", name="Edit").click()
    goals.get_by_role("textbox").fill("- ship\n- of the page")
    write_as_ada(studio, f"- of ada {form['viewport']['width']}")
    conflict = goals.get_by_role("alert")
    expect(conflict).to_contain_text("ada wrote this section")
    expect(conflict).to_contain_text("- of ada")
    expect(goals.get_by_role("button", name="Save")).to_be_disabled()
    goals.get_by_role("textbox").press("Control+Enter")
    expect(goals.get_by_role("textbox")).to_have_value("- ship\n- of the page")
    assert studio.goals()["text"].startswith("- of ada")
    goals.get_by_role("button", name="Keep mine").click()
    goals.get_by_role("button", name="Save").click()
    expect(goals.get_by_role("listitem")).to_have_text(["ship", "of the page"])
    assert studio.goals()["text"] == "- ship\n- of the page"
    assert "- ship\n- of the page" in studio.plan.read_text()
    fits(window)


def test_theirs_is_taken_and_other_sections_change_meanwhile(
    studio: Studio, browser: Browser
) -> None:
    write_as_ada(studio, "- before")
    window = log_in(browser, studio.daemon)
    window.go("/c/plan")
    goals = part(window, "Goals")
    goals.get_by_role("button", name="Edit").click()
    goals.get_by_role("textbox").fill("mine")
    studio.call("canvas_append_to_section", name="plan", section="Log", text="of elsewhere")
    expect(part(window, "Log")).to_contain_text("of elsewhere")
    expect(goals.get_by_role("textbox")).to_have_value("mine")
    studio.plan.write_text(studio.plan.read_text().replace("- before", "* from outside"))
    expect(goals.get_by_role("alert")).to_contain_text("another program")
    goals.get_by_role("button", name="Take theirs").click()
    expect(goals.get_by_role("textbox")).to_have_value(re.compile(r"^\* from outside"))
    goals.get_by_role("button", name="Discard").click()
    expect(goals.get_by_role("listitem")).to_have_text("from outside")
    window.check()


def test_what_is_written_outlives_a_reload_and_is_discarded_only_after_a_question(
    studio: Studio, browser: Browser
) -> None:
    write_as_ada(studio, "- calm")
    window = log_in(browser, studio.daemon)
    window.go("/c/plan")
    goals = part(window, "Goals")
    goals.get_by_role("button", name="Edit").click()
    goals.get_by_role("textbox").fill("- ten minutes of work")
    window.page.reload()
    window.wait_live()
    expect(goals.get_by_role("textbox")).to_have_value("- ten minutes of work")
    goals.get_by_role("textbox").press("Escape")
    goals.get_by_role("textbox").press("Escape")
    dialog = window.page.get_by_role("dialog", name="Discard what you wrote?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(goals.get_by_role("textbox")).to_have_value("- ten minutes of work")
    goals.get_by_role("button", name="Save").click()
    expect(goals.get_by_role("listitem")).to_have_text("ten minutes of work")
    window.page.reload()
    window.wait_live()
    expect(goals.get_by_role("listitem")).to_have_text("ten minutes of work")
    expect(goals.get_by_role("textbox")).to_have_count(0)
    window.check()


def test_a_section_that_is_removed_while_one_writes_in_it_is_not_lost(
    studio: Studio, browser: Browser
) -> None:
    studio.plan.write_text(f"{studio.plan.read_text()}\n## Short\n\nlived\n")
    window = log_in(browser, studio.daemon)
    window.go("/c/plan")
    short = part(window, "Short")
    short.get_by_role("button", name="Edit").click()
    short.get_by_role("textbox").fill("still here")
    studio.plan.write_text(studio.plan.read_text().partition("\n## Short")[0])
    expect(short.get_by_role("alert")).to_contain_text("removed this section")
    expect(short.get_by_role("textbox")).to_have_value("still here")
    short.get_by_role("button", name="Save").click()
    expect(short).to_contain_text("still here")
    expect(short.get_by_role("textbox")).to_have_count(0)
    assert "## Short\n\nstill here" in studio.plan.read_text()
    window.check()


def test_what_is_typed_while_a_section_is_saved_stays_and_the_focus_returns(
    studio: Studio, browser: Browser, wire: Wire
) -> None:
    write_as_ada(studio, "- saved")
    window = log_in_over(wire, browser, studio)
    window.go("/c/plan")
    goals, keys = part(window, "Goals"), window.page.keyboard
    edit, box = goals.get_by_role("button", name="Edit"), goals.get_by_role("textbox")
    edit.click()
    window.page.evaluate(
        """() => { window.alerts = []; new MutationObserver(() => {
        const alert = document.querySelector('.conflict');
        if (alert) alerts.push(alert.textContent); }).observe(document.body,
        { childList: true, subtree: true }); }"""
    )
    box.fill("- first")
    wire.hold(TO_DAEMON)
    keys.press("Control+Enter")
    keys.press("End")
    keys.type(" and more")
    wire.flow()
    expect(note(window, "Saved")).to_be_visible()
    expect(goals.get_by_role("button", name="Save")).to_be_enabled()
    expect(box).to_have_value("- first and more")
    expect(box).to_be_focused()
    assert studio.goals()["text"] == "- first"
    keys.press("Control+Enter")
    expect(goals.get_by_role("listitem")).to_have_text("first and more")
    expect(edit).to_be_focused()
    assert window.page.evaluate("alerts") == []
    edit.click()
    box.fill("- discarded")
    goals.get_by_role("button", name="Discard").click()
    dialog = window.page.get_by_role("dialog", name="Discard what you wrote?")
    dialog.get_by_role("button", name="Discard").click()
    expect(edit).to_be_focused()

    log = part(window, "Log")
    add = log.get_by_role("button", name="Append")
    add.click()
    log.get_by_role("textbox").fill("one of two")
    wire.hold(TO_DAEMON)
    keys.press("Control+Enter")
    keys.type("\nthe other")
    wire.flow()
    expect(log.get_by_role("textbox")).to_have_value("\nthe other")
    expect(log).to_contain_text("one of two")
    expect(add.last).to_be_enabled()
    keys.press("Control+Enter")
    expect(log.get_by_role("textbox")).to_have_count(0)
    expect(log).to_contain_text("the other")
    expect(add).to_be_focused()
    assert studio.plan.read_text().count("one of two") == 1
    window.check()


def test_a_text_without_headings_is_the_same_to_its_writer_once_it_gets_some(
    studio: Studio, browser: Browser
) -> None:
    file = studio.daemon.root / "plain.md"
    file.write_text("before\n")
    studio.call("canvas_open", name="plain", file="plain.md")
    studio.call("canvas_open", name="blank", file="blank.md")
    window = log_in(browser, studio.daemon)
    first, whole = part(window, "Before the first heading"), part(window, "The whole text")
    goals = {"section": "Goals", "content": "- ship", "from_handle": "ada"}

    window.go("/c/plain")
    whole.get_by_role("button", name="Edit").click()
    whole.get_by_role("textbox").fill("mine")
    studio.call("canvas_write_section", name="plain", **goals)
    expect(first.get_by_role("textbox")).to_have_value("mine")
    expect(first.get_by_role("textbox")).to_be_focused()
    expect(first.get_by_role("alert")).to_have_count(0)
    expect(whole).to_have_count(0)
    file.write_text(file.read_text().partition("\n## Goals")[0])
    expect(whole.get_by_role("textbox")).to_have_value("mine")
    expect(first).to_have_count(0)
    studio.call("canvas_write_section", name="plain", **goals)
    expect(first.get_by_role("textbox")).to_have_value("mine")
    first.get_by_role("button", name="Save").click()
    expect(first.get_by_role("textbox")).to_have_count(0)
    assert file.read_text().split() == ["mine", "##", "Goals", "-", "ship"]

    window.go("/c/blank")
    whole.get_by_role("button", name="Append").click()
    whole.get_by_role("textbox").fill("a beginning")
    studio.call("canvas_write_section", name="blank", **goals)
    expect(first.get_by_role("textbox")).to_have_value("a beginning")
    first.get_by_role("button", name="Append").last.click()
    expect(first.get_by_role("textbox")).to_have_count(0)
    words = (studio.daemon.root / "blank.md").read_text().split()
    assert words == ["a", "beginning", "##", "Goals", "-", "ship"]
    window.check()


def test_the_editor_continues_lists_indents_and_marks(studio: Studio, browser: Browser) -> None:
    window = log_in(browser, studio.daemon)
    window.go("/c/plan")
    log = part(window, "Log")
    log.get_by_role("button", name="Append").click()
    box = log.get_by_label("Append to Log")
    keys = window.page.keyboard
    box.press_sequentially("- one\ntwo")
    expect(box).to_have_value("- one\n- two")
    keys.press("Tab")
    expect(box).to_have_value("- one\n  - two")
    keys.press("Shift+Tab")
    box.press_sequentially("\n\n1. first\nsecond\n")
    expect(box).to_have_value("- one\n- two\n1. first\n2. second\n3. ")
    keys.press("Enter")
    keys.press("Control+b")
    box.press_sequentially("loud")
    expect(box).to_have_value("- one\n- two\n1. first\n2. second\n**loud**")
    keys.press("Control+z")
    box.fill("- [x] done\n")
    keys.press("End")
    log.get_by_role("button", name="Preview").click()
    expect(log.locator(".preview")).to_contain_text("done")
    log.get_by_role("button", name="Preview").click()
    box.fill("home")
    keys.press("Control+a")
    keys.press("Control+k")
    expect(box).to_have_value("[home](https://)")
    expect(window.page.get_by_role("dialog")).to_have_count(0)
    box.fill("kept **appended**")
    log.get_by_role("button", name="Append").last.click()
    expect(log.locator("strong")).to_have_text("appended")
    assert "kept **appended**" in studio.plan.read_text()
    keys.press("Tab")  # outside of lists Tab goes on
    window.check()


@on_both
def test_a_canvas_is_opened_a_refusal_is_said_and_a_section_is_added(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    name = f"notes-{form['viewport']['width']}"
    window = log_in(browser, studio.daemon, form)
    window.go("/canvases")
    window.page.get_by_role("button", name="Open a canvas").click()
    dialog = window.page.get_by_role("dialog", name="Open a canvas")
    dialog.get_by_label("Name").fill(name)
    dialog.get_by_label("Its Markdown file").fill("/etc/passwd")
    dialog.get_by_role("button", name="Open").click()
    expect(dialog.get_by_role("alert")).to_contain_text("/etc/passwd")
    dialog.get_by_label("Its Markdown file").fill(f"{name}.md")
    dialog.get_by_role("button", name="Open").click()
    expect(main(window).get_by_role("heading", name=name, exact=True)).to_be_visible()
    window.page.get_by_role("button", name="Add a section").click()
    window.page.get_by_label("Heading").fill("Risks")
    window.page.get_by_label("Text of the section").fill("- none")
    window.page.get_by_role("button", name="Add", exact=True).click()
    expect(part(window, "Risks").get_by_role("listitem")).to_have_text("none")
    assert "## Risks\n\n- none" in (studio.daemon.root / f"{name}.md").read_text()
    fits(window)


def test_the_history_has_who_wrote_what_and_a_canvas_is_followed(
    studio: Studio, browser: Browser
) -> None:
    write_as_ada(studio, "- old goal\n- same")
    write_as_ada(studio, "- new goal\n- same")
    window = log_in(browser, studio.daemon)
    window.go("/c/plan")
    window.page.get_by_role("button", name="History").click()
    changes = window.page.get_by_role("list", name="Changes").locator("> li")
    newest = changes.first
    expect(newest).to_contain_text("ada wrote Goals")
    expect(newest).to_contain_text("+1")
    newest.get_by_role("button").click()
    expect(newest.locator(".dline.del")).to_have_text(re.compile("- old goal"))
    expect(newest.locator(".dline.add")).to_have_text(re.compile("- new goal"))
    # A section that began with an append: its earlier text is what was appended.
    given = {"name": "plan", "section": "Late"}
    begun = studio.call("canvas_append_to_section", **given, text="- one\n- two")
    studio.call("canvas_write_section", **given, content="- one\n- 2", if_rev=begun["rev"])
    expect(newest).to_contain_text("you wrote Late")
    newest.get_by_role("button").click()
    expect(newest.locator(".dline.del")).to_have_text(re.compile("- two"))
    expect(newest.locator(".dline.add")).to_have_text(re.compile("- 2"))
    window.page.get_by_role("button", name="Follow", exact=True).click()
    expect(window.page.get_by_role("button", name="Following")).to_be_visible()
    write_as_ada(studio, "- for the follower")
    until(
        lambda: any(
            each["sender"].startswith("canvas:plan")
            for each in studio.call("inbox_read")["messages"]
        ),
        "a message about the change",
    )
    window.page.get_by_role("button", name="Following").click()
    expect(window.page.get_by_role("button", name="Follow", exact=True)).to_be_visible()
    [known] = [each for each in studio.call("canvas_list")["result"] if each["name"] == "plan"]
    assert known["subscribers"] == []
    window.check()


# Workflows.


LATER = '''
"""A plugin that came after the others were trusted."""

from typing import Literal

from aegis import workflow


@workflow
async def greet(
    engine, name: str, times: int = 1, loud: bool = False, words: list[str] = (),
    size: Literal["small", "large"] = "small", by: str | None = "nobody",
    more: dict[str, str | None] | None = None, rank: Literal[1, 2] = 1, any=None,
):
    """Greet somebody."""
    engine.log("greeting")
    return repr((name, times, loud, list(words), size, by, more, rank, any))
'''


@on_both
def test_plugins_are_trusted_and_a_workflow_is_run_with_its_arguments(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    plugin = studio.daemon.root / ".aegis" / "plugins" / f"greet_{form['viewport']['width']}.py"
    plugin.write_text(LATER)
    window = log_in(browser, studio.daemon, form)
    page = window.page
    window.go("/workflows")
    main(window).get_by_role("button", name="Run a workflow").click()
    dialog = page.get_by_role("dialog", name="Run a workflow")
    expect(dialog).to_contain_text(plugin.name)
    fits(window)
    dialog.get_by_role("button", name="Trust the plugins").click()
    ask = page.get_by_role("dialog", name="Trust the plugins?")
    expect(ask).to_contain_text(plugin.name)
    ask.get_by_role("button", name="Trust them").click()
    expect(note(window, "Trusted:")).to_contain_text(plugin.name)
    dialog.get_by_label("Workflow").select_option("greet")
    expect(dialog).to_contain_text("Greet somebody.")
    dialog.get_by_label("name str").fill("12")
    dialog.get_by_label("times").fill("3")
    dialog.get_by_label("loud").select_option("yes")
    dialog.get_by_label("size").select_option("large")
    dialog.get_by_label("words").fill("[1")
    dialog.get_by_role("button", name="Run", exact=True).click()
    expect(dialog.get_by_role("alert")).to_have_text("words: the value is not JSON")
    dialog.get_by_label("words").fill('["a"]')
    dialog.get_by_role("button", name="Run", exact=True).click()
    expect(main(window).get_by_role("heading", name="greet")).to_be_visible()
    result = page.get_by_role("region", name="The result")
    expect(result).to_have_text("('12', 3, True, ['a'], 'large', 'nobody', None, 1, None)")
    expect(page.get_by_role("region", name="The log")).to_contain_text("greeting")

    # Each run has its arguments again, exactly, whatever was typed for another one.
    page.get_by_role("button", name="Run again").click()
    expect(dialog.get_by_label("times")).to_have_value("3")
    dialog.get_by_label("times").fill("4")
    page.keyboard.press("Escape")
    given = {"name": "7", "size": "large", "by": None, "more": {"a": None}, "rank": 2, "any": 5}
    ran = studio.call("run_workflow", name="greet", kwargs=given)
    window.go(f"/w/{ran['workflow_id']}")
    same = "('7', 1, False, [], 'large', None, {'a': None}, 2, 5)"
    expect(result).to_have_text(same)
    page.get_by_role("button", name="Run again").click()
    expect(dialog.get_by_label("name str")).to_have_value("7")
    expect(dialog.get_by_label("times")).to_have_value("")
    expect(dialog.get_by_label("size")).to_have_value("large")
    expect(dialog.get_by_label("more")).to_have_value('{"a":null}')
    dialog.get_by_role("button", name="Run", exact=True).click()
    window.wait("id => !location.hash.includes(id)", ran["workflow_id"])
    expect(result).to_have_text(same)
    page.get_by_role("button", name="Run again").click()
    dialog.get_by_label("name str").fill("8")
    dialog.get_by_label("more").fill('{"b": "c"}')
    dialog.get_by_role("button", name="Run", exact=True).click()
    expect(result).to_have_text("('8', 1, False, [], 'large', None, {'b': 'c'}, 2, 5)")
    fits(window)
    plugin.unlink()
    studio.call("workflow_trust")


def test_a_form_that_ends_late_leaves_the_dialog_that_was_opened_meanwhile(
    studio: Studio, browser: Browser, wire: Wire
) -> None:
    studio.call("workflow_trust")
    window = log_in_over(wire, browser, studio)
    page = window.page
    window.go("/canvases")
    names = ("late", "later")
    for name, file in zip(names, ("late.md", "/etc/passwd"), strict=True):
        page.get_by_role("button", name="Open a canvas").click()
        dialog = page.get_by_role("dialog", name="Open a canvas")
        dialog.get_by_label("Name").fill(name)
        dialog.get_by_label("Its Markdown file").fill(file)
        wire.hold(TO_DAEMON)
        dialog.get_by_role("button", name="Open").click()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        page.get_by_role("button", name="Open a canvas").click()
        dialog.get_by_label("Name").fill("written meanwhile")
        page.keyboard.press("Control+k")  # no palette in place of the dialog
        wire.flow()
        if name == "late":
            expect(main(window).get_by_role("heading", name="late", exact=True)).to_be_visible()
        else:
            expect(note(window, "/etc/passwd")).to_be_visible()
        expect(dialog.get_by_label("Name")).to_have_value("written meanwhile")
        expect(dialog.get_by_role("alert")).to_have_count(0)
        page.keyboard.press("Escape")
        window.go("/canvases")
    page.keyboard.press("Control+k")
    page.keyboard.type("later")
    page.keyboard.press("Control+k")  # anew
    expect(page.get_by_role("combobox", name="Go to or do")).to_have_value("")
    window.check()


@on_both
def test_a_run_asks_on_its_page_and_shows_its_steps_and_result(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    studio.call("workflow_trust")
    id_ = studio.release("1.2")
    window = log_in(browser, studio.daemon, form)
    window.go("/workflows")
    runs = window.page.get_by_role("list", name="Runs")
    runs.get_by_role("link").filter(has_text="release").first.click()
    ask = window.page.get_by_role("region", name="Asks you")
    expect(ask).to_contain_text("Publish 1.2?")
    steps = window.page.get_by_role("list", name="Steps").locator("> li")
    expect(steps).to_have_count(2)
    expect(steps.nth(1).get_by_role("img", name="waits for you")).to_be_visible()
    steps.first.get_by_role("button").click()
    expect(steps.first).to_contain_text("built")
    ask.get_by_label("yes").check()
    window.settle()
    ask.get_by_role("button", name="Answer", exact=True).click()
    until(lambda: bool(studio.call("workflow_status", workflow_id=id_)["ended"]), "its end")
    expect(window.page.get_by_role("region", name="The result")).to_have_text("1.2: yes")
    expect(steps.nth(1).get_by_role("img", name="done")).to_be_visible()
    fits(window)


def test_a_run_is_cancelled_resumed_and_retried(studio: Studio, browser: Browser) -> None:
    studio.call("workflow_trust")
    id_ = studio.release("1.3")
    window = log_in(browser, studio.daemon)
    window.go(f"/w/{id_}")
    head = window.page.locator(".head")

    def state() -> str:
        return str(studio.call("workflow_status", workflow_id=id_)["status"])

    def cancel() -> None:
        window.page.get_by_role("button", name="Cancel").click()
        dialog = window.page.get_by_role("dialog")
        expect(dialog).to_contain_text("Finished steps are kept")
        dialog.get_by_role("button", name="Cancel the run").click()
        expect(head).to_contain_text("cancelled")
        assert state() == "cancelled"

    cancel()
    window.page.get_by_role("button", name="Resume").click()
    until(lambda: state() == "running", "it runs again")
    expect(window.page.get_by_role("region", name="Asks you")).to_be_visible()
    cancel()
    window.page.get_by_role("button", name="Retry from the start").click()
    until(lambda: state() == "running", "it runs anew")
    window.check()


LONG = '''
from aegis import workflow


@workflow
async def long(engine):
    """Return a long text."""
    return "x" * 60_000
'''


def test_what_a_list_of_runs_leaves_out_is_found_in_the_history(
    studio: Studio, browser: Browser
) -> None:
    plugin = studio.daemon.root / ".aegis" / "plugins" / "long.py"
    plugin.write_text(LONG)
    studio.call("workflow_trust")
    for _ in range(6):
        id_ = studio.call("run_workflow", name="long")["workflow_id"]
        until(lambda: studio.call("workflow_status", workflow_id=id_)["ended"], "its end")  # noqa: B023
    window = log_in(browser, studio.daemon)
    window.go("/workflows")
    runs = window.page.get_by_role("list", name="Runs").get_by_role("listitem")
    expect(runs.first).to_contain_text("long")
    expect(window.page.get_by_role("button", name="Show older")).to_have_count(0)
    main(window).get_by_role("link", name="the history").click()
    found = window.page.get_by_role("list", name="Found").get_by_role("listitem")
    expect(found.nth(5)).to_contain_text("Run · long")
    window.check()
    plugin.unlink()
    studio.call("workflow_trust")


# Groups.


def test_a_group_is_made_of_profiles_ordered_renamed_and_dissolved(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon)
    page = window.page
    window.go("/groups")
    main(window).get_by_role("button", name="New group").first.click()
    dialog = page.get_by_role("dialog", name="New group")
    dialog.get_by_label("Name").fill("critics")
    dialog.get_by_label("all claude").fill("2")
    dialog.get_by_label("asks claude").fill("1")
    dialog.get_by_role("button", name="Start 3 agents").click()
    expect(main(window).get_by_role("heading", name="critics")).to_be_visible()
    members = page.get_by_role("list", name="Members").get_by_role("listitem")
    expect(members).to_have_count(3)
    box = page.get_by_label("Order to all members of critics")
    box.fill("SAY **first** order")
    box.press("Control+Enter")
    newest = page.get_by_role("article", name="Newest order")
    expect(newest).to_contain_text("3 of 3 replied")
    expect(newest.get_by_role("listitem").locator("strong")).to_have_text(["first"] * 3)
    box.fill("SAY second")
    page.get_by_role("button", name="Send to all").click()
    expect(newest.get_by_role("listitem").filter(has_text="second")).to_have_count(3)
    earlier = page.get_by_role("list", name="Earlier orders")
    expect(earlier).to_contain_text("3 of 3 replied")
    earlier.get_by_role("button", name="SAY **first** order").click()
    expect(earlier.locator("strong")).to_have_text(["first"] * 4)
    expect(newest).not_to_contain_text("characters of an order")
    words = "SAY third\n" + "word " * 60 + "and its end"
    box.fill(words)
    page.get_by_role("button", name="Send to all").click()
    expect(newest).to_contain_text("Only the first 200 characters of an order")
    newest.get_by_role("link", name="the transcript of").click()
    expect(main(window)).to_contain_text("and its end")
    window.go("/g/critics")
    page.get_by_role("button", name="More about critics").click()
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_role("dialog").get_by_label("Name").fill("judges")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(main(window).get_by_role("heading", name="judges")).to_be_visible()
    page.get_by_role("button", name="More about judges").click()
    page.get_by_role("menuitem", name="Dissolve").click()
    expect(page.get_by_role("dialog")).to_contain_text("members are closed")
    page.get_by_role("dialog").get_by_role("button", name="Dissolve").click()
    expect(main(window)).to_contain_text("There is no group “judges”")
    assert studio.call("group_list")["result"] == []
    fits(window)


def test_a_preset_gets_a_member_and_who_is_missing_is_shown_until_the_first_reply_is_taken(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon)
    page = window.page
    window.go("/groups")
    main(window).get_by_role("button", name="New group").first.click()
    dialog = page.get_by_role("dialog", name="New group")
    dialog.get_by_label("Name").fill("duo")
    dialog.get_by_role("radio", name="A preset").click()
    dialog.get_by_label("Preset").fill("no-such")
    dialog.get_by_role("button", name="Make the group").click()
    expect(dialog.get_by_role("alert")).to_contain_text("no-such")
    dialog.get_by_label("Preset").fill("pair")
    dialog.get_by_role("button", name="Make the group").click()
    members = page.get_by_role("list", name="Members").get_by_role("listitem")
    expect(members).to_have_count(2)
    page.get_by_role("button", name="Add a member").click()
    page.get_by_role("dialog").get_by_label("Handle").fill("third-one")
    page.get_by_role("dialog").get_by_role("button", name="Add").click()
    expect(members).to_have_count(3)
    page.get_by_label("Order to all members of duo").fill("HANG on")
    page.get_by_role("button", name="Send to all").click()
    newest = page.get_by_role("article", name="Newest order")
    expect(newest.get_by_role("listitem").filter(has_text="has not replied yet")).to_have_count(3)
    studio.is_in("third-one", "working")
    studio.call("interrupt", handle="third-one")
    missing = newest.get_by_role("listitem").filter(has_text="third-one")
    expect(missing).to_contain_text("was cancelled")
    window.check()


def test_the_first_reply_ends_an_order_also_after_a_lost_connection(
    studio: Studio, browser: Browser
) -> None:
    studio.call("group_spawn_mixed", group="race", profiles=["all"] * 3)
    window = log_in(browser, studio.daemon)
    page = window.page
    window.go("/g/race")
    # Not one directory for both orders: a member that is late makes the first one again.
    taken, start = studio.daemon.root / "taken", studio.daemon.root / "start"
    order = f"RUN mkdir {taken} && exec sleep 0.1 || while test -d {taken}; do sleep 0.1; done"
    newest = page.get_by_role("article", name="Newest order")
    first = newest.get_by_role("button", name="Only the first")
    dropped = newest.get_by_role("listitem").filter(has_text="was cancelled")

    # One replies at once, two do not: the button is there with a reply, too.
    studio.call("group_broadcast", group="race", objective=order)
    expect(newest).to_contain_text("1 of 3 replied")
    first.click()
    page.get_by_role("dialog").get_by_role("button", name="Take the first").click()
    expect(dropped).to_have_count(2)
    expect(first).to_have_count(0)
    taken.rmdir()

    # Nobody has replied yet, and the connection is lost before one does.
    studio.call(
        "group_broadcast",
        group="race",
        objective=f"RUN while test ! -d {start}; do "
        f"sleep 0.1; done; mkdir {start}/one || exec sleep 1000",
    )
    expect(newest).to_contain_text("0 of 3 replied")
    first.click()
    page.get_by_role("dialog").get_by_role("button", name="Take the first").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(newest).to_contain_text("ends with the first reply")
    page.evaluate("app.link.socket.close(); 0")
    window.wait("app.link.state === 'up'")
    start.mkdir()
    expect(newest).to_contain_text("1 of 3 replied")
    expect(dropped).to_have_count(2)
    window.check()


def test_a_group_that_another_client_renames_is_listed_once_and_its_page_follows(
    studio: Studio, browser: Browser
) -> None:
    studio.call("group_spawn_mixed", group="before", profiles=["all"])
    window = log_in(browser, studio.daemon)
    window.go("/g/before")
    heading = main(window).get_by_role("heading", level=1)
    expect(heading).to_have_text("before")
    studio.call("group_rename", group="before", new_name="after")
    expect(heading).to_have_text("after")
    window.wait("location.hash === '#/g/after'")
    window.go("/groups")
    rows = window.page.get_by_role("list", name="Groups").get_by_role("listitem")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("after")
    window.check()


# Inboxes.


def mails(window: Window) -> Locator:
    return window.page.locator(".mail")


@on_both
def test_messages_are_read_answered_and_acknowledged(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    studio.call("inbox_read", from_handle="writer")
    studio.send("human", "older", sender="writer")
    studio.send("human", "the tests **pass**\n<b>now</b>", sender="writer")
    window = log_in(browser, studio.daemon, form)
    page = window.page
    window.go("/inbox")
    expect(window.page.locator(".head")).to_contain_text("unread")
    mails(window).filter(has_text="the tests").first.click()
    whole = page.get_by_role("article", name="Message from writer")
    expect(whole.locator("strong")).to_have_text("pass")
    expect(whole).to_contain_text("<b>now</b>")
    reply = whole.get_by_label("Reply to writer")
    reply.fill("SAY thanks")
    whole.get_by_role("button", name="Reply").click()
    expect(reply).to_have_value("")
    assert [each["body"] for each in studio.inbox("writer")][-1] == "SAY thanks"
    whole.get_by_role("button", name=re.compile("^Mark this")).click()
    until(lambda: not studio.call("inbox_read")["messages"], "all is acknowledged")
    expect(window.page.locator(".head")).to_contain_text("all read")
    studio.send("human", "newer", sender="writer")
    if form is PHONE:
        page.get_by_role("button", name="All messages").click()
    expect(mails(window).first).to_contain_text("newer")
    page.get_by_role("radio", name="Unread").click()
    expect(mails(window).filter(has_text="older")).to_have_count(0)
    studio.call("inbox_read", after=studio.call("inbox_read")["next"])
    fits(window)


@on_both
def test_the_inbox_of_another_is_read_without_a_reader_and_written_to(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    handle = f"bob-{form['viewport']['width']}"
    studio.call("inbox_read", from_handle=handle)
    studio.send(handle, "first", sender="ada")
    window = log_in(browser, studio.daemon, form)
    window.go("/inboxes")
    window.page.get_by_role("main").get_by_role("link", name=handle).click()
    expect(mails(window)).to_have_count(1)
    box = window.page.get_by_label(f"Message to {handle}")
    box.fill("second")
    box.press("Control+Enter")
    expect(mails(window)).to_have_count(2)
    expect(mails(window).first).to_contain_text("You")
    sent = studio.call("handoff", target_handle=handle, context="third", from_handle="ada")
    assert (sent["status"], sent["position"]) == ("queued", 2)
    expect(mails(window)).to_have_count(3)
    fits(window)


@on_both
def test_one_message_goes_to_several_inboxes(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    width = form["viewport"]["width"]
    handles = [studio.spawn("SAY ready", handle=f"crew-{number}-{width}") for number in range(2)]
    other = f"robot-{width}"
    studio.call("inbox_read", from_handle=other)
    window = log_in(browser, studio.daemon, form)
    window.go("/inbox")
    main(window).get_by_role("button", name="Write", exact=True).click()
    dialog = window.page.get_by_role("dialog", name="Write a message")
    for handle in handles:
        dialog.get_by_label(handle).check()
    dialog.get_by_label("To", exact=False).first.fill(other)
    dialog.get_by_label("Message").fill("SAY all of you")
    dialog.get_by_role("button", name="Send").click()
    expect(note(window, "Sent to 3 inboxes")).to_be_visible()

    def has_it(handle: str) -> bool:
        return "all of you" in "".join(studio.texts(handle))

    until(lambda: all(map(has_it, handles)), "both agents get it")
    assert [each["body"] for each in studio.inbox(other)] == ["SAY all of you"]
    fits(window)


def test_a_draft_of_a_message_and_of_a_task_outlives_a_reload(
    studio: Studio, browser: Browser, tmp_path: Path
) -> None:
    window = log_in(browser, studio.daemon)
    window.go("/q/builds")
    window.page.get_by_label("A new task").fill("SAY a long task")
    window.go("/m/someone")
    window.page.get_by_label("Message to someone").fill("a long letter")
    window.page.reload()
    window.wait_live()
    expect(window.page.get_by_label("Message to someone")).to_have_value("a long letter")
    window.go("/q/builds")
    expect(window.page.get_by_label("A new task")).to_have_value("SAY a long task")
    window.check()


def send_many(studio: Studio, handle: str, count: int) -> None:
    """Send numbered messages, in their order but for a few."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: studio.send(handle, f"message {number}."), range(count)))


def test_more_messages_than_one_call_returns_are_unread_and_are_acknowledged(
    studio: Studio, browser: Browser
) -> None:
    studio.call("inbox_read", from_handle="hoarder")
    send_many(studio, "human", 1_050)
    send_many(studio, "hoarder", 150)
    studio.send("human", "the newest")
    studio.send("hoarder", "the newest")
    window = log_in(browser, studio.daemon)
    for place in ("/m/hoarder", "/inbox"):
        window.go(place)
        expect(mails(window).first).to_contain_text("the newest")
        expect(mails(window).first).to_have_class(re.compile("new"))
    main(window).get_by_role("button", name="Mark all as read").click()
    expect(window.page.locator(".head")).to_contain_text("all read")
    assert studio.call("inbox_read")["messages"] == []
    window.check()


WATCH_READS = """() => {
  const { link } = app, { call } = link;
  window.reads = [];
  link.call = async function (...given) {
    const reply = await call.apply(this, given);
    if (given[0] === 'inbox_read') window.reads.push(given[1]);
    return reply;
  };
  window.turn = state => {
    Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  };
  window.before = app.store.mail.value;
}"""
FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def test_one_message_is_read_to_know_what_another_client_has_read_when_the_page_is_shown(
    studio: Studio, browser: Browser
) -> None:
    if earlier := studio.call("inbox_read", limit=1_000)["next"]:
        studio.call("inbox_read", after=earlier)
    for number in range(3):
        studio.send("human", f"message {number}.")
    first, second, _ = studio.inbox("human")
    window = log_in(browser, studio.daemon)
    page = window.page
    window.go("/settings")
    window.wait("app.store.mail.value.size === 3 && app.link.calls.size === 0")
    page.evaluate(WATCH_READS)
    page.evaluate("turn('hidden')")
    page.evaluate("turn('visible')")
    window.wait("window.reads.length === 1")
    page.evaluate(FRAMES)
    assert page.evaluate("window.reads") == [{"limit": 1}]
    assert page.evaluate("app.store.mail.value === window.before")  # nothing is drawn again
    studio.call("inbox_read", after=second["id"])
    page.evaluate("turn('hidden')")
    page.evaluate("turn('visible')")
    window.wait("app.store.mail.value.size === 1")
    assert not page.evaluate("id => app.store.mail.value.has(id)", first["id"])
    assert page.evaluate("window.reads") == [{"limit": 1}] * 2
    studio.call("inbox_read", after=studio.call("inbox_read")["next"])
    page.evaluate("turn('visible')")
    window.wait("app.store.mail.value.size === 0")
    window.check()


def test_a_message_is_opened_by_its_address_and_another_one_stays_chosen(
    studio: Studio, browser: Browser
) -> None:
    studio.send("human", "the oldest of many", sender="ada")
    oldest = studio.call("inbox_read", unread=False, limit=1)["messages"][0]["id"]
    send_many(studio, "human", 250)
    studio.send("human", "the newest of many", sender="bob")
    studio.call("term_spawn", name="beside")
    window = log_in(browser, studio.daemon)
    page = window.page
    window.go(f"/inbox?message={oldest}")
    chosen = page.get_by_role("article", name=re.compile("Message from"))
    expect(chosen).to_contain_text("the oldest of many")
    expect(page.locator(".mail[aria-current=true]")).to_be_in_viewport()
    window.go(f"/inbox?message={oldest}+t/beside")
    chosen.get_by_role("button", name="All messages").click()
    mails(window).first.click()
    expect(chosen).to_contain_text("the newest of many")
    page.get_by_role("region", name="beside", exact=True).locator(".xterm").click()
    expect(page.locator(".pane.on")).to_have_attribute("aria-label", "beside")
    expect(chosen).to_contain_text("the newest of many")
    page.reload()
    window.wait_live()
    expect(chosen).to_contain_text("the newest of many")
    window.go(f"/inbox?message={oldest}+t/beside")
    expect(chosen).to_contain_text("the oldest of many")
    studio.call("term_close", name="beside")
    window.check()
