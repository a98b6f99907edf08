"""A reader of a page: runs its commands, and compares what they print with what the page shows."""

from __future__ import annotations

import re
import subprocess
import time

from tests.agents_real.team import Team
from tests.e2e.harness import GUARD_S

PROJECT = "/tmp/shop"
"""The project's directory on the pages."""

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""A block with its language: a closing fence looks like the opening one of a plain block."""
LOOKING = tuple(
    f"aegis-actors {verb}"
    for verb in (
        *("agent list", "agent read", "request list", "term read", "request show"),
        *("workflow status", "inbox read", "queue show", "canvas history"),
    )
)
"""Commands that may be repeated until an agent is as far as the page."""

SKIPPED = r"(?:.*\n)*?"
ID = re.compile(r"\b(?=\w*[0-9])[0-9a-f]{12}\b|\b0[0-9A-HJKMNP-TV-Z]{25}\b")
"""The id of a request, of a task or of a workflow."""

REQUEST_CHARS = 12
KINDS = {REQUEST_CHARS: "[0-9a-f]{12}", 26: "[0-9A-Z]{26}"}
"""Patterns of ids by their length."""

DIFFERING = (
    (r"^(\\ )+\d+\\ (?=\S)", r" *\\d+ "),  # the seq of an entry
    (r"\d{4}\\-\d\d\\-\d\dT[\d:\\.]+Z", r"\\S+Z"),
    (r"\b\d+\\\.\d\d\d?s", r"\\d+\\.\\d+s"),
    (r"(?<=\\ )\d+s(\\ )+", r"\\d+s +"),  # the age of a request
    (r"handoff:[0-9a-f]{32}", r"handoff:[0-9a-f]{32}"),
    (r"(landed|queued)(.*position.:)\d", r"(?:landed|queued)\2\\d"),
    (r"…$", ".*"),
)
"""Parts of an output, as ``re.escape`` writes them, and the patterns for them."""


def commands_of(text: str, programs: tuple[str, ...] = ("aegis-actors ",)) -> list[tuple[str, str]]:
    """Return each command of a page that begins with one of ``programs``, and its output."""
    blocks = [block for language, block in BLOCK.findall(text) if not language]
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)]
    found = [part.partition("\n") for part in parts if part.startswith(programs)]
    return [(command, output) for command, _, output in found]


class Reader:
    """A reader of a page: runs its commands in order, with the ids of this run."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self._ids: dict[str, str] = {}

    def run(self, command: str, expected: str) -> None:
        """Run a command until its output is as the page shows it; one that acts, only once."""
        words = self._with_ids(command)
        pattern = self._pattern(expected)
        deadline = time.monotonic() + GUARD_S
        while True:
            output = self._output(words)
            found = pattern.fullmatch(output)
            if found or not command.startswith(LOOKING) or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        assert found is not None, f"$ {words}\n{output}\nis not what the page shows:\n{expected}"
        self._ids |= {name[1:]: id_ for name, id_ in found.groupdict().items()}

    def _output(self, words: str) -> str:
        done = subprocess.run(
            ["bash", "-c", words],
            env=self._team.daemon.environment,
            cwd=self._team.daemon.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=False,
        )
        return done.stdout + done.stderr

    def _with_ids(self, command: str) -> str:
        for shown, id_ in self._ids.items():
            written = shown[:4] if len(shown) == REQUEST_CHARS else shown
            command = re.sub(rf"\b{written}\b", id_, command)
        return command

    def _pattern(self, expected: str) -> re.Pattern[str]:
        """Return the pattern of an output: ids, times and paths differ from run to run."""
        lines = [self._line(line) for line in expected.splitlines()]
        text = "".join(line if line == SKIPPED else f"{line}\n" for line in lines)
        seen: set[str] = set()

        def capture(match: re.Match[str]) -> str:
            shown = match[0]
            if shown in self._ids:
                return self._ids[shown]
            if shown in seen:
                return f"(?P=i{shown})"
            seen.add(shown)
            return f"(?P<i{shown}>{KINDS[len(shown)]})"

        return re.compile(ID.sub(capture, text))

    def _line(self, line: str) -> str:
        if line == "…":
            return SKIPPED
        if line.endswith("…"):
            # The path of the project decides where it is cut.
            line = f"{line[:-1].partition(PROJECT)[0]}…"
        found = re.escape(line).replace(re.escape(PROJECT), re.escape(str(self._team.daemon.root)))
        for pattern, differing in DIFFERING:
            found = re.sub(pattern, differing, found)
        return found
