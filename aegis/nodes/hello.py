"""What a host and the daemon say of themselves when one joins the other. Pure."""

from __future__ import annotations

import json

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.names import shorten


@attrs.frozen(kw_only=True)
class Hello:
    """Of a host: its ``version`` of aegis-actors, and its ``identity``, which nobody else has.

    The identity belongs to its root directory, and stays the same from one life to the next.
    """

    version: str
    identity: str


def encode_hello(hello: Hello) -> bytes:
    """``hello`` as it travels."""
    return json.dumps(unstructure(hello)).encode()


def decode_hello(data: bytes) -> Hello:
    """What travelled as ``data``. Raises ``CodecError``."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise CodecError("it is not JSON") from None
    return structure(Hello, document)


def refusal_reason(name: str, hello: Hello, *, version: str, known: str | None) -> str | None:
    """The sentence for a host that may not join as ``name``; ``None`` if it may.

    ``version`` is the daemon's, ``known`` the identity of the host that has the name.
    """
    if hello.version != version:
        theirs = shorten(hello.version)
        return f"here is aegis-actors {version}, and there {theirs}: install the same on both."
    if known is not None and known != hello.identity:
        return (
            f"another host has joined as {name!r}: choose another name. If that host will not "
            f"return, 'aegis-actors node forget {name}' here frees it."
        )
    return None
