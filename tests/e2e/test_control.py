"""Signals to who is in front, and the size of the window, through a real daemon."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors import AskError
from actors.faults import RUNTIME, Crash, Plan, armed
from aegis.protocol.control import ResizeTerminal
from aegis.protocol.terminals import ListTerminals, RunCommand, SendKeys
from tests.e2e.conftest import Connect, NewTerminal
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal
from tests.e2e.inside import daemon_inside

pytestmark = [
    pytest.mark.real,
    # The client leaves generators to the collector when it closes a stream.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]


def send(terminal: LiveTerminal, signal: str, **arguments: object) -> None:
    done = terminal.daemon.call("term_signal", name=terminal.name, signal=signal, **arguments)
    assert done == {"ok": True}


def resize(terminal: LiveTerminal, cols: int, rows: int) -> dict[str, Any]:
    return terminal.daemon.call("term_resize", name=terminal.name, cols=cols, rows=rows)


@pytest.mark.parametrize(
    ("signal", "number"),
    [("INT", 2), ("SIGTERM", 15), ("HUP", 1), ("SIGKILL", 9), ("QUIT", 3), ("USR1", 10)],
)
def test_a_signal_ends_the_command_in_front_and_its_record_says_so(
    terminal: LiveTerminal, gate: Gate, signal: str, number: int
) -> None:
    running = terminal.start(f"(ulimit -c 0; {gate.reach}; exec sleep 1000)")
    gate.wait_reached()
    send(terminal, signal)
    record = running.result()
    assert (record["exit"], record["end"]) == (128 + number, "exited")
    assert terminal.run("echo on")["stdout"] == "on\n"
    assert terminal.described()["restarts"] == 0


def test_a_signal_reaches_a_program_for_which_ctrl_c_is_only_a_character(
    terminal: LiveTerminal, gate: Gate
) -> None:
    running = terminal.start(f"(stty raw -echo; {gate.reach}; exec sleep 1000)")
    gate.wait_reached()
    terminal.keys("\x03")
    send(terminal, "INT")
    assert running.result()["exit"] == 130


def test_what_was_stopped_goes_on_with_cont(
    terminal: LiveTerminal, gate: Gate, tmp_path: Path
) -> None:
    going_on = Gate(tmp_path)
    # It waits by itself: one that waits for a child ignores a Ctrl-C if the child has just ended.
    script = f'trap "{going_on.reach}" CONT; {gate.hold}'
    running = terminal.start(f"bash -c '{script}'")
    gate.wait_reached()
    send(terminal, "TSTP")
    assert running.result()["exit"] == 128 + 20
    again = terminal.start("fg")
    going_on.wait_reached()  # the shell sends it one, and has put it in front before
    send(terminal, "CONT")
    going_on.wait_reached()
    terminal.keys("\x03")
    assert again.result()["exit"] == 130
    going_on.close()


def test_int_at_the_prompt_drops_the_line(terminal: LiveTerminal) -> None:
    terminal.keys("echo half ", from_handle="ann")
    busy = terminal.refusal("echo whole", timeout=0.1)
    assert (busy.code, "agent:ann" in str(busy)) == ("busy", True)
    send(terminal, "INT", from_handle="bob")
    assert terminal.run("echo whole")["stdout"] == "whole\n"
    assert [each["cmd"] for each in terminal.records()] == ["echo whole"]


@pytest.mark.parametrize("signal", ["TERM", "QUIT", "TSTP", "WINCH"])
def test_what_a_shell_ignores_at_its_prompt_does_nothing(
    terminal: LiveTerminal, signal: str
) -> None:
    send(terminal, signal)
    assert terminal.run("echo on")["stdout"] == "on\n"
    assert terminal.described()["restarts"] == 0


@pytest.mark.parametrize("signal", ["KILL", "HUP"])
def test_a_shell_that_is_ended_at_its_prompt_is_followed_by_a_fresh_one(
    terminal: LiveTerminal, signal: str
) -> None:
    pid = terminal.described()["pid"]
    send(terminal, signal)
    while (record := terminal.run("echo fresh"))["end"] == "shell_exit":
        pass  # it was typed before the shell was seen gone
    assert (record["stdout"], record["exit"]) == ("fresh\n", 0)
    now = terminal.described()
    assert now["restarts"] == 1
    assert now["pid"] != pid


def test_a_signal_while_the_shell_reads_a_submission_does_not_cut_it(
    terminal: LiveTerminal,
) -> None:
    text = "x" * 200_000
    running = terminal.start(f"printf %s {text} | wc -c; sleep 1000").has_arrived()
    while not terminal.records():  # one that comes between two programs does nothing
        send(terminal, "INT")
        terminal.daemon.call("term_wait", name=terminal.name, timeout=2)
    record = running.result()
    assert record["exit"] == 130
    assert record["cmd"] == f"printf %s {text} | wc -c; sleep 1000"


@pytest.mark.parametrize("signal", ["", "9", "int", "SIGSIGINT", "CHLD", "INT ", "INT\n"])
def test_a_signal_that_is_not_offered_is_refused_with_the_list(
    terminal: LiveTerminal, signal: str
) -> None:
    error = terminal.daemon.refusal("term_signal", name=terminal.name, signal=signal)
    assert (error.code, "INT, TERM, HUP, KILL" in str(error)) == ("invalid_request", True)


def test_a_terminal_without_a_shell_cannot_be_signalled(new_terminal: NewTerminal) -> None:
    terminal = new_terminal("exit 3")
    error = terminal.daemon.refusal("term_signal", name=terminal.name, signal="INT")
    assert error.code == "unavailable"
    terminal.close()
    error = terminal.daemon.refusal("term_signal", name=terminal.name, signal="INT")
    assert (error.code, "is closed" in str(error)) == ("unavailable", True)


def test_a_new_size_reaches_the_shell_its_program_and_the_list(
    terminal: LiveTerminal, gate: Gate
) -> None:
    running = terminal.start(f"trap 'stty size; trap - WINCH' WINCH; {gate.hold}; {gate.hold}")
    gate.wait_reached()
    info = resize(terminal, 120, 40)
    assert (info["cols"], info["rows"]) == (120, 40)
    gate.open()
    gate.wait_reached()
    gate.open()
    assert running.result()["stdout"] == "40 120\n"
    assert terminal.run("echo $LINES $COLUMNS; stty size")["stdout"] == "40 120\n40 120\n"
    assert (terminal.described()["cols"], terminal.described()["rows"]) == (120, 40)


ENDS: dict[str, Callable[[DaemonProcess], object]] = {
    "kill -9": DaemonProcess.kill,
    "SIGTERM": DaemonProcess.stop,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_new_size_stays_for_fresh_shells_and_across_a_restart_of_the_daemon(
    own_daemon: DaemonProcess, end: Callable[[DaemonProcess], object]
) -> None:
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    resize(terminal, 100, 30)
    resize(terminal, 101, 31)
    terminal.run("exit")
    assert terminal.run("stty size")["stdout"] == "31 101\n"
    end(own_daemon)
    own_daemon.start()
    again = own_daemon.terminal("build")
    assert (again.info["cols"], again.info["rows"]) == (101, 31)
    assert again.run("stty size")["stdout"] == "31 101\n"


@pytest.mark.parametrize("actor", ["Shell", "Terminal"])
async def test_a_new_size_stays_when_an_actor_crashes(tmp_path: Path, actor: str) -> None:
    async with daemon_inside(tmp_path) as daemon:
        await daemon.spawn("build")
        size = ResizeTerminal(name="build", cols=100, rows=30)
        assert (await daemon.ask("build", size)).cols == 100
        plan = Plan({(f"actor.receive.before[{actor}]", 1): Crash()})
        with armed(plan, RUNTIME), contextlib.suppress(AskError):
            keys = SendKeys(name="build", keys="\x03")
            await daemon.front("build").ask(keys, timeout=GUARD_S)
        ran = RunCommand(name="build", cmd="stty size")
        while (record := await daemon.ask("build", ran)).end == "killed_by_restart":
            pass  # it was given to the shell that crashed
        assert record.stdout == "30 100\n"
        infos = (await daemon.directory.ask(ListTerminals(), timeout=GUARD_S)).result
        assert [(info.rows, info.cols) for info in infos] == [(30, 100)]


@pytest.mark.parametrize("size", [(1, 24), (80, 0), (1001, 24), (80, 1001), (-1, 24)])
def test_a_size_out_of_bounds_is_refused(terminal: LiveTerminal, size: tuple[int, int]) -> None:
    error = terminal.daemon.refusal("term_resize", name=terminal.name, cols=size[0], rows=size[1])
    assert (error.code, "must be from" in str(error)) == ("invalid_request", True)
    assert terminal.run("stty size")["stdout"] == "24 80\n"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_agent_signals_and_resizes(
    daemon: DaemonProcess, terminal: LiveTerminal, connect_mcp: Connect, mode: str, handle: str
) -> None:
    async with connect_mcp(daemon, mode, handle) as client:
        sized = await client.call_tool(
            "aegis_term_resize", {"name": terminal.name, "cols": 90, "rows": 20}
        )
        assert sized.structured_content is not None
        assert sized.structured_content["cols"] == 90
        done = await client.call_tool(
            "aegis_term_signal", {"name": terminal.name, "signal": "WINCH"}
        )
        assert done.structured_content == {"ok": True}


def test_a_size_that_the_disk_refuses_is_not_set(own_daemon: DaemonProcess, tmp_path: Path) -> None:
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    terminal.run("true")
    meta = terminal.directory / "meta.json"
    kept = meta.read_bytes()
    meta.unlink()
    meta.mkdir()
    (meta / "in-the-way").touch()
    error = own_daemon.refusal("term_resize", name="build", cols=100, rows=30)
    assert error.code == "storage"
    assert terminal.described()["cols"] == 80
    assert terminal.run("stty size")["stdout"] == "24 80\n"
    (meta / "in-the-way").unlink()
    meta.rmdir()
    meta.write_bytes(kept)
    assert resize(terminal, 100, 30)["cols"] == 100
