"""What a person does on the page happens once, to what they meant, and what they wrote is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.e2e.harness import DaemonProcess
from tests.resources.waiting import until
from tests.web.browser import PHONE, Window, address, log_in, needs_chromium, open_window
from tests.web.studio import Studio
from tests.web.wire import TO_BROWSER, TO_DAEMON, Wire, wire_to

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

MOVED = "document.querySelector('.ask.moved')"
RESTED = f"!{MOVED}"


@pytest.fixture
def wire(studio: Studio) -> Iterator[Wire]:
    with wire_to(urlsplit(studio.daemon.endpoint.url).port or 0) as made:
        yield made


def over(wire: Wire, browser: Browser, daemon: DaemonProcess) -> Window:
    """A window that is logged in over the wire."""
    window = open_window(browser, re.sub(r":\d+/", f":{wire.port}/", address(daemon), count=1))
    window.wait_live()
    return window


def card(window: Window, handle: str) -> Locator:
    """The open or settled request of an agent."""
    return window.page.locator(".ask", has=window.page.get_by_text(handle, exact=True))


def two_requests(studio: Studio, window: Window) -> tuple[str, str]:
    """Have two agents ask; return their handles, that of the upper request first."""
    one = studio.spawn("ASK touch one\nSAY end")
    expect(card(window, one)).to_have_count(1)
    two = studio.spawn("ASK rm -rf precious\nSAY end")
    expect(card(window, two)).to_have_count(1)
    card(window, one).scroll_into_view_if_needed()
    window.wait(RESTED)
    return one, two


def deny(studio: Studio, handle: str) -> None:
    """Answer the request of an agent from another place."""
    [request] = [each for each in open_requests(studio) if each["handle"] == handle]
    studio.call("request_answer", id=request["id"], digest=request["digest"], answer="deny")


def open_requests(studio: Studio) -> list[dict[str, str]]:
    found: list[dict[str, str]] = studio.call("request_list")["requests"]
    return found


def is_open(studio: Studio, handle: str) -> bool:
    return handle in [each["handle"] for each in open_requests(studio)]


def centre(button: Locator) -> tuple[float, float]:
    box = button.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_request_that_is_answered_under_the_pointer_leaves_its_place_to_no_other(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon)
    one, two = two_requests(studio, window)
    at = centre(card(window, one).get_by_role("button", name="Allow once"))
    below = card(window, two).bounding_box()
    window.page.mouse.move(*at)
    deny(studio, one)
    expect(card(window, one)).to_contain_text("answered by")
    window.wait(RESTED)
    window.page.mouse.click(*at)
    assert card(window, two).bounding_box() == below
    window.page.mouse.move(1, 1)
    expect(card(window, one)).to_have_count(0)
    assert is_open(studio, two)
    deny(studio, two)
    expect(card(window, two)).to_have_count(0)
    window.check()


def test_a_request_that_moves_under_a_finger_takes_no_tap_for_a_moment(
    studio: Studio, browser: Browser
) -> None:
    window = log_in(browser, studio.daemon, PHONE)
    one, two = two_requests(studio, window)
    at = centre(card(window, one).get_by_role("button", name="Allow once"))
    # The moment passes by this clock: a busy machine may take longer to tap. Both cards were shown
    # long before it stops.
    window.page.evaluate(
        "() => { const now = performance.now() + 1000; performance.now = () => now; }"
    )
    deny(studio, one)
    expect(card(window, one)).to_have_count(0)
    window.page.touchscreen.tap(*at)
    expect(window.page.locator("#toasts")).to_contain_text("moved just now")
    assert is_open(studio, two)
    # The page looks for cards that moved now and then: before its next look, none counts as moved.
    window.wait(MOVED)
    window.page.evaluate("delete performance.now")
    window.wait(RESTED)
    card(window, two).get_by_role("button", name="Deny").tap()
    until(lambda: not is_open(studio, two), "the second tap answers")
    window.check()


def test_a_stall_before_the_hello_does_not_log_the_page_out(
    studio: Studio, browser: Browser, wire: Wire
) -> None:
    window = over(wire, browser, studio.daemon)
    # The answer to the handshake passes, and the hello after it is kept back.
    window.page.evaluate(
        "() => { app.link.redial(); const { socket } = app.link, { onopen } = socket;"
        " socket.addEventListener('close', ({ code }) => { window.ended = code; });"
        " socket.onopen = () => { window.greet = onopen; }; }"
    )
    window.wait("() => window.greet !== undefined")
    wire.hold(TO_DAEMON)
    window.page.evaluate("window.greet()")
    window.wait("() => window.ended === 1008")
    wire.flow()
    window.wait_live()
    window.page.reload()
    window.wait_live()
    window.check()


def test_a_stream_with_a_gap_begins_anew(studio: Studio, browser: Browser) -> None:
    handle = studio.spawn("SAY here")
    window = log_in(browser, studio.daemon)
    window.wait("handle => Boolean(app.store.agent(handle))", handle)
    window.page.evaluate(
        "app.store.agents.clear(); app.store.queues.clear();"
        "for (const each of [...app.link.streams.values()])"
        " each.take({ type: 'gap', dropped: 1 }, 0)"
    )
    window.wait("handle => Boolean(app.store.agent(handle))", handle)
    window.wait("app.store.queues.has('builds')")
    window.check()


def test_an_address_that_is_pasted_into_the_open_tab_logs_it_in(
    daemon: DaemonProcess, browser: Browser
) -> None:
    window = open_window(browser, daemon.endpoint.url)
    expect(window.page.get_by_role("heading", name="Log in")).to_be_visible()
    window.page.goto(address(daemon))
    window.wait_live()
    window.page.goto(address(daemon))
    window.wait("!location.hash.includes('code')")
    window.wait_live()
    window.check()


def test_a_message_is_sent_once_however_often_enter_is_pressed(
    studio: Studio, browser: Browser, wire: Wire
) -> None:
    handle = studio.spawn("SAY ready")
    window = over(wire, browser, studio.daemon)
    window.go(f"/a/{handle}")
    box = window.page.get_by_label(f"Message to {handle}")
    box.fill("SAY once")
    wire.hold(TO_BROWSER)  # the message arrives, and its receipt does not
    for _ in range(3):
        box.press("Enter")
    box.type("typed meanwhile")

    def sent() -> list[str]:
        found = studio.call("inbox_read", from_handle=handle, unread=False)["messages"]
        return [each["body"] for each in found]

    until(lambda: "SAY once" in sent(), "the message has arrived")
    wire.cut()
    wire.flow()
    window.wait_live()
    expect(box).to_have_value("SAY once\ntyped meanwhile")
    box.fill("SAY once")
    box.press("Enter")
    expect(window.page.locator("#toasts")).to_contain_text("sent")
    assert sent().count("SAY once") == 1
    expect(box).to_have_value("")
    window.check()


def test_what_is_written_outlives_other_pages_and_a_reload(
    studio: Studio, browser: Browser
) -> None:
    handle = studio.spawn("SAY ready")
    window = log_in(browser, studio.daemon)
    message = window.page.get_by_label(f"Message to {handle}")
    window.go(f"/a/{handle}")
    message.fill("a long order")
    window.go("/c/plan")
    goals = window.page.get_by_role("region", name="Goals")
    goals.get_by_role("button", name="Edit").click()
    goals.get_by_role("textbox").fill("- ten minutes of work")
    window.go("/")
    window.page.wait_for_selector(".cols")
    window.page.reload()
    window.wait_live()
    window.go(f"/a/{handle}")
    expect(message).to_have_value("a long order")
    window.go("/c/plan")
    expect(goals.get_by_role("textbox")).to_have_value("- ten minutes of work")
    goals.get_by_role("textbox").press("Escape")
    window.page.get_by_role("button", name="Cancel").last.click()
    expect(goals.get_by_role("textbox")).to_have_value("- ten minutes of work")
    rev = studio.goals()["rev"]
    studio.call("canvas_write_section", name="plan", section="Goals", content="- x", if_rev=rev)
    window.page.reload()
    window.wait_live()
    expect(goals.get_by_role("alert")).to_contain_text("has written this section")
    goals.get_by_role("button", name="Keep mine").click()
    goals.get_by_role("button", name="Save").click()
    expect(goals.locator("pre")).to_have_text("- ten minutes of work")
    window.page.reload()
    window.wait_live()
    expect(goals.locator("pre")).to_have_text("- ten minutes of work")
    expect(goals.get_by_role("textbox")).to_have_count(0)
    window.check()


@pytest.mark.parametrize("size", [None, PHONE], ids=["desk", "phone"])
def test_the_whole_of_a_long_command_is_above_the_buttons_that_allow_it(
    studio: Studio, browser: Browser, size: object
) -> None:
    window = log_in(browser, studio.daemon, *([] if size is None else [PHONE]))
    words = " ".join(f"word{number}" for number in range(300))
    handle = studio.spawn(f"ASK echo {words} ; rm -rf precious\nSAY end")
    shown = card(window, handle).locator("pre")
    expect(shown).to_contain_text("rm -rf precious")
    allow = card(window, handle).get_by_role("button", name="Allow once")
    assert shown.evaluate("each => each.scrollHeight <= each.clientHeight + 1")
    text, button = shown.bounding_box(), allow.bounding_box()
    assert text is not None
    assert button is not None
    assert text["y"] + text["height"] <= button["y"]
    window.check()
