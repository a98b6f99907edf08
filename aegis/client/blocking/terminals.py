"""The terminals of the daemon, for the blocking client."""

from __future__ import annotations

from collections.abc import Iterator

from aegis.client.blocking.noun import BlockingNoun
from aegis.client.errors import CommandFailed
from aegis.protocol.broadcast import Broadcast, BroadcastOutcomes
from aegis.protocol.control import ResizeTerminal, SignalTerminal
from aegis.protocol.output import (
    DEFAULT_OUTPUT_BYTES,
    OutputChunk,
    ReadOutput,
    WaitOutcome,
    WaitTerminal,
)
from aegis.protocol.screens import GetScreen, Screen
from aegis.protocol.terminals import (
    Closed,
    CloseTerminal,
    CommandRecord,
    Done,
    ListTerminals,
    ReadRecords,
    RecordList,
    RunCommand,
    SendKeys,
    SpawnTerminal,
    StandardError,
    Subscribe,
    Subscribed,
    TerminalInfo,
    TerminalList,
    Unsubscribe,
    Until,
)

Names = list[str]

POLL_S = 25.0
"""Seconds that one call of a watch waits for output."""


class Terminals(BlockingNoun):
    """The terminals of the daemon."""

    def spawn(
        self,
        name: str,
        *,
        shell: str | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        cols: int | None = None,
        rows: int | None = None,
        stderr: StandardError = "merged",
        node: str | None = None,
    ) -> TerminalInfo:
        """Start a terminal: a shell on a PTY, on the node ``node`` or the daemon's choice."""
        return self._call(
            SpawnTerminal,
            name=name,
            shell=shell,
            cwd=cwd,
            env=env,
            cols=cols,
            rows=rows,
            stderr=stderr,
            node=node,
        )

    def list(self) -> TerminalList:
        """List the open terminals."""
        return self._call(ListTerminals)

    def run(
        self,
        name: str,
        cmd: str,
        *,
        timeout: float | None = None,
        until: Until = "ended",
    ) -> CommandRecord:
        """Run a command and return its record.

        Waits until the command has ended or, with ``until="started"``, has started, and at most
        ``timeout`` seconds.
        """
        return self._call(RunCommand, name=name, cmd=cmd, timeout=timeout, until=until)

    def broadcast(
        self, names: Names, cmd: str, *, timeout: float | None = None
    ) -> BroadcastOutcomes:
        """Run a command on several terminals at once, each for at most ``timeout`` seconds."""
        return self._call(Broadcast, names=names, cmd=cmd, timeout=timeout)

    def keys(self, name: str, keys: str) -> Done:
        """Type ``keys`` unchanged: Enter is a carriage return, Ctrl-C is U+0003."""
        return self._call(SendKeys, name=name, keys=keys)

    def read(
        self,
        name: str,
        *,
        last_n: int | None = None,
        since_seq: int | None = None,
        before_seq: int | None = None,
        output: bool = True,
    ) -> RecordList:
        """Return finished commands: the newest ``last_n``, or all after ``since_seq``.

        With ``before_seq``, the newest ``last_n`` before that one. Without ``output``, stdout and
        stderr are empty.
        """
        return self._call(
            ReadRecords,
            name=name,
            last_n=last_n,
            since_seq=since_seq,
            before_seq=before_seq,
            output=output,
        )

    def screen(self, name: str) -> Screen:
        """Return the screen as a person would see it now."""
        return self._call(GetScreen, name=name)

    def output(
        self,
        name: str,
        *,
        seq: int | None = None,
        cursor: int | None = None,
        max_bytes: int = DEFAULT_OUTPUT_BYTES,
        wait_s: float = 0.0,
        plain: bool = True,
    ) -> OutputChunk:
        """Return output from the byte offset ``cursor``, or the output of the command ``seq``.

        Waits at most ``wait_s`` seconds for new output.
        """
        return self._call(
            ReadOutput,
            name=name,
            seq=seq,
            cursor=cursor,
            max_bytes=max_bytes,
            wait_s=wait_s,
            plain=plain,
        )

    def wait(
        self,
        name: str,
        *,
        seq: int | None = None,
        pattern: str | None = None,
        idle_s: float | None = None,
        cursor: int | None = None,
        timeout: float | None = None,
    ) -> WaitOutcome:
        """Wait for the end of a command, a match of ``pattern``, or ``idle_s`` quiet seconds."""
        return self._call(
            WaitTerminal,
            name=name,
            seq=seq,
            pattern=pattern,
            idle_s=idle_s,
            cursor=cursor,
            timeout=timeout,
        )

    def subscribe(
        self, name: str, *, pattern: str | None = None, only_failures: bool = False
    ) -> Subscribed:
        """Get a message in the inbox when a command of another handle finishes."""
        return self._call(Subscribe, name=name, pattern=pattern, only_failures=only_failures)

    def unsubscribe(self, name: str) -> Done:
        """End the subscription."""
        return self._call(Unsubscribe, name=name)

    def signal(self, name: str, signal: str, *, seq: int | None = None) -> Done:
        """Send a signal such as ``INT`` to the foreground program or the command ``seq``."""
        return self._call(SignalTerminal, name=name, signal=signal, seq=seq)

    def resize(self, name: str, cols: int, rows: int) -> TerminalInfo:
        """Resize the terminal to ``cols`` columns and ``rows`` rows."""
        return self._call(ResizeTerminal, name=name, cols=cols, rows=rows)

    def close(self, name: str, *, purge: bool = False) -> Closed:
        """Close a terminal and end its processes; delete its history if ``purge``."""
        return self._call(CloseTerminal, name=name, purge=purge)

    def watch(
        self, name: str, *, cursor: int | None = None, plain: bool = True
    ) -> Iterator[OutputChunk]:
        """Yield output from the byte offset ``cursor`` until the terminal is closed.

        Without a cursor it starts at the start of the current command or, if none is running, of
        the last one. It repeats calls of ``output``. ``dropped`` of a chunk is a gap, in bytes.
        """
        is_open, has_failed = True, False
        while True:
            try:
                wait_s = POLL_S if is_open else 0.0
                chunk = self.output(name, cursor=cursor, wait_s=wait_s, plain=plain)
            except CommandFailed as error:
                if error.code != "unavailable" or has_failed:
                    raise
                # It may have been closed during the wait; its last output can still be read.
                is_open, has_failed = False, True
                continue
            cursor, has_failed = chunk.next_cursor, False
            if chunk.text or chunk.dropped:
                yield chunk
            elif is_open:
                is_open = self._prints(name)
            elif self._prints(name):
                is_open = True
            else:
                return

    def _prints(self, name: str) -> bool:
        """Return whether the terminal is open and may print more."""
        found = self.list().result
        return any(
            each.name.lower() == name.lower() and each.state not in ("failed", "closed")
            for each in found
        )
