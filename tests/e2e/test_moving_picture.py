"""The moving picture of the README: recorded in a real tmux, before a real daemon.

``just pictures`` writes it; otherwise the test compares what a run shows now with its frames.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest
from avt import Vt  # type: ignore[attr-defined]

from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.tmux import Tmux

pytestmark = pytest.mark.real

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "one-shell.svg"

COLS, ROWS = 100, 21
LEFT, RIGHT = 0, 1
"""The panes: a person's, and an agent's."""

KEY_S, READ_S, LAST_S = 0.06, 1.6, 4.0
"""How long a typed key, a result, and the last frame are shown."""

CELL_W, CELL_H, FONT = 8.4, 18, 14
COLOURS = ("#6b7280", "#f87171", "#4ade80", "#facc15", "#60a5fa", "#c084fc", "#22d3ee", "#e5e7eb")
BACKGROUND, FOREGROUND = "#14161b", "#d6dae2"


TESTS = """\
#!/bin/sh
for name in ${*:-total tax shipping}; do
    sleep 0.3
    case $name in
    discount) echo "FAILED discount: 190 is not 180"; exit 1 ;;
    *) echo "ok     $name" ;;
    esac
done
echo passed
"""


class Frame(NamedTuple):
    """What the window shows for so many seconds: its rows, as markup and as text."""

    rows: tuple[str, ...]
    text: str
    seconds: float


class Film:
    """A window of two panes; what is typed there is recorded key by key."""

    def __init__(self, window: Tmux) -> None:
        self.window = window
        self.frames: list[Frame] = []

    def types(self, pane: int, line: str, *, until: str, is_last: bool = False) -> None:
        """Type a line, press Enter, and wait for a text that it prints, as ``waits`` does."""
        self.waits(pane, "$", is_last=True)
        for at in range(0, len(line), 2):
            self.window.do("send-keys", "-t", f"{pane}", "-l", "--", line[at : at + 2])
            self.waits(pane, line[: at + 2])
            self.shows(KEY_S * 2)
        self.window.do("send-keys", "-t", f"{pane}", "Enter")
        self.waits(pane, until, is_last=is_last)
        self.shows(READ_S)

    def waits(self, pane: int, text: str, *, is_last: bool = False) -> None:
        """Wait until a pane shows the text, lines joined; ``is_last``: as its last line."""
        deadline = time.monotonic() + GUARD_S
        while True:
            shown = self.window.do("capture-pane", "-p", "-J", "-t", f"{pane}")
            lines = [line.strip() for line in shown.strip().splitlines()]
            if (lines[-1:] == [text]) if is_last else (text in shown):
                return
            assert time.monotonic() < deadline, f"{text!r} is not in\n{shown}"
            time.sleep(0.02)

    def shows(self, seconds: float) -> None:
        """Record what both panes show, for so many seconds."""
        sides = [self.side(pane) for pane in (LEFT, RIGHT)]
        rows = tuple(f"{left}\n{right}" for left, right in zip(*sides, strict=True))
        text = "\n".join(re.sub(r"<[^>]*>", "", row) for row in rows)
        self.frames.append(Frame(rows, text, seconds))

    def side(self, pane: int) -> list[str]:
        """Return the rows of a pane as markup."""
        shown = self.window.do("capture-pane", "-e", "-p", "-t", f"{pane}")
        screen = Vt(COLS // 2, ROWS, 0)
        screen.feed_str("\r\n".join(shown.rstrip("\n").split("\n")))
        indent = pane * (COLS // 2 + 1)
        return [markup(line, indent) for line in screen.lines()]


def markup(line: Any, indent: int) -> str:
    """Return a line of the emulator as SVG, in its colours."""
    found, col = "", indent
    for chunk in line.chunks(lambda one, other: one.pen != other.pen):
        text = "".join(cell.char for cell in chunk).rstrip()
        if text.strip():
            blank = len(text) - len(text.lstrip())
            x = f"{(col + blank) * CELL_W:.1f}".removesuffix(".0")
            found += f'<text x="{x}"{style(chunk[0].pen)}>{escape(text.strip())}</text>'
        col += len(chunk)
    return found


def style(pen: Any) -> str:
    """Return the attributes of a text in this pen."""
    number = None if pen.foreground is None else pen.foreground._0
    parts = [] if number is None else [f' fill="{COLOURS[number % 8]}"']
    return "".join([*parts, *([' font-weight="bold"'] if pen.bold else [])])


def svg(frames: list[Frame], titles: tuple[str, str]) -> str:
    """Return the frames as an SVG that plays by CSS alone, again and again."""
    width, height = (COLS + 3) * CELL_W, (ROWS + 3) * CELL_H
    numbers: dict[str, int] = {}
    shown, rules, begin, total = [], [], 0.0, sum(frame.seconds for frame in frames)
    for at, frame in enumerate(frames):
        uses = [
            f'<use href="#r{numbers.setdefault(row, len(numbers))}" y="{number * CELL_H}"/>'
            for number, row in enumerate(frame.rows)
            if row.strip()
        ]
        end = begin + frame.seconds
        first, last = f"{100 * begin / total:.3f}%", f"{100 * end / total:.3f}%"
        # Without animation (a print, a reader who wants no motion) the last frame is seen.
        steps = [*(["0%{visibility:hidden}"] if at else []), f"{first}{{visibility:visible}}"]
        if at < len(frames) - 1:
            steps.append(f"{last},100%{{visibility:hidden}}")
        rules.append(f"@keyframes k{at}{{{''.join(steps)}}}")
        rules.append(f".f{at}{{animation:k{at} {total:.2f}s step-end infinite}}")
        still = "" if at < len(frames) - 1 else ' style="visibility:visible"'
        shown.append(f'<g class="f f{at}"{still}>{"".join(uses)}</g>')
        begin = end
    rows = [f'<g id="r{number}">{row}</g>' for row, number in numbers.items()]
    middle = (COLS // 2 + 1.5) * CELL_W
    heads = [
        f'<text x="{x:.0f}" y="{CELL_H * 1.2:.0f}" fill="{COLOURS[4]}">{escape(title)}</text>'
        for x, title in zip((CELL_W, middle + CELL_W / 2), titles, strict=True)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
            f'width="{width:.0f}" height="{height}" role="img" '
            'aria-label="An agent runs tests on a terminal that a person watches, and is woken by '
            'the command that the person runs">',
            "<style>.f{visibility:hidden}text{white-space:pre}",
            *rules,
            "@media (prefers-reduced-motion:reduce){.f{animation:none!important}}</style>",
            f"<defs>{''.join(rows)}</defs>".replace("\n", ""),
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
            f'<path d="M{middle - CELL_W / 2:.0f} 0V{height}" stroke="#2c313a"/>',
            '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" '
            f'font-size="{FONT}" fill="{FOREGROUND}" xml:space="preserve">',
            *heads,
            f'<g transform="translate({CELL_W:.1f} {CELL_H * 2.6:.0f})">',
            *shown,
            "</g></g></svg>\n",
        ]
    )


@pytest.fixture
def film(own_daemon: DaemonProcess, tmp_path: Path) -> Iterator[Film]:
    """The window, with a project in its directory and a daemon that serves it."""
    script = own_daemon.root / "test"
    script.write_text(TESTS)
    script.chmod(0o755)
    own_daemon.start()
    for name in ("you", "pm"):
        (own_daemon.home / name).write_text(
            f"PS1='\\[\\e[3{2 + 2 * (name == 'pm')}m\\]$ \\[\\e[0m\\]'\n"
        )
    shells = [f"bash --rcfile {own_daemon.home / name} -i" for name in ("you", "pm")]
    window = Tmux(
        tmp_path / "tmux",
        shells[LEFT],
        environment=own_daemon.environment,
        directory=own_daemon.root,
        cols=COLS + 1,
        rows=ROWS,
    )
    try:
        window.do("set", "-g", "status", "off")
        window.do(
            "split-window",
            "-h",
            "-c",
            str(own_daemon.root),
            shlex.join(["sh", "-c", shells[RIGHT]]),
        )
        filming = Film(window)
        for pane in (LEFT, RIGHT):
            filming.waits(pane, "$")
        yield filming
    finally:
        window.close()


def plain(text: str) -> str:
    """A frame's text without what differs from run to run."""
    for pattern, instead in (
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
        (r"\d+\.\d+s", "0.0s"),
        (r"/tmp/\S*|…\S+", "PATH"),
        (r"term:build/\S+", "ID"),
        (r"/bash +\d+", "/bash PID"),
    ):
        text = re.sub(pattern, instead, text)
    return re.sub(r"\s+", " ", text)


@pytest.mark.long
@pytest.mark.skipif(which("tmux") is None, reason="tmux is not installed")
def test_the_moving_picture_shows_what_a_run_shows(film: Film) -> None:
    film.types(LEFT, "aegis-actors term spawn build", until="idle")
    film.types(LEFT, "aegis-actors term attach build", until="$", is_last=True)
    film.types(RIGHT, "aegis-actors --as pm term run build ./test", until="↳ exit 0")
    film.types(RIGHT, "aegis-actors --as pm term subscribe build", until="subscribers: pm")
    film.types(RIGHT, "aegis-actors --as pm inbox wait", until="inbox wait")
    film.types(LEFT, "./test discount", until="FAILED")
    film.waits(RIGHT, "exit 1")
    for pane in (LEFT, RIGHT):
        film.waits(pane, "$", is_last=True)
    film.shows(LAST_S)
    titles = ("you, attached to the terminal build", "an agent, by its commands")
    made = svg(film.frames, titles)
    if os.environ.get("AEGIS_PICTURES"):
        PICTURE.write_text(made, "utf-8")
    stored = ET.fromstring(PICTURE.read_text("utf-8"))
    assert plain(text_of_last_frame(stored)) == plain(text_of_last_frame(ET.fromstring(made))), (
        "look at it, then: just pictures"
    )


def text_of_last_frame(picture: ET.Element) -> str:
    space = "{http://www.w3.org/2000/svg}"
    rows = {f"#{each.get('id')}": each for each in picture.iter(f"{space}g") if each.get("id")}
    last = [
        each for each in picture.iter(f"{space}g") if (each.get("class") or "").startswith("f ")
    ]
    return "\n".join(
        " ".join(rows[use.get("href") or ""].itertext()) for use in last[-1].iter(f"{space}use")
    )


def test_the_moving_picture_plays_where_no_script_may_run() -> None:
    text = PICTURE.read_text("utf-8")
    assert len(text) < 200_000
    ET.fromstring(text)
    assert "@keyframes" in text
    assert "prefers-reduced-motion" in text
    for forbidden in ("<script", "foreignObject", "http://", "https://", "url("):
        assert forbidden not in text.replace('xmlns="http://www.w3.org/2000/svg"', ""), forbidden
