"""Start-up files that run a multiplexer or another shell in place of the terminal's shell."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import GUARD_S, LiveTerminal

pytestmark = pytest.mark.real


def needs(*programs: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not all(map(which, programs)), reason=f"needs {programs}")


@pytest.fixture(autouse=True)
def own_sockets(tmp_path: Path) -> dict[str, str]:
    """Variables that keep sessions of tmux and screen apart from those of the machine."""
    (tmp_path / "tm").mkdir()
    (tmp_path / "sc").mkdir(mode=0o700)
    config = tmp_path / "config" / "tmux"
    config.mkdir(parents=True)
    # The server that `tmux attach` starts ends at once without a session. On a busy machine the
    # `tmux new` behind it often meets that end ("server exited unexpectedly"), and the shell goes
    # on to its prompt: then nothing has replaced it.
    (config / "tmux.conf").write_text("set -g exit-empty off\n")
    return {
        "TMUX_TMPDIR": str(tmp_path / "tm"),
        "SCREENDIR": str(tmp_path / "sc"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }


@pytest.fixture
def new_terminal(new_terminal: NewTerminal) -> NewTerminal:
    """Spawns terminals, and waits for the prompt of each however slow the machine is."""

    def spawn(startup: str | None = None, **arguments: Any) -> LiveTerminal:
        terminal = new_terminal(startup, **arguments)
        deadline = time.monotonic() + GUARD_S
        # A spawn returns after 10 s; a second shell of a busy machine may need longer.
        while terminal.info["state"] == "starting" and time.monotonic() < deadline:
            time.sleep(0.05)
            terminal.info = terminal.described()
        return terminal

    return spawn


def check_replaced(terminal: LiveTerminal, program: str, guard: str | None = None) -> None:
    """The spawn, the list and the ledger say what replaced the shell, and how to guard it."""
    info = terminal.info
    assert (info["state"], info["notice"] is None) == ("idle", False), (info, terminal.raw()[-800:])
    assert f"replaced it by {program}" in info["notice"]
    assert terminal.described()["notice"] == info["notice"]
    deadline = time.monotonic() + GUARD_S
    while not terminal.records() and time.monotonic() < deadline:
        time.sleep(0.05)  # a spawn does not wait until the disk has the notice
    [notice] = terminal.records()
    assert (notice["writer"], notice["cmd"], notice["exit"]) == ("shell", None, None)
    assert notice["cmd_reason"] == info["notice"]
    if guard is not None:
        assert f"{guard} set to no session" in info["notice"]
        assert '[ -z "$AEGIS_TERMINAL" ] && …' in info["notice"]
    record = terminal.run("echo fine")
    assert (record["stdout"], record["new_shell_since"]) == ("fine\n", None)
    assert terminal.described()["integration"] == "osc133"


TMUX_LINES = {
    "exec": '[ -z "$TMUX" ] && exec tmux\n',
    "attach or new": 'if [[ -z "$TMUX" ]]; then tmux attach || tmux new -s main; fi\n',
    "no guard at all": "command -v tmux >/dev/null && { tmux attach || tmux new; }\n",
}


@needs("tmux")
@pytest.mark.parametrize("line", TMUX_LINES.values(), ids=TMUX_LINES)
@pytest.mark.parametrize("shell", ["bash", pytest.param("zsh", marks=needs("zsh"))])
def test_a_shell_that_tmux_replaced_is_started_again_with_an_inert_guard(
    new_terminal: NewTerminal, own_sockets: dict[str, str], shell: str, line: str
) -> None:
    terminal = new_terminal(line, env=own_sockets)
    check_replaced(terminal, "tmux", "TMUX")
    # A person's own tmux says what is wrong, or works.
    said = terminal.run("tmux new -d 2>&1; tmux ls 2>&1")["stdout"]
    assert "unset-TMUX-to-use-tmux-here" in said
    works = terminal.run("unset TMUX; tmux new -d -s mine && tmux ls -F '#S'; tmux kill-server")
    assert works["stdout"] == "mine\n"


@needs("tmux", "fish")
@pytest.mark.parametrize("shell", ["fish"])
def test_a_fish_that_tmux_replaced_is_started_again(
    new_terminal: NewTerminal, own_sockets: dict[str, str], shell: str, tmp_path: Path
) -> None:
    config = tmp_path / "config" / "fish"
    config.mkdir()
    (config / "config.fish").write_text(
        "status is-interactive; and not set -q TMUX; and exec tmux\n"
    )
    terminal = new_terminal(env=own_sockets)
    check_replaced(terminal, "tmux", "TMUX")


@needs("tmux")
def test_a_persons_own_session_of_tmux_goes_on(
    new_terminal: NewTerminal, own_sockets: dict[str, str]
) -> None:
    outside: dict[str, Any] = {"env": {"PATH": "/usr/bin:/bin", "HOME": "/", **own_sockets}}
    subprocess.run(["tmux", "-f", "/dev/null", "new", "-d", "-s", "own"], check=True, **outside)
    try:
        terminal = new_terminal(TMUX_LINES["attach or new"], env=own_sockets)
        check_replaced(terminal, "tmux", "TMUX")
        terminal.close()
        listed = subprocess.run(
            ["tmux", "ls", "-F", "#S #{session_attached}"],
            check=True,
            capture_output=True,
            text=True,
            **outside,
        )
        assert listed.stdout == "own 0\n"
    finally:
        subprocess.run(["tmux", "kill-server"], check=False, **outside)


@needs("screen")
def test_a_shell_that_screen_replaced_is_started_again_with_an_inert_guard(
    new_terminal: NewTerminal, own_sockets: dict[str, str]
) -> None:
    terminal = new_terminal('[ -z "$STY" ] && exec screen\n', env=own_sockets)
    check_replaced(terminal, "screen", "STY")
    said = terminal.run("screen true 2>&1")["stdout"]
    assert "unset-STY-to-use-screen-here" in said
    # A detached screen returns before its session is listed.
    works = terminal.run(
        "screen -dmS mine sleep 60; until screen -ls | grep mine; do sleep 0.1; done; "
        "screen -S mine -X quit"
    )
    assert ".mine" in works["stdout"]


@needs("tmux", "screen")
def test_a_shell_that_two_multiplexers_replace_gets_both_guards(
    new_terminal: NewTerminal, own_sockets: dict[str, str]
) -> None:
    lines = '[ -z "$TMUX" ] && exec tmux\n[ -z "$STY" ] && exec screen\n'
    terminal = new_terminal(lines, env=own_sockets)
    assert terminal.info["state"] == "idle"
    deadline = time.monotonic() + GUARD_S
    while len(terminal.records()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    notices = [each["cmd_reason"] for each in terminal.records()]
    assert ["by tmux" in notices[0], "by screen" in notices[1]] == [True, True]


@needs("tmux")
def test_a_multiplexer_that_no_guard_keeps_away_makes_the_terminal_fail_with_the_remedy(
    new_terminal: NewTerminal, own_sockets: dict[str, str]
) -> None:
    terminal = new_terminal("unset TMUX; exec tmux\n", env=own_sockets)
    assert terminal.info["state"] == "failed"
    assert '[ -z "$AEGIS_TERMINAL" ] && …' in terminal.info["notice"]
    assert "AEGIS_TERMINAL" in str(terminal.refusal("true"))


@pytest.mark.parametrize(
    "program", [pytest.param(each, marks=needs(each)) for each in ("zsh", "fish")]
)
def test_a_shell_that_another_shell_replaced_is_started_as_that_one(
    new_terminal: NewTerminal, program: str
) -> None:
    terminal = new_terminal(f'export FROM_BASHRC=1\n[ -n "$BASH" ] && exec {program}\n')
    check_replaced(terminal, program)
    assert Path(terminal.info["shell"]).name == program
    assert terminal.run("echo $FROM_BASHRC")["stdout"] == "1\n"
    # A fresh shell is one of that kind too.
    assert (
        terminal.run("kill -9 %self" if program == "fish" else "kill -9 $$")["end"] == "shell_exit"
    )
    assert terminal.run("echo fine")["stdout"] == "fine\n"
    assert Path(terminal.described()["shell"]).name == program


def test_a_start_up_file_that_only_asks_tmux_is_left_alone(
    new_terminal: NewTerminal, own_sockets: dict[str, str]
) -> None:
    terminal = new_terminal(
        "tmux ls >/dev/null 2>&1; sleep 0.5; tmux -V >/dev/null\n", env=own_sockets
    )
    assert (terminal.info["state"], terminal.info["notice"]) == ("idle", None)
    assert terminal.records() == []
