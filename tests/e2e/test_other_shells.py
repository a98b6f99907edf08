"""The core cases on shells other than bash and zsh, through a real daemon."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import DaemonProcess, Gate, LiveTerminal

pytestmark = pytest.mark.real

POSIX = ("dash", "mksh", "busybox")
WITH_PROMPTS = ("fish", *POSIX, "tcsh")


def needs(*shells: str) -> list[object]:
    """These shells as parameters; one that is not installed is skipped."""
    return [
        pytest.param(
            shell,
            marks=pytest.mark.skipif(
                shutil.which(shell) is None, reason=f"{shell} is not installed"
            ),
        )
        for shell in shells
    ]


@pytest.fixture(scope="module")
def home(daemon: DaemonProcess) -> Path:
    """A plain fish, as everything else is without start-up files."""
    config = daemon.home / ".config/fish/config.fish"
    config.parent.mkdir(parents=True)
    config.write_text("set -g fish_greeting\nfunction fish_prompt; echo -n '$ '; end\n")
    return daemon.home


@pytest.fixture
def other(home: Path, new_terminal: NewTerminal, request: pytest.FixtureRequest) -> LiveTerminal:
    """A terminal of the shell that the test names."""
    terminal = new_terminal(shell=request.param)
    assert terminal.info["state"] == "idle"
    return terminal


def on(*shells: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("other", needs(*shells), indirect=True)


@on(*WITH_PROMPTS)
def test_a_run_has_its_output_and_its_exit(other: LiveTerminal) -> None:
    wanted = "osc133" if "fish" in other.info["shell"] else "fallback"
    assert other.described()["integration"] == wanted
    for cmd, code, stdout in (
        ("echo hello", 0, "hello\n"),
        ("sh -c 'exit 3'", 3, ""),
        ("printf '%s' unfinished", 0, "unfinished"),
        ("echo one\necho two\nsh -c 'echo three; exit 4'", 4, "one\ntwo\nthree\n"),
        ("", 0, ""),
        ("# only a remark", 0, ""),
        ("echo 'grüße 漢字 🐟'", 0, "grüße 漢字 🐟\n"),
        ("cd /usr", 0, ""),
        ("pwd", 0, "/usr\n"),
        ("echo \t' \ttabs\t'", 0, " \ttabs\t\n"),
    ):
        record = other.run(cmd)
        assert (record["cmd"], record["exit"], record["stdout"], record["end"]) == (
            cmd,
            code,
            stdout,
            "exited",
        )
    assert other.described()["cwd"] == "/usr"
    assert [each["seq"] for each in other.records()] == list(range(10))


@on(*WITH_PROMPTS)
def test_a_long_text_arrives_exactly(other: LiveTerminal) -> None:
    lines = "".join(f"echo line {number} of a script\n" for number in range(1500))
    assert other.run(lines + "sh -c 'exit 5'")["exit"] == 5
    assert other.read(last_n=1)[0]["stdout"] == lines.replace("echo ", "")
    long = "x" * 900
    assert other.run("echo " + " ".join([long] * 6))["stdout"] == " ".join([long] * 6) + "\n"


@on("fish", *POSIX)
@pytest.mark.parametrize("cmd", ["echo 'open", "if true", "echo ready\necho $(date"])
def test_trap_04_incomplete_input_fails_and_the_prompt_is_back(
    other: LiveTerminal, cmd: str
) -> None:
    if "fish" not in other.info["shell"] and cmd == "if true":
        cmd = "if true; then"
    assert other.refusal(cmd).code == "incomplete_input"
    assert other.run("echo after")["stdout"] == "after\n"


@on(*WITH_PROMPTS)
def test_a_syntax_error_is_no_incomplete_input(other: LiveTerminal) -> None:
    record = other.run("echo before\n)")
    assert record["exit"] not in (0, None)
    assert record["stdout"].strip() != "before"
    assert other.run("echo after")["stdout"] == "after\n"


@on("fish", "dash", "mksh", "busybox")
def test_a_typed_command_is_recorded(other: LiveTerminal, handle: str) -> None:
    wakes = other.subscribe(handle)
    other.keys("echo typed\r", from_handle="bob")
    wakes.next()
    [record] = other.records()
    assert (record["cmd"], record["writer"]) == ("echo typed", "agent:bob")
    assert (record["exit"], record["stdout"]) == (0, "typed\n")
    assert other.run("echo after")["stdout"] == "after\n"
    other.keys("\r")
    assert other.run("echo again")["seq"] == 2


@on(*WITH_PROMPTS)
def test_trap_05_after_a_timeout_each_record_has_its_own(other: LiveTerminal, gate: Gate) -> None:
    first = other.run(f"sh -c '{gate.hold}; echo late'", timeout=5)
    assert (first["timed_out"], first["end"]) == (True, None)
    gate.open()
    assert other.run("echo next")["stdout"] == "next\n"
    late, following = other.records()
    assert (late["exit"], late["stdout"], late["timed_out"]) == (0, "late\n", True)
    assert (following["exit"], following["stdout"]) == (0, "next\n")


@on(*WITH_PROMPTS)
def test_trap_07_ctrl_c_ends_the_command_and_a_run_follows_at_once(other: LiveTerminal) -> None:
    running = other.start("sh -c 'echo begun; sleep 60'")
    other.has_printed("begun")
    other.keys("\x03")
    following = other.start("echo next")
    assert running.result()["exit"] == (1 if "tcsh" in other.info["shell"] else 130)
    assert following.result()["stdout"] == "next\n"


@on("fish", *POSIX)
def test_trap_10_exit_ends_the_run_and_a_fresh_shell_comes(other: LiveTerminal) -> None:
    record = other.run("echo bye; exit 3")
    assert (record["exit"], record["end"]) == (3, "shell_exit")
    assert other.run("echo fresh")["stdout"] == "fresh\n"
    assert other.described()["restarts"] == 1


@on("dash", "mksh", "busybox")
def test_trap_12_prompts_that_were_set_anew_are_armed_again(other: LiveTerminal) -> None:
    assert other.run("PS1='new$ ' PS2='more '; set -u")["exit"] == 0
    assert other.run("echo next")["stdout"] == "next\n"
    assert other.run("set -e; echo still")["stdout"] == "still\n"


@on("dash", "mksh", "tcsh", "fish")
def test_no_child_has_the_secret_in_its_environment(other: LiveTerminal) -> None:
    names = ("init.secret", "mark.secret")
    secrets = [p.read_bytes().strip() for n in names if (p := other.directory / n).exists()]
    environment = other.run("env")["stdout"]
    assert "__aegis" not in environment
    assert "\nENV=" not in environment
    assert all(secret.decode() not in environment for secret in secrets)
    assert all(secret not in other.raw() for secret in secrets)


@pytest.fixture
def stranger(tmp_path: Path) -> str:
    """A shell whose name says nothing."""
    path = tmp_path / "some shell"
    path.symlink_to(shutil.which("dash") or "/bin/sh")
    return str(path)


def test_a_shell_of_any_name_runs_commands(new_terminal: NewTerminal, stranger: str) -> None:
    terminal = new_terminal(shell=stranger)
    assert (terminal.info["state"], terminal.info["integration"]) == ("idle", "fallback")
    for cmd, stdout in (("echo hi", "hi\n"), ("cd /usr; pwd # a remark", "/usr\n")):
        record = terminal.run(cmd)
        assert (record["exit"], record["end"]) == (None, "exited")
        assert record["stdout"].startswith(stdout)
    assert "two" in terminal.run("echo one\necho two")["stdout"]
    assert terminal.run(")")["end"] == "exited"
    assert terminal.run("echo after")["stdout"] == "after\n"


@pytest.mark.long
@pytest.mark.parametrize("program", ["/bin/cat", "python3"])
def test_what_is_no_shell_hangs_nothing(new_terminal: NewTerminal, program: str) -> None:
    terminal = new_terminal(shell=program)
    assert terminal.info["state"] == "starting"
    assert terminal.refusal("echo hi", timeout=0.2).code in ("busy", "unavailable")
    terminal.keys("1 + 1\r")
    terminal.close()


def test_a_program_that_ends_at_once_is_told_as_failed(new_terminal: NewTerminal) -> None:
    assert new_terminal(shell="/bin/true").info["state"] == "failed"


@on("fish", "dash")
def test_a_kill_of_the_daemon_kills_the_command_and_the_shell_comes_again(
    own_daemon: DaemonProcess, other: LiveTerminal
) -> None:
    own_daemon.start()
    program = other.info["shell"]
    own_daemon.call("term_spawn", name="again", shell=program)
    terminal = own_daemon.terminal("again")
    assert terminal.run("echo before")["stdout"] == "before\n"
    own_daemon.send("term_run", name="again", cmd="sleep 60", timeout=60).has_arrived()
    while terminal.described()["state"] != "running":
        os.sched_yield()
    own_daemon.kill()
    own_daemon.hang_up()
    own_daemon.start()
    terminal = own_daemon.terminal("again")
    assert terminal.info["shell"] == program
    killed = terminal.records()[1]
    assert (killed["cmd"], killed["killed_by_restart"]) == ("sleep 60", True)
    assert terminal.run("echo after")["stdout"] == "after\n"
