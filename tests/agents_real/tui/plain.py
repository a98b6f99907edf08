"""Recordings of programs that are no agents: a shell, a REPL, an editor, a build, a download."""

from __future__ import annotations

from pathlib import Path

import trio

from tests.agents_real.tui.stage import Stage

BUILD = """\
import time
print("Building 5 targets", flush=True)
for number, seconds in enumerate((3, 8, 6, 4), 1):
    time.sleep(seconds)
    print(f"[{number}/5] compiled part{number}.c", flush=True)
time.sleep(7)
print("[5/5] linked; build finished", flush=True)
"""
DOWNLOAD = """\
import time
for percent in range(0, 101, 2):
    print(f"\\rdownloading [{'#' * (percent // 5):20}] {percent:3} %", end="", flush=True)
    time.sleep(0.25)
print("\\nverifying", flush=True)
exec(open("quiet.py").read())
print("the download is complete", flush=True)
"""
QUIET = "import time\nend = time.monotonic() + 7\nwhile time.monotonic() < end: sum(range(9999))\n"


def prepare(home: Path) -> None:
    """Write the files that the scripts use."""
    (home / "build.py").write_text(BUILD)
    (home / "download.py").write_text(DOWNLOAD)
    (home / "quiet.py").write_text(QUIET)
    (home / "notes.txt").write_text("first line\nsecond line\n")
    (home / ".bashrc").write_text("PS1='w$ '\n")


async def bash(stage: Stage) -> None:
    """A shell: a sleep, a quiet computation, a pipeline, a read, a secret."""
    await stage.waits("idle", "w$", because="the shell shows its prompt")
    await trio.sleep(2)
    await _run(stage, "sleep 7; echo slept", "\nslept")
    await trio.sleep(6)
    await _run(stage, "python3 quiet.py | cat; echo computed", "\ncomputed")
    await trio.sleep(2)
    await stage.type('read -p "Continue? " yes; sleep 3; echo got $yes')
    await stage.keys("\r", works="a command was sent")
    await stage.waits("input", "\nContinue?", because="read waits for a line")
    await trio.sleep(8)
    await stage.type("y")
    await stage.keys("\r", works="the line was sent")
    await stage.waits("idle", "\ngot y\nw$", because="the shell shows its prompt")
    await stage.type('read -sp "Password: " it; echo; sleep 2; echo accepted')
    await stage.keys("\r", works="a command was sent")
    await stage.waits("secret", "\nPassword:", because="read waits for a secret")
    await trio.sleep(7)
    await stage.keys("abc\r", works="the secret was sent")
    await stage.waits("idle", "\naccepted\nw$", because="the shell shows its prompt")
    await trio.sleep(1)
    await stage.type("exit 3")
    await stage.keys("\r", works="exit was sent")


async def _run(stage: Stage, command: str, end: str) -> None:
    await stage.type(command)
    await stage.keys("\r", works="a command was sent")
    await stage.waits("idle", f"{end}\nw$", because="the shell shows its prompt")


async def python(stage: Stage) -> None:
    """A REPL: input(), a computation of 6 s, a secret."""
    await stage.waits("idle", ">>>", because="the REPL shows its prompt")
    await trio.sleep(6)
    await stage.type("name = input('Your name? ')")
    await stage.keys("\r", works="a line was sent")
    await stage.waits("input", "\nYour name?", because="input() waits for a line")
    await trio.sleep(8)
    await stage.type("Ada")
    await stage.keys("\r", works="the line was sent")
    await stage.waits("idle", "Ada\n>>>", because="the REPL shows its prompt")
    await stage.type("exec(open('quiet.py').read()); name")
    await stage.keys("\r", works="a line was sent")
    await stage.waits("idle", "\n'Ada'\n>>>", because="the REPL shows its prompt")
    await trio.sleep(2)
    await stage.type("import getpass; len(getpass.getpass())")
    await stage.keys("\r", works="a line was sent")
    await stage.waits("secret", "\nPassword:", because="getpass waits for a secret")
    await trio.sleep(6)
    await stage.keys("abcd\r", works="the secret was sent")
    await stage.waits("idle", "\n4\n>>>", because="the REPL shows its prompt")
    await trio.sleep(1)
    await stage.keys("\x04", works="the end of input was sent")


async def vim(stage: Stage) -> None:
    """An editor: it waits for keys all the time."""
    await stage.waits("idle", "second line", because="the editor shows the file")
    await trio.sleep(7)
    await stage.keys("G")
    await stage.type("othird line")
    await trio.sleep(7)
    await stage.keys("\x1b")
    await trio.sleep(2)
    stage.resize(30, 100)
    await trio.sleep(7)
    await stage.type(":wq")
    await stage.keys("\r", works="the command to quit was sent")


async def build(stage: Stage) -> None:
    """A build that prints a line every 3 to 8 s and asks for nothing."""
    await stage.shows("build finished")


async def download(stage: Stage) -> None:
    """A download that redraws one line, and then computes for 7 s without output."""
    await stage.shows("the download is complete")
