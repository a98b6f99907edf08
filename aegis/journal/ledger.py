"""The format of a ledger: one JSON object per line, each line with a checksum. Pure.

    {"seq":0,"cmd":"make","exit":0,"crc":"5a3f09c2"}

A line contains the object's own fields, compact and in UTF-8, then ``crc``: the CRC-32 (as in zlib)
of all bytes of the line before it, as eight lowercase hexadecimal digits. So ``jq`` can read a
ledger, and every changed, missing or added byte is detected. A line is whole only with its newline.

On the disk of a daemon a field ``mac`` precedes ``crc``: the code (``sealing``) of all bytes before
it. A line without a valid code was not written by this state's daemon.

The bytes after the last newline are the torn tail: an append that a crash interrupted. A line that
ends with a newline and whose checksum does not match is damaged. Torn tails and damaged lines are
returned as data; only ``decode_line`` raises because of the content of a disk. This module does not
interpret the fields.
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
"""The size of a block when a ledger is read backwards."""

_CRC_KEY = "crc"
_SUFFIX = re.compile(rb'"crc":"([0-9a-f]{8})"\}\n')
_SUFFIX_BYTES = len(b'"crc":"00000000"}\n')
_MAC = re.compile(rb'"mac":"([0-9a-f]{32})",')
_MAC_BYTES = len(b'"mac":"",') + MAC_CHARS
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder()


class DamagedLine(ValueError):
    """The error for a line that ``encode_line`` did not make; the text says why in a few words."""


class ForgedLine(DamagedLine):
    """The error for a whole line that was not written by a daemon of this state."""


@attrs.frozen
class Line:
    """A valid line; its bytes are ``[start, end)`` of the ledger, newline included."""

    start: int
    end: int
    fields: dict[str, Any]


@attrs.frozen
class Damaged:
    """A line with a wrong checksum or code; its bytes are ``[start, end)`` of the ledger."""

    start: int
    end: int
    reason: str


@attrs.frozen
class Piece:
    """The bytes ``[start, end)`` between two newlines, not checked yet.

    ``data`` is ``None`` if the piece is longer than any line may be. ``whole``: the piece ends with
    its newline; only the last piece of a ledger may lack it.
    """

    start: int
    end: int
    data: bytes | None
    whole: bool


@attrs.frozen
class Scan:
    """The content of a part of a ledger; ``whole`` is the offset just after its last newline.

    The ``torn`` bytes after that offset are the torn tail; usually there are none.
    """

    lines: tuple[Line, ...]
    damaged: tuple[Damaged, ...]
    whole: int
    torn: int


def encode_line(fields: Mapping[str, object], seal: Seal | None = None) -> bytes:
    """Return the line of an object of plain JSON values, newline included; with ``seal``'s code.

    A lone surrogate is written as its JSON escape and decoded unchanged (a high one followed by a
    low one is decoded as the one character that they encode). Raises ``ValueError`` for a field
    named ``crc`` or ``mac``, for NaN and infinities, and for a line over ``MAX_LINE_BYTES``;
    ``TypeError`` for a value that JSON does not support.
    """
    for name, what in ((_CRC_KEY, "checksum"), (MAC_KEY, "code")):
        if name in fields:
            raise ValueError(f"a line may not have a field {name!r}: that name is the {what}'s")
    text = _ENCODER.encode(dict(fields))
    body = text[:-1].encode("utf-8", "backslashreplace")
    if len(body) > 1:
        body += b","
    return _checked(body) if seal is None else _sealed(body, seal)


def seal_line(line: bytes, seal: Seal | None) -> bytes:
    """Add a code to an encoded line, or replace its code; without a ``seal``, return it unchanged.

    A damaged line is returned unchanged too. Raises ``ValueError`` if the line becomes too long.
    """
    if seal is None:
        return line
    try:
        body, _ = _parts(line)
    except DamagedLine:
        return line
    return _sealed(bytes(body), seal)


def seal_new_line(line: bytes, seal: Seal | None) -> bytes:
    """Add a code to a line as ``encode_line`` returned it; without a ``seal``, return it unchanged.

    As ``seal_line``, but the line is taken for whole: each entry of a ledger passes here.
    """
    return line if seal is None else _sealed(line[:-_SUFFIX_BYTES], seal)


def _sealed(body: bytes, seal: Seal) -> bytes:
    return _checked(b'%b"mac":"%b",' % (body, seal.mac(body).encode()))


def decode_line(line: bytes, seal: Seal | None = None) -> dict[str, Any]:
    """Return the fields of a line (with its newline) in their order, without ``mac`` and ``crc``.

    Raises ``DamagedLine`` for anything that ``encode_line`` did not make; with a ``seal``,
    ``ForgedLine`` for a line without a valid code.
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
    """Return the bytes that a line's code covers, and its code, if any. Raises ``DamagedLine``."""
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
        # A start reads thousands of lines, and ``loads`` takes twice as long: it looks for the
        # encoding, and for spaces at both ends.
        text = str(line, "utf-8", "surrogatepass")
        fields, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise DamagedLine("it is not JSON") from error
    if end != len(text) - 1:
        raise DamagedLine("it is not JSON")
    if not isinstance(fields, dict):
        raise DamagedLine("it is not a JSON object")
    return fields


def judge(piece: Piece, seal: Seal | None = None) -> Line | Damaged:
    """Decode a whole piece: a ``Line`` if its checksum, and its code with a ``seal``, are valid."""
    assert piece.whole
    if piece.data is None:
        return Damaged(piece.start, piece.end, "it is longer than any line may be")
    try:
        return Line(piece.start, piece.end, decode_line(piece.data, seal))
    except DamagedLine as error:
        return Damaged(piece.start, piece.end, str(error))


def scan(data: bytes, *, base: int = 0, seal: Seal | None = None) -> Scan:
    """Decode the lines in ``data``, which begins with a line, ``base`` bytes into the file."""
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
"""``read_at(offset, size)`` returns exactly ``size`` bytes of the ledger, or raises."""


def pieces_backward(
    read_at: ReadAt, end: int, *, block_bytes: int = BLOCK_BYTES
) -> Iterator[Piece]:
    """Yield the pieces of the first ``end`` bytes of a ledger, last one first, read block by block.

    Holds at most one longest line and one block in memory. Stopping early costs nothing: only the
    yielded pieces, and the rest of their block, were read.
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


def pieces_forward(
    read_at: ReadAt, start: int, end: int, *, block_bytes: int = BLOCK_BYTES
) -> Iterator[Piece]:
    """Yield the pieces of the bytes ``[start, end)`` of a ledger, the first one first.

    A line begins at ``start``; otherwise the first piece is the end of one. Holds at most one
    longest line and one block in memory.
    """
    parts: list[bytes] = []
    begin = start
    for at in range(start, end, block_bytes):
        block = read_at(at, min(block_bytes, end - at))
        low = 0
        while newline := block.find(b"\n", low) + 1:
            parts.append(block[low:newline])
            stop = at + newline
            yield Piece(begin, stop, _joined(parts, stop - begin), whole=True)
            begin, low, parts = stop, newline, []
        if at + len(block) - begin <= MAX_LINE_BYTES:
            parts.append(block[low:])
        else:
            parts.clear()
    if begin < end:
        yield Piece(begin, end, _joined(parts, end - begin), whole=False)


def _joined(parts: list[bytes], size: int) -> bytes | None:
    return b"".join(parts) if size <= MAX_LINE_BYTES else None


class _Unfinished:
    """The blocks of a piece whose beginning is not found yet; dropped if the piece is too long."""

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
