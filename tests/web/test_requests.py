"""Requests on the page: one line each, opened to the whole, and answered as they were meant."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, expect

from aegis.client.line import CommandFailed
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team
from tests.resources.waiting import until
from tests.web.browser import DESK, PHONE, Window, address, log_in, needs_chromium, open_window
from tests.web.studio import Studio
from tests.web.wire import TO_BROWSER, Wire, wire_to

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

on_both = pytest.mark.parametrize("form", [DESK, PHONE], ids=["desk", "phone"])
BIG = {"viewport": {"width": 1440, "height": 900}}


def rows(window: Window) -> Locator:
    return window.page.get_by_role("list", name="Open requests").locator("> li")


def row(window: Window, handle: str) -> Locator:
    """The row of an agent's request, also of one that was answered and still keeps its place."""
    name = window.page.locator(".who").get_by_text(handle, exact=True)
    return rows(window).filter(has=name)


def review(window: Window, handle: str) -> Locator:
    """Open a request; return its row once it takes clicks."""
    found = row(window, handle)
    found.get_by_role("button", expanded=False).first.click()
    window.settle()
    return found


def leave(window: Window) -> None:
    """Take the pointer and the focus out of the list, whose rows keep their places till then.

    The focus is in it if the receipt of an answer came before a frame without the button.
    """
    window.page.mouse.move(1, 1)
    window.page.evaluate("document.activeElement.blur()")


def focus(window: Window, handle: str) -> None:
    row(window, handle).get_by_role("button").first.focus()


def requests_of(studio: Studio, handle: str) -> list[dict[str, Any]]:
    found = studio.call("request_list", handle=handle)["requests"]
    return list(found)


def is_open(studio: Studio, handle: str) -> bool:
    return bool(requests_of(studio, handle))


def deny(studio: Studio, handle: str) -> None:
    """Answer the request of an agent from another place."""
    for each in requests_of(studio, handle):
        studio.call("request_answer", id=each["id"], digest=each["digest"], answer="deny")


def says(studio: Studio, handle: str, text: str) -> None:
    """Wait until an agent says a text."""
    until(lambda: text in "".join(studio.texts(handle)), f"{handle} says {text}")


@pytest.fixture(autouse=True)
def _nothing_is_left_open(studio: Studio) -> Iterator[None]:
    yield
    for each in studio.call("request_list")["requests"]:
        studio.call("request_answer", id=each["id"], digest=each["digest"], answer="cancel")
    for peer in studio.call("list_sessions")["result"]:
        with contextlib.suppress(CommandFailed):  # a worker whose task has ended closes by itself
            studio.call("close", handle=peer["handle"])


@on_both
def test_alike_ones_are_one_row_and_answered_together(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    alike = [studio.spawn("ASK pytest -q\nSAY end") for _ in range(3)]
    other = studio.spawn("ASK git push\nSAY end")
    window = log_in(browser, studio.daemon, form)
    expect(rows(window)).to_have_count(2)
    expect(rows(window).first).to_contain_text("3 \u00d7")
    expect(rows(window).first).to_contain_text("pytest -q")
    window.settle()
    window.page.get_by_role("button", name="Allow 3: pytest -q").click()
    for handle in alike:
        studio.has_outcomes(handle, "completed")
    assert is_open(studio, other)
    leave(window)
    expect(rows(window)).to_have_count(1)
    window.check()


def test_the_keyboard_alone_moves_opens_allows_and_denies(studio: Studio, browser: Browser) -> None:
    one = studio.spawn("ASK touch one\nSAY end")
    until(lambda: is_open(studio, one), "the first asks")
    two = studio.spawn("ASK touch two\nSAY end")
    until(lambda: is_open(studio, two), "the second asks")
    three = studio.spawn('USE Bash {"command": "touch three"}')
    window = log_in(browser, studio.daemon)
    expect(rows(window)).to_have_count(3)
    focus(window, one)
    keys = window.page.keyboard
    keys.press("j")
    keys.press("j")
    expect(row(window, three).get_by_role("button").first).to_be_focused()
    keys.press("k")
    keys.press("Enter")
    whole = row(window, two).get_by_role("region", name="The whole command")
    expect(whole).to_contain_text("touch two")
    keys.press("n")
    until(lambda: not is_open(studio, two), "it is denied")
    expect(row(window, two)).to_contain_text("answered")
    expect(row(window, three).get_by_role("button").first).to_be_focused()
    window.settle()
    keys.press("s")  # opens it: what it covers is read first
    expect(row(window, three)).to_contain_text("Allow Bash for this session")
    expect(row(window, three).get_by_role("button", name="For the session")).to_be_enabled()
    keys.press("s")
    says(studio, three, '"allow", {"command": "touch three"}, 1')
    # With the receipt, which may come later; the next key waits a moment from then on.
    expect(row(window, one).get_by_role("button").first).to_be_focused()
    window.settle()
    keys.press("y")
    studio.has_outcomes(one, "completed")
    window.check()


def test_a_key_answers_the_request_that_has_the_focus(studio: Studio, browser: Browser) -> None:
    window = log_in(browser, studio.daemon)
    one, two = two_requests(studio, window)
    found = review(window, two)
    focus(window, one)
    allow = found.get_by_role("button", name="Allow", exact=True)
    expect(allow).to_be_enabled()  # else it takes no focus
    allow.focus()
    window.page.keyboard.press("n")
    until(lambda: not is_open(studio, two), "it is denied")
    assert is_open(studio, one)
    window.check()


def test_a_held_key_and_a_second_click_answer_once(studio: Studio, browser: Browser) -> None:
    handles = [studio.spawn(f"ASK touch {number}\nSAY end") for number in range(3)]
    window = log_in(browser, studio.daemon)
    expect(rows(window)).to_have_count(3)
    first = rows(window).first
    # Before the root of the project is known, a key opens the row.
    expect(first.get_by_role("button", name="Deny")).to_be_visible()
    window.settle()
    first.get_by_role("button").first.focus()
    for _ in range(5):
        window.page.keyboard.down("n")  # all but the first are repetitions
    window.page.keyboard.up("n")

    def left() -> int:
        return sum(is_open(studio, each) for each in handles)

    until(lambda: left() == 2, "one is answered")
    window.settle()
    rows(window).nth(1).get_by_role("button", name="Deny").dblclick()
    until(lambda: left() == 1, "one more is answered")
    expect(rows(window).nth(1)).to_contain_text("answered")
    leave(window)
    expect(rows(window)).to_have_count(1)
    assert left() == 1
    window.check()


@on_both
def test_a_long_command_is_allowed_only_after_all_of_it_was_shown(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    words = " ".join(f"word{number}" for number in range(3000))
    handle = studio.spawn(f"ASK echo {words} ; rm -rf precious\nSAY end")
    window = log_in(browser, studio.daemon, form)
    expect(row(window, handle).get_by_role("button", name="Review")).to_be_visible()
    expect(window.page.get_by_role("button", name=re.compile("^Allow"))).to_have_count(0)
    focus(window, handle)
    window.page.keyboard.press("y")
    shown = row(window, handle).get_by_role("region", name="The whole command")
    expect(shown).to_contain_text("rm -rf precious")
    allow = row(window, handle).get_by_role("button", name="Allow", exact=True)
    expect(allow).to_be_disabled()
    assert shown.evaluate("each => each.scrollHeight <= each.clientHeight + 1")
    window.page.keyboard.press("y")  # shows its end
    expect(allow).to_be_enabled()
    assert is_open(studio, handle)
    text, button = shown.bounding_box(), allow.bounding_box()
    assert text is not None
    assert button is not None
    assert text["y"] + text["height"] <= button["y"]
    window.page.keyboard.press("y")
    studio.has_outcomes(handle, "completed")
    window.check()


NOT_PLAIN: dict[str, dict[str, Any]] = {
    "two lines": {"command": "touch a\nrm b"},
    "a mark that turns the text": {"command": "touch \u202eexe.txt"},
    "another field": {"command": "touch a", "cwd": "/"},
    "many spaces": {"command": f"touch a{' ' * 400}; rm b"},
}


@pytest.mark.parametrize("given", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_a_line_that_hides_something_has_no_button_that_allows(
    studio: Studio, browser: Browser, given: dict[str, Any]
) -> None:
    handle = studio.spawn(f"USE Bash {json.dumps(given)}")
    window = log_in(browser, studio.daemon)
    expect(row(window, handle).get_by_role("button", name="Review")).to_be_visible()
    expect(window.page.get_by_role("button", name=re.compile("^Allow"))).to_have_count(0)
    focus(window, handle)
    window.page.keyboard.press("y")
    body = row(window, handle).locator(".ask-body")
    expect(body.get_by_role("button", name="Allow", exact=True)).to_be_enabled()
    assert is_open(studio, handle)
    if "\u202e" in given["command"]:
        expect(body.locator("mark")).to_have_text("U+202E")
        expect(body).to_contain_text("characters that cannot be seen")
    if "cwd" in given:
        expect(body.get_by_role("region", name="The input")).to_contain_text('"cwd": "/"')
    window.check()


def test_a_file_outside_of_the_root_is_reviewed_first(studio: Studio, browser: Browser) -> None:
    inside = studio.spawn('USE Read {"file_path": "shop/cart.py"}')
    outside = studio.spawn('USE Read {"file_path": "/etc/passwd"}')
    above = studio.spawn('USE Read {"file_path": "shop/../../x"}')
    window = log_in(browser, studio.daemon)
    expect(row(window, inside).get_by_role("button", name="Allow: shop/cart.py")).to_be_visible()
    for handle in (outside, above):
        expect(row(window, handle).get_by_role("button", name="Review")).to_be_visible()
    window.check()


@on_both
def test_it_is_denied_with_a_reason_that_the_agent_gets(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    handle = studio.spawn('USE Bash {"command": "rm x"}')
    window = log_in(browser, studio.daemon, form)
    found = review(window, handle)
    found.get_by_role("button", name="Deny with a reason").click()
    window.page.keyboard.type("Use git rm")
    window.settle()
    found.get_by_role("button", name="Deny with this reason").click()
    says(studio, handle, '["deny", null, 0, "Use git rm"]')
    window.check()


def test_a_denial_can_end_the_turn(studio: Studio, browser: Browser) -> None:
    handle = studio.spawn("ASK touch x\nSAY after")
    window = log_in(browser, studio.daemon)
    found = review(window, handle)
    found.get_by_role("button", name="Deny with a reason").click()
    found.get_by_label("End its turn too").check()
    found.get_by_role("button", name="Deny with this reason").click()
    studio.has_turns(handle, 1)
    assert "after" not in "".join(studio.texts(handle))
    window.check()


QUESTIONS = {
    "questions": [
        {
            "question": "Which database?",
            "options": [
                {"label": "Postgres", "description": "as in production"},
                {"label": "SQLite"},
            ],
        },
        {
            "question": "Which tests?",
            "multiSelect": True,
            "options": [{"label": "unit"}, {"label": "slow"}],
        },
    ]
}


@on_both
def test_questions_are_answered_by_options_and_in_other_words(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    handle = studio.spawn(f"QUESTION {json.dumps(QUESTIONS)}")
    window = log_in(browser, studio.daemon, form)
    found = review(window, handle)
    answer = found.get_by_role("button", name="Answer", exact=True)
    expect(found).to_contain_text("as in production")
    found.get_by_label("Postgres").check()
    expect(answer).to_be_disabled()
    group = found.get_by_role("group", name="Which tests?")
    group.get_by_label("unit").check()
    group.get_by_label("Something else").check()
    group.get_by_label("Your own answer to: Which tests?").fill("the flaky ones")
    window.page.reload()
    window.wait_live()
    found = review(window, handle)
    expect(found.get_by_label("Postgres")).to_be_checked()
    found.get_by_role("group", name="Which database?").get_by_label("Something else").check()
    expect(answer).to_be_disabled()
    found.get_by_label("Your own answer to: Which database?").fill("DuckDB")
    found.get_by_role("button", name="Answer", exact=True).click()
    says(studio, handle, '{"Which database?": "DuckDB", "Which tests?": "unit, the flaky ones"}')
    window.check()


SCHEMA = {
    "type": "object",
    "required": ["name", "count"],
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 2},
        "size": {"type": "string", "enum": ["small", "large"]},
        "count": {"type": "integer", "minimum": 1},
        "fast": {"type": "boolean"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
    },
}


@on_both
def test_a_form_is_filled_by_its_schema(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    handle = studio.spawn(f"FORM {json.dumps(SCHEMA)}")
    window = log_in(browser, studio.daemon, form)
    found = review(window, handle).locator(".ask-body")
    found.get_by_label("size").select_option("large")
    found.get_by_label("fast").check()
    found.get_by_label("b", exact=True).check()
    found.get_by_label("count").fill("3")
    found.get_by_role("button", name="Answer", exact=True).click()
    expect(found.get_by_role("alert")).to_contain_text("not right yet")
    found.get_by_label("Name").fill("shop")
    found.get_by_role("button", name="Answer", exact=True).click()
    says(studio, handle, '{"count": 3, "fast": true, "name": "shop", "size": "large"')
    window.check()


def test_the_page_of_an_agent_has_its_request_open(studio: Studio, browser: Browser) -> None:
    handle = studio.spawn("ASK touch here\nSAY end")
    window = log_in(browser, studio.daemon)
    window.go(f"/a/{handle}")
    whole = window.page.get_by_role("region", name="The whole command")
    expect(whole).to_contain_text("touch here")
    window.settle()
    window.page.get_by_role("button", name="Allow", exact=True).click()
    studio.has_outcomes(handle, "completed")
    window.check()


SECOND = """() => {
  const [one] = app.store.openRequests.value, request = { ...one, id: 'second', digest: 'second',
    input: { command: 'touch second' } };
  for (const each of app.link.streams.values()) {
    if (each.name === 'requests') each.take({ type: 'item', item: { request } }, 0);
  }
}"""
"""Shows a second request of the same agent, as the daemon's stream would."""


def test_a_reason_is_kept_while_it_is_written_and_over_a_reload(
    studio: Studio, browser: Browser
) -> None:
    handle = studio.spawn('USE Bash {"command": "rm x"}')
    window = log_in(browser, studio.daemon)
    window.go(f"/a/{handle}")
    why, keys = window.page.get_by_label("Reason, for the agent"), window.page.keyboard
    refuse = window.page.get_by_role("button", name="Deny with a reason")
    expect(refuse).to_be_visible()
    window.settle()
    refuse.click()
    keys.type("Use git")
    window.page.evaluate(SECOND)
    expect(rows(window)).to_have_count(2)
    keys.type(" rm")
    expect(why).to_have_value("Use git rm")
    window.page.reload()
    window.wait_live()
    expect(why).to_have_value("Use git rm")
    window.settle()
    window.page.get_by_role("button", name="Deny with this reason").click()
    says(studio, handle, '["deny", null, 0, "Use git rm"]')
    window.check()


def test_a_form_is_declined(studio: Studio, browser: Browser) -> None:
    handle = studio.spawn(f"FORM {json.dumps(SCHEMA)}")
    window = log_in(browser, studio.daemon)
    review(window, handle).get_by_role("button", name="Decline", exact=True).click()
    says(studio, handle, "answered null")
    window.check()


PLANS: dict[str, tuple[Callable[[Locator], None], str]] = {}


def plan_answer(said: str) -> Callable[[Callable[[Locator], None]], Callable[[Locator], None]]:
    """Note a way to answer a plan, and what the agent says then."""

    def note(act: Callable[[Locator], None]) -> Callable[[Locator], None]:
        PLANS[act.__name__] = act, said
        return act

    return note


@plan_answer("allow: # Mend it\n1. **Look**")
def approve(found: Locator) -> None:
    found.get_by_role("button", name="Approve", exact=True).click()


@plan_answer("allow: # Mend it\n1. **Look**")
def accept_edits(found: Locator) -> None:
    found.get_by_role("button", name="Approve and accept edits").click()


@plan_answer("deny: Add tests")
def comment(found: Locator) -> None:
    found.get_by_role("button", name="Keep planning").click()
    found.get_by_label("Comment on the plan").fill("Add tests")
    found.get_by_role("button", name="Send the comment").click()


@plan_answer("allow: # Another")
def edit(found: Locator) -> None:
    found.get_by_role("button", name="Edit the plan").click()
    found.get_by_label("The plan, to change").fill("# Another")
    found.get_by_role("button", name="Approve", exact=True).click()


@plan_answer("allow: # Another")
def edit_and_look(found: Locator) -> None:
    found.get_by_role("button", name="Edit the plan").click()
    found.get_by_label("The plan, to change").fill("# Another")
    found.get_by_role("button", name="Show the plan").click()
    expect(found.get_by_role("heading", name="Another")).to_be_visible()
    found.get_by_role("button", name="Approve", exact=True).click()


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_read_as_markdown_and_approved_changed_or_sent_back(
    studio: Studio, browser: Browser, name: str
) -> None:
    act, said = PLANS[name]
    handle = studio.spawn("PLAN # Mend it; 1. **Look**")
    window = log_in(browser, studio.daemon)
    found = review(window, handle)
    plan = found.get_by_role("region", name="The plan")
    expect(plan.get_by_role("heading", name="Mend it")).to_be_visible()
    expect(plan.get_by_role("listitem")).to_have_text("Look")
    written = found.get_by_role("region", name="The plan as it was written")
    expect(written).to_have_count(0)
    window.settle()  # the parser came after the row
    act(found)
    says(studio, handle, said)
    if name == "accept_edits":
        until(lambda: studio.info(handle)["permission"] == "write", "it may edit")
    window.check()


CHANGE = {"file_path": "a.py", "old_string": "one\ntwo\n", "new_string": "one\nthree\n"}


CUT = """body => [...body.querySelectorAll('*')].filter(each => {
  const { overflowX, overflowY } = getComputedStyle(each);
  return (overflowX !== 'visible' && each.scrollWidth > each.clientWidth + 1)
    || (overflowY !== 'visible' && each.scrollHeight > each.clientHeight + 1);
}).map(each => each.outerHTML.slice(0, 200))"""
"""The elements that show a part of what they have."""


def test_a_change_is_shown_as_lines_with_all_that_the_input_has(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon)

    def shows(given: dict[str, Any], *wanted: str | re.Pattern[str], tool: str = "Edit") -> None:
        handle = studio.spawn(f"USE {tool} {json.dumps(given)}")
        expect(row(window, handle).get_by_role("button", name="Review")).to_be_visible()
        found = review(window, handle)
        for each in wanted:
            expect(found.locator(".ask-body")).to_contain_text(each, use_inner_text=True)
        assert found.locator(".ask-body").evaluate(CUT) == []
        found.get_by_role("button", name="Close").click()

    lines = re.compile("one\\s+\u2212\\s*two\\s+\\+\\s*three")
    shows({**CHANGE, "replace_all": True}, "a.py", lines, '"replace_all": true')
    shows({**CHANGE, "new_string": "x\n" * 5_000 + "rm -rf /"}, "rm -rf /")
    content = f"true {' ' * 900}; rm -rf /"
    shows({"file_path": "b.sh", "content": content}, "rm -rf /", tool="Write")
    shows({"deep": {"er": ["secret"]}}, "secret", tool="mcp__shop__order")
    shows({"command": "ls", "url": "https://example.org"}, '"url": "https:', tool="Bash")
    path = f"{'deep/' * 80}c.py"
    shows({**CHANGE, "file_path": path, "new_string": "x\n" * 200}, path)
    same = "".join(f"same {number}\n" for number in range(20))
    shows({**CHANGE, "old_string": f"{same}two\n", "new_string": f"{same}three\n"}, "same 0")
    window.check()


@on_both
def test_a_plan_is_shown_whole_with_what_the_input_has_beside_it(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    lines = "; ".join([f"echo {'x' * 300} > {number}" for number in range(60)])
    handle = studio.spawn(
        f"PLAN # Mend it; ```sh; {lines}; ```; | a | b |; |---|---|; | {'y' * 300} | {'z' * 300} |"
    )
    window = log_in(browser, studio.daemon, form)
    found = review(window, handle)
    expect(found.get_by_role("table")).to_contain_text("yyy")
    assert found.locator(".ask-body").evaluate(CUT) == []
    expect(found.get_by_role("region", name="The input")).to_contain_text("/plans/p.md")
    found.get_by_role("button", name="Edit the plan").click()
    expect(found.get_by_label("The plan, to change")).to_be_visible()
    assert found.locator(".ask-body").evaluate(CUT) == []
    hides = studio.spawn("PLAN See [x].; ; [x]: https://example.org (and push)")
    written = review(window, hides).get_by_role("region", name="The plan as it was written")
    expect(written).to_contain_text("(and push)")
    window.check()


def test_markup_in_a_request_is_text(studio: Studio, browser: Browser) -> None:
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    handle = studio.spawn(f"ASK {evil}")
    window = log_in(browser, studio.daemon)
    found = review(window, handle)
    expect(found.get_by_role("region", name="The whole command")).to_contain_text(evil)
    expect(window.page.locator("main img, main script")).to_have_count(0)
    window.check()


ACP = [sys.executable, str(STAND_IN), "acp"]
LOGINS = [{"id": "token", "name": "Token"}, {"id": "oauth", "name": "Log in with a browser"}]


def test_a_login_is_chosen_and_each_of_several_options_has_a_button(
    own_daemon: DaemonProcess, browser: Browser
) -> None:
    given = {"provider": "acp", "permission": "ask", "asking_mode": "default"}
    logs_in = {"STAND_IN_LOGINS": json.dumps(LOGINS)}
    more: dict[str, dict[str, Any]] = {
        "two": {**given, "command": [*ACP], "env": logs_in},
        "acp": {**given, "command": [*ACP]},
    }
    team = Team(own_daemon, more=more)
    window = log_in(browser, own_daemon)
    handle = team.spawn("LOGIN", profile="two")
    expect(row(window, handle)).to_contain_text("needs a login")
    found = review(window, handle)
    found.get_by_label("method").select_option("oauth")
    found.get_by_role("button", name="I have logged in").click()
    team.has_outcomes(handle, "completed")
    assert team.texts(handle) == ["logged in by oauth"]
    chooser = team.spawn("CHOOSE touch x", profile="acp")
    expect(row(window, chooser).get_by_role("button", name="Review")).to_be_visible()
    buttons = review(window, chooser).get_by_role("button", name=re.compile("^Allow"))
    expect(buttons).to_have_text(["Allow: Run it here", "Allow: Run it in a sandbox"])
    buttons.nth(1).click()
    team.has_outcomes(chooser, "completed")
    assert "chose sandbox" in "".join(team.texts(chooser))
    window.check()
    own_daemon.stop()


def two_requests(studio: Studio, window: Window) -> tuple[str, str]:
    """Have two agents ask; return their handles, that of the upper request first."""
    one = studio.spawn("ASK touch one\nSAY end")
    expect(row(window, one)).to_have_count(1)
    two = studio.spawn("ASK touch precious\nSAY end")
    expect(row(window, two)).to_have_count(1)
    window.settle()
    return one, two


def centre(button: Locator) -> tuple[float, float]:
    box = button.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_one_that_is_answered_under_the_pointer_leaves_its_place_to_no_other(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon)
    one, two = two_requests(studio, window)
    at = centre(row(window, one).get_by_role("button", name="Allow"))
    below = row(window, two).bounding_box()
    window.page.mouse.move(*at)
    deny(studio, one)
    expect(row(window, one)).to_contain_text("answered")
    window.settle()
    window.page.mouse.click(*at)
    assert row(window, two).bounding_box() == below
    third = studio.spawn("ASK touch third\nSAY end")
    expect(row(window, third)).to_have_count(1)
    assert row(window, two).bounding_box() == below  # what comes is put at the end
    window.page.mouse.move(1, 1)
    expect(row(window, one)).to_have_count(0)
    assert is_open(studio, two)
    window.check()


def test_one_that_moves_under_a_finger_takes_no_tap_for_a_moment(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon, PHONE)
    one, two = two_requests(studio, window)
    at = centre(row(window, one).get_by_role("button", name="Allow"))
    # The moment passes by this clock: a busy machine may take longer to tap.
    window.page.evaluate("() => { const now = performance.now(); performance.now = () => now; }")
    deny(studio, one)
    expect(row(window, one)).to_have_count(0)
    window.page.touchscreen.tap(*at)
    expect(window.page.get_by_role("status").get_by_text("moved just now")).to_be_visible()
    assert is_open(studio, two)
    window.page.evaluate("delete performance.now")
    window.settle()
    row(window, two).get_by_role("button", name="Allow").tap()
    studio.has_outcomes(two, "completed")
    window.check()


@pytest.fixture
def wire(studio: Studio) -> Iterator[Wire]:
    with wire_to(urlsplit(studio.daemon.endpoint.url).port or 0) as made:
        yield made


def test_a_late_answer_is_said_to_be_late(studio: Studio, browser: Browser, wire: Wire) -> None:
    handle = studio.spawn("ASK touch x\nSAY end")
    url = re.sub(r":\d+/", f":{wire.port}/", address(studio.daemon), count=1)
    window = open_window(browser, url)
    window.wait_live()
    expect(row(window, handle)).to_have_count(1)
    window.settle()
    window.allow_silence()
    wire.hold(TO_BROWSER)  # the page does not hear of the other answer
    deny(studio, handle)
    row(window, handle).get_by_role("button", name="Allow").click()
    wire.flow()
    expect(window.page.get_by_role("status").get_by_text("Too late")).to_contain_text("human")
    studio.has_outcomes(handle, "completed")
    assert "ran" not in "".join(studio.texts(handle))
    window.check()


def test_it_is_withdrawn_in_other_browsers_and_kept_in_the_history(
    studio: Studio, browser: Browser
) -> None:
    first, second = log_in(browser, studio.daemon), log_in(browser, studio.daemon, PHONE)
    handle = studio.spawn("ASK touch history\nSAY end")
    for window in (first, second):
        expect(row(window, handle)).to_have_count(1)
    first.settle()
    row(first, handle).get_by_role("button", name="Deny").click()
    expect(row(second, handle)).to_have_count(0)
    second.page.get_by_role("link", name="Answered", exact=True).click()
    listed = second.page.get_by_role("list", name="Answered requests")
    newest = listed.get_by_role("listitem").first
    expect(newest).to_contain_text("touch history")
    expect(newest).to_contain_text("Denied")
    newest.get_by_role("button").click()
    expect(newest).to_contain_text("by human")
    expect(newest.get_by_role("region", name="The input")).to_have_text("touch history")
    second.page.get_by_label("Find an answered request").fill("no such thing")
    expect(second.page.get_by_text("No request was answered yet")).to_be_visible()
    for window in (first, second):
        window.check()


FULL = """() => {
  const feed = (name, item) => { for (const each of app.link.streams.values())
    if (each.name === name) each.take({ type: 'item', item }, 0); };
  const at = new Date().toISOString(), many = (count, make) => Array.from({ length: count },
    (_, number) => make(number));
  const agent = number => ({ id: `id-${number}`, handle: `agent-${number}`, profile: 'all',
    state: number % 3 ? 'working' : 'blocked', since: at, reason: '', cwd: '/', model: '',
    quiet_s: 0, tools: ['Bash'], blocked: null, terminals: [], plan: [], usage: null });
  feed('agents', { agents: many(25, agent) });
  feed('events', { terminals: many(40, number => ({ name: `terminal-${number}`, state: 'idle',
    cwd: '/', started_at: at, last_exit: 0, running: null })) });
  const request = number => ({ id: `r-${number}`, digest: `d-${number % 40}`, workflow: null,
    handle: `agent-${number % 25}`, kind: number % 4 ? 'permission' : 'question', tool: 'Bash',
    tool_kind: 'execute', title: 'Bash', reason: '', excerpt: '', input_bytes: 20, options: [],
    input: number % 4 ? { command: `make ${number % 40}` }
      : { questions: [{ question: `Really ${number}?`, options: [{ label: 'yes' }] }] },
    created: at, state: 'open', needs_person: false, default_to_no: false,
    no_session_scope: true, takes_edit: false });
  feed('requests', { open: many(60, number => `r-${number}`) });
  for (const each of many(60, request)) feed('requests', { request: each });
}"""
"""Shows 60 requests, 40 terminals and 25 agents, as the daemon's streams would."""


def test_a_full_home_is_one_screen(studio: Studio, browser: Browser) -> None:
    window = log_in(browser, studio.daemon, BIG)
    read = "name => app.store.loaded.value.has(name)"
    for name in ("agents", "requests", "terminals"):
        window.wait(read, name)
    window.page.evaluate(FULL)
    expect(window.page.get_by_role("region", name="Waiting for you")).to_contain_text("60")
    expect(rows(window)).to_have_count(9)
    expect(window.page.get_by_role("region", name="Working").locator("li")).not_to_have_count(0)
    page = "document.querySelector('.page.home')"
    window.wait(f"{page}.scrollHeight <= {page}.clientHeight")
    # One stop of the Tab key for all rows.
    rows(window).first.get_by_role("button").first.focus()
    stops = "[...document.querySelectorAll('.asks button')].filter(each => each.tabIndex === 0)"
    window.wait(f"{stops}.length <= 3")
    window.page.get_by_role("radio", name="Questions").click()
    expect(rows(window).first).to_contain_text("Really")
    window.page.get_by_role("button", name="Show 6 more").click()
    expect(rows(window)).to_have_count(15)
    window.check()


@on_both
def test_an_empty_daemon_offers_to_launch_an_agent_and_to_open_a_terminal(
    own_daemon: DaemonProcess, browser: Browser, form: dict[str, Any]
) -> None:
    own_daemon.start("--port", "0")
    window = log_in(browser, own_daemon, form)
    expect(window.page.get_by_text("No agent works here yet")).to_be_visible()
    window.page.get_by_role("main").get_by_role("button", name="Launch an agent").click()
    expect(window.page.get_by_role("dialog")).to_be_visible()
    window.page.keyboard.press("Escape")
    window.page.get_by_role("button", name="Open a terminal").click()
    expect(window.page.get_by_role("dialog")).to_be_visible()
    window.check()
    own_daemon.stop()


def test_home_shows_what_works_what_ended_and_what_failed(studio: Studio, browser: Browser) -> None:
    ended = studio.spawn("SAY done", handle="home-ended")
    studio.has_outcomes(ended, "completed")
    studio.call("close", handle=ended)
    works = studio.spawn("HANG", handle="home-works")
    task = studio.call("enqueue", queue="builds", payload="DIE 3")["task_id"]
    until(lambda: studio.call("task_status", task_id=task)["status"] == "failed", "it failed")
    studio.send("human", "**The cart** is ready", sender="home-works")
    window = log_in(browser, studio.daemon)
    home = window.page.get_by_role("main")
    expect(home.get_by_role("region", name="Working")).to_contain_text(works)
    expect(home.get_by_role("region", name="Messages")).to_contain_text("The cart is ready")
    expect(home.get_by_role("region", name="Failed tasks")).to_contain_text("DIE 3")
    expect(home.get_by_role("region", name="Ended")).to_contain_text(ended)
    window.settle()  # each list that comes moves those below it
    attempts = studio.call("task_status", task_id=task)["attempt"]
    home.get_by_role("button", name="Retry: DIE 3").click()
    until(lambda: studio.call("task_status", task_id=task)["attempt"] != attempts, "it runs again")
    home.get_by_role("button", name=f"Resume {ended}").click()
    until(lambda: studio.info(ended)["state"] != "closed", "it is open again")
    home.get_by_role("button", name="Mark all as read").click()
    # Another message may arrive meanwhile: that of the task, which fails again.
    unread = "The cart"
    until(lambda: unread not in str(studio.call("inbox_read")["messages"]), "it is read")
    # It fails again by itself.
    until(lambda: studio.call("task_status", task_id=task)["status"] == "failed", "it has ended")
    window.check()
