"""Whether a command waits for input, judged by its terminal's foreground. Pure.

| the tty | the foreground program | waits for |
|---|---|---|
| lines (canonical), echo on | reads the terminal | input |
| lines, echo off | reads the terminal, or hides its state (sudo, su) | a secret |
| single keys (not canonical) | anything, quiet for a second, but a busy shell | input |
| anything else | computes, sleeps, reads a pipe or a file, waits for a child | nothing |

A read of the terminal proves only that a key would be read. The command waits for it if nothing
else is done meanwhile (``is_certain``): the main thread reads, and no earlier part of a pipe works.
Where another thread reads and the main one waits for its threads, a prompt decides: output that
ends within a line. Otherwise the command *may* wait.

Whether a thread reads the terminal is known from ``/proc/<pid>/task/<tid>/syscall`` (proc(5)): the
number and the arguments of the system call in which it sleeps, readable if the thread may be
traced. Otherwise, and on processors whose numbers are not known here, ``wchan`` remains: the kernel
function in which it sleeps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

import attrs

from aegis.protocol.terminals import NeedsInput

KEYS_QUIET_S = 1.0
"""Silence, in seconds, after which a program that reads single keys is taken to wait for one."""

CHECK_AFTER_S = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0)
"""Seconds of silence at which a command is checked; then every ``CHECK_EVERY_S``."""

_ROUNDING_S = 0.001
"""A check can come so much early, because moments are rounded."""

# Polled, because no event reports that a program begins to read.
CHECK_EVERY_S = 5.0

Doubt = Literal["thread", "work"] | None
"""The reason why a program that reads the terminal may not wait for it: a thread reads and the main
thread waits for its threads (``thread``), or something else is done meanwhile (``work``)."""

_WITH_LINE_EDITOR = frozenset({"bash", "zsh", "fish"})


@attrs.frozen(kw_only=True)
class Foreground:
    """The foreground process group, and the modes of its tty.

    ``program`` is the name of its leader, ``reader`` that of a member that sleeps in a read of the
    terminal. ``is_hidden``: the state of the leader may not be read. ``is_busy``: every thread of
    the group computes, sleeps or waits for a child, so no key would be read now. ``doubt`` is about
    the reader.
    """

    group: int
    is_canonical: bool
    echoes: bool
    program: str
    reader: str | None
    is_hidden: bool = False
    is_busy: bool = False
    doubt: Doubt = None

    @property
    def edits_line(self) -> bool:
        """Whether the tty has the modes of a line editor: single keys, no echo."""
        return not self.is_canonical and not self.echoes


def needs_input(front: Foreground | None, quiet_s: float) -> NeedsInput | None:
    """Return what the foreground program waits for, after ``quiet_s`` seconds without output."""
    if front is None:
        return None
    program = front.reader or front.program
    if not front.is_canonical:
        # A shell that got a line, and does not run yet because others use all processors, has still
        # the modes of its line editor.
        is_late = front.edits_line and front.is_busy and front.program in _WITH_LINE_EDITOR
        if is_late or not is_quiet_enough(quiet_s):
            return None
        return NeedsInput(kind="input", program=program)
    if front.reader is None and not (front.is_hidden and not front.echoes):
        return None
    return NeedsInput(kind="input" if front.echoes else "secret", program=program)


def is_certain(front: Foreground, *, prompts: bool) -> bool:
    """Return whether a program that ``needs_input`` does nothing else meanwhile.

    ``prompts``: its output ends within a line.
    """
    if not front.is_canonical:
        return front.doubt != "work"  # "thread": what is drawn is the prompt
    return front.doubt is None or (front.doubt == "thread" and (prompts or not front.echoes))


def is_quiet_enough(quiet_s: float) -> bool:
    """Return whether a program that reads single keys is taken to wait for one."""
    return quiet_s >= KEYS_QUIET_S - _ROUNDING_S


def is_at_prompt(shell: str, front: Foreground, *, pastes: bool) -> bool:
    """Return whether the foreground shell ``shell`` seems to read a line at its prompt.

    ``pastes``: paste mode is on.
    """
    # Zsh asks a new user for first settings in the same tty modes, but without paste mode.
    if shell == "zsh" and not pastes:
        return False
    # A read outside the line editor may be one of a start-up file.
    if shell in _WITH_LINE_EDITOR:
        return front.edits_line
    return front.edits_line or front.reader is not None


def next_check_after(quiet_s: float) -> float:
    """Return the seconds until the next check of a command that was quiet for ``quiet_s``."""
    for moment in CHECK_AFTER_S:
        if moment > quiet_s + _ROUNDING_S:
            return moment - quiet_s
    return CHECK_EVERY_S


@attrs.frozen(kw_only=True)
class SystemCalls:
    """The numbers of the system calls that read or write a descriptor, that select descriptors, and
    of all others that sleep until a descriptor is ready; that wait for a child or for a thread."""

    reads: frozenset[int]
    writes: frozenset[int]
    selects: frozenset[int]
    polls: frozenset[int]
    children: frozenset[int]
    threads: frozenset[int]


_GENERIC = SystemCalls(
    reads=frozenset({63, 65}),
    writes=frozenset({64, 66}),
    selects=frozenset({72}),
    polls=frozenset({22, 67, 69, 73, 243, 286, 426, 441}),
    children=frozenset({95, 260}),
    threads=frozenset({98, 449}),
)
SYSTEM_CALLS: Mapping[str, SystemCalls] = {
    "x86_64": SystemCalls(
        reads=frozenset({0, 19}),
        writes=frozenset({1, 20}),
        selects=frozenset({23, 270}),
        polls=frozenset({7, 17, 232, 271, 281, 295, 299, 327, 426, 441}),
        children=frozenset({61, 247}),
        threads=frozenset({202, 449}),
    ),
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
}
"""``read`` and ``readv``; ``write`` and ``writev``; ``select`` and ``pselect6``; ``poll``,
``ppoll``, ``epoll_wait``, ``epoll_pwait``, ``epoll_pwait2``, ``pread64``, ``preadv``, ``preadv2``,
``recvmmsg`` and ``io_uring_enter``; ``wait4`` and ``waitid``; ``futex`` and ``futex_waitv``; by the
machine of ``uname -m``."""

Sleep = Literal["pipe", "child", "thread", "other"]
"""For what a thread sleeps that does not read the terminal: for the other end of a pipe or file, a
child, or another thread; ``other``: for anything else, or it computes."""


def sleep_of(syscall: str, machine: str) -> Sleep:
    """Return for what a thread sleeps; the arguments are those of ``reads_descriptor``."""
    numbers, words = SYSTEM_CALLS.get(machine), syscall.split()
    if numbers is None or not words or not words[0].isdigit():
        return "other"
    call = int(words[0])
    if call in numbers.reads | numbers.writes:
        return "pipe"
    if call in numbers.children:
        return "child"
    return "thread" if call in numbers.threads else "other"


def doubt_of(main: Sleep | None, others: Collection[Sleep]) -> Doubt:
    """Return the doubt about a process of which a thread reads the terminal.

    ``main`` is for what the main thread sleeps (None: it reads the terminal), ``others`` are the
    sleeps of its other threads that do not read the terminal.
    """
    if main is None:
        return None
    return "thread" if main == "thread" and all(each == "thread" for each in others) else "work"


_TTY_SLEEPS = frozenset({"n_tty_read", "wait_woken"})
"""Kernel functions that sleep in a read of a terminal; the second also in one of a socket."""


def reads_descriptor(syscall: str, machine: str) -> int | None:
    """Return the descriptor that a thread sleeps to read; None if there is no single one.

    ``syscall`` is the content of the file of that name, ``machine`` that of ``uname -m``.
    """
    numbers, words = SYSTEM_CALLS.get(machine), syscall.split()
    if numbers is None or len(words) < 3 or not words[0].isdigit():
        return None
    call, first, second = int(words[0]), int(words[1], 16), int(words[2], 16)
    if call in numbers.reads:
        return first
    # The sets of a select are in the process's memory. But with one descriptor and a read set it is
    # descriptor 0: so wait the timed ``read`` of a shell and most line editors.
    if call in numbers.selects and first == 1 and second:
        return 0
    return None


def is_busy(syscall: str, machine: str) -> bool:
    """Return whether a thread sleeps for no descriptor, or does not sleep; False if unknown.

    The arguments are those of ``reads_descriptor``.
    """
    numbers, words = SYSTEM_CALLS.get(machine), syscall.split()
    if numbers is None or not words:
        return False
    if words[0] == "running":
        return True
    # -1: it sleeps outside of any system call. Another word is unknown.
    if not words[0].isdigit():
        return words[0] == "-1"
    return int(words[0]) not in numbers.reads | numbers.selects | numbers.polls


def may_read_terminal(wchan: str, descriptors: Mapping[int, str], terminal: str) -> bool:
    """Return whether a thread that sleeps in ``wchan`` seems to read the terminal.

    ``descriptors`` are the open files of the process, by number.
    """
    files = descriptors.values()
    if wchan not in _TTY_SLEEPS or not any(is_terminal(file, terminal) for file in files):
        return False
    return wchan == "n_tty_read" or not any(file.startswith("socket:") for file in files)


def is_terminal(file: str, terminal: str) -> bool:
    """Return whether ``file`` is this terminal, by its name or as the controlling terminal."""
    return file in (terminal, "/dev/tty")
