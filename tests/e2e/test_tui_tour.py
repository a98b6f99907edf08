"""The tour of the documents in a real tmux: its screens are those that the page shows."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from aegis.tui.model.requests import GUARD_S
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import Team
from tests.e2e.test_tui import open_terminal, run, until_answered
from tests.e2e.tmux import Tmux, interface

pytestmark = [
    pytest.mark.real,
    pytest.mark.long,
    pytest.mark.skipif(which("tmux") is None, reason="tmux is not installed"),
]

PAGE = Path(__file__).parents[2] / "docs/tutorials/terminal-interface.md"
UPDATES = "AEGIS_UPDATE_PICTURES" in os.environ

DRAWN_S = 1.0
"""By then all news is drawn, on a machine with nothing else to do."""

PLAIN = (
    (r"\d\d:\d\d:\d\d", "14:03:21"),
    (r"\d{4}-\d\d-\d\dT14:03:21Z", "2026-05-22T14:03:21Z"),
    (r"\b\d+\.\d\d\d?s", "0.02s"),
    (r"(?<![.\d])\d+[sm]( ago|$|\n)", r"2s\1"),
    (r" · \d+[sm] ", " · 2s "),
    (r"(?m) +[\u2581-\u2588]$", ""),  # the scroll bar
    (r"…/\S+ · \d+ · ", "…/srv/shop · 4242 · "),
)
"""What differs from run to run, and what the page has instead."""


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()


def printable(shown: str) -> str:
    """A screen without what differs from run to run."""
    for pattern, instead in PLAIN:
        shown = re.sub(pattern, instead, shown)
    return shown


def plain(shown: str) -> str:
    """The same, with one width of gaps: texts of another length move what is beside them."""
    shown = printable(shown)
    lines = [re.sub(r" {3,}", "   ", line).rstrip() for line in shown.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def check(name: str, window: Tmux) -> None:
    """The window comes to show this screen of the page; with AEGIS_UPDATE_PICTURES it gets it.

    Its parts are drawn one after the other as news comes, so the screen is waited for.
    """
    begin = f"<!-- printed by tests/e2e/test_tui_tour.py: {name} -->\n"
    before, found, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    assert found, name
    old, _, after = rest.partition("<!-- end -->")
    if UPDATES:
        time.sleep(DRAWN_S)
        shown = printable(trimmed(window.screen())).rstrip()
        page = f"{before}{begin}```\n{shown}\n```\n<!-- end -->{after}"
        PAGE.write_text(page, encoding="utf-8")
        return
    wanted = plain(old.strip("`\n"))
    window.waits(
        lambda shown: plain(trimmed(shown)) == wanted,
        f"look at it, then run this test with AEGIS_UPDATE_PICTURES=1; the page has\n{wanted}\n",
    )


def trimmed(screen: str) -> str:
    """A screen without the empty lines in its middle."""
    return re.sub(r"(\n\s*){4,}", "\n\n", screen)


def test_the_tour_is_what_a_window_shows(team: Team, tmp_path: Path) -> None:
    with interface(team.daemon, tmp_path / "tmux", cols=80, rows=24) as window:
        window.shows("Ctrl-E")
        open_terminal(window, "build")
        run(window, "echo 6 passed; (exit 1)")
        window.shows("↳ exit 1", "🔴 term:build")
        run(window, "echo 7 passed")
        window.shows("↳ exit 0", "✅ term:build", "· exit 0")
        check("block", window)
        team.spawn("SAY I look at the branch.\nASK git push\nSAY It is pushed.", handle="ann")
        window.shows("🟡 ann*")
        window.press("F2")
        window.shows("REQUEST 1 of 1", "command: git push", "y allow once")
        check("request", window)
        time.sleep(GUARD_S)
        until_answered(window, team)
        team.has_outcomes("ann", "completed")
        window.press("M-2")
        window.shows("It is pushed.", "turn 1 completed", "⚪ ann · idle")
        window.hides("allowed once")  # the remark has gone
        check("conversation", window)
        window.press("C-q")
        window.shows("left with 0")
