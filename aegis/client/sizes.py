"""The largest request, checked before it is sent. Standard library only."""

from __future__ import annotations

from aegis.client.errors import CommandFailed

MAX_FRAME_BYTES = 4 * 1024 * 1024
"""Largest message that the daemon accepts."""


def check_size(frame: bytes) -> None:
    """Check the size of a request. Raises ``CommandFailed``."""
    if len(frame) > MAX_FRAME_BYTES:
        raise CommandFailed(
            "invalid_request",
            f"the request would take {len(frame)} bytes, and the daemon accepts at most "
            f"{MAX_FRAME_BYTES}: nothing was sent; write long texts to a file and send its path",
        )
