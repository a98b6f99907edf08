"""Programs that draw, driven by keys and read by their screen, through a real daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Connect, NewTerminal
from tests.e2e.harness import DaemonProcess, LiveTerminal
from tests.e2e.screens import is_main, left, look, needs, text_of, typed, wait_screen
from tests.resources.waiting import until

pytestmark = [
    pytest.mark.real,
    # The SDK's client of the legacy era leaves generators to the collector when it ends.
    pytest.mark.filterwarnings("ignore:Async generator '.*' was garbage collected:ResourceWarning"),
]

ESCAPE = "\x1b"


def test_a_screen_shows_what_commands_printed(terminal: LiveTerminal) -> None:
    terminal.run("printf 'one\\ntwo\\n'")
    screen = wait_screen(terminal, is_main)
    assert screen["lines"][-24:][1:4] == ["one", "two", "$"]
    assert (screen["rows"], screen["cols"], len(screen["lines"])) == (24, 80, 24)
    assert screen["cursor"] == {"row": 3, "col": 2, "visible": True}
    assert (screen["alternate"], screen["partial"]) == (False, False)


def test_a_screen_has_the_size_of_its_terminal(new_terminal: NewTerminal) -> None:
    terminal = new_terminal(rows=5, cols=12)
    typed(terminal, "printf x%.0s {1..30}; echo")
    screen = wait_screen(terminal, "xxxxxx\n$")
    assert screen["lines"][-5:].count("x" * 12) == 2
    assert (screen["rows"], screen["cols"], len(screen["lines"])) == (5, 12, 5)


def test_the_title_of_the_window_is_told(terminal: LiveTerminal) -> None:
    terminal.run(r"printf '\e]0;my title\a'")
    assert look(terminal)["title"] == "my title"


def test_a_half_typed_line_is_on_the_screen(terminal: LiveTerminal) -> None:
    terminal.keys("echo half")
    screen = wait_screen(terminal, "echo half")
    assert screen["cursor"]["col"] == len("$ echo half")
    terminal.keys("\x03")


@needs("vim")
def test_trap_11_vim_is_driven_by_keys_and_read_by_screen(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("first line\n日本 wide\n")
    typed(terminal, f"vim -u NONE -N {file}")
    screen = wait_screen(terminal, "日本 wide")
    assert screen["alternate"]
    assert screen["lines"][:3] == ["first line", "日本 wide", "~"]
    terminal.keys("ihello ")
    wait_screen(terminal, "-- INSERT --")
    screen = wait_screen(terminal, "hello first line")
    assert (screen["cursor"]["row"], screen["cursor"]["col"]) == (0, 6)
    terminal.keys(f"{ESCAPE}jA é{ESCAPE}")
    wait_screen(terminal, lambda shown: shown["lines"][1] == "日本 wide é")
    screen = left(terminal, ":wq\r")
    assert file.read_text() == "hello first line\n日本 wide é\n"
    assert f"$ vim -u NONE -N {file}"[:40] in text_of(screen)
    assert not screen["partial"]


@needs("less")
def test_trap_11_less_is_driven_by_keys_and_read_by_screen(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    file = tmp_path / "long.txt"
    file.write_text("".join(f"line {number}\n" for number in range(1, 501)))
    typed(terminal, f"less {file}")
    screen = wait_screen(terminal, "line 23")
    assert (screen["lines"][0], screen["alternate"]) == ("line 1", True)
    terminal.keys(" ")
    wait_screen(terminal, lambda shown: shown["lines"][0] == "line 24")
    terminal.keys("G")
    wait_screen(terminal, "(END)")
    terminal.keys("/line 77\r")
    terminal.keys("?line 77\r")
    wait_screen(terminal, lambda shown: shown["lines"][0] == "line 77")
    screen = left(terminal, "q")
    assert "line 77" not in text_of(screen)


@needs("htop")
def test_trap_11_htop_is_driven_by_keys_and_read_by_screen(terminal: LiveTerminal) -> None:
    typed(terminal, "htop")
    screen = wait_screen(terminal, "F10")
    assert screen["alternate"]
    assert "Load average" in text_of(screen)
    terminal.keys("\x1bOP")  # F1
    wait_screen(terminal, "htop 3")
    terminal.keys("q")
    wait_screen(terminal, "Load average")
    left(terminal, "q")


@needs("top")
def test_trap_11_top_is_driven_by_keys_and_read_by_screen(terminal: LiveTerminal) -> None:
    typed(terminal, "top")
    screen = wait_screen(terminal, "PID USER")
    assert "load average" in text_of(screen)
    terminal.keys("d")
    wait_screen(terminal, "Change delay from")
    terminal.keys("5\r")
    wait_screen(terminal, lambda shown: "Change delay" not in text_of(shown))
    terminal.keys("q")
    wait_screen(terminal, is_main)
    assert terminal.run("true")["exit"] == 0


def test_trap_11_python_is_driven_by_keys_and_read_by_screen(terminal: LiveTerminal) -> None:
    typed(terminal, "PYTHON_BASIC_REPL=1 python3 -q")
    wait_screen(terminal, ">>>")
    terminal.keys("sum(range(10))\r")
    wait_screen(terminal, "\n45\n>>>")
    terminal.keys("def f():\r")
    wait_screen(terminal, "\n...")
    terminal.keys("    return 'é日'\r\rf()\r")
    wait_screen(terminal, "\n'é日'\n>>>")
    terminal.keys("exit()\r")
    wait_screen(terminal, is_main)
    assert terminal.run("echo left")["stdout"] == "left\n"


def test_a_program_that_draws_once_and_changes_cells_is_seen_whole(terminal: LiveTerminal) -> None:
    terminal.keys(
        r"printf '\e[?1049h\e[2J\e[Hheading'; for n in {1..3000}; do printf '\e[5;3H%d' $n; done; "
        r"read -rsn1; printf '\e[?1049l'"
        "\r"
    )
    # The line that is typed has the number too.
    screen = wait_screen(terminal, lambda shown: shown["lines"][4] == "  3000")
    assert screen["lines"][0] == "heading"
    assert (screen["alternate"], screen["partial"]) == (True, False)
    terminal.keys("x")
    wait_screen(terminal, is_main)


def test_trap_27_who_asks_for_the_cursor_is_told_where_it_is(terminal: LiveTerminal) -> None:
    record = terminal.run(
        r"""printf '\e[3;7Hab\e[6n\e[H'; IFS='[;' read -rsd R _ row col; echo "[$row $col]" """
    )
    assert "[3 9]" in record["stdout"]


def test_trap_27_a_program_learns_the_size_from_where_the_cursor_stops(
    new_terminal: NewTerminal,
) -> None:
    terminal = new_terminal(rows=11, cols=33)
    record = terminal.run(
        r"""printf '\e[999;999H\e[6n\e[H'; IFS='[;' read -rsd R _ row col; echo "[$row $col]" """
    )
    assert "[11 33]" in record["stdout"]


def test_a_new_size_is_seen_at_once(terminal: LiveTerminal) -> None:
    terminal.run("echo before")
    terminal.daemon.call("term_resize", name=terminal.name, rows=10, cols=40)
    terminal.run("echo after; stty size")
    screen = wait_screen(terminal, "10 40")
    assert (screen["rows"], screen["cols"], len(screen["lines"])) == (10, 40, 10)
    assert {"before", "after"} <= set(screen["lines"])


@needs("vim")
def test_a_program_on_the_alternate_screen_is_seen_whole_in_another_size(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    file = tmp_path / "wide.txt"
    file.write_text("".join(f"{number} {'x' * 90}\n" for number in range(1, 60)))
    typed(terminal, f"vim -u NONE -N --cmd 'set nowrap' {file}")
    wait_screen(terminal, "23 xxx")
    terminal.daemon.call("term_resize", name=terminal.name, rows=30, cols=60)
    screen = wait_screen(terminal, "29 xxx")
    assert all(len(line) == 60 for line in screen["lines"][:29])
    terminal.daemon.call("term_resize", name=terminal.name, rows=8, cols=20)
    wait_screen(terminal, lambda shown: shown["lines"][6].startswith("7 xxx"))
    screen = left(terminal, ":q\r")
    assert len(screen["lines"]) == 8


def test_a_screen_after_a_flood_is_the_newest_and_said_to_be_partial(
    terminal: LiveTerminal,
) -> None:
    terminal.run("head -c 20M /dev/zero | tr '\\0' a | fold -w 79; echo; echo the end")
    screen = wait_screen(terminal, is_main)
    assert screen["partial"]
    assert screen["lines"][-2:] == ["the end", "$"]
    assert set(screen["lines"][:20]) == {"a" * 79}
    terminal.keys("clear\r")
    screen = wait_screen(terminal, lambda shown: shown["lines"][0] == "$")
    assert not screen["partial"]


def test_a_fresh_shell_has_a_fresh_screen(terminal: LiveTerminal) -> None:
    terminal.keys(r"printf '\e[?1049hold'; kill -9 $$" "\r")
    until(lambda: terminal.described()["restarts"] == 1, "the shell is a fresh one")
    screen = wait_screen(terminal, is_main)
    assert [line for line in screen["lines"] if line] == ["$"]


def test_an_unknown_terminal_has_no_screen(daemon: DaemonProcess) -> None:
    assert daemon.refusal("term_screen", name="nobody").code == "not_found"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_agent_sees_the_screen_through_its_tool(
    terminal: LiveTerminal, connect_mcp: Connect, handle: str, mode: str
) -> None:
    terminal.run("echo shown")
    async with connect_mcp(terminal.daemon, mode, handle) as client:
        result = await client.call_tool("aegis_term_screen", {"name": terminal.name})
    assert not result.is_error
    assert result.structured_content is not None
    assert "shown" in result.structured_content["lines"]
    assert set(result.structured_content) == {
        *("rows", "cols", "cursor", "title", "alternate", "partial", "lines")
    }


def test_the_command_line_shows_it(terminal: LiveTerminal) -> None:
    terminal.run(r"printf '\e]0;it\ax\u202eshown\n'")
    wait_screen(terminal, is_main)
    done = terminal.daemon.cli("term", "screen", terminal.name)
    assert done.returncode == 0
    assert r"x\u202eshown" in done.stdout.split("\n")
    assert done.stdout.count("\n") == 24
    assert done.stderr == "↳ 80x24 · cursor 3,3 · it\n"
    assert terminal.daemon.json("term", "screen", terminal.name, "--json") == look(terminal)
