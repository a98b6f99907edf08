"""The tutorials as a newcomer does them: a fresh HOME, the README's installation, nothing else.

Each command of a page is run in its order, in the directory that the page is in, and prints what
the page shows. ``tests/e2e/test_tui_tour.py``, ``tests/agents_real/test_tutorial.py`` and
``tests/actors/test_tutorial.py`` follow the other pages.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pexpect
import pytest

from tests.e2e.harness import GUARD_S

pytestmark = [pytest.mark.real, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
PROJECT = "/tmp/shop"
"""The project's directory on the pages."""

INSTALL = re.compile(r"^\.ci/uv tool install \.$", re.MULTILINE)
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`([\w./-]+\.(?:py|yaml))`")
"""The name of a file, as it is written before the block with its text."""

ID = re.compile(
    r"handoff:[0-9a-f]{32}|term:\w+/[0-9a-f]{12}/\d+/\w+|\b[0-9A-HJKMNP-TV-Z]{26}\b|\b[0-9a-f]{12}\b"
)
DIFFERING = (
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"\b\d+\.\d\d\d?s", "0.00s"),
    (r"(?<= )\d+s(?= )", "1s"),  # the age of a request
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"(pid) \d+", r"\1 PID"),
    (r"(?m)^(\w+ +\w+ +/bin/bash +)\d+", r"\1PID"),
    (r"(cursor) \d+$", r"\1 N"),
    (r"line:[0-9a-f]{16}", "line:ID"),
    (r"[ ─-]{2,}", "  "),
    (r"(?m) +$", ""),
)
"""What differs from run to run, and what it becomes."""


class Step(NamedTuple):
    """A part of a page: a command with the output that it shows, or a file with its text."""

    command: str = ""
    output: str = ""
    file: str = ""


def steps_of(page: Path) -> list[Step]:
    """What a reader of the page does, in order."""
    text, steps, read_to = page.read_text("utf-8"), [], 0
    for block in BLOCK.finditer(text):
        indent, language, body = block.groups()
        body = re.sub(rf"(?m)^{indent}", "", body)
        names = FILE.findall(text[read_to : block.start()])
        read_to = block.end()
        if language in ("python", "yaml") and names:
            steps.append(Step(file=names[-1], output=body))
        elif language == "sh":
            steps.append(Step(body))
        elif body.startswith("$ "):
            # A line with a dot in the middle is the head of a record that was printed.
            for part in re.split(r"^\$ (?!.* · )", body, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                steps.append(Step(command, output))
        elif steps and steps[-1].command and not steps[-1].output:
            steps[-1] = steps[-1]._replace(output=body)
    return steps


class Reader:
    """Somebody at a shell in the project's directory, with further windows for what stays there."""

    def __init__(self, home: Path, project: Path) -> None:
        self.home = home
        self.project = project
        self.directory = project.parent
        self.ids: dict[str, str] = {}
        self.windows: list[tuple[str, subprocess.Popen[str]]] = []
        self.left = ExitStack()
        self.variables = {"DISPLAY": ":77", "BROWSER": "/bin/true %s"}

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.home}/.local/bin:/usr/bin:/bin"
        own = {"HOME": str(self.home), "PATH": path, "SHELL": "/bin/bash", "LANG": "C.UTF-8"}
        return {**own, **self.variables}

    def does(self, step: Step) -> None:
        """Run the command, and compare; or write the file."""
        if step.file:
            path = self.directory / step.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.output)
            return
        command = step.command.replace(PROJECT, str(self.project))
        for shown, meant in self.ids.items():
            command = command.replace(shown, meant)
        self.check(step, self.runs(command))

    def runs(self, command: str) -> str:
        """Run a command in the directory in which the last one ended; return what it printed."""
        said = self.home / "directory"
        done = subprocess.run(
            ["bash", "-c", f"set -e\n{command}\n{{ pwd > {said}; }} 2>/dev/null"],
            env=self.environment,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=GUARD_S,
            check=False,
        )
        if said.exists():
            self.directory = Path(said.read_text().strip())
        return done.stdout

    def opens_a_window(self, command: str, until: str = "") -> str:
        """Run a command in a window of its own, and read until it has printed ``until``."""
        keyboard = os.openpty()
        for each in keyboard:
            self.left.callback(os.close, each)
        window = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            env=self.environment,
            cwd=self.directory,
            stdin=keyboard[1],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.windows.append((command, window))
        self.left.callback(window.kill)
        assert window.stdout is not None
        guard = threading.Timer(GUARD_S, window.kill)
        guard.start()
        shown = ""
        while until and until not in shown:
            line = window.stdout.readline()
            assert line, f"{command} ended: {shown}"
            shown += line
        guard.cancel()
        return shown

    def closes(self, command: str) -> str:
        """Return what a window has printed by its end."""
        [window] = [each for words, each in self.windows if words == command]
        output, _ = window.communicate(timeout=GUARD_S)
        assert window.returncode == 0, output
        return output

    def check(self, step: Step, output: str) -> None:
        """Compare what was printed with what the page shows; a line "…" stands for any lines."""
        expected = step.output.replace(PROJECT, str(self.project))
        if not expected:
            return
        pattern = "".join(
            "(?s:.*?)" if line == "…" else f"{re.escape(line).replace('…', '.*')}\n"
            for line in comparable(expected).splitlines()
        )
        fits = re.fullmatch(pattern, comparable(output) + "\n" * (not output.endswith("\n")))
        assert fits, f"$ {step.command}\n{output}\nis not what the page shows:\n{expected}"
        self.ids |= dict(zip(ID.findall(expected), ID.findall(output), strict=False))


def comparable(text: str) -> str:
    """A text without what differs from run to run."""
    text = ID.sub("ID", text)
    for pattern, instead in DIFFERING:
        text = re.sub(pattern, instead, text)
    return text


def installing(home: Path) -> dict[str, str]:
    """The environment of a newcomer's installation, with what uv has fetched before."""
    uv = [str(ROOT / ".ci" / "uv")]
    cache = subprocess.run([*uv, "cache", "dir"], capture_output=True, text=True, check=True)
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("XDG_", "UV"))}
    own = {"HOME": str(home), "UV_CACHE_DIR": cache.stdout.strip(), "UV_PYTHON": sys.executable}
    return kept | own


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh HOME, with the program installed by the README's command."""
    fresh = tmp_path_factory.mktemp("home")
    [command] = INSTALL.findall((ROOT / "README.md").read_text("utf-8"))
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=installing(fresh),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return fresh


@pytest.fixture
def reader(home: Path, tmp_path: Path) -> Iterator[Reader]:
    """A reader whose daemon is stopped at the end."""
    reading = Reader(home, tmp_path / "shop")
    with reading.left:
        yield reading
        reading.runs("aegis-actors down")
        for _, window in reading.windows:
            assert window.stdout is not None
            window.stdout.close()
            window.wait(GUARD_S)


def test_the_first_actors(home: Path, tmp_path: Path) -> None:
    page = TUTORIALS / "first-actors.md"
    blocks = BLOCK.findall(page.read_text("utf-8"))
    program = tmp_path / "bank.py"
    program.write_text("\n".join(body for _, language, body in blocks if language == "python"))
    [step] = [each for each in steps_of(page) if each.command]
    done = subprocess.run(
        ["bash", "-c", step.command.replace("bank.py", str(program))],
        cwd=ROOT,
        env=installing(home) | {"UV_PROJECT_ENVIRONMENT": str(tmp_path / "venv")},
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        check=True,
    )
    assert done.stdout == step.output


def start_daemon(reader: Reader) -> str:
    return reader.opens_a_window("aegis-actors up", until="aegis-actors down\n")


def shop(reader: Reader) -> None:
    """Do the first part of *Your first terminal*, which other tutorials begin with."""
    for step in steps_of(TUTORIALS / "first-terminal.md")[1:2]:
        before, up, _ = step.command.partition("aegis-actors up")
        assert up
        reader.does(step._replace(command=before, output=""))
        reader.check(step, start_daemon(reader))


def test_the_first_terminal(reader: Reader) -> None:
    install, _, *rest = steps_of(TUTORIALS / "first-terminal.md")
    assert INSTALL.search(install.command)
    shop(reader)
    assert len(rest) > 25
    for step in rest:
        if "term attach" in step.command:
            attach(reader)
        else:
            repeat(reader, step)  # what was typed runs a moment later


def attach(reader: Reader) -> None:
    spawned = pexpect.spawn(
        "aegis-actors term attach build",
        env={**reader.environment, "TERM": "xterm"},
        cwd=str(reader.directory),
        timeout=GUARD_S,
        dimensions=(24, 80),
    )
    spawned.expect_exact("typed by hand")
    spawned.send("\x1cd")
    spawned.expect(pexpect.EOF)
    spawned.close()
    assert spawned.exitstatus == 0


def test_the_first_workflow(reader: Reader) -> None:
    shop(reader)
    done = []
    for step in steps_of(TUTORIALS / "first-workflow.md"):
        done.append(step.command)
        if "kill -9" in step.command:
            reader.does(step)
            _, window = reader.windows[-1]
            assert window.wait(GUARD_S) == -signal.SIGKILL
        elif step.command == "aegis-actors up":
            start_daemon(reader)
        else:
            repeat(reader, step)
    assert len([each for each in done if each]) == 8
    assert (reader.directory / "builds").read_text() == "1"
    assert (reader.directory / "published").read_text() == "1"


def repeat(reader: Reader, step: Step) -> None:
    """Do a step; one that looks is repeated until what it looks for is there."""
    looking = ("request list", "workflow status", "term read")
    looks = any(f" {verb}" in step.command for verb in looking)
    deadline = time.monotonic() + GUARD_S
    while True:
        try:
            return reader.does(step)
        except AssertionError:
            if not looks or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def wait_for_reader_of(reader: Reader, handle: str) -> None:
    """Wait until somebody has called to wait in this inbox: there is none before."""
    deadline = time.monotonic() + GUARD_S
    while f"─ {handle} " not in reader.runs("aegis-actors tree"):
        assert time.monotonic() < deadline, f"nobody waits in the inbox of {handle}"
        time.sleep(0.1)


def test_two_agents(reader: Reader) -> None:
    shop(reader)
    steps = steps_of(TUTORIALS / "two-agents.md")
    [builder] = [step for step in steps if step.command == "python3 builder.py"]
    for step in steps:
        if step is builder:
            reader.opens_a_window(step.command)
            wait_for_reader_of(reader, "builder")
        elif not step.command.startswith("claude "):
            reader.does(step)
    reader.check(builder, reader.closes(builder.command))


def test_the_web_page_opens(reader: Reader) -> None:
    shop(reader)
    [step] = steps_of(TUTORIALS / "web-page.md")
    reader.does(step)


def test_the_terminal_interface_is_started_with_the_daemon(reader: Reader) -> None:
    shop(reader)
    reader.runs("aegis-actors down")
    [step] = [each for each in steps_of(TUTORIALS / "terminal-interface.md") if each.command]
    spawned = pexpect.spawn(
        step.command,
        env={**reader.environment, "TERM": "xterm-256color"},
        cwd=str(reader.directory),
        timeout=GUARD_S,
        dimensions=(24, 80),
    )
    spawned.expect("Ctrl-E")
    spawned.send("\x11")
    spawned.expect("the daemon runs")
    spawned.expect(pexpect.EOF)
    spawned.close()
    assert spawned.exitstatus == 0


def test_the_chat_of_telegram_is_set_up_as_the_page_says(reader: Reader) -> None:
    """With a made-up token; ``tests/e2e/test_telegram.py`` has the rest, before a server."""
    reader.project.mkdir()
    reader.directory = reader.project
    session = []
    for step in steps_of(ROOT / "docs" / "how-to" / "use-telegram.md"):
        if step.file:
            reader.does(step)
        elif step.command.startswith("curl "):
            assert "$AEGIS_TELEGRAM_TOKEN" in step.command
            session.append('test -n "$AEGIS_TELEGRAM_TOKEN"')
        elif step.command:
            session.append(step.command.replace("=…", "=1:made-up"))
    assert session[-1] == "aegis-actors up --trust"
    shown = reader.runs("\n".join([*session[:-1], f"{session[-1]} -d --port 0"]))
    assert "is ready for" in shown
    assert "1:made-up" not in reader.runs("aegis-actors tree; aegis-actors term spawn t")
    tree = reader.runs("aegis-actors tree")
    assert "telegram-outbox" in tree
