"""The daemon as a process: how it starts, what it leaves on disk, how it ends, and after a kill."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp.shared.exceptions import MCPError

from aegis.lifetime import END_TERMINALS_S
from aegis.ready_text import BEYOND_LOOPBACK, NODES_BEYOND_LOOPBACK, ready_text
from aegis.settings import DEFAULT_PORT
from tests.e2e.conftest import Connect
from tests.e2e.harness import (
    GUARD_S,
    STOP_WAS_SLOW,
    DaemonProcess,
    Gate,
    LiveTerminal,
    Pending,
)
from tests.e2e.hosts import until
from tests.e2e.window import window

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]


@pytest.fixture(autouse=True)
def the_installed_program(own_daemon: DaemonProcess) -> None:
    """Start the program as it is installed: here its own start and end are tested."""
    own_daemon.is_installed = True


SIGNALS_OF_LIBC = 0b11 << 31
"""Signals 32 and 33. Some launchers ignore one of them, and no program can change that by libc."""


def spawn(daemon: DaemonProcess, name: str, **arguments: object) -> LiveTerminal:
    return LiveTerminal(daemon, name, daemon.call("term_spawn", name=name, **arguments))


def test_a_daemon_imports_what_mcp_needs_before_anybody_asks(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    maps = Path(f"/proc/{own_daemon.process.pid}/maps")
    until(lambda: "pydantic_core" in maps.read_text())


def test_a_second_daemon_of_one_root_is_refused_and_told_who_holds_it(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    second = own_daemon.cli("up", "--port", "0")
    assert (second.returncode, second.stdout) == (1, "")
    [line] = second.stderr.splitlines()
    assert f"(pid {own_daemon.process.pid})" in line
    assert "aegis-actors down" in line
    assert own_daemon.call("status")["pid"] == own_daemon.process.pid


def test_it_says_how_to_connect_and_tells_no_secret(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    endpoint, banner = own_daemon.endpoint, own_daemon.banner
    session = own_daemon.call("session_new", handle="alice")["url"]
    assert endpoint.url in banner
    assert "claude mcp add" in banner
    assert "session new" in banner
    terminal = spawn(own_daemon, "build")
    environment = terminal.run("env; cat /proc/self/environ /proc/$PPID/environ")["stdout"]
    words = terminal.run(f"tr '\\0' ' ' </proc/{own_daemon.process.pid}/cmdline")["stdout"]
    for secret in (endpoint.token, session.rpartition("/")[2]):
        assert len(secret) >= 16
        for text in (banner, environment, words, own_daemon.log):
            assert secret not in text


def test_what_it_says_fits_a_narrow_window() -> None:
    said = ready_text(
        Path("/tmp/shop"),
        "http://127.0.0.1:8420",
        program="aegis-actors",
        is_background=False,
        hosts=None,
        is_open=False,
        is_open_to_hosts=False,
    )
    assert max(map(len, f"{said}\n{BEYOND_LOOPBACK}\n{NODES_BEYOND_LOOPBACK}".splitlines())) < 80


def test_it_says_what_another_address_than_loopback_means(own_daemon: DaemonProcess) -> None:
    own_daemon.start("--port", "0")
    assert "WARNING" not in own_daemon.banner
    assert own_daemon.stop() == 0
    own_daemon.start("--host", "0.0.0.0", "--port", "0")
    assert "WARNING" in own_daemon.banner
    assert "nothing is encrypted" in own_daemon.banner
    assert "node.key" not in own_daemon.banner


@pytest.mark.parametrize(("host", "is_open"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_it_says_what_another_address_than_loopback_means_for_nodes(
    own_daemon: DaemonProcess, host: str, is_open: bool
) -> None:
    own_daemon.start("--port", "0", "--nodes", f"{host}:0")
    assert ("WARNING" in own_daemon.banner) is is_open
    assert ("node.key runs commands as you" in own_daemon.banner) is is_open


def test_the_endpoint_file_is_private_whole_and_removed_at_the_end(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    path = own_daemon.state.endpoint
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    document = json.loads(path.read_text())
    url = document["url"]
    names = {"version", "root", "pid", "url", "mcp", "ws", "socket", "token", "mac"}
    assert document.keys() == names
    assert document["root"] == str(own_daemon.root)
    assert (document["version"], document["pid"]) == (1, own_daemon.process.pid)
    assert (document["mcp"], document["ws"]) == (f"{url}/mcp", f"ws{url[4:]}/ws")
    assert own_daemon.stop() == 0
    assert not path.exists()
    gone = own_daemon.cli("status")
    assert gone.returncode == 1
    assert "start one with: aegis-actors up" in gone.stderr


def test_what_it_keeps_is_readable_by_its_user_alone(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    terminal = spawn(own_daemon, "build")
    terminal.subscribe("alice")
    own_daemon.call("session_new", handle="bob")
    terminal.keys("echo typed\r")
    terminal.run("umask 0; echo run")
    directory = own_daemon.state.directory
    modes = {
        path: stat.S_IMODE(path.lstat().st_mode) for path in [directory, *directory.rglob("*")]
    }
    assert terminal.directory / "ledger.jsonl" in modes
    open_to_others = {
        str(path.relative_to(directory)): oct(mode)
        for path, mode in modes.items()
        if mode != (0o700 if path.is_dir() else 0o600)
        # The shell writes these, with the umask of its user, for the moment until they are read.
        and not path.name.startswith("typed.")
    }
    assert open_to_others == {}


def by_down(daemon: DaemonProcess) -> None:
    done = daemon.cli("down")
    assert (done.returncode, done.stdout) == (0, f"stopped (pid {daemon.process.pid})\n")


STOPS: dict[str, Callable[[DaemonProcess], object]] = {
    "SIGTERM": lambda daemon: daemon.process.send_signal(signal.SIGTERM),
    "SIGINT": lambda daemon: daemon.process.send_signal(signal.SIGINT),
    "SIGHUP": lambda daemon: daemon.process.send_signal(signal.SIGHUP),
    "down": by_down,
}


@pytest.mark.long
@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_it_stops_in_order_with_everything_under_way(
    own_daemon: DaemonProcess, gate: Gate, stop: Callable[[DaemonProcess], object]
) -> None:
    own_daemon.start()
    terminals = [spawn(own_daemon, f"t{number}") for number in range(4)]
    running: list[Pending] = []
    for terminal in terminals:
        terminal.run("echo before")
        running.append(terminal.start(f"echo begun; {gate.reach}; nohup sleep 1000"))
        gate.wait_reached()
    queued = terminals[0].start("echo never").has_arrived()
    timed_out = terminals[1].refusal("echo never", timeout=0.1)
    waiting = own_daemon.send("inbox_wait", from_handle="alice", timeout=1000).has_arrived()
    stop(own_daemon)
    answers = [each.result_of_stop() for each in running]
    others = {each.outcome() for each in (queued, waiting)}
    assert timed_out.code == "busy"
    assert own_daemon.wait_stopped() == 0
    own_daemon.check_left_nothing()
    gave_up = STOP_WAS_SLOW in own_daemon.log
    assert gave_up or None not in answers
    assert others <= {("error", "unavailable"), *([("lost", "")] if gave_up else [])}
    own_daemon.start()
    for terminal, answer in zip(terminals, answers, strict=True):
        before, record = terminal.records()
        assert before["stdout"] == "before\n"
        assert (record["killed_by_restart"], record["end"]) == (True, "killed_by_restart")
        assert (record["exit"], record["seq"]) == (None, 1)
        assert record["stdout"].startswith("begun\n")
        assert answer in (record, None)


def test_a_daemon_whose_window_is_closed_stops_in_order(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    with window(own_daemon, "up", "--port", "0") as opened:
        opened.wait_for(b"aegis-actors down")
        terminal = spawn(own_daemon, "build")
        running = terminal.start(f"{gate.reach}; nohup sleep 1000")
        gate.wait_reached()
        began = time.monotonic()
        opened.hang_up()
        answer = running.result_of_stop()
        assert opened.process.wait(GUARD_S) == 0
        took_s = time.monotonic() - began
    # Whether it gave up waiting for the terminal would be in its log, which was the window.
    assert answer is not None or took_s >= END_TERMINALS_S
    assert own_daemon.shell_processes() == []
    assert not own_daemon.state.endpoint.exists()
    own_daemon.start()
    [record] = terminal.records()
    assert (record["end"], record["killed_by_restart"]) == ("killed_by_restart", True)
    assert answer in (record, None)


def test_a_daemon_that_is_to_outlive_its_window_does(own_daemon: DaemonProcess) -> None:
    own_daemon.launch("--port", "0", tracer=["nohup"])
    assert own_daemon.wait_ready()
    own_daemon.process.send_signal(signal.SIGHUP)
    assert spawn(own_daemon, "build").run("echo here")["stdout"] == "here\n"


def test_a_client_in_a_locale_without_the_letters_of_the_root_finds_its_daemon(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "größer 日本"
    directory.mkdir()
    daemon = DaemonProcess(directory)
    try:
        daemon.start()
        daemon.variables = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        done = daemon.cli("status", "--json")
        assert json.loads(done.stdout)["pid"] == daemon.process.pid
    finally:
        assert daemon.stop() == 0


@pytest.mark.long
def test_a_terminal_that_does_not_end_in_time_holds_up_no_stop_and_loses_no_record(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    own_daemon.start(faults="shell.end.before@1=delay:1000")
    terminal = spawn(own_daemon, "build")
    running = terminal.start(f"setsid sleep 1000 & {gate.reach}; sleep 1000")
    gate.wait_reached()
    assert own_daemon.stop() == 0
    assert own_daemon.shell_processes() == []
    assert running.outcome()[0] == "lost"
    own_daemon.start()
    [record] = terminal.records()
    assert (record["end"], record["killed_by_restart"]) == ("killed_by_restart", True)
    assert own_daemon.stop() == 0  # the fixture would take what the first stop logged for a fault


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_of_mcp_gets_its_record_when_the_daemon_stops(
    own_daemon: DaemonProcess, connect_mcp: Connect, gate: Gate, mode: str
) -> None:
    own_daemon.start()
    spawn(own_daemon, "build")
    results: list[Any] = []
    with trio.fail_after(GUARD_S):
        async with connect_mcp(own_daemon, mode, "alice") as client, trio.open_nursery() as nursery:
            await client.list_tools()  # the client holds results against the schemas in it

            async def run() -> None:
                arguments = {"name": "build", "cmd": f"echo begun; {gate.hold}"}
                try:
                    results.append(await client.call_tool("aegis_term_run", arguments))
                except MCPError as error:
                    results.append(error)

            nursery.start_soon(run)
            await trio.to_thread.run_sync(gate.wait_reached)
            own_daemon.process.send_signal(signal.SIGTERM)
    assert own_daemon.wait_stopped() == 0
    own_daemon.check_left_nothing()
    [result] = results
    if STOP_WAS_SLOW not in own_daemon.log:
        assert not isinstance(result, MCPError), result
        assert not result.is_error
        assert result.structured_content["killed_by_restart"] is True
        assert result.structured_content["stdout"] == "begun\n"


IGNORING = ("sh", "-c", 'trap "" HUP INT QUIT TERM USR1; exec "$@"', "sh")
"""As ``nohup`` starts a program, and a script that goes on beside it."""


def test_started_to_ignore_signals_it_ignores_them_and_its_shells_do_not(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.launch(tracer=IGNORING)
    assert own_daemon.wait_ready()
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        own_daemon.process.send_signal(number)
    terminal = spawn(own_daemon, "t0")
    shown = terminal.run("grep -E '^Sig(Ign|Blk):' /proc/self/status")["stdout"].split()
    masks = [int(mask, 16) & ~SIGNALS_OF_LIBC for mask in shown[1::2]]
    assert masks == [0, 0], shown
    for name in ("HUP", "INT", "QUIT", "TERM", "USR1"):
        ended = terminal.run(f"sh -c 'kill -{name} $$; echo it goes on'")
        assert (ended["exit"], "goes on" in ended["stdout"]) == (
            128 + signal.Signals[f"SIG{name}"],
            False,
        )


def test_it_stops_while_a_terminal_still_starts(own_daemon: DaemonProcess, gate: Gate) -> None:
    (own_daemon.home / ".bashrc").write_text(f"{gate.reach}; sleep 1000\n")
    own_daemon.start()
    spawning = own_daemon.send("term_spawn", name="slow")
    gate.wait_reached()
    assert own_daemon.stop() == 0
    own_daemon.check_left_nothing()
    # "lost": the machine is so busy that the answer misses the moment that a stop gives to clients.
    assert spawning.outcome()[0] in ("reply", "error", "lost")


def test_a_second_signal_does_not_disturb_the_stop(own_daemon: DaemonProcess, gate: Gate) -> None:
    own_daemon.start()
    running = spawn(own_daemon, "build").start(f"trap '' HUP TERM; {gate.reach}; sleep 1000")
    gate.wait_reached()
    own_daemon.process.send_signal(signal.SIGTERM)
    own_daemon.process.send_signal(signal.SIGINT)
    answer = running.result_of_stop()
    while own_daemon.is_running:  # whatever moment of its end a signal meets
        own_daemon.process.send_signal(signal.SIGTERM)
        own_daemon.process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            own_daemon.process.wait(0.01)
    assert own_daemon.wait_stopped() == 0
    own_daemon.check_left_nothing()
    if answer is None:
        assert STOP_WAS_SLOW in own_daemon.log
    else:
        assert answer["killed_by_restart"] is True


def test_after_a_kill_the_command_in_flight_is_recorded_at_the_next_start(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    own_daemon.start()
    terminal = spawn(own_daemon, "build")
    first = terminal.run("echo first", from_handle="alice")
    running = terminal.start(
        f"nohup setsid sleep 1000 & echo begun; {gate.hold}", from_handle="bob"
    )
    gate.wait_reached()
    assert terminal.refusal("echo never", timeout=0.1).code == "busy"
    terminal.has_printed("begun")
    own_daemon.kill()
    assert running.outcome()[0] == "lost"
    own_daemon.start()
    assert not any("sleep 1000" in each for each in own_daemon.shell_processes("build/"))
    record = terminal.run("echo again")
    [before, killed, after] = terminal.records()
    assert (before, after) == (first, record)
    assert (killed["seq"], killed["writer"], killed["cmd"]) == (1, "agent:bob", killed["cmd"])
    assert killed["cmd"].startswith("nohup setsid")
    assert (killed["killed_by_restart"], killed["end"]) == (True, "killed_by_restart")
    assert (killed["exit"], killed["duration_s"]) == (None, None)
    assert killed["finished_at"] > killed["started_at"]
    assert "begun\n" in killed["stdout"]
    assert (record["seq"], record["stdout"]) == (2, "again\n")
    assert record["raw_start"] >= killed["raw_end"]


def test_after_a_kill_what_was_shown_is_still_there(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    terminal = spawn(own_daemon, "build")
    wakes = terminal.subscribe("alice")
    records = [terminal.run(f"echo {number}") for number in range(10)]
    message = wakes.next()
    terminal.wait_prompt()  # so the next one is typed at once
    timed_out = terminal.run("echo so far; sleep 1000", timeout=0.2)
    terminal.has_printed("so far")
    own_daemon.kill()
    own_daemon.start()
    assert [each for each in terminal.read(last_n=12) if each["seq"] < 10] == records
    inbox = own_daemon.call("inbox_read", from_handle="alice")
    assert inbox["messages"][0] == message
    terminal.run("true")
    [last, _] = terminal.read(last_n=2)
    assert (last["seq"], last["timed_out"], last["killed_by_restart"]) == (
        timed_out["seq"],
        True,
        True,
    )
    assert last["stdout"] == "so far\n"


def test_after_a_kill_keys_sessions_and_port_are_the_same(own_daemon: DaemonProcess) -> None:
    own_daemon.start()  # not on the usual port: daemons of other tests may take that meanwhile
    before, session = own_daemon.endpoint, own_daemon.call("session_new", handle="alice")
    own_daemon.kill()
    stale = own_daemon.cli("status")
    assert (stale.returncode, "start one with: aegis-actors up" in stale.stderr) == (1, True)
    own_daemon.start("--log-level", "info")
    after = own_daemon.endpoint
    assert after._replace(pid=before.pid) == before
    assert own_daemon.call("session_new", handle="Alice")["url"] == session["url"]
    assert own_daemon.stop() == 0
    own_daemon.start("--log-level", "info")
    assert own_daemon.endpoint.url == before.url


def test_a_taken_default_port_falls_back_to_another_that_is_remembered(
    own_daemon: DaemonProcess,
) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", DEFAULT_PORT))
        except OSError:
            pytest.skip(f"port {DEFAULT_PORT} is taken by somebody else")
        taken.listen()
        own_daemon.start("--log-level", "info")
        url = own_daemon.endpoint.url
        assert not url.endswith(f":{DEFAULT_PORT}")
        assert url in own_daemon.banner
    assert own_daemon.stop() == 0
    own_daemon.start("--log-level", "info")
    assert own_daemon.endpoint.url == url


def test_a_port_that_was_asked_for_and_is_taken_is_refused(own_daemon: DaemonProcess) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = own_daemon.cli("up", "--port", str(port))
    assert refused.returncode == 1
    assert refused.stdout == ""
    [line] = [line for line in refused.stderr.splitlines() if line.startswith("aegis-actors: ")]
    assert f"127.0.0.1:{port}" in line
    assert "Traceback" not in refused.stderr
    assert not own_daemon.state.endpoint.exists()


def test_a_state_of_a_newer_version_is_refused(own_daemon: DaemonProcess) -> None:
    own_daemon.state.directory.mkdir(parents=True)
    (own_daemon.state.directory / "version").write_text("2\n")
    refused = own_daemon.cli("up", "--port", "0")
    assert refused.returncode == 1
    [line] = refused.stderr.splitlines()
    assert "newer" in line
