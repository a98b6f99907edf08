"""The MCP inspector's command line does the worked example: over a URL and over a command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.npm.tools import NpmTools, tools_or_skip

pytestmark = pytest.mark.real

each_era = pytest.mark.parametrize("era", ["legacy", "modern"])
each_way = pytest.mark.parametrize("by", ["url", "command"])


@pytest.fixture(scope="module")
def tools() -> NpmTools:
    return tools_or_skip()


@attrs.frozen
class Inspector:
    """The inspector as the agent ``handle``; each call is a client of its own."""

    tools: NpmTools
    daemon: DaemonProcess
    by: str
    era: str
    handle: str

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """What the tool gave; it must not fail."""
        options = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        result = self.run("tools/call", *options)
        assert not result["isError"], result["content"]
        content: dict[str, Any] = result["structuredContent"]
        return content

    def run(self, method: str, *options: str) -> dict[str, Any]:
        """The result of a method."""
        how = ("--cli", "--quiet", "--format", "json", "--protocol-era", self.era)
        what = ("--method", method, *options, *self._server())
        done = subprocess.run(
            [*self.tools.command("mcp-inspector"), *how, *what],
            env={**self.daemon.environment, "HOME": str(self.daemon.home)},
            cwd=self.daemon.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)["result"]
        return result

    def _server(self) -> list[str]:
        if self.by == "command":
            # Of the environment it hands on a few variables alone, HOME among them.
            registry = f"XDG_STATE_HOME={self.daemon.environment['XDG_STATE_HOME']}"
            return ["-e", registry, *self.daemon.program, "mcp", "--handle", self.handle]
        url: str = self.daemon.call("session_new", handle=self.handle)["url"]
        return ["--transport", "http", "--server-url", url]


@pytest.mark.long
@pytest.mark.parametrize(
    ("pm_by", "builder_by"), [("url", "command"), ("command", "url")], ids=["url", "command"]
)
def test_pm_is_woken_when_builder_has_run_the_tests(
    tools: NpmTools, daemon: DaemonProcess, tmp_path: Path, pm_by: str, builder_by: str
) -> None:
    (tmp_path / "test_wallet.py").write_text("def test_it(): assert 1 + 1 == 2\n")
    pm = Inspector(tools, daemon, pm_by, "legacy", f"pm-{pm_by}")
    builder = Inspector(tools, daemon, builder_by, "modern", f"builder-{builder_by}")
    build = f"build-{pm_by}"

    pm.call("aegis_term_spawn", name=build, cwd=str(tmp_path))
    subscribed = pm.call("aegis_term_subscribe", name=build)
    assert subscribed["subscribers"] == [pm.handle]
    builder.call("aegis_term_list")  # being here is what makes a handle known
    task = f"run pytest in terminal '{build}'"
    pm.call("aegis_handoff", target_handle=builder.handle, context=task)
    [told] = builder.call("aegis_inbox_wait")["messages"]
    assert (told["sender"], told["body"]) == (f"agent:{pm.handle}", task)
    record = builder.call("aegis_term_run", name=build, cmd="pytest -q -p no:cacheprovider")
    assert (record["exit"], record["writer"]) == (0, f"agent:{builder.handle}")
    assert "1 passed" in record["stdout"]
    woken = pm.call("aegis_inbox_wait")
    [wake] = woken["messages"]
    assert wake["sender"] == f"term:{build}"
    assert f"run by agent:{builder.handle}" in wake["text"]
    assert pm.call("aegis_term_read", name=build) == {"result": [record], "running": None}
    assert pm.call("aegis_inbox_wait", after=woken["next"], timeout=0)["messages"] == []


@each_way
def test_it_finds_no_fault_with_the_schemas_of_the_tools(
    tools: NpmTools, daemon: DaemonProcess, by: str
) -> None:
    inspector = Inspector(tools, daemon, by, "modern", "inspector")
    listed = inspector.run("tools/list", "--strict")["tools"]
    assert {"aegis_term_run", "aegis_inbox_wait"} <= {each["name"] for each in listed}
    assert "aegis_down" not in {each["name"] for each in listed}


@each_era
def test_it_reads_a_ledger(tools: NpmTools, daemon: DaemonProcess, era: str) -> None:
    terminal = daemon.terminal(f"ledger-{era}")
    record = terminal.run("echo hi")
    uri = f"aegis://terminals/{terminal.name}/ledger"
    inspector = Inspector(tools, daemon, "command", era, "inspector")
    [content] = inspector.run("resources/read", "--uri", uri)["contents"]
    assert json.loads(content["text"]) == {"result": [record]}
