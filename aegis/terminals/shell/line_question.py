"""``LineQuestion``: asks the line editor whether the line that somebody is typing is empty.

A line is asked about once after its keys have rested for ``ASK_AFTER_S``, and only if it may be
empty by them (``LineKeys``), the shell is at its prompt by its marks, and the shell itself waits
for keys, having read all that were sent. While that is not so it is looked at again, less and less
often. A question that is not answered is not repeated until the next prompt.

What bash draws when its private key is pressed (the last line of the prompt, once more) is taken
out of the output, so viewers see no flicker. Its output is held back for that, for a moment.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from aegis.terminals.hooks.adapter import ShellAdapter
from aegis.terminals.parse.boundaries import Boundaries
from aegis.terminals.shell.shell_side import ShellSide

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


class LineQuestion:
    """The questions to one shell. ``boundaries`` and ``adapter`` return those in force."""

    def __init__(
        self,
        shell: ShellSide,
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
