"""A real daemon with a configuration: what holds for callers that say nothing."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from shutil import which

import pytest

import aegis
from aegis.state.root import CONFIG_NAME
from tests.e2e.conftest import Connect
from tests.e2e.harness import DaemonProcess, LiveTerminal
from tests.resources.waiting import until

pytestmark = [
    pytest.mark.real,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

RAW_LOG_BYTES = 65_536

needs_dash = pytest.mark.skipif(which("dash") is None, reason="dash is not installed")


def configure(daemon: DaemonProcess, text: str) -> Path:
    path = daemon.root / CONFIG_NAME
    path.write_text(text)
    return path


@needs_dash
def test_a_spawn_without_arguments_is_as_configured(own_daemon: DaemonProcess) -> None:
    configure(own_daemon, "terminals:\n  shell: dash\n  cols: 101\n  rows: 31\n")
    own_daemon.start("--port", "0", "--trust")
    plain = own_daemon.call("term_spawn", name="plain")
    assert (plain["cols"], plain["rows"]) == (101, 31)
    assert Path(plain["shell"]).name == "dash"
    size = LiveTerminal(own_daemon, "plain", plain).run("stty size")["stdout"]
    assert size == "31 101\n"
    given = own_daemon.call("term_spawn", name="given", shell="bash", cols=90, rows=20)
    assert (given["cols"], given["rows"]) == (90, 20)
    assert Path(given["shell"]).name == "bash"
    half = own_daemon.call("term_spawn", name="half", rows=20)
    assert (half["cols"], half["rows"], half["shell"]) == (101, 20, plain["shell"])
    own_daemon.call("workspace_create", workspace="w")
    opened = own_daemon.call("shell_open", workspace="w")
    assert (opened["cols"], opened["rows"]) == (101, 31)
    [inside] = [
        each
        for each in own_daemon.call("term_list")["result"]
        if each["name"] == opened["shell_id"]
    ]
    assert inside["shell"] == plain["shell"]


def test_a_terminal_comes_back_as_it_was_and_a_new_one_as_configured_now(
    own_daemon: DaemonProcess,
) -> None:
    configure(own_daemon, "terminals: {cols: 101}")
    own_daemon.start()
    own_daemon.call("term_spawn", name="old")
    configure(own_daemon, "terminals: {cols: 102}")
    assert own_daemon.call("term_spawn", name="same")["cols"] == 101
    assert own_daemon.stop() == 0
    own_daemon.start()
    assert own_daemon.call("term_spawn", name="new")["cols"] == 102
    sizes = {each["name"]: each["cols"] for each in own_daemon.call("term_list")["result"]}
    assert sizes == {"old": 101, "same": 101, "new": 102}


def test_a_call_without_a_timeout_waits_as_configured(own_daemon: DaemonProcess) -> None:
    configure(own_daemon, "terminals: {timeout_s: 0.2}")
    own_daemon.start()
    name = own_daemon.call("term_spawn", name="build")["name"]
    record = own_daemon.call("term_run", name=name, cmd="sleep 30")
    assert (record["timed_out"], record["end"]) == (True, None)
    assert own_daemon.call("term_wait", name=name)["reason"] == "timeout"
    [outcome] = own_daemon.call("term_broadcast", names=[name], cmd="true")["result"]
    assert "busy" in outcome["error"]
    own_daemon.call("workspace_create", workspace="w")
    done = own_daemon.call("workspace_exec", workspace="w", command="sleep 30")
    assert done["timed_out"] is True
    own_daemon.call("term_signal", name=name, signal="INT")
    waited = own_daemon.call("term_wait", name=name, timeout=30)
    assert waited["reason"] == "ended"
    assert (
        own_daemon.call("term_run", name=name, cmd="sleep 0.5; echo late", timeout=30)["exit"] == 0
    )


def test_the_command_line_and_the_python_client_leave_it_to_the_daemon(
    own_daemon: DaemonProcess,
) -> None:
    configure(own_daemon, "terminals: {timeout_s: 0.2, cols: 101}")
    own_daemon.start()
    assert own_daemon.json("term", "spawn", "build", "--json")["cols"] == 101
    waited = own_daemon.cli("term", "wait", "build", "--pattern", "never", "--json")
    assert json.loads(waited.stdout)["reason"] == "timeout"
    with aegis.connect_sync(own_daemon.root) as client:
        assert client.terminals.spawn("own").cols == 101
        assert client.terminals.spawn("two", cols=80).cols == 80
        assert client.terminals.run("own", "sleep 30").timed_out
        assert not client.terminals.run("two", "sleep 1", timeout=50.0).timed_out


async def test_an_agent_is_told_that_the_owner_may_have_set_it(
    own_daemon: DaemonProcess, connect_mcp: Connect
) -> None:
    configure(own_daemon, "terminals: {cols: 101}")
    own_daemon.start()
    async with connect_mcp(own_daemon, "auto", "alice") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        cols = tools["aegis_term_spawn"].input_schema["properties"]["cols"]
        assert "default" not in cols
        assert "terminals.cols of .aegis.yaml, else 80" in cols["description"]
        spawned = await client.call_tool("aegis_term_spawn", {"name": "build"})
        assert spawned.structured_content is not None
        assert spawned.structured_content["cols"] == 101


def test_null_counts_as_absent_so_the_configured_value_holds(own_daemon: DaemonProcess) -> None:
    configure(own_daemon, "terminals: {cols: 101, timeout_s: 0.5}")
    own_daemon.start()
    connected = socket.socket(socket.AF_UNIX)
    with connected, connected.makefile("rb") as replies:
        connected.connect(own_daemon.endpoint.socket_path)
        for command, arguments in (
            ("term_spawn", {"name": "build", "cols": None, "env": None}),
            ("term_run", {"name": "build", "cmd": "sleep 30", "timeout": None, "until": None}),
        ):
            frame = {"type": "request", "id": 1, "command": command, "arguments": arguments}
            connected.sendall(json.dumps(frame).encode() + b"\n")
            answer = json.loads(replies.readline())
            assert answer["type"] == "reply", answer
            if command == "term_spawn":
                assert answer["result"]["cols"] == 101
            else:
                assert answer["result"]["timed_out"]


def size_of(path: Path) -> int:
    """The size of a file; 0 if it is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_the_raw_log_grows_no_further_than_configured(own_daemon: DaemonProcess) -> None:
    configure(own_daemon, f"terminals: {{raw_log_bytes: {RAW_LOG_BYTES}}}")
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    terminal.run("seq 100000")
    record = terminal.run("echo the last")
    assert record["stdout"] == "the last\n"
    files = [own_daemon.state.terminals / "build" / name for name in ("raw.log", "raw.log.1")]
    # Output is written a moment later, and meanwhile one file may take the place of the other.
    until(lambda: all(map(size_of, files)), "both have output")
    assert max(map(size_of, files)) <= RAW_LOG_BYTES
    whole = own_daemon.call("term_output", name="build", cursor=0, max_bytes=1_048_576)
    assert whole["dropped"] > 100_000
    assert "the last" in whole["text"]


def test_a_bad_configuration_starts_nothing_and_stops_nothing(own_daemon: DaemonProcess) -> None:
    path = configure(own_daemon, "terminals:\n  cols: wide\n  shel: bash\n")
    told = [
        f"aegis-actors: {path} line 2: terminals.cols must be a whole number from 2 to 1000, not "
        "'wide'",
        f"aegis-actors: {path} line 3: there is no key 'terminals.shel'; did you mean "
        "'terminals.shell'?",
    ]
    for words in (("up", "--port", "0"), ("config", "check")):
        done = own_daemon.cli(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines() == told
    assert not own_daemon.state.directory.exists()
    configure(own_daemon, "")
    own_daemon.start()
    configure(own_daemon, "terminals:\n  cols: wide\n  shel: bash\n")
    assert own_daemon.cli("up", "--port", "0").returncode == 2
    assert own_daemon.terminal("build").run("echo here")["stdout"] == "here\n"


def test_a_shell_that_is_not_there_is_known_before_a_spawn_fails(own_daemon: DaemonProcess) -> None:
    configure(own_daemon, "terminals: {shell: /no/such/shell}")
    own_daemon.start("--port", "0", "--trust")
    checked = own_daemon.cli("config", "check")
    assert checked.returncode == 0
    assert "'/no/such/shell' is not an executable program" in checked.stderr
    error = own_daemon.refusal("term_spawn", name="build")
    assert error.code == "invalid_request"
    assert "'/no/such/shell' is no executable program" in str(error)
    assert own_daemon.call("term_spawn", name="build", shell="bash")["state"] == "idle"


def test_the_check_reads_what_the_daemon_of_here_would_read(own_daemon: DaemonProcess) -> None:
    path = configure(own_daemon, "terminals: {rows: 31}")
    document = own_daemon.json("config", "check", "--json")
    assert (document["file"], document["given"]) == (str(path), ["terminals.rows"])
    assert own_daemon.examine()["configuration"].sentence == ".aegis.yaml sets terminals.rows"
