"""``Audience``: everybody who looks at what a shell prints: readers, watchers, and the screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from actors import Reply
from aegis.journal.raw_log import RawLog
from aegis.protocol.feeds import DrawScreen, FollowOutput, View
from aegis.terminals.command_key import CommandKey
from aegis.terminals.messages import FetchLine, FetchOutput, FetchPrinted, TakeScreen
from aegis.terminals.output.heard import Heard
from aegis.terminals.output.observer import OutputObserver
from aegis.terminals.output.readers import Followed, OutputReaders
from aegis.terminals.output.watchers import Watchers
from aegis.terminals.screen.live import LiveScreen

Look = FetchOutput | FetchLine | FetchPrinted | FollowOutput | TakeScreen | DrawScreen


class Audience:
    """That of the terminal ``name``, whose shell's actor is ``source`` (a path).

    ``flush`` puts what was printed into the raw log's file, and lets go of it again in a while.
    ``tracker`` and ``view`` say how the shell stands, ``heard`` how far a command has come;
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
        tracker: Callable[[], Followed | None],
        view: Callable[[], View],
        heard: Callable[[CommandKey, int | None], Heard],
        start_soon: Callable[..., object],
    ) -> None:
        self._screen = screen
        self._flush = flush
        self._readers = OutputReaders(
            name, raw_log, flush=flush, tracker=tracker, heard=heard, start_soon=start_soon
        )
        self._watchers = Watchers(
            name,
            source,
            raw_log,
            view=view,
            is_alternate=lambda: screen.shows_alternate,
            flush=flush,
            start_soon=start_soon,
        )

    @property
    def observers(self) -> tuple[OutputObserver, ...]:
        """Who sees every byte as it comes; the screen first."""
        return self._screen, self._readers, self._watchers

    def take(self, request: Look, reply: Reply[Any]) -> None:
        """Answer one of them, now or later. Raises ``AegisError``."""
        match request:
            case FollowOutput():
                self._watchers.take(request, reply)
            case TakeScreen():
                self._screen.request(reply)
                self._flush()  # the raw log was opened to be read: let it rest again
            case DrawScreen():
                self._screen.request_redraw(reply)
                self._flush()
            case _:
                self._readers.take(request, reply)

    def told(self, news: object) -> None:
        """The front was told this of a command, or of the shell."""
        self._readers.told(news)
        self._watchers.changed()

    def view_changed(self) -> None:
        """The window or the state may be another one."""
        self._watchers.changed()

    def end(self) -> None:
        """Nothing more will be printed."""
        self._readers.end()
        self._watchers.end()

    def close(self) -> None:
        """The raw log will be closed: nobody reads it any more."""
        self._readers.close()
        self._screen.close()
