"""Every action of a person on agents, from the page: on a desk and on a phone."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.aegis.agents.directory.test_checkout import git
from tests.resources.waiting import until
from tests.web.browser import (
    DESK,
    PHONE,
    Window,
    address,
    log_in,
    needs_chromium,
    open_window,
)
from tests.web.crew import CART, Crew, called, crew_at, said
from tests.web.wire import TO_BROWSER, wire_to

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

FORMS = pytest.mark.parametrize("form", [DESK, PHONE], ids=["desk", "phone"])
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
GIVE_FILE = """([box, how, bytes]) => { const data = new DataTransfer();
data.items.add(new File([new Uint8Array(bytes)], `${how}.png`, { type: 'image/png' }));
const target = document.querySelector(box);
target.dispatchEvent(how === 'drop'
  ? new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
  : new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })); }"""
BOX = "form.composer textarea"
NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"
"""As in a page that is reached over plain HTTP."""


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    with crew_at(tmp_path_factory.mktemp("crew")) as running:
        yield running


@pytest.fixture
def window(crew: Crew, browser: Browser) -> Iterator[Window]:
    found = log_in(browser, crew.daemon)
    yield found
    found.check()


def box(page: Page, handle: str) -> Locator:
    return page.get_by_role("textbox", name=f"Write to {handle}")


def talk(page: Page, handle: str) -> Locator:
    return page.get_by_role("log", name=f"Conversation with {handle}")


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def opened(window: Window, handle: str) -> Page:
    """The page of an agent, once its transcript is shown."""
    window.go(f"/a/{handle}")
    expect(talk(window.page, handle)).to_be_visible()
    return window.page


def choose(page: Page, handle: str, action: str) -> None:
    """Choose an action of the menu of an agent."""
    page.get_by_role("button", name=f"What to do with {handle}").first.click()
    page.get_by_role("menuitem", name=action, exact=True).click()


def settles(crew: Crew, handle: str, name: str, wanted: object) -> None:
    until(lambda: crew.info(handle)[name] == wanted, f"{name} of {handle} is {wanted}")


@FORMS
def test_a_person_launches_an_agent_with_choices_and_a_first_message(
    crew: Crew, browser: Browser, form: dict[str, Any]
) -> None:
    window = log_in(browser, crew.daemon, form)
    page, handle = window.page, f"launched-{'phone' if form is PHONE else 'desk'}"
    if form is PHONE:
        page.get_by_role("link", name="Agents").click()
        button(page, "Launch").click()
    else:
        page.keyboard.press("c")
    dialog = page.get_by_role("dialog", name="Launch an agent")
    dialog.get_by_label("First message").fill("SAY at once")
    dialog.get_by_label("Name").fill(handle)
    dialog.get_by_label("Profile", exact=True).select_option("models")
    dialog.get_by_label("Permission").select_option("plan")
    dialog.get_by_label("Budget in $").fill("2.5")
    dialog.get_by_role("combobox", name="Worktree").select_option("yes")
    dialog.get_by_label("Branch").fill(f"try/{handle}")
    button(page, "Launch").last.click()
    expect(talk(page, handle)).to_contain_text("at once")
    info = crew.info(handle)
    assert (info["permission"], info["budget_usd"], info["profile"]) == ("plan", 2.5, "models")
    assert "/worktrees/" in info["cwd"]
    assert git(Path(info["cwd"]), "branch", "--show-current") == f"try/{handle}"
    window.check()


def test_a_refused_launch_stays_open_with_the_reason_and_its_draft_outlives_a_reload(
    window: Window,
) -> None:
    page = window.page
    page.keyboard.press("c")
    page.get_by_label("First message").fill("SAY a draft")
    page.get_by_role("combobox", name="Where it works").select_option("directory")
    page.get_by_role("dialog").get_by_label("Directory").fill("../outside")
    button(page, "Launch").click()
    expect(page.get_by_role("alert")).to_contain_text("outside")
    page.reload()
    window.wait_live()
    page.locator("#main").press("c")
    expect(page.get_by_label("First message")).to_have_value("SAY a draft")
    page.get_by_label("First message").fill("")
    page.get_by_role("combobox", name="Where it works").select_option("")


def test_a_first_message_that_is_refused_is_in_the_box_of_the_agent(
    crew: Crew, window: Window, tmp_path: Path
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("a note")
    page = window.page
    page.keyboard.press("c")
    dialog = page.get_by_role("dialog", name="Launch an agent")
    dialog.get_by_label("First message").fill("/context")  # a command takes no files
    dialog.get_by_label("Name").fill("refuses")
    dialog.locator("input[type=file]").set_input_files(str(note))
    button(page, "Launch").last.click()
    expect(page.get_by_role("status").get_by_text("takes no files")).to_be_visible()
    expect(dialog).to_have_count(0)
    expect(box(page, "refuses")).to_have_value("/context")
    expect(page.get_by_role("list", name="Attached files")).to_contain_text("note.txt")
    box(page, "refuses").fill("SAY look")
    button(page, "Send").click()
    crew.has_turns("refuses", 1)
    assert "a note" in crew.entries("refuses", "turn_opened")[-1]["text"]


def test_a_program_is_launched_in_a_terminal_and_gets_the_paths_of_files(
    crew: Crew, window: Window, tmp_path: Path
) -> None:
    page = window.page
    page.keyboard.press("c")
    page.get_by_role("radio", name="A program in a terminal").click()
    page.get_by_label("Command").fill("cat")
    page.get_by_label("Name").fill("prog")
    button(page, "Launch").click()
    expect(page.get_by_role("heading", name="prog")).to_be_visible()
    assert crew.info("prog")["program"]["command"] == "cat"
    window.go("/a/prog")
    expect(page.get_by_text("It is a program in a terminal")).to_be_visible()
    note = tmp_path / "note.txt"
    note.write_text("a note")
    page.locator("form.composer input[type=file]").set_input_files(str(note))
    box(page, "prog").fill("read it")
    button(page, "Send").click()
    expect(box(page, "prog")).to_have_value("")
    until(lambda: crew.inbox("prog") != [], "the message is in its inbox")
    text, path = crew.inbox("prog")[0]["body"].split("\n\n")
    assert (text, Path(path).read_text()) == ("read it", "a note")
    crew.call("close", handle="prog")


def test_settings_of_the_project_are_shown_and_trusted_before_the_launch(
    crew: Crew, window: Window
) -> None:
    settings = crew.root / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": "touch /tmp/hook"}]}]}
    settings.write_text(json.dumps({"hooks": hooks}))
    page = window.page
    page.keyboard.press("c")
    page.get_by_label("Profile", exact=True).select_option("own")
    trust = page.get_by_role("region", name="Settings of the project")
    expect(trust).to_contain_text("touch /tmp/hook")
    button(page, "Trust these settings").click()
    expect(trust).to_have_count(0)
    assert crew.call("agent_trust", profile="own")["is_trusted"]


@FORMS
def test_a_message_is_sent_once_and_its_answer_is_shown_as_markdown(
    crew: Crew, browser: Browser, form: dict[str, Any]
) -> None:
    handle = crew.idle(f"says-{'phone' if form is PHONE else 'desk'}", profile="acp")
    window = log_in(browser, crew.daemon, form)
    page = opened(window, handle)
    box(page, handle).fill("SAY a **bold** `code` word")
    if form is PHONE:
        page.keyboard.press("Enter")  # a new line
        assert box(page, handle).input_value().endswith("\n")
        button(page, "Send").dblclick()
    else:
        page.keyboard.press("Shift+Enter")
        page.keyboard.down("Enter")
        page.keyboard.down("Enter")
        page.keyboard.up("Enter")
    expect(talk(page, handle).locator("article.own strong", has_text="bold")).to_be_visible()
    expect(box(page, handle)).to_have_value("")
    crew.has_turns(handle, 2)
    window.check()


def test_markdown_has_tables_tasks_and_code_and_makes_no_element_of_hostile_text(
    crew: Crew, browser: Browser
) -> None:
    hostile = (
        "| a | b |\n|---|--:|\n| 1 | 2 |\n\n- [x] done\n- [ ] open\n\n"
        "```python\ndef f(): return 1\n```\n\n"
        "<img src=x onerror=alert(1)> <script>alert(1)</script> "
        "![seen](https://evil.example/x.png) [bad](javascript:alert(1)) "
        "[ok](https://example.org)\n\n" + "> " * 500 + "deep\n\n" + "_a__b" * 4000
    )
    crew.says("marks", said(hostile))
    window = log_in(browser, crew.daemon)
    asked: list[str] = []
    window.page.on("request", lambda request: asked.append(request.url))
    log = talk(opened(window, "marks"), "marks")
    expect(log.get_by_role("table")).to_contain_text("2")
    expect(log.get_by_role("img", name="done")).to_be_visible()
    expect(log.locator(".hl-keyword")).to_have_text(["def", "return"])
    expect(log.get_by_role("link", name="ok")).to_have_attribute("rel", "noopener noreferrer")
    expect(log.locator("img, script, [onerror], a[href^=javascript]")).to_have_count(0)
    assert not [each for each in asked if "evil" in each]
    button(window.page, "Copy the code").click()
    window.check()


def test_a_text_that_grows_keeps_what_is_before_the_definition_of_a_link(
    crew: Crew, window: Window
) -> None:
    parts = ["Above.\n\n[x]", ": https://example.org/a", "bc\n\nBelow is [x]."]
    pipes = [crew.root.parent / f"{crew.root.name}.part-{number}" for number in range(len(parts))]
    for each in pipes:
        os.mkfifo(each)
    crew.spawn("\n".join(f"RAW {each}" for each in pipes), profile="acp", handle="grows")
    log = talk(opened(window, "grows"), "grows")
    for pipe, part, last in zip(pipes, parts, ["[x]", "Above.", "Below is x."], strict=True):
        params = {"sessionId": "ses_1", "update": said(part)}
        frame = {"jsonrpc": "2.0", "method": "session/update", "params": params}
        pipe.write_text(f"{json.dumps(frame)}\n")
        expect(log.locator("article.own .md > p").last).to_have_text(last)
    expect(log.locator("article.own .md > p")).to_have_text(["Above.", "Below is x."])
    link = log.get_by_role("link", name="x", exact=True)
    expect(link).to_have_attribute("href", "https://example.org/abc")


def test_calls_are_folded_to_lines_with_their_outcome(crew: Crew, window: Window) -> None:
    shown = {"content": [{"type": "content", "content": {"type": "text", "text": "Exit code 3"}}]}
    change = {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}
    crew.says(
        "calls",
        said("I think", "agent_thought_chunk"),
        *(called(f"r{n}", "read", "Read", rawInput={"path": f"{n}.py"}) for n in range(3)),
        called("s", "search", "Find", rawInput={"pattern": "x"}),
        called("x", "execute", "make", rawInput={"command": "make"}, status="failed", **shown),
        called("e", "edit", "Edit", rawInput=change),
        {
            "sessionUpdate": "plan",
            "entries": [
                {"content": "Find it", "priority": "high", "status": "completed"},
                {"content": "Mend it", "priority": "high", "status": "in_progress"},
            ],
        },
    )
    log = talk(opened(window, "calls"), "calls")
    expect(log.get_by_text("Read 3 files, searched once")).to_be_visible()
    log.get_by_text("Read 3 files, searched once").click()
    expect(log.get_by_text("2.py")).to_be_visible()
    expect(log.get_by_role("group", name="Error")).to_have_text("Exit code 3")
    expect(log.get_by_role("group", name="Change of a.py")).to_contain_text("x = 2")
    expect(log.get_by_role("listitem").filter(has_text="Mend it")).to_contain_text("in progress")
    expect(window.page.locator("details.plan-dock")).to_contain_text("1 of 2")


def test_a_command_of_the_agent_is_shown_live_and_its_whole_output_read(
    crew: Crew, window: Window
) -> None:
    crew.spawn("TERM sh -c 'echo begun; exec sleep 1000'", profile="acp", handle="runs")
    page = opened(window, "runs")
    expect(page.get_by_role("group", name="Output")).to_contain_text("begun")
    button(page, "Show the whole output").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("group", name="Output")).to_have_text("begun\n")
    button(page, "Close").click()
    crew.call("close", handle="runs")


@FORMS
def test_its_commands_are_completed_with_their_descriptions(
    crew: Crew, browser: Browser, form: dict[str, Any]
) -> None:
    handle = crew.idle(f"slash-{'phone' if form is PHONE else 'desk'}")
    window = log_in(browser, crew.daemon, form)
    page = opened(window, handle)
    box(page, handle).fill("/con")
    option = page.get_by_role("option", name="/context")
    expect(option).to_contain_text("Show the context")
    if form is PHONE:
        option.dispatch_event("pointerdown")  # a finger that begins to scroll chooses nothing
        expect(box(page, handle)).to_have_value("/con")
        option.tap()
    else:
        page.keyboard.press("Tab")
    expect(box(page, handle)).to_have_value("/context ")
    expect(box(page, handle)).to_be_focused()
    button(page, "Send").click()
    until(lambda: "command context" in crew.texts(handle), "the command was sent")
    window.check()


def test_files_go_with_a_message_by_button_paste_and_drop(
    crew: Crew, window: Window, tmp_path: Path
) -> None:
    crew.idle("files", profile="acp")
    page = opened(window, "files")
    note = tmp_path / "note.txt"
    note.write_text("a note")
    page.locator("form.composer input[type=file]").set_input_files(str(note))
    for how in ("paste", "drop"):
        page.evaluate(GIVE_FILE, [BOX, how, [*PNG]])
    attached = page.get_by_role("list", name="Attached files")
    expect(attached.get_by_role("listitem")).to_have_count(3)
    expect(attached).not_to_contain_text("uploading")  # each that ends moves the buttons
    button(page, "Remove drop.png").click()
    box(page, "files").fill("SAY look")
    button(page, "Send").click()
    crew.has_turns("files", 2)
    assert any(each.startswith("saw image/png") for each in crew.texts("files"))
    assert "a note" in crew.entries("files", "turn_opened")[-1]["text"]
    expect(attached).to_have_count(0)
    small = talk(page, "files").get_by_role("button", name="Enlarge the PNG image").first
    small.click()
    shown = page.get_by_role("dialog").get_by_role("img")
    expect(shown).to_be_visible()
    assert shown.evaluate("each => each.decode().then(() => each.naturalWidth)") > 0


def test_a_draft_outlives_a_reload_and_another_tab_of_the_page(crew: Crew, window: Window) -> None:
    crew.idle("drafts")
    page = opened(window, "drafts")
    box(page, "drafts").fill("half a thought")
    window.go("/home")
    opened(window, "drafts")
    expect(box(page, "drafts")).to_have_value("half a thought")
    page.reload()
    expect(box(page, "drafts")).to_have_value("half a thought")
    box(page, "drafts").fill("")


@FORMS
def test_messages_wait_for_the_end_of_a_turn_that_is_interrupted(
    crew: Crew, browser: Browser, form: dict[str, Any]
) -> None:
    handle = f"hangs-{'phone' if form is PHONE else 'desk'}"
    crew.spawn("HANG", handle=handle)
    crew.is_in(handle, "working")
    window = log_in(browser, crew.daemon, form)
    page = opened(window, handle)
    for text in ("SAY first", "SAY second"):
        box(page, handle).fill(text)
        button(page, "Send").click()
        expect(box(page, handle)).to_have_value("")
    waiting = page.get_by_role("list", name="Messages that wait")
    expect(waiting.get_by_role("listitem")).to_have_count(2)
    box(page, handle).fill("SAY third")
    button(page, "Send").click()
    expect(waiting.get_by_role("listitem")).to_have_count(3)
    window.settle()
    button(page, "Take back: SAY third").click()
    expect(talk(page, handle)).to_contain_text("A message was taken back by you")
    expect(waiting.get_by_role("listitem")).to_have_count(2)
    button(page, "Interrupt").click()
    until(lambda: crew.texts(handle) == ["first", "second"], "both are read")
    expect(waiting).to_have_count(0)
    expect(talk(page, handle)).to_contain_text("Interrupted by you")
    window.check()


@FORMS
def test_the_conversation_of_a_closed_agent_is_paged_and_continues_once_it_is_resumed(
    crew: Crew, browser: Browser, form: dict[str, Any]
) -> None:
    handle = f"ends-{'phone' if form is PHONE else 'desk'}"
    crew.idle(handle, "FLOOD 700", profile="acp")
    window = log_in(browser, crew.daemon, form)
    page = opened(window, handle)
    log = talk(page, handle)
    choose(page, handle, "Close…")
    button(page, "Close").last.click()
    settles(crew, handle, "state", "closed")
    expect(page.get_by_text("This agent is closed")).to_be_visible()
    # It needs no scrolling, which asks for earlier entries too: they move the button, or end it.
    button(page, "From the start").dispatch_event("click")
    expect(log.get_by_text("event 0", exact=True)).to_be_visible()
    button(page, "Newest").click()
    expect(log.get_by_text("event 699", exact=True)).to_be_in_viewport()
    button(page, "Resume").click()
    box(page, handle).fill("SAY once more")
    button(page, "Send").click()
    expect(log.locator("article.own", has_text="once more")).to_be_in_viewport()
    crew.call("close", handle=handle)
    window.go("/agents?show=closed")
    button(page, f"Resume {handle}").click()
    until(lambda: crew.info(handle)["state"] != "closed", "it is resumed")
    expect(box(page, handle)).to_be_visible()
    where = page.url
    box(page, handle).fill("half")
    crew.call("close", handle=handle)
    expect(page.get_by_text("This agent is closed")).to_be_visible()
    # The pause that ends a word passes by this clock: a busy machine may take longer for a letter.
    page.evaluate("() => { const now = performance.now(); performance.now = () => now; }")
    page.keyboard.type("cit")
    page.evaluate("delete performance.now")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url == where
    window.check()


def test_an_agent_is_renamed_forked_and_restarted(crew: Crew, window: Window) -> None:
    crew.idle("old-name")
    page = opened(window, "old-name")
    choose(page, "old-name", "Rename…")
    page.get_by_label("New name").fill("new-name")
    button(page, "Rename").click()
    expect(page.get_by_role("heading", name="new-name")).to_be_visible()
    box(page, "new-name").focus()
    crew.call("rename", old_handle="new-name", new_handle="newest-name")
    crew.call("agent_set", handle="newest-name", permission="write")
    expect(page.get_by_label("Permission")).to_have_value("write")
    expect(page.get_by_role("heading", name="newest-name")).to_be_visible()
    expect(box(page, "newest-name")).to_be_focused()
    choose(page, "newest-name", "Restart the program")
    until(lambda: len(crew.entries("newest-name", "started")) == 2, "it was started again")
    choose(page, "newest-name", "Fork…")
    page.get_by_label("First message").fill("SAY copied")
    page.get_by_role("dialog").get_by_label("Name").fill("the-copy")
    button(page, "Fork").click()
    expect(talk(page, "the-copy")).to_contain_text("copied")
    crew.has_turns("the-copy", 1)  # what is shown first is the message
    assert crew.texts("the-copy") == ["copied"]


def test_model_effort_thinking_permission_and_budget_are_set(crew: Crew, window: Window) -> None:
    crew.idle("picks", profile="models", model="opus")
    page = opened(window, "picks")
    page.get_by_label("Permission").select_option("write")
    settles(crew, "picks", "permission", "write")
    page.get_by_label("Effort").select_option("low")
    settles(crew, "picks", "effort", "low")
    choose(page, "picks", "Effort by name…")
    page.get_by_role("dialog").get_by_label("Effort").fill("high")
    button(page, "Set").click()
    settles(crew, "picks", "effort", "high")
    crew.send("picks", "SAY again")  # another effort is another process: it checks the model
    crew.has_turns("picks", 2)
    page.get_by_label("Model").select_option("haiku")  # which has no such effort
    expect(page.get_by_text("no effort 'high' for the model 'haiku'")).to_be_visible()
    choose(page, "picks", "Budget…")
    page.get_by_label("Budget in $").fill("1.5")
    button(page, "Set").click()
    settles(crew, "picks", "budget_usd", 1.5)
    crew.idle("thinks", profile="models", model="opus")
    opened(window, "thinks")
    page.get_by_label("Model").select_option("haiku")
    settles(crew, "thinks", "model", "haiku")
    page.get_by_label("Thinking").select_option("off")
    settles(crew, "thinks", "thinking", "off")


def test_a_conversation_is_taken_over_and_handed_back(crew: Crew, window: Window) -> None:
    crew.idle("taken", "SAY before", profile="held")
    page = opened(window, "taken")
    choose(page, "taken", "Take over…")
    button(page, "Take over").click()
    expect(page.get_by_role("heading", name="takeover-taken")).to_be_visible()
    until(lambda: crew.info("taken")["taken_over"] is not None, "it is taken over")

    def screen() -> str:
        return "\n".join(crew.call("term_screen", name="takeover-taken")["lines"])

    until(lambda: "resumed " in screen(), "its own program has begun")
    crew.call("term_keys", name="takeover-taken", keys="hello\r")
    until(lambda: "heard hello" in screen(), "the person is answered")
    button(page, "Hand back").first.click()
    until(lambda: crew.info("taken")["taken_over"] is None, "it is handed back")
    expect(talk(page, "taken")).to_contain_text("heard hello")
    expect(talk(page, "taken")).to_contain_text("Handed back")


def test_a_conversation_that_began_outside_is_continued(crew: Crew, window: Window) -> None:
    id_ = "00000009-0000-4000-8000-000000000000"
    crew.idle("at-the-root")
    shop = crew.root / "shop"
    shop.mkdir()
    crew.call("workspace_create", workspace="shop", directory="shop")
    directory = crew.home / "projects" / re.sub("[/.]", "-", str(shop))
    directory.mkdir(parents=True, exist_ok=True)
    line = {
        "type": "user",
        "message": {"role": "user", "content": "mend the cart"},
        "uuid": "u1",
        "timestamp": "2026-11-28T10:00:00.000Z",
        "sessionId": id_,
        "cwd": str(shop),
        "gitBranch": "main",
    }
    (directory / f"{id_}.jsonl").write_text(json.dumps(line) + "\n")
    page = window.page
    page.keyboard.press("c")
    button(page, "Continue a conversation…").click()
    page.get_by_label("Profile", exact=True).select_option("held")
    page.get_by_role("combobox", name="Where it works").select_option("w:shop")
    page.get_by_role("radio", name="mend the cart").check()
    page.get_by_role("dialog").get_by_label("Name").fill("from-outside")
    page.get_by_label("Next message").fill("SAY on")
    button(page, "Continue").click()
    expect(talk(page, "from-outside")).to_contain_text("on")
    expect(page.get_by_role("heading", name="shop", exact=True)).to_be_visible()
    info = crew.info("from-outside")
    assert (info["conversation"], info["cwd"]) == (id_, str(shop))
    page.evaluate(NO_CLIPBOARD)
    choose(page, "from-outside", "Copy the id of the conversation")
    expect(page.get_by_role("textbox", name="Text to copy")).to_have_value(id_)
    assert page.evaluate("getSelection().toString()") == id_


def test_the_whole_transcript_is_paged_and_searched(crew: Crew, window: Window) -> None:
    crew.idle("long", "FLOOD 3000", profile="acp")
    whole = len(json.dumps(crew.call("session_read", handle="long", since=0)))
    page = opened(window, "long")
    log = talk(page, "long")
    expect(log.get_by_text("event 2999", exact=True)).to_be_visible()
    expect(log.get_by_text("event 7", exact=True)).to_have_count(0)
    page.evaluate(MEASURE_REPLIES)
    log.evaluate("log => { log.scrollTop = 900 }")
    button(page, "Earlier").dispatch_event("click")
    expect(log.get_by_text("event 2500", exact=True)).to_be_attached()
    button(page, "From the start").dispatch_event("click")
    expect(log.get_by_text("event 0", exact=True)).to_be_visible()
    button(page, "Later").dispatch_event("click")
    expect(log.get_by_text("event 400", exact=True)).to_be_attached()
    window.wait("app.link.calls.size === 0")
    assert page.evaluate("window.longest") < whole / 4  # a page of it
    button(page, "Newest").click()
    expect(log.get_by_text("event 2999", exact=True)).to_be_in_viewport()
    button(page, "Find in the conversation").click()
    page.get_by_role("searchbox", name="Find in the conversation").fill("EVENT 270")
    status = page.get_by_role("search").get_by_role("status")
    expect(status).to_have_text("11")  # 270, and 2700 to 2709
    page.keyboard.press("Enter")
    expect(status).to_have_text("11 of 11")
    expect(log.get_by_text("event 2709", exact=True)).to_be_in_viewport()
    button(page, "Next find").click()
    expect(log.get_by_text("event 270", exact=True)).to_be_in_viewport()


def test_what_is_read_stays_while_earlier_entries_come_and_the_end_though_they_failed(
    crew: Crew, window: Window
) -> None:
    crew.idle("stays", "FLOOD 900", profile="acp")
    page = opened(window, "stays")
    log = talk(page, "stays")
    expect(log.get_by_text("event 899", exact=True)).to_be_in_viewport()
    page.evaluate(HOLD_READS)
    log.evaluate("log => { log.scrollTop = 300 }")  # which asks for earlier entries
    window.wait("window.reads.length === 1")
    page.evaluate("window.reads.shift().fail()")
    expect(page.get_by_text("refused here")).to_be_visible()
    button(page, "Newest").click()
    crew.call("agent_send", handle="stays", text="SAY one more")
    expect(log.locator("article.own", has_text="one more")).to_be_in_viewport()
    until(lambda: log.evaluate(REST) < 2, "the end is followed")
    log.evaluate("log => { log.scrollTop = 300 }")
    window.wait("window.reads.length === 1")
    crew.call("agent_send", handle="stays", text="SAY meanwhile")
    expect(log.locator("article.own", has_text="meanwhile")).to_be_attached()
    crew.has_turns("stays", 3)

    def is_at_rest() -> bool:
        before = log.evaluate(FIRST_SHOWN)
        page.wait_for_timeout(200)  # heights come with the frames that draw what is shown
        return bool(before == log.evaluate(FIRST_SHOWN))

    until(is_at_rest, "nothing moves any more")
    seq, top = log.evaluate(FIRST_SHOWN)
    page.evaluate("window.reads.shift().pass()")
    window.wait("window.firstSeq = document.querySelector('[data-seq]').dataset.seq < 400")
    until(
        lambda: abs(log.evaluate(TOP_OF, seq) - top) < 2,
        "what is read is where it was",
    )
    window.check()


def test_the_newest_entries_are_shown_alone_though_a_page_arrives_before_them(
    crew: Crew, browser: Browser
) -> None:
    crew.idle("late", "FLOOD 1500", profile="acp")
    with wire_to(urlsplit(crew.daemon.endpoint.url).port or 0) as wire:
        url = re.sub(r":\d+/", f":{wire.port}/", address(crew.daemon), count=1)
        window = open_window(browser, url)
        window.wait_live()
        page = opened(window, "late")
        log = talk(page, "late")
        button(page, "From the start").dispatch_event("click")  # it needs no scrolling: that asks
        expect(log.get_by_text("event 0", exact=True)).to_be_visible()
        window.wait("app.link.calls.size === 0")
        window.allow_silence()
        wire.hold(TO_BROWSER)
        button(page, "Later").dispatch_event("click")
        button(page, "Newest").click()
        wire.flow()
        window.wait("app.link.calls.size === 0")
        crew.call("agent_send", handle="late", text="SAY afterwards")
        # What is drawn with the answer has all that came before.
        expect(log.get_by_text("afterwards", exact=True)).to_be_in_viewport()
        expect(log.get_by_text("event 1499", exact=True)).to_have_count(1)
        expect(log.get_by_text(re.compile(r"^event \d{1,3}$"))).to_have_count(0)
        window.check()


MEASURE_REPLIES = """() => {
  const { link } = app, { take } = link;
  window.longest = 0;
  link.take = function (frame, cost) {
    if (frame.type === 'reply') window.longest = Math.max(window.longest, cost);
    take.call(this, frame, cost);
  };
}"""
HOLD_READS = """() => {
  const { link } = app, { call } = link;
  window.reads = [];
  link.call = function (...given) {
    if (given[0] !== 'session_read') return call.apply(this, given);
    return new Promise((pass, fail) => reads.push({ pass, fail }))
      .catch(() => { throw new Error('refused here'); }).then(() => call.apply(this, given));
  };
}"""
FIRST_SHOWN = """log => {
  const { top } = log.getBoundingClientRect();
  const first = [...log.querySelectorAll('[data-seq]')]
    .find(each => each.getBoundingClientRect().bottom > top);
  return [first.dataset.seq, first.getBoundingClientRect().top];
}"""
TOP_OF = """(log, seq) =>
  log.querySelector(`[data-seq="${seq}"]`).getBoundingClientRect().top"""
GROW = """log => {
  log.querySelector('.talk-in').style.paddingBottom = '500px';
  log.dispatchEvent(new Event('scroll'));  // as it comes before the size is seen
}"""
REST = "log => log.scrollHeight - log.scrollTop - log.clientHeight"


def test_the_end_is_followed_until_one_scrolls_up_and_again_once_one_writes(
    crew: Crew, window: Window
) -> None:
    crew.idle("followed", "FLOOD 700", profile="acp")
    page = opened(window, "followed")
    log = talk(page, "followed")
    expect(log.get_by_text("event 699", exact=True)).to_be_in_viewport()
    log.evaluate(GROW)
    until(lambda: log.evaluate(REST) < 2, "what grew is shown")
    log.evaluate("log => { log.scrollTop -= 900 }")
    crew.call("agent_send", handle="followed", text="SAY unseen")
    expect(log.get_by_text("unseen", exact=True).first).to_be_attached()
    expect(button(page, "Newest")).to_be_visible()
    assert log.evaluate(REST) > 800
    box(page, "followed").fill("SAY mine")
    button(page, "Send").click()
    expect(log.locator("article.own", has_text="mine")).to_be_in_viewport()
    expect(button(page, "Newest")).to_have_count(0)


def test_an_address_opens_an_entry_of_the_transcript(crew: Crew, window: Window) -> None:
    crew.idle("placed", "FLOOD 1200", profile="acp")
    found = crew.call("session_read", handle="placed", since=0)["result"]
    [seq] = [e["seq"] for e in found if e["fields"].get("event", {}).get("text") == "event 400"]
    window.go(f"/a/placed?seq={seq}")
    expect(window.page.get_by_text("event 400", exact=True)).to_be_in_viewport()


def test_changes_are_shown_by_file_and_comments_on_lines_become_a_message(
    crew: Crew, window: Window
) -> None:
    crew.idle("edits", profile="all", worktree=True)
    tree = Path(crew.info("edits")["cwd"])
    (tree / "cart.py").write_text(CART.replace("line 7\n", "line seven\n"))
    page = window.page
    window.go("/changes/edits")
    change = page.get_by_role("group", name="Change of cart.py")
    expect(change).to_contain_text("line seven")
    number = button(page, "Comment on line 7 of cart.py")
    change.get_by_role("button").first.focus()  # of four lines around it
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    expect(number).to_be_focused()
    assert change.locator("button[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    page.keyboard.type("Why the word?")
    choose(opened(window, "edits"), "edits", "Rename…")
    page.get_by_label("New name").fill("edited")
    button(page, "Rename").click()
    expect(page.get_by_role("link", name="Changes of edited")).to_be_visible()
    crew.call("close", handle="edited")
    window.go("/changes/edited")
    comment = page.get_by_role("textbox", name="Comment on cart.py:7")
    expect(comment).to_have_value("Why the word?")
    expect(page.get_by_text("It works on the branch")).to_be_visible()
    crew.call("agent_resume", handle="edited")
    comment.focus()
    page.keyboard.press("Control+Enter")
    until(
        lambda: (
            "cart.py:7\n`line seven`\nWhy the word?"
            in crew.entries("edited", "turn_opened")[-1]["text"]
        ),
        "the agent has the comment",
    )
    expect(comment).to_have_count(0)
    expect(number).to_be_focused()
    page.set_viewport_size({"width": 412, "height": 839})
    expect(number).to_have_css("min-height", "24px")  # a finger meets it


def test_comments_whose_receipt_is_lost_arrive_once_and_one_written_meanwhile_stays(
    crew: Crew, browser: Browser
) -> None:
    crew.idle("once", profile="all", worktree=True)
    tree = Path(crew.info("once")["cwd"])
    (tree / "cart.py").write_text(CART.replace("line 7\n", "line seven\n"))
    with wire_to(urlsplit(crew.daemon.endpoint.url).port or 0) as wire:
        url = re.sub(r":\d+/", f":{wire.port}/", address(crew.daemon), count=1)
        window = open_window(browser, url)
        window.wait_live()
        window.go("/changes/once")
        page = window.page
        button(page, "Comment on line 7 of cart.py").click()
        page.keyboard.type("Why the word?")
        window.allow_silence()
        wire.hold(TO_BROWSER)
        button(page, "Send to once").click()

        def sent() -> list[str]:
            return [each["text"] for each in crew.entries("once", "turn_opened")]

        until(lambda: "Why the word?" in sent()[-1], "the comment has arrived")
        button(page, "Comment on line 8 of cart.py").click()
        page.keyboard.type("And here?")
        wire.cut()
        wire.flow()
        expect(page.get_by_text("look whether it was done")).to_be_visible()
        window.wait_live()
        button(page, "Send to once").click()
        expect(page.get_by_role("textbox", name="Comment on cart.py:7")).to_have_count(0)
        expect(page.get_by_role("textbox", name="Comment on cart.py:8")).to_have_value("And here?")
        button(page, "Send to once").click()
        until(lambda: "And here?" in sent()[-1], "the other comment has arrived")
        assert sum("Why the word?" in each for each in sent()) == 1
        window.check()


def test_a_worktree_is_merged_and_removed(crew: Crew, window: Window) -> None:
    crew.idle("merges", profile="all", worktree=True)
    tree = Path(crew.info("merges")["cwd"])
    (tree / "new.txt").write_text("new")
    git(tree, "add", "new.txt")
    git(tree, "commit", "-q", "-m", "more")
    page = window.page
    window.go("/changes/merges")
    button(page, "Merge…").click()
    button(page, "Merge").last.click()
    until(lambda: (crew.root / "new.txt").exists(), "it is merged")
    (tree / "lost.txt").write_text("lost")
    crew.call("close", handle="merges")
    window.go("/worktrees")
    button(page, "Remove the worktree of merges").click()
    expect(page.get_by_text("Would be lost")).to_contain_text("lost.txt")
    page.get_by_label("Remove it with that").check()
    button(page, "Remove").last.click()
    until(lambda: not tree.exists(), "it is removed")


def test_files_are_set_back_after_a_look_at_them(crew: Crew, window: Window) -> None:
    own = crew.root / "own.txt"
    own.write_text("first\n")
    crew.idle("rewinds", f"EDIT {own}", profile="kept")
    until(lambda: crew.entries("rewinds", "edited") != [], "its digest is stored")
    page = opened(window, "rewinds")
    expect(talk(page, "rewinds")).to_contain_text("Changed")
    choose(page, "rewinds", "Set files back…")
    expect(page.get_by_role("dialog")).to_contain_text(str(own))
    button(page, "Set back").click()
    until(lambda: own.read_text() == "first\n", "it is set back")
    expect(talk(page, "rewinds")).to_contain_text("Files were set back to before turn 1 by you")


def test_usage_and_directory_are_in_about(crew: Crew, window: Window) -> None:
    crew.idle("spends", profile="acp")
    page = opened(window, "spends")
    button(page, "About spends").click()
    about = page.get_by_role("complementary", name="About spends")
    expect(about).to_contain_text("$0.01")
    expect(about).to_contain_text("15 of 1.00k tokens")
    expect(about).to_contain_text(str(crew.root))


def test_a_transcript_is_saved_in_both_forms(crew: Crew, window: Window) -> None:
    crew.idle("saves", "SAY kept words")
    page = opened(window, "saves")
    for action, name in (("Save as Markdown", "saves.md"), ("Save as JSON lines", "saves.jsonl")):
        with page.expect_download() as download:
            choose(page, "saves", action)
        assert download.value.suggested_filename == name
        assert "kept words" in Path(download.value.path()).read_text()


def test_a_read_only_link_shows_the_transcript_and_nothing_else(
    crew: Crew, window: Window, browser: Browser
) -> None:
    crew.idle("shared", "SAY for all")
    page = opened(window, "shared")
    choose(page, "shared", "Share a read-only link…")
    button(page, "Make the link").click()
    made = page.get_by_label("Address", exact=True)
    expect(made).not_to_have_value("")
    address = made.input_value()
    viewer = open_window(browser, address)
    viewer.wait_live()
    expect(talk(viewer.page, "shared")).to_contain_text("for all")
    expect(viewer.page.get_by_role("textbox")).to_have_count(0)
    expect(viewer.page.get_by_role("button", name="What to do with shared")).to_have_count(0)
    viewer.check()


def test_a_transcript_is_deleted_after_a_question(crew: Crew, window: Window) -> None:
    crew.idle("purged")
    gone = f"{crew.root}/.aegis/state/agents/{crew.info('purged')['id']}"
    page = opened(window, "purged")
    choose(page, "purged", "Delete its transcript…")
    button(page, "Delete").click()
    until(lambda: not Path(gone).exists(), "its transcript is deleted")
    expect(page.get_by_role("button", name="Launch", exact=True)).to_be_visible()


def test_the_list_of_agents_is_searched_and_acts(crew: Crew, window: Window) -> None:
    crew.idle("listed-one")
    page = window.page
    window.go("/agents")
    page.get_by_role("searchbox", name="Find an agent").fill("listed-")
    rows = page.get_by_role("list", name="Agents").get_by_role("listitem")
    expect(rows).to_have_count(1)
    choose(page, "listed-one", "Close…")
    button(page, "Close").last.click()
    settles(crew, "listed-one", "state", "closed")
    page.get_by_role("radio", name="Closed").click()
    expect(button(page, "Resume listed-one")).to_be_visible()


def test_actions_of_the_open_agent_are_in_the_palette(crew: Crew, window: Window) -> None:
    crew.idle("acts")
    page = opened(window, "acts")
    page.keyboard.press("Control+k")
    page.keyboard.type("Permission: Reads only (acts)")
    page.keyboard.press("Enter")
    settles(crew, "acts", "permission", "read")
