"""What a thread sleeps in, by what /proc says of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from aegis.processes.syscalls import is_terminal, may_read_terminal, reads_descriptor

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
