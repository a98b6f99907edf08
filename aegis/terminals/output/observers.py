"""``OutputObservers``: the readers, the watchers and the screen of one shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from actors import Reply
from aegis.journal.raw_log import RawLog
from aegis.lifecycle.feed import FollowProgram, TakeHook
from aegis.protocol.feeds import DrawScreen, FollowOutput, View
from aegis.protocol.screens import GetScreen
from aegis.terminals.messages import CommandKey, FetchLine, FetchOutput, FetchPrinted
from aegis.terminals.output.command_progress import CommandProgress
from aegis.terminals.output.program_watch import ProgramWatch
from aegis.terminals.output.readers import OutputReaders, TrackedShell
from aegis.terminals.output.watchers import Watchers
from aegis.terminals.output.window import Window
from aegis.terminals.parse.control_sequences import ControlSequence
from aegis.terminals.screen.live import LiveScreen

OutputRequest = (
    FetchOutput
    | FetchLine
    | FetchPrinted
    | FollowOutput
    | FollowProgram
    | TakeHook
    | GetScreen
    | DrawScreen
)


class OutputObservers:
    """All observers of the terminal ``name``, whose shell's actor has the path ``source``.

    ``flush`` writes the raw log's buffer to its file, and closes that file after a while.
    ``tracker`` and ``view`` return the shell's state, ``progress_of`` the progress of a command;
    ``window`` is the terminal's window.
    ``start_soon`` starts helper tasks.
    """

    def __init__(
        self,
        name: str,
        source: str,
        raw_log: RawLog,
        screen: LiveScreen,
        *,
        flush: Callable[[], None],
        tracker: Callable[[], TrackedShell | None],
        view: Callable[[], View],
        window: Window,
        progress_of: Callable[[CommandKey, int | None], CommandProgress],
        start_soon: Callable[..., object],
    ) -> None:
        self._screen = screen
        self._flush = flush
        self._window = window
        self.program = ProgramWatch(screen, start_soon)
        self._readers = OutputReaders(
            name,
            raw_log,
            flush=flush,
            tracker=tracker,
            progress_of=progress_of,
            start_soon=start_soon,
        )
        self.watchers = Watchers(
            name,
            source,
            raw_log,
            view=view,
            sizes=window.sizes,
            is_alternate=lambda: screen.shows_alternate,
            flush=flush,
            start_soon=start_soon,
        )

    def output(self, end: int, sequences: Iterable[ControlSequence]) -> None:
        """Note output up to the offset ``end`` of the raw log, in which ``sequences`` end."""
        self._screen.output(end, sequences)
        for sequence in sequences:
            self._window.follow(sequence)
        # After the window: a watcher is sent its title.
        self.watchers.changed()
        self._readers.came.notify()
        if self.program.is_running:
            self.program.output(sequences)

    def take(self, request: OutputRequest, reply: Reply[Any]) -> None:
        """Answer ``request``, now or later. Raises ``AegisError``."""
        match request:
            case FollowOutput():
                self.watchers.take(request, reply)
            case FollowProgram():
                self.program.follow(request, reply)
            case TakeHook():
                self.program.take_hook(request, reply)
            case GetScreen():
                self._screen.request(reply)
                self._flush()  # the raw log was opened for reading: flush closes it again later
            case DrawScreen(scrollback=scrollback):
                self._screen.request_redraw(reply, scrollback)
                self._flush()
            case _:
                self._readers.take(request, reply)

    def handle_news(self, news: object) -> None:
        """Take a message that was sent to the front, about a command or the shell."""
        self._readers.handle_news(news)
        self.watchers.changed()
        self.program.handle_news(news)

    def end(self) -> None:
        """Answer all: no more output will come."""
        self._readers.end()
        self.watchers.end()

    def close(self) -> None:
        """Stop all use of the raw log, before it is closed."""
        self._readers.close()
        self._screen.close()
