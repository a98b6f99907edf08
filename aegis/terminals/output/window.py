"""``Window``: the size of a terminal's window, its owner, the title, the bell, and who types."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import trio

from aegis.clock import utc_now
from aegis.protocol.feeds import OwnedSize, View
from aegis.protocol.terminals import NeedsInput, State, Typing
from aegis.terminals.output.typist import Typist
from aegis.terminals.output.window_sizes import WindowSizes
from aegis.terminals.parse.control_sequences import Bell, ControlSequence, Escape, Osc

MAX_TITLE_BYTES = 4094
"""A longer title is ignored."""

MAX_TITLE_CHARS = 256
"""The rest of a title is not shown."""


class Window:
    """The window of a terminal whose output begins at ``cursor``.

    ``look_after`` has ``look_at_typist`` called after some seconds.
    """

    def __init__(
        self, rows: int, cols: int, cursor: int, *, look_after: Callable[[float], None]
    ) -> None:
        self.rows, self.cols = rows, cols
        self.sizes = WindowSizes(cursor, cols, rows)
        self.owner: OwnedSize | None = None
        self.title, self.bells = "", 0
        self._typist = Typist()
        self._look_after = look_after
        self._look_is_due = False

    def follow(self, sequence: ControlSequence) -> None:
        """Take the title or the bell, if ``sequence`` of the output is one."""
        match sequence:
            case Bell():
                self.bells += 1
            case Osc(number=0 | 2, content=content) if len(content) <= MAX_TITLE_BYTES:
                self.title = clean_title(content)
            case Escape(final=b"c"):
                self.title = ""

    def resize(self, rows: int, cols: int, cursor: int) -> None:
        """Note the size from the offset ``cursor`` on, the end of the output."""
        self.rows, self.cols = rows, cols
        self.sizes.resized(cursor, cols, rows)

    def typed(self, writer: str) -> None:
        """Note keys of ``writer``."""
        self._typist.typed(writer, trio.current_time(), utc_now())
        self._look()

    def look_at_typist(self) -> None:
        """Forget a writer who paused, or look again later."""
        self._look_is_due = False
        self._look()

    def _look(self) -> None:
        left_s = self._typist.check(trio.current_time())
        if left_s is not None and not self._look_is_due:
            self._look_is_due = True
            self._look_after(left_s)

    def view(self, state: State, needs_input: NeedsInput | None, typing: Typing | None) -> View:
        """Return the view for watchers; ``typing`` is the unfinished line at the prompt."""
        return View(
            cols=self.cols,
            rows=self.rows,
            state=state,
            needs_input=needs_input,
            title=self.title,
            bells=self.bells,
            typing=typing or self._typist.typing,
            size_owner=self.owner,
        )


def clean_title(content: bytes) -> str:
    """Return the text of a title without control, format and bidi characters."""
    text = content.decode("utf-8", "replace")
    kept = (char for char in text if unicodedata.category(char)[0] != "C")
    return "".join(kept).strip()[:MAX_TITLE_CHARS]
