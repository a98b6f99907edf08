"""``EmptyLineQuery``: asks the line editor whether the line that somebody is typing is empty.

A line is asked about once after its keys have rested for ``ASK_AFTER_S``, and only if it may be
empty by them (``LineKeys``), the shell is at its prompt by its marks, and the shell itself waits
for keys, having read all that were sent. While that is not so it is looked at again, less and less
often. A question that is not answered is not repeated until the next prompt.

What bash draws when its private key is pressed (the last line of the prompt, once more) is taken
out of the output, so viewers see no flicker. Its output is held back for that, for a moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import trio

from aegis.terminals.hooks.adapter import PROBE_S, ShellAdapter
from aegis.terminals.parse.boundaries import Boundaries, Ended
from aegis.terminals.shell.port import ShellPort
from aegis.terminals.typed import LOST, TypedLine, TypedText, Unknown

ASK_AFTER_S = 0.4
"""Seconds without a key before a line that may be empty is asked about."""

MAX_WAIT_S = 5.0
"""The longest time between two looks at a shell that cannot be asked now, in seconds."""

HOLD_S = 0.1
"""Seconds that output waits for the answer, which takes a fraction of a millisecond."""

CLOCK_S = 0.001
"""Times that differ by less are the same: sums of seconds are not exact."""

MAX_HELD_BYTES = 64 * 1024
"""Held output beyond this is passed on: it is not what the editor draws."""


class EmptyLineQuery:
    """The questions to one shell. ``boundaries`` and ``adapter`` return those in force."""

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
        """Keys were sent to the shell."""
        self._last_key, self._wait_s = trio.current_time(), ASK_AFTER_S
        self._was_asked = False
        self._plan(ASK_AFTER_S)

    def prompted(self) -> None:
        """A new prompt stands. Keys that were sent to it before it was drawn are on its line."""
        self._is_open, self._is_below_prompt = False, False
        self._plan(ASK_AFTER_S)

    def drawn(self) -> None:
        """The prompt was drawn, at first or again."""
        self._is_below_prompt = False

    def printed(self, text: bytes) -> None:
        """The shell printed ``text``."""
        self._is_below_prompt = self._is_below_prompt or b"\n" in text

    def answered(self) -> None:
        """The hook has reported the line's length."""
        self._is_open = False
        self._plan(ASK_AFTER_S)

    def look(self) -> None:
        """Time has passed: ask if it is time to."""
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
        """Whether a completion may be asking whether to list what it found, or show a pager.

        The cursor is below the prompt then, and the prompt was not drawn again.
        """
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

    # What is drawn on a question.

    def without_redraw(self, data: bytes) -> bytes:
        """The output to pass on now that ``data`` came: without what a question made bash draw."""
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
        """The output that was held back for an answer that did not come in its time."""
        return self.release() if trio.current_time() >= self._held_until - CLOCK_S else b""

    def release(self) -> bytes:
        """The output that is held back. It is held no longer."""
        held, self._held = self._held or b"", None
        return held


MAX_BYTES = 1 << 20

_PASTE, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_ENTERS = (b"\r", b"\n")
_TOKEN = re.compile(rb"\x1b\[20[01]~|[\r\n]|[^\x00-\x1f\x7f]+|[\x00-\x1f\x7f]")


class KeyedLine:
    """One line of a shell that was empty before."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._in_paste = False
        self._is_known = True
        self._is_ended = False

    def add(self, data: bytes) -> None:
        """Take in keys that are sent to the shell now."""
        for token in _TOKEN.findall(data):
            if self._is_ended or not self._is_known:
                return  # behind the Enter: for the command, or the next line
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
        """The text of the line that was ended; None if it is not known."""
        if not (self._is_known and self._is_ended):
            return None
        try:
            return self._text.decode()
        except UnicodeDecodeError:
            return None


class KeyedLines:
    """The lines of a shell in turn. ``text_of_command``: that of the newest command."""

    def __init__(self) -> None:
        self._line: KeyedLine | None = None
        self.text_of_command: str | None = None

    def sent(self, data: bytes, *, is_empty: bool) -> None:
        """Keys are sent now; ``is_empty``: no command would read them, and the line is empty."""
        if self._line is None and is_empty:
            self._line = KeyedLine()
        if self._line is not None:
            self._line.add(data)

    def began(self) -> None:
        """A command began: it is the line that was ended, if a line was followed."""
        self.text_of_command = None if self._line is None else self._line.text
        self._line = None

    def ended(self) -> None:
        """A line has ended: the next one is empty, except for what was typed ahead."""
        self._line = None

    def text_of(self, ended: Ended, adapter: ShellAdapter) -> TypedText:
        """Ask the hook for the text of the newest command, which has ended so."""
        if ended.lost:
            return Unknown(LOST)
        line = TypedLine(
            commands=ended.commands,
            continuations=ended.continuations,
            keyed=self.text_of_command,
        )
        return adapter.read_typed(ended.history, line)


ROUNDS = 3
"""How often the keys that drop a text are tried, in turn."""


class LineDrop:
    """The keys for one text after the other: ``again`` is called while the shell reads on."""

    def __init__(self, shell: ShellPort) -> None:
        self._shell = shell
        self._keys: Iterator[bytes] = iter(())

    def begin(self, drops: tuple[bytes, ...]) -> None:
        """A text is incomplete: send the first of the keys that drop it."""
        self._keys = iter(drops * ROUNDS)
        self.again()

    def again(self) -> None:
        """Send the next key, and have the tracker look later whether it worked."""
        keys = next(self._keys, b"")
        if keys:
            self._shell.write(keys)
            self._shell.look_again_after(PROBE_S)
