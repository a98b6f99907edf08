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
PHONE_PX = 700
"""Narrower windows have the bar of a phone, and no rail."""

DARK = {"color_scheme": "dark"}
NARROW = {**PHONE, "viewport": {"width": 390, "height": 844}}
ZOOMED = {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2}
"""A window of 1280 by 800 pixels at 200 %."""
BIG = {"viewport": {"width": 1440, "height": 900}}
LOW = {"viewport": {"width": 1280, "height": 640}}
COMMANDS = (
    "ls --color=always /usr",
    "echo '214 passed in 3.1 s'",
    "grep -c model name /proc/cpuinfo",
)
PAGES = (
    *("home", "inbox", "inboxes", "queues", "canvases", "workflows", "groups", "agents"),
    *("terminals", "answered", "workspaces", "worktrees", "broadcast", "cost", "day", "history"),
    *("access", "settings", "tree", "more", "changes/grace", "nothing"),
)
DIALOGS = (
    *("Launch an agent", "New terminal", "New group", "Run a workflow", "Keys of the page"),
    *("Write a message", "New read-only link", "New address for an agent", "About"),
    *("Join another host", "Stop the daemon"),
)


@attrs.frozen
class Scene:
    """A daemon with something of everything, and the places of the page that show it."""

    studio: Studio
    places: dict[str, str]

    @property
    def views(self) -> list[str]:
        """Each address once, without its first slash."""
        found = [place.removeprefix("/") for place in self.places.values()]
        return list(dict.fromkeys([*PAGES, *found]))


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    # The pictures show the path of the root.
    with TemporaryDirectory(prefix="shop-") as directory, studio_at(Path(directory)) as studio:
        yield Scene(studio, studio.furnish())


def show(window: Window, place: str) -> None:
    """Show a place, and wait until it is filled."""
    window.go(f"/{place}")
    window.wait("place => location.hash === `#/${place}`", place)
    window.page.wait_for_selector(".pane > *")
    window.wait("!document.querySelector('.pane .wait')")
    window.page.wait_for_timeout(200)  # lists that are read come a moment later


def ask(window: Window, text: str) -> None:
    """Do an action of the palette."""
    if (window.page.viewport_size or {"width": 0})["width"] < PHONE_PX:
        show(window, "more")
        window.page.get_by_role("button", name="Go to or do").click()
    else:
        window.page.keyboard.press("Control+k")
    palette = window.page.get_by_role("dialog", name="Go to or do")
    palette.get_by_role("combobox").fill(text)
    expect(palette.get_by_role("option").first).to_contain_text(text)
    palette.get_by_role("combobox").press("Enter")


AXE = """async () => (await axe.run(document, { resultTypes: ['violations'] })).violations
.map(each => [each.id, each.nodes.slice(0, 3).map(node => node.html.slice(0, 200))])"""
WIDE = """[...document.querySelectorAll('html, main, .pane, .page')]
.filter(each => each.scrollWidth > each.clientWidth + 1)
.map(each => [each.className || each.tagName, each.scrollWidth, each.clientWidth])"""


def wrong(window: Window, name: str, *, by_axe: bool = True) -> list[str]:
    """Return what axe finds, and what is wider than the window."""
    found = [*window.page.evaluate(WIDE), *(window.page.evaluate(AXE) if by_axe else [])]
    return [f"{name}: {each}" for each in found]


FORMS = pytest.mark.parametrize(
    ("form", "options"),
    [(DESK, {}), (DESK, DARK), (NARROW, {}), (NARROW, DARK)],
    ids=["desk-light", "desk-dark", "phone-light", "phone-dark"],
)


@FORMS
def test_axe_finds_nothing_and_everything_fits(
    scene: Scene, browser: Browser, tmp_path: Path, form: dict[str, Any], options: dict[str, Any]
) -> None:
    window = log_in(browser, scene.studio.daemon, form, **options)
    window.page.evaluate(axe_source(tmp_path))
    found: list[str] = []
    for place in (*scene.views, "a/ada+t/build"):
        show(window, place)
        found += wrong(window, place)
    show(window, "home")
    for text in DIALOGS:
        ask(window, text)
        dialog = window.page.get_by_role("dialog")
        expect(dialog).to_have_count(1)
        expect(dialog.get_by_role("heading").first).to_be_visible()
        found += wrong(window, text)
        window.page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
    assert not found, "\n".join(found)
    window.check()


def test_everything_fits_at_twice_the_size(scene: Scene, browser: Browser) -> None:
    window = log_in(browser, scene.studio.daemon, ZOOMED)
    found: list[str] = []
    for place in scene.views:
        show(window, place)
        found += wrong(window, place, by_axe=False)
    assert not found, "\n".join(found)
    window.check()


def test_the_keyboard_alone_reaches_every_view(scene: Scene, browser: Browser) -> None:
    window = log_in(browser, scene.studio.daemon)
    page = window.page
    window.wait_lists()
    words = {
        "terminal": "build terminal",
        "agent": "grace agent",
        "queue": "builds queue",
        "group": "reviewers group",
        "workflow": "release run",
        "canvas": "plan canvas",
        "inbox": "ada inbox",
    }
    for name, typed in words.items():
        # Inside a terminal all keys but a few are its program's.
        page.keyboard.press("Control+Shift+P")
        page.get_by_role("combobox", name="Go to or do").press_sequentially(typed)
        page.keyboard.press("Enter")
        window.wait("place => location.hash === `#${place}`", scene.places[name])
        expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Control+Shift+O")
    window.wait("location.hash === '#/home'")
    page.evaluate("document.getElementById('main').focus()")
    for key, place in (("i", "inbox"), (",", "settings"), ("h", "home")):
        page.keyboard.press(key)
        window.wait("place => location.hash === `#/${place}`", place)
    window.check()


def test_each_control_has_the_focus_of_tab_in_turn(scene: Scene, browser: Browser) -> None:
    """No view keeps the focus, and none has a control that Tab does not reach."""
    window = log_in(browser, scene.studio.daemon)
    for place in ("settings", "access", "history", "cost", "day", "tree", "home"):
        show(window, place)
        window.page.evaluate("document.querySelector('.skip').focus()")
        wanted = """() => [...document.querySelector('.pane')
        .querySelectorAll('a[href], button, input, select')]
        .filter(each => each.tabIndex >= 0 && !each.disabled && each.checkVisibility()).length"""
        seen = set()
        for _ in range(220):
            window.page.keyboard.press("Tab")
            at = """() => { const all = [...document.querySelectorAll('.pane *')];
            return all.indexOf(document.activeElement); }"""
            seen.add(window.page.evaluate(at))
            if len(seen - {-1}) >= window.page.evaluate(wanted):
                break
        assert len(seen - {-1}) >= window.page.evaluate(wanted), place
    window.check()


def test_the_pictures_are_made(scene: Scene, browser: Browser, tmp_path: Path) -> None:
    """Into the documentation where AEGIS_PICTURES says so (``just pictures``)."""
    directory = IMAGES if os.environ.get("AEGIS_PICTURES") else tmp_path
    daemon = scene.studio.daemon
    for command in COMMANDS:
        daemon.call("term_run", name="docs", cmd=command)
    pictures = {}
    for name, place, form, options in (
        ("web-home", "home", BIG, {}),
        ("web-home-dark", "home", BIG, DARK),
        ("web-terminal", "t/docs", LOW, {}),
        ("web-agent", "a/grace", BIG, DARK),
        ("web-beside", "a/ada+t/build", BIG, {}),
        ("web-canvas", "c/plan", LOW, {}),
        ("web-day", "day", LOW, {}),
        ("web-phone", "t/docs", PHONE, DARK),
        ("web-phone-home", "home", PHONE, {}),
        ("web-palette", "home", LOW, DARK),
    ):
        window = pictures[name] = log_in(browser, daemon, form, **options)
        show(window, place)
        if name == "web-palette":
            window.page.keyboard.press("Control+k")
            window.page.get_by_role("combobox", name="Go to or do").fill("bui")
    for name, window in pictures.items():
        path = directory / f"{name}.png"
        window.page.wait_for_timeout(600)
        window.page.screenshot(path=path)
        assert 8_000 < path.stat().st_size < MAX_PICTURE_BYTES, name
        window.check()
