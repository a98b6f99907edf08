"""What a thread waits for, as ``syscall`` and ``wchan`` in ``/proc/<pid>/task/<tid>`` say. Pure.

``syscall`` (proc(5)) is the number and the arguments of the system call that a thread sleeps in. It
is readable where one may trace the thread. Where one may not, or the processor is not one whose
numbers are known here, ``wchan`` is left: the function of the kernel that the thread sleeps in.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen(kw_only=True)
class Numbers:
    """Numbers of system calls: those that read a descriptor, and those that select some."""

    reads: frozenset[int]
    selects: frozenset[int]


NUMBERS: Mapping[str, Numbers] = {
    "x86_64": Numbers(reads=frozenset({0, 19}), selects=frozenset({23, 270})),
    "aarch64": Numbers(reads=frozenset({63, 65}), selects=frozenset({72})),
    "riscv64": Numbers(reads=frozenset({63, 65}), selects=frozenset({72})),
}
"""``read`` and ``readv``, ``select`` and ``pselect6``, by what ``uname -m`` says."""

_TTY_SLEEPS = frozenset({"n_tty_read", "wait_woken"})
"""Where the kernel sleeps in a read of a terminal; in the second one in one of a socket too."""


def reads_descriptor(syscall: str, machine: str) -> int | None:
    """The one descriptor that a thread sleeps to read; None if it does not, or waits for several.

    Of ``select`` only that on descriptor 0 alone can be told without a look into memory: a timed
    ``read`` of a shell, and most line editors, wait so.
    """
    numbers, words = NUMBERS.get(machine), syscall.split()
    if numbers is None or len(words) < 3 or not words[0].isdigit():
        return None
    call, first, second = int(words[0]), int(words[1], 16), int(words[2], 16)
    if call in numbers.reads:
        return first
    if call in numbers.selects and first == 1 and second:
        return 0
    return None


def may_read_terminal(wchan: str, descriptors: Mapping[int, str], terminal: str) -> bool:
    """Whether a thread that sleeps there reads the terminal, as far as that tells.

    ``descriptors`` are the files that the process has open, by number.
    """
    files = descriptors.values()
    if wchan not in _TTY_SLEEPS or not any(is_terminal(file, terminal) for file in files):
        return False
    return wchan == "n_tty_read" or not any(file.startswith("socket:") for file in files)


def is_terminal(file: str, terminal: str) -> bool:
    """Whether an open file is this terminal: by its name, or as the one that controls a session."""
    return file in (terminal, "/dev/tty")
