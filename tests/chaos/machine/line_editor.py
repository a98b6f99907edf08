"""The line editor of the simulated shell: keys in, lines and signals out. Pure.

As readline is with our hook: keys are put at the end of the line, Enter accepts it, a bracketed
paste is text, and the hook's own keys (``ESC [ 8133 ; n ~``) are told apart. What a key of another
sequence would do is not modelled: it does nothing.
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
    """This was put at the end of the line."""

    text: bytes


@attrs.frozen
class Accepted:
    """Enter: the line is to be run."""

    line: bytes


@attrs.frozen
class HookKey:
    """A key of the hook: 1 submits, 2 probes, 6 parts standard error, 7 heeds Ctrl-C."""

    number: int


@attrs.frozen
class Left:
    """The end of the file, on an empty line."""


Meaning: TypeAlias = Inserted | Accepted | HookKey | Left


class LineEditor:
    """Reads one line after the other; ``line`` is what stands on the present one."""

    def __init__(self) -> None:
        self.line = b""
        self._keys = b""
        self._pastes = False

    @property
    def has_keys(self) -> bool:
        """Whether keys were read that ``next`` has not looked at."""
        return bool(self._keys)

    def feed(self, keys: bytes) -> None:
        """These keys were typed."""
        self._keys += keys

    def give_back(self) -> bytes:
        """The keys that were read and not looked at: they are for whoever reads next."""
        keys, self._keys = self._keys, b""
        return keys

    def drop(self) -> None:
        """Ctrl-C: the line is empty, and what was typed before is gone."""
        self.line, self._keys, self._pastes = b"", b"", False

    def next(self) -> Meaning | None:
        """What the next key does; None: more keys must come first. Some do nothing at all."""
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
