"""The tutorial of workflows, done as the page says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.harness import GUARD_S, PROGRAM, DaemonProcess
from tests.resources.waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "first-workflow.md"

BLOCK = re.compile(r"^```\n(\$ .*?)^```$", re.DOTALL | re.MULTILINE)
PLUGIN = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    """Each command of the page, and what it prints, if the page says so."""
    found = []
    for block in BLOCK.findall(PAGE.read_text("utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


class Reader:
    """A reader of the page, at a daemon: ids take the place of the words in capitals."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self.daemon = daemon
        self.words: dict[str, str] = {}

    def does(self, command: str) -> str:
        match command:
            case "kill -9 DAEMON":
                self.daemon.kill()
                return ""
            case "aegis-actors up":
                self.daemon.start()  # the plugins are trusted already
                return ""
        self.wait_before(command)
        shown = self.runs(command)
        if "workflow run" in command:
            self.words["WORKFLOW"] = shown.strip()
        return shown

    def runs(self, command: str) -> str:
        for word, meant in self.words.items():
            command = command.replace(word, meant)
        done = subprocess.run(
            ["bash", "-c", command],
            env={**self.daemon.environment, "PATH": f"{PROGRAM.parent}:/usr/bin:/bin"},
            cwd=self.daemon.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def wait_before(self, command: str) -> None:
        if "request" in command:
            until(lambda: self.requests() != [], "the workflow asks")
            self.words["REQUEST"] = self.requests()[0]
        elif "status" in command:
            id_ = self.words["WORKFLOW"]
            until(lambda: self.daemon.call("workflow_status", workflow_id=id_)["ended"], "its end")

    def requests(self) -> list[str]:
        return [each["id"] for each in self.daemon.call("request_list")["requests"]]


@pytest.mark.real
def test_the_tutorial_does_what_it_says(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    [plugin] = PLUGIN.findall(PAGE.read_text("utf-8"))
    directory = own_daemon.root / ".aegis" / "plugins"
    directory.mkdir(parents=True)
    (directory / "release.py").write_text(plugin)
    reader = Reader(own_daemon)
    shown = ""
    for command, output in commands():
        shown = reader.does(command)
        assert shown == output or not output, command
    assert 'result:\n"1.2 is published, after 1 build of builds"' in shown
    assert (own_daemon.root / "builds").read_text() == "1"
    assert (own_daemon.root / "published").read_text() == "1"
    assert len(commands()) == 8
