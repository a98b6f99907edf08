"""The modes of a terminal that programs have switched, by one stream of output. Pure.

A client that joins later needs the modes of keyboard, mouse and pasting beside the characters. And
a program that was killed leaves its modes on: they are switched back at the end of its command.
"""

from __future__ import annotations

import functools

import attrs

from aegis.terminals.parse.control_sequences import ControlSequence, Csi, Escape

KEPT = frozenset({1, 9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004})
"""The private modes that a client needs: cursor keys, all mouse modes, focus, bracketed paste."""

CURSOR_KEYS, KEYPAD, CURSOR, PASTE = 1, 66, 25, 2004
_ALTERNATE = (1049, 1047, 47)
_SCREENS = frozenset(_ALTERNATE)
_WRAP, _ORIGIN, _MARGINS = 7, 6, 69
_FOLLOWED = KEPT | {CURSOR, KEYPAD, _WRAP, _ORIGIN, _MARGINS, *_ALTERNATE, 5, 2026, 2031, 2048}
"""Beside them: reversed colours, synchronized output, reports of colours and of sizes."""

_ON_AT_FIRST = frozenset({CURSOR, _WRAP})

_OF_SOFT_RESET = frozenset({CURSOR_KEYS, KEYPAD, CURSOR, _WRAP, _ORIGIN, _MARGINS})

_OF_EDITORS = frozenset({CURSOR_KEYS, KEYPAD, CURSOR, PASTE, *_ALTERNATE, 2031, 2048})
"""Modes that a line editor may have switched on for its prompt, or that hold the prompt."""

_MAX_KEYBOARDS = 64
"""Limit of the pushed keyboard modes that are counted."""


@attrs.frozen(kw_only=True)
class Modes:
    """Modes that differ from those of a terminal after a reset.

    ``private`` are the numbers of DEC modes. ``keyboards`` counts the pushed modes of kitty's
    keyboard protocol (``CSI > u``), ``keyboard`` is the one that was set (``CSI = u``). ``keys``
    are the resources of XTMODKEYS (``CSI > 4 m``). ``scrolls``: only a part of the screen scrolls;
    ``inserts``: text is inserted; ``draws``: letters draw lines.
    """

    private: frozenset[int] = frozenset()
    keyboards: int = 0
    keyboard: int = 0
    keys: frozenset[int] = frozenset()
    scrolls: bool = False
    inserts: bool = False
    draws: bool = False

    @property
    def is_pasting(self) -> bool:
        """Whether pasted text is bracketed: the program reads keys itself."""
        return PASTE in self.private

    def restored(self, before: Modes, *, prompted: bool = False) -> bytes:
        """Return the sequences that switch these modes back to ``before``; usually none.

        ``prompted``: a prompt is drawn already, so modes that belong to it stay.
        """
        if self == before:
            return b""
        left = self.private ^ before.private
        if prompted:
            left -= _OF_EDITORS
        pieces = [] if prompted else self._keyboards_restored(before)
        # The switch of the screen comes first: it restores the cursor of the main one.
        pieces += [_private(mode, before) for mode in _ALTERNATE if mode in left]
        if not prompted and left.intersection(_ALTERNATE):
            pieces += self._keyboards_restored(before)  # each screen has its own
        if self.scrolls and not before.scrolls:
            pieces.append(b"\x1b7\x1b[r\x1b8")  # on its own it would move the cursor
        if self.inserts and not before.inserts:
            pieces.append(b"\x1b[4l")
        if self.draws and not before.draws:
            pieces.append(b"\x1b(B")
        pieces += [_private(mode, before) for mode in sorted(left.difference(_ALTERNATE))]
        return b"".join(pieces)

    def _keyboards_restored(self, before: Modes) -> list[bytes]:
        pieces = [b"\x1b[>%dm" % resource for resource in sorted(self.keys - before.keys)]
        if self.keyboards > before.keyboards:
            pieces.append(b"\x1b[<%du" % (self.keyboards - before.keyboards))
        if self.keyboard != before.keyboard:
            pieces.append(b"\x1b[=%du" % before.keyboard)
        return pieces


def _private(mode: int, before: Modes) -> bytes:
    """Return the sequence that switches a private mode back."""
    is_on = (mode in before.private) is not (mode in _ON_AT_FIRST)
    if mode == KEYPAD:
        return b"\x1b=" if is_on else b"\x1b>"
    return b"\x1b[?%d%s" % (mode, b"h" if is_on else b"l")


RESET = Modes()


class ModeWatch:
    """The modes of one stream: ``now``."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now = RESET

    def follow(self, sequence: ControlSequence) -> None:
        """Take the next sequence of the stream."""
        modes = self.now
        match sequence:
            case Csi(marker=b"?", final=b"h" | b"l"):
                on = sequence.final == b"h"
                self.now = _switched(modes, sequence.parameters, on=on)
            case Csi(marker=b"<" | b"=" | b">", final=b"u" | b"m" | b"n"):
                self.now = _keyboard_changed(modes, sequence)
            case Csi(marker=b"", final=b"r", parameters=region):
                self.now = attrs.evolve(modes, scrolls=region not in (b"", b";"))
            case Csi(marker=b"", final=b"h" | b"l", parameters=b"4"):
                self.now = attrs.evolve(modes, inserts=sequence.final == b"h")
            case Csi(marker=b"", final=b"!p", parameters=b""):
                private = modes.private - _OF_SOFT_RESET
                self.now = attrs.evolve(
                    modes, private=private, scrolls=False, inserts=False, draws=False
                )
            case Escape(final=b"c"):
                self.now = RESET
            case Escape(final=b"=" | b">"):
                self.now = _switched(modes, b"%d" % KEYPAD, on=sequence.final == b"=")
            case Escape(final=charset):
                self.now = attrs.evolve(modes, draws=charset == b"(0")

    def sequences(self) -> str:
        """Return the sequences that switch these modes on in a terminal after a reset."""
        keypad = "\x1b=" if KEYPAD in self.now.private else ""
        return keypad + "".join(f"\x1b[?{mode}h" for mode in sorted(self.now.private & KEPT))


def alternate_switch(sequence: ControlSequence) -> bool | None:
    """Return whether ``sequence`` shows the alternate screen; None if it switches no screen."""
    match sequence:
        case Escape(final=b"c"):
            return False
        case Csi(marker=b"?", final=b"h" | b"l"):
            is_switch = not _SCREENS.isdisjoint(_numbers(sequence.parameters))
            return sequence.final == b"h" if is_switch else None
        case _:
            return None


# Terminals share their modes: nearly all are at a prompt of a few kinds of shells.
@functools.lru_cache(maxsize=256)
def _switched(modes: Modes, parameters: bytes, *, on: bool) -> Modes:
    named = _FOLLOWED.intersection(_numbers(parameters))
    differ = named.difference(_ON_AT_FIRST) if on else named & _ON_AT_FIRST
    private = (modes.private - named) | differ
    return modes if private == modes.private else attrs.evolve(modes, private=private)


def _keyboard_changed(modes: Modes, sequence: Csi) -> Modes:
    prefix, numbers = sequence.marker, _numbers(sequence.parameters)
    first, second = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if sequence.final == b"u":
        if prefix == b"=":  # 1 sets all flags, 2 adds some, 3 removes some
            flags = {2: modes.keyboard | first, 3: modes.keyboard & ~first}.get(second, first)
            return attrs.evolve(modes, keyboard=flags)
        depth = modes.keyboards + 1 if prefix == b">" else modes.keyboards - max(first, 1)
        return attrs.evolve(modes, keyboards=min(max(depth, 0), _MAX_KEYBOARDS))
    if prefix != b">":
        return modes
    if sequence.final == b"m" and second:
        return attrs.evolve(modes, keys=modes.keys | {first % 16})
    return attrs.evolve(modes, keys=modes.keys - {first} if first else frozenset())


def _numbers(text: bytes) -> list[int]:
    """Return the parameters, at least one; 0 for an omitted one."""
    return [int(number[:6] or 0) for number in text.split(b";")]
