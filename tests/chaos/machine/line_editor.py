"""The line editor of the simulated shell: keys in, lines and signals out. Pure.

It models readline with our hook: keys are put at the end of the line, Enter accepts it, a bracketed
paste is text, and the hook's own keys (``ESC [ 8133 ; n ~``) are recognized. Keys with other
sequences are not modelled: they do nothing.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import attrs

_PASTE_BEGIN = b"\x1b[200~"
_PASTE_END = b"\x1b[201~"
_SEQUENCE = re.compile(rb"\x1b\[[0-9;]*[@-~]")
_SEQUENCE_BEGINS = re.compile(rb"\x1b(?:\[[0-9;]*)?\Z")
_HOOK_KEY = re.compile(rb"\x1b\[8133;([0-9]+)~")
_ENTER = b"\r\n"
_BACKSPACE, _KILL, _END_OF_FILE = 127, 21, 4
_INSERTS = 100


@attrs.frozen
class Inserted:
    """Text that was put at the end of the line."""

    text: bytes


@attrs.frozen
class Accepted:
    """An Enter with its line, to be run."""

    line: bytes


@attrs.frozen
class HookKey:
    """A key of the hook: 1 submits, 2 probes, 6 splits off standard error, 7 respects Ctrl-C."""

    number: int


@attrs.frozen
class Left:
    """The end of the file, on an empty line."""


Meaning: TypeAlias = Inserted | Accepted | HookKey | Left


class LineEditor:
    """An editor that reads one line after the other; ``line`` is the present one."""

    def __init__(self) -> None:
        self.line = b""
        self._keys = b""
        self._pastes = False

    @property
    def has_keys(self) -> bool:
        """Return whether keys were read that ``next`` has not processed."""
        return bool(self._keys)

    def feed(self, keys: bytes) -> None:
        """Add typed keys."""
        self._keys += keys

    def give_back(self) -> bytes:
        """Return the keys that were read and not processed, for the next reader."""
        keys, self._keys = self._keys, b""
        return keys

    def drop(self) -> None:
        """Drop the line and the typed keys, at a Ctrl-C."""
        self.line, self._keys, self._pastes = b"", b"", False

    def next(self) -> Meaning | None:
        """Return the meaning of the next key; None: more keys are needed."""
        while self._keys:
            if self._pastes:
                return self._paste()
            if self._keys[0] == 27:
                found = _SEQUENCE.match(self._keys)
                if found is None and _SEQUENCE_BEGINS.match(self._keys):
                    return None
                meaning = self._sequence(self._take(2 if found is None else found.end()))
            else:
                meaning = self._key(self._take(1))
            if meaning is not None:
                return meaning
        return None

    def _take(self, count: int) -> bytes:
        taken, self._keys = self._keys[:count], self._keys[count:]
        return taken

    def _paste(self) -> Meaning | None:
        end = self._keys.find(_PASTE_END)
        if end < 0:
            return None
        text = self._take(end)
        self._take(len(_PASTE_END))
        self._pastes = False
        return self._insert(text)

    def _insert(self, text: bytes) -> Inserted:
        self.line += text
        return Inserted(text)

    def _sequence(self, sequence: bytes) -> Meaning | None:
        if sequence == _PASTE_BEGIN:
            self._pastes = True
            return self._paste()
        hook_key = _HOOK_KEY.fullmatch(sequence)
        if hook_key is None:
            return None
        number = int(hook_key[1])
        if number > _INSERTS:
            return self._insert(bytes([number - _INSERTS]))
        return HookKey(number) if number else None

    def _key(self, key: bytes) -> Meaning | None:
        code = key[0]
        if key in (_ENTER[:1], _ENTER[1:]):
            line, self.line = self.line, b""
            return Accepted(line)
        if code == _END_OF_FILE:
            return None if self.line else Left()
        if code == _BACKSPACE:
            self.line = self.line[:-1]
        elif code == _KILL:
            self.line = b""
        elif code >= 32 or code == 9:
            return self._insert(key)
        return None
