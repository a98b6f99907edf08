"""Keystrokes as the own terminal sent them, past Textual's parser of keys.

In raw mode a program must get every key byte for byte, and Textual's names of keys lose bytes:
Ctrl-H and Backspace have one name, as have Alt-Enter and Enter. So the text that the driver read is
divided before it is parsed: keys go to the app as they are, all else goes to Textual's parser.

``linux_driver.XTermParser`` and ``WriterThread`` are private names of Textual; a test fails if a
version drops them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from typing import Literal

from textual import events
from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.message import Message

Kind = Literal["keys", "textual", "paste", "toggle", "second escape"]

ESCAPE_PAIR_S = 0.4
"""Seconds within which a second Escape leaves raw mode."""

CUT_CHARS = 500
"""A shorter read was not cut inside a sequence: the driver reads up to 4,096 bytes at once."""

MAX_PASTE_CHARS = 4 * 1024 * 1024

_PASTE, _PASTE_END = "\x1b[200~", "\x1b[201~"

_OURS = re.compile(
    r"\x1b\[<\d+;-?\d+;-?\d+[Mm]"  # mouse
    r"|\x1b\[[IO]"  # focus
    r"|\x1b\[\?[\d;]+(?:\$y|[cu])"  # answers about modes and the terminal
    r"|\x1b\[48;[\d;:]+t"  # the size of the window
    r"|\x1b\[200~"
)
_BEGUN = re.compile(r"\x1b(?:\[(?:<?\??[\d;:$-]*)?)?\Z")
"""The beginning of a sequence that the next read completes."""

_NUMBERED = re.compile(r"(\x1b[1-9])")

TOGGLES = ("\x0b", "\x1b[107;5u")
"""Ctrl-K, as terminals send it."""


class Divider:
    """Divides what was read into keys, and text for Textual's parser.

    Each ``feed`` is one read of the driver; ``now`` is in seconds.
    """

    def __init__(self) -> None:
        self._rest = ""
        self._pasting = False
        self._pasted: list[str] = []
        self._escape_at = float("-inf")

    def feed(self, read: str, now: float) -> Iterator[tuple[Kind, str]]:
        """Yield the parts of a read, in order."""
        if read == "\x1b" and not self._rest and not self._pasting:
            yield self._escape(now)
            return
        self._escape_at = float("-inf")
        text, self._rest = self._rest + read, ""
        yield from self._divide(text, may_be_cut=len(read) >= CUT_CHARS)

    def reset(self) -> None:
        """Forget an Escape that was pressed before."""
        self._escape_at = float("-inf")

    def _escape(self, now: float) -> tuple[Kind, str]:
        if now - self._escape_at <= ESCAPE_PAIR_S:
            self._escape_at = float("-inf")
            return "second escape", "\x1b"
        self._escape_at = now
        return "keys", "\x1b"

    def _divide(self, text: str, *, may_be_cut: bool) -> Iterator[tuple[Kind, str]]:
        while text:
            if self._pasting:
                text = yield from self._paste(text)
                continue
            found = _OURS.search(text)
            if found is None:
                cut = _BEGUN.search(text) if may_be_cut else None
                if cut is not None:
                    text, self._rest = text[: cut.start()], text[cut.start() :]
                yield from self._keys(text)
                return
            yield from self._keys(text[: found.start()])
            if found[0] == _PASTE:
                self._pasting = True
                text = text[found.end() :]
            else:
                yield "textual", found[0]
                text = text[found.end() :]

    def _paste(self, text: str) -> Generator[tuple[Kind, str], None, str]:
        """Collect pasted text until its end; return what comes after it."""
        before, end, after = text.partition(_PASTE_END)
        if end:
            pasted, self._pasted = "".join(self._pasted) + before, []
            self._pasting = False
            yield "paste", pasted[:MAX_PASTE_CHARS]
            return after
        # The end may be divided between this read and the next one.
        kept = next((n for n in range(5, 0, -1) if text.endswith(_PASTE_END[:n])), 0)
        self._pasted.append(text[: len(text) - kept])
        self._rest = text[len(text) - kept :]
        return ""

    def _keys(self, text: str) -> Iterator[tuple[Kind, str]]:
        while text:
            at, toggle = min(
                ((found, each) for each in TOGGLES if (found := text.find(each)) >= 0),
                default=(len(text), ""),
            )
            if at:
                yield "keys", text[:at]
            if toggle:
                yield "toggle", toggle
            text = text[at + len(toggle) :]


class RawKeys(Message):
    """Keys for the program, as the own terminal sent them."""

    def __init__(self, keys: bytes) -> None:
        super().__init__()
        self.keys = keys


class RawPaste(Message):
    """Text that was pasted in raw mode."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class RawSwitched(Message):
    """The keys that enter or leave raw mode were pressed."""

    def __init__(self, is_on: bool) -> None:
        super().__init__()
        self.is_on = is_on


class RawMode:
    """Whether keys pass by Textual; one for the process, as is its window.

    The parser switches it in the driver's thread, so that no key between the switch and its message
    takes the wrong way.
    """

    is_on = False
    may_begin = False
    """Whether the toggle begins raw mode: a terminal is shown, and no dialog is above it."""
    divider = Divider()
    clock: Callable[[], float] = staticmethod(time.monotonic)

    @classmethod
    def switch(cls, is_on: bool) -> None:
        """Switch raw mode on or off."""
        cls.is_on = is_on
        cls.divider.reset()


class RawParser(XTermParser):
    """Textual's parser, which keys pass by in raw mode."""

    typed_ahead = ""
    """Keys that were read from the own terminal before the driver reads."""

    def tick(self) -> Iterable[Message]:
        yield from self._typed_ahead()
        yield from super().tick()

    def feed(self, data: str) -> Iterable[Message]:
        yield from self._typed_ahead()
        if not data:
            yield from super().feed(data)
            return
        for kind, text in RawMode.divider.feed(data, RawMode.clock()):
            if kind == "toggle" and (RawMode.is_on or RawMode.may_begin):
                RawMode.switch(not RawMode.is_on)
                yield RawSwitched(RawMode.is_on)
            elif kind == "second escape" and RawMode.is_on:
                RawMode.switch(False)
                yield RawSwitched(False)
            elif kind == "keys" and RawMode.is_on:
                yield RawKeys(text.encode(errors="surrogatepass"))
            elif kind == "paste" and RawMode.is_on:
                yield RawPaste(text)
            elif kind == "paste":
                yield from super().feed(f"{_PASTE}{text}{_PASTE_END}")
            else:
                yield from self._keys(text)

    def _typed_ahead(self) -> Iterator[Message]:
        text, RawParser.typed_ahead = RawParser.typed_ahead, ""
        if text:
            yield from self.feed(text)

    def _keys(self, text: str) -> Iterator[Message]:
        for part in _NUMBERED.split(text):
            if _NUMBERED.fullmatch(part):
                # Textual takes it for a character of one kind of keyboard.
                yield events.Key(f"alt+{part[1]}", None)
            elif part:
                # Enter that was pressed before the own terminal was switched is a newline, and
                # Ctrl-J enters a line in shells too.
                yield from super().feed(part.replace("\n", "\r"))


class SteadyWriter(WriterThread):
    """Textual's thread that writes to the window, which a window that was closed does not end.

    Its queue is bounded: once nobody took from it, the event loop would wait for ever to add more.
    """

    def run(self) -> None:
        while (text := self._queue.get()) is not None:
            with suppress(OSError):
                self._file.write(text)
                if self._queue.empty():
                    self._file.flush()
        with suppress(OSError):
            self._file.flush()


def install(typed_ahead: str = "") -> None:
    """Have Textual's driver read with ``RawParser``, after the keys that were typed ahead.

    It writes with ``SteadyWriter``.
    """
    RawParser.typed_ahead = typed_ahead
    linux_driver.XTermParser = RawParser  # type: ignore[attr-defined]
    linux_driver.WriterThread = SteadyWriter  # type: ignore[attr-defined]
