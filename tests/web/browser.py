"""A real browser at a real daemon: the distribution's Chromium, driven by Playwright."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect, sync_playwright

from tests.e2e.harness import GUARD_S, DaemonProcess

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LISTENER = """
window.violations = [];
document.addEventListener('securitypolicyviolation', event => violations.push(
  [event.effectiveDirective, event.blockedURI, event.sample, event.sourceFile].join(' ')));
"""
SETTLE = """async () => {
  const places = () => [...document.querySelectorAll('main li')].map(each => each.offsetTop).join();
  let last = null, since = 0;
  while (last === null || performance.now() - since < 450) {
    const now = places();
    if (now !== last) { last = now; since = performance.now(); }
    await new Promise(resolve => setTimeout(resolve, 20));
  }
}"""
FITS = """() => { const { owner, size, term, fitter } = app.current;
return owner?.yours && term.cols === size.cols && term.rows === size.rows
  && fitter.proposeDimensions().cols >= size.cols; }"""
# A file that the page loads while the connection is cut: it was refused, or reset in the middle.
OF_A_CUT = re.compile(r"net::ERR_(CONNECTION_|EMPTY_RESPONSE)|fetching")
DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {
    "viewport": {"width": 412, "height": 839},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}

# A busy machine takes its time: what never comes fails all the same.
expect.set_options(timeout=GUARD_S * 1000)

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@attrs.define(eq=False)
class Window:
    """One page of one browser profile; ``errors`` are those of its console and its scripts."""

    page: Page
    context: BrowserContext
    origin: str
    errors: list[str] = attrs.field(factory=list)

    def go(self, place: str) -> None:
        """Show a place of the page, ``/t/build``."""
        self.page.evaluate("place => { location.hash = place }", f"#{place}")

    def open_terminal(self, name: str) -> None:
        self.go(f"/t/{name}")
        self.wait("name => app.current?.name === name && app.current.cursor !== null", name)

    def wait_terminal(self) -> None:
        """Wait until the terminal that an address or a link shows has its screen."""
        self.wait("() => globalThis.app?.current?.cursor != null")

    def wait_size(self) -> None:
        """Wait until the terminal that is shown has the size of this window."""
        self.wait(FITS)

    def text(self) -> str:
        """The text of the terminal that is shown, with what has scrolled away."""
        text: str = self.page.evaluate(
            """() => { const all = app.current.term.buffer.active, lines = [];
            for (let i = 0; i < all.length; i++) lines.push(all.getLine(i).translateToString(true));
            return lines.join('\\n'); }"""
        )
        return text

    def wait_text(self, wanted: str) -> None:
        """Wait until the terminal shows this text."""
        self.wait_until(lambda: wanted in self.text(), wanted)

    def wait(self, expression: str, arg: object = None) -> None:
        """Wait until a script returns something true."""
        # Not wait_for_function: it evaluates text inside the page, which the policy forbids.
        self.wait_until(lambda: bool(self.page.evaluate(expression, arg)), expression)

    def wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + GUARD_S
        while True:
            with contextlib.suppress(Error):  # the page may be between two documents
                if is_so():
                    return
            assert time.monotonic() < deadline, f"never came: {what}"
            self.page.wait_for_timeout(50)

    def wait_lists(self) -> None:
        """Wait until the page has read each of its lists: before, the palette lacks rows."""
        self.wait("globalThis.app !== undefined && app.store.loaded.value.size >= 8")

    def allow_silence(self) -> None:
        """Let the connection be silent as long as a test holds it: a ping would end it."""
        self.page.evaluate("app.link.check = () => {}")

    def settle(self) -> None:
        """Wait until no row has moved for as long as one that moved takes no click."""
        self.page.evaluate(SETTLE)

    def type(self, text: str) -> None:
        self.page.evaluate("text => app.current.term.input(text)", text)

    def wait_live(self) -> None:
        self.page.wait_for_selector("#link.up", state="attached")  # a phone shows what is wrong

    def wait_typing(self) -> None:
        """Wait until the terminal that is shown takes keys, after a lost connection."""
        self.wait_live()
        self.wait("app.current.stream.channel !== null")

    def check(self, *, was_cut: bool = False) -> None:
        """Check that the policy was never violated and nothing was reported as an error.

        ``was_cut``: the test has cut the connection, and the browser itself reports what it could
        not load meanwhile.
        """
        assert self.page.evaluate("window.violations") == []
        assert [each for each in self.errors if not (was_cut and OF_A_CUT.search(each))] == []


@contextmanager
def chromium(*more: str) -> Iterator[Browser]:
    # Playwright switches the back/forward cache off, which people's browsers have.
    ignored = ["--disable-back-forward-cache"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*FLAGS, *more], ignore_default_args=ignored
        )
        yield browser
        browser.close()


def address(daemon: DaemonProcess) -> str:
    """A new address that logs a browser in, once."""
    url: str = daemon.call("page_code")["url"]
    return url


def open_window(
    browser: Browser, url: str, form: dict[str, Any] | None = None, **options: Any
) -> Window:
    """Open ``url`` in a browser profile of its own."""
    context = browser.new_context(**(DESK if form is None else form), **options)
    context.set_default_timeout(GUARD_S * 1000)
    page = context.new_page()
    window = Window(page, context, url.partition("/#")[0])
    page.add_init_script(LISTENER)
    page.on("console", lambda said: _note(window, said.type, said.text))
    page.on("pageerror", lambda error: window.errors.append(str(error)))
    page.goto(url)
    return window


def _note(window: Window, kind: str, text: str) -> None:
    # A lost connection is reported by the browser itself, and cannot be caught.
    if kind == "error" and "WebSocket connection to" not in text:
        window.errors.append(text)


def log_in(
    browser: Browser, daemon: DaemonProcess, form: dict[str, Any] | None = None, **options: Any
) -> Window:
    window = open_window(browser, address(daemon), form, **options)
    window.wait_live()
    return window
