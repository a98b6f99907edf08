"""What the recorded programs work on: a few small files."""

from __future__ import annotations

TESTS = """\
import warnings

import pytest


@pytest.mark.parametrize("number", range(6))
def test_even(number):
    assert number % 2 == 0 or number < 5


def test_words():
    assert "日本".split() == ["日", "本"], "two words"


def test_warns():
    warnings.warn("old", DeprecationWarning)


@pytest.mark.skip(reason="not today")
def test_skipped():
    raise AssertionError


@pytest.mark.xfail
def test_expected():
    raise ValueError("as expected")


def test_prints(capsys):
    print("\\x1b[31mred\\x1b[0m")
    raise KeyError("gone")
"""

DEB_CONTROL = """\
Package: story
Version: 1.0
Architecture: all
Maintainer: Ann <ann@example.org>
Description: a package without files
"""

APT_CONF = """\
Dir::Etc::SourceList "/tmp/h/sources.list";
Dir::Etc::SourceParts "/tmp/h/sources";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
DPkg::Lock::Timeout "60";
Dpkg::Progress-Fancy "1";
"""
"""No source of packages of a machine is asked or named, and its cache stays as it is."""

CARGO_TOML = """\
[package]
name = "story"
version = "0.1.0"
edition = "2021"
"""

MAIN_RS = """\
fn main() {
    let unused = 1;
    println!("once upon a time");
}
"""

STORY = '''\
"""A story."""


def tell(times: int) -> str:
    lines = ["once upon a time"] * times
    for line in lines:
        print(line)
    return "\\n".join(lines)


class Teller:
    def __init__(self) -> None:
        self.told = 0

    def tell(self) -> str:
        self.told += 1
        return tell(self.told)
'''

TEXTUAL_BOARD = """\
from textual.app import App
from textual.widgets import Button, DataTable, Footer, Header, Input


class Board(App):
    TITLE = "board"
    BINDINGS = [("ctrl+q", "quit", "Quit")]

    def compose(self):
        yield Header()
        yield DataTable()
        yield Input(placeholder="name")
        yield Button("Add", variant="success")
        yield Footer()

    def on_mount(self):
        table = self.query_one(DataTable)
        table.cursor_type = "row"
        table.add_columns("name", "kind", "日本")
        for number in range(5):
            table.add_row(f"row {number}", "plain" if number % 2 else "bold", "語" * number)

    def on_button_pressed(self):
        self.query_one(DataTable).add_row(self.query_one(Input).value, "new", "")


Board().run()
"""

BARS = """\
import sys
import time

from tqdm import tqdm

for _ in tqdm(range(60), desc="plain"):
    time.sleep(0.01)
with tqdm(total=30, desc="with messages", ascii=True) as bar:
    for number in range(30):
        time.sleep(0.02)
        if number % 10 == 5:
            tqdm.write(f"reached {number}")
        bar.update()
for name in tqdm(["fetch", "unpack", "build"], leave=False):
    time.sleep(0.2)
out = sys.stdout
for step in range(0, 101, 5):
    out.write(f"\\rcopied {step:3d} %")
    out.flush()
out.write("\\n")
for step in range(12):
    out.write("working " + "|/-\\\\"[step % 4] + "\\b" * 9)
out.write("\\x1b[K" + "done\\n")
for left in (1000, 100, 10, 1):
    out.write(f"\\x1b[2K\\x1b[1G{left} left")
out.write("\\n")
for number in range(9, -1, -1):
    out.write(f"\\r{number} bottles")
out.write("\\r\\x1b[K")
out.write("bottles: none\\n")
"""

RICH_LIVE = """\
import time

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.tree import Tree

console = Console(force_terminal=True)
with Progress(console=console) as progress:
    fetch = progress.add_task("[red]fetch", total=20)
    build = progress.add_task("[green]build", total=40)
    for step in range(40):
        progress.update(fetch, advance=1)
        progress.update(build, advance=1)
        if step == 20:
            progress.console.print("half of it is [bold]done[/]")
        time.sleep(0.02)
table = Table(title="numbers")
table.add_column("name", style="cyan")
table.add_column("日本", justify="right")
table.add_row("one", "1")
table.add_row("二", "2")
console.print(table)
tree = Tree("root")
tree.add("[link=https://example.org]a leaf with a link[/link]")
console.print(tree)
with console.status("waiting"):
    time.sleep(0.4)
console.print("[bold magenta]the end[/] :sparkles:")
"""

WIDE = """\
import sys

out = sys.stdout.buffer


def say(text):
    out.write(text.encode())


say("日本語の文字 and ASCII\\n")
say("combining: e\\u0301 a\\u030a\\u0323 o\\u0302\\u0301\\n")
say("joined: \\U0001f469\\u200d\\U0001f4bb ")
say("\\U0001f468\\u200d\\U0001f469\\u200d\\U0001f467 \\u2764\\ufe0f\\n")
say("flags: \\U0001f1eb\\U0001f1f7 skin: \\U0001f44b\\U0001f3fd\\n")
say("halves: 日本語\\rhalves: x\\n")
say("halves: 日本語\\x1b[10Gy\\n")
say("back: 日本\\b\\bx\\n")
say("right to left: \\u05e9\\u05dc\\u05d5\\u05dd \\u0645\\u0631\\u062d\\u0628\\u0627\\n")
say("zero width: a\\u200bb\\u2060c\\ufeffd\\n")
say("hangul: \\u1112\\u1161\\u11ab \\ud55c\\n")
say("thai: \\u0e01\\u0e33 devanagari: \\u0915\\u094d\\u0937\\n")
say("wraps: " + "日" * 45 + "\\n")
out.write(b"latin-1: caf\\xe9, cut: \\xe6\\x97, overlong: \\xc0\\xaf, ")
out.write(b"surrogate: \\xed\\xa0\\x80\\n")
say("soft hyphen: co\\u00adop, no-break: a\\u00a0b, ideographic space: a\\u3000b\\n")
out.flush()
"""
