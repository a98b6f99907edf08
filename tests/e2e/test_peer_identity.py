"""The identity of processes at the Unix socket: an agent's are never the operator's."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aegis.peers import RECORDS
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.test_agents import Team
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()


def program(daemon: DaemonProcess, *words: str) -> str:
    """A shell line that calls the daemon of this root."""
    return shlex.join([*daemon.program, *words, "--root", str(daemon.root)])


def ran(team: Team, handle: str) -> list[str]:
    return [each for each in team.texts(handle) if each.startswith("ran ")]


def outcome(team: Team, handle: str, command: str) -> str:
    """The exit code and the output of a shell line that an agent's program runs."""
    before = len(ran(team, handle))
    team.send(handle, f"RUN {command}", "human")
    until(lambda: len(ran(team, handle)) > before, "the command has ended")
    return ran(team, handle)[before]


def test_the_shell_of_an_agent_acts_as_the_agent(team: Team) -> None:
    handle = team.spawn(profile="all")
    assert team.inbox("pm") == []  # so that the handle exists
    sent = program(team.daemon, "agent", "send", "pm", "hello")
    assert outcome(team, handle, sent).startswith("ran 0")
    assert [each["sender"] for each in team.inbox("pm")] == [f"agent:{handle}"]
    refused = outcome(team, handle, program(team.daemon, "down"))
    assert "for the operator only" in refused
    refused = outcome(team, handle, program(team.daemon, "session", "new", "--handle", "other"))
    assert "for the operator only" in refused


def test_the_shell_of_an_agent_has_the_rights_of_its_profile(team: Team) -> None:
    team.call("term_spawn", name="build")
    handle = team.spawn(profile="asks")
    spawned = program(team.daemon, "agent", "launch", "all")
    assert "is higher than" in outcome(team, handle, spawned)


@pytest.mark.parametrize(
    "escape",
    ["env -i {variables}", "env -u AEGIS_TERMINAL", "setsid --wait env -u AEGIS_TERMINAL"],
)
def test_an_agent_cannot_leave_its_identity_with_its_environment(team: Team, escape: str) -> None:
    handle = team.spawn(profile="all")
    known = {
        name: team.daemon.environment.get(name, "") for name in ("PATH", "HOME", "XDG_STATE_HOME")
    }
    start = escape.format(variables=shlex.join(f"{name}={text}" for name, text in known.items()))
    refused = outcome(team, handle, f"{start} {program(team.daemon, 'down')}")
    assert "for the operator only" in refused


@pytest.mark.parametrize("cookie", ["/build/life", "//{bob}/1"], ids=["of a terminal", "of a peer"])
def test_an_agent_cannot_take_another_identity_with_its_environment(
    team: Team, cookie: str
) -> None:
    team.call("term_spawn", name="build")
    team.call("term_run", name="build", cmd="true", timeout=60)  # a person's
    team.inbox("pm")
    forged = cookie.format(bob=team.info(team.spawn(handle="bob"))["id"])
    start = shlex.join(["env", f"AEGIS_TERMINAL={team.daemon.root}{forged}"])
    eve = team.spawn(profile="all", handle="eve")
    refused = outcome(team, eve, f"{start} {program(team.daemon, 'down')}")
    assert "for the operator only, and you are 'eve'" in refused
    sent = program(team.daemon, "agent", "send", "pm", "hello")
    assert outcome(team, eve, f"{start} {sent}").startswith("ran 0")
    assert [each["sender"] for each in team.inbox("pm")] == ["agent:eve"]


def test_a_command_of_an_agent_cannot_leave_its_identity_below_its_shell(team: Team) -> None:
    for name in ("build", "other"):
        team.call("term_spawn", name=name)
        team.call("term_run", name=name, cmd="true", timeout=60)  # a person's
    forged = shlex.quote(f"AEGIS_TERMINAL={team.daemon.root}/other/life")
    down = program(team.daemon, "down")
    for start in ("env -u AEGIS_TERMINAL", "env -u AEGIS_TERMINAL setsid --wait", f"env {forged}"):
        cmd = f"{start} {down}"
        record = team.call("term_run", name="build", cmd=cmd, from_handle="builder", timeout=60)
        assert "for the operator only, and you are 'builder'" in record["stdout"], start


def test_a_job_with_a_terminal_of_its_own_is_not_in_the_foreground_of_a_persons(
    team: Team, tmp_path: Path
) -> None:
    team.call("term_spawn", name="build")
    code = "import pty, sys; pty.spawn(sys.argv[1:])"
    down = shlex.join([sys.executable, "-c", code, *shlex.split(program(team.daemon, "down"))])
    job = f"(while [ ! -e go ]; do sleep 0.05; done; {down} </dev/null >out 2>&1; mv out late) &"
    begun = f"cd {shlex.quote(str(tmp_path))}; {job}"
    team.call("term_run", name="build", cmd=begun, from_handle="builder", timeout=60)
    waits = "touch go; while [ ! -e late ]; do sleep 0.05; done"
    record = team.call("term_run", name="build", cmd=waits, timeout=60)
    assert record["exit"] == 0, json.dumps(record)
    assert "for the operator only, and you are 'builder'" in (tmp_path / "late").read_text()


def test_an_agents_process_cannot_show_the_key_or_handle_of_another(team: Team) -> None:
    handle = team.spawn(profile="all")
    endpoint = team.daemon.endpoint
    other = team.call("session_new", handle="other")["url"].rsplit("/", 1)[1]
    hellos: list[dict[str, Any]] = [
        {"type": "hello", "version": 1, "session": other},
        {"type": "hello", "version": 1, "token": endpoint.token},
        {"type": "mcp", "version": 1, "handle": "other"},
    ]
    for hello in hellos:
        code = (
            "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
            "s.sendall(sys.argv[2].encode()+b'\\n'); print(s.recv(10000).decode())"
        )
        words = [sys.executable, "-c", code, str(endpoint.socket), json.dumps(hello)]
        answer = outcome(team, handle, shlex.join(words))
        assert "cannot act as" in answer, answer


def test_a_command_of_an_agent_on_a_terminal_acts_as_the_agent(team: Team, tmp_path: Path) -> None:
    team.call("term_spawn", name="build")
    down = program(team.daemon, "down")
    record = team.call("term_run", name="build", cmd=down, from_handle="builder", timeout=60)
    assert "for the operator only" in record["stdout"]
    # A job of the agent's command stays the agent's while a person uses the terminal.
    late = f"(while [ ! -e go ]; do sleep 0.05; done; {down} >out 2>&1; mv out late) &"
    changed = f"cd {shlex.quote(str(tmp_path))}; {late}"
    team.call("term_run", name="build", cmd=changed, from_handle="builder", timeout=60)
    shown = program(team.daemon, "status")
    record = team.call("term_run", name="build", cmd=f"{shown} && touch go", timeout=60)
    assert record["exit"] == 0
    late_file = tmp_path / "late"
    until(late_file.exists, "the job has called the daemon")
    assert "for the operator only" in late_file.read_text()


@pytest.fixture
def workspace(team: Team) -> str:
    team.call("workspace_create", workspace="shop", directory=str(team.daemon.root))
    return "shop"


class SessionOf:
    """A connection of an agent's own process: it has shown the secret of its session."""

    def __init__(self, team: Team, handle: str) -> None:
        secret = team.call("session_new", handle=handle)["url"].rsplit("/", 1)[1]
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(GUARD_S)
        self._socket.connect(str(team.daemon.endpoint.socket))
        self._lines = self._socket.makefile("rb")
        hello = self._exchange(type="hello", version=1, session=secret)
        assert hello["handle"] == handle, hello

    def call(self, command: str, /, **arguments: object) -> dict[str, Any]:
        answer = self._exchange(type="request", id=1, command=command, arguments=arguments)
        assert answer["type"] == "reply", answer
        found: dict[str, Any] = answer["result"]
        return found

    def _exchange(self, **frame: object) -> dict[str, Any]:
        self._socket.sendall(json.dumps(frame).encode() + b"\n")
        answer: dict[str, Any] = json.loads(self._lines.readline())
        return answer

    def __enter__(self) -> SessionOf:
        return self

    def __exit__(self, *error: object) -> None:
        self._lines.close()
        self._socket.close()


def executed(team: Team, workspace: str, command: str, handle: str) -> dict[str, Any]:
    """Run a command without a terminal, as the session with this handle."""
    with SessionOf(team, handle) as session:
        return session.call("workspace_exec", workspace=workspace, command=command, timeout=60)


@pytest.mark.parametrize(
    "start",
    [
        "",
        "env -u AEGIS_TERMINAL",  # in place of the shell: bash execs the last command
        "true; env -u AEGIS_TERMINAL",
        "setsid --wait env -u AEGIS_TERMINAL",
        "exec env AEGIS_TERMINAL=/a/b",
    ],
)
def test_a_command_without_a_terminal_acts_as_the_agent_that_called_it(
    team: Team, workspace: str, start: str
) -> None:
    handle = team.spawn(profile="all")
    done = executed(team, workspace, f"{start} {program(team.daemon, 'down')}", handle)
    assert f"for the operator only, and you are {handle!r}" in done["stderr"]
    team.inbox("pm")
    sent = program(team.daemon, "agent", "send", "pm", "hello")
    assert executed(team, workspace, f"{start} {sent}", handle)["exit"] == 0
    assert [each["sender"] for each in team.inbox("pm")] == [f"agent:{handle}"]


@pytest.mark.parametrize("start", ["exec env -u AEGIS_TERMINAL", "exec env -i {variables}"])
def test_the_shell_of_a_terminal_cannot_leave_its_identity_by_an_exec(
    team: Team, tmp_path: Path, start: str
) -> None:
    """It is a child of the daemon, with no ancestor that has a cookie."""
    known = {name: team.daemon.environment.get(name, "") for name in ("PATH", "HOME")}
    known["XDG_STATE_HOME"] = team.daemon.environment["XDG_STATE_HOME"]
    team.call("term_spawn", name="build")
    begin = start.format(variables=shlex.join(f"{name}={text}" for name, text in known.items()))
    out, end = tmp_path / "out", tmp_path / "end"
    script = f"{program(team.daemon, 'down')} >{out} 2>&1; touch {end}"
    cmd = f"{begin} bash -c {shlex.quote(script)}"
    team.daemon.send("term_run", name="build", cmd=cmd, from_handle="builder", timeout=60)
    until(end.exists, "the program in place of the shell has called the daemon")
    assert "for the operator only, and you are 'builder'" in out.read_text()


def test_a_job_of_a_command_without_a_terminal_acts_as_the_caller(
    team: Team, workspace: str
) -> None:
    handle = team.spawn(profile="all")
    made = program(team.daemon, "session", "new", "--handle", "other")
    for line in (f"({made}) & wait", f"({made} 2>&1 | cat) >&2"):
        done = executed(team, workspace, line, handle)
        assert f"for the operator only, and you are {handle!r}" in done["stderr"], line


def test_a_persons_command_without_a_terminal_is_the_operators(team: Team, workspace: str) -> None:
    made = program(team.daemon, "session", "new", "--handle", "other")
    for arguments in ({}, {"from_handle": "human"}):
        done = team.call(
            "workspace_exec", workspace=workspace, command=made, timeout=60, **arguments
        )
        assert done["exit"] == 0, done


def test_the_shell_of_a_workspace_acts_as_the_agent_that_types_into_it(
    team: Team, workspace: str, tmp_path: Path
) -> None:
    handle = team.spawn(profile="all")
    with SessionOf(team, handle) as session:
        shell = session.call("shell_open", workspace=workspace)["shell_id"]
        out, end = tmp_path / "out", tmp_path / "end"
        line = f"{program(team.daemon, 'down')} >{out} 2>&1; touch {end}"
        session.call("shell_write", shell=shell, input=line)
    until(end.exists, "the typed command has ended")
    assert f"for the operator only, and you are {handle!r}" in out.read_text()


STARTS_UP = """\
if [ ! -e {end} ]; then {down} >{out} 2>&1; touch {end}; fi
"""


@pytest.mark.parametrize("before", ["no terminal", "a person's terminal"])
def test_what_a_shell_starts_by_itself_acts_as_the_agent_that_opened_it(
    team: Team, tmp_path: Path, before: str
) -> None:
    """An agent chooses the variables of a terminal, and with them what its shell runs."""
    handle = team.spawn(profile="all")
    if before != "no terminal":
        team.call("term_spawn", name="build")
        team.call("term_run", name="build", cmd="true", timeout=60)
        team.call("term_close", name="build")
    out, end = tmp_path / "out", tmp_path / "end"
    home = tmp_path / "home-of-agent"
    home.mkdir()
    down = program(team.daemon, "down")
    (home / ".bashrc").write_text(STARTS_UP.format(down=down, out=out, end=end))
    known = {"HOME": str(home), "XDG_STATE_HOME": team.daemon.environment["XDG_STATE_HOME"]}
    with SessionOf(team, handle) as session:
        session.call("term_spawn", name="build", shell="bash", env=known)
    until(end.exists, "the shell has run its start-up file")
    assert f"for the operator only, and you are {handle!r}" in out.read_text()


def test_a_job_is_the_agents_after_more_commands_than_are_read_at_once(
    team: Team, tmp_path: Path
) -> None:
    team.call("term_spawn", name="build")
    team.call("term_run", name="build", cmd="true", timeout=60)
    down = program(team.daemon, "down")
    job = f"(while [ ! -e go ]; do sleep 0.05; done; {down} >out 2>&1; mv out late) &"
    begun = f"cd {shlex.quote(str(tmp_path))}; {job}"
    team.call("term_run", name="build", cmd=begun, from_handle="builder", timeout=60)
    for _ in range(RECORDS + 5):
        team.call("term_run", name="build", cmd="true", timeout=60)
    (tmp_path / "go").touch()
    until((tmp_path / "late").exists, "the job has called the daemon")
    assert "for the operator only, and you are 'builder'" in (tmp_path / "late").read_text()


def test_a_persons_command_on_a_terminal_is_the_operators(team: Team) -> None:
    team.call("term_spawn", name="build")
    team.call("term_run", name="build", cmd="true", from_handle="builder", timeout=60)
    made = program(team.daemon, "session", "new", "--handle", "other")
    assert team.call("term_run", name="build", cmd=made, timeout=60)["exit"] == 0


def test_a_process_that_has_ended_is_refused(team: Team) -> None:
    """Its connection lives on in a process that it left behind."""
    path = str(team.daemon.endpoint.socket)
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        code = (
            "import array,socket,sys; s=socket.socket(socket.AF_UNIX);"
            "t=socket.socket(fileno=int(sys.argv[2]));"
            "s.connect(sys.argv[1]);"
            "t.sendmsg([b'x'],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array('i',[s.fileno()]))])"
        )
        os.kill(team.daemon.process.pid, signal.SIGSTOP)
        try:
            subprocess.run(
                [sys.executable, "-c", code, path, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                check=True,
            )
            _, [descriptor], _, _ = socket.recv_fds(ours, 1, 1)
        finally:
            os.kill(team.daemon.process.pid, signal.SIGCONT)
        with socket.socket(fileno=descriptor) as left:
            left.sendall(b'{"type":"hello","version":1}\n')
            assert b"has ended: connect from one that lives" in left.recv(10_000)
