"""A person's actions on terminals and workspaces on the page, on a desk and on a phone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import DaemonProcess
from tests.resources.waiting import until
from tests.web.browser import DESK, PHONE, Window, log_in, needs_chromium, open_window

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

on_both = pytest.mark.parametrize("form", [DESK, PHONE], ids=["desk", "phone"])
CLIPBOARD = ["clipboard-read", "clipboard-write"]
COPIED = "navigator.clipboard.readText()"
LONG_WORDS = "for each in a a. /a a/ _; do printf '%.0s'$each $(seq 3000); echo; done"
FOLLOWED = """() => { window.followed = []; addEventListener('open-place', event => {
  event.preventDefault();
  followed.push(event.detail);
}); }"""


def opened_at(
    browser: Browser, daemon: DaemonProcess, name: str, form: dict[str, Any] | None = None
) -> Window:
    """A window that may use the clipboard, at a terminal."""
    window = log_in(browser, daemon, form, permissions=CLIPBOARD)
    window.open_terminal(name)
    return window


def choose(window: Window, name: str, action: str) -> None:
    """Choose an action from the menu of a terminal."""
    window.page.get_by_role("button", name=f"What to do with {name}", exact=True).click()
    window.page.get_by_role("menuitem", name=re.compile(f"^{action}")).click()


def dialog(window: Window, name: str) -> Locator:
    return window.page.get_by_role("dialog", name=name)


def press(box: Locator, name: str) -> None:
    box.get_by_role("button", name=name, exact=True).click()


def info(daemon: DaemonProcess, name: str) -> dict[str, Any] | None:
    """Return the daemon's description of an open terminal."""
    found = daemon.call("term_list")["result"]
    return next((dict(each) for each in found if each["name"] == name), None)


def records(daemon: DaemonProcess, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.call("term_read", name=name, since_seq=-1)["result"]
    return found


def commands(daemon: DaemonProcess, name: str) -> list[str]:
    return [each["cmd"] for each in records(daemon, name)]


def show_commands(window: Window, name: str) -> Locator:
    """The list of commands: at the side of a desk, in a dialog of a phone."""
    if window.page.viewport_size == PHONE["viewport"]:
        choose(window, name, "Commands")
    return window.page.get_by_role("complementary", name="Commands")


@on_both
def test_a_terminal_is_opened_with_directory_shell_environment_node_and_size(
    daemon: DaemonProcess, browser: Browser, tmp_path: Path, form: dict[str, Any]
) -> None:
    name = f"made-{form['viewport']['width']}"
    window = log_in(browser, daemon, form)
    window.go("/terminals")
    window.page.get_by_role("button", name="New terminal").last.click()
    box = dialog(window, "New terminal")
    box.get_by_label("Name", exact=True).fill("no name")
    press(box, "Open")  # the browser refuses it
    assert info(daemon, "no name") is None
    box.get_by_label("Name", exact=True).fill(name)
    box.get_by_label("Directory").fill("/does/not/exist")
    box.get_by_label("First command").fill("echo in-$PWD-$COLOUR")
    box.get_by_text("Shell, environment, node, size").click()
    box.get_by_label("Shell").fill("bash")
    box.get_by_label("Environment").fill("COLOUR")
    box.get_by_label("Node").select_option("local")
    press(box, "Open")
    expect(box.get_by_role("alert")).to_contain_text("“COLOUR” is not NAME=value")
    box.get_by_label("Environment").fill("COLOUR=blue\nexport SHAPE=round")
    box.get_by_label("Columns").fill("90")
    box.get_by_label("Rows").fill("20")
    press(box, "Open")
    expect(box.get_by_role("alert")).to_contain_text("/does/not/exist")
    window.page.keyboard.press("Escape")
    window.page.reload()  # a draft outlives this
    window.wait_live()
    window.page.get_by_role("button", name="New terminal").last.click()
    expect(box.get_by_label("Name", exact=True)).to_have_value(name)
    box.get_by_label("Directory").fill(str(tmp_path))
    press(box, "Open")
    window.wait("name => app.current?.name === name", name)
    wanted = f"in-{tmp_path}-blue\n"  # the screen of a phone breaks the line
    until(lambda: [each["stdout"] for each in records(daemon, name)] == [wanted], "it has run")
    made = info(daemon, name)
    assert made is not None
    assert (made["cwd"], Path(made["shell"]).name, made["node"]) == (str(tmp_path), "bash", "local")
    window.check()


@on_both
def test_a_command_is_run_from_the_line_and_typed_raw(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, form: dict[str, Any]
) -> None:
    name = new_terminal().name
    window = opened_at(browser, daemon, name, form)
    line = window.page.get_by_label("Run a command")
    line.fill("echo from-line-$((1+1))")
    window.page.reload()
    window.wait_terminal()
    expect(line).to_have_value("echo from-line-$((1+1))")
    line.press("Enter")
    window.wait_text("from-line-2")
    expect(line).to_have_value("")
    window.wait("app.current.ledger.list.value.length === 1")  # what the arrows recall
    line.fill("half-typed")
    for key, shown in (("ArrowDown", "half-typed"), ("ArrowUp", "echo from-line-$((1+1))")):
        line.press(key)
        expect(line).to_have_value(shown)
    line.press("ArrowDown")
    expect(line).to_have_value("half-typed")
    line.fill("sleep 1000")
    window.page.get_by_role("button", name="Run", exact=True).click()
    until(lambda: (info(daemon, name) or {})["state"] == "running", "it runs")
    line.fill("echo second")
    line.press("Enter")
    expect(window.page.locator(".run-line [role=alert]")).to_contain_text("busy", timeout=30_000)
    expect(line).to_have_value("echo second")
    choose(window, name, "Interrupt")
    until(lambda: (info(daemon, name) or {})["state"] == "idle", "it ended")
    window.type("echo raw-$((2+2))\r")
    window.wait_text("raw-4")
    sent = ["echo from-line-$((1+1))", "sleep 1000", "echo raw-$((2+2))"]
    until(lambda: commands(daemon, name) == sent, "all are recorded")
    window.check()


@on_both
def test_a_waiting_program_is_answered_and_a_secret_is_masked(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, form: dict[str, Any]
) -> None:
    name = new_terminal().name
    window = opened_at(browser, daemon, name, form)
    asks = "read -p 'Name: ' name; read -sp 'Word: ' word; echo; echo got-$name-${#word}"
    daemon.call("term_run", name=name, cmd=asks, until="started")
    answer = window.page.get_by_label("Answer to bash")
    answer.fill("ada")
    answer.press("Enter")
    secret = window.page.get_by_label("Password for bash")
    expect(secret).to_have_attribute("type", "password")
    secret.fill("hunter2")
    window.page.get_by_role("button", name="Send").click()
    window.wait_text("got-ada-7")
    assert "hunter2" not in window.text()
    stored = window.page.evaluate("JSON.stringify({ ...localStorage, ...sessionStorage })")
    assert "hunter2" not in stored
    window.check()


def test_the_rest_of_a_password_that_another_client_gave_goes_nowhere(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    name = new_terminal().name
    window = opened_at(browser, daemon, name)
    page = window.page
    daemon.call("term_run", name=name, cmd="read -sp 'Word: ' word; echo", until="started")
    secret = page.get_by_label("Password for bash")
    secret.focus()
    page.keyboard.type("half")
    where = page.url
    daemon.call("term_keys", name=name, keys="other\r")
    expect(page.get_by_text("bash no longer waits: this was not sent")).to_be_visible()
    page.keyboard.type("secret")
    expect(secret).to_have_value("halfsecret")
    page.keyboard.press("Enter")
    line = page.get_by_label("Run a command")
    expect(line).to_be_visible()
    # A pause ends this, and by this clock there is none: a busy machine may type slowly.
    page.evaluate("() => { const now = performance.now(); performance.now = () => now; }")
    page.keyboard.type("secret again\n")  # as sudo asks, a while after a wrong one
    page.evaluate("delete performance.now")
    expect(line).to_have_value("")
    expect(line).not_to_be_focused()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url == where
    assert "ecret" not in page.evaluate("JSON.stringify({ ...localStorage, ...sessionStorage })")
    assert len(commands(daemon, name)) == 1
    daemon.call("term_run", name=name, cmd="read -p 'Name: ' name", until="started")
    answer = page.get_by_label("Answer to bash")
    answer.focus()
    page.keyboard.type("ann\n")
    expect(line).to_be_focused()  # once the command has ended
    page.keyboard.type("draft")
    expect(line).to_have_value("draft")
    page.go_back()
    expect(line).to_have_count(0)
    page.keyboard.press("i")  # the person has left the box
    window.wait("location.hash === '#/inbox'")
    window.check()


@on_both
def test_a_signal_is_sent_and_the_size_is_set(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, form: dict[str, Any]
) -> None:
    name = new_terminal().name
    window = opened_at(browser, daemon, name, form)
    live = "name => app.store.terminals.value.get(name)?.running?.cmd"
    daemon.call("term_run", name=name, cmd="trap '' INT; sleep 1000", until="started")
    window.wait(live, name)
    choose(window, name, "Send a signal")
    box = dialog(window, "Send a signal")
    expect(box).to_contain_text("sleep 1000")
    box.get_by_label("Kill").check()
    press(box, "Send")
    until(lambda: [each["exit"] for each in records(daemon, name)] == [137], "it was killed")

    # Nothing that began while the dialog is open gets the signal.
    window.wait(f"name => !({live})(name)", name)
    choose(window, name, "Send a signal")
    expect(box).to_contain_text("Nothing runs")
    daemon.call("term_run", name=name, cmd="sleep 1001", until="started")
    window.wait(f"name => ({live})(name) === 'sleep 1001'", name)
    press(box, "Send")
    expect(box.get_by_role("alert")).to_contain_text("sleep 1001 has begun")
    window.page.keyboard.press("Escape")
    choose(window, name, "Send a signal")
    expect(box).to_contain_text("sleep 1001")
    daemon.call("term_signal", name=name, signal="TERM")
    window.wait(f"name => !({live})(name)", name)
    daemon.call("term_run", name=name, cmd="sleep 1002", until="started")
    window.wait(f"name => ({live})(name) === 'sleep 1002'", name)
    expect(box).to_contain_text("sleep 1001")
    press(box, "Send")
    expect(box.get_by_role("alert")).to_be_visible()
    assert (info(daemon, name) or {})["running"]["cmd"] == "sleep 1002"
    daemon.call("term_signal", name=name, signal="TERM")
    window.page.keyboard.press("Escape")
    window.wait("app.current.owner?.yours")
    choose(window, name, "Set the size")
    box = dialog(window, "Size")
    box.get_by_label("Columns").fill("61")
    box.get_by_label("Rows").fill("13")
    press(box, "Set the size")

    def size() -> tuple[int, int]:
        now = info(daemon, name) or {}
        return now["cols"], now["rows"]

    until(lambda: size() == (61, 13), "the size is set")
    choose(window, name, "Set the size")
    press(box, "Fit to this window")
    until(lambda: size() != (61, 13), "the size is that of the window")
    window.check()


@on_both
def test_the_whole_history_is_read_and_searched(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, form: dict[str, Any]
) -> None:
    terminal = new_terminal()
    terminal.run("echo Needle-in-the-first")
    terminal.run("for i in $(seq 9000); do echo filler $i; done; echo needle-after-it")
    for number in range(70):
        terminal.run(f"echo part {number}")
    window = opened_at(browser, daemon, terminal.name, form)
    choose(window, terminal.name, "History")
    history = window.page.get_by_role("region", name=f"History of {terminal.name}")
    expect(history.locator(".entry")).to_have_count(30)
    expect(history).to_contain_text("part 69")
    expect(history.get_by_role("button", name="Earlier")).to_be_attached()
    history.evaluate("each => each.scrollTo(0, 0)")
    expect(history.locator(".entry").nth(59)).to_be_attached()
    choose(window, terminal.name, "Find in output")
    bar = window.page.get_by_role("search", name="Find in output")
    found = bar.get_by_role("status")
    box = bar.get_by_label("Find in output")
    match_case = bar.get_by_role("button", name="Match case")
    place = match_case.bounding_box()
    box.fill("needle")
    # The two commands and the two lines; the second is cut out of its record.
    expect(found).to_have_text("4 in 2 commands")
    expect(history.locator(".hit")).to_have_count(4)
    # Else somebody who presses it while the search goes on misses it.
    assert match_case.bounding_box() == place
    match_case.click()
    expect(found).to_have_text("2 in 1 command")
    match_case.click()
    bar.get_by_role("button", name="Regular expression").click()
    box.fill("filler [0-9]*77$")
    expect(found).to_contain_text("90 in 1 command")
    bar.get_by_role("button", name="Next match").click()
    expect(found).to_contain_text("1 of 90")
    bar.get_by_role("button", name="Previous match").click()
    expect(found).to_contain_text("90 of 90")
    box.fill("filler [")
    expect(found).to_have_text("not a regular expression")
    bar.get_by_role("button", name="Close the search").click()
    window.page.get_by_role("button", name="Back to the screen").click()
    expect(history).to_have_count(0)
    window.check()


def test_find_in_the_screen_counts_and_steps(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    terminal.run("for i in 1 2 3; do echo Fox $i; echo fox; done")
    window = opened_at(browser, daemon, terminal.name)
    window.wait_size()  # another one begins the search anew
    window.page.get_by_label(f"Terminal {terminal.name}").click()
    window.page.keyboard.press("Control+Shift+F")
    bar = window.page.get_by_role("search", name="Find in output")
    bar.get_by_label("Find in output").fill("fox")
    found = bar.get_by_role("status")
    expect(found).to_contain_text("of 8")  # two in the command
    before = found.inner_text()
    bar.get_by_role("button", name="Next match").click()
    expect(found).not_to_have_text(before)
    bar.get_by_role("button", name="Match case").click()
    expect(found).to_contain_text("of 4")
    window.page.keyboard.press("Escape")
    bar.get_by_label("Find in output").press("Escape")
    expect(bar).to_have_count(0)
    window.check()


@on_both
def test_a_whole_output_is_copied_and_a_command_is_run_again(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, form: dict[str, Any]
) -> None:
    terminal = new_terminal()
    terminal.run("seq 30000")
    terminal.run("false")
    window = opened_at(browser, daemon, terminal.name, form)
    listed = show_commands(window, terminal.name)
    listed.get_by_role("button", name="seq 30000").click()
    listed.get_by_role("button", name="Copy output").click()
    expect(window.page.get_by_text("Copied.")).to_be_visible()
    wanted = "\n".join(str(number) for number in range(1, 30001))
    assert window.page.evaluate(COPIED).replace("\r", "").strip() == wanted
    listed.get_by_role("button", name="false").click()
    listed.get_by_role("button", name="Run again").click()
    until(lambda: commands(daemon, terminal.name) == ["seq 30000", "false", "false"], "run again")
    expect(listed.get_by_role("listitem").filter(has_text="false")).not_to_have_count(0)
    if form is DESK:
        window.wait_size()  # another one ends a selection
        window.page.evaluate(
            "Object.defineProperty(navigator, 'clipboard', { value: undefined });"
            "app.current.term.focus(); app.current.term.selectAll()"
        )
        window.page.keyboard.press("Control+Shift+c")
        text = dialog(window, "Copy it by hand").get_by_label("Text to copy")
        expect(text).to_have_value(re.compile("29999"))
        expect(text).to_be_focused()
    window.check()


def test_a_long_command_is_shown_and_run_again_as_a_whole(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = opened_at(browser, daemon, terminal.name)
    expect(window.page.get_by_text("No command has run here yet.")).to_be_visible()
    command = f": {'x' * 5000}; echo end-$((1+1))"
    daemon.call("term_run", name=terminal.name, cmd=command)
    window.wait_text("end-2")
    listed = show_commands(window, terminal.name)
    listed.locator(".cmd").click()
    expect(listed.locator(".whole")).to_have_text(command)
    listed.get_by_role("button", name="Run again").click()
    until(lambda: commands(daemon, terminal.name) == [command, command], "run again")
    window.page.get_by_label("Run a command").press("ArrowUp")
    expect(window.page.get_by_label("Run a command")).to_have_value(command)
    window.check()


def test_commands_of_a_deleted_terminal_are_not_those_of_the_next_one_of_its_name(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    name = new_terminal().name

    def begin_anew(*sent: str) -> None:
        daemon.call("term_close", name=name, purge=True)
        daemon.call("term_spawn", name=name)
        for each in sent:
            daemon.call("term_run", name=name, cmd=each)

    for number in range(3):
        daemon.call("term_run", name=name, cmd=f"echo deleted {number}")
    window = opened_at(browser, daemon, name)
    rows = window.page.locator(".block .cut")
    expect(rows).to_have_count(3)
    choose(window, name, "History")
    history = window.page.get_by_role("region", name=f"History of {name}")
    expect(history.locator(".entry-cmd")).to_have_count(3)
    begin_anew("echo kept")
    expect(rows).to_have_text(["echo kept"])
    expect(history).not_to_contain_text("deleted")
    window.page.get_by_role("button", name="Back to the screen").click()
    window.page.evaluate("app.link.hold()")
    begin_anew("echo next 0", "echo next 1")
    window.page.evaluate("app.link.resume()")
    expect(rows).to_have_text(["echo next 1", "echo next 0"])
    # For a moment the end of the new output is below what the screen had before.
    window.wait_until(
        lambda: "next 1" in (text := window.text()) and "kept" not in text, "the screen is new"
    )
    window.go("/home")
    window.wait("app.current === null")
    begin_anew("echo last")
    window.open_terminal(name)
    expect(rows).to_have_text(["echo last"])
    expect(window.page.get_by_text("while you were away")).to_have_count(0)
    window.go("/home")
    window.wait("app.current === null")
    daemon.call("term_run", name=name, cmd="echo away")
    window.open_terminal(name)
    expect(window.page.get_by_text("1 command while you were away").first).to_be_visible()
    window.check()


def test_a_history_that_cannot_be_read_is_not_said_to_be_all(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    terminal.run("echo needle; seq 30000")
    for number in range(40):
        terminal.run(f"seq {number} 50")
    window = opened_at(browser, daemon, terminal.name)
    choose(window, terminal.name, "History")
    history = window.page.get_by_role("region", name=f"History of {terminal.name}")
    expect(history.locator(".entry")).to_have_count(30)
    window.page.evaluate("app.link.hold()")
    history.get_by_role("button", name="Earlier").click()
    expect(history.get_by_role("alert")).to_contain_text("Not all could be read.")
    choose(window, terminal.name, "Find in output")
    bar = window.page.get_by_role("search", name="Find in output")
    bar.get_by_label("Find in output").fill("needle")
    expect(bar.get_by_role("status")).to_contain_text("so far")
    expect(history.get_by_role("alert")).to_be_visible()
    expect(history).not_to_contain_text("Nothing in the whole history.")
    window.page.evaluate("app.link.resume()")
    window.wait_live()
    history.get_by_role("button", name="Earlier").click()
    expect(bar.get_by_role("status")).to_have_text("2 in 1 command")
    expect(history.get_by_role("alert")).to_have_count(0)
    bar.get_by_label("Find in output").fill("absent")
    expect(history).to_contain_text("Nothing in the whole history.")
    bar.get_by_role("button", name="Close the search").click()
    expect(history).to_contain_text("The beginning.")
    window.check()


def test_failed_commands_are_found_and_an_address_shows_a_command(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    for command in ("false", "true", "seq 300", "(exit 3)", "seq 400"):
        terminal.run(command)
    window = opened_at(browser, daemon, terminal.name)
    window.wait_size()
    window.wait("app.current.marks.byStart.size === 5")
    listed = show_commands(window, terminal.name)
    listed.get_by_role("button", name="Previous failed command").click()
    chosen = listed.locator(".block.chosen")
    expect(chosen).to_contain_text("(exit 3)")
    listed.get_by_role("button", name="Previous failed command").click()
    expect(chosen).to_contain_text("false")
    window.wait("app.current.term.buffer.active.viewportY === 0")
    listed.get_by_role("button", name="Next failed command").click()
    expect(chosen).to_contain_text("(exit 3)")
    listed.get_by_label("Filter commands").fill("seq")
    expect(listed.locator(".block")).to_have_count(2)
    listed.get_by_label("Filter commands").fill("")
    listed.get_by_role("button", name="Failed", exact=True).click()
    expect(listed.locator(".block")).to_have_count(2)
    window.go(f"/t/{terminal.name}?seq=1")
    listed.get_by_role("button", name="Failed", exact=True).click()
    expect(chosen).to_contain_text("true")
    window.check()


def test_commands_of_the_time_away_are_counted(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    terminal.run("echo before")
    window = opened_at(browser, daemon, terminal.name)
    expect(window.page.locator(".block")).to_have_count(1)
    window.go("/home")
    window.wait("app.current === null")
    for number in range(3):
        terminal.run(f"echo away {number}")
    window.open_terminal(terminal.name)
    expect(window.page.get_by_text("3 commands while you were away").first).to_be_visible()
    window.check()


@on_both
def test_people_and_agents_are_subscribed(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, form: dict[str, Any]
) -> None:
    terminal = new_terminal()
    window = opened_at(browser, daemon, terminal.name, form)

    def subscribers() -> list[str]:
        found: list[str] = (info(daemon, terminal.name) or {})["subscribers"]
        return found

    choose(window, terminal.name, "Messages of ended commands")
    box = dialog(window, "Messages of ended commands")
    box.get_by_label("Only commands that match").fill("pytest (")
    press(box, "Subscribe")
    expect(box.get_by_role("alert")).to_be_visible()
    box.get_by_label("Only commands that match").fill("pytest")
    box.get_by_label("Only failures").check()
    press(box, "Subscribe")
    until(lambda: subscribers() == ["human"], "subscribed")
    choose(window, terminal.name, "Messages of ended commands")
    press(box, "Unsubscribe")
    until(lambda: subscribers() == [], "unsubscribed")
    window.check()


@on_both
def test_a_tab_is_renamed_and_a_link_is_shared(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, form: dict[str, Any]
) -> None:
    terminal = new_terminal()
    terminal.run("echo shared-$((1+1))")
    window = opened_at(browser, daemon, terminal.name, form)
    choose(window, terminal.name, "Rename the tab")
    box = dialog(window, "Rename the tab")
    box.get_by_label("Name of the tab").fill("Long build")
    press(box, "Rename")
    expect(window.page.get_by_role("heading", name="Long build")).to_be_visible()
    choose(window, terminal.name, "Share a read-only link")
    box = dialog(window, f"Share Terminal {terminal.name}")
    box.get_by_label("For whom").fill("grace")
    box.get_by_label("Ends after").select_option("1 hour")
    press(box, "Make the link")
    link = dialog(window, f"Link to Terminal {terminal.name}").get_by_label("Address")
    expect(link).to_have_value(re.compile("/#v="))
    guest = open_window(browser, link.input_value(), form)
    guest.wait_terminal()
    guest.wait_text("shared-2")
    expect(guest.page.get_by_label("Run a command")).to_have_count(0)
    guest.check()
    window.check()


@on_both
def test_a_terminal_is_closed_opened_again_and_purged(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, form: dict[str, Any]
) -> None:
    terminal = new_terminal()
    name = terminal.name
    terminal.run("echo kept")
    daemon.call("term_run", name=name, cmd="sleep 1000", until="started")
    window = opened_at(browser, daemon, name, form)
    choose(window, name, "Close the terminal")
    box = dialog(window, f"Close the terminal {name}?")
    expect(box).to_contain_text("sleep 1000")
    press(box, "Close the terminal")
    expect(box).to_have_count(0)
    until(lambda: info(daemon, name) is None, "it is closed")
    window.go(f"/t/{name}")
    expect(window.page.get_by_text("This terminal is closed.")).to_be_visible()
    window.page.get_by_role("button", name="History", exact=True).click()
    expect(window.page.get_by_role("region", name="History of")).to_contain_text("kept")
    window.page.get_by_role("button", name="Open it again").click()
    box = dialog(window, "New terminal")
    expect(box.get_by_label("Name", exact=True)).to_have_value(name)
    press(box, "Open")
    until(lambda: info(daemon, name) is not None, "it is open")
    window.wait("app.current?.stream.channel !== null && app.current.stream.isOver === false")
    assert commands(daemon, name) == ["echo kept", "sleep 1000"]
    choose(window, name, "Close the terminal")
    box = dialog(window, f"Close the terminal {name}?")
    box.get_by_label("Delete its history too").check()
    press(box, "Close and delete")
    expect(box).to_have_count(0)
    until(lambda: info(daemon, name) is None, "it is closed")
    daemon.call("term_spawn", name=name)
    assert daemon.call("term_run", name=name, cmd="true")["seq"] == 0  # nothing is left
    window.check()


@on_both
def test_one_command_is_run_on_several_terminals(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, form: dict[str, Any]
) -> None:
    one, two, three = new_terminal(), new_terminal(), new_terminal()
    daemon.call("term_run", name=three.name, cmd="sleep 1000", until="started")
    two.run("cd /")
    window = log_in(browser, daemon, form)
    if form is PHONE:
        window.go("/more")
        window.page.locator("main").get_by_role("link", name="Run on several terminals").click()
    else:
        window.go("/terminals")
        window.page.get_by_role("button", name="Run on several").click()
    page = window.page.locator("main")
    for each in (one, two, three):
        page.get_by_label(each.name, exact=False).check()
    page.get_by_label("Command", exact=True).fill("pwd; [ $PWD = / ]")
    page.get_by_label("Seconds at most").fill("10")  # one of them waits so long
    page.get_by_role("button", name="Run on 3").click()
    outcomes = page.get_by_role("list", name="Outcomes").locator("> li")
    expect(outcomes).to_have_count(3)
    expect(outcomes.filter(has_text=one.name)).to_contain_text("exit 1")
    expect(outcomes.filter(has_text=two.name)).to_contain_text("exit 0")
    expect(outcomes.filter(has_text=three.name)).to_contain_text("busy")
    assert commands(daemon, one.name) == ["pwd; [ $PWD = / ]"]
    outcomes.filter(has_text=one.name).get_by_role("link").click()
    window.wait("name => app.current?.name === name", one.name)
    window.check()


def test_places_in_files_open_in_the_editor(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal, tmp_path: Path
) -> None:
    terminal = new_terminal(cwd=str(tmp_path))
    terminal.run(LONG_WORDS)
    terminal.run("echo 'src/cart.py:12:3: error'; echo '  File \"/srv/a b.py\", line 7'")
    terminal.run("echo 'https://host/x.py:3 ~/x.go:7 (../z.c(3,4)) /srv/Makefile:5'")
    window = opened_at(browser, daemon, terminal.name)
    choose(window, terminal.name, "History")
    history = window.page.get_by_role("region", name="History of")
    history.get_by_role("button", name="src/cart.py:12:3").last.click()
    expect(window.page.get_by_text("Set your editor")).to_be_visible()
    window.page.evaluate(
        "settings => localStorage.setItem('settings', settings)",
        json.dumps({"editor": "custom", "editorTemplate": "x-editor://open{path}#{line}.{column}"}),
    )
    window.page.reload()
    window.wait_terminal()
    window.page.evaluate(FOLLOWED)
    choose(window, terminal.name, "History")
    places = history.locator(".entry").last.locator("pre button")
    expect(places).to_have_text(["~/x.go:7", "../z.c(3,4", "/srv/Makefile:5"])
    history.get_by_role("button", name="src/cart.py:12:3").last.click()
    history.get_by_role("button", name="/srv/a b.py").last.click()
    wanted = [f"x-editor://open{tmp_path}/src/cart.py#12.3", "x-editor://open/srv/a%20b.py#7.1"]
    window.wait("wanted => JSON.stringify(followed) === JSON.stringify(wanted)", wanted)


def test_text_is_pasted_and_selected_on_a_phone(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = opened_at(browser, daemon, terminal.name, PHONE)
    window.wait("app.current.term.modes.bracketedPasteMode")  # of the prompt
    window.page.evaluate("navigator.clipboard.writeText('echo one-$((1+0))\\necho two-$((1+1))')")
    window.page.get_by_role("button", name="Paste", exact=True).tap()
    window.wait_text("echo two-")
    assert records(daemon, terminal.name) == []  # a paste of several lines is not run by itself
    window.type("\r")
    window.wait_text("two-2")
    choose(window, terminal.name, "Select text")
    box = dialog(window, "Select text")
    expect(box.locator("pre")).to_contain_text("two-2")
    box.get_by_role("button", name="Copy all").click()
    window.wait_until(lambda: "two-2" in window.page.evaluate(COPIED), "it is copied")
    window.check()


def test_many_bells_are_few_notices(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    window = opened_at(browser, daemon, terminal.name)
    terminal.run("for each in 1 2 3 4 5 6 7 8; do printf '\\a'; sleep 0.2; done")
    expect(window.page.locator(".said", has_text=terminal.name)).to_have_count(1)
    window.check()


@on_both
def test_a_workspace_is_created_used_and_deleted(
    daemon: DaemonProcess, browser: Browser, form: dict[str, Any]
) -> None:
    name = f"bench-{form['viewport']['width']}"
    (daemon.root / name).mkdir()
    window = log_in(browser, daemon, form, permissions=CLIPBOARD)
    window.go("/workspaces")
    page = window.page
    page.get_by_role("button", name="New workspace").first.click()
    box = dialog(window, "New workspace")
    box.get_by_label("Name of the workspace").fill(name)
    box.get_by_label("Directory").fill("not-there")
    press(box, "Create")
    expect(box.get_by_role("alert")).to_contain_text("not-there")
    box.get_by_label("Directory").fill(name)
    press(box, "Create")
    page.get_by_role("button", name=f"New shell in {name}").click()
    box = dialog(window, "New terminal")
    box.get_by_label("Name", exact=True).fill("main")
    press(box, "Open")
    window.wait("name => app.current?.name === name && app.current.cursor !== null", f"{name}.main")
    window.type("echo inside-$((1+1))\r")
    window.wait_text("inside-2")
    window.go("/workspaces")
    expect(page.locator("main .shells").get_by_role("link", name="main")).to_be_visible()
    choose(window, name, "Run a command without a terminal")
    box = dialog(window, f"Run in {name}")
    box.get_by_label("Command").fill("pwd; echo wrong >&2; exit 4")
    press(box, "Run")
    expect(box.get_by_role("status")).to_contain_text("exit 4")
    expect(box.get_by_label("Output", exact=True)).to_have_text(str(daemon.root / name))
    expect(box.get_by_label("Standard error")).to_have_text("wrong")
    page.keyboard.press("Escape")
    choose(window, name, "Delete the workspace")
    box = dialog(window, f"Delete the workspace {name}?")
    expect(box).to_contain_text("1 shell")
    box.get_by_label("Delete the history").check()
    press(box, "Delete")
    expect(page.get_by_role("button", name=f"New shell in {name}")).to_have_count(0)
    assert [each["workspace_id"] for each in daemon.call("workspace_list")["result"]] == []
    window.check()


def test_two_terminals_are_side_by_side_and_the_palette_acts_on_the_active_one(
    daemon: DaemonProcess, browser: Browser, new_terminal: NewTerminal
) -> None:
    one, two = new_terminal(), new_terminal()
    window = log_in(browser, daemon)
    window.go(f"/t/{one.name}+t/{two.name}")
    window.wait("name => app.current?.name === name && app.current.cursor !== null", one.name)
    window.page.get_by_label(f"Terminal {two.name}").click()
    window.wait("name => app.current?.name === name && app.current.cursor !== null", two.name)
    window.page.keyboard.type("sleep 1000\n")
    until(lambda: (info(daemon, two.name) or {})["state"] == "running", "it was typed there")
    assert commands(daemon, one.name) == []
    window.page.keyboard.press("Control+Shift+K")
    window.page.get_by_role("combobox", name="Go to or do").fill(f"interrupt {two.name}")
    window.page.get_by_role("option", name=f"Interrupt: {two.name}").click()
    until(lambda: (info(daemon, two.name) or {})["state"] == "idle", "it was interrupted")
    window.page.keyboard.press("Control+k")  # a key of the program, inside of a terminal
    window.page.reload()
    window.wait("name => app.current?.name === name", one.name)
    expect(window.page.locator(".xterm")).to_have_count(2)
    window.check()
