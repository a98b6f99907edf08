"""The form of a ledger: one JSON object per line, each line with a checksum. Pure.

    {"seq":0,"cmd":"make","exit":0,"crc":"5a3f09c2"}

A line is the object's own fields, compact and in UTF-8, then ``crc``: the CRC-32 (zlib's) of all
bytes of the line before it, as eight lowercase hexadecimal digits. So ``jq`` reads a ledger as it
is, and no changed, missing or added byte goes unseen. A line is whole only with its newline.

On the disk of a daemon a field ``mac`` stands before ``crc``: the code (``sealing``) of all bytes
before it. A line without it, or with another one, was not written by this state's daemon.

What follows the last newline is the torn tail: an append that a crash cut short. A line that ends
with a newline and does not check is damaged. Both are data here; nothing in this file knows what
the fields mean, and nothing raises because of what a disk holds except ``decode_line``.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from aegis.state.sealing import MAC_CHARS, MAC_KEY, Seal

MAX_LINE_BYTES = 16 * 1024 * 1024
"""The longest line, newline included: a command of a million characters, each escaped, fits."""

BLOCK_BYTES = 64 * 1024
"""How much is read at once on the way back through a ledger."""

_CRC_KEY = "crc"
_SUFFIX = re.compile(rb'"crc":"([0-9a-f]{8})"\}\n')
_SUFFIX_BYTES = len(b'"crc":"00000000"}\n')
_MAC = re.compile(rb'"mac":"([0-9a-f]{32})",')
_MAC_BYTES = len(b'"mac":"",') + MAC_CHARS
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class DamagedLine(ValueError):
    """A line is not what was once encoded; the text says in a few words how that shows."""


class ForgedLine(DamagedLine):
    """A line is whole, and was not written by a daemon of this state."""


@attrs.frozen
class Line:
    """A good line: its bytes are ``[start, end)`` of the ledger, newline included."""

    start: int
    end: int
    fields: dict[str, Any]


@attrs.frozen
class Damaged:
    """A line that does not check: its bytes are ``[start, end)`` of the ledger."""

    start: int
    end: int
    reason: str


@attrs.frozen
class Piece:
    """The bytes ``[start, end)`` between two newlines, not yet judged.

    ``data`` is ``None`` where the piece is longer than any line may be. ``whole`` says that it
    ends with its newline; only the last piece of a ledger may not.
    """

    start: int
    end: int
    data: bytes | None
    whole: bool


@attrs.frozen
class Scan:
    """What a stretch of a ledger holds: ``whole`` is the offset just after its last newline.

    The ``torn`` bytes from there on are the torn tail; 0 of them is the usual case.
    """

    lines: tuple[Line, ...]
    damaged: tuple[Damaged, ...]
    whole: int
    torn: int


def encode_line(fields: Mapping[str, object]) -> bytes:
    """The line of an object of plain JSON values, newline included.

    A lone surrogate is written as its JSON escape and comes back as it was (a high one followed
    by a low one comes back as the one character that they mean). Raises ``ValueError`` for a field
    named ``crc`` or ``mac``, for NaN and infinities, and for a line over ``MAX_LINE_BYTES``;
    ``TypeError`` for a value that JSON does not know.
    """
    for name, what in ((_CRC_KEY, "checksum"), (MAC_KEY, "code")):
        if name in fields:
            raise ValueError(f"a line may not have a field {name!r}: that name is the {what}'s")
    text = _ENCODER.encode(dict(fields))
    body = text[:-1].encode("utf-8", "backslashreplace")
    if len(body) > 1:
        body += b","
    return _checked(body)


def seal_line(line: bytes, seal: Seal | None) -> bytes:
    """Put a code into an encoded line, in the place of one that it has; None: leave it as it is.

    A damaged line is returned as it is too. Raises ``ValueError`` for a line that gets too long.
    """
    if seal is None:
        return line
    try:
        body, _ = _parts(line)
    except DamagedLine:
        return line
    return _checked(b'%b"mac":"%b",' % (bytes(body), seal.mac(body).encode()))


def decode_line(line: bytes, seal: Seal | None = None) -> dict[str, Any]:
    """The fields of a line (with its newline), in the order written, without ``mac`` and ``crc``.

    Raises ``DamagedLine`` for anything that ``encode_line`` did not make; with a ``seal``,
    ``ForgedLine`` for a line that does not have its code.
    """
    body, mac = _parts(line)
    if seal is not None and not (mac is not None and seal.fits(body, mac)):
        raise ForgedLine("it was not written by a daemon of this state")
    fields = _parse(line)
    del fields[_CRC_KEY]
    if mac is not None:
        del fields[MAC_KEY]
    return fields


def _checked(body: bytes) -> bytes:
    line = b'%b"crc":"%08x"}\n' % (body, zlib.crc32(body))
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"a line may hold {MAX_LINE_BYTES} bytes, not {len(line)}")
    return line


def _parts(line: bytes) -> tuple[memoryview, str | None]:
    """What a line's code covers, and the code if it has one. Raises ``DamagedLine``."""
    cut = len(line) - _SUFFIX_BYTES
    suffix = _SUFFIX.fullmatch(line, max(cut, 0))
    if suffix is None:
        raise DamagedLine("it does not end with a checksum")
    body = memoryview(line)[:cut]
    if zlib.crc32(body) != int(suffix[1], 16):
        raise DamagedLine("its checksum does not match")
    code = _MAC.fullmatch(line, max(cut - _MAC_BYTES, 0), cut)
    return (body, None) if code is None else (body[:-_MAC_BYTES], code[1].decode())


def _parse(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DamagedLine("it is not JSON") from error
    if not isinstance(fields, dict):
        raise DamagedLine("it is not a JSON object")
    return fields


def judge(piece: Piece, seal: Seal | None = None) -> Line | Damaged:
    """A whole piece, decoded if it checks; with a ``seal``, if it has its code too."""
    assert piece.whole
    if piece.data is None:
        return Damaged(piece.start, piece.end, "it is longer than any line may be")
    try:
        return Line(piece.start, piece.end, decode_line(piece.data, seal))
    except DamagedLine as error:
        return Damaged(piece.start, piece.end, str(error))


def scan(data: bytes, *, base: int = 0, seal: Seal | None = None) -> Scan:
    """Fold a stretch of a ledger that begins at a line's start, ``base`` bytes into the file."""
    judged: list[Line | Damaged] = []
    start = 0
    while (newline := data.find(b"\n", start)) >= 0:
        piece = Piece(base + start, base + newline + 1, data[start : newline + 1], whole=True)
        judged.append(judge(piece, seal))
        start = newline + 1
    return Scan(
        lines=tuple(item for item in judged if isinstance(item, Line)),
        damaged=tuple(item for item in judged if isinstance(item, Damaged)),
        whole=base + start,
        torn=len(data) - start,
    )


ReadAt = Callable[[int, int], bytes]
"""``read_at(offset, size)`` gives exactly ``size`` bytes of the ledger, or raises."""


def pieces_backward(
    read_at: ReadAt, end: int, *, block_bytes: int = BLOCK_BYTES
) -> Iterator[Piece]:
    """The pieces of the first ``end`` bytes of a ledger, last one first, read block by block.

    Never holds more than one longest line and one block, whatever the ledger holds. Stopping
    early costs nothing: only what was yielded, and the rest of its block, was read.
    """
    unfinished = _Unfinished()
    whole = end > 0 and read_at(end - 1, 1) == b"\n"
    stop = position = end
    while position > 0:
        start = max(0, position - block_bytes)
        block = read_at(start, position - start)
        high = len(block)
        while (cut := block.rfind(b"\n", 0, min(high, stop - 1 - start))) >= 0:
            unfinished.prepend(block[cut + 1 : high])
            high = cut + 1
            yield Piece(start + high, stop, unfinished.take(), whole)
            stop, whole = start + high, True
        unfinished.prepend(block[:high])
        position = start
    if stop > 0:
        yield Piece(0, stop, unfinished.take(), whole)


class _Unfinished:
    """A piece whose beginning is not found yet, kept as blocks; one too long is let go."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._size = 0

    def prepend(self, block: bytes) -> None:
        self._size += len(block)
        if self._size > MAX_LINE_BYTES:
            self._blocks.clear()
        else:
            self._blocks.append(block)

    def take(self) -> bytes | None:
        data = b"".join(reversed(self._blocks)) if self._size <= MAX_LINE_BYTES else None
        self._blocks.clear()
        self._size = 0
        return data
