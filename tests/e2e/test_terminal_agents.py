"""Agents that are their terminal, in a real daemon, with a stand-in for the program."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

import aegis
from aegis.protocol.agent_streams import AgentsItem
from tests.e2e.harness import GUARD_S, DaemonProcess, command_of, is_alive
from tests.resources.waiting import until

pytestmark = pytest.mark.real

BUSY_S = 30.0
"""A command on a terminal waits so long for a line that is being typed."""

TUI = Path(__file__).parents[1] / "fakes" / "agents" / "tui.py"
STALE_S = 600.0
"""What needs input is shown as such for the whole of a test, unless the test wants it stale."""


class Launcher:
    """A daemon with short times, and calls of it."""

    def __init__(self, daemon: DaemonProcess, faults: str = "", stale_s: float = STALE_S) -> None:
        self.daemon = daemon
        configuration = f"lifecycle: {{idle_s: 1.0, stale_s: {stale_s}}}\n"
        (daemon.root / ".aegis.yaml").write_text(configuration)
        daemon.start("--port", "0", "--trust", faults=faults)

    def launch(self, mode: str = "reports", *words: str, **arguments: object) -> str:
        cmd = shlex.join([sys.executable, str(TUI), mode, *words])
        handle: str = self.daemon.call("agent_launch", cmd=cmd, **arguments)["handle"]
        return handle

    def info(self, handle: str) -> dict[str, Any]:
        return self.daemon.call("agent_show", handle=handle)

    def is_in(self, handle: str, *states: str) -> dict[str, Any]:
        until(lambda: self.info(handle)["state"] in states, f"{handle} is {states}")
        return self.info(handle)

    def types(self, handle: str, text: str) -> None:
        self.daemon.call("term_keys", name=handle, keys=text)

    def order(self, handle: str, text: str) -> None:
        self.types(handle, f"{text}\r")

    def asks(self, handle: str, text: str) -> dict[str, Any]:
        """Have it ask for a permission; return its state once it is seen to ask."""
        self.is_ready(handle)
        self.order(handle, f"ask {text}")
        until(lambda: text in ((self.need(handle) or {}).get("text", "")), f"{handle} asks")
        return self.info(handle)

    def is_ready(self, handle: str) -> None:
        def is_so() -> bool:
            need = self.need(handle)
            return need is not None and need["kind"] in ("ready", "input")

        until(is_so, f"{handle} is ready")

    def need(self, handle: str) -> dict[str, Any] | None:
        need: dict[str, Any] | None = self.info(handle)["program"]["need"]
        return need

    def messages(self, handle: str | None = None) -> list[str]:
        given = {} if handle is None else {"from_handle": handle}
        found = self.daemon.call("inbox_read", limit=1000, **given)["messages"]
        return [each["body"] for each in found if each["sender"].startswith("agent:")]

    def screen(self, handle: str) -> str:
        return "\n".join(self.daemon.call("term_screen", name=handle)["lines"])

    def processes(self, handle: str) -> list[int]:
        found = self.daemon.shell_processes(f"{handle}/")
        return [int(each.split()[0]) for each in found]


@pytest.fixture
def launcher(own_daemon: DaemonProcess) -> Launcher:
    return Launcher(own_daemon)


def test_a_program_is_launched_asks_is_answered_and_ends(launcher: Launcher) -> None:
    handle = launcher.launch(handle="pm")
    assert handle == "pm"
    asking = launcher.asks("pm", "rm -rf build")
    assert (asking["state"], asking["program"]["source"]) == ("needs_input", "report")
    assert asking["program"]["need"]["kind"] == "permission"
    launcher.types("pm", "Y")
    launcher.is_in("pm", "running")  # the answer is work
    launcher.types("pm", "x")
    launcher.is_ready("pm")
    launcher.order("pm", "exit 3")
    ended = launcher.is_in("pm", "exited")
    assert (ended["program"]["exit_code"], ended["program"]["need"]) == (3, None)
    record = launcher.daemon.call("term_read", name="pm")["result"][-1]
    assert (record["exit"], record["writer"]) == (3, "agent:pm")
    waited = launcher.daemon.cli("agent", "wait", "pm")
    assert (waited.returncode, waited.stderr) == (
        1,
        "↳ pm: failed: its program has ended with exit code 3\n",
    )
    unknown = launcher.daemon.refusal("agent_diff", handle="pm")
    assert "look at its terminal with term read pm" in str(unknown)
    sent = launcher.daemon.cli("agent", "send", "pm", "--wait", "hi")
    assert (sent.returncode, "whose messages begin no turn" in sent.stderr) == (2, True)


@pytest.mark.parametrize(("mode", "source"), [("titles", "title"), ("silent", "silence")])
def test_a_block_is_seen_without_reports_too(
    own_daemon: DaemonProcess, mode: str, source: str
) -> None:
    launcher = Launcher(own_daemon, stale_s=3.0)
    handle = launcher.launch(mode)
    # The one becomes the other after a while: a busy machine may see the second only.
    launcher.is_in(handle, "needs_input", "stale")
    launcher.order(handle, "work 0.5")
    launcher.order(handle, "ask x")
    until(lambda: "Allow x?" in launcher.screen(handle), "it asks")
    asking = launcher.is_in(handle, "needs_input", "stale")
    assert asking["program"]["source"] in (source, "silence", "tty")
    stale = launcher.is_in(handle, "stale")
    assert stale["program"]["need"] is not None, "although its dot blinks all the time"


def test_the_subscribers_are_woken_with_the_question(launcher: Launcher) -> None:
    launcher.launch(handle="pm", from_handle="boss")
    launcher.daemon.call("term_subscribe", name="pm", from_handle="peer")
    launcher.asks("pm", "make all")
    wanted = "asks for a permission: make all"
    until(lambda: wanted in "".join(launcher.messages("boss")), "the spawner is woken")
    until(lambda: wanted in "".join(launcher.messages("peer")), "the subscriber is woken")
    assert sum(wanted in each for each in launcher.messages("boss")) == 1
    launcher.types("pm", "y")
    launcher.is_ready("pm")
    launcher.order("pm", "exit 0")
    launcher.is_in("pm", "exited")

    def senders() -> list[str]:
        found = launcher.daemon.call("inbox_read", from_handle="boss")["messages"]
        return [each["sender"] for each in found]

    until(lambda: "term:pm" in senders(), "its end is reported too")


def test_a_restart_keeps_the_scrollback_and_draws_a_separator(launcher: Launcher) -> None:
    launcher.launch(handle="pm")
    launcher.is_ready("pm")
    launcher.order("pm", "work 0.2")

    def text() -> str:
        shown = launcher.daemon.call("term_output", name="pm", cursor=0, max_bytes=100_000)
        return str(shown["text"])

    until(lambda: "step 1" in text(), "it has begun: it is ready before the order too")
    launcher.is_ready("pm")
    [before] = [pid for pid in launcher.processes("pm") if str(TUI) in command_of(pid)]
    launcher.daemon.call("agent_restart", handle="pm")
    launcher.is_ready("pm")
    [after] = [pid for pid in launcher.processes("pm") if str(TUI) in command_of(pid)]
    assert before != after
    assert not is_alive(before)
    first, _, second = text().partition("──── launched again ────")
    assert "step 1" in first
    assert "step 1" not in second
    assert launcher.info("pm")["program"]["launches"] == 2


def test_a_program_that_ignores_sigterm_is_killed(launcher: Launcher) -> None:
    launcher.launch("reports", "deaf", handle="pm")
    launcher.is_ready("pm")
    pids = launcher.processes("pm")
    began = time.monotonic()
    launcher.daemon.call("close", handle="pm")
    assert time.monotonic() - began >= 2.9
    assert not any(map(is_alive, pids))


def test_a_stop_ends_its_children_too_and_keeps_its_history(launcher: Launcher) -> None:
    launcher.launch(handle="pm")
    launcher.is_ready("pm")
    launcher.order("pm", "child")
    launcher.is_ready("pm")
    until(lambda: any("sleep" in command_of(pid) for pid in launcher.processes("pm")), "a child")
    assert launcher.daemon.call("close", handle="pm")["state"] == "closed"
    assert launcher.processes("pm") == []
    assert launcher.daemon.call("list_sessions")["result"] == []
    assert launcher.daemon.call("term_list")["result"] == []
    [record] = launcher.daemon.call("term_read", name="pm")["result"]
    assert "tui.py" in record["cmd"]


def test_a_stopped_agent_is_resumed_in_its_terminal(launcher: Launcher) -> None:
    launcher.launch(handle="pm")
    launcher.is_ready("pm")
    launcher.daemon.call("close", handle="pm")
    launcher.daemon.call("agent_resume", handle="pm")
    launcher.is_ready("pm")
    assert len(launcher.daemon.call("term_read", name="pm")["result"]) == 1
    refusal = launcher.daemon.refusal("agent_resume", handle="pm", prompt="go on")
    assert "takes no prompt: type into its terminal" in str(refusal)
    launcher.daemon.call("close", handle="pm")
    launcher.daemon.call("agent_restart", handle="pm")
    launcher.is_ready("pm")
    assert len(launcher.daemon.call("term_read", name="pm")["result"]) == 2


def test_a_resume_that_meets_the_stop_of_a_deaf_program_starts_it_behind_that(
    launcher: Launcher,
) -> None:
    launcher.launch("reports", "deaf", handle="pm")
    launcher.is_ready("pm")
    stopping = launcher.daemon.send("close", handle="pm").has_arrived()
    launcher.daemon.call("agent_resume", handle="pm")
    assert stopping.result()["state"] == "closed"
    launcher.is_ready("pm")


def test_after_a_kill_of_the_daemon_it_is_exited_and_can_be_launched_again(
    launcher: Launcher,
) -> None:
    launcher.launch(handle="pm")
    launcher.is_ready("pm")
    pids = launcher.processes("pm")
    launcher.daemon.kill()
    launcher.daemon.start("--port", "0", "--trust")
    assert launcher.info("pm")["state"] == "exited"
    until(lambda: not any(map(is_alive, pids)), "nothing of it is left")
    launcher.daemon.call("agent_restart", handle="pm")
    launcher.is_ready("pm")
    [first, *_] = launcher.daemon.call("term_read", name="pm")["result"]
    assert first["killed_by_restart"]


def test_its_shell_that_is_killed_ends_it(launcher: Launcher) -> None:
    launcher.launch(handle="pm")
    launcher.is_ready("pm")
    [info] = launcher.daemon.call("term_list")["result"]
    os.kill(info["pid"], signal.SIGKILL)
    ended = launcher.is_in("pm", "exited")
    assert ended["reason"] == "the shell of its terminal has ended"


def test_a_terminal_that_is_closed_under_it_ends_it(launcher: Launcher) -> None:
    launcher.launch(handle="pm")
    launcher.is_ready("pm")
    launcher.daemon.call("term_close", name="pm")
    assert launcher.is_in("pm", "exited")["reason"] == "its terminal was closed"
    launcher.daemon.call("agent_restart", handle="pm")
    launcher.is_ready("pm")


def test_a_workspace_has_one_and_takes_it_along(launcher: Launcher) -> None:
    (launcher.daemon.root / "sub").mkdir()
    launcher.daemon.call("workspace_create", workspace="demo", directory="sub")
    handle = launcher.launch(workspace="demo")
    assert launcher.info(handle)["cwd"] == str(launcher.daemon.root / "sub")
    refusal = launcher.daemon.refusal("agent_launch", cmd="bash", workspace="Demo")
    assert f"has the agent '{handle}' already" in str(refusal)
    [listed] = launcher.daemon.call("workspace_list")["result"]
    assert listed["agent"] == handle
    deleted = launcher.daemon.call("workspace_delete", workspace="demo")
    assert deleted["agents"] == [handle]
    assert launcher.processes(handle) == []


@pytest.mark.parametrize("cmd", ["no-such-program here", "X=1 ./no-such-program", "/etc/passwd"])
def test_a_program_that_cannot_be_started_is_refused_with_the_remedy(
    launcher: Launcher, cmd: str
) -> None:
    refusal = launcher.daemon.refusal("agent_launch", cmd=cmd)
    assert (refusal.code, "install the program" in str(refusal)) == ("unavailable", True)
    assert launcher.daemon.call("list_sessions")["result"] == []
    assert launcher.daemon.call("term_list")["result"] == []
    done = launcher.daemon.cli("agent", "launch", "--terminal", "--", *cmd.split())
    assert (done.returncode != 0, "install the program" in done.stderr) == (True, True)


def test_a_function_of_the_shell_and_a_quick_program_are_launched(launcher: Launcher) -> None:
    bashrc = launcher.daemon.environment["HOME"] + "/.bashrc"
    with Path(bashrc).open("a") as file:
        file.write("\nagent-by-function() { echo started; read -r line; }\n")
    handle = launcher.daemon.call("agent_launch", cmd="agent-by-function")["handle"]
    until(lambda: "started" in launcher.screen(handle), "it runs")
    ended = launcher.daemon.call("agent_launch", cmd="sh -c 'exit 127'")["handle"]
    assert launcher.is_in(ended, "exited")["program"]["exit_code"] == 127


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_its_exit_code_is_known_after_a_restart_of_the_daemon(launcher: Launcher, how: str) -> None:
    for handle, cmd in (("good", "true"), ("bad", "sh -c 'exit 7'"), ("runs", "cat")):
        launcher.daemon.call("agent_launch", cmd=cmd, handle=handle)
    before = {each: launcher.is_in(each, "exited") for each in ("good", "bad")}
    launcher.daemon.call("term_run", name="good", cmd="false")
    getattr(launcher.daemon, how)()
    launcher.daemon.start("--port", "0", "--trust")

    def codes() -> list[int | None]:
        infos = [launcher.info(each) for each in ("good", "bad", "runs")]
        assert [each["state"] for each in infos] == ["exited"] * 3
        return [each["program"]["exit_code"] for each in infos]

    until(lambda: codes() == [0, 7, None], "the codes are known")
    assert launcher.info("bad")["since"][:19] <= before["bad"]["since"][:19]
    until(lambda: launcher.info("runs")["reason"] != "", "the reason is known")
    listed = launcher.daemon.cli("agent", "list").stdout.splitlines()
    assert "✅ exited (0)" in next(each for each in listed if each.startswith("good"))
    assert "🔴 exited (7)" in next(each for each in listed if each.startswith("bad"))


async def test_the_stream_of_agents_never_shows_a_launched_one_as_exited(
    launcher: Launcher,
) -> None:
    async with aegis.connect(launcher.daemon.root) as client, client.agents.follow() as news:
        await anext(news)
        launched = partial(launcher.daemon.call, "agent_launch", cmd="cat", handle="pm")
        await trio.to_thread.run_sync(launched)
        seen: list[str] = []
        while "running" not in seen and "needs_input" not in seen:
            value = await anext(news)
            agents = [value.agent] if hasattr(value, "agent") else getattr(value, "agents", [])
            seen += [each.state for each in agents if each.handle == "pm"]
    assert "exited" not in seen


@pytest.mark.long
@pytest.mark.parametrize(
    ("glyphs", "pause_s", "waits"),
    [("⠋⠙⠹⠸⠼⠴", 0.1, False), ("|/-\\", 0.1, False), ("◐◓◑◒", 0.4, False), ("●○", 0.1, True)],
)
async def test_a_spinner_is_work_and_a_blink_is_not(
    own_daemon: DaemonProcess, glyphs: str, pause_s: float, waits: bool
) -> None:
    (own_daemon.root / ".aegis.yaml").write_text("lifecycle: {idle_s: 5.0}\n")
    own_daemon.start("--port", "0", "--trust")
    # Where a machine stalls, glyphs come together, and what blinks looks like work for a while.
    seconds = 600 if waits else 11
    # As agents do, it looks for keys between its glyphs. One that only slept would be at work.
    program = (
        "import itertools, select, sys\n"
        "keys = select.epoll()\n"
        "keys.register(sys.stdin, select.EPOLLIN)\n"
        f"for glyph in itertools.islice(itertools.cycle({glyphs!r}), {round(seconds / pause_s)}):\n"
        "    sys.stdout.write(f'\\r{glyph} Working')\n"
        "    sys.stdout.flush()\n"
        f"    keys.poll({pause_s})\n"
    )
    file = own_daemon.root / "spin.py"
    file.write_text(program)
    async with aegis.connect(own_daemon.root) as client, client.agents.follow() as news:
        await anext(news)
        cmd = shlex.join([sys.executable, str(file)])
        launched = partial(own_daemon.call, "agent_launch", cmd=cmd, handle="pm")
        await trio.to_thread.run_sync(launched)
        states: list[str] = []
        while not {"exited", "needs_input"} & {*states}:
            value = await anext(news)
            agents = [value.agent] if hasattr(value, "agent") else getattr(value, "agents", [])
            states += [each.state for each in agents if each.handle == "pm"]
    assert ("needs_input" in states) is waits, states


def test_one_that_has_exited_leaves_its_place_to_another(own_daemon: DaemonProcess) -> None:
    (own_daemon.root / ".aegis.yaml").write_text("limits: {sessions: 2}\n")
    own_daemon.start("--port", "0", "--trust")
    launch = partial(own_daemon.call, "agent_launch")
    ended, running = launch(cmd="true")["handle"], launch(cmd="cat")["handle"]
    until(lambda: own_daemon.call("agent_show", handle=ended)["state"] == "exited", "it ends")
    launch(cmd="cat")
    assert "2 sessions are open" in str(own_daemon.refusal("agent_launch", cmd="cat"))
    for command in ("agent_restart", "agent_resume"):
        refusal = own_daemon.refusal(command, handle=ended)
        assert (refusal.code, "2 sessions are open" in str(refusal)) == ("unavailable", True)
    own_daemon.call("close", handle=running)
    own_daemon.call("agent_restart", handle=ended)


def test_a_launch_that_fails_leaves_nothing_behind(launcher: Launcher) -> None:
    launcher.daemon.call("term_spawn", name="taken")
    refusal = launcher.daemon.refusal("agent_launch", cmd="bash", handle="taken")
    assert "there is a terminal 'taken'" in str(refusal)
    refusal = launcher.daemon.refusal("agent_launch", cmd="bash\0", handle="nul")
    assert "NUL" in str(refusal)
    assert launcher.daemon.call("list_sessions")["result"] == []
    assert [each["name"] for each in launcher.daemon.call("term_list")["result"]] == ["taken"]


def test_it_has_no_transcript_turns_or_settings(launcher: Launcher) -> None:
    handle = launcher.launch()
    for command, arguments, words in (
        ("session_read", {}, "has no transcript; read its terminal"),
        ("agent_set", {"model": "x"}, "it has no profile"),
        ("agent_fork", {}, "whose conversation is not known"),
    ):
        refusal = launcher.daemon.refusal(command, handle=handle, **arguments)
        assert words in str(refusal), command


def test_an_interrupt_is_ctrl_c(launcher: Launcher) -> None:
    handle = launcher.daemon.call("agent_launch", cmd="sleep 600")["handle"]
    until(lambda: launcher.info(handle)["program"]["source"] == "tty", "it is seen to sleep")
    assert launcher.info(handle)["state"] == "running"
    launcher.daemon.call("interrupt", handle=handle)
    assert launcher.is_in(handle, "exited")["program"]["exit_code"] == 130
    refusal = launcher.daemon.refusal("interrupt", handle=handle)
    assert "has no process" in str(refusal)


def test_a_line_that_somebody_left_at_the_shell_holds_no_launch_up(launcher: Launcher) -> None:
    handle = launcher.launch()
    launcher.is_ready(handle)
    launcher.order(handle, "exit 3")
    launcher.is_in(handle, "exited")
    launcher.types(handle, "rm -rf half")

    def is_typed() -> bool:
        [listed] = launcher.daemon.call("term_list")["result"]
        return listed["state"] == "idle" and listed["typing"] is not None

    until(is_typed, "the line is seen")
    began = time.monotonic()
    launcher.daemon.call("agent_restart", handle=handle)
    assert time.monotonic() - began < BUSY_S
    launcher.is_ready(handle)
    records = launcher.daemon.call("term_read", name=handle, since_seq=-1)["result"]
    assert not any("half" in (each["cmd"] or "") for each in records)


@pytest.mark.long
def test_keys_that_come_while_it_is_launched_hold_nothing_up(own_daemon: DaemonProcess) -> None:
    launcher = Launcher(own_daemon, faults="agent.launch.before@1=delay:2")

    def at_prompt() -> bool:
        states = [each["state"] for each in own_daemon.call("term_list")["result"]]
        return states in (["idle"], ["running"])  # a busy machine may miss the first

    cmd = shlex.join([sys.executable, str(TUI), "reports"])
    launching = own_daemon.send("agent_launch", cmd=cmd, handle="pm")
    until(at_prompt, "its shell waits for the command")
    launcher.types("pm", "y")
    began = time.monotonic()
    assert launching.result()["handle"] == "pm"
    assert time.monotonic() - began < BUSY_S
    launcher.is_ready("pm")


def test_a_message_to_it_waits_in_its_inbox_and_is_announced(launcher: Launcher) -> None:
    handle = launcher.launch()
    assert launcher.info(handle)["waiting"] == 0
    launcher.is_ready(handle)
    # It reports that it is ready before it draws its prompt.
    until(lambda: ">" in launcher.screen(handle), "its prompt is drawn")
    shown = launcher.screen(handle)
    receipt = launcher.daemon.call("handoff", target_handle=handle, context="hello")
    assert receipt["status"] == "queued"
    assert launcher.info(handle)["waiting"] == 1
    found = launcher.daemon.call("inbox_read", from_handle=handle)
    assert [each["body"] for each in found["messages"]] == ["hello"]
    assert launcher.screen(handle) == shown, "nothing is typed"
    launcher.daemon.call("inbox_read", from_handle=handle, after=found["next"])
    assert launcher.info(handle)["waiting"] == 0


async def test_the_stream_of_agents_has_a_change_when_a_message_arrives(
    launcher: Launcher,
) -> None:
    handle = await trio.to_thread.run_sync(launcher.launch)
    async with aegis.connect(launcher.daemon.root) as client, client.agents.follow() as agents:
        waiting = 0
        await client.inboxes.handoff(handle, "hello")
        with trio.fail_after(GUARD_S):
            while not waiting:
                value = await anext(agents)
                assert not isinstance(value, aegis.Gap)
                found = value.agents if isinstance(value, AgentsItem) else [value.agent]
                waiting = sum(each.waiting for each in found if each.handle == handle)
    assert waiting == 1


def test_its_changes_are_a_stream_and_a_line_of_the_list(launcher: Launcher) -> None:
    handle = launcher.launch(handle="pm")
    launcher.asks("pm", "make")
    listed = launcher.daemon.cli("agent", "list").stdout
    assert "🟡 needs_input" in listed
    assert "permission: make" in listed
    assert "🟡 needs_input" in launcher.daemon.cli("status").stdout
    shown = launcher.daemon.cli("agent", "show", handle).stdout
    assert "judged by         report" in shown
    launcher.types("pm", "n")
    launcher.is_ready("pm")
    launcher.order("pm", "exit 0")
    launcher.is_in("pm", "exited")
    assert "✅ exited (0)" in launcher.daemon.cli("agent", "list").stdout


def test_the_cli_launches_a_program_with_its_own_options(launcher: Launcher) -> None:
    words = ("agent", "launch", "--terminal", "--handle", "sh", "--", "bash", "--norc", "-i")
    done = launcher.daemon.cli(*words)
    assert (done.returncode, done.stdout) == (0, "sh\n")
    [verb, terminal] = re.findall(r"aegis-actors (.+) (\S+)$", done.stderr.strip())[0]
    assert terminal == "sh"
    assert launcher.daemon.cli(*verb.split(), "--help").returncode == 0
    assert launcher.info("sh")["program"]["command"] == "bash --norc -i"
    for bad, why in (
        (("--terminal",), "takes a PROGRAM after --"),
        (("--terminal", "--resume", "sh"), "no --resume"),
        (("a", "b", "c"), "put the prompt into quotes"),
    ):
        done = launcher.daemon.cli("agent", "launch", *bad)
        assert done.returncode == 2
        assert why in done.stderr


def test_hooks_of_claude_code_add_the_tool(launcher: Launcher) -> None:
    bin_directory = launcher.daemon.root / "bin"
    bin_directory.mkdir()
    claude = bin_directory / "claude"
    # It sends its hook with the settings that it is given, as Claude Code does, and then waits.
    event = {
        "hook_event_name": "PermissionRequest",
        "session_id": "s",
        "tool_name": "Bash",
        "tool_input": {"command": "make deploy"},
    }
    claude.write_text(
        f"#!{sys.executable}\nimport json, subprocess, sys\n"
        "hooks = json.load(open(sys.argv[sys.argv.index('--settings') + 1]))['hooks']\n"
        "command = hooks['PermissionRequest'][0]['hooks'][0]['command']\n"
        f"subprocess.run(['sh', '-c', command], input={json.dumps(event)!r}.encode())\n"
        "input('Allow? ')\n"
    )
    claude.chmod(0o755)
    handle = launcher.daemon.call("agent_launch", cmd=f"{claude} --model x")["handle"]
    until(lambda: (launcher.need(handle) or {}).get("tool") == "Bash", "the hook is read")
    need = launcher.need(handle)
    assert need is not None
    assert need["tool_input"] == '{"command": "make deploy"}'
    assert launcher.info(handle)["program"]["command"] == f"{claude} --model x"
