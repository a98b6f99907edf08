"""What a person does on the page happens once, to what they meant, and what they wrote is kept."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from aegis.protocol.table import COMMANDS
from tests.e2e.harness import DaemonProcess
from tests.resources.waiting import until
from tests.web.browser import PHONE, Window, address, log_in, needs_chromium, open_window
from tests.web.studio import Studio
from tests.web.wire import TO_BROWSER, TO_DAEMON, Wire, wire_to

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]


@pytest.fixture
def wire(studio: Studio) -> Iterator[Wire]:
    with wire_to(urlsplit(studio.daemon.endpoint.url).port or 0) as made:
        yield made


def over(wire: Wire, browser: Browser, daemon: DaemonProcess) -> Window:
    """A window that is logged in over the wire."""
    window = open_window(browser, re.sub(r":\d+/", f":{wire.port}/", address(daemon), count=1))
    window.wait_live()
    return window


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
    window.wait("handle => Boolean(app.store.agentOf(handle))", handle)
    window.page.evaluate(
        "for (const each of [app.store.agents, app.store.queues]) each.value = new Map();"
        "for (const each of [...app.link.streams.values()])"
        " each.take({ type: 'gap', dropped: 1 }, 0)"
    )
    window.wait("handle => Boolean(app.store.agentOf(handle))", handle)
    window.wait("app.store.queues.value.has('builds')")
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
    window.allow_silence()
    window.go(f"/a/{handle}")
    # By the parser: what is still loaded when the wire is cut is an error of the console.
    expect(window.page.locator("article.own .md > p")).to_have_text("ready")
    box = window.page.get_by_label(f"Write to {handle}")
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
    window.wait_live()
    box.fill("SAY once")
    box.press("Enter")
    expect(box).to_have_value("")
    assert sent().count("SAY once") == 1
    window.check(was_cut=True)


def test_a_message_that_is_being_sent_is_written_again_only_if_it_fails(
    studio: Studio, browser: Browser, wire: Wire
) -> None:
    handle = studio.spawn("SAY ready")
    window = over(wire, browser, studio.daemon)
    window.allow_silence()
    box = window.page.get_by_label(f"Write to {handle}")

    def leave_and_return() -> None:
        window.go("/home")
        expect(window.page.get_by_role("heading", name="Waiting for you")).to_be_visible()
        window.go(f"/a/{handle}")
        expect(box).to_be_visible()

    for is_lost, text in enumerate(("SAY first", "SAY second")):
        window.go(f"/a/{handle}")
        expect(window.page.locator("article.own .md > p").first).to_have_text("ready")
        box.fill(text)
        wire.hold(TO_BROWSER)
        box.press("Enter")
        leave_and_return()
        expect(window.page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
        box.type("x")
        box.press("Backspace")
        expect(box).to_have_value("")
        if is_lost:
            wire.cut()
        wire.flow()
        window.wait_live()
        expect(box).to_have_value(text if is_lost else "")
        leave_and_return()
        expect(box).to_have_value(text if is_lost else "")
    window.wait_live()  # else it is refused at once, and is in the box again
    box.press("Enter")
    expect(box).to_have_value("")
    studio.has_turns(handle, 3)
    window.check(was_cut=True)


def waits_to_be_read(studio: Studio, handle: str, *texts: str) -> None:
    """Have an agent work, and send it messages that each get a turn of their own."""
    studio.spawn("HANG", handle=handle)
    studio.is_in(handle, "working")
    for text in texts:
        studio.call("agent_send", handle=handle, text=text, alone=True)


def test_a_message_is_taken_back_only_before_it_is_read(
    studio: Studio, browser: Browser, wire: Wire
) -> None:
    waits_to_be_read(studio, "late", "HANG now", "SAY then")
    window = over(wire, browser, studio.daemon)
    window.go("/a/late")
    rows = window.page.get_by_role("list", name="Messages that wait").get_by_role("listitem")
    expect(rows).to_have_count(2)
    window.settle()
    window.allow_silence()
    wire.hold(TO_BROWSER)
    studio.call("interrupt", handle="late")
    until(lambda: studio.info("late")["turn"] == 2, "the first message is read")
    window.page.get_by_role("button", name="Take back: HANG now").click()
    place = rows.last.bounding_box()
    wire.flow()
    expect(window.page.get_by_text("has begun the turn")).to_be_visible()
    expect(rows).to_have_count(1)
    window.settle()
    assert rows.last.bounding_box() == place  # that of the first one is empty
    assert studio.info("late")["state"] == "working"
    window.page.get_by_role("button", name="Take back: SAY then").click()
    expect(rows).to_have_count(0)
    studio.call("interrupt", handle="late")
    studio.has_outcomes("late", "cancelled", "cancelled", "cancelled")
    window.check()


def test_a_message_that_moves_under_a_finger_is_not_taken_back(
    studio: Studio, browser: Browser
) -> None:
    waits_to_be_read(studio, "moves", "SAY one", "SAY two")
    window = log_in(browser, studio.daemon, PHONE)
    window.go("/a/moves")
    rows = window.page.get_by_role("list", name="Messages that wait").get_by_role("listitem")
    expect(rows).to_have_count(2)
    window.settle()
    button = rows.filter(has_text="one").get_by_role("button")
    box = button.bounding_box()
    assert box is not None
    # The moment passes by this clock: a busy machine may take longer to tap.
    window.page.evaluate("() => { const now = performance.now(); performance.now = () => now; }")
    studio.call("agent_send", handle="moves", text="SAY three", alone=True)
    expect(rows).to_have_count(3)
    window.page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(window.page.get_by_text("moved just now")).to_be_visible()
    assert studio.info("moves")["waiting"] == 3
    window.page.evaluate("delete performance.now")
    window.settle()
    button.tap()
    expect(rows).to_have_count(2)
    studio.call("interrupt", handle="moves")
    until(lambda: studio.texts("moves") == ["two", "three"], "the others are read")
    window.check()


LOSE_ALL = """names => {
  window.said = {};
  for (const [number, command] of names.entries()) app.link.calls.set(-1 - number, { command,
    resolve() {}, reject: error => { window.said[command] = error.message; } });
  app.link.redial();
}"""


def test_only_a_call_that_may_have_changed_something_asks_to_look_whether_it_was_done(
    daemon: DaemonProcess, browser: Browser
) -> None:
    window = log_in(browser, daemon)
    window.page.evaluate(LOSE_ALL, [each.name for each in COMMANDS])
    said = window.page.evaluate("window.said")
    reads = {name for name, sentence in said.items() if "look" not in sentence}
    # To read an inbox a second time acknowledges the same messages.
    wanted = {each.name for each in COMMANDS if each.read_only} | {"inbox_read", "inbox_wait"}
    assert reads == wanted
    assert {said[name] for name in reads} == {"The connection was lost; try again."}
    window.wait_live()
    window.check()


def test_what_is_written_outlives_other_pages_and_a_reload(
    studio: Studio, browser: Browser
) -> None:
    handle = studio.spawn("SAY ready")
    window = log_in(browser, studio.daemon)
    message = window.page.get_by_label(f"Write to {handle}")
    window.go(f"/a/{handle}")
    message.fill("a long order")
    window.go("/home")
    expect(window.page.get_by_role("heading", name="Waiting for you")).to_be_visible()
    window.page.reload()
    window.wait_live()
    window.go(f"/a/{handle}")
    expect(message).to_have_value("a long order")
    window.check()


CLOCK = """(() => { const Real = Date, away = AWAY * 86400e3;
globalThis.Date = class extends Real {
  constructor(...given) { if (given.length) super(...given); else super(Real.now() + away); }
  static now() { return Real.now() + away; }
}; })()"""


@pytest.mark.parametrize("days", [2, -2])
def test_a_browser_whose_clock_is_wrong_shows_ages_by_that_of_the_daemon(
    studio: Studio, browser: Browser, days: int
) -> None:
    name = f"clock{days}"
    studio.call("term_spawn", name=name)
    studio.call("term_run", name=name, cmd="true")
    window = open_window(browser, studio.daemon.endpoint.url)
    window.page.add_init_script(CLOCK.replace("AWAY", str(days)))
    window.page.goto(address(studio.daemon))
    window.wait_live()
    assert window.page.evaluate("Date.now()") / 1000 - time.time() == pytest.approx(
        days * 86_400, abs=3600
    )
    row = window.page.get_by_role("navigation", name="Everything").get_by_role("link", name=name)
    expect(row).to_contain_text("now")
    handle = studio.spawn(f"ASK clock {name}\nSAY end")
    request = window.page.get_by_role("list", name="Open requests").get_by_role("listitem")
    mine = request.filter(has_text=handle)
    expect(mine).to_contain_text("now")
    [asked] = [each for each in studio.call("request_list")["requests"] if each["handle"] == handle]
    studio.call("request_answer", id=asked["id"], digest=asked["digest"], answer="deny")
    expect(mine).to_have_count(0)
    window.check()


def test_a_daemon_that_stands_still_is_waited_for_and_nothing_typed_is_done_twice(
    own_daemon: DaemonProcess, browser: Browser
) -> None:
    """As a machine that is suspended: no connection ends, and nobody answers."""
    own_daemon.start("--port", "0")
    own_daemon.call("term_spawn", name="sleeper")
    window = log_in(browser, own_daemon)
    window.open_terminal("sleeper")
    os.kill(own_daemon.endpoint.pid, signal.SIGSTOP)
    try:
        window.page.wait_for_selector("#link.down", state="attached")
    finally:
        os.kill(own_daemon.endpoint.pid, signal.SIGCONT)
    window.wait_typing()
    window.type("echo awake-$((1+1))\r")
    window.wait_text("awake-2")

    def ran() -> list[str]:
        return [each["cmd"] for each in own_daemon.call("term_read", name="sleeper")["result"]]

    until(lambda: ran() != [], "the command has ended, which its output does not say")
    assert ran() == ["echo awake-$((1+1))"]
    window.check()
