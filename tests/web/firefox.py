"""The distribution's Firefox at a real daemon, driven by Puppeteer from npm over WebDriver BiDi.

Playwright drives only a Firefox of its own, which is in no registry.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.e2e.harness import GUARD_S
from tests.npm.tools import tools_or_skip
from tests.web.browser import LISTENER

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
SCRIPT = Path(__file__).with_name("firefox.mjs")

needs_firefox = pytest.mark.skipif(FIREFOX is None, reason="firefox is not installed")


@attrs.frozen
class Firefox:
    """One page. Elements are named as a screen reader names them: ``Allow``, with a role."""

    program: subprocess.Popen[str]

    def do(self, *words: object) -> Any:
        """Have the script do something, and return its result."""
        assert self.program.stdin is not None
        assert self.program.stdout is not None
        self.program.stdin.write(f"{json.dumps(words)}\n")
        self.program.stdin.flush()
        line = self.program.stdout.readline()
        assert line, "Firefox or its script ended"
        reply = json.loads(line)
        assert "failed" not in reply, reply["failed"]
        return reply["result"]

    def click(self, name: str, role: str = "button") -> None:
        self.do("click", named(name, role))

    def fill(self, name: str, text: str) -> None:
        self.do("fill", named(name, "textbox"), text)

    def go(self, place: str) -> None:
        """Show a place of the page, ``/t/build``."""
        self.do("evaluate", f"location.hash = {json.dumps(f'#{place}')}")

    def wait(self, script: str) -> None:
        self.do("wait", script)

    def check(self) -> None:
        """Check that the policy was never violated and nothing was reported as an error."""
        assert self.do("evaluate", "window.violations") == []
        # A lost connection is reported by the browser itself, and cannot be caught.
        errors = [each for each in self.do("errors") if "/ws" not in each]
        assert errors == []


def named(name: str, role: str) -> str:
    return f'::-p-aria([name="{name}"][role="{role}"])'


@contextmanager
def firefox() -> Iterator[Firefox]:
    """Start it. Skips the test if npm cannot install what drives it."""
    tools = tools_or_skip()
    words = [tools.node, SCRIPT, tools.directory, FIREFOX, LISTENER, str(int(GUARD_S * 1000))]
    program = subprocess.Popen(
        [str(each) for each in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    guard = threading.Timer(10 * GUARD_S, program.kill)
    guard.start()
    try:
        yield Firefox(program)
    finally:
        guard.cancel()
        program.communicate(timeout=GUARD_S)
