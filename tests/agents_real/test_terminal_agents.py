"""Real agents in their own terminal interface: seen blocked, answered by keys, and stopped."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from tests.agents_real.bench import Bench
from tests.agents_real.installed import NotInstalled
from tests.agents_real.scripts import script
from tests.agents_real.tui.agents import TUIS, Tui
from tests.crash.test_hundred import waited_for_processor_s
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

REPORTING = ("claude", "codex")
"""The agents that report their state by OSC 7501."""

ORDER = "make the file"
TYPE_AGAIN_S = 3.0

SEEN_S = 2.0
"""A block that the program reports is seen within so many seconds, if there is a processor."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    wanted = metafunc.config.getoption("--agent", None) or REPORTING
    metafunc.parametrize("name", [each for each in REPORTING if each in wanted])


def wrapper(bench: Bench, tui: Tui, name: str) -> Path:
    """Return a program with the name of the agent, which starts it with its environment."""
    cli = tui.the_cli()
    environment = {**cli.environment(bench.home, bench.model.url), "TERM": "xterm-256color"}
    tui.prepare(bench.home, bench.work)
    words = [f"{key}={value}" for key, value in environment.items()]
    command = ["env", "-i", 'AEGIS_TERMINAL="$AEGIS_TERMINAL"', *map(shlex.quote, words)]
    program = bench.home / "bin" / name
    program.parent.mkdir()
    quoted = [*command, *map(shlex.quote, [*cli.command(), *tui.arguments])]
    program.write_text(f'#!/bin/sh\nexec {" ".join(quoted)} "$@"\n')
    program.chmod(0o755)
    return program


class Watched:
    """A terminal agent of a daemon."""

    def __init__(self, daemon: DaemonProcess, handle: str) -> None:
        self.daemon = daemon
        self.handle = handle

    def info(self) -> dict[str, Any]:
        return self.daemon.call("agent_show", handle=self.handle)

    def screen(self) -> str:
        return "\n".join(self.daemon.call("term_screen", name=self.handle)["lines"])

    def pids(self) -> list[int]:
        """Its processes."""
        return [int(each.split()[0]) for each in self.daemon.shell_processes(f"{self.handle}/")]

    def types(self, keys: str) -> None:
        self.daemon.call("term_keys", name=self.handle, keys=keys)

    def answers(self, tui: Tui) -> None:
        """Approve; again after a while, for a prompt ignores keys right after it was shown."""
        typed_at = -TYPE_AGAIN_S

        def is_gone() -> bool:
            nonlocal typed_at
            is_asking = tui.asks in self.screen()
            if is_asking and time.monotonic() > typed_at + TYPE_AGAIN_S:
                typed_at = time.monotonic()
                self.types(tui.approve)
            return not is_asking

        until(is_gone, "the answer is taken")

    def need(self) -> dict[str, Any]:
        """What it needs now; empty if nothing."""
        return self.info()["program"]["need"] or {}

    def needs(self, kind: str) -> dict[str, Any]:
        """Wait until it needs this input, as it reports itself; return the need."""

        def is_so() -> bool:
            info = self.info()
            need = info["program"]["need"] or {}
            is_kind = need.get("kind") == kind
            return is_kind and info["program"]["source"] == "report"

        until(is_so, f"{self.handle} needs {kind}")
        return self.need()


def waited_for_processors_s(pids: list[int]) -> float:
    """Return how long these processes together were runnable without running."""
    waited_s = 0.0
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            waited_s += waited_for_processor_s(pid)
    return waited_s


def test_it_is_seen_blocked_answered_restarted_and_stopped(name: str, bench: Bench) -> None:
    tui = TUIS[name]
    try:
        tui.the_cli().command()
    except NotInstalled as error:
        pytest.skip(str(error))
    daemon = bench.daemon
    asks = tui.the_cli().asking.format(file="made.txt")
    bench.model.teach({ORDER: script(asks, "WAIT 3", "SAY It is made.")})
    daemon.call("workspace_create", workspace="demo", directory=str(bench.work))
    cmd = str(wrapper(bench, tui, name))
    launched = daemon.call("agent_launch", cmd=cmd, workspace="demo", from_handle="boss")
    agent = Watched(daemon, launched["handle"])
    until(lambda: tui.ready in agent.screen(), "it takes a prompt")
    agent.needs("ready")

    agent.types(ORDER)
    until(lambda: ORDER in agent.screen(), "the prompt is typed")
    processes = [os.getpid(), daemon.process.pid, *agent.pids()]
    agent.types("\r")
    until(lambda: tui.asks in agent.screen(), "it shows a prompt")
    shown_at, waited_s = time.monotonic(), waited_for_processors_s(processes)
    need = agent.needs("permission")
    waited_s = waited_for_processors_s(processes) - waited_s
    assert time.monotonic() - shown_at - waited_s < SEEN_S
    if name == "claude":  # the reports of codex have no text
        assert "made.txt" in need["text"]
        # Its hook comes a moment after its report.
        until(lambda: agent.need().get("tool") == "Bash", "the hook has named the tool")
        assert "touch made.txt" in agent.need()["tool_input"]

    def messages() -> str:
        found = daemon.call("inbox_read", from_handle="boss")["messages"]
        return "\n".join(each["body"] for each in found)

    until(lambda: "asks for a permission" in messages(), "its launcher is woken")
    agent.answers(tui)
    until((bench.work / "made.txt").exists, "the command has run")
    assert agent.info()["state"] == "running"
    until(lambda: "It is made." in agent.screen(), "the turn is over")
    agent.needs("ready")

    began = time.monotonic()
    daemon.call("agent_restart", handle=agent.handle)
    assert time.monotonic() - began < GUARD_S
    agent.needs("ready")
    output = daemon.call("term_output", name=agent.handle, cursor=0, max_bytes=1_000_000)["text"]
    assert "launched again" in output
    assert agent.info()["program"]["launches"] == 2

    daemon.call("close", handle=agent.handle)
    assert daemon.shell_processes() == []
