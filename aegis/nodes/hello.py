"""The message with which a host joins a daemon, and its check. Pure."""

from __future__ import annotations

import json

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.names import shorten


@attrs.frozen(kw_only=True)
class HostIdentity:
    """A host's ``version`` of aegis-actors and its unique ``identity``.

    The identity belongs to the host's root directory, and is the same after a restart.
    """

    version: str
    identity: str


def encode_hello(hello: HostIdentity) -> bytes:
    """Encode a hello."""
    return json.dumps(unstructure(hello)).encode()


def decode_hello(data: bytes) -> HostIdentity:
    """Decode a hello. Raises ``CodecError``."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise CodecError("it is not JSON") from None
    return structure(HostIdentity, document)


def refusal_reason(
    name: str, hello: HostIdentity, *, version: str, known: str | None
) -> str | None:
    """Return why a host may not join as ``name``; None if it may.

    ``version`` is the daemon's, ``known`` the identity of the host that has the name.
    """
    if hello.version != version:
        theirs = shorten(hello.version)
        return f"the daemon has version {version}, the host {theirs}: install the same on both."
    if known is not None and known != hello.identity:
        return (
            f"another host has joined as {name!r}: choose another name. If that host will not "
            f"return, 'aegis-actors node forget {name}' here frees it."
        )
    return None
