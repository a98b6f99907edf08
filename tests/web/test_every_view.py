"""Every view of the page: accessible, by keyboard alone, on a phone, and the pictures of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest
from playwright.sync_api import Browser, expect

from tests.web.axe import axe_source
from tests.web.browser import DESK, PHONE, Window, log_in, needs_chromium
from tests.web.studio import Studio, studio_at

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
MAX_PICTURE_BYTES = 150_000
DARK = {"color_scheme": "dark"}
LOW = {"viewport": {"width": 1280, "height": 560}}
COMMANDS = (
    "ls --color=always /usr",
    "echo '214 passed in 3.1 s'",
    "grep -c model name /proc/cpuinfo",
)


@attrs.frozen
class Scene:
    """A daemon with something of everything, and the places of the page that show it."""

    studio: Studio
    places: dict[str, str]


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    # The pictures show the path of the root.
    with TemporaryDirectory(prefix="shop-") as directory, studio_at(Path(directory)) as studio:
        yield Scene(studio, studio.furnish())


def show(window: Window, place: str) -> None:
    """Show a place, and wait until it is filled."""
    window.go(place)
    window.wait("place => app.shown === `#${place}`", place)
    filled = ".row, .block, .said, .letter, .facts dd, pre:not(:empty)"
    window.page.wait_for_selector(f"main :is({filled})", state="attached")


AXE = """async rules => (await axe.run(document, { resultTypes: ['violations'], ...rules }))
.violations.filter(each => ['serious', 'critical'].includes(each.impact))
.map(each => [each.id, each.nodes.slice(0, 3).map(node => node.html.slice(0, 160))])"""
COLOURS = {"runOnly": ["color-contrast"]}
WIDE = (
    "document.documentElement.scrollWidth > innerWidth || main.scrollWidth > main.clientWidth + 1"
)


@pytest.mark.parametrize(
    ("form", "options", "rules"),
    [(DESK, {}, {}), (DESK, DARK, COLOURS), (PHONE, {}, {"runOnly": ["wcag22aa", "wcag2a"]})],
    ids=["light", "dark", "phone"],
)
def test_axe_finds_nothing_serious_and_everything_fits(
    scene: Scene,
    browser: Browser,
    tmp_path: Path,
    form: dict[str, Any],
    options: dict[str, Any],
    rules: dict[str, Any],
) -> None:
    window = log_in(browser, scene.studio.daemon, form, **options)
    window.page.evaluate(axe_source(tmp_path))
    for name, place in scene.places.items():
        show(window, place)
        assert window.page.evaluate(AXE, rules) == [], name
        assert not window.page.evaluate(WIDE), name
    for opened in ("menu", "help", "newTerminal", "runWorkflow", "openCanvas", "newWorkspace"):
        window.page.evaluate("name => { app[name](); }", opened)
        window.page.wait_for_selector("dialog[open], .pop")
        assert window.page.evaluate(AXE, rules) == [], opened
        window.page.keyboard.press("Escape")
    window.page.evaluate("app.loginPage('log in again')")
    assert window.page.evaluate(AXE, rules) == []
    window.check()


def test_the_keyboard_alone_reaches_and_works_every_view(scene: Scene, browser: Browser) -> None:
    window = log_in(browser, scene.studio.daemon)
    keys = window.page.keyboard
    window.page.wait_for_selector("a.row")
    words = {
        "terminal": "build terminal",
        "agent": "grace agent",
        "queue": "builds queue",
        "group": "reviewers group",
        "workflow": "release workflow",
        "canvas": "plan canvas",
        "own inbox": "your inbox",
    }
    for name, typed in words.items():
        in_terminal = name == "agent"  # the view before it is a terminal, which takes all keys
        keys.press("Control+Shift+P" if in_terminal else "/")
        keys.type(typed)
        keys.press("Enter")
        window.wait("place => app.shown === `#${place}`", scene.places[name])
        window.page.evaluate("app.main.focus()")
    keys.press("g")
    window.wait("app.shown === '#/'")
    focused: set[str] = set()
    for _ in range(120):
        keys.press("Tab")
        focused.add(window.page.evaluate("document.activeElement.getAttribute('href') ?? ''"))
    listed = {"terminal", "agent", "queue", "group", "workflow", "canvas", "own inbox", "access"}
    assert {f"#{scene.places[name]}" for name in listed} <= focused
    window.check()


def test_a_request_is_answered_by_the_keyboard(scene: Scene, browser: Browser) -> None:
    handle = scene.studio.spawn("ASK touch keyboard")
    window = log_in(browser, scene.studio.daemon)
    show(window, f"/a/{handle}")
    expect(window.page.locator(".ask pre")).to_contain_text("touch keyboard")
    window.page.wait_for_timeout(450)  # an answer that has just appeared takes no key
    window.page.get_by_role("log").focus()
    for _ in range(3):
        window.page.keyboard.press("Tab")
        if window.page.evaluate("document.activeElement.textContent") == "Allow once":
            break
    window.page.keyboard.press("Enter")
    expect(window.page.locator(".ask")).to_have_count(0)
    scene.studio.has_outcomes(handle, "completed")
    window.check()


def test_a_page_without_xterm_says_what_to_run(scene: Scene, browser: Browser) -> None:
    window = log_in(browser, scene.studio.daemon)
    window.context.route("**/vendor/*.mjs", lambda route: route.abort())
    window.page.reload()
    window.wait_live()
    window.page.evaluate("main.dataset.missing = 'The files are missing: run this'")
    window.go("/t/build")
    expect(window.page.get_by_text("The files are missing: run this")).to_be_visible()
    assert window.page.evaluate("window.violations") == []


def test_the_pictures_are_made(scene: Scene, browser: Browser, tmp_path: Path) -> None:
    """Into the documentation where AEGIS_PICTURES says so (``just pictures``)."""
    directory = IMAGES if os.environ.get("AEGIS_PICTURES") else tmp_path
    daemon = scene.studio.daemon
    pictures = {}
    for name, form, options in (("web-terminal", DESK, {}), ("web-phone", PHONE, DARK)):
        window = pictures[name] = log_in(browser, daemon, form, **options)
        terminal = name.removeprefix("web-")
        daemon.call("term_spawn", name=terminal)
        window.open_terminal(terminal)
        for command in COMMANDS:
            daemon.call("term_run", name=terminal, cmd=command)
        window.wait("number => document.querySelectorAll('.mark').length === number", len(COMMANDS))
    for name, place, form, options in (
        ("web-overview", "/", DESK, {}),
        ("web-overview-dark", "/", DESK, DARK),
        ("web-agent", "/a/grace", LOW, DARK),
        ("web-canvas", "/c/plan", LOW, {}),
        ("web-phone-requests", "/", PHONE, DARK),
    ):
        window = pictures[name] = log_in(browser, daemon, form, **options)
        show(window, place)
    for name, window in pictures.items():
        path = directory / f"{name}.png"
        window.page.wait_for_timeout(300)
        window.page.screenshot(path=path)
        assert 8_000 < path.stat().st_size < MAX_PICTURE_BYTES, name
        window.check()
