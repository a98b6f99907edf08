"""The work that the page does for output, commands and a new connection: no more than is seen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, WebSocket

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import DaemonProcess
from tests.web.browser import Window, log_in, needs_chromium

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

LINES = 3000
COMMANDS = 60
COUNT_WORK = """() => {
const { _renderService, _viewport } = app.current.term._core;
const renderer = _renderService._renderer.value;
window.work = { selections: 0, moves: 0 };
for (const [owner, name, key] of [[renderer, 'handleSelectionChanged', 'selections'],
    [_viewport._scrollableElement, 'setScrollDimensions', 'moves']]) {
  const did = owner[name];
  owner[name] = function (...args) { work[key]++; return did.apply(this, args); };
}
// A resize draws the selection too, and on a busy machine the first one comes late.
const resize = renderer.handleResize;
renderer.handleResize = function (...args) {
  const { selections } = work;
  resize.apply(this, args);
  work.selections = selections;
}; }"""
IS_AT_END = """() => { const { _viewport, _renderService } = app.current.term._core;
const { scrollTop } = _viewport._scrollableElement.getScrollPosition();
const { baseY } = app.current.term.buffer.active;
return Math.round(scrollTop / _renderService.dimensions.css.cell.height) === baseY; }"""
SELECTED = "document.querySelectorAll('.xterm-selection div').length"
NUMBERS = "[...document.querySelectorAll('.block')].map(row => row.record.seq)"
TOUCHED = """() => { window.touched = new Set();
new MutationObserver(changes => { for (const { target } of changes) touched.add(
  app.current.list === target ? 'list' : target.closest?.('.chunk')?.place);
}).observe(app.current.list, { childList: true, subtree: true, attributes: true }); }"""


def opened_at(browser: Browser, daemon: DaemonProcess, name: str) -> Window:
    """A window with the renderer that draws elements, at this terminal."""
    window = log_in(browser, daemon)
    window.page.goto(f"{window.origin}/?renderer=dom")
    window.wait_live()
    window.open_terminal(name)
    return window


def test_a_flood_moves_the_scrollbar_once_per_write_and_draws_no_selection(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = opened_at(browser, daemon, terminal.name)
    window.page.evaluate(COUNT_WORK)
    terminal.run(f"seq {LINES}; echo flood-end-$((1+1))")
    window.wait_text("flood-end-2")
    window.wait(IS_AT_END)
    work = window.page.evaluate("work")
    assert work["selections"] == 0
    assert 0 < work["moves"] < LINES / 10
    window.check()


def test_a_selection_stays_drawn_while_output_scrolls_and_goes_when_it_is_cleared(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = opened_at(browser, daemon, terminal.name)
    terminal.run("echo chosen-$((1+1))")
    window.wait_text("chosen-2")
    window.page.evaluate(
        "{ const { term } = app.current, { baseY } = term.buffer.active;"
        " term.select(0, baseY + 1, 8); }"
    )
    window.wait(f"{SELECTED} > 0")
    terminal.run("seq 5")
    window.wait(f"{SELECTED} > 0")
    assert len(window.page.evaluate("app.current.term.getSelection()")) == 8
    window.page.evaluate("app.current.term.clearSelection()")
    window.wait(f"{SELECTED} === 0")
    rows = window.page.evaluate("app.current.term.rows")
    window.page.set_viewport_size({"width": 1280, "height": 700})
    window.wait("rows => app.current.term.rows < rows", rows)
    assert window.page.evaluate(SELECTED) == 0
    window.check()


def test_a_command_touches_no_row_but_its_own_and_older_ones_are_listed_in_order(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    for _ in range(COMMANDS):
        terminal.run("true")
    window = opened_at(browser, daemon, terminal.name)
    window.wait("document.querySelectorAll('.block').length >= 50")
    window.page.get_by_role("button", name="Older").click()
    window.wait("total => document.querySelectorAll('.block').length === total", COMMANDS)
    assert window.page.evaluate(NUMBERS) == list(range(COMMANDS - 1, -1, -1))
    newest = window.page.evaluate("document.querySelector('.chunk').place")
    window.page.evaluate(TOUCHED)
    terminal.run("false")
    window.wait("document.querySelector('.block').record.exit === 1")
    assert window.page.evaluate(NUMBERS) == list(range(COMMANDS, -1, -1))
    window.page.evaluate("new Promise(requestAnimationFrame)")
    assert window.page.evaluate("[...touched]") == [newest]
    window.check()


def test_a_connection_opens_each_stream_once(daemon: DaemonProcess, browser: Browser) -> None:
    window = log_in(browser, daemon)
    opened: list[str] = []

    def note(frame: str | bytes) -> None:
        said: dict[str, Any] = json.loads(frame) if isinstance(frame, str) else {}
        if said.get("type") == "open":
            opened.append(said["stream"])

    def listen(socket: WebSocket) -> None:
        opened.clear()
        socket.on("framesent", note)

    window.page.on("websocket", listen)
    window.page.reload()
    window.wait("() => globalThis.app?.store.isWhole === true")
    assert len(opened) == len(set(opened)) >= 8
    window.page.evaluate("app.store.loaded.clear(); app.link.socket.close(); 0")
    window.wait("app.link.state === 'up' && app.store.loaded.has('tree')")
    assert len(opened) == len(set(opened)) >= 8
    window.check()
