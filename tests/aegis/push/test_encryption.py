"""Messages and tokens as the RFCs have them."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from aegis.errors import StorageError
from aegis.push.encryption import CURVE, base64url, encrypted, from_base64url, read_key
from aegis.push.notices import MAX_PLAIN_BYTES
from aegis.push.vapid import TOKEN_S, open_vapid_key
from aegis.state.sealing import Seal
from tests.fakes.push_service import PushBrowser

SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
MESSAGE = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6T"
    "lzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4"
    "a-fN"
)


def test_the_example_of_the_rfc_is_encrypted_as_there() -> None:
    sender = ec.derive_private_key(int.from_bytes(from_base64url(SENDER), "big"), CURVE)
    text = b"When I grow up, I want to be a watermelon"
    body = encrypted(text, P256DH, AUTH, sender=sender, salt=from_base64url(SALT), pad_bytes=0)
    assert base64url(body) == MESSAGE


@pytest.mark.parametrize("size", [0, 1, 510, 511, 512, 3_000])
def test_a_browser_reads_a_message_and_its_length_says_little(size: int) -> None:
    browser = PushBrowser()
    content = json.dumps({"text": "x" * size}).encode()
    keys = browser.keys
    body = encrypted(content, keys["p256dh"], keys["auth"])
    assert browser.read(body) == {"text": "x" * size}
    assert (len(body) - 86 - 16) % 512 == 0
    assert len(body) <= 4_096
    assert body != encrypted(content, keys["p256dh"], keys["auth"])


@pytest.mark.parametrize("key", ["", "AAAA", "A" * 87, "B" * 87])
def test_a_key_that_is_no_point_is_refused(key: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        encrypted(b"", key, AUTH)


def test_a_content_that_is_too_long_is_refused() -> None:
    encrypted(b"x" * MAX_PLAIN_BYTES, P256DH, AUTH)
    with pytest.raises(ValueError, match="3073 bytes"):
        encrypted(b"x" * (MAX_PLAIN_BYTES + 1), P256DH, AUTH)


def test_a_token_is_signed_and_is_for_one_push_service(tmp_path: Path) -> None:
    key = open_vapid_key(tmp_path / "push.key", None)
    kind, fields = key.authorization("https://push.example", 1_000.0).split(" ", 1)
    token, shown = (each.partition("=")[2] for each in fields.split(", "))
    assert (kind, shown) == ("vapid", key.public)
    head, claims, signature = (from_base64url(each) for each in token.split("."))
    assert json.loads(head) == {"typ": "JWT", "alg": "ES256"}
    content = json.loads(claims)
    assert content["aud"] == "https://push.example"
    assert content["exp"] == 1_000 + TOKEN_S
    assert content.keys() == {"aud", "exp", "sub"}
    numbers = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:]))
    signed = token.rpartition(".")[0].encode()
    read_key(shown).verify(encode_dss_signature(*numbers), signed, ec.ECDSA(SHA256()))


def test_the_key_is_made_once_and_is_for_its_owner_only(tmp_path: Path) -> None:
    path, seal = tmp_path / "push.key", Seal(b"k" * 32, "id", b"push.key")
    first = open_vapid_key(path, seal)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert open_vapid_key(path, seal).public == first.public
    assert len(from_base64url(first.public)) == 65


@pytest.mark.parametrize("content", [b"", b"xyz\n", b"0" * 64 + b"\n", b"f" * 64 + b"\n"])
def test_a_damaged_key_is_named_and_not_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "push.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(StorageError, match="browsers have to subscribe again"):
        open_vapid_key(path, None)
    assert path.read_bytes() == content


def test_the_key_of_another_state_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "push.key"
    open_vapid_key(path, Seal(b"k" * 32, "other", b"push.key"))
    with pytest.raises(StorageError, match="not written by a daemon of this state"):
        open_vapid_key(path, Seal(b"k" * 32, "id", b"push.key"))
