"""The terminal interface in a real tmux, in front of a real daemon: the story of the documents."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from aegis.tui.model.requests import GUARD_S
from aegis.tui.model.times import duration
from tests.e2e.harness import GUARD_S as END_S
from tests.e2e.harness import DaemonProcess, contents_of
from tests.e2e.test_agents import Team
from tests.e2e.test_modes_left_on import KILLED
from tests.e2e.tmux import Tmux, interface
from tests.resources.waiting import until

pytestmark = [
    pytest.mark.real,
    pytest.mark.long,
    pytest.mark.skipif(which("tmux") is None, reason="tmux is not installed"),
]

RAISED = signal.SIGKILL


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()


@pytest.fixture
def window(team: Team, tmp_path: Path) -> Iterator[Tmux]:
    with interface(team.daemon, tmp_path / "tmux") as opened:
        opened.shows("Ctrl-E")
        yield opened


def open_terminal(window: Tmux, name: str) -> None:
    window.press("C-e")
    window.shows("TERMINAL")
    window.type(name)
    window.press("Enter")
    window.shows(f"term:{name}", "── live ──", "RUN")


def run(window: Tmux, command: str) -> None:
    window.type(command)
    window.press("Enter")


def is_live(shown: str, header: str, output: str) -> bool:
    """Whether the header of a command and its output are below the rule."""
    live = shown.partition("── live ──")[2]
    return 0 <= live.find(header) < live.find(output)


def is_block_with_exit_3(shown: str) -> bool:
    block = shown.partition("── live ──")[0]
    return block != shown and 0 <= block.find("second") < block.find("↳ exit 3")


def processes_of(daemon: DaemonProcess, view: list[str]) -> list[int]:
    """The processes of a verb of this root."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if {each.encode() for each in view} <= {*words} and (
                process / "cwd"
            ).resolve() == daemon.root.resolve():
                found.append(int(process.name))
        except OSError:
            continue
    return [
        each for each in found if b"python" in Path(f"/proc/{each}/exe").readlink().name.encode()
    ]


def test_a_run_is_live_then_a_block_with_its_chip(window: Tmux, team: Team) -> None:
    open_terminal(window, "build")
    command = "echo fi''rst; until [ -e go ]; do sleep .1; done; echo sec''ond; (exit 3)"
    run(window, command)
    window.waits(lambda shown: is_live(shown, "echo fi''rst", "▎ first"), "it is live")
    (team.daemon.root / "go").touch()
    window.waits(is_block_with_exit_3, "it is a block above the rule")
    window.shows("🔴 term:build")
    [record] = team.call("term_read", name="build")["result"]
    assert record["cmd"] == command
    window.shows(f"↳ exit 3 · {duration(record['duration_s'])}")


def test_a_finished_command_keeps_its_colours(window: Tmux) -> None:
    open_terminal(window, "build")
    run(window, "printf '\\e[35mco''lour\\e[0m pla''in\\n'")
    window.shows("▎ colour plain", "↳ exit 0")
    until(lambda: "\x1b[35mcolour\x1b[39m" in coloured(window), "the block has its colours")


def coloured(window: Tmux) -> str:
    """What the window shows above the rule, with its colours."""
    return window.do("capture-pane", "-p", "-e").partition("── live ──")[0]


@pytest.mark.skipif(which("vim") is None, reason="vim is not installed")
def test_in_raw_mode_vim_gets_every_key_and_two_escapes_lead_out(window: Tmux, team: Team) -> None:
    open_terminal(window, "edit")
    window.press("C-k")
    window.shows("RAW")
    window.type("vim -u NONE -n note.txt")
    window.press("Enter")
    window.shows('"note.txt" [New')
    window.type("ihello from vim")
    window.press("C-h")  # a backspace for the program, not a name of Textual
    window.press("Escape")
    window.shows("hello from vi\n")
    window.type(":wq")
    window.press("Enter")
    note = team.daemon.root / "note.txt"
    # It is empty for a moment: vim creates it, and then writes.
    until(lambda: note.exists() and note.stat().st_size > 0, "vim has written")
    assert note.read_text() == "hello from vi\n"
    leave_raw_mode(window)
    window.shows("↳ exit 0")


def test_what_agents_open_appears_and_a_request_is_answered_with_one_key(
    window: Tmux, team: Team
) -> None:
    open_terminal(window, "build")
    program = f"{team.daemon.program[0]} --as ann term spawn logs"
    team.spawn(f"RUN {program}\nASK touch x\nSAY all is done", handle="ann")
    # Its terminal and itself appear behind the tab that is shown, with dot, star and bell.
    shown = window.shows("term:logs", "🟡 ann*", "🟡 1 F2", "Bash")
    assert "── live ──" in shown
    window.press("F2")
    window.shows("REQUEST 1 of 1", "ann wants to use Bash", "command: touch x")
    until_answered(window, team)
    window.hides("REQUEST 1 of 1")
    team.has_outcomes("ann", "completed")
    number = re.search(r"(\d) \S+ ann", window.screen())
    assert number is not None
    window.press(f"M-{number[1]}")
    window.shows("✉ from human", "all is done", "turn 1 completed")


def leave_raw_mode(window: Tmux) -> None:
    """Press Escape until two of them came soon after each other, as a person does."""

    def is_left(shown: str) -> bool:
        if "RAW" in shown:
            window.press("Escape")
        return "RUN" in shown

    window.waits(is_left, "raw mode is left")


def until_answered(window: Tmux, team: Team) -> None:
    """Press y until it counts: a key that comes too early is none."""

    def is_settled(_: str) -> bool:
        if not team.call("request_list")["requests"]:
            return True
        window.press("y")
        return False

    time.sleep(GUARD_S + 0.1)  # a person reads before
    window.waits(is_settled, "answered")


def test_escape_interrupts_the_turn_of_an_agent(window: Tmux, team: Team) -> None:
    team.spawn("HANG", handle="ann")
    window.shows("🟢 ann")
    window.press("M-1")
    window.shows("Esc interrupts", "✉ from human")
    window.press("Escape")
    team.has_outcomes("ann", "cancelled")
    window.shows("turn 1 cancelled")
    window.type("SAY again")
    window.press("Enter")
    window.shows("turn 2 completed")


def test_a_command_typed_ahead_of_the_interface_runs(team: Team, tmp_path: Path) -> None:
    team.daemon.terminal("build")
    with interface(team.daemon, tmp_path / "tmux") as window:
        window.press("M-1")  # before Python has started
        run(window, "echo ear''ly")
        window.shows("▎ early", "↳ exit 0")
        window.press("C-q")
    with interface(team.daemon, tmp_path / "tmux-raw") as window:
        window.press("M-1", "C-k")
        run(window, "echo ty''ped")
        window.shows("RAW", " typed")


def test_a_daemon_that_is_killed_and_starts_again_is_shown_again(window: Tmux, team: Team) -> None:
    open_terminal(window, "build")
    run(window, "echo be''fore")
    window.shows("▎ before", "↳ exit 0")
    team.daemon.kill()
    window.shows("no daemon")
    team.daemon.start("--port", "0", "--trust")
    window.hides("no daemon")
    window.shows("before", "── live ──")
    run(window, "echo af''ter")
    window.shows("▎ after", "↳ exit 0")


def test_an_interface_that_is_killed_ends_no_command(
    window: Tmux, team: Team, tmp_path: Path
) -> None:
    open_terminal(window, "build")
    run(window, "sleep 2.2; echo done > ended.txt")
    until(lambda: team.call("term_list")["result"][0]["state"] == "running", "it runs")
    for pid in processes_of(team.daemon, ["tui"]):
        os.kill(pid, RAISED)
    window.shows("left with 137")
    until((team.daemon.root / "ended.txt").exists, "the command has ended")
    with interface(team.daemon, tmp_path / "again") as again:
        again.shows("term:build")
        again.press("M-1")
        again.shows("sleep 2.2; echo done", "↳ exit 0 · ")
        [record] = team.call("term_read", name="build")["result"]
        assert record["duration_s"] >= 2.2
        again.shows(f"↳ exit 0 · {duration(record['duration_s'])}")


def test_ctrl_q_leaves_and_the_window_is_as_before(window: Tmux, team: Team) -> None:
    open_terminal(window, "build")
    window.press("C-q")
    window.shows("left with 0")
    assert [each["name"] for each in team.call("term_list")["result"]] == ["build"]


MODES = "#{alternate_on} #{mouse_any_flag} #{mouse_sgr_flag} #{cursor_flag}"


@pytest.mark.parametrize("view", [["tui"], ["term", "attach", "edit"], ["tree", "--watch"]])
def test_every_signal_that_ends_a_view_leaves_a_clean_window(
    team: Team, tmp_path: Path, view: list[str]
) -> None:
    team.daemon.terminal("edit").keys("printf '\\e[?1049h\\e[?1003h\\e[?1006h\\e[?25l'; cat\r")
    daemon, before, after = team.daemon, team.daemon.root / "before", team.daemon.root / "after"
    command = shlex.join([*daemon.program, *view])
    window = Tmux(
        tmp_path / "tmux",
        f"stty -g >before; while true; do {command}; echo left with $?; stty -g >after; read x; "
        "done",
        environment={**os.environ, **daemon.environment},
        directory=daemon.root,
    )
    try:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
            until(lambda: window.do("display-message", "-p", MODES)[0] == "1", "it is shown")
            [pid] = processes_of(daemon, view)
            os.kill(pid, number)
            code = 0 if number == signal.SIGINT and view[0] == "tree" else 128 + number
            window.shows(f"left with {code}")
            assert window.do("display-message", "-p", MODES) == "0 0 0 1\n"
            until(lambda: after.exists() and after.read_text() != "", "the shell is there again")
            assert after.read_text() == before.read_text()
            after.unlink()
            window.press("Enter")
    finally:
        window.close()


def test_an_interface_whose_window_is_gone_ends_without_a_signal(team: Team) -> None:
    daemon = team.daemon
    controller, own = os.openpty()
    # A session of its own, without a controlling terminal: no signal comes.
    started = subprocess.Popen(
        [*daemon.program, "tui"],
        stdin=own,
        stdout=own,
        stderr=own,
        cwd=daemon.root,
        env={**os.environ, **daemon.environment, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(own)
    shown = b""
    while b"\x1b[?1049h" not in shown:
        shown += os.read(controller, 65_536)
    os.close(controller)
    assert started.wait(END_S) != 0


def test_a_password_reaches_the_program_that_asks_and_no_record(window: Tmux, team: Team) -> None:
    open_terminal(window, "build")
    run(window, "read -rsp 'Pass''word: ' x; echo got ${#x}")
    window.shows("Password:", "SECRET")
    window.type("hunter2")
    assert "hunter2" not in window.shows("•••••••")
    window.press("Enter")
    window.shows("got 7", "RUN")
    run(window, "read -rp 'Na''me? ' x; echo got $x")
    window.shows("Name?", "ANSWER")
    run(window, "Ann")
    window.shows("got Ann", "RUN")
    records = team.call("term_read", name="build")["result"]
    assert [each["cmd"][:4] for each in records] == ["read", "read"]
    state = contents_of(team.daemon.root / ".aegis/state")
    assert [path for path, content in state.items() if b"hunter2" in content] == []


def test_without_a_daemon_or_a_window_it_says_so_in_one_line(tmp_path: Path) -> None:
    daemon = DaemonProcess(tmp_path)
    done = daemon.cli("tui")
    assert (done.returncode, done.stdout) == (2, "")
    assert "must be a terminal" in done.stderr
    with interface(daemon, tmp_path / "tmux") as window:
        window.shows("aegis-actors up", "left with 1")


def test_up_with_the_interface_starts_two_processes(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    program = shlex.join([*own_daemon.program, "up", "--port", "0", "--tui"])
    window = Tmux(
        tmp_path / "tmux",
        f"{program}; echo left with $?; exec sleep 1000",
        environment={**os.environ, **own_daemon.environment},
        directory=own_daemon.root,
    )
    try:
        window.shows("Ctrl-E")
        window.press("C-q")
        window.shows("the daemon runs", "left with 0")
    finally:
        window.close()
    done = own_daemon.cli("down")
    assert (done.returncode, done.stderr) == (0, "")


def test_lists_show_what_is_there_and_what_changes(window: Tmux, team: Team) -> None:
    window.press("F3")
    window.shows("terminal-directory", "running", "actors · 0 restarts")
    window.press("F5")
    window.shows("no canvas")
    team.call("canvas_open", name="plan", file="plan.md")
    team.call(
        "canvas_append_to_section", name="plan", section="Goals", text="a goal", from_handle="ann"
    )
    window.shows("▣ plan", "Goals", "a goal", "agent:ann")
    window.press("C-d")
    window.shows("no queue")
    window.press("F6")
    window.shows("no workflow")
    window.press("F7")
    window.shows("no group")
    team.call("group_spawn_mixed", group="panel", profiles=["asks", "writes"])
    window.shows("▣ panel", "2 members")
    window.press("F4")
    team.call("handoff", target_handle="human", context="look here", from_handle="ann")
    window.shows("✉ agent:ann", "look here", "1 message")


def test_a_small_and_a_large_window_show_the_same(team: Team, tmp_path: Path) -> None:
    team.daemon.terminal("build").run("echo he''re")
    for number, (cols, rows) in enumerate(((80, 24), (300, 80))):
        with interface(team.daemon, tmp_path / f"tmux{number}", cols=cols, rows=rows) as window:
            window.shows("term:build")
            window.press("M-1")
            window.shows("▎ here", "↳ exit 0", "── live ──")
            wanted = {"cols": cols, "rows": rows}
            until(
                lambda wanted=wanted: is_about(team, wanted),  # type: ignore[misc]
                "the terminal has the size of its pane",
            )
            window.press("F1")
            window.shows("Ctrl-Q", "🟢 works")


def is_about(team: Team, wanted: dict[str, int]) -> bool:
    info = team.call("term_list")["result"][0]
    return bool(
        wanted["cols"] - 40 < info["cols"] < wanted["cols"]
        and wanted["rows"] - 5 < info["rows"] < wanted["rows"]
    )


def test_ctrl_c_interrupts_a_flood_at_once(window: Tmux, team: Team) -> None:
    open_terminal(window, "flood")
    run(window, "yes")
    window.shows("y\n")
    window.press("C-c")
    window.shows("↳ exit 130")


def test_a_click_copies_the_output_of_a_block(team: Team, tmp_path: Path) -> None:
    team.daemon.terminal("build").run("echo cop''ied")
    with interface(team.daemon, tmp_path / "tmux") as window:
        window.do("set-option", "-g", "set-clipboard", "on")
        window.shows("term:build")
        window.press("M-1")
        # Once all of it is drawn: what is drawn below the output may move it.
        shown = window.shows("▎ copied", "↳ exit 0", "── live ──").split("\n")
        row = next(number for number, line in enumerate(shown, 1) if "▎ copied" in line)
        column = shown[row - 1].index("copied") + 1
        for letter in "Mm":
            window.type(f"\x1b[<0;{column};{row}{letter}")
        window.shows("copied 1 lines")
        until(lambda: clipboard(window) == "copied\n", "tmux has it")


def clipboard(window: Tmux) -> str:
    try:
        return window.do("show-buffer")
    except subprocess.CalledProcessError:
        return ""


def test_modes_that_a_killed_program_left_on_change_neither_the_view_nor_the_keys(
    window: Tmux,
) -> None:
    open_terminal(window, "left")
    run(window, KILLED)
    window.shows("exit 137")
    run(window, "echo still'' here")
    window.shows("▎ still here", "── live ──", "RUN")
    run(window, "cat -v")
    # The line for the next command becomes one for an answer, once it is seen that cat waits.
    window.waits(lambda shown: "NEXT" in shown or "ANSWER" in shown, "cat runs")
    window.press("C-k")
    window.shows("RAW")
    window.type("\x1b[<0;20;5M\x1b[<0;20;5m")  # a click
    window.type("\x1b[I")  # the focus
    window.press("Up", "Enter")
    shown = window.waits(lambda shown: "^[[A" in shown or "^[OA" in shown, "the key")
    assert "^[[A" in shown
    assert not [each for each in ("[<0", "[M", "[I") if each in shown]
    window.press("C-d")
    window.shows("exit 0")
