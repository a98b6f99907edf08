"""From the bytes of a fuzzer to the stream of a terminal: plain bytes, and ours among them.

Three bytes that UTF-8 never has begin something else than themselves: ``0xFF n`` a piece of a
mark, ``0xFE k n`` a whole mark of number n, ``0xFD a`` what a client or the daemon does at that
place. So a fuzzer that only changes bytes makes marks of the right secret, whole and broken.
"""

from __future__ import annotations

from collections.abc import Iterator

SECRET = b"s3cretS3CRETs3cr"
OURS = b";n=" + SECRET

PIECES = (
    b"\x1b",
    b"\x1b]133;",
    b"\x1b]13",
    b"]133;",
    b"D;0",
    b"P;k=s",
    b"P;k=l;l=3",
    OURS,
    OURS[:9],
    OURS[9:],
    b";q=7",
    b";q=999999999999999",
    b";s=1",
    b";h=41",
    b"\x07",
    b"\x1b\\",
    b"\x18",
    b"\x1a",
    b"\x1b[?2004h",
    b"\x1b[?2004l",
    b"\x1b[?20",
    b"x" * 4096,
    b"\xff",
    b"\xfe",
    b"\xfd",
)
_KINDS = (b"A", b"B", b"C", b"D;%d", b"D", b"P;k=s", b"P;k=l;l=%d")
_ENDINGS = (b"\x07", b"\x1b\\")


def script(data: bytes) -> Iterator[bytes | int]:
    """The stretches of the stream, and between them the numbers of actions."""
    stream = bytearray()
    position = 0
    while position < len(data):
        byte, first, second = (*data[position : position + 3], 0, 0)[:3]
        if byte == 0xFD:
            yield bytes(stream)
            yield first
            stream.clear()
        else:
            stream += _stretch(byte, first, second)
        position += {0xFF: 2, 0xFE: 3, 0xFD: 2}.get(byte, 1)
    yield bytes(stream)


def _stretch(byte: int, first: int, second: int) -> bytes:
    if byte == 0xFF:
        return PIECES[first % len(PIECES)]
    if byte == 0xFE:
        return mark(first, second)
    return bytes([byte])


def mark(shape: int, number: int) -> bytes:
    """A mark of our own hook; ``shape`` chooses its kind, its ending and whether it says s=1."""
    shape, kind = divmod(shape, len(_KINDS))
    body = _KINDS[kind]
    if b"%d" in body:
        body %= number % 4
    submitted = b";s=%d" % (shape // 2 % 2)
    return b"\x1b]133;" + body + OURS + b";q=%d" % number + submitted + _ENDINGS[shape % 2]


def cut(data: bytes) -> list[bytes]:
    """``data`` in pieces of 0 to 7 bytes, which ones depends on ``data`` alone."""
    pieces = []
    position, choice = 0, len(data) * 31 + sum(data)
    while position < len(data):
        choice = (choice * 1_103_515_245 + 12_345) % 2**31
        pieces.append(data[position : position + (choice >> 16) % 8])
        position += len(pieces[-1])
    return pieces
