"""A daemon with canvases, and other programs that edit their files as editors do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.harness import DaemonProcess
from tests.resources.waiting import until

Json = dict[str, Any]

PLAN = "# Plan\n\nIntro.\n\n## Goals\n\n- ship\n\n## Log\n\nbegun\n"


class Canvases:
    """A canvas of a daemon, at first ``plan``, and its file."""

    def __init__(
        self, daemon: DaemonProcess, text: str | None = PLAN, file: str = "plan.md"
    ) -> None:
        self.daemon = daemon
        self.name = "plan"
        self.file = daemon.root / "plan.md"
        if text is not None:
            self.file.write_text(text)
        daemon.start()
        if file:
            self.call("open", file=file)

    def open_another(self, name: str) -> None:
        """Be another canvas from now on, with a file of its own."""
        self.name, self.file = name, self.daemon.root / f"{name}.md"
        self.file.write_text(PLAN)
        self.call("open", file=self.file.name)

    def call(self, command: str, **arguments: object) -> Json:
        return self.daemon.call(f"canvas_{command}", **{"name": self.name, **arguments})

    def refusal(self, command: str, **arguments: object) -> str:
        given = {"name": self.name, **arguments}
        return str(self.daemon.refusal(f"canvas_{command}", **given))

    def write(self, section: str, content: str, **arguments: object) -> Json:
        return self.call("write_section", section=section, content=content, **arguments)

    def append(self, section: str, text: str, **arguments: object) -> Json:
        return self.call("append_to_section", section=section, text=text, **arguments)

    def sections(self) -> dict[str, Json]:
        return {each["section"]: each for each in self.call("read")["sections"]}

    def text(self, section: str) -> str:
        text: str = self.sections()[section]["text"]
        return text

    def history(self, **arguments: object) -> list[Json]:
        found: list[Json] = self.call("history", limit=1000, **arguments)["result"]
        return found

    def inbox(self, handle: str) -> list[Json]:
        reply = self.daemon.call("inbox_read", from_handle=handle, limit=1000)
        found: list[Json] = reply["messages"]
        return found

    def gets(self, handle: str, number: int) -> list[Json]:
        until(lambda: len(self.inbox(handle)) >= number, f"{handle} gets {number} messages")
        return self.inbox(handle)

    def beside(self) -> list[str]:
        """The names in the directory of the file, without those that belong there."""
        names = {each.name for each in self.daemon.root.iterdir()}
        return sorted(names - {"plan.md", ".aegis", ".aegis.yaml"})


def rename_over(path: Path, text: str) -> None:
    """Write a file as vim does: a new one, renamed over the old."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.swp")
    fresh.write_text(text)
    fresh.replace(path)


def truncate_and_write(path: Path, text: str) -> None:
    """Write a file as ``echo >`` does, in pieces."""
    with path.open("w") as file:
        for line in text.splitlines(keepends=True):
            file.write(line)
            file.flush()


def sed(path: Path, script: str) -> None:
    """Edit a file with ``sed -i``."""
    subprocess.run(["sed", "-i", script, str(path)], check=True)


HELD_OPEN = """
import sys, time
with open(sys.argv[1], "w") as file:
    file.write(sys.argv[2][:10]); file.flush()
    print("open", flush=True)
    sys.stdin.readline()
    file.write(sys.argv[2][10:])
"""
"""A program that writes half of a text, and the other half when it is told to."""
