"""Parsing OSC 133 marks in a PTY's byte stream: bytes in, events out. Pure.

A mark is ``ESC ] 133 ; <kind> [; parameter]* (BEL | ESC \\)``. It is ours when it carries our
secret (``n=``) and a number (``q=``); every other sequence is text and passes unchanged. Rules:

- ESC inside a sequence ends it and begins anew, CAN and SUB abort it. Raw C1 bytes end nothing:
  they occur inside UTF-8 characters.
- A sequence longer than ``MAX_SEQUENCE_BYTES`` is text. Else only a possible beginning at the end
  of a chunk is kept for the next one.
- No event holds the secret: its parameter is removed from every OSC 133.
- The bytes of all events are the input without the secrets, with any chunks.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs

MAX_SEQUENCE_BYTES = 65_536

_OPENING = b"\x1b]133;"
_PASTE_ON = b"\x1b[?2004h"
_PASTE_OFF = b"\x1b[?2004l"
_LONGEST = max(len(_OPENING), len(_PASTE_ON))

_FIND_OPENING = re.compile(rb"\x1b(?:\]133;|\[\?2004[hl])")
_FIND_END = re.compile(rb"[\x07\x18\x1a\x1b]")
_SECRET = re.compile(rb"[A-Za-z0-9_-]{8,128}")
_USUAL = re.compile(
    rb"\x1b\]133;(?:([ABC])|D;([0-9]{1,15}));n=([\w-]+);q=([0-9]{1,15})(?:;s=([01]))?"
    rb"(?:;b=([0-9]{1,15}))?(?:;e=(1))?\x07"
)
"""A whole mark in its usual form; other forms take the slow path."""
_BODY = re.compile(rb"[ABCDP](?:;[\x20-\x3a\x3c-\x7e]*)*")
_PARAMETER = re.compile(r"([a-z]+)=(.*)")
_NUMBER = re.compile(r"[0-9]{1,15}")
_NUMERIC_KEYS = ("q", "h", "l", "b")


@attrs.frozen
class Text:
    """Bytes of the stream between marks."""

    data: bytes


@attrs.frozen
class PasteMode:
    """The line editor switched paste mode; ``data`` is the sequence."""

    on: bool
    data: bytes


@attrs.frozen(kw_only=True)
class Mark:
    """A mark of our own hooks.

    ``kind`` is ``A`` (prompt begins), ``B`` (prompt ends), ``C`` (command begins), ``D`` (command
    ended, with ``exit`` if known) or ``P`` (``params["k"]``: ``s`` secondary prompt, ``l`` report
    of the line's ``length``). ``submitted``: the daemon submitted this line. ``params`` holds every
    ``key=value`` of the mark but the secret. ``visible`` is the mark's bytes without the secret's
    parameter, for the raw log and viewers.
    """

    kind: str
    number: int
    exit: int | None = None
    submitted: bool = False
    params: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    visible: bytes = b""

    @property
    def history(self) -> int | None:
        """The shell's history number of the command (``h=``)."""
        return self._numeric("h")

    @property
    def ended(self) -> int | None:
        """The number of the last D before this mark (``b=``), shown or not."""
        return self._numeric("b")

    @property
    def length(self) -> int | None:
        """The number of characters on the shell's input line (``l=``)."""
        return self._numeric("l")

    def _numeric(self, key: str) -> int | None:
        value = self.params.get(key)
        return None if value is None else int(value)


Event: TypeAlias = Text | Mark | PasteMode


class MarkParser:
    """The parser of one shell's output.

    ``secret`` is the value of ``n=`` in the marks of its hook: 8 to 128 letters, digits, ``_`` or
    ``-``; ``ValueError`` otherwise.
    """

    def __init__(self, secret: bytes) -> None:
        if _SECRET.fullmatch(secret) is None:
            raise ValueError("a mark's secret must be 8 to 128 letters, digits, '_' or '-'")
        self._secret = secret.decode("ascii")
        self._secret_parameter = b";n=" + secret
        self._state: Callable[[bytes, int], int] = self._in_ground
        self._incomplete = b""
        self._sequence = bytearray()
        self._events: list[Event] = []
        self._texts: list[bytes] = []

    @property
    def is_within_sequence(self) -> bool:
        """Whether the stream so far ends within a sequence, or with a possible beginning of one."""
        return self._incomplete != b"" or self._state != self._in_ground

    def feed(self, data: bytes) -> list[Event]:
        """Parse a chunk; return the events that it completes, in order."""
        if self._incomplete:
            data, self._incomplete = self._incomplete + data, b""
        position = 0
        while position < len(data):
            position = self._state(data, position)
        return self._take_events()

    def close(self) -> list[Event]:
        """End the stream: return an incomplete sequence as text, and reset the parser."""
        self._give_up_sequence()
        self._add_text(self._incomplete)
        self._incomplete = b""
        return self._take_events()

    def _in_ground(self, data: bytes, start: int) -> int:
        escape = data.find(b"\x1b", start)  # ten times as fast as any pattern
        found = None if escape < 0 else _FIND_OPENING.search(data, escape)
        if found is None:
            end = len(data) if escape < 0 else _end_of_certain_text(data, start)
            self._add_text(data[start:end])
            self._incomplete = data[end:]
            return len(data)
        self._add_text(data[start : found.start()])
        if found.group() == _OPENING:
            usual = _USUAL.match(data, found.start())
            if usual is not None and _is_same(usual[3].decode("ascii"), self._secret):
                self._add_event(_usual_mark(usual))
                return usual.end()
            self._sequence += _OPENING
            self._state = self._in_sequence
        else:
            self._add_event(PasteMode(found.group() == _PASTE_ON, found.group()))
        return found.end()

    def _in_sequence(self, data: bytes, start: int) -> int:
        found = _FIND_END.search(data, start)
        end = len(data) if found is None else found.start()
        self._sequence += data[start:end]
        if len(self._sequence) > MAX_SEQUENCE_BYTES:
            self._pass_on_sequence()
            self._state = self._in_endless
            return end
        if found is None:
            return end
        return self._end_sequence(data, end)

    def _end_sequence(self, data: bytes, end: int) -> int:
        """Apply the ending at ``end``; return the position behind it."""
        ending = data[end : end + 1]
        if ending == b"\x1b":
            ending = data[end : end + 2]
        if ending == b"\x1b":
            self._incomplete = ending
        elif ending in (b"\x07", b"\x1b\\"):
            self._close_sequence(ending)
        else:
            self._give_up_sequence()
            return end
        return end + len(ending)

    def _in_endless(self, data: bytes, start: int) -> int:
        """Pass on a sequence too long for a mark as text, without the secret."""
        found = _FIND_END.search(data, start)
        end = len(data) if found is None else found.start()
        self._sequence += data[start:end]
        self._pass_on_sequence()
        if found is not None:
            self._give_up_sequence()
        return end

    def _pass_on_sequence(self) -> None:
        """Pass on the collected bytes as text, except a possible beginning of the secret."""
        clean = self._without_secret(bytes(self._sequence))
        last = clean.rfind(b";", -len(self._secret_parameter))
        if last < 0 or not self._secret_parameter.startswith(clean[last:]):
            last = len(clean)
        self._add_text(clean[:last])
        self._sequence = bytearray(clean[last:])

    def _give_up_sequence(self) -> None:
        self._add_text(self._without_secret(bytes(self._sequence)))
        self._leave_sequence()

    def _close_sequence(self, ending: bytes) -> None:
        visible = self._without_secret(bytes(self._sequence)) + ending
        mark = _read_mark(bytes(self._sequence[len(_OPENING) :]), self._secret, visible)
        if mark is None:
            self._add_text(visible)
        else:
            self._add_event(mark)
        self._leave_sequence()

    def _leave_sequence(self) -> None:
        self._sequence.clear()
        self._state = self._in_ground

    def _without_secret(self, data: bytes) -> bytes:
        return data.replace(self._secret_parameter, b"")

    def _add_text(self, data: bytes) -> None:
        if data:
            self._texts.append(data)

    def _add_event(self, event: Event) -> None:
        self._join_texts()
        self._events.append(event)

    def _join_texts(self) -> None:
        if self._texts:
            self._events.append(Text(b"".join(self._texts)))
            self._texts.clear()

    def _take_events(self) -> list[Event]:
        self._join_texts()
        events, self._events = self._events, []
        return events


def _end_of_certain_text(data: bytes, start: int) -> int:
    """Return the position of an incomplete opening at the end of ``data``, else its length."""
    last = data.rfind(b"\x1b", max(start, len(data) - _LONGEST))
    if last < 0:
        return len(data)
    tail = data[last:]
    if _OPENING.startswith(tail) or _PASTE_ON.startswith(tail):
        return last
    return len(data)


def _usual_mark(found: re.Match[bytes]) -> Mark:
    """Return the mark of a match of ``_USUAL``."""
    kind, exit_code, _, number, submitted, ended, plain = found.groups()
    params = {"q": number.decode("ascii")}
    if submitted is not None:
        params["s"] = submitted.decode("ascii")
    if ended is not None:
        params["b"] = ended.decode("ascii")
    if plain is not None:
        params["e"] = "1"
    whole, start = found.group(), found.start()
    return Mark(
        kind="D" if kind is None else kind.decode("ascii"),
        number=int(number),
        exit=None if exit_code is None else int(exit_code),
        submitted=submitted == b"1",
        params=params,
        visible=whole[: found.start(3) - start - len(";n=")] + whole[found.end(3) - start :],
    )


def _read_mark(body: bytes, secret: str, visible: bytes) -> Mark | None:
    """Parse ``<kind>;<parameters>``; None if it is not ours or not valid."""
    if _BODY.fullmatch(body) is None:
        return None
    kind, *fields = body.decode("ascii").split(";")
    exit_code: int | None = None
    if kind == "D" and fields and "=" not in fields[0]:
        if _NUMBER.fullmatch(fields[0]) is None:
            return None
        exit_code = int(fields.pop(0))
    params = _read_parameters(fields)
    if params is None or not _is_same(params.pop("n", ""), secret):
        return None
    if "q" not in params:
        return None
    return Mark(
        kind=kind,
        number=int(params["q"]),
        exit=exit_code,
        submitted=params.get("s") == "1",
        params=params,
        visible=visible,
    )


def _read_parameters(fields: list[str]) -> dict[str, str] | None:
    """Parse ``key=value`` fields; None if one is not valid, repeated, or no number where due."""
    params: dict[str, str] = {}
    for field in fields:
        found = _PARAMETER.fullmatch(field)
        if found is None or found[1] in params:
            return None
        params[found[1]] = found[2]
    for key in _NUMERIC_KEYS:
        if key in params and _NUMBER.fullmatch(params[key]) is None:
            return None
    return params


def _is_same(given: str, secret: str) -> bool:
    # In constant time: a writer to the terminal chooses ``given`` and could time the answer. It
    # costs a fraction of a microsecond per mark.
    return hmac.compare_digest(given, secret)
