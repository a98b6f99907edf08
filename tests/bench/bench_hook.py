"""What the hook costs bash per command, against a bash whose prompts print the same marks alone.

Both get the same paste on a bare PTY, in shuffled turns: no daemon, no parser. Measured are bash's
own CPU time of a command, and the time until the mark of its start, of its end and the next prompt,
with a history of one entry (the same command again and again with ``HISTCONTROL=ignoredups``) and
of several. On a busy machine all marks come at once, and only the CPU time says anything.

python tests/bench/bench_hook.py
"""

from __future__ import annotations

import os
import pty
import random
import select
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

from aegis.terminals.hooks import bash
from aegis.terminals.hooks.submission import EMPTY_KEY, encode_submission
from tests.bench.table import Row, print_rows

ROUNDS = 300
WARM_UP = 20
HANG_S = 30.0

MARKS = (b"\x1b]133;C", b"\x1b]133;D", b"\x1b]133;B")
NAMES = ("until the start mark", "until the end mark", "until the prompt")
REST_S = 0.0005
"""Pause, in seconds, in which bash comes to rest behind its prompt."""

PLAIN = r"""
PS0='\e]133;C;n=0;q=0\a' PS1='\[\e]133;A\a\]$ \[\e]133;B\a\]' HISTCONTROL=ignoredups
PROMPT_COMMAND='printf "\e]133;D;%s;n=0;q=0\a" $?'
"""
HOOKED = "PS1='$ ' HISTCONTROL=ignoredups\n"


@attrs.define
class Bash:
    """An interactive bash on a PTY; ``samples`` are the seconds of CPU and until each mark."""

    pid: int
    master: int
    encoded: tuple[bytes, ...]
    samples: list[tuple[float, ...]] = attrs.field(factory=list)
    count: int = 0

    def run(self) -> tuple[float, ...]:
        """Paste the next command; return the seconds of CPU time, and until each mark."""
        keys = self.encoded[self.count % len(self.encoded)]
        self.count += 1
        used = self._cpu_s()
        begin = time.perf_counter()
        os.write(self.master, keys)
        seen, times = b"", []
        for mark in MARKS:
            while mark not in seen:
                seen += self._read()
            times.append(time.perf_counter() - begin)
            seen = seen.partition(mark)[2]
        time.sleep(REST_S)
        return self._cpu_s() - used, *times

    def until_prompt(self) -> None:
        """Read up to the first prompt."""
        seen = b""
        while MARKS[-1] not in seen:
            seen += self._read()

    def _cpu_s(self) -> float:
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def _read(self) -> bytes:
        if not select.select([self.master], [], [], HANG_S)[0]:
            raise TimeoutError("bash printed no mark")
        return os.read(self.master, 65536)


@contextmanager
def open_bash(argv: list[str], home: Path, encoded: tuple[bytes, ...]) -> Iterator[Bash]:
    """Start a bash at its first prompt; end it at the exit."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(HOME=str(home), TERM="xterm-256color")
        os.environ.pop("PROMPT_COMMAND", None)
        os.execv(argv[0], argv)
    try:
        shell = Bash(pid, master, encoded)
        shell.until_prompt()
        yield shell
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)


def paste(cmd: str) -> bytes:
    """Return the keys that paste ``cmd`` into a bash without the hook."""
    return b"\x1b[200~" + cmd.encode() + b"\x1b[201~\r"


def submission(cmd: str) -> bytes:
    """Return the keys that the daemon sends at a prompt that nobody has touched."""
    return encode_submission(cmd, first=EMPTY_KEY)


def measure() -> list[Row]:
    """Rows for the table: the ratios to plain bash, and the microseconds of both."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory, ExitStack() as stack:
        shells = _open_all(Path(directory), stack)
        for number in range(WARM_UP + ROUNDS):
            for shell in random.sample(list(shells.values()), len(shells)):
                times = shell.run()
                if number >= WARM_UP:
                    shell.samples.append(times)
    return list(_rows(shells))


def _open_all(home: Path, stack: ExitStack) -> dict[str, Bash]:
    (home / ".bashrc").write_text(HOOKED)
    (home / "plain").write_text(PLAIN)
    shells = {}
    for entries, cmds in (("one", ("true",)), ("several", ("true", ":"))):
        hooked = home / f"hook-{entries}"
        hooked.mkdir(mode=0o700)
        bash.write_startup(hooked)
        plain = ["/bin/bash", "--rcfile", str(home / "plain"), "-i"]
        for name, argv, encode in (
            ("plain", plain, paste),
            ("hook", bash.argv("/bin/bash", hooked), submission),
        ):
            keys = tuple(encode(cmd) for cmd in cmds)
            shells[f"{name}, {entries}"] = stack.enter_context(open_bash(argv, home, keys))
    return shells


def _rows(shells: dict[str, Bash]) -> Iterator[Row]:
    medians = {
        name: [statistics.median(times) for times in zip(*shell.samples, strict=True)]
        for name, shell in shells.items()
    }
    for entries in ("one", "several"):
        ours, plain = medians[f"hook, {entries}"], medians[f"plain, {entries}"]
        where = f"bash, {entries} in the history"
        yield f"{where}: CPU with the hook / plain", ours[0] / plain[0], "ratio"
        for name, mine, theirs in zip(("CPU", *NAMES), ours, plain, strict=True):
            yield f"  {where}: {name}, µs", mine * 1e6, f"median; plain {theirs * 1e6:.0f}"


if __name__ == "__main__":
    print_rows(measure())
