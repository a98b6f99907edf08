"""The handshake of nodes, as bytes: fed whole, byte by byte, wrong, again and reflected."""

from __future__ import annotations

import pytest

from actors.errors import HandshakeRefused
from actors.nodes.links.handshake import (
    NONCE_BYTES,
    OPENING_BYTES,
    PROOF_BYTES,
    VERSION,
    Connector,
    Listener,
)

KEY = bytes(range(32))
OTHER = bytes(32)
NONCES = [bytes([number]) * NONCE_BYTES for number in range(1, 6)]


def feed(side: Listener | Connector, data: bytes, at_once: int) -> bytes:
    """What ``side`` answers to ``data``, given so many bytes at a time."""
    pieces = range(0, len(data), at_once)
    return b"".join(side.feed(data[at : at + at_once]) for at in pieces)


@pytest.mark.parametrize("at_once", [1, 7, 4096])
def test_two_with_the_same_key_prove_it_to_each_other(at_once: int) -> None:
    listener, connector = Listener(KEY, NONCES[0]), Connector(KEY, NONCES[1])
    said = feed(connector, listener.greeting, at_once)
    assert (connector.is_proved, connector.wanted) == (False, PROOF_BYTES)
    answer = feed(listener, said, at_once)
    assert listener.wanted == 0
    assert feed(connector, answer, at_once) == b""
    assert (connector.is_proved, connector.wanted) == (True, 0)


def test_each_side_says_how_many_bytes_it_wants_and_takes_none_beyond() -> None:
    listener, connector = Listener(KEY, NONCES[0]), Connector(KEY, NONCES[1])
    assert connector.wanted == len(listener.greeting) == OPENING_BYTES
    said = connector.feed(listener.greeting)
    assert listener.wanted == len(said) == OPENING_BYTES + PROOF_BYTES
    with pytest.raises(HandshakeRefused, match="more than"):
        listener.feed(said + b"x")
    assert connector.wanted == PROOF_BYTES
    with pytest.raises(HandshakeRefused, match="more than"):
        connector.feed(bytes(PROOF_BYTES + 1))


@pytest.mark.parametrize("at_once", [1, 4096])
def test_a_connector_with_another_key_is_refused(at_once: int) -> None:
    listener, connector = Listener(KEY, NONCES[0]), Connector(OTHER, NONCES[1])
    with pytest.raises(HandshakeRefused, match="another key"):
        feed(listener, connector.feed(listener.greeting), at_once)


@pytest.mark.parametrize("at_once", [1, 4096])
def test_a_listener_with_another_key_is_refused(at_once: int) -> None:
    listener, connector = Listener(OTHER, NONCES[0]), Connector(KEY, NONCES[1])
    connector.feed(listener.greeting)
    forged = Connector(OTHER, NONCES[1]).feed(listener.greeting)
    with pytest.raises(HandshakeRefused, match="another key"):
        feed(connector, listener.feed(forged), at_once)


def test_what_was_recorded_proves_nothing_at_another_time() -> None:
    first = Listener(KEY, NONCES[0])
    recorded = Connector(KEY, NONCES[1]).feed(first.greeting)
    first.feed(recorded)
    with pytest.raises(HandshakeRefused, match="another key"):
        Listener(KEY, NONCES[2]).feed(recorded)


def test_what_a_listener_said_proves_nothing_to_another_connector() -> None:
    listener, connector = Listener(KEY, NONCES[0]), Connector(KEY, NONCES[1])
    proof = listener.feed(connector.feed(listener.greeting))
    other = Connector(KEY, NONCES[3])
    other.feed(listener.greeting)
    with pytest.raises(HandshakeRefused, match="another key"):
        other.feed(proof)


def test_what_one_side_said_is_no_proof_when_it_is_sent_back() -> None:
    listener = Listener(KEY, NONCES[0])
    with pytest.raises(HandshakeRefused, match="another key"):
        listener.feed(listener.greeting + bytes(PROOF_BYTES))
    connector = Connector(KEY, NONCES[1])
    said = connector.feed(Listener(KEY, NONCES[2]).greeting)
    with pytest.raises(HandshakeRefused, match="another key"):
        connector.feed(said[OPENING_BYTES:])


def test_a_connector_that_is_led_to_talk_to_itself_proves_nothing() -> None:
    one, other = Connector(KEY, NONCES[0]), Connector(KEY, NONCES[1])
    said = one.feed(Listener(KEY, NONCES[2]).greeting)
    answer = other.feed(said[:OPENING_BYTES])
    with pytest.raises(HandshakeRefused, match="another key"):
        one.feed(answer[OPENING_BYTES:])


@pytest.mark.parametrize(
    ("data", "first_bad"),
    [
        (b"GET / HTTP/1.1\r\n", 1),
        (b"\x16\x03\x01\x02\x00", 1),
        (b"\xff\xff\xff\xff", 1),
        (b"AEGISNODEX", 10),
        (b"AEGISXXXXX", 6),
    ],
)
def test_what_is_no_handshake_is_refused_at_the_first_byte_that_differs(
    data: bytes, first_bad: int
) -> None:
    for side in (Listener(KEY, NONCES[0]), Connector(KEY, NONCES[1])):
        for byte in data[: first_bad - 1]:
            side.feed(bytes([byte]))
        with pytest.raises(HandshakeRefused):
            side.feed(data[first_bad - 1 : first_bad])


def test_another_version_is_told_with_both() -> None:
    with pytest.raises(HandshakeRefused, match=f"version {VERSION + 1} .* not {VERSION}"):
        Listener(KEY, NONCES[0]).feed(b"AEGISNODE" + bytes([VERSION + 1]))


def test_one_changed_bit_anywhere_is_refused() -> None:
    said = Connector(KEY, NONCES[1]).feed(Listener(KEY, NONCES[0]).greeting)
    for at in range(len(said)):
        changed = bytearray(said)
        changed[at] ^= 1
        with pytest.raises(HandshakeRefused):
            Listener(KEY, NONCES[0]).feed(bytes(changed))


def test_nonces_have_their_length() -> None:
    with pytest.raises(ValueError, match="nonce"):
        Listener(KEY, b"short")
