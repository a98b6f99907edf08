"""Packets between processes: read back as they were, and in no other form."""

from __future__ import annotations

import msgspec
import pytest

from actors.errors import LinkLost, MisuseError
from actors.nodes.links.packets import Abandoned, Ask, AskFailure, Body, Tell, decode, encode

BODY = Body("x", {"text": "é\0\u202e", "data": b"\xff" * 70_000, "n": [-1, 0, 2**40, 1.5, 1e300]})


@pytest.mark.parametrize(
    "packet",
    [
        Tell("root/a", BODY),
        Ask(7, "root/a", BODY, ["root/b"]),
        AskFailure(7, "NotFound", "no", "root/a"),
        Abandoned(2**52),
    ],
)
def test_a_packet_is_read_back_as_it_was(packet: Tell | Ask | AskFailure | Abandoned) -> None:
    assert decode(encode(packet)) == packet


def with_a_key_twice(packet: Abandoned) -> bytes:
    """The packet, whose map says its number once more."""
    data = msgspec.msgpack.encode({"type": packet.tag, "number": 1})
    more = msgspec.msgpack.encode({"number": packet.number})[1:]
    return bytes([data[0] + 1]) + data[1:] + more


def test_a_map_that_has_a_key_twice_is_no_packet() -> None:
    data = with_a_key_twice(Abandoned(2))
    assert msgspec.msgpack.decode(data) == {"type": "abandon", "number": 2}
    with pytest.raises(LinkLost, match="form"):
        decode(data)


def test_a_number_that_is_longer_than_it_need_be_is_no_packet() -> None:
    data = msgspec.msgpack.encode({"type": "abandon", "number": 1})
    with pytest.raises(LinkLost):
        decode(data[:-1] + b"\xcd\x00\x01")


def test_text_that_utf8_cannot_carry_is_refused_where_it_is_sent() -> None:
    with pytest.raises(MisuseError, match="surrogates"):
        encode(Tell("root/a", Body("x", {"cwd": "/d\udcff"})))
