"""The palette, the history, the day and the cost: reaching all, and what ran and was said."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.resources.waiting import until
from tests.web.browser import DESK, PHONE, Window, log_in, needs_chromium
from tests.web.studio import Studio

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

RANK = Path(__file__).resolve().parents[2] / "aegis/servers/web/page/rest/rank.js"
BOTH = pytest.mark.parametrize("form", [DESK, PHONE], ids=["desk", "phone"])


def ranked(names: list[str], asked: str, used: dict[str, int] | None = None) -> list[str]:
    """Return the names in the order of the palette, by the page's own function."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    rows = [{"key": name, "text": name, "kind": "Agent"} for name in names]
    arguments = ", ".join(map(json.dumps, (rows, asked, used or {})))
    code = f"import {{ ranked }} from 'data:text/javascript;base64,{_base64(RANK)}';"
    code += f"console.log(JSON.stringify(ranked({arguments}).map(each => each.text)))"
    words = [node, "--input-type=module", "--eval", code]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("re", "release"),
        ("rv1", "reviewer-1"),
        ("g23", "grace-23"),
        ("grace", "grace"),
        ("huy", "careful-huygens"),
        ("ünï", "ünïcode"),
    ],
)
def test_the_best_name_is_first(asked: str, first: str) -> None:
    names = ["careful-huygens", "long-lag-2-3", "reviewer-1", "grace-23", "grace", "release"]
    assert ranked([*names, "ünïcode"], asked)[0] == first


def test_all_words_have_to_fit_and_a_kind_is_a_word_too() -> None:
    names = ["build", "build-docs", "docs"]
    assert ranked(names, "docs build") == ["build-docs"]
    assert set(ranked(names, "agent")) == set(names)
    assert ranked(names, "nothing") == []


def test_what_was_used_lately_is_first_among_equals() -> None:
    names = ["alpha", "beta", "gamma"]
    assert ranked(names, "") == names
    assert ranked(names, "", {"gamma": 2, "beta": 1}) == ["gamma", "beta", "alpha"]


def palette(window: Window) -> Locator:
    return window.page.get_by_role("dialog", name="Go to or do")


def ask(window: Window, text: str) -> Locator:
    """Open the palette, and write into it once it has everything; return its rows."""
    window.wait_lists()
    if window.page.viewport_size == PHONE["viewport"]:
        window.go("/more")
        window.page.get_by_role("button", name="Go to or do").click()
    else:
        # Inside a terminal Ctrl-K is its program's.
        window.page.keyboard.press("Control+Shift+P")
    box = palette(window).get_by_role("combobox", name="Go to or do")
    expect(box).to_be_focused()
    rows = palette(window).get_by_role("option")
    box.fill("theme")
    expect(rows.first).to_contain_text("Theme: ")  # of a part of the page that is loaded later
    box.fill(text)
    return rows


@BOTH
def test_the_palette_goes_to_a_terminal_and_to_a_page(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    name = f"pal-{'phone' if form is PHONE else 'desk'}"
    studio.call("term_spawn", name=name)
    window = log_in(browser, studio.daemon, form)
    expect(ask(window, name).first).to_contain_text(name)
    window.page.keyboard.press("Enter")
    window.wait("name => location.hash === `#/t/${name}`", name)
    expect(palette(window)).to_have_count(0)
    rows = ask(window, "settings")
    rows.filter(has_text="Page").first.click()
    window.wait("location.hash === '#/settings'")
    window.check()


def test_the_palette_opens_beside_and_remembers_what_was_used(
    studio: Studio, browser: Browser
) -> None:
    for name in ("beside-a", "beside-b"):
        studio.call("term_spawn", name=name)
    window = log_in(browser, studio.daemon)
    ask(window, "beside-a")
    window.page.keyboard.press("Enter")
    window.wait("location.hash === '#/t/beside-a'")
    window.go("/home")
    window.wait("location.hash === '#/home'")
    ask(window, "beside-b")
    window.page.keyboard.press("Control+Enter")
    window.wait("location.hash === '#/home+t/beside-b'")
    window.go("/cost")
    window.wait("location.hash === '#/cost'")
    rows = ask(window, "")
    expect(rows.nth(0)).to_contain_text("beside-b")
    expect(rows.nth(1)).to_contain_text("beside-a")
    window.page.keyboard.press("Escape")
    expect(palette(window)).to_have_count(0)
    window.check()


def test_the_palette_does_what_the_page_can_do(studio: Studio, browser: Browser) -> None:
    window = log_in(browser, studio.daemon)
    rows = ask(window, "theme dark")
    expect(rows.first).to_contain_text("Theme: dark")
    window.page.keyboard.press("Enter")
    window.wait("document.documentElement.dataset.theme === 'dark'")
    ask(window, "keys of the page")
    window.page.keyboard.press("Enter")
    dialog = window.page.get_by_role("dialog", name="Keys of the page")
    expect(dialog).to_contain_text("Go to, do or find anything")
    window.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    ask(window, "stop the daemon")
    window.page.keyboard.press("Enter")
    dialog = window.page.get_by_role("dialog", name="Stop the daemon?")
    expect(dialog).to_contain_text("What ends:")
    dialog.get_by_role("button", name="Cancel").click()
    window.check()


def test_the_arrows_go_round_and_a_held_enter_acts_once(studio: Studio, browser: Browser) -> None:
    studio.call("term_spawn", name="round")
    window = log_in(browser, studio.daemon)
    rows = ask(window, "round")
    expect(rows.first).to_have_attribute("aria-selected", "true")
    window.page.keyboard.press("ArrowUp")
    expect(rows.last).to_have_attribute("aria-selected", "true")
    window.page.keyboard.press("ArrowDown")
    expect(rows.first).to_have_attribute("aria-selected", "true")
    box = palette(window).get_by_role("combobox")
    expect(box).to_have_attribute("aria-activedescendant", "found-0")
    window.check()


@BOTH
def test_the_palette_finds_what_ran_and_what_was_said(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    word = f"quokka{'phone' if form is PHONE else 'desk'}"
    studio.call("term_spawn", name=word)
    seq = studio.call("term_run", name=word, cmd=f"echo {word}-ran")["seq"]
    handle = studio.spawn(f"SAY {word}-said")
    studio.has_outcomes(handle, "completed")
    window = log_in(browser, studio.daemon, form)
    rows = ask(window, f"{word}-")
    expect(rows.filter(has_text="Conversation").first).to_be_visible()
    rows.filter(has_text="Command").first.click()
    window.wait("hash => location.hash === hash", f"#/t/{word}?seq={seq}")
    ask(window, f"{word}-said")
    found = palette(window).get_by_role("option", name="Conversation").first
    found.click()
    window.wait("start => location.hash.startsWith(start)", f"#/a/{handle}?seq=")
    window.check()


def test_any_of_many_rows_is_reached_in_three_keys(studio: Studio, browser: Browser) -> None:
    names = [f"{name}-{number}" for name in ("ada", "grace", "job") for number in range(10, 14)]
    for name in names:
        studio.call("term_spawn", name=name)
    window = log_in(browser, studio.daemon)
    ask(window, "")
    box = palette(window).get_by_role("combobox")
    rows = palette(window).get_by_role("option")
    for name in names:
        box.fill(f"{name[0]}{name[-2:]}")
        expect(rows.first).to_contain_text(name)
    window.check()


@BOTH
def test_the_history_is_searched_by_word_kind_and_name_in_pages(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    name = f"many-{'phone' if form is PHONE else 'desk'}"
    studio.call("term_spawn", name=name)
    for number in range(60):
        studio.call("term_run", name=name, cmd=f"true {name} {number}")
    studio.send("human", f"{name} is ready", sender="ada")
    window = log_in(browser, studio.daemon, form)
    window.go("/history")
    page = window.page
    page.get_by_role("searchbox", name="Word").fill(name)
    found = page.get_by_role("list", name="Found").get_by_role("listitem")
    expect(found.first).to_contain_text("is ready")
    expect(found).to_have_count(50)
    expect(found.first.locator("mark")).to_have_text(name)
    page.get_by_role("button", name="Show more").click()
    expect(found).to_have_count(61)
    expect(page.get_by_text("61 found, these are all")).to_be_visible()
    page.get_by_label("Kind").select_option("message")
    expect(found).to_have_count(1)
    page.reload()  # the filters are in the address
    expect(found).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Of", exact=True).fill(name)
    expect(found).to_have_count(50)
    page.get_by_label("From").fill("2001-01-01")
    page.get_by_label("To", exact=True).fill("2001-01-02")
    expect(page.get_by_text("Nothing fits.")).to_be_visible()
    page.get_by_label("From").fill("")
    page.get_by_label("To", exact=True).fill("")
    found.first.get_by_role("link").focus()
    page.keyboard.press("ArrowDown")
    expect(found.nth(1).get_by_role("link")).to_be_focused()
    found.filter(has_text=f"true {name} 59").get_by_role("link").click()
    window.wait("start => location.hash.startsWith(start)", f"#/t/{name}?seq=")
    window.check()


@BOTH
def test_the_day_shows_what_ran_when(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    name = f"lane-{'phone' if form is PHONE else 'desk'}"
    studio.call("term_spawn", name=name)
    studio.call("term_run", name=name, cmd=f"sleep 1; echo {name}")
    studio.call("term_run", name=name, cmd="sleep 1000", until="started")
    window = log_in(browser, studio.daemon, form)
    window.go("/day")
    page = window.page
    timeline = page.get_by_role("list", name="Timeline")
    lane = timeline.locator(".lane-row", has_text=name)
    expect(lane.locator("rect")).to_have_count(2)
    expect(lane.locator("rect.is-works")).to_have_count(1)
    rows = page.get_by_role("region", name="What ran, as a list").get_by_role("row")
    row = rows.filter(has_text=f"sleep 1; echo {name}")
    expect(row).to_contain_text("exit 0")
    expect(row).to_contain_text(re.compile(r"(0\.[5-9]|[1-9]\d*\.\d) s"))
    # What began days ago does not widen the axis; what ends is shown as ended at once.
    window.page.evaluate(
        """name => { const all = app.store.terminals.value, { running } = all.get(name);
        running.started_at = new Date(Date.parse(running.started_at) - 5 * 86400e3).toISOString();
        app.store.terminals.value = new Map(all); }""",
        name,
    )
    expect(lane.locator("rect.is-works title")).to_contain_text(re.compile(r"120 h \d+ min"))
    assert timeline.locator(".axis .ticks span").count() <= 8
    studio.call("term_keys", name=name, keys="\x03")
    expect(lane.locator("rect.is-works")).to_have_count(0)
    expect(lane.locator("rect")).to_have_count(2)
    ended = rows.filter(has_text="sleep 1000").filter(has_text=name)
    expect(ended).to_contain_text("exit 130")
    page.get_by_role("button", name="The day before").click()
    expect(page.get_by_text("Nothing ran on this day.")).to_be_visible()
    window.wait("location.hash.startsWith('#/day?day=')")
    page.get_by_role("button", name="The next day").click()
    window.wait("location.hash === '#/day'")
    row.get_by_role("link").click()
    window.wait("start => location.hash.startsWith(start)", f"#/t/{name}?seq=")
    window.check()


@BOTH
def test_the_cost_by_hour_day_and_agent(
    studio: Studio, browser: Browser, form: dict[str, Any]
) -> None:
    handle = studio.spawn("SAY spent")
    studio.has_outcomes(handle, "completed")
    usage = studio.call("agent_usage", handle=handle)["total"]
    window = log_in(browser, studio.daemon, form)
    window.go("/cost")
    page = window.page
    row = page.get_by_role("region", name="By agent").get_by_role("row", name=handle)
    expect(row).to_contain_text(f"${usage['cost_usd']:.2f}")
    plot = page.locator("svg.bars")
    expect(plot).to_have_accessible_name(re.compile("Cost by hour"))
    for measure in ("Tokens", "Turns", "Time"):
        page.get_by_role("radio", name=measure).click()
        expect(page.get_by_role("region", name=f"{measure}, last 24 hours")).to_be_visible()
    page.get_by_role("radio", name="Turns").click()
    page.get_by_role("radio", name="7 days").click()
    page.get_by_text("As a table").click()
    table = page.get_by_role("region", name="The plot as a table")
    turns = str(studio.call("agent_usage", closed=True)["total"]["turns"])
    until(lambda: turns in table.inner_text(), "all turns are those of today")
    window.check()


def test_limits_and_the_cost_of_today_are_shown(studio: Studio, browser: Browser) -> None:
    handle = studio.spawn("SAY spent")
    studio.has_outcomes(handle, "completed")
    studio.call("agent_set", handle=handle, budget_usd=5)
    window = log_in(browser, studio.daemon)
    rail = window.page.get_by_role("navigation", name="Everything")
    expect(rail.get_by_role("link", name="today")).to_contain_text("$")
    window.go("/cost")
    limits = window.page.get_by_role("region", name="Limits and budgets")
    expect(limits).to_contain_text("of $5.00")
    window.check()
