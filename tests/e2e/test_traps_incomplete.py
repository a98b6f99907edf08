"""A text that is not complete, where the usual way out of it is closed."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import NewTerminal, on_both_shells
from tests.e2e.harness import GUARD_S
from tests.e2e.screens import Shown, wait_screen

pytestmark = pytest.mark.real


@on_both_shells
@pytest.mark.parametrize("stderr", ["merged", "separate"])
def test_incomplete_input_is_dropped_by_a_shell_that_ignores_ctrl_c(
    new_terminal: NewTerminal, stderr: str
) -> None:
    terminal = new_terminal(stderr=stderr)
    terminal.run("trap '' INT")
    for cmd in ("echo 'abc", "for x in 1 2; do", "echo $(", 'echo "', "case x in", "cat <<E"):
        assert terminal.refusal(cmd, timeout=GUARD_S).code == "incomplete_input"
        assert terminal.run("echo next")["stdout"] == "next\n"
    assert "''" in terminal.run("trap")["stdout"]


UNMARKED = {
    "bash": "PS1='$ '\nreadonly PS2=\n",
    "zsh": (
        "PS1='$ '\n"
        # The first prompt is followed by a widget that is not ours: nothing marks what follows it.
        "own() { : }\nreplace() { zle -N zle-line-init own }\nautoload -Uz add-zsh-hook\n"
        "add-zsh-hook precmd replace\n"
    ),
}


def has_read_half(screen: Shown) -> bool:
    """Whether the cursor is in the line below that of the half command."""
    row = screen["cursor"]["row"]
    return row > 0 and "half" in screen["lines"][row - 1]


@pytest.mark.parametrize("how", ["keys", "signal"])
@on_both_shells
def test_trap_4_where_the_secondary_prompt_has_no_mark_incomplete_text_is_still_refused(
    new_terminal: NewTerminal, shell: str, how: str
) -> None:
    terminal = new_terminal(UNMARKED[shell])
    assert terminal.refusal("echo 'open", timeout=GUARD_S).code == "incomplete_input"
    assert terminal.run("echo next")["stdout"] == "next\n"
    terminal.keys("echo 'half\r", from_handle="ann")
    wait_screen(terminal, has_read_half)  # a signal that comes earlier interrupts an empty line
    if how == "keys":
        terminal.keys("\x03", from_handle="bob")
    else:
        terminal.daemon.call("term_signal", name=terminal.name, signal="INT")
    assert terminal.run("echo mine")["stdout"] == "mine\n"
