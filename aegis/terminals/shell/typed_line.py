"""The line that is being typed at a shell: whether it is empty, its text, and how it is dropped.

``EmptyLineQuery`` asks the line editor whether the line is empty. It asks once after
``ASK_AFTER_S`` without keys, and only if the line may be empty by its keys (``LineKeys``), the
shell is at its prompt by its marks, and it has read all keys and waits for more. Until then it
checks again, less and less often. An unanswered query is not repeated until the next prompt.

When its private key is pressed, bash draws the last line of the prompt once more. That is removed
from the output, so that viewers see no flicker: the output is held back for a moment.

``KeyedLines`` collects the text of lines from their keys. ``LineDrop`` makes the shell drop text
that it cannot finish reading.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import trio

from aegis.terminals.hooks.adapter import PROBE_S, ShellAdapter
from aegis.terminals.parse.boundaries import Boundaries, CommandEnd
from aegis.terminals.shell.port import ShellPort
from aegis.terminals.typed import LOST, TypedLine, TypedText, UnknownText

ASK_AFTER_S = 0.4
"""Seconds without a key before the query."""

MAX_WAIT_S = 5.0
"""The longest time between two checks of a shell that cannot be asked now, in seconds."""

HOLD_S = 0.1
"""Seconds that output is held back for the answer, which takes a fraction of a millisecond."""

CLOCK_S = 0.001
"""Times that differ by less are equal: sums of seconds are not exact."""

MAX_HELD_BYTES = 64 * 1024
"""The most output that is held back: the line editor draws far less."""


class EmptyLineQuery:
    """The queries to one shell; ``boundaries`` and ``adapter`` return the current ones."""

    def __init__(
        self,
        shell: ShellPort,
        boundaries: Callable[[], Boundaries],
        adapter: Callable[[], ShellAdapter],
    ) -> None:
        self._shell = shell
        self._boundaries = boundaries
        self._adapter = adapter
        self._last_key = 0.0
        self._wait_s = ASK_AFTER_S
        self._look_at: float | None = None
        self._is_open = False
        self._was_asked = False
        self._held: bytes | None = None
        self._held_until = 0.0
        self._is_below_prompt = False

    def typed(self) -> None:
        """Note keys that were sent to the shell."""
        self._last_key, self._wait_s = trio.current_time(), ASK_AFTER_S
        self._was_asked = False
        self._plan(ASK_AFTER_S)

    def prompted(self) -> None:
        """Note a new prompt."""
        # Keys that were sent before the prompt was drawn are on its line.
        self._is_open, self._is_below_prompt = False, False
        self._plan(ASK_AFTER_S)

    def drawn(self) -> None:
        """Note that the prompt was drawn, at first or again."""
        self._is_below_prompt = False

    def printed(self, text: bytes) -> None:
        """Note output of the shell."""
        self._is_below_prompt = self._is_below_prompt or b"\n" in text

    def answered(self) -> None:
        """Note that the hook has reported the length of the line."""
        self._is_open = False
        self._plan(ASK_AFTER_S)

    def look(self) -> None:
        """Send the query if it is due."""
        now = trio.current_time()
        if self._look_at is None or now < self._look_at - CLOCK_S:
            return
        self._look_at = None
        rested_s = now - self._last_key
        if self._is_open or self._was_asked or not self._boundaries().can_ask():
            return
        if rested_s < ASK_AFTER_S - CLOCK_S:
            self._plan(ASK_AFTER_S - rested_s)
        elif self._lists() or not self._shell.waits_for_keys():
            self._wait_s = min(2 * self._wait_s, MAX_WAIT_S)
            self._plan(self._wait_s)
        else:
            self._ask()

    def _plan(self, wait_s: float) -> None:
        if self._look_at is None and not self._was_asked and self._boundaries().can_ask():
            self._look_at = trio.current_time() + wait_s
            self._shell.look_again_after(wait_s)

    def _lists(self) -> bool:
        """Whether a completion may be asking whether to list its results, or showing a pager."""
        # The cursor is below the prompt then, and the prompt was not drawn again.
        has_completed = self._boundaries().has_completed
        return self._adapter().uses_readline and has_completed and self._is_below_prompt

    def _ask(self) -> None:
        keys = self._adapter().ask_line()
        if keys is None:
            return
        self._boundaries().asked()
        self._is_open = self._was_asked = True
        if self._adapter().redraw is not None:
            self._held, self._held_until = b"", trio.current_time() + HOLD_S
            self._shell.look_again_after(HOLD_S)
        if keys:
            self._shell.write(keys)

    # Output that bash draws on a query.

    def without_redraw(self, data: bytes) -> bytes:
        """Return the output to pass on after ``data`` came, without the redraw of a query."""
        if self._held is None:
            return data
        self._held += data
        redraw = self._adapter().redraw
        found = None if redraw is None else redraw.search(self._held)
        if found is not None:
            rest = self._held[: found.start()] + found["report"] + self._held[found.end() :]
            self._held = None
            return rest
        return self.release() if len(self._held) > MAX_HELD_BYTES else b""

    def overdue(self) -> bytes:
        """Return the held output if the answer did not come in time."""
        return self.release() if trio.current_time() >= self._held_until - CLOCK_S else b""

    def release(self) -> bytes:
        """Return and clear the held output."""
        held, self._held = self._held or b"", None
        return held


MAX_BYTES = 1 << 20

_PASTE, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_ENTERS = (b"\r", b"\n")
_TOKEN = re.compile(rb"\x1b\[20[01]~|[\r\n]|[^\x00-\x1f\x7f]+|[\x00-\x1f\x7f]")


class KeyedLine:
    """The text of one line, by its keys, from an empty line on.

    Only characters, pastes and the Enter after them are followed. Any other key (an arrow, TAB,
    Ctrl-R) makes the text unknown, because the answer of the line editor is unknown.
    """

    def __init__(self) -> None:
        self._text = bytearray()
        self._in_paste = False
        self._is_known = True
        self._is_ended = False

    def add(self, data: bytes) -> None:
        """Add keys that are sent to the shell."""
        for token in _TOKEN.findall(data):
            if self._is_ended or not self._is_known:
                return  # keys after the Enter are for the command, or for the next line
            self._take(token)

    def _take(self, token: bytes) -> None:
        if token in (_PASTE, _PASTE_END):
            self._in_paste = token == _PASTE
        elif token in _ENTERS and not self._in_paste:
            self._is_ended = True
        elif (token[0] >= 0x20 and token[0] != 0x7F) or self._in_paste:
            self._text += b"\n" if token == b"\r" else token
            self._is_known = len(self._text) <= MAX_BYTES
        else:
            self._is_known = False

    @property
    def text(self) -> str | None:
        """The text of the ended line; None if it is not known."""
        if not (self._is_known and self._is_ended):
            return None
        try:
            return self._text.decode()
        except UnicodeDecodeError:
            return None


class KeyedLines:
    """The lines of a shell, one after the other; ``text_of_command`` is the newest command's."""

    def __init__(self) -> None:
        self._line: KeyedLine | None = None
        self.text_of_command: str | None = None

    def sent(self, data: bytes, *, is_empty: bool) -> None:
        """Add keys; ``is_empty``: the shell is at its prompt with an empty line."""
        if self._line is None and is_empty:
            self._line = KeyedLine()
        if self._line is not None:
            self._line.add(data)

    def began(self) -> None:
        """Note the start of a command: the ended line is its text, if a line was followed."""
        self.text_of_command = None if self._line is None else self._line.text
        self._line = None

    def ended(self) -> None:
        """Note the end of a line: the next one is empty, except for keys typed ahead."""
        self._line = None

    def text_of(self, ended: CommandEnd, adapter: ShellAdapter) -> TypedText:
        """Return the text of the newest command, which has ended, as its hook reports it."""
        if ended.lost:
            return UnknownText(LOST)
        line = TypedLine(
            commands=ended.commands,
            continuations=ended.continuations,
            keyed=self.text_of_command,
        )
        return adapter.read_typed(ended.history, line)


ROUNDS = 3
"""How often the sequence of keys that drop a text is tried."""


class LineDrop:
    """Sends the keys that make the shell drop an incomplete text, until it is at its prompt.

    ``probed`` is called before each of them, because the hook answers it like a probe.
    """

    def __init__(self, shell: ShellPort, probed: Callable[[], None]) -> None:
        self._shell = shell
        self._probed = probed
        self._keys: Iterator[bytes] = iter(())

    def begin(self, drops: tuple[bytes, ...]) -> None:
        """Send the first of the keys that drop a text."""
        self._keys = iter(drops * ROUNDS)
        self.again()

    def again(self) -> None:
        """Send the next key, and have the tracker check later whether it worked."""
        keys = next(self._keys, b"")
        if keys:
            self._probed()
            self._shell.write(keys)
            self._shell.look_again_after(PROBE_S)
