"""Whether a command waits for input, and what a thread sleeps in, as tables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Literal, TypeAlias

import pytest

from aegis.processes.input_wait import (
    Foreground,
    is_at_prompt,
    is_terminal,
    may_read_terminal,
    needs_input,
    next_check_after,
    reads_descriptor,
)
from aegis.protocol.terminals import NeedsInput

Kind: TypeAlias = Literal["input", "secret"]


def front(
    program: str = "make",
    reader: str | None = None,
    *,
    lines: bool = True,
    echo: bool = True,
    hidden: bool = False,
    busy: bool = False,
) -> Foreground:
    return Foreground(
        group=9,
        is_canonical=lines,
        echoes=echo,
        program=program,
        reader=reader,
        is_hidden=hidden,
        is_busy=busy,
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
        (front("vim", "vim", lines=False, echo=False), 0.9999999, ("input", "vim")),  # rounded
        (front("bash", lines=False, echo=False, busy=True), 60.0, None),  # it has got a line
        (front("watch", lines=False, echo=False, busy=True), 1.0, ("input", "watch")),
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
        quiet_s += next_check_after(quiet_s)
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
    assert is_at_prompt(shell, in_front, pastes=True) is stands


def test_a_zsh_that_asks_a_new_user_for_settings_does_not_stand_at_its_prompt() -> None:
    asking = front("zsh", "zsh", lines=False, echo=False)
    assert not is_at_prompt("zsh", asking, pastes=False)
    assert is_at_prompt("bash", asking, pastes=False)


TTY = "/dev/pts/7"
REST = "0x7ffc005d611f 0x1 0x8 0x2 0x1 0x7ffc005d60e8 0x7fe94e0cb2ad"


@pytest.mark.parametrize(
    ("syscall", "machine", "descriptor"),
    [
        (f"0 0x0 {REST}", "x86_64", 0),
        (f"0 0xb {REST}", "x86_64", 11),
        (f"19 0x3 {REST}", "x86_64", 3),
        (f"63 0x3 {REST}", "aarch64", 3),
        (f"63 0x3 {REST}", "x86_64", None),  # there it is another call
        (f"270 0x1 {REST}", "x86_64", 0),
        (f"23 0x1 {REST}", "x86_64", 0),
        (f"72 0x1 {REST}", "riscv64", 0),
        (f"270 0x8 {REST}", "x86_64", None),  # several: which, is in memory
        ("270 0x1 0x0 0x0 0x0 0x0 0x0 0x7ff 0x7fe", "x86_64", None),  # none to read
        (f"7 0x7fff242e9fd0 {REST}", "x86_64", None),
        (f"61 0xffffffff {REST}", "x86_64", None),
        (f"0 0x0 {REST}", "s390x", None),
        ("running", "x86_64", None),
        ("-1 0x7ffc005d611f 0x7fe94e0cb2ad", "x86_64", None),
        ("", "x86_64", None),
    ],
)
def test_the_descriptor_that_a_thread_sleeps_to_read(
    syscall: str, machine: str, descriptor: int | None
) -> None:
    assert reads_descriptor(syscall, machine) == descriptor


@pytest.mark.parametrize(
    ("wchan", "descriptors", "reads"),
    [
        ("n_tty_read", {0: TTY}, True),
        ("n_tty_read", {0: TTY, 3: "socket:[123]"}, True),
        ("wait_woken", {0: TTY, 1: TTY}, True),
        ("wait_woken", {0: "/dev/null", 3: "/dev/tty"}, True),
        ("wait_woken", {0: TTY, 3: "socket:[123]"}, False),  # it may wait for the socket
        ("wait_woken", {0: "pipe:[5]"}, False),
        ("wait_woken", {0: "/dev/pts/70"}, False),
        ("do_wait", {0: TTY}, False),
        ("hrtimer_nanosleep", {0: TTY}, False),
        ("0", {0: TTY}, False),
    ],
)
def test_where_the_call_is_hidden_its_place_in_the_kernel_tells(
    wchan: str, descriptors: Mapping[int, str], reads: bool
) -> None:
    assert may_read_terminal(wchan, descriptors, TTY) is reads


@pytest.mark.parametrize(
    ("file", "ours"),
    [(TTY, True), ("/dev/tty", True), ("/dev/pts/8", False), ("", False), ("pipe:[1]", False)],
)
def test_a_terminal_is_known_by_its_name(file: str, ours: bool) -> None:
    assert is_terminal(file, TTY) is ours
