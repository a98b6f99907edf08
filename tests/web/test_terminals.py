"""Terminals in a real browser: the screen, the marks of commands, the size, lost connections."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from aegis.state.registration import claim_state
from aegis.terminals.remote.nodes import NodeMap, encode_nodes
from tests.aegis.terminals.remote.test_nodes import SINCE, info
from tests.chaos.real.scratch import free_port
from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import DaemonProcess
from tests.web.browser import (
    PHONE,
    Window,
    address,
    log_in,
    needs_chromium,
    open_window,
)
from tests.web.wire import Wire, wire_to

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

COUNT = "for i in $(seq 60); do echo line-$i; sleep 0.02; done"
LINES = 3000
COMMANDS = 60
FORGED = "printf '\\033]133;C\\033\\\\'; echo forged"
PLACES = """() => [...app.current.blocks].filter(([, marker]) => marker.chip)
.map(([start, marker]) => [app.current.ledger.starts.get(start).cmd,
app.current.term.buffer.normal.getLine(marker.line).translateToString(true)])"""
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
NUMBERS = "[...document.querySelectorAll('.block')].map(row => Number(row.dataset.seq))"
READ_ALL = "() => { const { ledger } = app.current; ledger.older(); return ledger.isAll.value; }"
TOUCHED = """() => { window.touched = new Set();
new MutationObserver(changes => {
  for (const { target } of changes) touched.add(target.closest?.('.chunk') ?? target);
}).observe(document.querySelector('.blocks'),
  { childList: true, subtree: true, attributes: true }); }"""


def test_two_browsers_share_a_terminal_and_one_owns_its_size(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    name = new_terminal().name
    one, two = log_in(browser, daemon), log_in(browser, daemon, PHONE)
    one.open_terminal(name)
    one.wait_size()
    two.open_terminal(name)
    one.type("echo from-one-$((40+2))\r")
    two.wait_text("from-one-42")
    two.type("echo from-two-$((50+2))\r")
    one.wait_text("from-two-52")
    two.wait("app.current.owner && !app.current.owner.yours")
    cols = one.page.evaluate("app.current.term.cols")
    two.wait("cols => app.current.term.cols === cols", cols)
    two.page.get_by_role("button", name="Take over").click()
    two.wait("app.current.owner.yours")
    one.wait("!app.current.owner.yours")
    two.wait("app.current.term.cols < 80")
    one.check()
    two.check()


def wait_placed(window: Window, commands: list[str]) -> None:
    """Wait until each command has its mark, beside its line."""

    def are_placed() -> bool:
        places = window.page.evaluate(PLACES)
        named = sorted(cmd for cmd, _ in places)
        return named == sorted(commands) and all(shown.endswith(cmd) for cmd, shown in places)

    window.wait_until(are_placed, "a mark at each command")


def test_commands_are_blocks_that_a_program_cannot_forge(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = log_in(browser, daemon)
    window.open_terminal(terminal.name)
    commands = [
        # Whole, cancelled twice, cut off by another sequence, inside of a string, many at once.
        FORGED,
        "printf '\\033]133;C\\030\\007\\033]133;C\\032\\007'; echo cancelled",
        "printf '\\033]133;C\\033[m'; echo cut",
        "printf '\\033P\\033]133;C\\007\\033\\\\'; echo nested",
        "yes $'\\e]133;C\\a' | head -n 40000 | tr -d '\\n'; echo many",
        "echo next",
        "(exit 3)",
    ]
    for command in commands:
        terminal.run(command)
    wait_placed(window, commands)
    marks = window.page.locator(".mark")  # that of a command that fails is drawn again
    expect(marks.filter(has_text="✗")).to_have_count(1)
    expect(marks.filter(has_text="✓")).to_have_count(len(commands) - 1)
    expect(window.page.locator(".block")).to_have_count(len(commands))
    expect(window.page.locator(".block .chip").first).to_contain_text("exit 3")
    window.check()


def test_one_who_comes_later_sees_how_the_commands_above_ended(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    commands = [f"echo 漢 {number}; (exit {number % 3})" for number in range(60)]
    for command in [*commands, FORGED]:
        terminal.run(command)
    window = log_in(browser, daemon)
    window.open_terminal(terminal.name)
    wait_placed(window, [*commands, FORGED])
    last = len(commands)
    expect(window.page.locator(f'.mark[data-seq="{last}"]')).to_contain_text("✓")
    expect(window.page.locator(f'.mark.fail[data-seq="{last - 1}"]')).to_contain_text("✗")
    window.check()


@pytest.mark.parametrize("program", ["vim -u NONE -N", "htop"])
def test_a_full_screen_program_looks_the_same_for_one_who_comes_later(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, program: str
) -> None:
    if shutil.which(program.split()[0]) is None:
        pytest.skip(f"{program} is not installed")
    terminal = new_terminal()
    terminal.run("echo beneath-$((1+1))")
    window = log_in(browser, daemon)
    window.open_terminal(terminal.name)
    daemon.call("term_run", name=terminal.name, cmd=program, until="started")
    window.wait("app.current.term.buffer.active.type === 'alternate'")
    later = log_in(browser, daemon)
    later.open_terminal(terminal.name)
    later.wait("app.current.term.buffer.active.type === 'alternate'")
    window.type(":q!\r" if "vim" in program else "q")
    for each in (window, later):
        each.wait("app.current.term.buffer.active.type === 'normal'")
        each.wait_text("beneath-2")
        each.check()


def lines_of(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("line-")]


def cut_socket(window: Any) -> None:
    window.page.evaluate("app.link.socket.close(); 0")


def cross_over(window: Any) -> None:
    window.page.goto("about:blank")
    window.page.go_back(wait_until="commit")


@pytest.mark.parametrize("lose", [cut_socket, cross_over])
def test_a_lost_connection_continues_where_it_was(
    daemon: DaemonProcess,
    browser: Browser,
    new_terminal: NewTerminal,
    lose: Callable[[Any], None],
) -> None:
    terminal = new_terminal()
    window = log_in(browser, daemon)
    window.open_terminal(terminal.name)
    daemon.call("term_run", name=terminal.name, cmd=COUNT, until="started")
    window.wait_text("line-5")
    window.page.evaluate("window.isSame = true")
    lose(window)
    window.wait("window.isSame")  # nothing was loaded again
    window.wait_live()
    window.wait_text("line-60")
    assert lines_of(window.text()) == [f"line-{number}" for number in range(1, 61)]
    window.check()


def test_a_daemon_that_is_killed_is_found_again(
    own_daemon: DaemonProcess, browser: Browser
) -> None:
    port = str(free_port(random.Random()))
    own_daemon.start("--port", port)
    own_daemon.call("term_spawn", name="build")
    window = log_in(browser, own_daemon)
    window.open_terminal("build")
    window.type("echo before-$((1+1))\r")
    window.wait_text("before-2")
    own_daemon.kill()
    window.page.wait_for_selector("#link.down")
    own_daemon.start("--port", port)
    window.wait_typing()
    window.type("echo after-$((1+1))\r")
    window.wait_text("after-2")
    window.check(was_cut=True)


def test_a_line_of_a_megabyte_and_hostile_escapes_leave_the_page_usable(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = log_in(browser, daemon)
    window.open_terminal(terminal.name)
    terminal.run("head -c 1000000 /dev/zero | tr '\\0' A; echo")
    hostile = r"\033]2;<b>\342\200\256title\007\033]52;c;eA==\007\033[6n\033[c"
    terminal.run(f"printf '{hostile}'; echo end-$((1+1))")
    window.wait_text("end-2")
    expect(window.page.locator(".head .title")).to_have_text("<b>title")
    window.type("\x03")  # the answers to its questions are in the line
    window.wait_text("^C")
    window.type("echo usable-$((1+1))\r")
    window.wait_text("usable-2")
    window.check()


def test_a_read_only_link_shows_its_terminal_and_takes_no_keys(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    terminal.run("echo shown-$((1+1))")
    window = open_window(browser, daemon.call("page_link", view=f"terminal:{terminal.name}")["url"])
    window.wait_terminal()
    window.wait_text("shown-2")
    expect(window.page.get_by_text("read-only", exact=True)).to_be_visible()
    window.type("echo typed\r")
    terminal.run("echo later-$((1+1))")
    window.wait_text("later-2")
    expect(window.page.locator(".block")).to_have_count(2)
    assert "typed" not in window.text()
    window.check()


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
    window.wait_size()  # else what is selected before is cleared
    window.wait(
        "() => { const { term } = app.current, { baseY } = term.buffer.active;"
        f" if (!({SELECTED})) term.select(0, baseY + 1, 8); return {SELECTED} > 0; }}"
    )
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
    window.page.locator(".blocks").evaluate("list => list.scrollTo(0, list.scrollHeight)")
    window.wait("total => document.querySelectorAll('.block').length === total", COMMANDS)
    assert window.page.evaluate(NUMBERS) == list(range(COMMANDS - 1, -1, -1))
    # A page of commands that is read meanwhile would touch the list, even an empty one.
    window.wait(READ_ALL)
    window.page.evaluate(TOUCHED)
    terminal.run("false")
    expect(window.page.locator(".block").first).to_contain_text("exit 1")
    assert window.page.evaluate(NUMBERS) == list(range(COMMANDS, -1, -1))
    window.page.evaluate("new Promise(requestAnimationFrame)")
    assert window.page.evaluate(
        "touched.size === 1 && touched.has(document.querySelector('.chunk'))"
    )
    window.check()


def swipe(window: Window, begin: int, end: int, *, aside: int = 0) -> None:
    """Move a finger over the terminal, from one height to another and ``aside`` to the left."""
    session = window.context.new_cdp_session(window.page)

    def touch(kind: str, *points: dict[str, int]) -> None:
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    touch("touchStart", {"x": 350, "y": begin})
    for step in range(1, 11):
        at = {"x": 350 - aside * step // 10, "y": begin + (end - begin) * step // 10}
        touch("touchMove", at)
    touch("touchEnd")


def test_a_finger_scrolls_the_output_and_a_full_screen_program(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = log_in(browser, daemon, PHONE)
    window.open_terminal(terminal.name)
    window.wait_size()
    window.type("seq 300\r")
    window.wait_text("\n300")
    buffer = "app.current.term.buffer.active"
    swipe(window, 200, 600)
    window.wait(f"{buffer}.viewportY < {buffer}.baseY - 10")
    swipe(window, 600, 150)
    window.wait(f"{buffer}.viewportY === {buffer}.baseY")
    window.type("seq 300 | less\r")
    window.wait("app.current.term.buffer.active.type === 'alternate'")
    window.wait_text("\n10")
    swipe(window, 600, 200)
    window.wait("!app.current.term.buffer.active.getLine(0).translateToString(true).match(/^1$/)")
    window.type("q")
    window.check()


def test_a_wider_terminal_moves_aside_under_a_finger_and_fits_once_it_is_taken(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    wide = {"viewport": {"width": 1920, "height": 900}}
    phone, desk = log_in(browser, daemon, PHONE), log_in(browser, daemon, wide)
    phone.open_terminal(terminal.name)
    phone.wait_size()  # it is the first to have it
    desk.open_terminal(terminal.name)
    desk.page.get_by_role("button", name="Take over").click()
    phone.wait("app.current.owner?.yours === false && app.current.term.cols > 120")
    phone.wait("app.current.screen.scrollWidth > innerWidth + 100")
    swipe(phone, 400, 400, aside=300)
    phone.wait("app.current.screen.scrollLeft > 80")
    phone.page.get_by_role("button", name="Take over").click()
    fits = "document.querySelector('.xterm-screen').getBoundingClientRect().right <= innerWidth"
    phone.wait(f"app.current.owner?.yours && app.current.term.cols < 70 && {fits}")
    phone.check()


KEYS = [
    *(("Esc", "", "^["), ("Tab", "", "^I"), ("Shift Tab", "", "^[[Z"), ("Up", "", "^[[A")),
    *(("Left", "", "^[[D"), ("Right", "", "^[[C"), ("Up", r"\033[?1h", "^[OA")),
]
"""A key of the bar, what the program has set before, and the bytes that it gets."""


def test_the_key_bar_types_what_a_keyboard_would(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = log_in(browser, daemon, PHONE)
    window.open_terminal(terminal.name)
    for number, (key, mode, typed) in enumerate(KEYS):
        size = len(typed.removeprefix("^")) if typed != "^[" else 1
        reader = f"stty raw -echo; printf '{mode}ready-{number}\\r\\n'; head -c {size} | cat -A"
        daemon.call("term_run", name=terminal.name, cmd=f"{reader}; stty sane", until="started")
        window.wait_text(f"\nready-{number}")
        window.page.get_by_role("button", name=key, exact=True).tap()
        window.wait_text(f"ready-{number}\n{typed}")
    window.check()


def test_a_new_command_does_not_move_the_row_under_the_pointer(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    terminal.run("echo first")
    window = log_in(browser, daemon)
    window.open_terminal(terminal.name)
    window.wait_size()
    row = window.page.locator(".block", has_text="echo first")
    row.hover()
    before = row.bounding_box()
    for number in range(20):
        terminal.run(f": {number}")
    expect(window.page.get_by_text("20 new")).to_be_visible()
    assert row.bounding_box() == before
    window.page.mouse.move(1, 1)
    window.wait("document.querySelectorAll('.block').length === 21")
    window.check()


@pytest.fixture
def wire(daemon: DaemonProcess) -> Iterator[Wire]:
    with wire_to(urlsplit(daemon.endpoint.url).port or 0) as made:
        yield made


def through(wire: Wire, daemon: DaemonProcess, browser: Browser) -> Window:
    url = re.sub(r":\d+/", f":{wire.port}/", address(daemon), count=1)
    window = open_window(browser, url)
    window.wait_live()
    return window


def test_commands_of_the_time_without_a_connection_are_listed_with_their_ends(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, wire: Wire
) -> None:
    name = new_terminal().name
    window = through(wire, daemon, browser)
    window.open_terminal(name)
    started = daemon.call("term_run", name=name, cmd="read line", until="started")["seq"]
    window.page.wait_for_selector(".block.runs")
    wire.cut(refuse=True)
    window.page.wait_for_selector("#link.down")
    daemon.call("term_keys", name=name, keys="x\r")
    daemon.call("term_wait", name=name, seq=started)
    for number in range(60):  # more than one page of records
        daemon.call("term_run", name=name, cmd=f": {number}")
    daemon.call("term_run", name=name, cmd="false")
    wire.mend()
    window.wait_live()
    wanted = list(range(started + 61, started - 1, -1))
    window.wait_until(lambda: window.page.evaluate(NUMBERS) == wanted, "each command has a row")
    expect(window.page.locator(".block").first).to_contain_text("exit 1")
    expect(window.page.locator(".block.runs")).to_have_count(0)
    window.check(was_cut=True)


def test_an_exit_code_is_not_shown_beside_the_command_before(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = log_in(browser, daemon)
    window.go("/terminals")
    row = window.page.get_by_role("list", name="Terminals").locator("li", has_text=terminal.name)
    expect(row).to_be_visible()
    terminal.run("echo seen")
    expect(row.locator("code")).to_have_text("echo seen")
    expect(row).to_contain_text("exit 0")
    window.page.evaluate("app.link.hold()")
    terminal.run("(exit 7)")
    window.page.evaluate("app.link.resume()")
    expect(row).to_contain_text("exit 7")
    expect(row.locator("code")).to_have_count(0)
    terminal.run("(exit 8)")
    expect(row.locator("code")).to_have_text("(exit 8)")
    window.check()


def test_a_terminal_that_was_closed_meanwhile_is_live_again_once_it_is_opened(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, wire: Wire
) -> None:
    terminal = new_terminal()
    name = terminal.name
    terminal.run("true")
    window = through(wire, daemon, browser)
    window.open_terminal(name)
    wire.cut(refuse=True)
    window.page.wait_for_selector("#link.down")
    daemon.call("term_close", name=name)
    wire.mend()
    window.wait_live()
    expect(window.page.get_by_text("This terminal is closed.")).to_be_visible()
    wire.cut(refuse=True)
    window.page.wait_for_selector("#link.down")
    daemon.call("term_spawn", name=name)
    wire.mend()
    window.wait_typing()
    wire.cut(refuse=True)
    window.page.wait_for_selector("#link.down")
    daemon.call("term_close", name=name)
    # The page connects, and the terminal is opened again before the page knows that it was closed.
    wire.mend()
    window.wait_live()
    daemon.call("term_spawn", name=name)
    window.wait_typing()
    window.type("echo again-$((1+1))\r")
    window.wait_text("again-2")
    window.check(was_cut=True)


def test_a_terminal_on_a_host_that_is_away_says_so(
    own_daemon: DaemonProcess, browser: Browser
) -> None:
    nodes = NodeMap()
    nodes.opened("gpu1", info("train"))
    nodes.lost("gpu1", SINCE)
    seal = claim_state(own_daemon.state).of(str(own_daemon.state.nodes))
    own_daemon.state.nodes.write_bytes(encode_nodes(nodes, seal))
    own_daemon.state.nodes.chmod(0o600)
    own_daemon.start()
    window = log_in(browser, own_daemon)
    window.go("/t/train")
    expect(window.page.get_by_text("The host gpu1 cannot be reached.")).to_be_visible()
    window.type("lost")
    expect(window.page.get_by_text("The terminal cannot be reached: nothing")).to_be_visible()
    own_daemon.cli("node", "forget", "gpu1")
    own_daemon.call("term_spawn", name="train")
    window.wait_typing()
    window.type("echo here-$((1+1))\r")
    window.wait_text("here-2")
    window.check()


def test_a_phone_has_a_bar_of_keys_and_the_page_fits(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = log_in(browser, daemon, PHONE)
    window.wait("document.documentElement.scrollWidth <= 412")
    window.open_terminal(terminal.name)
    keys = window.page.get_by_role("toolbar", name="Keys")
    expect(keys).to_be_visible()
    sizes = [key.bounding_box() for key in keys.get_by_role("button").all()]
    assert all(size and size["width"] >= 44 and size["height"] >= 44 for size in sizes)
    window.type("sleep 100\r")
    window.page.wait_for_selector(".head .state.works")
    control = keys.get_by_role("button", name="Ctrl", exact=True)
    control.tap()
    expect(control).to_have_attribute("aria-pressed", "true")
    window.type("c")
    window.page.wait_for_selector(".head .state.failed")  # exit 130
    window.type("ls --color=always /usr\r")
    window.wait_text("share")
    window.check()
