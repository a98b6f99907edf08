"""What a shell writes, as events in order: one stream, or two where standard error comes apart.

Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import attrs

from aegis.terminals.parse.apart import Apart, ErrorText
from aegis.terminals.parse.osc133 import Event, Mark, MarkParser, Text

APART_S = 1.0
"""How long output waits for what belongs before it on the PTY of standard error."""


class Streams:
    """The parsers of one shell whose marks hold ``secret``; ``apart``: it speaks on two PTYs.

    Of a shell that does not, whatever comes on the second one is standard error.
    """

    def __init__(self, secret: bytes, *, apart: bool) -> None:
        self._parser = MarkParser(secret)
        self._apart: Apart | None = None
        if apart:
            self._apart, self._error_parser = Apart(), MarkParser(secret)
        self._waits_until = math.inf
        self._probe_echo = b""

    def feed(self, data: bytes) -> Iterable[Event | ErrorText]:
        """The PTY gave ``data``: what is to be handled now."""
        events = self._without_echo(self._parser.feed(data))
        return events if self._apart is None else self._apart.first(events)

    def feed_errors(self, data: bytes) -> Iterable[Event | ErrorText]:
        """The PTY of standard error gave ``data``: what is to be handled now, of both."""
        if self._apart is None:
            return [ErrorText(data)]
        return self._apart.second(self._error_parser.feed(data))

    def submitted(self) -> None:
        """A submission goes to the shell."""
        if self._apart is not None:
            self._apart.submitted()

    def probed(self, key: bytes) -> None:
        """A probe key goes to the shell.

        The shell may have begun a line that was typed ahead by then. The tty echoes the key into
        the output of that command, in caret notation: this is left out until the probe is answered.
        """
        if key.startswith(b"\x1b"):
            self._probe_echo = key.replace(b"\x1b", b"^[")

    def _without_echo(self, events: Sequence[Event]) -> Sequence[Event]:
        return [*self._filtered(events)] if self._probe_echo else events

    def _filtered(self, events: Sequence[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, Text) and self._probe_echo:
                kept = event.data.replace(self._probe_echo, b"")
                if kept:
                    yield attrs.evolve(event, data=kept)
                continue
            if isinstance(event, Mark) and event.params.get("k") == "l":
                self._probe_echo = b""
            yield event

    @property
    def is_waiting(self) -> bool:
        """Whether something of one PTY waits for the other one."""
        return self._apart is not None and self._apart.is_waiting

    def begins_to_wait(self, now: float) -> bool:
        """Whether something waits that did not before: it is overdue in ``APART_S`` seconds."""
        if not self.is_waiting:
            self._waits_until = math.inf
            return False
        if self._waits_until < math.inf:
            return False
        self._waits_until = now + APART_S
        return True

    def overdue(self, now: float) -> Iterable[Event | ErrorText]:
        """What has waited long enough."""
        if self._apart is None or now < self._waits_until:
            return ()
        self._waits_until = math.inf
        return self._apart.give_up()

    def close(self) -> Iterable[Event | ErrorText]:
        """The shell is gone: everything that is left, in parts that were never whole too."""
        if self._apart is not None:
            yield from self._apart.second(self._error_parser.close())
            yield from self._apart.give_up()
        yield from self._parser.close()
