"""``Step``: what all steps of a script have. Pure."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Step:
    """An action of ``client``, ``pause_s`` seconds after the end of its last one.

    ``number`` is its place in the script that was drawn, and identifies it in smaller scripts.
    """

    number: int
    client: int
    pause_s: float = 0.0
