"""``term run`` as a person has it: shown as it comes, ended as the command, left by Ctrl-C."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.conftest import NewTerminal, on_both_shells
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal
from tests.e2e.running import RunProcess, running
from tests.e2e.window import window

pytestmark = pytest.mark.real


TIME = "5"
"""Seconds in which a command has begun and printed, on a busy machine too."""


def held(gate: Gate) -> str:
    """A command that prints a line, is held, and prints another one."""
    return f"echo begun; {gate.hold}; echo ended"


@on_both_shells
def test_what_a_command_prints_is_shown_before_its_end(terminal: LiveTerminal, gate: Gate) -> None:
    with running(terminal, f"{held(gate)}; (exit 7)") as run:
        run.wait_for("begun\n")
        gate.open()
        code, out, err = run.end()
    assert (code, out) == (7, "begun\nended\n")
    assert err.startswith("↳ exit 7 · ")
    assert terminal.records()[-1]["stdout"] == out


@pytest.mark.parametrize(
    ("command", "code"),
    [("true", 0), ("sleep 0.05; exit_() { return 3; }; exit_", 3), ("", 0), ("kill -9 $$", 137)],
    ids=["at once", "later", "nothing", "with its shell"],
)
def test_it_exits_as_the_command_did(terminal: LiveTerminal, command: str, code: int) -> None:
    with running(terminal, command) as run:
        assert run.end().code == code


def test_a_command_that_cannot_be_read_to_its_end_is_told_in_one_line(
    terminal: LiveTerminal,
) -> None:
    with running(terminal, "echo 'open") as run:
        code, out, err = run.end()
    assert (code, out, err.count("\n")) == (125, "", 1)
    assert "is not closed" in err


def test_all_of_a_long_output_comes_whole(terminal: LiveTerminal, gate: Gate) -> None:
    wanted = "".join(f"{number}\n" for number in range(1, 200_001))
    with running(terminal, f"echo 0; {gate.hold}; seq 200000") as run:
        run.wait_for("0\n")
        gate.open()
        code, out, _ = run.end()
    assert code == 0
    assert hashlib.sha1(out.encode()).digest() == hashlib.sha1(f"0\n{wanted}".encode()).digest()


def test_all_of_a_long_output_comes_of_a_command_that_is_over_at_once(
    terminal: LiveTerminal,
) -> None:
    terminal.run("long=$(seq 30000)")
    with running(terminal, 'echo "$long"') as run:
        assert run.end().out == "".join(f"{number}\n" for number in range(1, 30_001))


def test_no_byte_of_another_command_is_shown(terminal: LiveTerminal) -> None:
    """Two callers take turns on one terminal, each with many commands."""
    shown: dict[str, list[tuple[str, str]]] = {"a": [], "b": []}

    def hammer(who: str) -> None:
        for number in range(12):
            pause = "sleep 0.02; " if number % 3 else ""
            text = f"echo {who}{number}; {pause}printf %s {who}-{number}"
            with running(terminal, text) as run:
                shown[who].append((run.end().out, f"{who}{number}\n{who}-{number}"))

    threads = [threading.Thread(target=hammer, args=(who,)) for who in shown]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GUARD_S * 2)
    for pairs in shown.values():
        assert [out for out, _ in pairs] == [wanted for _, wanted in pairs]
        assert len(pairs) == 12


@on_both_shells
def test_standard_error_stays_apart_where_it_is_separate(
    new_terminal: NewTerminal, gate: Gate
) -> None:
    terminal = new_terminal(stderr="separate")
    with running(terminal, f"echo out; echo err >&2; {gate.hold}; echo more") as run:
        gate.wait_reached()
        gate.open()
        code, out, err = run.end()
    assert (code, out) == (0, "out\nmore\n")
    assert err.startswith("err\n↳ exit 0 · ")


def test_both_streams_are_shown_once_where_they_go_to_one_window(
    new_terminal: NewTerminal, gate: Gate
) -> None:
    terminal = new_terminal(stderr="separate")
    command = f"echo out; echo err >&2; {gate.hold}; echo more"
    with window(terminal.daemon, "term", "run", terminal.name, command) as shown:
        shown.wait_for(b"err\r\n")
        gate.wait_reached()
        gate.open()
        assert shown.wait_exit() == 0
        assert shown.seen.count(b"err\r\n") == shown.seen.count(b"out\r\n") == 1
        assert b"more\r\n" in shown.seen


def test_ctrl_c_interrupts_the_command_and_its_exit_code_is_waited_for(
    terminal: LiveTerminal, gate: Gate
) -> None:
    command = f"bash -c 'trap \"echo caught; exit 9\" INT; echo begun; {gate.hold}; :'"
    with running(terminal, command) as run:
        run.wait_for("begun\n")
        gate.wait_reached()
        run.interrupt()
        code, out, _ = run.end()
    assert "caught\n" in out
    assert code == terminal.records()[-1]["exit"]
    assert code in (9, 130)


def test_ctrl_c_in_a_window_interrupts_the_command(terminal: LiveTerminal, gate: Gate) -> None:
    command = f"(echo begun; {gate.reach}; exec sleep 1000)"
    with window(terminal.daemon, "term", "run", terminal.name, command) as shown:
        shown.wait_for(b"begun")
        gate.wait_reached()
        shown.press(b"\x03")
        assert shown.wait_exit() == 130
    assert terminal.records()[-1]["exit"] == 130


def stubborn(go_on: Path) -> str:
    """A command that says so when it is interrupted, and goes on until ``go_on`` is written to."""
    os.mkfifo(go_on)
    program = (
        "import signal; signal.signal(signal.SIGINT, lambda *_: print('caught')); "
        f"print('begun'); open('{go_on}').readline(); print('ended')"
    )
    return f'{sys.executable} -u -c "{program}"'


def test_a_second_ctrl_c_leaves_the_command_alone(terminal: LiveTerminal, tmp_path: Path) -> None:
    with running(terminal, stubborn(tmp_path / "go")) as run:
        run.wait_for("begun\n")
        run.interrupt()
        run.wait_for("caught\n")
        run.interrupt()
        code, _, err = run.end()
    assert code == 130
    assert f"is still running; see: aegis-actors term output --follow {terminal.name}" in err
    (tmp_path / "go").write_text("on\n")
    outcome = terminal.daemon.call("term_wait", name=terminal.name, timeout=GUARD_S)
    assert outcome["record"]["exit"] == 0
    assert outcome["record"]["stdout"].replace("^C", "") == "begun\ncaught\nended\n"


def test_ctrl_c_is_heeded_while_nobody_reads_what_is_printed(
    terminal: LiveTerminal, gate: Gate
) -> None:
    with running(terminal, f"({gate.reach}; exec yes)") as run:
        run.wait_for("y\n")  # and then nobody reads on: the pipe fills
        run.interrupt()
        outcome = terminal.daemon.call("term_wait", name=terminal.name, timeout=GUARD_S)
        assert outcome["record"]["exit"] == 130
        run.interrupt()
        # Where it has given up by itself the signal may meet the end of the interpreter, which
        # handles none any more; a shell shows 130 for both.
        assert run.process.wait(GUARD_S) in (130, -signal.SIGINT)


def test_sigterm_leaves_the_command_alone(terminal: LiveTerminal, gate: Gate) -> None:
    with running(terminal, held(gate)) as run:
        run.wait_for("begun\n")
        run.process.send_signal(signal.SIGTERM)
        code, _, err = run.end()
    assert (code, "is still running" in err) == (143, True)
    gate.open()
    outcome = terminal.daemon.call("term_wait", name=terminal.name, timeout=GUARD_S)
    assert outcome["record"]["exit"] == 0


def test_a_command_that_waits_for_its_turn_says_so_and_is_given_up_by_ctrl_c(
    terminal: LiveTerminal, gate: Gate
) -> None:
    holding = terminal.start(f"{gate.hold}; echo held")
    gate.wait_reached()
    with running(terminal, "echo never") as run:
        run.wait_for_error(f"waiting for {terminal.name}: a command is running there")
        run.interrupt()
        code, out, err = run.end()
    assert (code, out) == (130, "")
    assert "gave up before the command started" in err
    gate.open()
    assert holding.result()["stdout"] == "held\n"
    terminal.run("true")
    assert "echo never" not in [record["cmd"] for record in terminal.records()]


def test_ctrl_c_that_comes_too_late_hits_nobody_else(terminal: LiveTerminal, gate: Gate) -> None:
    ended = terminal.run("true")
    other = terminal.start(f"{gate.hold}; echo safe")
    gate.wait_reached()
    late = terminal.daemon.refusal(
        "term_signal", name=terminal.name, signal="INT", seq=ended["seq"]
    )
    assert (late.code, "nothing was signalled" in str(late)) == ("not_found", True)
    gate.open()
    assert other.result()["stdout"] == "safe\n"


def test_a_program_that_waits_for_input_ends_it_early_with_its_output(
    terminal: LiveTerminal,
) -> None:
    with running(terminal, "seq 20000; read -r answer") as run:
        code, out, err = run.end()
    assert (code, out) == (125, "".join(f"{number}\n" for number in range(1, 20_001)))
    assert "waits for input" in err
    terminal.keys("x\r")


def test_time_bounds_the_whole_call_and_the_command_goes_on(
    terminal: LiveTerminal, gate: Gate
) -> None:
    with running(terminal, "--timeout", TIME, held(gate)) as run:
        code, out, err = run.end()
    assert (code, out) == (125, "begun\n")
    assert "is still running: the time for the call ran out" in err
    gate.open()
    assert terminal.daemon.call("term_wait", name=terminal.name)["record"]["exit"] == 0


def test_half_a_sequence_at_the_end_of_the_time_is_not_waited_for(
    terminal: LiveTerminal, gate: Gate
) -> None:
    with running(terminal, "--timeout", TIME, f"printf 'begun\\n\\033[3'; {gate.hold}") as run:
        code, out, _ = run.end()
    assert (code, out) == (125, "begun\n")
    gate.open()


def test_a_flood_that_outlives_the_time_does_not_keep_the_call(terminal: LiveTerminal) -> None:
    with running(terminal, "--timeout", TIME, "yes") as run:
        code, out, err = run.end()
    assert (code, "timed out" in err) == (125, True)
    assert out.startswith("y\ny\n")
    terminal.keys("\x03")


def test_a_reader_that_goes_away_ends_it_in_silence_and_the_command_goes_on(
    terminal: LiveTerminal, gate: Gate
) -> None:
    with running(terminal, f"{held(gate)}") as run:
        run.wait_for("begun\n")
        assert run.process.stdout is not None
        run.process.stdout.close()
        gate.open()
        assert run.process.wait(GUARD_S) == 1
        assert run.process.stderr is not None
        assert run.process.stderr.read() == b""
    outcome = terminal.daemon.call("term_wait", name=terminal.name)
    assert outcome["record"]["exit"] == 0


def test_a_terminal_that_is_closed_ends_it(new_terminal: NewTerminal, gate: Gate) -> None:
    terminal = new_terminal()
    with running(terminal, held(gate)) as run:
        run.wait_for("begun\n")
        terminal.close()
        code, out, err = run.end()
    assert (code, out) == (125, "begun\n")
    assert "the exit code of the command (seq 0) is not known: closed" in err


ENDS: dict[str, Callable[[DaemonProcess], object]] = {
    "kill -9": DaemonProcess.kill,
    "SIGTERM": DaemonProcess.stop,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_daemon_that_goes_away_is_told_in_one_line_and_nothing_runs_twice(
    own_daemon: DaemonProcess, gate: Gate, end: Callable[[DaemonProcess], object]
) -> None:
    own_daemon.start()
    terminal = own_daemon.terminal("build")
    with running(terminal, held(gate)) as run:
        run.wait_for("begun\n")
        end(own_daemon)
        code, out, err = run.end()
    assert (code, out) == (125, "begun\n")
    assert "Traceback" not in err
    own_daemon.start()
    [record] = own_daemon.terminal("build").records()
    assert (record["killed_by_restart"], record["stdout"]) == (True, "begun\n")


@pytest.mark.long
def test_fifty_megabytes_take_no_memory_here(terminal: LiveTerminal, gate: Gate) -> None:
    flood = "head -c 50000000 /dev/zero | tr '\\0' x | fold -w 99"
    with running(terminal, f"{flood}; echo; echo the end; {gate.hold}") as run:
        size = run.pass_by("the end\n")
        memory_kib = run.peak_memory_kib()
        gate.open()
        assert run.end().code == 0
    assert size > 10_000_000  # of what came faster than it was read a part may be left out
    assert memory_kib < 60_000  # without any output it takes about 20,000


def test_an_interrupt_between_the_request_and_the_start_reaches_the_command(
    terminal: LiveTerminal, gate: Gate
) -> None:
    """The sooner it comes the better: whatever was typed by then is interrupted, or never typed."""
    for _ in range(8):
        with running(terminal, "sleep 1000") as run:
            _wait_connected(run)
            run.interrupt()
            while run.process.poll() is None:  # one that comes between two programs does nothing
                terminal.daemon.call("term_wait", name=terminal.name, timeout=1)
                terminal.keys("\x03")
            assert run.end().code == 130
        records = terminal.records()
        assert all(record["exit"] == 130 for record in records)
        assert terminal.run("echo free", timeout=GUARD_S)["stdout"] == "free\n"
        terminal.daemon.call("term_close", name=terminal.name, purge=True)
        terminal.daemon.call("term_spawn", name=terminal.name)


def _wait_connected(run: RunProcess) -> None:
    """Wait until the process has a connection to the daemon: what it asks for comes behind that."""
    while run.process.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            links = [each.readlink() for each in Path(f"/proc/{run.process.pid}/fd").iterdir()]
            if any("socket:[" in str(link) for link in links):
                return


@pytest.mark.skipif(which("fish") is None, reason="fish is not installed")
def test_of_fish_too_no_byte_of_its_prompt_is_shown(new_terminal: NewTerminal, gate: Gate) -> None:
    terminal = new_terminal(shell="fish")
    with running(terminal, f"sh -c 'echo begun; {gate.hold}'; printf ended") as run:
        run.wait_for("begun\n")
        gate.open()
        code, out, _ = run.end()
    assert (code, out.lstrip("\n")) == (0, "begun\nended")
    chunk = terminal.daemon.call("term_output", name=terminal.name, seq=0)
    assert chunk["next_cursor"] == terminal.records()[-1]["raw_end"]
    assert chunk["text"].lstrip("\n") == "begun\nended"


def test_a_shell_whose_actor_crashes_ends_it_with_all_that_was_printed(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    own_daemon.start(faults="mark.end.after@1=crash")
    terminal = own_daemon.terminal("build")
    with running(terminal, f"{held(gate)}; true") as run:
        run.wait_for("begun\n")
        gate.open()
        code, out, err = run.end()
    assert (code, out) == (125, "begun\nended\n")
    assert "killed by restart" in err
    [record] = terminal.records()
    assert (record["end"], record["stdout"]) == ("killed_by_restart", out)
    own_daemon.kill()


def read_on(terminal: LiveTerminal) -> None:
    """Read its records until that fails."""
    while True:
        terminal.records()


def test_a_front_that_crashes_ends_it_in_one_line_and_the_command_goes_on(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    own_daemon.start(faults="actor.receive.before[Terminal]@40=crash")
    terminal = own_daemon.terminal("build")
    with running(terminal, held(gate)) as run:
        run.wait_for("begun\n")
        with pytest.raises(CommandFailed):
            read_on(terminal)  # the fortieth message of the front is one of these
        code, out, err = run.end()
    assert (code, out) == (125, "begun\n")
    assert "Traceback" not in err
    gate.open()
    outcome = own_daemon.call("term_wait", name="build", seq=0, timeout=GUARD_S)
    assert (outcome["record"]["exit"], outcome["record"]["stdout"]) == (0, "begun\nended\n")
    assert own_daemon.call("term_output", name="build", seq=0)["text"] == "begun\nended\n"
    own_daemon.kill()
