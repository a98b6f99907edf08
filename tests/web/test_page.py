"""The web page in a real browser: login, terminals, blocks, requests, reconnects, phones."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.aegis.test_shown_text import EMOJI
from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import Team
from tests.e2e.test_telegram import ACP
from tests.web.browser import PHONE, address, log_in, needs_chromium, open_window

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

COUNT = "for i in $(seq 60); do echo line-$i; sleep 0.02; done"


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


def test_two_browsers_share_a_terminal_and_one_owns_its_size(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    name = new_terminal().name
    one, two = log_in(browser, daemon), log_in(browser, daemon, PHONE)
    one.open_terminal(name)
    one.wait("app.current.owner?.yours")
    two.open_terminal(name)
    one.type("echo from-one-$((40+2))\r")
    two.wait_text("from-one-42")
    two.type("echo from-two-$((50+2))\r")
    one.wait_text("from-two-52")
    two.wait("app.current.owner && !app.current.owner.yours")
    assert two.page.evaluate("app.current.term.cols") == one.page.evaluate("app.current.term.cols")
    two.page.get_by_role("button", name="Fit to mine").click()
    two.wait("app.current.owner.yours")
    one.wait("!app.current.owner.yours")
    assert two.page.evaluate("app.current.term.cols") < 80
    one.check()
    two.check()


def test_commands_are_blocks_that_a_program_cannot_forge(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = log_in(browser, daemon)
    window.open_terminal(terminal.name)
    terminal.run("printf '\\033]133;C\\033\\\\'; echo forged")
    terminal.run("ls --color=always /; (exit 3)")
    window.wait("document.querySelectorAll('.mark').length === 2")
    marks = window.page.locator(".mark").all_inner_texts()
    assert sorted(mark[0] for mark in marks) == ["✓", "✗"]
    expect(window.page.locator(".block")).to_have_count(2)
    expect(window.page.locator(".block .chip").first).to_have_text("exit 3")
    window.page.locator(".block").first.get_by_role("button", name="Run again").click()
    expect(window.page.locator(".block")).to_have_count(3)
    window.check()


PLACES = """[...app.current.blocks].filter(([, marker]) => marker.chip).map(([start, marker]) => [
app.current.starts.get(start).cmd,
app.current.term.buffer.normal.getLine(marker.line).translateToString(true)])"""


def test_one_who_comes_later_sees_how_the_commands_above_ended(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    commands = [f"echo 漢 {number}; (exit {number % 3})" for number in range(60)]
    for command in commands:
        terminal.run(command)
    terminal.run("printf '\\033]133;C\\033\\\\'; echo forged")
    window = log_in(browser, daemon)
    window.open_terminal(terminal.name)
    window.wait(f"total => {PLACES}.length === total", len(commands) + 1)
    places = window.page.evaluate(PLACES)
    assert sorted(cmd for cmd, _ in places[:-1]) == sorted(commands)
    assert all(shown.endswith(cmd) for cmd, shown in places)
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
    own_daemon.start()
    own_daemon.call("term_spawn", name="build")
    window = log_in(browser, own_daemon)
    window.open_terminal("build")
    window.type("echo before-$((1+1))\r")
    window.wait_text("before-2")
    own_daemon.kill()
    window.page.wait_for_selector("#link.down")
    own_daemon.start("--port", window.origin.rpartition(":")[2])
    window.wait_typing()
    window.type("echo after-$((1+1))\r")
    window.wait_text("after-2")
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


def test_a_phone_has_a_bar_of_keys_and_the_page_fits(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = log_in(browser, daemon, PHONE)
    assert window.page.evaluate("document.documentElement.scrollWidth") <= 412
    window.open_terminal(terminal.name)
    keys = window.page.get_by_role("toolbar", name="Keys")
    expect(keys).to_be_visible()
    sizes = [key.bounding_box() for key in keys.get_by_role("button").all()]
    assert all(size and size["width"] >= 44 and size["height"] >= 44 for size in sizes)
    window.type("sleep 100\r")
    window.page.wait_for_selector(".dot.busy")
    keys.get_by_role("button", name="Control", exact=True).tap()
    window.type("c")
    window.page.wait_for_selector(".head .dot.good")
    window.type("ls --color=always /usr\r")
    window.wait_text("share")
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
    expect(window.page.locator(".where")).to_have_text("<b>title")
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
    window.wait("() => globalThis.app?.current?.cursor != null")
    window.wait_text("shown-2")
    expect(window.page.get_by_text("read-only")).to_be_visible()
    window.type("echo typed\r")
    terminal.run("echo later-$((1+1))")
    window.wait_text("later-2")
    expect(window.page.locator(".block")).to_have_count(2)
    assert "typed" not in window.text()
    window.check()
