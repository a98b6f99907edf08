"""The terminals of the daemon."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from aegis.client.nouns.noun import Noun
from aegis.client.stream_kinds import OutputKind
from aegis.client.streams import OutputStream
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


class Terminals(Noun):
    """The terminals of the daemon."""

    async def spawn(
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
        return await self._call(
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

    async def list(self) -> TerminalList:
        """List the open terminals."""
        return await self._call(ListTerminals)

    async def run(
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
        return await self._call(RunCommand, name=name, cmd=cmd, timeout=timeout, until=until)

    async def broadcast(
        self, names: Names, cmd: str, *, timeout: float | None = None
    ) -> BroadcastOutcomes:
        """Run a command on several terminals at once, each for at most ``timeout`` seconds."""
        return await self._call(Broadcast, names=names, cmd=cmd, timeout=timeout)

    async def keys(self, name: str, keys: str) -> Done:
        """Type ``keys`` unchanged: Enter is a carriage return, Ctrl-C is U+0003."""
        return await self._call(SendKeys, name=name, keys=keys)

    async def read(
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
        return await self._call(
            ReadRecords,
            name=name,
            last_n=last_n,
            since_seq=since_seq,
            before_seq=before_seq,
            output=output,
        )

    async def screen(self, name: str) -> Screen:
        """Return the screen as a person would see it now."""
        return await self._call(GetScreen, name=name)

    async def output(
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
        return await self._call(
            ReadOutput,
            name=name,
            seq=seq,
            cursor=cursor,
            max_bytes=max_bytes,
            wait_s=wait_s,
            plain=plain,
        )

    async def wait(
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
        return await self._call(
            WaitTerminal,
            name=name,
            seq=seq,
            pattern=pattern,
            idle_s=idle_s,
            cursor=cursor,
            timeout=timeout,
        )

    async def subscribe(
        self, name: str, *, pattern: str | None = None, only_failures: bool = False
    ) -> Subscribed:
        """Get a message in the inbox when a command of another handle finishes."""
        return await self._call(Subscribe, name=name, pattern=pattern, only_failures=only_failures)

    async def unsubscribe(self, name: str) -> Done:
        """End the subscription."""
        return await self._call(Unsubscribe, name=name)

    async def signal(self, name: str, signal: str, *, seq: int | None = None) -> Done:
        """Send a signal such as ``INT`` to the foreground program or the command ``seq``."""
        return await self._call(SignalTerminal, name=name, signal=signal, seq=seq)

    async def resize(self, name: str, cols: int, rows: int) -> TerminalInfo:
        """Resize the terminal to ``cols`` columns and ``rows`` rows."""
        return await self._call(ResizeTerminal, name=name, cols=cols, rows=rows)

    async def close(self, name: str, *, purge: bool = False) -> Closed:
        """Close a terminal and end its processes; delete its history if ``purge``."""
        return await self._call(CloseTerminal, name=name, purge=purge)

    def watch(
        self,
        name: str,
        *,
        cursor: int | None = None,
        end: int | None = None,
        screen: bool = False,
        scrollback: int = 0,
    ) -> AbstractAsyncContextManager[OutputStream]:
        """Open the stream of new output, with ``async with``, or of output from ``cursor``.

        ``cursor`` is a byte offset; with ``end`` the stream ends there. With ``screen`` the first
        value is a ``Redraw`` of the present screen, and of ``scrollback`` lines above it. The
        stream survives restarts of the shell and lost connections, and ends when the terminal is
        closed.
        """
        session = self._session
        kind = OutputKind(
            session.handle, name, cursor=cursor, end=end, screen=screen, scrollback=scrollback
        )
        return session.watch(OutputStream(session, kind))
