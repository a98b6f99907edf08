"""Peers: other programs that drive a shell, each tuned as an expert would.

Every peer does the same work: run one command in a bash that stays, return its exit code and its
whole output without echo and prompt. ``leaves_out`` names what a peer does not do and ours does.

No peer sleeps: pexpect's default of 50 ms before each send and libtmux's ``Pane.clear`` (which
types ``reset``, a program that sleeps a second) are avoided, as their manuals advise.
"""

from __future__ import annotations

import re
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

import attrs
import libtmux
import pexpect

from tests.e2e.harness import DaemonProcess

TIMEOUT_S = 60.0

PLAIN_BASH = ["bash", "--norc", "--noprofile", "--noediting"]

# The prompt carries the exit code between two control characters, so its end is the command's end.
# It is set from octal escapes: the echo of this very line must not look like a prompt.
QUIET_PROMPT = r"stty -echo; PS2=; PS1=$'\002$?\003'"
_PROMPT = re.compile(rb"\x02([0-9]+)\x03")
_TAIL = 32
"""Bytes at the end of the output in which a prompt is looked for."""


@attrs.frozen
class Result:
    """The exit code and the output of one command."""

    exit: int
    output: str


Run = Callable[[str], Result]


@attrs.frozen
class Peer:
    """A named way to run commands; ``open`` takes an empty directory for its files."""

    name: str
    leaves_out: str
    open: Callable[[Path], AbstractContextManager[Run]]


class PromptReader:
    """Collect output until a prompt follows it. ``read`` returns the next bytes, never none."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read

    def until_prompt(self) -> Result:
        """Return what came before the prompt and the exit code in it."""
        data = bytearray()
        while (prompt := _PROMPT.search(data, max(0, len(data) - _TAIL))) is None:
            data += self._read()
        text = bytes(data[: prompt.start()]).decode(errors="replace")
        return Result(int(prompt[1]), text.replace("\r\n", "\n"))


@contextmanager
def open_ours(directory: Path) -> Iterator[Run]:
    """Start a daemon with one terminal, and keep one connection to its Unix socket."""
    daemon = DaemonProcess(directory)
    daemon.start("--port", "0", "--log-level", "warning")
    try:
        daemon.call("term_spawn", name="bench", shell="/bin/bash")
        with daemon.connect() as client:

            def run(cmd: str) -> Result:
                asked = {"name": "bench", "cmd": cmd, "timeout": TIMEOUT_S}
                record = client.call("term_run", asked)
                return Result(record["exit"], record["stdout"])

            yield run
    finally:
        daemon.stop()


@contextmanager
def open_pexpect(directory: Path) -> Iterator[Run]:
    """Start bash under pexpect, without its delay before each send."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pexpect forks while this process has threads
        child: pexpect.spawn[bytes] = pexpect.spawn(
            PLAIN_BASH[0], PLAIN_BASH[1:], cwd=str(directory), echo=False, timeout=TIMEOUT_S
        )
    child.delaybeforesend = None
    reader = PromptReader(lambda: child.read_nonblocking(65_536, TIMEOUT_S))
    try:

        def run(cmd: str) -> Result:
            child.sendline(cmd)
            return reader.until_prompt()

        run(QUIET_PROMPT)
        yield run
    finally:
        child.close(force=True)


@contextmanager
def open_control_mode(directory: Path) -> Iterator[Run]:
    """Start a tmux server and read its pane's output in control mode, over one connection."""
    socket = str(directory / "tmux.sock")
    tmux = subprocess.Popen(
        ["tmux", "-f", "/dev/null", "-S", socket, "-C", "new-session", " ".join(PLAIN_BASH)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=directory,
    )
    assert tmux.stdin is not None
    assert tmux.stdout is not None
    keys, lines = tmux.stdin, tmux.stdout
    reader = PromptReader(lambda: _next_output(lines))

    def run(cmd: str) -> Result:
        # Hexadecimal keys: tmux would read quotes and semicolons in the text as its own.
        typed = " ".join(f"{byte:x}" for byte in f"{cmd}\r".encode())
        keys.write(f"send-keys -H {typed}\n".encode())
        keys.flush()
        return reader.until_prompt()

    try:
        run(QUIET_PROMPT)
        yield run
    finally:
        subprocess.run(["tmux", "-S", socket, "kill-server"], check=False)
        tmux.kill()  # a client in control mode outlives its server while its input is open
        tmux.communicate()


_OCTAL = re.compile(rb"\\([0-7]{3})")


def _next_output(lines: IO[bytes]) -> bytes:
    """Return the bytes of the next ``%output`` notification; tmux escapes controls in octal."""
    while not (line := lines.readline()).startswith(b"%output "):
        assert line, "the tmux server ended"
    text = line.rstrip(b"\n").split(b" ", 2)[2]
    return _OCTAL.sub(lambda each: bytes([int(each[1], 8)]), text)


@contextmanager
def open_libtmux(directory: Path) -> Iterator[Run]:
    """Start a tmux server and drive a pane by libtmux, three tmux commands for each run.

    A run empties the pane, types, waits for a ``wait-for`` signal and captures the pane. Each step
    is a process of its own, and so is the signal that the shell sends.
    """
    socket = directory / "tmux.sock"
    server = libtmux.Server(socket_path=socket, config_file="/dev/null")
    server.cmd("start-server", ";", "set-option", "-g", "history-limit", "20000")
    session = server.new_session(x=200, y=50, window_command=" ".join(PLAIN_BASH))
    try:
        pane = session.active_pane
        assert pane is not None
        assert pane.pane_id is not None
        at = pane.pane_id
        # Printable, unlike the prompt of the others: a captured line holds no control characters.
        signal = f"printf 'exit:%s:' $?; tmux -S {socket} wait-for -S done"

        def run(cmd: str) -> Result:
            line = f"{cmd}\n{signal}"
            fresh = ("send-keys", "-R", "-t", at, ";", "clear-history", "-t", at, ";")
            server.cmd(*fresh, "send-keys", "-t", at, "-l", f"{line}\r")
            server.cmd("wait-for", "done")
            return _captured(pane)

        server.cmd("send-keys", "-t", at, "-l", f"stty -echo; PS1= PS2=; {signal}\r")
        server.cmd("wait-for", "done")
        yield run
    finally:
        server.kill()


def _captured(pane: libtmux.Pane) -> Result:
    """Return the pane's text up to its marker; tmux may read the pane later than the signal."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        text = "\n".join(pane.capture_pane(start="-"))
        found = re.search(r"exit:([0-9]+):\s*\Z", text)
        if found is not None:
            return Result(int(found[1]), text[: found.start()])
    raise TimeoutError("the pane never showed the end of the command")


PEERS = (
    Peer("ours", "", open_ours),
    Peer("pexpect", "no record, one client, no restart", open_pexpect),
    Peer("tmux control mode", "no record, no exit code of typed commands", open_control_mode),
    Peer("libtmux", "no record, wrapped lines without colours", open_libtmux),
)
