"""Trap 27: programs ask the terminal, and nobody watches."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
from pathlib import Path

import pytest

from tests.e2e.conftest import NewTerminal, on_both_shells
from tests.e2e.harness import Gate, LiveTerminal

pytestmark = pytest.mark.real

# Writes each question in raw mode, then one whose answer is known: what came before that is the
# answer. So it never waits for a time to pass, and sees what came twice.
ASK = r"""
import json, os, select, sys, termios, tty

GUARD_S = 60
END = b"\x1b[>c"
ANSWERED = b"\x1b[>1;10;0c"

def read_answer():
    answer = b""
    while not answer.endswith(ANSWERED):
        assert select.select([0], [], [], GUARD_S)[0], answer
        answer += os.read(0, 4096)
    return answer.removesuffix(ANSWERED)

before = termios.tcgetattr(0)
tty.setraw(0)
try:
    answers = []
    for question in json.loads(sys.argv[1]):
        os.write(1, question.encode() + END)
        answers.append(read_answer().decode())
finally:
    termios.tcsetattr(0, termios.TCSADRAIN, before)
print(json.dumps(answers))
"""


def ask(terminal: LiveTerminal, directory: Path, *questions: str) -> list[str]:
    program = directory / "ask.py"
    program.write_text(ASK)
    words = ["python3", str(program), json.dumps(questions)]
    record = terminal.run(shlex.join(words))
    assert record["exit"] == 0, record["stdout"]
    answers: list[str] = json.loads(record["stdout"].splitlines()[-1])
    return answers


def test_trap_27_what_a_program_asks_is_answered_once_and_in_order(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    answers = ask(
        terminal,
        tmp_path,
        "\x1b[c",
        "\x1b[5n",
        "\x1b]10;?\x07",
        "\x1b]11;?\x1b\\",
        "\x1b[>0q",
        "\x1b[?u",
        "\x1b]7501;?\x1b\\\x1b[c",
        "\x1b[18t",
        "\x1b[?25l\x1b[?25h",
    )
    assert answers == [
        "\x1b[?62;22c",
        "\x1b[0n",
        "\x1b]10;rgb:e5e5/e5e5/e5e5\x07",
        "\x1b]11;rgb:0000/0000/0000\x1b\\",
        "\x1bP>|aegis-actors\x1b\\",
        "\x1b[?0u",
        "\x1b]7501;?\x1b\\\x1b[?62;22c",
        "\x1b[8;24;80t",
        "",
    ]


def test_trap_27_the_cursor_is_where_it_was_when_the_program_asked(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    """How programs find out the size: to the far corner, ask, and back, in one write."""
    far_corner = "\x1b7\x1b[999;999H\x1b[6n\x1b8"
    answers = ask(terminal, tmp_path, "\x1b[2J\x1b[5;7H\x1b[6n", far_corner, "\x1b[?6n")
    assert answers == ["\x1b[5;7R", "\x1b[24;80R", "\x1b[?5;7R"]
    terminal.daemon.call("term_resize", name=terminal.name, cols=100, rows=30)
    assert ask(terminal, tmp_path, far_corner) == ["\x1b[30;100R"]


def test_trap_27_a_shell_script_that_asks_for_the_cursor_goes_on(terminal: LiveTerminal) -> None:
    record = terminal.run(
        r"""printf '\e[2J\e[H'; printf '\e[6n'; IFS='[;' read -rsd R _ row col; """
        r"""[[ $row$col =~ ^[0-9]+$ ]]"""
    )
    assert (record["exit"], record["end"]) == (0, "exited")


def test_trap_27_an_answer_is_nobodys_keys(terminal: LiveTerminal, tmp_path: Path) -> None:
    """An old log on cat is answered like by any terminal, and runs go on at once and exactly."""
    log = tmp_path / "old.log"
    log.write_bytes(b"\x1b[c\x1b[6n\x1b]11;?\x07" * 50)
    terminal.run(f"cat {log}")
    record = terminal.run("echo exact")
    assert (record["stdout"], record["exit"]) == ("exact\n", 0)
    assert terminal.described()["state"] == "idle"
    assert [each["cmd"] for each in terminal.records()] == [f"cat {log}", "echo exact"]


@on_both_shells
@pytest.mark.parametrize("question", [r"\033P$q\"p\033\\", r"\033P+q544e\033\\", r"\033[>q"])
def test_trap_27_an_answer_that_is_a_string_opens_no_search_at_the_prompt(
    terminal: LiveTerminal, question: str
) -> None:
    """As keys, ESC P asks bash for a search: what was typed next went there, and never ran."""
    terminal.run(f"printf '{question}'")
    record = terminal.run("echo exact")
    assert (record["stdout"], record["exit"]) == ("exact\n", 0)


def test_trap_27_a_flood_of_questions_that_nobody_reads_harms_nothing(
    terminal: LiveTerminal,
) -> None:
    terminal.run(r"yes $'\e[c\e]4;1;?\a\e[?u' | head -c 3000000")
    record = terminal.run("echo on")
    assert (record["stdout"], record["exit"]) == ("on\n", 0)


ANSWERED = r"printf '\e[c'; IFS= read -rsd c _"
"""Goes on once the daemon has seen all that was printed before."""


def test_the_directory_that_a_program_reports_is_listed_until_the_prompt(
    new_terminal: NewTerminal, tmp_path: Path, gate: Gate
) -> None:
    terminal = new_terminal(cwd=str(tmp_path))
    report = rf"printf '\e]7;file://%s%s\a' {socket.gethostname()} {tmp_path}/in%20side"
    running = terminal.start(f"{report}; {ANSWERED}; {gate.hold}")
    gate.wait_reached()
    assert terminal.described()["cwd"] == f"{tmp_path}/in side"
    gate.open()
    assert running.result()["cwd"] == str(tmp_path)
    assert terminal.run("pwd")["cwd"] == str(tmp_path)
    assert terminal.described()["cwd"] == str(tmp_path)


def test_the_directory_on_another_host_is_not_listed(
    new_terminal: NewTerminal, tmp_path: Path, gate: Gate
) -> None:
    terminal = new_terminal(cwd=str(tmp_path))
    running = terminal.start(
        rf"printf '\e]7;file://not-{socket.gethostname()}/srv\a'; {ANSWERED}; {gate.hold}"
    )
    gate.wait_reached()
    assert terminal.described()["cwd"] == str(tmp_path)
    gate.open()
    assert running.result()["exit"] == 0


def test_where_a_running_command_went_is_listed_before_its_prompt(
    new_terminal: NewTerminal, tmp_path: Path, gate: Gate
) -> None:
    terminal = new_terminal(cwd=str(tmp_path))
    (tmp_path / "deeper").mkdir()
    running = terminal.start(f"cd deeper; {gate.hold}")
    gate.wait_reached()
    assert terminal.described()["cwd"] == f"{tmp_path}/deeper"
    gate.open()
    assert running.result()["cwd"] == str(tmp_path)


def test_a_prompt_that_reports_a_wrong_directory_does_not_move_the_shell(
    new_terminal: NewTerminal, tmp_path: Path
) -> None:
    bashrc = r"PS1='$ '; PROMPT_COMMAND='printf \"\e]7;file:///wrong\a\"'"
    terminal = new_terminal(bashrc.replace('\\"', '"'), cwd=str(tmp_path))
    assert terminal.run("true")["cwd"] == str(tmp_path)
    assert terminal.described()["cwd"] == str(tmp_path)


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")
def test_trap_27_vim_hears_what_it_asks_as_it_starts(
    terminal: LiveTerminal, tmp_path: Path
) -> None:
    heard = tmp_path / "heard"
    on_answer = f"autocmd TermResponse * call writefile([v:termresponse], '{heard}') | quit!"
    record = terminal.run(f'vim -N -u NONE -i NONE -c "{on_answer}"')
    assert (record["exit"], record["end"]) == (0, "exited")
    assert heard.read_text() == "\x1b[>1;10;0c\n"
