"""``aegis-actors web``: what the browser is started with, and what it gets."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.e2e.harness import DaemonProcess
from tests.web.browser import DESK, needs_chromium, open_window

pytestmark = [pytest.mark.real, pytest.mark.long, needs_chromium]

BROWSER = '#!/bin/sh\nprintf "%s\\n" "$@" >"$0.said"\ntr "\\0" "\\n" </proc/$$/environ >"$0.env"\n'


def test_the_code_is_in_a_private_file_and_in_no_argument(tmp_path: Path, browser: Browser) -> None:
    directory = tmp_path / "odd #1 100%"
    directory.mkdir()
    daemon = DaemonProcess(directory)
    daemon.start()
    program = tmp_path / "browser"
    program.write_text(BROWSER)
    program.chmod(0o755)
    daemon.variables = {"BROWSER": f"{program} %s", "DISPLAY": ":99"}
    shown = daemon.cli("web")
    assert shown.returncode == 0, shown.stderr
    assert "code" not in shown.stdout
    [address] = (tmp_path / "browser.said").read_text().splitlines()
    page = daemon.root / ".aegis" / "state" / "open-web-page.html"
    code = page.read_text().partition("#code=")[2].partition('"')[0]
    assert len(code) > 30
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert code not in address
    assert code not in (tmp_path / "browser.env").read_text()
    window = open_window(browser, address, DESK)  # which is the file: it redirects
    window.wait_live()
    assert window.page.url == f"{daemon.endpoint.url}/"
    window.check()
    window.context.close()
    assert daemon.stop() == 0


def test_without_a_browser_the_address_is_printed(daemon: DaemonProcess, browser: Browser) -> None:
    shown: subprocess.CompletedProcess[str] = daemon.cli("web", "--print")
    window = open_window(browser, shown.stdout.strip())
    window.wait_live()
    window.check()


def test_an_address_that_is_cut_inside_of_a_character_says_that_nothing_has_this_name(
    daemon: DaemonProcess, browser: Browser
) -> None:
    window = open_window(browser, daemon.cli("web", "--print").stdout.strip())
    window.wait_live()
    # The page is loaded at this address, and goes there from another one.
    window.go("/t/%E0%A4%A")
    window.page.reload()
    window.wait_live()
    window.page.get_by_text("%E0%A4%A").first.wait_for()
    window.go("/access")
    window.page.get_by_role("heading", name="Access").wait_for()
    window.go("/a/%E0%A4%A")
    window.page.get_by_text("'%E0%A4%A'").first.wait_for()
    window.check()
