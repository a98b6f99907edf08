"""Whether a command waits for input, as a table."""

from __future__ import annotations

import itertools
from typing import Literal, TypeAlias

import pytest

from aegis.processes.waiting import Foreground, needs_input, next_look_after, stands_at_prompt
from aegis.protocol.terminals import NeedsInput

Kind: TypeAlias = Literal["input", "secret"]


def front(
    program: str = "make",
    reader: str | None = None,
    *,
    lines: bool = True,
    echo: bool = True,
    hidden: bool = False,
) -> Foreground:
    return Foreground(
        group=9,
        is_canonical=lines,
        echoes=echo,
        program=program,
        reader=reader,
        is_hidden=hidden,
    )


@pytest.mark.parametrize(
    ("in_front", "quiet_s", "needs"),
    [
        (front("cat", "cat"), 0.1, ("input", "cat")),
        (front("sh", "python3"), 0.1, ("input", "python3")),
        (front("bash", "bash", echo=False), 0.1, ("secret", "bash")),
        (front("sudo", hidden=True, echo=False), 0.1, ("secret", "sudo")),
        (front("sudo", hidden=True), 60.0, None),
        (front("sleep"), 60.0, None),
        (front("sleep", echo=False), 60.0, None),  # it was only told to be silent
        (front("vim", "vim", lines=False, echo=False), 0.3, None),  # it may be drawing
        (front("vim", "vim", lines=False, echo=False), 1.0, ("input", "vim")),
        (front("htop", lines=False, echo=False), 1.0, ("input", "htop")),
        (front("git", "less", lines=False, echo=False), 1.0, ("input", "less")),
        (front("bash", "bash", lines=False), 1.0, ("input", "bash")),  # read -n 1
        (None, 60.0, None),
    ],
)
def test_what_a_command_waits_for(
    in_front: Foreground | None, quiet_s: float, needs: tuple[Kind, str] | None
) -> None:
    expected = None if needs is None else NeedsInput(kind=needs[0], program=needs[1])
    assert needs_input(in_front, quiet_s) == expected


def test_a_quiet_command_is_looked_at_soon_then_less_often_and_never_no_more() -> None:
    moments, quiet_s = [], 0.0
    for _ in range(10):
        quiet_s += next_look_after(quiet_s)
        moments.append(round(quiet_s, 6))
    assert moments == [0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 13.0, 18.0, 23.0, 28.0]
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert max(gaps) <= 5.0


@pytest.mark.parametrize(
    ("shell", "in_front", "stands"),
    [
        ("bash", front("bash", "bash", lines=False, echo=False), True),
        ("zsh", front("zsh", "zsh", lines=False, echo=False), True),
        ("bash", front("bash", "bash"), False),  # a `read` in its start-up file, say
        ("bash", front("bash", "bash", lines=False), False),
        ("dash", front("dash", "dash"), True),
        ("dash", front("dash"), False),
    ],
)
def test_a_shell_stands_at_its_prompt(shell: str, in_front: Foreground, stands: bool) -> None:
    assert stands_at_prompt(shell, in_front, pastes=True) is stands


def test_a_zsh_that_asks_a_new_user_for_settings_does_not_stand_at_its_prompt() -> None:
    asking = front("zsh", "zsh", lines=False, echo=False)
    assert not stands_at_prompt("zsh", asking, pastes=False)
    assert stands_at_prompt("bash", asking, pastes=False)
