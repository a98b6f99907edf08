"""Who may join a daemon under which name: pure rules."""

from __future__ import annotations

import pytest

from actors.errors import CodecError
from aegis.nodes.hello import HostIdentity, decode_hello, encode_hello, refusal_reason
from aegis.nodes.node_link import LAST_RETRY_S, retry_delay

ALICE = HostIdentity(version="1.2.3", identity="a" * 32)


def test_what_a_host_says_of_itself_travels_as_it_is() -> None:
    assert decode_hello(encode_hello(ALICE)) == ALICE


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b"[" * 60_000, "it is not JSON"),
        (b"[]", "must be an object"),
        (b"{}", "version is missing"),
        (b'{"version": 1, "identity": "x"}', "version must be text, not 1"),
        (b'{"version": "1", "identity": "x", "more": 1}', "there is no argument 'more'"),
    ],
)
def test_what_is_no_hello_is_named(data: bytes, text: str) -> None:
    with pytest.raises(CodecError, match=text):
        decode_hello(data)


@pytest.mark.parametrize(
    ("version", "known", "text"),
    [
        ("1.2.3", None, None),
        ("1.2.3", "a" * 32, None),
        ("1.2.4", None, "the daemon has version 1.2.4, the host 1.2.3: install the same on both."),
        ("1.2.3", "b" * 32, "another host has joined as 'gpu1': choose another name."),
    ],
)
def test_a_host_joins_with_the_same_version_and_under_a_name_that_is_its_own(
    version: str, known: str | None, text: str | None
) -> None:
    why = refusal_reason("gpu1", ALICE, version=version, known=known)
    assert why is None if text is None else (why or "").startswith(text)


def test_a_version_of_any_length_is_told_in_few_words() -> None:
    long = HostIdentity(version="9" * 60_000, identity="x")
    assert len(refusal_reason("gpu1", long, version="1", known=None) or "") < 300


def test_it_is_tried_again_soon_and_then_every_few_seconds_not_all_at_once() -> None:
    delays = [retry_delay(failures, 0.5) for failures in range(1, 100)]
    assert delays[:4] == [0.2, 0.4, 0.8, 1.6]
    assert set(delays[4:]) == {LAST_RETRY_S}
    assert retry_delay(9, 0.0) < LAST_RETRY_S < retry_delay(9, 0.999)
