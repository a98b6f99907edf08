"""A simulated PTY: a line discipline between a master and a slave, as termios(3) has it.

The model:

- Lines (canonical) with erase, kill, end of file and at most 4,095 bytes, the rest of a longer one
  lost; or single keys. Echo, control characters as ``^C``. CR becomes a line feed on its way in, a
  line feed CR LF on its way out.
- Ctrl-C, Ctrl-\\ and Ctrl-Z drop unread input, and signal the foreground group.
- Both directions have a buffer of bounded size: a write beyond it waits for the reader.
- A read of the master is split anywhere. It ends once the slave is closed and all is read.
- A hang-up (the master is closed) signals the leader of the session; reads of the slave end, writes
  fail.

Not modelled: flow control, output and echo that the kernel drops before a Ctrl-C, reads in the
background.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable
from random import Random

import trio

OUTPUT_ROOM_BYTES = 65_536
INPUT_ROOM_BYTES = 69_631
MAX_LINE_BYTES = 4_095

_SIGNALS = {3: signal.SIGINT, 28: signal.SIGQUIT, 26: signal.SIGTSTP}
_END_OF_FILE, _ERASE, _KILL = 4, 127, 21


class Bell:
    """A notification for all current waiters."""

    def __init__(self) -> None:
        self._rung = trio.Event()

    def ring(self) -> None:
        """Wake all waiters."""
        self._rung.set()
        self._rung = trio.Event()

    async def wait(self) -> None:
        """Wait for the next notification."""
        await self._rung.wait()


class SimulatedTty:
    """A PTY called ``name`` of a ``session``; ``foreground`` is the foreground group.

    ``signal_group`` signals a group; ``chance`` splits the reads of the master.
    """

    def __init__(
        self,
        name: str,
        signal_group: Callable[[int, signal.Signals], bool],
        chance: Random,
    ) -> None:
        self.name = name
        self.session: int | None = None
        self.foreground: int | None = None
        self.is_canonical = True
        self.echoes = True
        self.maps_returns = True
        self.is_hung_up = False
        self._signal_group = signal_group
        self._chance = chance
        self._holders: set[int] = set()
        self._lines: deque[bytes] = deque()
        self._line = bytearray()
        self._output = bytearray()
        self._stirred = Bell()

    # Settings.

    def take_lines(self, *, echo: bool = True) -> None:
        """Collect lines (canonical mode). Keys that were typed and not read are one line."""
        if not self.is_canonical and self._line:
            self._end_line()
        self.is_canonical, self.maps_returns, self.echoes = True, True, echo
        self._stirred.ring()

    def take_keys(self, *, maps_returns: bool = False) -> None:
        """Deliver each key at once, without echo."""
        self.is_canonical, self.maps_returns, self.echoes = False, maps_returns, False
        self._stirred.ring()

    def hold(self, pid: int) -> None:
        """Record that a process has the slave open."""
        self._holders.add(pid)

    def release(self, pid: int) -> None:
        """Record that a process has closed the slave."""
        self._holders.discard(pid)
        self._stirred.ring()

    # The side of the slave.

    @property
    def has_input(self) -> bool:
        """Return whether a read would not wait."""
        return bool(self._lines) or (not self.is_canonical and bool(self._line)) or self.is_hung_up

    async def read(self, size: int) -> bytes:
        """Return typed bytes, of one line at most in canonical mode; ``b""`` ends the file."""
        while not self.has_input:
            await self._stirred.wait()
        if self.is_hung_up:
            return b""
        self._stirred.ring()
        if not self.is_canonical:
            typed = b"".join(self._lines) + bytes(self._line)
            self._lines.clear()
            self._line[:] = typed[size:]
            return typed[:size]
        line = self._lines.popleft()
        if len(line) > size:
            self._lines.appendleft(line[size:])
        return line[:size]

    def unread(self, data: bytes) -> None:
        """Put back keys that were read and not used."""
        self._line[:0] = data

    async def write(self, data: bytes) -> None:
        """Print, waiting for room. Raises ``trio.BrokenResourceError`` once hung up."""
        left = data.replace(b"\n", b"\r\n")
        while left:
            if self.is_hung_up:
                raise trio.BrokenResourceError("this terminal was hung up")
            room = max(0, OUTPUT_ROOM_BYTES - len(self._output))
            if room:
                self._print(left[:room])
                left = left[room:]
            else:
                await self._stirred.wait()

    def _print(self, data: bytes) -> None:
        self._output += data
        self._stirred.ring()

    # The side of the master.

    def take(self, most: int) -> bytes | None:
        """Return printed bytes; ``b""`` at the stream's end, None: nothing yet."""
        if self._output:
            here = min(most, len(self._output))
            if self._chance.random() < 0.25:
                here = self._chance.randint(1, here)
            data = bytes(self._output[:here])
            del self._output[:here]
            self._stirred.ring()
            return data
        return None if self._holders else b""

    def give(self, data: bytes) -> int:
        """Type; return the number of bytes for which there was room."""
        unread = sum(map(len, self._lines)) + len(self._line)
        taken = data[: max(0, INPUT_ROOM_BYTES - unread)]
        for key in taken:
            self._type(key)
        self._stirred.ring()
        return len(taken)

    def stir(self) -> None:
        """Wake the waiters after a signal."""
        self._stirred.ring()

    async def stirs(self) -> None:
        """Wait until something has changed."""
        await self._stirred.wait()

    def hang_up(self) -> None:
        """Hang up, because the master is closed."""
        if self.is_hung_up:
            return
        self.is_hung_up = True
        self._output.clear()
        self._stirred.ring()
        if self.session is not None:
            # The leader's first group has its number.
            self._signal_group(self.session, signal.SIGHUP)
            self._signal_group(self.session, signal.SIGCONT)

    def _type(self, key: int) -> None:
        if key in _SIGNALS:
            self._lines.clear()
            self._line.clear()
            self._echo(key)
            if self.foreground is not None:
                self._signal_group(self.foreground, _SIGNALS[key])
            return
        if key == 13 and self.maps_returns:
            key = 10
        if self.is_canonical:
            self._edit(key)
        else:
            self._line.append(key)
            self._echo(key)

    def _edit(self, key: int) -> None:
        """Process one key in canonical mode."""
        if key == _END_OF_FILE:
            self._end_line()
        elif key == _ERASE:
            self._erase(1)
        elif key == _KILL:
            self._erase(len(self._line))
        else:
            self._echo(key)
            if key == 10 or len(self._line) < MAX_LINE_BYTES:
                self._line.append(key)
            if key == 10:
                self._end_line()

    def _erase(self, count: int) -> None:
        for _ in range(min(count, len(self._line))):
            columns = 2 if self._line.pop() < 32 else 1
            self._print(b"\b \b" * columns if self.echoes else b"")

    def _end_line(self) -> None:
        self._lines.append(bytes(self._line))
        self._line.clear()

    def _echo(self, key: int) -> None:
        if not self.echoes:
            return
        if key == 10:
            self._print(b"\r\n")
        elif key < 32 and key != 9:
            self._print(b"^" + bytes([key + 64]))
        else:
            self._print(bytes([key]))
